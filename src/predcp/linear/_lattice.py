"""A choice among the points of a lattice: one number moves in one look at many points.

A slice looks at one point after the other, and of many chains in one program all wait for the one that
looks longest. Here every point is looked at in the same go, which a GPU hardly notices.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Spacings, on a log scale: first coarse, for tails as long as a log-Cauchy's, then fine.
_SPACINGS = ((0.5, 8.0), (0.03, 0.5))


def lattice_sample(
    key: Array,
    log_density: Callable[[Array], Array],
    start: Float[Array, ""],
    points: int,
) -> Float[Array, ""]:
    """A transition that leaves the density as it is.

    The start has a random place in a lattice `start + h (k - place)` of random spacing h, and each of
    its points is chosen in proportion to its density: the same lattice would lead back. Where the
    density is not a number it counts as zero; a start without one stays where it is.
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
