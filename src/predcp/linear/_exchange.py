"""Exchange moves: two correlated columns trade their coefficients.

With more columns than rows many columns can carry the same signal, and the posterior has a mode
for each choice. A gradient does not see from one to the other. Trading the coordinates of columns
d and e (with a sign where they are negatively correlated) jumps there directly; it leaves the prior
of the coefficients as it is, and the Metropolis rule takes care of all the rest.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.linear._target import Target

# How strongly a partner's correlation counts: weights exp(_FOCUS |r|).
_FOCUS = 8.0
# Sites whose entries belong to columns; those of the second kind change sign with the column.
_EVEN, _ODD = ("lambda",), ("xi", "eta")


def exchanged(
    target: Target, state: Any, key: Array, proposals: int, data: tuple[Any, ...]
) -> tuple[Any, Float[Array, ""]]:
    """The sampler's state after so many proposals, and the fraction accepted.

    The first column is drawn in proportion to the size of its coefficient, which is a permutation
    of itself after the exchange, so that its probability cancels; the partner by correlation,
    whose normalisation does not cancel and enters the rule.

    **Arguments**: `data`, whose first member is the design `(N, D)`.
    """
    design = data[0]
    potential = target.potential(*data)
    norms = jnp.sqrt(jnp.sum(design**2, axis=0))
    unit = design / jnp.where(norms > 0.0, norms, 1.0)

    def correlations(column: Array) -> Array:
        return unit[:, column] @ unit

    def log_partner(correlation: Array, column: Array) -> Array:
        weights = _FOCUS * jnp.abs(correlation)
        weights = jnp.where(jnp.arange(weights.size) == column, -jnp.inf, weights)
        return jax.nn.log_softmax(weights)

    def propose(carry, key):
        z, energy, accepted = carry
        key_first, key_second, key_accept = jax.random.split(key, 3)
        sites = target.sites(z, *data)
        if "beta" not in sites:
            raise ValueError(
                "exchanges needs a model with a site `beta` and the design as its first argument; "
                "give exchanges=0"
            )
        size = jnp.abs(sites["beta"])
        size = size.reshape(size.shape[0], -1).sum(-1)
        log_size = jnp.log(size + jnp.finfo(size.dtype).tiny)
        first = jax.random.categorical(key_first, log_size)
        towards = correlations(first)
        second = jax.random.categorical(key_second, log_partner(towards, first))
        there = log_partner(towards, first)[second]
        back = log_partner(correlations(second), second)[first]
        sign = jnp.where(towards[second] < 0.0, -1.0, 1.0).astype(size.dtype)
        moved = {name: _traded(name, leaf, first, second, sign) for name, leaf in z.items()}
        energy_moved = potential(moved)
        log_ratio = energy - energy_moved + back - there
        # A NaN fails the comparison and is refused.
        accept = jnp.log(jax.random.uniform(key_accept, (), size.dtype)) < log_ratio
        z = jax.tree.map(lambda new, old: jnp.where(accept, new, old), moved, z)
        return (z, jnp.where(accept, energy_moved, energy), accepted + accept), None

    start = (state.z, state.potential_energy, jnp.zeros(()))
    (z, energy, accepted), _ = jax.lax.scan(propose, start, jax.random.split(key, proposals))
    energy, gradient = jax.value_and_grad(potential)(z)
    state = state._replace(z=z, potential_energy=energy, z_grad=gradient)
    return state, accepted / proposals


def _traded(name: str, leaf: Array, first: Array, second: Array, sign: Array) -> Array:
    if name in _EVEN:
        sign = jnp.ones_like(sign)
    elif name not in _ODD:
        return leaf
    at_first, at_second = leaf[first], leaf[second]
    return leaf.at[first].set(sign * at_second).at[second].set(sign * at_first)
