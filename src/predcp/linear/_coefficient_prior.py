"""Base classes of priors of linear coefficients, with and without local scales.

A prior is a NumPyro program: `coefficients` samples `lambda`, `xi` and `log_tau` and returns
`beta = tau * lambda * xi` (Section 6 of the paper, non-centred).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions import constraints

from predcp._prior import ComplexityPrior
from predcp.linear._coordinates import LocalScale, LongTailed

Family = Literal["bernoulli", "categorical", "normal"]


@dataclass(frozen=True)
class Setting:
    """What a prior may depend on.

    **Arguments**: `x`, design `(N, D)`; `family` of the observations; `outputs`, K logits of a
    categorical model and 1 otherwise; `noise_scale` of a normal one.
    """

    x: Float[Array, "rows columns"]
    family: Family
    outputs: int = 1
    noise_scale: Any = 1.0

    @property
    def information(self) -> Any:
        """Fisher information of one coefficient at the reference, for standardised columns."""
        each = {"bernoulli": 0.25, "categorical": (self.outputs - 1) / self.outputs**2}
        return self.x.shape[0] * each.get(self.family, 1.0) / self.noise_scale**2

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients: `(D,)`, or `(D, K)` for K logits."""
        columns = self.x.shape[1]
        return (columns,) if self.outputs == 1 else (columns, self.outputs)


def typical_log_tau(columns: int) -> float:
    """A typical log scale when few of the columns matter: chains start near it."""
    return -math.log(columns)


class CoefficientPrior:
    """A NumPyro program for the coefficients of a linear predictor.

    `averages_rows`: whether a sample of the rows gives nearly the same prior, because the prior depends
    on the design through means over rows only (or not at all).
    """

    averages_rows = False

    def coefficients(self, setting: Setting) -> Float[Array, "columns ..."]:
        """Sample the coefficients, on standardised columns."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class LocalScalePrior(CoefficientPrior):
    """Half-Cauchy local scales, `lambda_d ~ C+(0, 1)`, and normal noise, `xi_d ~ N(0, 1)`.

    The two arguments choose the coordinates of the sampler; they do not change the prior.

    **Arguments**
    - `coordinates`: of the scales. `normal`: local scales are nearly standard normal, and `log tau`
        has no heavy tail. `log`: as in Stan. A mean-field fit depends on the choice.
    - `centring`: the assumed information of the data on a coefficient, as a fraction of the Fisher
        information at the reference. The sampler moves
        `eta = xi sqrt(1 + centring information scale^2)`: xi itself for a narrow scale, the
        coefficient for a wide one, so that there is no funnel at either end. 0 moves xi.
    """

    coordinates: Literal["normal", "log"] = "normal"
    centring: float = 0.1

    def local_scales(self, shape: tuple[int, ...]) -> Array:
        """The site `lambda`."""
        half_cauchy = LocalScale(1.0) if self.coordinates == "normal" else dist.HalfCauchy(1.0)
        return jnp.asarray(numpyro.sample("lambda", half_cauchy.expand(shape).to_event(len(shape))))

    def sampled_log_tau(self, setting: Setting, prior: dist.Distribution) -> Array:
        """The site `log_tau`."""
        if self.coordinates == "normal":
            prior = LongTailed(prior, typical_log_tau(setting.x.shape[1]))
        return jnp.asarray(numpyro.sample("log_tau", prior))

    def scaled_noise(self, setting: Setting, scale: Array) -> Array:
        """`scale * xi`, with the site `xi`."""
        event = len(setting.shape)
        if self.centring == 0.0:
            standard = dist.Normal(0.0, 1.0).expand(setting.shape)
            return scale * numpyro.sample("xi", standard.to_event(event))
        information = jnp.sqrt(self.centring * setting.information)
        widening = jnp.hypot(1.0, information * scale)
        eta = jnp.asarray(numpyro.sample("eta", dist.Normal(0.0, widening).to_event(event)))
        return scale * recorded("xi", eta / widening)


class GlobalLocalPrior(LocalScalePrior):
    """`beta_d = tau lambda_d xi_d` with one tau, whose prior a subclass states.

    The scale is sampled as `log_tau`, which cannot overflow, however heavy the tail.
    """

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        """The prior of `log tau` given the local scales."""
        raise NotImplementedError

    # A multiple c of the local scales multiplies `sums` by c to this power.
    sums_power: ClassVar[int] = 1

    def reading_noise(self, columns: int) -> Float[Array, "noise columns"] | None:
        """The fixed noise that `sums` needs, None if it needs none."""
        return None

    def sums(self, x: Array, local_scales: Array, noise: Array | None) -> Float[Array, "rows sums"]:
        """What the prior of tau reads of the design: a sum over columns, so that parts of them add up.

        A prior that reads nothing, or the design as a whole, has no sums: `(rows, 0)`.

        **Arguments**: any part of the columns `(N, d)`, of their scales `(d,)`, of the noise `(S, d)`.
        """
        return jnp.zeros((x.shape[0], 0), x.dtype)

    def log_scale_of_sums(
        self, setting: Setting, local_scales: Array, sums: Array
    ) -> dist.Distribution:
        """`log_scale`, for a model of one output, from the `sums` over all columns."""
        return self.log_scale(setting, local_scales)

    def coefficients(self, setting: Setting) -> Array:
        local_scales = self.local_scales(setting.shape)
        log_tau = self.sampled_log_tau(setting, self.log_scale(setting, local_scales))
        tau = recorded("tau", jnp.exp(log_tau))
        return recorded("beta", self.scaled_noise(setting, tau * local_scales))


def recorded(name: str, value: Array) -> Array:
    """Record a value as a deterministic site and return it."""
    numpyro.deterministic(name, value)
    return value


def log_of(positive: dist.Distribution) -> dist.Distribution:
    """The distribution of log tau (tau a standard deviation) from that of a positive scale.

    A `ComplexityPrior` has a form on the log scale, which is used; that of a variance is halved
    there.
    """
    if not isinstance(positive, ComplexityPrior):
        return LogOf(positive)
    if positive.complexity.unit == "variance":
        return Halved(positive.log_scale())
    return positive.log_scale()


class LogOf(dist.Distribution):
    """The distribution of the logarithm of a positive quantity, with its Jacobian."""

    arg_constraints = {}
    support = constraints.real  # type: ignore[assignment]
    pytree_data_fields = ("positive",)

    def __init__(self, positive: dist.Distribution):
        self.positive = positive
        super().__init__(positive.batch_shape, ())

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        if isinstance(self.positive, dist.HalfCauchy):
            # exp(value)^2 overflows long before its log does.
            z = value - jnp.log(self.positive.scale)
            return math.log(2.0 / math.pi) + z - jnp.logaddexp(0.0, 2.0 * z)
        return self.positive.log_prob(jnp.exp(value)) + value

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        return jnp.log(self.positive.sample(key, sample_shape))


class Halved(dist.Distribution):
    """The distribution of half of a quantity: log standard deviation from log variance."""

    arg_constraints = {}
    support = constraints.real  # type: ignore[assignment]
    pytree_data_fields = ("whole",)

    def __init__(self, whole: dist.Distribution):
        self.whole = whole
        super().__init__(whole.batch_shape, ())

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        return jnp.asarray(self.whole.log_prob(2.0 * jnp.asarray(value))) + math.log(2.0)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        return 0.5 * jnp.asarray(self.whole.sample(key, sample_shape))
