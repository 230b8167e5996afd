"""Columns in parts, of which a sweep renews one, and what is known of the others.

The local scales of all columns enter the coefficients through `X Lambda^2 X^T`, whose cost, rows^2
times columns, is a hundred times that of a product with the design. A sweep of a wide design
renews the local scales of one part of the columns, in turn. Any fixed order of such steps leaves the
posterior invariant. The sums over the other parts are kept.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from predcp.linear._coefficient_prior import GlobalLocalPrior

# Entries of a design from which on its columns are in parts.
_WIDE = 2**22
# Rows for each part: the product with itself then costs about as much as ten with a vector.
_ROWS_PER_PART = 40
# The kept matrices of four chains take at most a quarter of the memory of the design.
_COLUMNS_PER_ROW = 16
# Entries of a block of columns that is scaled at once.
_BLOCK = 2**20
# Columns whose last change need not be in the matrices of their parts.
_MOST_CHANGES = 256
# Rows of a tile of a symmetric matrix, of which tiles above the diagonal are not computed.
_TILE = 128


@jax.custom_batching.custom_vmap
def same_for_all_chains(number: Array) -> Array:
    """A number that vectorised chains have in common: what it indexes is then read once for all."""
    return number


@same_for_all_chains.def_vmap
def _same(size: int, batched: Any, number: Array) -> tuple[Array, bool]:
    return (same_for_all_chains(number[0]) if batched[0] else number), False


@jax.custom_batching.custom_vmap
def largest_of_all_chains(number: Array) -> Array:
    """The largest of a number over vectorised chains: a loop of so many rounds is the same for all."""
    return number


@largest_of_all_chains.def_vmap
def _largest(size: int, batched: Any, number: Array) -> tuple[Array, bool]:
    return largest_of_all_chains(jnp.max(number) if batched[0] else number), False


@jax.custom_batching.custom_vmap
def predictor(x: Float[Array, "rows columns"], direction: Array) -> Float[Array, " rows"]:
    """`x @ direction`; for chains side by side one product with the design, which is read once."""
    return x @ direction


@predictor.def_vmap
def _predictors(size: int, batched: Any, x: Array, direction: Array) -> tuple[Array, bool]:
    if batched[0]:
        return jax.vmap(lambda x, own: x @ own, in_axes=tuple(0 if b else None for b in batched))(
            x, direction
        ), True
    # The barrier keeps this order: the transposed product takes four times as long on a CPU.
    return jax.lax.optimization_barrier(x @ direction.T).T, True


class Parts(NamedTuple):
    """Consecutive columns in parts of one length; the last part may begin within the one before.

    **Arguments**: `block`, a divisor of `length`: columns that are scaled at once.
    """

    columns: int
    number: int
    length: int
    block: int

    @classmethod
    def of(cls, rows: int, columns: int) -> "Parts":
        """One part, unless the design is large."""
        number = min(-(-rows // _ROWS_PER_PART), columns // (_COLUMNS_PER_ROW * rows))
        if rows * columns < _WIDE or number < 2:
            return cls(columns, 1, columns, columns)
        block = min(max(_BLOCK // rows, 1), -(-columns // number))
        length = -(-columns // (number * block)) * block
        return cls(columns, -(-columns // length), length, block)

    def start(self, part: Array) -> Array:
        """The first column of a part, which may belong to the part before."""
        return jnp.minimum(part * self.length, self.columns - self.length)

    def own(self, part: Array) -> Array:
        """Which columns of a part belong to no other."""
        return self.start(part) + jnp.arange(self.length) >= part * self.length

    def take(self, values: Array, part: Array) -> Array:
        """Entries of `(..., columns)` at a part."""
        if self.number == 1:
            return values
        return jax.lax.dynamic_slice_in_dim(values, self.start(part), self.length, values.ndim - 1)

    def put(self, values: Array, part: Array, new: Array) -> Array:
        """`values` `(columns,)` with new ones at the columns of a part that are its own."""
        new = jnp.where(self.own(part), new, self.take(values, part))
        return jax.lax.dynamic_update_slice_in_dim(values, new, self.start(part), 0)

    def gram(self, x: Array, scales: Array, part: Array) -> Float[Array, "rows rows"]:
        """`X Lambda^2 X^T` over the columns of a part. **Arguments**: `scales` `(length,)`."""
        if self.block == self.columns:
            return gram(x, scales)

        def add(total: Array, first: Array) -> tuple[Array, None]:
            block = jax.lax.dynamic_slice_in_dim(x, self.start(part) + first, self.block, 1)
            scaled = jax.lax.dynamic_slice_in_dim(scales, first, self.block, 0)
            return total + gram(block, scaled), None

        firsts = jnp.arange(0, self.length, self.block)
        return jax.lax.scan(add, jnp.zeros((x.shape[0],) * 2, x.dtype), firsts)[0]


def gram(x: Array, scales: Array) -> Float[Array, "rows rows"]:
    """`X Lambda^2 X^T`."""
    rows = x.shape[0]
    # The design itself is one factor: chains side by side are then one product of matrices.
    scaled = x * scales**2
    if rows <= 2 * _TILE:
        return scaled @ x.T
    lower = []
    for first in range(0, rows, _TILE):
        last = min(first + _TILE, rows)
        tile = scaled[first:last] @ x[:last].T
        lower.append(jnp.pad(tile, ((0, 0), (0, rows - last))))
    whole = jnp.tril(jnp.concatenate(lower))
    return whole + jnp.tril(whole, -1).T


class Kept(NamedTuple):
    """Sums over the columns of each part, but for the columns that are held back.

    The columns with the largest local scales are held back and added where they are needed: the
    sums over the others, subtracted from the whole, would be lost to rounding.

    **Arguments**
    - `number` of the sweep.
    - `held`: places of the columns held back; `traded`: places whose local scales the last swaps set.
    - `included`: the local scale with which each column is in the sums, 0 for those held back.
    - `multiplied`: likewise in `grams`, which are corrected only where many columns have changed.
    - `grams` `(parts, rows, rows)`, empty where nobody needs them; `sums`, see `GlobalLocalPrior.sums`.
    - `fit`: design times direction.
    """

    number: Int[Array, ""]
    held: Int[Array, " held"]
    traded: Int[Array, " swaps"]
    included: Float[Array, " columns"]
    multiplied: Float[Array, " columns"]
    grams: Float[Array, "parts ..."]
    sums: Float[Array, "parts rows sums"]
    fit: Float[Array, " rows"]


class Reader(NamedTuple):
    """Reads a design part by part.

    **Arguments**: `noise`, see `GlobalLocalPrior.reading_noise`; `by_rows`, whether `X Lambda^2 X^T`
    is needed.
    """

    x: Float[Array, "rows columns"]
    parts: Parts
    prior: GlobalLocalPrior
    noise: Any
    by_rows: bool

    @classmethod
    def of(cls, x: Array, prior: GlobalLocalPrior, by_rows: bool) -> "Reader":
        """The reader of a design."""
        rows, columns = x.shape
        # Without matrices of rows by rows there is nothing to save.
        parts = Parts.of(rows, columns) if by_rows else Parts(columns, 1, columns, columns)
        return cls(x, parts, prior, prior.reading_noise(columns), by_rows)

    def begin(self, local_scales: Array, direction: Array, held: Array, swaps: int) -> Kept:
        """All sums, from the design."""
        included = local_scales.at[held].set(0.0)
        grams, sums = jax.lax.map(
            lambda part: self.of_part(included, part), jnp.arange(self.parts.number)
        )
        traded = jnp.zeros(2 * swaps, held.dtype)
        zero = jnp.zeros((), jnp.int32)
        fit = predictor(self.x, direction)
        return Kept(zero, held, traded, included, included, grams, sums, fit)

    def of_part(self, local_scales: Array, part: Array) -> tuple[Array, Array]:
        """The gram and the prior's sums over the columns of a part."""
        scales = self.own_scales(local_scales, part)
        found = jnp.zeros((0,), self.x.dtype)
        if self.by_rows:
            found = self.parts.gram(self.x, scales, part)
        return found, self.part_sums(scales, part)

    def own_scales(self, local_scales: Array, part: Array) -> Array:
        """Local scales `(length,)` of a part, 0 for columns of another."""
        return jnp.where(self.parts.own(part), self.parts.take(local_scales, part), 0.0)

    def part_sums(self, scales: Array, part: Array) -> Array:
        """The prior's sums over the columns of a part, given their scales `(length,)`."""
        noise = None if self.noise is None else self.parts.take(self.noise, part)
        return self.prior.sums(self.parts.take(self.x, part), scales, noise)

    def sums_at(self, places: Array, scales: Array) -> Array:
        """The prior's sums over the columns at some places."""
        noise = None if self.noise is None else self.noise[:, places]
        return self.prior.sums(self.x[:, places], scales, noise)

    def renewed(self, kept: Kept, local_scales: Array, held: Array, part: Array) -> Kept:
        """The sums when the columns `held` are held back and those of `part` have changed."""
        wanted = local_scales.at[held].set(0.0)
        if self.parts.number > 1:
            kept = self._corrected(kept, wanted, held, part)
        found, sums = self.of_part(wanted, part)
        own = self.parts.take(wanted, part)
        kept = kept._replace(
            held=held,
            included=self.parts.put(kept.included, part, own),
            multiplied=self.parts.put(kept.multiplied, part, own),
            grams=jax.lax.dynamic_update_index_in_dim(kept.grams, found, part, 0),
            sums=jax.lax.dynamic_update_index_in_dim(kept.sums, sums, part, 0),
        )
        return self._caught_up(kept) if self._behind else kept

    def gram(self, kept: Kept) -> Array:
        """`X Lambda^2 X^T` over all columns that are not held back; empty where nobody needs it."""
        whole = jnp.sum(kept.grams, axis=0)
        if not self._behind:
            return whole
        places, change = self._changes(kept)
        x = self.x[:, places]
        return whole + (x * change) @ x.T

    @property
    def _behind(self) -> bool:
        """Whether the matrices of parts may lack the last changes of some columns."""
        return self.by_rows and self.parts.number > 1

    def _changes(self, kept: Kept) -> tuple[Array, Array]:
        """The first of the columns that the matrices lack, and the change of their squared scales."""
        lacking = kept.multiplied != kept.included
        # At least as many as the columns held back: those of the first sweep.
        most = min(max(_MOST_CHANGES, kept.held.size), self.parts.columns)
        (places,) = jnp.nonzero(lacking, size=most, fill_value=0)
        change = kept.included[places] ** 2 - kept.multiplied[places] ** 2
        return places, jnp.where(jnp.arange(most) < jnp.sum(lacking), change, 0.0)

    def _caught_up(self, kept: Kept) -> Kept:
        """The matrices with all changes, where `gram` could not add so many."""
        most = self._changes(kept)[0].size
        lacking = jnp.sum(kept.multiplied != kept.included)
        needed = jnp.where(lacking > most, -(-lacking // most), 0)

        def add(_: Array, kept: Kept) -> Kept:
            places, change = self._changes(kept)
            x = self.x[:, places]
            owner = places // self.parts.length
            of_parts = owner == jnp.arange(self.parts.number)[:, None]
            added = (x * jnp.where(of_parts, change, 0.0)[:, None, :]) @ x.T
            multiplied = kept.multiplied.at[places].set(kept.included[places])
            return kept._replace(grams=kept.grams + added, multiplied=multiplied)

        return jax.lax.fori_loop(0, largest_of_all_chains(needed), add, kept)

    def _corrected(self, kept: Kept, wanted: Array, held: Array, part: Array) -> Kept:
        """The other parts' sums: columns held back no more, or from now on, and swapped ones."""
        places = jnp.concatenate([held, kept.held, kept.traded])
        again = jnp.tril(places[:, None] == places, -1).any(axis=1)
        owner = places // self.parts.length
        of_parts = owner == jnp.arange(self.parts.number)[:, None]
        of_parts = of_parts & ~again & (owner != part)
        old, new = kept.included[places], wanted[places]

        def sums(scales: Array) -> Array:
            return jax.vmap(lambda own: self.sums_at(places, jnp.where(own, scales, 0.0)))(of_parts)

        return kept._replace(
            included=kept.included.at[places].set(new), sums=kept.sums + sums(new) - sums(old)
        )
