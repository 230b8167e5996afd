"""Swaps of two columns: a move between sets of columns that explain the same rows.

A chain cannot guess which of thousands of columns could replace one of the largest, but the
likelihoods of all such swaps together cost one product with the design. Each is proposed with
probability proportional to `min(1, likelihood ratio)`, a locally balanced proposal (Zanella, 2020).
The Metropolis correction is the ratio of the normalising sums before and after. Of a wide design a
random sample of the columns is looked at, anew for each proposal.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from predcp.linear._column_moves import Columns, LogLikelihood

# Ranks of local scales that may be the first of the two columns.
_LARGEST = 32
# Entries of a design of which a proposal looks at all columns; and, of a larger one, at a sample.
_MOST_ENTRIES = 2**21
_SAMPLED_ENTRIES = 2**19


class PriorOfScales(NamedTuple):
    """The prior of tau given local scales, through its sums over columns.

    **Arguments**
    - `log_density(local_scales, sums)`.
    - `sums_at(places, scales)`: what columns at some places add to the sums.
    - `others(places)`: the sums over all columns but those at some places.
    """

    log_density: Callable[[Float[Array, " columns"], Array], Array]
    sums_at: Callable[[Int[Array, " places"], Float[Array, " places"]], Array]
    others: Callable[[Int[Array, " places"]], Array]


class _Swap(NamedTuple):
    """State between proposals.

    **Arguments**: `largest`, places by rank; `others`, the prior's sums over all other columns.
    """

    columns: Columns
    largest: Int[Array, " ranks"]
    others: Array
    log_prior: Float[Array, ""]


class _Candidates(NamedTuple):
    """Columns that may be the second of the two: places, and columns of the design as rows."""

    places: Int[Array, " some"]
    across: Float[Array, "some rows"]


def looked_at(rows: int, columns: int) -> int:
    """How many columns a proposal looks at."""
    return columns if rows * columns <= _MOST_ENTRIES else _sampled(rows)


def _sampled(rows: int) -> int:
    return max(_SAMPLED_ENTRIES // rows, 1)


def transposed_if_small(x: Float[Array, "rows columns"]) -> Float[Array, "columns rows"] | None:
    """The transpose of a design of which every proposal looks at all columns; None of a larger one."""
    return x.T if x.size <= _MOST_ENTRIES else None


def propose_swaps(
    key: Array,
    columns: Columns,
    x: Float[Array, "rows columns"],
    across: Float[Array, "columns rows"] | None,
    log_likelihood: LogLikelihood,
    prior: PriorOfScales,
    proposals: int,
    number: int | Int[Array, ""] | None = None,
) -> tuple[Columns, Array, Array, Array]:
    """Columns after the proposed swaps.

    Also returns the prior's sums, the places that were proposed, and the fraction accepted. Two
    columns swap local scale and coefficient, with the sign of their correlation. The first has a
    random rank among the largest scales. It keeps this rank, so the reverse move is as probable.

    **Arguments**: `across`, the transposed design, of which each proposal looks at all columns; None
    for a random sample of them; `number` of proposals that are made, all if None.
    """
    kind, (rows, count) = columns.direction.dtype, x.shape
    most = min(_LARGEST, count)

    def sums_of(local_scales: Array, largest: Array, others: Array) -> Array:
        return others + prior.sums_at(largest, local_scales[largest])

    def candidates(key: Array) -> _Candidates:
        if across is not None:
            return _Candidates(jnp.arange(count), across)
        # Independent draws: exchanging one of them for the first column is then as probable.
        places = jax.random.randint(key, (_sampled(rows),), 0, count)
        return _Candidates(places, x[:, places].T)

    def propose(step: Array, carry: tuple[_Swap, Array, Array]) -> tuple[_Swap, Array, Array]:
        (now, accepted, pairs), key = carry, keys[step]
        columns, largest = now.columns, now.largest
        key_rank, key_some, key_second, key_accept = jax.random.split(key, 4)
        # The rank is drawn on a log scale: the largest columns are the most common.
        log_rank = jax.random.uniform(key_rank, (), kind) * math.log(most + 1.0)
        rank = jnp.clip(jnp.exp(log_rank).astype(int) - 1, 0, most - 1)
        first = largest[rank]
        some = candidates(key_some)
        pair_first = x[:, first]
        sign, log_ways = _swaps_of(columns, first, pair_first, some, log_likelihood)
        chosen = _drawn(key_second, log_ways)
        second = some.places[chosen].astype(largest.dtype)
        pair = jnp.stack([first, second])
        across_pair = jnp.stack([pair_first, some.across[chosen]])
        moved = _swapped(columns, pair, sign[chosen], across_pair)
        if across is None:
            some = _Candidates(
                some.places.at[chosen].set(first), some.across.at[chosen].set(pair_first)
            )
        _, log_ways_back = _swaps_of(moved, second, across_pair[1], some, log_likelihood)
        # A swap changes places, not scales: the new place of each rank follows without a sort.
        followed = jnp.where(largest == second, first, largest)
        followed = jnp.where(jnp.arange(most) == rank, second, followed)
        small = jnp.where(jnp.any(largest == second), 0.0, columns.local_scales[second])
        traded = prior.sums_at(first[None], small[None]) - prior.sums_at(second[None], small[None])
        others = now.others + traded
        sums = sums_of(moved.local_scales, followed, others)
        log_prior = prior.log_density(moved.local_scales, sums)
        log_ratio = logsumexp(log_ways) - logsumexp(log_ways_back) + log_prior - now.log_prior
        # Rounding may have drawn a column of weight 0.
        log_ratio = jnp.where(log_ways[chosen] > -jnp.inf, log_ratio, -jnp.inf)
        # A NaN fails the comparison and is refused.
        accept = jnp.log(jax.random.uniform(key_accept, (), kind)) < log_ratio
        after = _Swap(moved, followed.astype(largest.dtype), others, log_prior)
        now = jax.tree.map(lambda new, old: jnp.where(accept, new, old), after, now)
        return now, accepted + accept, pairs.at[step].set(pair)

    _, largest = jax.lax.top_k(columns.local_scales, most)
    others = prior.others(largest)
    log_prior = prior.log_density(
        columns.local_scales, sums_of(columns.local_scales, largest, others)
    )
    # Where there are fewer proposals, the places that are left over repeat one that may move anyway.
    pairs = jnp.full((proposals, 2), largest[0])
    begin = (_Swap(columns, largest, others, log_prior), jnp.zeros((), kind), pairs)
    keys = jax.random.split(key, proposals)
    made = proposals if number is None else number
    now, accepted, pairs = jax.lax.fori_loop(0, made, propose, begin)
    sums = sums_of(now.columns.local_scales, now.largest, now.others)
    return now.columns, sums, pairs.reshape(-1), accepted / made


def _swaps_of(
    columns: Columns,
    first: Int[Array, ""],
    column: Float[Array, " rows"],
    others: _Candidates,
    log_likelihood: LogLikelihood,
) -> tuple[Float[Array, " some"], Float[Array, " some"]]:
    """The sign of each column's correlation with the first, and `log min(1, ratio)` of their swap."""
    own, theirs = columns.direction[first], columns.direction[others.places]
    sign = jnp.where(others.across @ column < 0.0, -1.0, 1.0).astype(theirs.dtype)
    to_first, to_other = sign * theirs - own, sign * own - theirs
    fits = columns.fit + to_first[:, None] * column + to_other[:, None] * others.across
    gain = log_likelihood(fits) - log_likelihood(columns.fit)
    log_ways = jnp.where(gain < 0.0, gain, jnp.where(jnp.isnan(gain), -jnp.inf, 0.0))
    # No column swaps with itself.
    return sign, jnp.where(others.places == first, -jnp.inf, log_ways)


def _drawn(key: Array, log_weights: Float[Array, " columns"]) -> Int[Array, ""]:
    """An index with probability proportional to its weight: first a block, then within the block.

    This needs two random numbers instead of one per index, and no long cumulative sum with rounding errors.
    """
    length = math.isqrt(log_weights.size - 1) + 1
    weights = jnp.exp(log_weights - jnp.max(log_weights))
    blocks = jnp.pad(weights, (0, length**2 - weights.size)).reshape(length, length)
    levels = jax.random.uniform(key, (2,), weights.dtype)

    def place(weights: Array, level: Array) -> Array:
        total = jnp.cumsum(weights)
        return jnp.sum(total <= level * total[-1])

    block = jnp.minimum(place(jnp.sum(blocks, axis=1), levels[0]), length - 1)
    return jnp.minimum(block * length + place(blocks[block], levels[1]), weights.size - 1)


def _swapped(columns: Columns, pair: Array, sign: Array, across: Array) -> Columns:
    scales, start = columns.local_scales[pair], columns.direction[pair]
    moved = sign * start[::-1]
    return Columns(
        columns.direction.at[pair].set(moved),
        columns.local_scales.at[pair].set(scales[::-1]),
        columns.fit + (moved - start) @ across,
    )
