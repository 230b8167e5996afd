"""Priors pi(kappa) on a divergence, in the paper's parameters, correctly normalised.

Each works on `log kappa`, so that divergences far outside floating point keep their density.
"""

import math
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import gammainc, gammaincc, gammaln
from jaxtyping import Array, Float
from numpyro.distributions import constraints
from numpyro.distributions.util import promote_shapes

from predcp._check import require_finite, require_positive, require_probability
from predcp._compiled import compiled
from predcp._complexity import as_float
from predcp._gamma_draws import log_gamma_draws
from predcp._inverse import invert

_LOG_TWO_OVER_PI = math.log(2.0 / math.pi)


class DivergencePrior(dist.Distribution):
    """A distribution of a divergence `kappa > 0`, given through `log kappa`.

    Subclasses implement the four `*_log` methods; `log_prob`, `cdf`, `icdf` and `sample` follow.
    """

    support = constraints.positive  # type: ignore[assignment]

    def __init__(self, **parameters: Array):
        promoted = promote_shapes(*parameters.values())
        for name, value in zip(parameters, promoted):
            setattr(self, name, value)
        batch_shape = jnp.broadcast_shapes(*(jnp.shape(value) for value in parameters.values()))
        super().__init__(batch_shape=batch_shape, event_shape=())

    @property
    def has_rsample(self) -> bool:
        return True

    def log_prob_log(self, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log density of `log kappa` (not of kappa) there."""
        raise NotImplementedError

    def log_cdf_log(self, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log of P(kappa <= exp(log_kappa)), accurate in the lower tail."""
        raise NotImplementedError

    def log_survival_log(self, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log of P(kappa > exp(log_kappa)), accurate in the upper tail."""
        raise NotImplementedError

    def icdf_log(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """The log of the quantile of kappa at `q`."""
        raise NotImplementedError

    def sample_log(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Draws of `log kappa`, differentiable with respect to the parameters."""
        dtype = jnp.result_type(float, *self.get_args().values())
        uniform = jax.random.uniform(
            key, self.shape(sample_shape), dtype, minval=jnp.finfo(dtype).tiny
        )
        return self.icdf_log(uniform)

    @compiled()
    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        kappa = as_float(value)
        log_kappa = jnp.log(kappa)
        inside = kappa > 0.0
        density = self.log_prob_log(jnp.where(inside, log_kappa, 0.0)) - log_kappa
        return jnp.where(inside, density, -jnp.inf)

    @compiled()
    def cdf(self, value: Any) -> Array:
        kappa = as_float(value)
        inside = kappa > 0.0
        return jnp.where(
            inside, jnp.exp(self.log_cdf_log(jnp.log(jnp.where(inside, kappa, 1.0)))), 0.0
        )

    @compiled()
    def icdf(self, q: Any) -> Array:
        return jnp.exp(self.icdf_log(as_float(q)))

    @compiled(2)
    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        return jnp.exp(self.sample_log(key, sample_shape))


class LogCauchy(DivergencePrior):
    """`log kappa ~ Cauchy(loc, scale)`: both "hardly any" and "any amount" of complexity.

    **Arguments**: `scale` (the paper's lambda) and `loc`, the log of the median.
    """

    arg_constraints = {"scale": constraints.positive, "loc": constraints.real}
    scale: Array
    loc: Array

    def __init__(self, scale: Any = 1.0, loc: Any = 0.0):
        super().__init__(scale=require_positive("scale", scale), loc=require_finite("loc", loc))

    @classmethod
    def from_tail(cls, upper: Any, probability: Any, scale: Any = 1.0) -> Self:
        """P(kappa > upper) = probability, by the location (no scale can do it when loc is 0)."""
        upper, probability = _tail(upper, probability)
        scale = require_positive("scale", scale)
        # tan(pi (1/2 - p)), written so that small p keeps its digits.
        return cls(scale, jnp.log(upper) - scale / jnp.tan(math.pi * probability))

    def log_prob_log(self, log_kappa):
        z = (log_kappa - self.loc) / self.scale
        # log(1 + z^2) without squaring: z may be as large as floating point allows.
        return -2.0 * jnp.log(jnp.hypot(1.0, z)) - jnp.log(math.pi * self.scale)

    def log_cdf_log(self, log_kappa):
        z = (log_kappa - self.loc) / self.scale
        return jnp.log(jnp.arctan2(1.0, -z) / math.pi)

    def log_survival_log(self, log_kappa):
        z = (log_kappa - self.loc) / self.scale
        return jnp.log(jnp.arctan2(1.0, z) / math.pi)

    def icdf_log(self, q):
        lower = q < 0.5
        tail = jnp.where(lower, q, 1.0 - q)
        z = 1.0 / jnp.tan(math.pi * tail)
        return self.loc + self.scale * jnp.where(lower, -z, z)

    def sample_log(self, key, sample_shape=()):
        dtype = jnp.result_type(float, self.scale, self.loc)
        return self.loc + self.scale * jax.random.cauchy(key, self.shape(sample_shape), dtype)


class HalfCauchy(DivergencePrior):
    """`kappa ~ C+(0, scale)`.

    **Arguments**: `scale`, the median.
    """

    arg_constraints = {"scale": constraints.positive}
    scale: Array

    def __init__(self, scale: Any = 1.0):
        super().__init__(scale=require_positive("scale", scale))

    @classmethod
    def from_tail(cls, upper: Any, probability: Any) -> Self:
        """P(kappa > upper) = probability, by the scale."""
        upper, probability = _tail(upper, probability)
        return cls(upper * jnp.tan(0.5 * math.pi * probability))

    def log_prob_log(self, log_kappa):
        y = log_kappa - jnp.log(self.scale)
        return _LOG_TWO_OVER_PI - jnp.abs(y) - jnp.log1p(jnp.exp(-2.0 * jnp.abs(y)))

    def log_cdf_log(self, log_kappa):
        return self._log_arctan(log_kappa - jnp.log(self.scale))

    def log_survival_log(self, log_kappa):
        return self._log_arctan(jnp.log(self.scale) - log_kappa)

    @staticmethod
    def _log_arctan(y):
        # arctan(e^y) = e^y to all digits far below, where e^y underflows.
        far = y < -30.0
        near = jnp.log(jnp.arctan(jnp.exp(jnp.where(far, 0.0, jnp.minimum(y, 700.0)))))
        return _LOG_TWO_OVER_PI + jnp.where(far, y, near)

    def icdf_log(self, q):
        lower = q < 0.5
        tail = jnp.where(lower, q, 1.0 - q)
        y = jnp.log(jnp.tan(0.5 * math.pi * tail))
        return jnp.log(self.scale) + jnp.where(lower, y, -y)


class Exponential(DivergencePrior):
    """`kappa ~ Exp` with the given mean (the paper's lambda): it prefers the richer model.

    **Arguments**: `mean`.
    """

    arg_constraints = {"scale": constraints.positive}
    scale: Array

    def __init__(self, mean: Any = 1.0):
        super().__init__(scale=require_positive("mean", mean))

    @property
    def mean(self) -> Array:
        return self.scale

    @classmethod
    def from_tail(cls, upper: Any, probability: Any) -> Self:
        """P(kappa > upper) = probability, by the mean."""
        upper, probability = _tail(upper, probability)
        return cls(-upper / jnp.log(probability))

    def log_prob_log(self, log_kappa):
        y = log_kappa - jnp.log(self.scale)
        return y - jnp.exp(y)

    def log_cdf_log(self, log_kappa):
        y = log_kappa - jnp.log(self.scale)
        far = y < -40.0
        return jnp.where(far, y, jnp.log(-jnp.expm1(-jnp.exp(jnp.where(far, 0.0, y)))))

    def log_survival_log(self, log_kappa):
        return -jnp.exp(log_kappa - jnp.log(self.scale))

    def icdf_log(self, q):
        return jnp.log(self.scale) + jnp.log(-jnp.log1p(-q))


def _log_gamma_cdf(shape: Array, y: Array) -> Array:
    """Log of the regularised lower incomplete gamma function at `exp(y)`."""
    far = y < -30.0
    near = jnp.log(gammainc(shape, jnp.exp(jnp.where(far, 0.0, y))))
    # Far below only the first term of the series is left: x^k / Gamma(k + 1).
    return jnp.where(far, shape * y - gammaln(shape + 1.0), near)


class Gamma(DivergencePrior):
    """`kappa ~ Gamma(shape, scale)`: it prefers the reference when the shape is small.

    The paper prints the normaliser with `scale` where `scale ** shape` belongs.

    **Arguments**: `shape` and `scale` (the paper's lambda_1, lambda_2); the mean is their product.
    """

    arg_constraints = {
        "concentration": constraints.positive,
        "scale": constraints.positive,
    }
    concentration: Array
    scale: Array

    def __init__(self, shape: Any, scale: Any):
        super().__init__(
            concentration=require_positive("shape", shape), scale=require_positive("scale", scale)
        )

    @classmethod
    def from_tail(cls, upper: Any, probability: Any, shape: Any = 0.2) -> Self:
        """P(kappa > upper) = probability, by the scale, for the given shape."""
        upper, probability = _tail(upper, probability)
        return cls(shape, upper / cls(shape, 1.0).icdf(1.0 - probability))

    def log_prob_log(self, log_kappa):
        y = log_kappa - jnp.log(self.scale)
        return self.concentration * y - jnp.exp(y) - gammaln(self.concentration)

    def log_cdf_log(self, log_kappa):
        shape, y = jnp.broadcast_arrays(self.concentration, log_kappa - jnp.log(self.scale))
        return _log_gamma_cdf(shape, y)

    def log_survival_log(self, log_kappa):
        shape, y = jnp.broadcast_arrays(self.concentration, log_kappa - jnp.log(self.scale))
        return jnp.log(gammaincc(shape, jnp.exp(y)))

    def icdf_log(self, q):
        # Below: x^k / Gamma(k + 1) = q.
        start = (jnp.log(q) + gammaln(self.concentration + 1.0)) / self.concentration
        return _quantile_log(self, q, jnp.minimum(start, 0.0) + jnp.log(self.scale))

    def sample_log(self, key, sample_shape=()):
        dtype = jnp.result_type(float, self.concentration, self.scale)
        concentration = jnp.asarray(self.concentration, dtype)
        drawn = log_gamma_draws(key, concentration, self.shape(sample_shape))
        unit = Gamma(concentration, jnp.ones((), dtype))
        return _with_implicit_derivative(unit, drawn) + jnp.log(self.scale)


class GammaExponential(DivergencePrior):
    """`weight Gamma(shape, scale) + (1 - weight) Exp(mean)`: both preferences at once.

    **Arguments**: `weight` of the gamma in (0, 1), its `shape` and `scale`, the exponential's `mean`.
    """

    arg_constraints = {
        "weight": constraints.unit_interval,
        "concentration": constraints.positive,
        "scale": constraints.positive,
        "exponential_mean": constraints.positive,
    }
    weight: Array
    concentration: Array
    scale: Array
    exponential_mean: Array

    def __init__(self, weight: Any = 0.5, shape: Any = 0.2, scale: Any = 2.0, mean: Any = 0.5):
        super().__init__(
            weight=require_probability("weight", weight),
            concentration=require_positive("shape", shape),
            scale=require_positive("scale", scale),
            exponential_mean=require_positive("mean", mean),
        )

    @classmethod
    def from_tail(
        cls,
        upper: Any,
        probability: Any,
        weight: Any = 0.5,
        shape: Any = 0.2,
        scale: Any = 2.0,
        mean: Any = 0.5,
    ) -> Self:
        """P(kappa > upper) = probability, by stretching `scale` and `mean` together."""
        upper, probability = _tail(upper, probability)
        stretch = upper / cls(weight, shape, scale, mean).icdf(1.0 - probability)
        return cls(weight, shape, scale * stretch, mean * stretch)

    def _mixed(self, of_gamma: Array, of_exponential: Array) -> Array:
        return jnp.logaddexp(
            jnp.log(self.weight) + of_gamma, jnp.log1p(-self.weight) + of_exponential
        )

    @property
    def _parts(self) -> tuple[Gamma, Exponential]:
        return Gamma(self.concentration, self.scale), Exponential(self.exponential_mean)

    def log_prob_log(self, log_kappa):
        gamma, exponential = self._parts
        return self._mixed(gamma.log_prob_log(log_kappa), exponential.log_prob_log(log_kappa))

    def log_cdf_log(self, log_kappa):
        gamma, exponential = self._parts
        return self._mixed(gamma.log_cdf_log(log_kappa), exponential.log_cdf_log(log_kappa))

    def log_survival_log(self, log_kappa):
        gamma, exponential = self._parts
        return self._mixed(
            gamma.log_survival_log(log_kappa), exponential.log_survival_log(log_kappa)
        )

    def icdf_log(self, q):
        # Below its weight the gamma's tail is the whole mixture's.
        start = jnp.log(q / self.weight) + gammaln(self.concentration + 1.0)
        start = jnp.minimum(start / self.concentration + jnp.log(self.scale), 0.0)
        return _quantile_log(self, q, start)

    def sample_log(self, key, sample_shape=()):
        # Choosing a part is far faster than inverting the cdf; derivatives stay implicit.
        key_part, key_gamma, key_exponential = jax.random.split(key, 3)
        gamma, exponential = self.expand_parts()
        of_gamma = gamma.sample_log(key_gamma, sample_shape)
        of_exponential = exponential.sample_log(key_exponential, sample_shape)
        chosen = jax.random.uniform(key_part, of_gamma.shape, of_gamma.dtype) < self.weight
        drawn = jnp.where(chosen, of_gamma, of_exponential)
        return _with_implicit_derivative(self, jax.lax.stop_gradient(drawn))

    def expand_parts(self) -> tuple[Gamma, Exponential]:
        """The two parts, each with the batch shape of the mixture."""
        values = jnp.broadcast_arrays(
            self.concentration, self.scale, self.exponential_mean, self.weight
        )
        return Gamma(values[0], values[1]), Exponential(values[2])


@jax.custom_jvp
def _with_implicit_derivative(pi: DivergencePrior, log_kappa: Array) -> Array:
    """Draws as they are, moving with the parameters so that their cdf stays put."""
    return log_kappa


@_with_implicit_derivative.defjvp
def _implicit_derivative(primals, tangents):
    pi, log_kappa = primals
    _, change = jax.jvp(lambda moved: jnp.exp(moved.log_cdf_log(log_kappa)), (pi,), (tangents[0],))
    return log_kappa, -change * jnp.exp(-pi.log_prob_log(log_kappa))


def _quantile_log(pi: DivergencePrior, q: Array, start: Array) -> Array:
    """The quantile by inverting the cdf, itself an increasing map of log kappa bounded by 1."""
    shape = jnp.broadcast_shapes(jnp.shape(q), jnp.shape(start), pi.batch_shape)
    dtype = jnp.result_type(float, q, start)
    log_q, start = (
        jnp.broadcast_to(part, shape).reshape(-1).astype(dtype) for part in (jnp.log(q), start)
    )

    def quantiles(single, log_q, start):
        def evaluate(log_kappa):
            log_cdf = single.log_cdf_log(log_kappa)
            return log_cdf, single.log_prob_log(log_kappa) - log_cdf

        return invert(evaluate, log_q, start, jnp.zeros((), dtype))

    if not pi.batch_shape:
        return quantiles(pi, log_q, start).reshape(shape)
    # Parameters travel with their quantile: a batch of cdfs is inverted in lock-step.
    names, values = zip(*pi.get_args().items())
    spread = [jnp.broadcast_to(value, shape).reshape(-1) for value in values]

    def one(log_q, start, *values):
        single = type(pi).__new__(type(pi))
        DivergencePrior.__init__(single, **dict(zip(names, values)))
        return quantiles(single, log_q[None], start[None])[0]

    return jax.vmap(one)(log_q, start, *spread).reshape(shape)


def _tail(upper: Any, probability: Any) -> tuple[Array, Array]:
    return require_positive("upper", upper), require_probability("probability", probability)


class GivenPrior(DivergencePrior):
    """Any positive NumPyro distribution as a prior on a divergence."""

    arg_constraints = {}
    pytree_data_fields = ("given",)

    def __init__(self, given: dist.Distribution):
        if not isinstance(given, dist.Distribution):
            raise ValueError(f"pi must be a distribution, got {type(given).__name__}")
        if given.event_shape:
            raise ValueError(f"pi must be univariate, got event shape {given.event_shape}")
        lower = getattr(given.support, "lower_bound", None)
        if lower is None or not bool(jnp.all(jnp.asarray(lower) >= 0.0)):
            raise ValueError(
                f"pi must be a distribution of positive numbers, got {type(given).__name__} "
                f"with support {given.support}"
            )
        self.given = given
        dist.Distribution.__init__(self, given.batch_shape, ())

    def _need(self, name: str) -> Any:
        if getattr(type(self.given), name) is getattr(dist.Distribution, name):
            raise ValueError(
                f"pi = {type(self.given).__name__} has no {name}, which truncating at the "
                "supremum of the complexity, cdf and quantiles need; use one of predcp's priors on a "
                "divergence, or ComplexityPrior(..., normalize=False) if only log_prob is needed"
            )
        return getattr(self.given, name)

    def log_prob_log(self, log_kappa):
        return jnp.asarray(self.given.log_prob(jnp.exp(log_kappa))) + log_kappa

    def log_cdf_log(self, log_kappa):
        return jnp.log(self._need("cdf")(jnp.exp(log_kappa)))

    def log_survival_log(self, log_kappa):
        return jnp.log1p(-self._need("cdf")(jnp.exp(log_kappa)))

    def icdf_log(self, q):
        return jnp.log(self._need("icdf")(q))

    def sample_log(self, key, sample_shape=()):
        return jnp.log(jnp.asarray(self.given.sample(key, sample_shape)))


def as_divergence_prior(pi: Any) -> DivergencePrior:
    """`pi` itself, or any positive NumPyro distribution made one."""
    return pi if isinstance(pi, DivergencePrior) else GivenPrior(pi)
