"""Teach a divergence a family of distributions from outside of the library."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from predcp._divergences._divergence import Coordinates, Divergence, LogSize, Rule, register_family


def register_divergence(
    divergence: Divergence,
    distribution: type,
    coordinates: Callable[[Any], Coordinates],
    bounded: bool = False,
) -> Callable[[Callable[[Coordinates, Coordinates], Array]], Callable]:
    """Teach a divergence a new family of NumPyro distributions (a decorator).

    **Arguments**
    - `divergence`: `predcp.kl` or another one.
    - `distribution`: the NumPyro class.
    - `coordinates`: from a distribution to a dictionary of arrays of its batch shape.
    - `bounded`: whether the divergence stays finite as the displacement grows; the prior is
        then truncated at that bound.

    The decorated function takes the reference's coordinates and the displacement of the model's,
    and returns the divergence. It must be accurate for small displacements.
    """
    if not isinstance(divergence, Divergence):
        raise ValueError(f"divergence must be one of predcp's divergences, got {divergence!r}")
    register_family(distribution, distribution)(coordinates)

    def record(function: Callable[[Coordinates, Coordinates], Array]):
        divergence.add(distribution, differentiated(function, bounded))
        return function

    return record


def differentiated(function: Callable[[Coordinates, Coordinates], Array], bounded: bool) -> Rule:
    """A rule from a function for the divergence; its slope is a forward derivative."""

    def displaced(direction: Coordinates, log_size: LogSize) -> Coordinates:
        return {name: jnp.exp(log_size) * array for name, array in direction.items()}

    def value(reference, direction, log_size):
        return [(jnp.zeros_like(log_size), function(reference, displaced(direction, log_size)))]

    def slope(reference, direction, log_size, velocity):
        _, tangent = jax.jvp(
            lambda displacement: function(reference, displacement),
            (displaced(direction, log_size),),
            (displaced(velocity, log_size),),
        )
        return [(jnp.zeros_like(log_size), tangent)]

    return Rule(value, slope, bounded)
