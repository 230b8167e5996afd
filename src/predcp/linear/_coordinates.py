"""Coordinates without heavy tails for samplers of local scales and of `log tau`.

`log lambda` has exponential tails, and a long step of one coordinate is expensive for all. In `z`
with `log lambda = z sqrt(pi / 2 + z^2 / 4)` the half-Cauchy is a standard normal to within a few
per cent from centre to tail, and both directions are in closed form.
"""

import math

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import ParameterFreeTransform, Transform, biject_to

from predcp._numerics.special import log_cosh

_HALF_PI = 0.5 * math.pi


class _LocalScale(constraints._SingletonConstraint):
    """Positive numbers; a separate type, so that samplers find the coordinates above."""

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
    """`lambda ~ C+(0, scale)`, as NumPyro's HalfCauchy but with other coordinates for samplers."""

    support = local_scale  # type: ignore[assignment]


class _CentredLine(constraints.Constraint):
    """The real line, with a centre for the coordinates of samplers."""

    event_dim = 0

    def __init__(self, centre: float):
        self.centre = centre

    def __call__(self, x):
        return jnp.isfinite(x)

    def feasible_like(self, prototype):
        return jnp.full_like(prototype, self.centre)

    def tree_flatten(self):
        return (self.centre,), (("centre",), {})

    def eq(self, other, static=False):
        return isinstance(other, _CentredLine) and self.centre == other.centre


class SinhTransform(Transform):
    """`w -> centre + s sinh(w / s)`: linear near 0, with tails as heavy as a Cauchy's.

    Where predictions are saturated only the prior limits `log tau`, and the tail of a log-Cauchy,
    1 / x^2, is too heavy for chains to return from. In w the tail is exponential.

    **Arguments**: `centre`, the expected `log tau`.
    """

    domain = constraints.real  # type: ignore[assignment]
    sign = 1  # type: ignore[assignment]
    _width = 3.0

    def __init__(self, centre: float):
        self.centre = centre

    @property
    def codomain(self):
        return _CentredLine(self.centre)

    def __call__(self, x: Array) -> Array:
        return self.centre + self._width * jnp.sinh(x / self._width)

    def _inverse(self, y: Array) -> Array:
        return self._width * jnp.arcsinh((y - self.centre) / self._width)

    def log_abs_det_jacobian(self, x: Array, y: Array, intermediates=None) -> Array:
        return log_cosh(x / self._width)

    def tree_flatten(self):
        return (self.centre,), (("centre",), {})

    def eq(self, other, static=False):
        return isinstance(other, SinhTransform) and self.centre == other.centre


@biject_to.register(_CentredLine)
def _sinh(constraint: _CentredLine) -> SinhTransform:
    return SinhTransform(constraint.centre)


class LongTailed(dist.Distribution):
    """A distribution on the real line with other coordinates for samplers.

    **Arguments**: the distribution; `centre` of the coordinates.
    """

    arg_constraints = {}
    pytree_data_fields = ("given",)
    pytree_aux_fields = ("centre",)

    def __init__(self, given: dist.Distribution, centre: float):
        self.given, self.centre = given, centre
        super().__init__(given.batch_shape, given.event_shape)

    @property
    def support(self):
        return _CentredLine(self.centre)

    def log_prob(self, value, intermediates=None):
        return self.given.log_prob(value)

    def sample(self, key, sample_shape=()):
        return self.given.sample(key, sample_shape)
