"""How far the coordinates of a model's predictions have moved from the reference's.

The difference of two forward passes loses its digits near the reference. There the displacement is
instead the integral of the derivative along the step in the parameters, by Gauss's rule:
`int_0^1 J(theta_0 + s step) step ds`. The step itself is read off the parameters' velocity:
`step = velocity / a` when they move as `tau^a`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

# An exponent outside this range means that there is no local power of tau.
_POWERS = (0.02, 50.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)
# Three nodes leave an error of (bend / 4)^3 for a smooth model: at most 2e-13 at this bend.
_MOST_BEND = 1e-3


def parameter_step(
    path: Callable[[Array], PyTree], log_tau: Float[Array, ""], origin: PyTree
) -> tuple[PyTree, PyTree, PyTree]:
    """Parameters on the path, their velocity in log tau, and their step from the origin."""

    def with_velocity(u):
        return jax.jvp(path, (u,), (jnp.ones_like(u),))

    (theta, velocity), (_, acceleration) = jax.jvp(
        with_velocity, (log_tau,), (jnp.ones_like(log_tau),)
    )

    def step(value, start, speed, change):
        if not _is_real(value):
            return speed
        moving = speed != 0.0
        power = jnp.where(moving, change / jnp.where(moving, speed, 1.0), 1.0)
        regular = (power > _POWERS[0]) & (power < _POWERS[1])
        return jnp.where(regular, speed / jnp.where(regular, power, 1.0), value - start)

    return theta, velocity, jax.tree.map(step, theta, origin, velocity, acceleration)


def displacement(
    coordinates: Callable[[PyTree], PyTree],
    theta: PyTree,
    velocity: PyTree,
    step: PyTree,
    origin: PyTree,
    reference: PyTree,
) -> tuple[PyTree, PyTree]:
    """Displacement of the coordinates from the reference's, and their velocity in log tau.

    **Arguments**: `coordinates`, from parameters to arrays; `theta`, `velocity`, `step` and `origin`,
    of the parameters' structure; `reference`, the coordinates at the origin.
    """
    moved, speed = jax.jvp(coordinates, (theta,), (velocity,))

    def derivative(fraction: Array) -> PyTree:
        def between(start: Array, end: Array, speed: Array, change: Array) -> Array:
            if not _is_real(end):
                return end
            # What does not move has the slopes of theta: those of the origin may be cut off.
            return jnp.where(speed != 0.0, start + fraction * change, end)

        part = jax.tree.map(between, origin, theta, velocity, step)
        return jax.jvp(coordinates, (part,), (step,))[1]

    kind = jnp.result_type(*jax.tree.leaves(theta))
    local = jax.vmap(derivative)(jnp.asarray(0.5 + 0.5 * _NODES, kind))

    def choose(here: Array, start: Array, slopes: Array) -> Array:
        integral = jnp.tensordot(jnp.asarray(0.5 * _WEIGHTS, slopes.dtype), slopes, axes=1)
        difference = here - start
        bend = jnp.abs(slopes[0] - 2.0 * slopes[1] + slopes[2])
        # If only rounding moves a coordinate, its slopes are of that size and have no shape.
        rounding = 64.0 * jnp.finfo(slopes.dtype).eps * jnp.max(jnp.abs(slopes))
        smooth = bend <= jnp.maximum(_MOST_BEND * jnp.max(jnp.abs(slopes), axis=0), rounding)
        # A kink or a saturation between the nodes shows up in the difference, unless that is noise.
        size = jnp.maximum(1.0, jnp.maximum(jnp.abs(here), jnp.abs(start)))
        noise = 64.0 * jnp.finfo(slopes.dtype).eps * size
        return jnp.where(smooth & (jnp.abs(integral - difference) <= noise), integral, difference)

    return jax.tree.map(choose, moved, reference, local), speed


def in_units(shift: PyTree, speed: PyTree) -> tuple[PyTree, Array, PyTree]:
    """Displacement and velocity in units of the larger displacement, so that squares are safe."""
    largest = jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(shift)]).max()
    unit = jax.lax.stop_gradient(jnp.where(largest > 0.0, largest, 1.0))
    return (
        jax.tree.map(lambda leaf: leaf / unit, shift),
        jnp.log(unit),
        jax.tree.map(lambda leaf: leaf / unit, speed),
    )


def _is_real(leaf: Array) -> bool:
    """Whether a leaf is real; whole numbers do not move, and their velocity has no number."""
    return jnp.issubdtype(leaf.dtype, jnp.floating)
