"""Half-Cauchy local scales in coordinates in which they are nearly normal.

A sampler that moves `log lambda` meets exponential tails, and every long step of one coordinate
costs all the others. In `z` with `log lambda = z sqrt(pi / 2 + z^2 / 4)` the half-Cauchy is a
standard normal to within a few per cent from centre to tail, in closed form both ways.
"""

import math

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import ParameterFreeTransform, biject_to

_HALF_PI = 0.5 * math.pi


class _LocalScale(constraints._SingletonConstraint):
    """Positive numbers; a type of its own so that samplers find the coordinates above."""

    event_dim = 0

    def __call__(self, x):
        return x > 0.0

    def feasible_like(self, prototype):
        return jnp.ones_like(prototype)


local_scale = _LocalScale()


class LocalScaleTransform(ParameterFreeTransform):
    """`z -> lambda = exp(z sqrt(pi / 2 + z^2 / 4))`."""

    domain = constraints.real  # type: ignore[assignment]
    codomain = local_scale  # type: ignore[assignment]
    sign = 1  # type: ignore[assignment]

    def __call__(self, x: Array) -> Array:
        return jnp.exp(x * jnp.sqrt(_HALF_PI + 0.25 * x * x))

    def _inverse(self, y: Array) -> Array:
        log_scale = jnp.log(y)
        # The root of w^2 / 4 + pi w / 2 = (log lambda)^2 in w = z^2, without cancellation.
        return 2.0 * log_scale / jnp.sqrt(math.pi + jnp.hypot(math.pi, 2.0 * log_scale))

    def log_abs_det_jacobian(self, x: Array, y: Array, intermediates=None) -> Array:
        square = x * x
        root = _HALF_PI + 0.25 * square
        return x * jnp.sqrt(root) + jnp.log(_HALF_PI + 0.5 * square) - 0.5 * jnp.log(root)


@biject_to.register(_LocalScale)
def _transform(constraint: _LocalScale) -> LocalScaleTransform:
    return LocalScaleTransform()


class LocalScale(dist.HalfCauchy):
    """`lambda ~ C+(0, scale)`, as NumPyro's own but for the coordinates a sampler uses."""

    support = local_scale  # type: ignore[assignment]
