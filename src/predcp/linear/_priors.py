"""What a linear model believes of its coefficients: objects, and the names of presets.

Each is a NumPyro program: `coefficients` samples `lambda`, `xi` and `log_tau` and returns
`beta = tau * lambda * xi` (Section 6 of the paper, non-centred).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions import constraints

from predcp._divergence_priors import DivergencePrior, LogCauchy
from predcp._maps import LogisticEvidence, PredictiveComplexity, RowEvidence
from predcp._numerics.normal_noise import normal_noise
from predcp._prior import ComplexityPrior
from predcp.linear._coordinates import LocalScale, LongTailed
from predcp.linear._predictive import GaussianPredictive, LogisticPredictive

Family = Literal["bernoulli", "categorical", "normal"]


@dataclass(frozen=True)
class Setting:
    """What a prior may look at.

    **Arguments**: `x`, design `(N, D)`; `family` of the observations; `outputs`, K logits of a
    categorical model and 1 otherwise; `noise_scale` of a normal one.
    """

    x: Float[Array, "rows columns"]
    family: Family
    outputs: int = 1
    noise_scale: Any = 1.0

    @property
    def information(self) -> Any:
        """What the rows say of one coefficient at the reference: of standardised columns."""
        each = {"bernoulli": 0.25, "categorical": (self.outputs - 1) / self.outputs**2}
        return self.x.shape[0] * each.get(self.family, 1.0) / self.noise_scale**2

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the coefficients: `(D,)`, or `(D, K)` for K logits."""
        columns = self.x.shape[1]
        return (columns,) if self.outputs == 1 else (columns, self.outputs)


def typical_log_tau(columns: int) -> float:
    """Where the scale is to be expected when few of the columns matter: chains start about there."""
    return -math.log(columns)


class CoefficientPrior:
    """A NumPyro program for the coefficients of a linear predictor."""

    def coefficients(self, setting: Setting) -> Float[Array, "columns ..."]:
        """Sample the coefficients, on standardised columns."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class LocalScales(CoefficientPrior):
    """Half-Cauchy local scales, `lambda_d ~ C+(0, 1)`, and normal noise, `xi_d ~ N(0, 1)`.

    The two arguments choose coordinates for the sampler and leave the prior as it is.

    **Arguments**
    - `coordinates`: of the scales: `normal`, in which local scales are nearly standard normal and
        `log tau` has no heavy tail, or `log`, which Stan uses and on which a mean-field fit depends.
    - `centring`: how far the data are trusted to fix a coefficient whose scale is wide, as a
        fraction of the information they would carry at the reference: the sampler moves
        `eta = xi sqrt(1 + centring information scale^2)`, which is xi itself for a narrow scale
        and the coefficient for a wide one, so that neither end is a funnel. 0 moves xi.
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
        return scale * _named("xi", eta / widening)


class Horseshoe(LocalScales):
    """`beta_d = tau lambda_d xi_d`; subclasses say what tau is.

    The scale is sampled as `log_tau`, which no heavy tail can push out of floating point.
    """

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        """The prior of `log tau` given the local scales."""
        raise NotImplementedError

    def log_scale_along(
        self, setting: Setting, still: Array, moving: Array
    ) -> Callable[[Array], dist.Distribution]:
        """The prior of `log tau` given local scales `still + factor * moving`, of the factor.

        The columns of one part move as one, so that a divergence need look at them only once.
        """
        return lambda factor: self.log_scale(setting, still + factor * moving)

    def coefficients(self, setting: Setting) -> Array:
        local_scales = self.local_scales(setting.shape)
        log_tau = self.sampled_log_tau(setting, self.log_scale(setting, local_scales))
        tau = _named("tau", jnp.exp(log_tau))
        return _named("beta", self.scaled_noise(setting, tau * local_scales))


@dataclass(frozen=True)
class HalfCauchyScale(Horseshoe):
    """The horseshoe: `tau ~ C+(0, scale)`."""

    scale: float = 1.0

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return LogOf(dist.HalfCauchy(self.scale))


@dataclass(frozen=True)
class GivenScale(Horseshoe):
    """Any positive NumPyro distribution of tau."""

    distribution: dist.Distribution

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return log_of(self.distribution)


