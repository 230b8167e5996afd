"""Swaps of two columns: a move between sets of columns that explain the same rows.

A chain cannot guess which of thousands of columns could replace one of the largest, but the
likelihoods of all such swaps together cost one product with the design. Each is proposed with
probability proportional to `min(1, likelihood ratio)`, a locally balanced proposal (Zanella, 2020).
The Metropolis correction is the ratio of the normalising sums before and after.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from predcp.linear._column_moves import Columns, LogLikelihood

# Ranks of local scales that may be the first of the two columns.
_LARGEST = 32

# The log prior of tau given local scales.
LogPrior = Callable[[Float[Array, " columns"]], Array]


def propose_swaps(
    key: Array,
    columns: Columns,
    across: Float[Array, "columns rows"],
    log_likelihood: LogLikelihood,
    log_prior: LogPrior,
    proposals: int,
) -> tuple[Columns, Array]:
    """The columns after so many proposed swaps, and the fraction accepted.

    Two columns swap local scale and coefficient, with the sign of their correlation. The first has a
    random rank among the largest scales. It keeps this rank, so the reverse move is as probable.
    """
    kind, count = columns.direction.dtype, columns.direction.size
    most = min(_LARGEST, count)

    def propose(carry, key):
        columns, largest, log_prior_now, accepted = carry
        key_rank, key_second, key_accept = jax.random.split(key, 3)
        # The rank is drawn on a log scale: the largest columns are the most common.
        log_rank = jax.random.uniform(key_rank, (), kind) * math.log(most + 1.0)
        rank = jnp.clip(jnp.exp(log_rank).astype(int) - 1, 0, most - 1)
        first = largest[rank]
        sign, log_ways = _swaps_of(columns, first, across, log_likelihood)
        second = _drawn(key_second, log_ways)
        moved = _swapped(columns, first, second, sign[second], across)
        _, log_ways_back = _swaps_of(moved, second, across, log_likelihood)
        log_prior_moved = log_prior(moved.local_scales)
        log_ratio = logsumexp(log_ways) - logsumexp(log_ways_back)
        log_ratio = log_ratio + log_prior_moved - log_prior_now
        # Rounding may have drawn a column of weight 0.
        log_ratio = jnp.where(log_ways[second] > -jnp.inf, log_ratio, -jnp.inf)
        # A NaN fails the comparison and is refused.
        accept = jnp.log(jax.random.uniform(key_accept, (), kind)) < log_ratio
        columns = jax.tree.map(lambda new, old: jnp.where(accept, new, old), moved, columns)
        # A swap changes places, not scales: the new place of each rank follows without a sort.
        followed = jnp.where(largest == second, first, largest)
        followed = jnp.where(jnp.arange(most) == rank, second, followed)
        largest = jnp.where(accept, followed, largest).astype(largest.dtype)
        log_prior_now = jnp.where(accept, log_prior_moved, log_prior_now)
        return (columns, largest, log_prior_now, accepted + accept), None

    _, largest = jax.lax.top_k(columns.local_scales, most)
    begin = (columns, largest, log_prior(columns.local_scales), jnp.zeros((), kind))
    (columns, *_, accepted), _ = jax.lax.scan(propose, begin, jax.random.split(key, proposals))
    return columns, accepted / proposals


def _swaps_of(
    columns: Columns,
    first: Int[Array, ""],
    across: Float[Array, "columns rows"],
    log_likelihood: LogLikelihood,
) -> tuple[Float[Array, " columns"], Float[Array, " columns"]]:
    """The sign of each column's correlation with the first, and `log min(1, ratio)` of their swap."""
    own, theirs = columns.direction[first], columns.direction
    column = across[first]
    sign = jnp.where(across @ column < 0.0, -1.0, 1.0).astype(theirs.dtype)
    to_first, to_other = sign * theirs - own, sign * own - theirs
    fits = columns.fit + to_first[:, None] * column + to_other[:, None] * across
    gain = log_likelihood(fits) - log_likelihood(columns.fit)
    log_ways = jnp.where(gain < 0.0, gain, jnp.where(jnp.isnan(gain), -jnp.inf, 0.0))
    # No column swaps with itself.
    return sign, log_ways.at[first].set(-jnp.inf)


def _drawn(key: Array, log_weights: Float[Array, " columns"]) -> Int[Array, ""]:
    """An index with probability proportional to its weight: first a block, then within the block.

    Two random numbers instead of one per index, and no long cumulative sum that rounding distorts.
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


def _swapped(columns: Columns, first: Array, second: Array, sign: Array, across: Array) -> Columns:
    pair = jnp.stack([first, second])
    scales, start = columns.local_scales[pair], columns.direction[pair]
    moved = sign * start[::-1]
    return Columns(
        columns.direction.at[pair].set(moved),
        columns.local_scales.at[pair].set(scales[::-1]),
        columns.fit + (moved - start) @ across[pair],
    )
