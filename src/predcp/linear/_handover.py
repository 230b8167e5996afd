"""One column takes another's place: the move between sets of columns that explain the same rows.

Which of thousands of columns could carry what one of the largest carries now cannot be guessed, but
it can be looked up: the likelihood of every such trade costs no more than a product with the design.
Proposals in proportion to `min(1, ratio)` of it are balanced (Zanella, 2020): the Metropolis rule
has only to compare how many good trades there are before and after.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from predcp.linear._column_moves import Columns, LogLikelihood

# Columns that may hand over: those of the largest local scales.
_LARGEST = 32

# Of local scales.
LogPrior = Callable[[Float[Array, " columns"]], Array]


def handed_over(
    key: Array,
    columns: Columns,
    across: Float[Array, "columns rows"],
    log_likelihood: LogLikelihood,
    log_prior: LogPrior,
    proposals: int,
) -> tuple[Columns, Array]:
    """Columns after so many proposals that one of the largest trades places, and the fraction accepted.

    Two columns trade local scale and coefficient, with the sign of their correlation. The first is
    that of a random rank among the largest scales and has the same rank at its new place.
    """
    kind, count = columns.direction.dtype, columns.direction.size
    most = min(_LARGEST, count)

    def propose(carry, key):
        columns, largest, log_prior_now, accepted = carry
        key_rank, key_second, key_accept = jax.random.split(key, 3)
        # Few more often than many: the rank is drawn on a log scale.
        log_rank = jax.random.uniform(key_rank, (), kind) * math.log(most + 1.0)
        rank = jnp.clip(jnp.exp(log_rank).astype(int) - 1, 0, most - 1)
        first = largest[rank]
        sign, log_ways = _trades(columns, first, across, log_likelihood)
        second = _drawn(key_second, log_ways)
        moved = _traded(columns, first, second, sign[second], across)
        _, log_ways_back = _trades(moved, second, across, log_likelihood)
        log_prior_moved = log_prior(moved.local_scales)
        log_ratio = logsumexp(log_ways) - logsumexp(log_ways_back)
        log_ratio = log_ratio + log_prior_moved - log_prior_now
        # Rounding may have drawn a column that is no partner.
        log_ratio = jnp.where(log_ways[second] > -jnp.inf, log_ratio, -jnp.inf)
        # A NaN fails the comparison and is refused.
        accept = jnp.log(jax.random.uniform(key_accept, (), kind)) < log_ratio
        columns = jax.tree.map(lambda new, old: jnp.where(accept, new, old), moved, columns)
        # A trade changes places, not scales: each rank is followed to its new one, without a sort.
        followed = jnp.where(largest == second, first, largest)
        followed = jnp.where(jnp.arange(most) == rank, second, followed)
        largest = jnp.where(accept, followed, largest).astype(largest.dtype)
        log_prior_now = jnp.where(accept, log_prior_moved, log_prior_now)
        return (columns, largest, log_prior_now, accepted + accept), None

    _, largest = jax.lax.top_k(columns.local_scales, most)
    begin = (columns, largest, log_prior(columns.local_scales), jnp.zeros((), kind))
    (columns, *_, accepted), _ = jax.lax.scan(propose, begin, jax.random.split(key, proposals))
    return columns, accepted / proposals


def _trades(
    columns: Columns,
    first: Int[Array, ""],
    across: Float[Array, "columns rows"],
    log_likelihood: LogLikelihood,
) -> tuple[Float[Array, " columns"], Float[Array, " columns"]]:
    """The sign of each column's correlation with the first, and `log min(1, ratio)` of their trade."""
    own, theirs = columns.direction[first], columns.direction
    column = across[first]
    sign = jnp.where(across @ column < 0.0, -1.0, 1.0).astype(theirs.dtype)
    to_first, to_other = sign * theirs - own, sign * own - theirs
    fits = columns.fit + to_first[:, None] * column + to_other[:, None] * across
    gain = log_likelihood(fits) - log_likelihood(columns.fit)
    log_ways = jnp.where(gain < 0.0, gain, jnp.where(jnp.isnan(gain), -jnp.inf, 0.0))
    # None is its own partner.
    return sign, log_ways.at[first].set(-jnp.inf)


def _drawn(key: Array, log_weights: Float[Array, " columns"]) -> Int[Array, ""]:
    """A place in proportion to its weight: a block of places, then one of the block.

    Two random numbers instead of one a place, and no long sum that rounding could bend.
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


def _traded(columns: Columns, first: Array, second: Array, sign: Array, across: Array) -> Columns:
    pair = jnp.stack([first, second])
    scales, start = columns.local_scales[pair], columns.direction[pair]
    moved = sign * start[::-1]
    return Columns(
        columns.direction.at[pair].set(moved),
        columns.local_scales.at[pair].set(scales[::-1]),
        columns.fit + (moved - start) @ across[pair],
    )