@dataclass(frozen=True)
class GivenFunction(Horseshoe):
    """`function(x, local_scales)` returns the distribution of tau."""

    function: Callable[[Array, Array], dist.Distribution]

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return log_of(self.function(setting.x, local_scales))


@dataclass(frozen=True)
class Evidence(Horseshoe):
    """The ECP: `pi` on the divergence between evidences, averaged over the rows.

    K logits of a categorical model are K utilities, each compared with its own reference.
    """

    pi: Any = field(default_factory=LogCauchy)

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        if setting.family == "normal":
            complexity = RowEvidence(setting.x, local_scales, setting.noise_scale)
        elif setting.family == "bernoulli":
            complexity = LogisticEvidence(setting.x, local_scales)
        else:
            # Rows of a block design are (row, class) pairs: the mean is over both.
            rows = LogisticEvidence(setting.x, local_scales.T)
            complexity = LogisticEvidence.__new__(LogisticEvidence)
            complexity.log_ratio = rows.log_ratio.reshape(-1)
        return ComplexityPrior(self.pi, complexity).log_scale()

    def log_scale_along(
        self, setting: Setting, still: Array, moving: Array
    ) -> Callable[[Array], dist.Distribution]:
        if setting.outputs > 1:
            return super().log_scale_along(setting, still, moving)
        # One column for each part, with the variance its columns have together.
        parts = [jnp.sqrt(setting.x**2 @ scales**2) for scales in (still, moving)]
        condensed = replace(setting, x=jnp.stack(parts, axis=1))
        return lambda factor: self.log_scale(condensed, jnp.stack([jnp.ones_like(factor), factor]))


@dataclass(frozen=True)
class Predictive(Horseshoe):
    """The PredCP: `pi` on the expected divergence of predictions from the reference's.

    **Arguments**: `draws`, S fixed standard normal draws (scrambled Sobol or plain), by `seed`.
    """

    pi: Any = field(default_factory=LogCauchy)
    draws: int = 10
    seed: int = 0
    kind: Literal["plain", "antithetic", "sobol"] = "plain"

    def noise(self, shape: tuple[int, ...]) -> Float[Array, "draws ..."]:
        """The draws xi, the same in every evaluation."""
        # Numbers, not a program: a sampler must not draw them again at every step.
        with jax.ensure_compile_time_eval():
            return normal_noise(jax.random.key(self.seed), self.draws, shape, self.kind)

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return self._given(setting, local_scales, self.noise(setting.shape))

    def log_scale_along(
        self, setting: Setting, still: Array, moving: Array
    ) -> Callable[[Array], dist.Distribution]:
        if setting.outputs > 1:
            return super().log_scale_along(setting, still, moving)
        noise = self.noise(setting.shape).astype(setting.x.dtype)
        # One column for each part, one row for each row and draw: what they add to its logit.
        parts = [(setting.x @ (noise * scales).T).reshape(-1) for scales in (still, moving)]
        condensed = replace(setting, x=jnp.stack(parts, axis=1))
        once = jnp.ones((1, 2), setting.x.dtype)
        return lambda factor: self._given(
            condensed, jnp.stack([jnp.ones_like(factor), factor]), once
        )

    def _given(self, setting: Setting, local_scales: Array, noise: Array) -> dist.Distribution:
        x = setting.x
        if setting.family == "bernoulli":
            complexity = LogisticPredictive(x, local_scales, noise)
        elif setting.family == "normal":
            complexity = GaussianPredictive(x, local_scales, noise, setting.noise_scale)
        else:
            complexity = PredictiveComplexity(
                likelihood=_categorical,
                parameters=jax.tree_util.Partial(_scaled, local_scales),
                reference=jnp.zeros(setting.shape, x.dtype),
                x=x,
                noise=noise,
                homogeneous=1.0,
            )
        return ComplexityPrior(self.pi, complexity).log_scale()


