"""Moves of whole columns, for a posterior with many modes.

With more columns than rows many columns can carry the same signal, and the posterior has a mode
for each choice. Trading the local scales of two such columns jumps from one to the other; the
prior of the local scales does not see it, and the coefficients follow as they please.

The design lies `across` here, one column a row: a look at a few columns of a matrix of many rows
would make a compiler turn it on its side again and again.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

# Partners a column may trade with, and how strongly their correlation counts: exp(_FOCUS |r|).
_PARTNERS = 32
_FOCUS = 8.0
# Scales that may be traded: the rest hardly matter.
_LARGEST = 32
# Correlations held at once.
_BLOCK = 2**22


class Partners(NamedTuple):
    """The columns most correlated with each.

    **Arguments**: `columns` `(D, K)`; `log_probability` `(D, K)` of proposing each.
    """

    columns: Int[Array, "columns partners"]
    log_probability: Float[Array, "columns partners"]

    @classmethod
    def of(cls, design: Float[Array, "rows columns"]) -> "Partners":
        """Look at every pair of columns once."""
        count = design.shape[1]
        norms = jnp.sqrt(jnp.sum(design**2, axis=0))
        unit = (design / jnp.where(norms > 0.0, norms, 1.0)).T
        most = max(1, min(_PARTNERS, count - 1))

        def nearest(member):
            number, column = member
            correlation = jnp.abs(unit @ column)
            correlation = jnp.where(jnp.arange(count) == number, -1.0, correlation)
            value, index = jax.lax.top_k(correlation, most)
            return index, jax.nn.log_softmax(_FOCUS * value)

        batch = max(1, min(count, _BLOCK // count))
        return cls(*jax.lax.map(nearest, (jnp.arange(count), unit), batch_size=batch))


def exchanged_scales(
    key: Array,
    local_scales: Float[Array, " columns"],
    gram: Float[Array, "rows rows"],
    inverse: Float[Array, "rows rows"],
    across: Float[Array, "columns rows"],
    root: Float[Array, " rows"],
    response: Float[Array, " rows"],
    tau: Array,
    partners: Partners,
    proposals: int,
) -> tuple[Float[Array, " columns"], Float[Array, "rows rows"], Array]:
    """Local scales after so many proposals to trade, their Gram matrix, and the fraction accepted.

    The first column is that of a random rank among the largest scales, and has the same rank at
    its new place, so that its probability cancels; the partner's, by correlation, does not.
    All proposals are one transition many times over, so that together they are reversible too.

    **Arguments**: `across`, the design on its side; `gram`, `X Lambda^2 X^T`; `root`, of the weights W;
    `response`, times that root; `inverse`, of `I + W^1/2 X (tau Lambda)^2 X^T W^1/2 + ...`.
    """
    kind = local_scales.dtype

    def propose(carry, chance):
        scales, gram, largest, inverse, accepted = carry
        rank, pair, log_ways = _proposed_pair(chance, largest, partners)
        before = scales[pair]
        after = before[::-1]
        plain = across[pair].T
        u = root[:, None] * plain
        v = inverse @ u
        # The determinant lemma and Woodbury's formula, for two columns.
        grown = after**2 - before**2
        change = tau**2 * grown
        small = jnp.eye(2, dtype=kind) + change[:, None] * (u.T @ v)
        determinant = small[0, 0] * small[1, 1] - small[0, 1] * small[1, 0]
        swapped = jnp.array([[1.0, -1.0], [-1.0, 1.0]], kind) * small[::-1, ::-1].T
        core = swapped / determinant * change
        w = response @ v
        log_ratio = 0.5 * (w @ core @ w - jnp.log(determinant)) + log_ways
        # A NaN fails the comparison and is refused.
        accept = chance.log_uniform < log_ratio
        scales = scales.at[pair].set(jnp.where(accept, after, before))
        inverse = inverse - jnp.where(accept, v @ core @ v.T, 0.0)
        gram = gram + jnp.where(accept, (plain * grown) @ plain.T, 0.0)
        largest = jnp.where(accept, _followed(largest, rank, pair), largest)
        return (scales, gram, largest, inverse, accepted + accept), None

    _, largest = jax.lax.top_k(local_scales, min(_LARGEST, local_scales.size))
    start = (local_scales, gram, largest, inverse, jnp.zeros((), kind))
    chances = _Chance.draw(key, proposals, largest.size, partners)
    (scales, gram, _, _, accepted), _ = jax.lax.scan(propose, start, chances)
    return scales, gram, accepted / proposals


class Columns(NamedTuple):
    """What moves when columns do.

    **Arguments**: `direction`, coefficients in units of tau; `fit`, design times direction.
    """

    direction: Float[Array, " columns"]
    local_scales: Float[Array, " columns"]
    fit: Float[Array, " rows"]


# Of one fit or several.
LogLikelihood = Callable[[Float[Array, "*many rows"]], Float[Array, "*many"]]


def renewed_columns(
    key: Array,
    columns: Columns,
    across: Float[Array, "columns rows"],
    log_likelihood: LogLikelihood,
    proposals: int,
) -> tuple[Columns, Array]:
    """Columns after so many proposals to draw a stretch of local scales anew, xi as it is.

    Given its coefficient, a column far from the data hardly ever tries a wide scale; given its xi
    it does as often as the half-Cauchy says, and the likelihood decides.
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


class _Chance(NamedTuple):
    """The randomness of proposals, drawn for all at once: a GPU pays for every small program."""

    rank: Int[Array, " proposals"]
    gumbel: Float[Array, "proposals partners"]
    log_uniform: Float[Array, " proposals"]

    @classmethod
    def draw(cls, key: Array, proposals: int, ranks: int, partners: Partners) -> "_Chance":
        key_rank, key_partner, key_accept = jax.random.split(key, 3)
        shape, kind = partners.log_probability.shape, partners.log_probability.dtype
        return cls(
            jax.random.randint(key_rank, (proposals,), 0, ranks),
            jax.random.gumbel(key_partner, (proposals, shape[1]), kind),
            jnp.log(jax.random.uniform(key_accept, (proposals,), kind)),
        )


def _proposed_pair(
    chance: _Chance, largest: Array, partners: Partners
) -> tuple[Array, Array, Array]:
    """A rank, its column and a partner, and the log ratio of ways."""
    rank, first = chance.rank, largest[chance.rank]
    slot = jnp.argmax(partners.log_probability[first] + chance.gumbel)
    second = partners.columns[first, slot]
    there = partners.log_probability[first, slot]
    home = partners.columns[second] == first
    back = jnp.max(jnp.where(home, partners.log_probability[second], -jnp.inf))
    return rank, jnp.stack([first, second]), back - there


def _followed(largest: Array, rank: Array, pair: Array) -> Array:
    """Where the largest scales are after a trade."""
    return jnp.where(largest == pair[1], pair[0], largest).at[rank].set(pair[1])
