"""New local scales for blocks of columns, by the likelihood itself, without Polya-gamma weights."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Columns(NamedTuple):
    """State of the columns, as a move changes it.

    **Arguments**: `direction`, coefficients in units of tau; `fit`, design times direction (of all
    columns, where these are a part).
    """

    direction: Float[Array, " columns"]
    local_scales: Float[Array, " columns"]
    fit: Float[Array, " rows"]


# Of one predictor `(rows,)`, or of several.
LogLikelihood = Callable[[Float[Array, "*many rows"]], Float[Array, "*many"]]


def renewed_columns(
    key: Array,
    order: Array,
    columns: Columns,
    x: Float[Array, "rows columns"],
    own: Bool[Array, " columns"],
    log_likelihood: LogLikelihood,
    blocks: int,
) -> tuple[Columns, Array]:
    """Columns after proposals of new local scales for one block after the other.

    Also returns the fraction accepted. Given its coefficient, a column near 0 hardly ever gets a wide
    scale. Given xi, a wide scale is proposed as often as the half-Cauchy prior has it, and the
    likelihood decides. The blocks are visited from either end, at random: the whole is reversible.

    **Arguments**: `order`, a key that decides where the blocks begin and which is the first, the same
    for all chains; `own`, which columns may move.
    """
    kind, count = columns.direction.dtype, columns.direction.size
    length = -(-count // max(blocks, 1))
    # The first block is cut off somewhere, so that blocks begin anywhere; then there is one more.
    steps = -(-count // length) + (length > 1)
    key_offset, key_turn = jax.random.split(order)
    offset = jax.random.randint(key_offset, (), 0, length)
    turned = jax.random.bernoulli(key_turn)

    def propose(carry, chance):
        columns, accepted = carry
        step, proposed, log_uniform = chance
        begin = jnp.where(turned, steps - 1 - step, step) * length - offset
        first = jnp.clip(begin, 0, count - length)
        place = first + jnp.arange(length)

        def block(values: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(values, first, length, values.ndim - 1)

        moving = (place >= begin) & (place < begin + length) & block(own)
        before, start = block(columns.local_scales), block(columns.direction)
        after = jnp.where(moving, proposed, before)
        moved = jnp.where(moving, start * (after / before), start)
        fit = columns.fit + block(x) @ (moved - start)
        log_ratio = log_likelihood(fit) - log_likelihood(columns.fit)
        accept = log_uniform < log_ratio

        def put(values: Array, new: Array, old: Array) -> Array:
            return jax.lax.dynamic_update_slice_in_dim(
                values, jnp.where(accept, new, old), first, 0
            )

        columns = Columns(
            put(columns.direction, moved, start),
            put(columns.local_scales, after, before),
            jnp.where(accept, fit, columns.fit),
        )
        return (columns, accepted + accept), None

    key_scales, key_accept = jax.random.split(key)
    chances = (
        jnp.arange(steps),
        jnp.abs(jax.random.cauchy(key_scales, (steps, length), kind)),
        jnp.log(jax.random.uniform(key_accept, (steps,), kind)),
    )
    begin = (columns, jnp.zeros((), kind))
    (columns, accepted), _ = jax.lax.scan(propose, begin, chances)
    return columns, accepted / steps