@dataclass(frozen=True)
class RegularisedHorseshoe(LocalScales):
    """The regularised horseshoe of Piironen and Vehtari (2017).

    `tau ~ C+(0, tau_0)` with `tau_0 = p_0 / (D - p_0) * sigma / sqrt(N)`, and local scales that end
    in a slab: `lambda'^2 = c^2 lambda^2 / (c^2 + tau^2 lambda^2)`, `c^2 ~ IG(df / 2, df scale^2 / 2)`.

    **Arguments**
    - `expected_nonzero`: p_0, how many coefficients are thought to matter; a tenth, at least 1.
    - `slab_scale`, `slab_df`: of the slab.
    """

    expected_nonzero: float | None = None
    slab_scale: float = 2.0
    slab_df: float = 4.0

    def coefficients(self, setting: Setting) -> Array:
        rows, columns = setting.x.shape
        guess = self.expected_nonzero
        expected = min(max(1.0, columns / 10.0) if guess is None else guess, columns / 2.0)
        # The pseudo variance of one coin at 1/2 is 4.
        sigma = setting.noise_scale if setting.family == "normal" else 2.0
        scale = expected / max(columns - expected, 0.5) * sigma / math.sqrt(rows)
        local_scales = self.local_scales(setting.shape)
        log_tau = self.sampled_log_tau(setting, LogOf(dist.HalfCauchy(scale)))
        tau = _named("tau", jnp.exp(log_tau))
        half = 0.5 * self.slab_df
        slab = numpyro.sample("slab", dist.InverseGamma(half, half * self.slab_scale**2))
        wide = tau * local_scales
        # c wide / sqrt(c^2 + wide^2), which neither square may overflow.
        bounded = wide / jnp.hypot(1.0, wide / jnp.sqrt(slab))
        return _named("beta", self.scaled_noise(setting, bounded))


@dataclass(frozen=True)
class Ridge(CoefficientPrior):
    """Normal coefficients with one scale, `tau ~ C+(0, scale)`, and no local scales."""

    scale: float = 1.0

    def coefficients(self, setting: Setting) -> Array:
        shape = setting.shape
        xi = numpyro.sample("xi", dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape)))
        log_tau = numpyro.sample("log_tau", LogOf(dist.HalfCauchy(self.scale)))
        tau = _named("tau", jnp.exp(log_tau))
        return _named("beta", tau * xi)


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
            # exp(value)^2 overflows long before its logarithm does.
            z = value - jnp.log(self.positive.scale)
            return math.log(2.0 / math.pi) + z - jnp.logaddexp(0.0, 2.0 * z)
        return self.positive.log_prob(jnp.exp(value)) + value

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        return jnp.log(self.positive.sample(key, sample_shape))


def log_of(positive: dist.Distribution) -> dist.Distribution:
    """The distribution of the logarithm, in the form that stays in floating point where one is known."""
    return positive.log_scale() if isinstance(positive, ComplexityPrior) else LogOf(positive)


# One object a name: programs are compiled once for each object.
PRESETS: dict[str, CoefficientPrior] = {
    "half-cauchy": HalfCauchyScale(),
    "ecp": Evidence(),
    "predcp": Predictive(),
    "regularised-horseshoe": RegularisedHorseshoe(),
    "ridge": Ridge(),
}


def as_coefficient_prior(prior: Any) -> CoefficientPrior:
    """The object that a name, a distribution or a function stands for.

    A prior on a divergence (`predcp.LogCauchy(scale=1.0)`, ...) stands for the PredCP with it; any other
    positive NumPyro distribution, or a function of the design and the local scales that returns
    one, is a prior of tau itself.
    """
    if isinstance(prior, CoefficientPrior):
        return prior
    if isinstance(prior, DivergencePrior):
        return Predictive(prior)
    if isinstance(prior, dist.Distribution):
        if prior.support is not constraints.positive:
            raise ValueError(f"prior must be a distribution of positive numbers, got {prior}")
        return GivenScale(prior)
    if isinstance(prior, str) and prior in PRESETS:
        return PRESETS[prior]
    if callable(prior):
        return GivenFunction(cast("Callable[[Array, Array], dist.Distribution]", prior))
    raise ValueError(
        f"prior must be one of {', '.join(map(repr, PRESETS))}, a distribution or a "
        f"predcp.linear prior, got {prior!r}"
    )


def _named(name: str, value: Array) -> Array:
    """The value, recorded as a deterministic site."""
    numpyro.deterministic(name, value)
    return value


def _categorical(beta: Array, x: Array) -> dist.Distribution:
    return cast("dist.Distribution", dist.Categorical(logits=x @ beta))


def _scaled(local_scales: Array, tau: Array, xi: Array) -> Array:
    return tau * local_scales * xi
