"""Priors of linear coefficients: objects, and presets by name."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
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
from predcp.linear._coefficient_prior import (
    CoefficientPrior,
    GlobalLocalPrior,
    LocalScalePrior,
    LogOf,
    Setting,
    log_of,
    recorded,
)
from predcp.linear._predictive import GaussianPredictive, LogisticPredictive


@dataclass(frozen=True)
class Horseshoe(GlobalLocalPrior):
    """The horseshoe: `tau ~ C+(0, scale)`."""

    averages_rows = True
    scale: float = 1.0

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return LogOf(dist.HalfCauchy(self.scale))


@dataclass(frozen=True)
class ScaleDistribution(GlobalLocalPrior):
    """`tau ~ distribution`, any positive NumPyro distribution."""

    averages_rows = True
    distribution: dist.Distribution

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return log_of(self.distribution)


@dataclass(frozen=True)
class ScaleFunction(GlobalLocalPrior):
    """`tau ~ function(x, local_scales)`: a distribution that may depend on the local scales."""

    function: Callable[[Array, Array], dist.Distribution]

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return log_of(self.function(setting.x, local_scales))


@dataclass(frozen=True)
class ECP(GlobalLocalPrior):
    """The ECP: `pi` on the divergence between evidences, averaged over the rows.

    K logits of a categorical model are K utilities, each compared with its own reference.
    """

    averages_rows = True
    sums_power = 2
    pi: Any = field(default_factory=LogCauchy)

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        if setting.family == "normal":
            complexity = RowEvidence(setting.x, local_scales, setting.noise_scale)
        elif setting.family == "bernoulli":
            complexity = LogisticEvidence(setting.x, local_scales)
        else:
            # One column per row and class, with the summed variance of its columns.
            widths = jnp.sqrt(setting.x**2 @ local_scales**2)
            complexity = LogisticEvidence(widths.reshape(-1, 1))
        return ComplexityPrior(self.pi, complexity).log_scale()

    def sums(self, x: Array, local_scales: Array, noise: Array | None) -> Array:
        # The variance that the columns give each row.
        return (x**2 @ local_scales**2)[:, None]

    def log_scale_of_sums(
        self, setting: Setting, local_scales: Array, sums: Array
    ) -> dist.Distribution:
        # One column with the variance that all have together.
        return self.log_scale(replace(setting, x=jnp.sqrt(sums)), jnp.ones(1, sums.dtype))


@lru_cache(maxsize=2)
def _noise(seed: int, draws: int, shape: tuple[int, ...], method: str, dtype: str) -> Array:
    """Noise as known numbers, so that neither a sampler nor another trace draws it again."""
    with jax.ensure_compile_time_eval():
        return normal_noise(jax.random.key(seed), draws, shape, method, dtype)


@dataclass(frozen=True)
class PredCP(GlobalLocalPrior):
    """The PredCP: `pi` on the expected divergence of predictions from the reference's.

    **Arguments**
    - `pi`: prior on the divergence.
    - `noise_draws`: number of fixed noise vectors xi over which the expectation is averaged.
    - `seed`, `method`: of the noise, see `predcp.normal_noise`.
    """

    averages_rows = True
    pi: Any = field(default_factory=LogCauchy)
    noise_draws: int = 10
    seed: int = 0
    method: Literal["plain", "antithetic", "sobol"] = "plain"

    def noise(self, shape: tuple[int, ...]) -> Float[Array, "noise ..."]:
        """The noise xi, the same in every evaluation."""
        dtype = jnp.dtype(jnp.result_type(float)).name
        return _noise(self.seed, self.noise_draws, shape, self.method, dtype)

    def log_scale(self, setting: Setting, local_scales: Array) -> dist.Distribution:
        return self._given(setting, local_scales, self.noise(setting.shape))

    def reading_noise(self, columns: int) -> Array:
        return self.noise((columns,))

    def sums(self, x: Array, local_scales: Array, noise: Array | None) -> Array:
        # What each noise vector adds to the predictor of each row.
        return x @ (jnp.asarray(noise, x.dtype) * local_scales).T

    def log_scale_of_sums(
        self, setting: Setting, local_scales: Array, sums: Array
    ) -> dist.Distribution:
        # One column, and a row for each row and noise vector.
        once = jnp.ones((1, 1), sums.dtype)
        return self._given(replace(setting, x=sums.reshape(-1, 1)), once[0], once)

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
class RegularisedHorseshoe(LocalScalePrior):
    """The regularised horseshoe of Piironen and Vehtari (2017).

    `tau ~ C+(0, tau_0)` with `tau_0 = p_0 / (D - p_0) * sigma / sqrt(N)`, and local scales that end
    in a slab: `lambda'^2 = c^2 lambda^2 / (c^2 + tau^2 lambda^2)`, `c^2 ~ IG(df / 2, df scale^2 / 2)`.

    **Arguments**
    - `expected_nonzero`: p_0, the expected number of coefficients that matter; by default a tenth of
        all, at least 1.
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
        tau = recorded("tau", jnp.exp(log_tau))
        half = 0.5 * self.slab_df
        slab = numpyro.sample("slab", dist.InverseGamma(half, half * self.slab_scale**2))
        wide = tau * local_scales
        # c wide / sqrt(c^2 + wide^2), without overflow of the squares.
        bounded = wide / jnp.hypot(1.0, wide / jnp.sqrt(slab))
        return recorded("beta", self.scaled_noise(setting, bounded))


