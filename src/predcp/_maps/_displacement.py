"""How far the coordinates of a model's predictions have moved from the reference's.

The difference of two forward passes loses its digits near a non-zero reference. There the
displacement is instead `J(theta_0 + step / 2) step`, exact to second order, with the step in the
parameters read off their velocity: `step = velocity / a` when they move as `tau^a`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

# A power of tau outside this range is not a local exponent but a sign that there is none.
_POWERS = (0.02, 50.0)


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
    middle = jax.tree.map(lambda start, change: start + 0.5 * change, origin, step)
    _, local = jax.jvp(coordinates, (middle,), (step,))

    def choose(here: Array, start: Array, linear: Array) -> Array:
        # The two errors, eps / size and size^2, meet at the cube root of eps.
        threshold = jnp.finfo(linear.dtype).eps ** (1.0 / 3.0)
        scale = jnp.max(jnp.abs(start))
        # Where the model has saturated its derivative is small but the difference is not.
        size = jnp.maximum(jnp.max(jnp.abs(linear)), jnp.max(jnp.abs(here - start)))
        return jnp.where(size < threshold * scale, linear, here - start)

    return jax.tree.map(choose, moved, reference, local), speed
