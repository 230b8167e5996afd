"""Update one number by a choice among the points of a random lattice.

A slice sampler evaluates one point after the other, and all chains of a vectorised program wait for the
slowest. Here all points are evaluated at once, which on a GPU costs hardly more than one.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Spacings on a log scale: first coarse, for the tails of a log-Cauchy, then fine.
_SPACINGS = ((0.5, 8.0), (0.03, 0.5))


def lattice_sample(
    key: Array,
    log_density: Callable[[Array], Array],
    start: Float[Array, ""],
    points: int,
) -> Float[Array, ""]:
    """One transition that leaves the density invariant.

    The lattice is `start + h (k - place)` with a random place and spacing h. A point is chosen with
    probability proportional to its density; the reverse move uses the same lattice. A density that
    is NaN counts as zero. A start where it is zero does not move.
    """
    kind = start.dtype

    def choose(now: Array, chance: tuple[Array, Array]) -> tuple[Array, None]:
        key, (finest, coarsest) = chance
        key_spacing, key_place, key_choice = jax.random.split(key, 3)
        spacing = jnp.exp(jax.random.uniform(key_spacing, (), kind, finest, coarsest))
        place = jax.random.randint(key_place, (), 0, points)
        lattice = now + spacing * (jnp.arange(points) - place)
        log_densities = jax.vmap(log_density)(lattice)
        log_densities = jnp.where(jnp.isnan(log_densities), -jnp.inf, log_densities)
        chosen = lattice[jax.random.categorical(key_choice, log_densities)]
        return jnp.where(jnp.isfinite(log_densities[place]), chosen, now), None

    spacings = jnp.asarray([[math.log(end) for end in pair] for pair in _SPACINGS], kind)
    keys = jax.random.split(key, len(_SPACINGS))
    return jax.lax.scan(choose, start, (keys, spacings))[0]