@dataclass(frozen=True)
class Ridge(CoefficientPrior):
    """Normal coefficients with one scale, `tau ~ C+(0, scale)`, and no local scales."""

    averages_rows = True
    scale: float = 1.0

    def coefficients(self, setting: Setting) -> Array:
        shape = setting.shape
        xi = numpyro.sample("xi", dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape)))
        log_tau = numpyro.sample("log_tau", LogOf(dist.HalfCauchy(self.scale)))
        tau = recorded("tau", jnp.exp(log_tau))
        return recorded("beta", tau * xi)


# One object per name, because programs are compiled once per object.
PRESETS: dict[str, CoefficientPrior] = {
    "half-cauchy": Horseshoe(),
    "ecp": ECP(),
    "predcp": PredCP(),
    "regularised-horseshoe": RegularisedHorseshoe(),
    "ridge": Ridge(),
}


def as_coefficient_prior(prior: Any) -> CoefficientPrior:
    """The prior object for any accepted form of `prior`.

    - an object such as `PredCP(predcp.LogCauchy(scale=1.0))` or `Horseshoe()`: itself;
    - a prior on a divergence (`predcp.LogCauchy(scale=1.0)`, ...): the PredCP with it;
    - any other positive NumPyro distribution, or a function of the design and the local scales
      that returns one: the prior of tau;
    - the name of a preset: `predcp`, `ecp`, `half-cauchy`, `regularised-horseshoe` or `ridge`.
    """
    if isinstance(prior, CoefficientPrior):
        return prior
    if isinstance(prior, DivergencePrior):
        return PredCP(prior)
    if isinstance(prior, dist.Distribution):
        if prior.support is not constraints.positive:
            raise ValueError(f"prior must be a distribution of positive numbers, got {prior}")
        return ScaleDistribution(prior)
    if isinstance(prior, str) and prior in PRESETS:
        return PRESETS[prior]
    if callable(prior):
        return ScaleFunction(cast("Callable[[Array, Array], dist.Distribution]", prior))
    raise ValueError(
        "prior must be an object such as predcp.linear.PredCP(), a distribution or one of the "
        f"names {', '.join(map(repr, PRESETS))}, got {prior!r}"
    )


def _categorical(beta: Array, x: Array) -> dist.Distribution:
    return cast("dist.Distribution", dist.Categorical(logits=x @ beta))


def _scaled(local_scales: Array, tau: Array, xi: Array) -> Array:
    return tau * local_scales * xi
