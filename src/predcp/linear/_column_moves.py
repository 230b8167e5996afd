"""New local scales for blocks of columns, by the likelihood itself, without Polya-gamma weights.

`across` is the transposed design: reading a few columns of the design itself would make the
compiler transpose it again and again.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Columns(NamedTuple):
    """What a move of columns changes.

    **Arguments**: `direction`, coefficients in units of tau; `fit`, design times direction.
    """

    direction: Float[Array, " columns"]
    local_scales: Float[Array, " columns"]
    fit: Float[Array, " rows"]


# Of one predictor `(rows,)`, or of several.
LogLikelihood = Callable[[Float[Array, "*many rows"]], Float[Array, "*many"]]


def renewed_columns(
    key: Array,
    columns: Columns,
    across: Float[Array, "columns rows"],
    log_likelihood: LogLikelihood,
    proposals: int,
) -> tuple[Columns, Array]:
    """The columns after so many proposals of new local scales for a block, and the fraction accepted.

    Given its coefficient, a column near 0 hardly ever gets a wide scale. Given xi, a wide scale is
    proposed as often as the half-Cauchy prior has it, and the likelihood decides.
    """
    kind, count = columns.direction.dtype, columns.direction.size
    length = -(-count // max(proposals, 1))

    def propose(carry, chance):
        columns, accepted = carry
        place, after, log_uniform = chance
        index = (place + jnp.arange(length)) % count
        before, start = columns.local_scales[index], columns.direction[index]
        moved = start * (after / before)
        fit = columns.fit + (moved - start) @ across[index]
        log_ratio = log_likelihood(fit) - log_likelihood(columns.fit)
        accept = log_uniform < log_ratio
        columns = Columns(
            columns.direction.at[index].set(jnp.where(accept, moved, start)),
            columns.local_scales.at[index].set(jnp.where(accept, after, before)),
            jnp.where(accept, fit, columns.fit),
        )
        return (columns, accepted + accept), None

    key_place, key_scales, key_accept = jax.random.split(key, 3)
    chances = (
        jax.random.randint(key_place, (proposals,), 0, count),
        jnp.abs(jax.random.cauchy(key_scales, (proposals, length), kind)),
        jnp.log(jax.random.uniform(key_accept, (proposals,), kind)),
    )
    begin = (columns, jnp.zeros((), kind))
    (columns, accepted), _ = jax.lax.scan(propose, begin, chances)
    return columns, accepted / proposals
