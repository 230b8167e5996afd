"""Priors on the scales of the hidden layers, and how variational EM moves a scale under each.

`w_lij ~ N(0, lambda_li^2 tau_l)`: tau is a **variance**. Given the second moments of the weights
some priors have their best tau in closed form; the complexity priors move by gradients.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from predcp._divergence_priors import DivergencePrior, LogCauchy
from predcp._maps import DepthComplexity
from predcp._numerics.special import log_minus_log1p
from predcp._prior import LogScalePrior
from predcp.resnet._branch import branch_moments
from predcp.resnet._network import Network

# Added to hidden states, far below their own size and above nothing.
_TRACE = 1e-7


class Setting(NamedTuple):
    """What a complexity prior looks at; no gradient flows through any of it.

    **Arguments**
    - `hidden`: `h_0` at some inputs, (N, H).
    - `row_variances`: `lambda^2` of the hidden layers, (L, H).
    - `head_mean`, `head_variance`: of the output weights, (H, K).
    - `precision`: of normal observations; None for classes, whose logits are the outputs.
    - `draws`: standard normal hidden matrices, (S, L, H, H), asked for where a prior needs them.
    """

    hidden: Float[Array, "points width"]
    row_variances: Float[Array, "layers width"]
    head_mean: Float[Array, "width outputs"]
    head_variance: Float[Array, "width outputs"]
    precision: Float[Array, ""] | None
    draws: Callable[[], Float[Array, "draws layers width width"]]


class ScalePrior:
    """A prior on the scales of the hidden layers."""

    # Whether tau moves by gradients of `log_density`; else `closed_form` gives it.
    by_gradient = False
    start = 1.0

    def closed_form(
        self, moment: Float[Array, " layers"], count: int
    ) -> Float[Array, " layers"] | None:
        """`log tau` at its best given `sum_ij E w_ij^2 / lambda_i^2` over `count` weights."""
        raise NotImplementedError

    def log_density(
        self, network: Network, log_tau: Float[Array, " layers"], setting: Setting
    ) -> Float[Array, ""]:
        """Log density of the scales tau (not of their logs)."""
        raise NotImplementedError


@dataclass(frozen=True)
class FixedScale(ScalePrior):
    """The same scale always: no layer is ever switched off.

    **Arguments**: `tau`, the variance of a weight whose row scale is 1.
    """

    tau: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tau) and self.tau > 0.0):
            raise ValueError(f"tau must be positive and finite, got {self.tau!r}")

    @property
    def start(self) -> float:  # type: ignore[override]
        return self.tau

    def closed_form(self, moment, count):
        return jnp.full_like(moment, math.log(self.tau))

    def log_density(self, network, log_tau, setting):
        return jnp.zeros((), log_tau.dtype)


@dataclass(frozen=True)
class InverseGamma(ScalePrior):
    """`tau ~ IG(shape, scale)`, the paper's shrinkage prior.

    **Arguments**: `shape` and `scale`; the mode is `scale / (shape + 1)`.
    """

    shape: float = 3.0
    scale: float = 3.0

    def __post_init__(self) -> None:
        for name in ("shape", "scale"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)!r}")

    def closed_form(self, moment, count):
        return jnp.log(2.0 * self.scale + moment) - math.log(count + 2.0 * self.shape + 2.0)

    def log_density(self, network, log_tau, setting):
        constant = self.shape * math.log(self.scale) - math.lgamma(self.shape)
        return jnp.sum(constant - (self.shape + 1.0) * log_tau - self.scale * jnp.exp(-log_tau))


@dataclass(frozen=True)
class HalfCauchyScale(ScalePrior):
    """`sqrt(tau) ~ C+(0, scale)`.

    **Arguments**: `scale`, the median of the standard deviation.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0.0):
            raise ValueError(f"scale must be positive and finite, got {self.scale!r}")

    def closed_form(self, moment, count):
        # (n + 2) t^2 + (n - m) t - m = 0 for t = tau / scale^2, m in the same unit.
        m = moment / self.scale**2
        linear = count - m
        root = jnp.sqrt(linear**2 + 4.0 * (count + 2.0) * m)
        # The form without a difference, on either side of m = n.
        small = linear > 0.0
        below = 2.0 * m / jnp.where(small, linear + root, 1.0)
        above = (root - linear) / (2.0 * (count + 2.0))
        return jnp.log(jnp.where(small, below, above)) + 2.0 * math.log(self.scale)

    def log_density(self, network, log_tau, setting):
        z = log_tau - 2.0 * math.log(self.scale)
        # Of tau: that of its square root, over 2 sqrt(tau).
        constant = -math.log(math.pi) - math.log(self.scale)
        return jnp.sum(constant - 0.5 * log_tau - jnp.logaddexp(0.0, z))


@dataclass(frozen=True)
class Horseshoe(HalfCauchyScale):
    """Half-Cauchy layer scales and half-Cauchy row scales."""


@dataclass(frozen=True)
class _Complexity(ScalePrior):
    """A prior `pi` on the divergence that a layer may make.

    **Arguments**: `pi`, one of predcp's priors on a divergence.
    """

    pi: DivergencePrior = field(default_factory=LogCauchy)
    by_gradient = True

    def __post_init__(self) -> None:
        if not isinstance(self.pi, DivergencePrior):
            raise ValueError(
                f"pi must be a prior on a divergence such as predcp.LogCauchy(scale=1.0), got {self.pi!r}"
            )

    def closed_form(self, moment, count):
        return None

    def _pi(self, dtype: Any) -> DivergencePrior:
        """pi in the precision of the network."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), self.pi)


@dataclass(frozen=True)
class Predictive(_Complexity):
    """The depth-wise PredCP (Equations 10 and 11): layer l against the network without it.

    Biases are left out of the comparison, so that kappa of a normal output is linear in tau. With
    one hidden layer its expectation over the weights is exact; with more, or with classes, it is
    over the given draws of `predcp.DepthComplexity`.
    """

    def log_kappa(
        self, network: Network, log_tau: Float[Array, " layers"], setting: Setting
    ) -> Float[Array, " layers"]:
        """`log kappa` of every layer."""
        if network.layers == 1 and setting.precision is not None:
            second = 0.5 * setting.precision * _second(network, setting)
            # Where every unit is off no layer can change anything: a kappa of nearly nothing.
            return log_tau + jnp.log(jnp.maximum(second, jnp.finfo(second.dtype).tiny))
        complexity = depth_complexity(network, setting)
        return complexity.log_value_and_elasticity(log_tau)[0]

    def log_density(self, network, log_tau, setting):
        pi = self._pi(log_tau.dtype)
        if network.layers == 1 and setting.precision is not None:
            # kappa = c tau: the elasticity is 1.
            density = pi.log_prob_log(self.log_kappa(network, log_tau, setting))
            return jnp.sum(density - log_tau)
        prior = LogScalePrior(pi, depth_complexity(network, setting))
        return prior.log_prob(log_tau) - jnp.sum(log_tau)


@dataclass(frozen=True)
class Evidence(_Complexity):
    """Like an ECP: the hidden weights are averaged first, what they add taken as normal.

    `kappa` is the divergence of N(f + m, s^2 + v) from N(f, s^2), with the exact mean m and
    variance v of what the layer adds: for one hidden layer and a normal output.
    """

    def log_density(self, network, log_tau, setting):
        if network.layers != 1 or setting.precision is None:
            raise ValueError(
                "the closed form of scale_prior='ecp' is for a normal output and one hidden layer "
                f"above the first (depth=2), got {network.layers} of them; use 'predcp'"
            )
        hidden = network.normalized(setting.hidden)
        moments = branch_moments(
            hidden, setting.row_variances[0], setting.head_mean, setting.head_variance
        )
        least = jnp.finfo(hidden.dtype).tiny
        log_power, log_shift, log_spread = (jnp.log(jnp.maximum(part, least)) for part in moments)
        log_unit = log_tau + jnp.log(setting.precision) + log_power
        shift = log_unit[:, None] + log_shift
        spread = log_unit[:, None] + log_spread
        value = jnp.logaddexp(shift, log_minus_log1p(spread))
        slope = jnp.logaddexp(shift, 2.0 * spread - jax.nn.softplus(spread))
        total = jax.nn.logsumexp(value)
        log_kappa = total - math.log(2.0 * hidden.shape[0])
        elasticity = jax.nn.logsumexp(slope) - total
        density = self._pi(log_tau.dtype).log_prob_log(log_kappa) + elasticity
        return density - jnp.sum(log_tau)


def _second(network: Network, setting: Setting) -> Float[Array, ""]:
    hidden = network.normalized(setting.hidden)
    return branch_moments(
        hidden, setting.row_variances[0], setting.head_mean, setting.head_variance
    ).second()


def depth_complexity(network: Network, setting: Setting) -> DepthComplexity:
    """The core's map for this network, its draws scaled row by row."""
    # Where every unit is off D would be constant: a trace of a signal keeps it a map.
    trace = _TRACE * jnp.linspace(0.5, 1.0, network.width, dtype=setting.hidden.dtype)
    weights = setting.draws() * jnp.sqrt(setting.row_variances)[:, :, None]
    if setting.precision is None:
        likelihood = _classes
    else:
        noise = jax.lax.rsqrt(setting.precision)

        def likelihood(outputs):
            return dist.Normal(outputs, noise).to_event(1)

    return DepthComplexity(
        setting.hidden + trace,
        weights,
        setting.head_mean,
        likelihood,
        residual=network.residual,
        normalize=network.normalize,
    )


def _classes(outputs: Array) -> Any:
    return dist.Categorical(logits=outputs)


PRESETS: dict[str, Callable[[], ScalePrior]] = {
    "predcp": Predictive,
    "ecp": Evidence,
    "inverse-gamma": InverseGamma,
    "half-cauchy": HalfCauchyScale,
    "horseshoe": Horseshoe,
    "fixed": FixedScale,
}
_FIXED = "fixed-"


@lru_cache(maxsize=len(PRESETS))
def _preset(name: str) -> ScalePrior:
    """One object a name, for programs are compiled once for each; made when asked for, not on import."""
    return PRESETS[name]()


def as_scale_prior(prior: Any) -> ScalePrior:
    """The object that a name stands for; `fixed-0.1` is a fixed scale, a divergence prior a PredCP."""
    if isinstance(prior, ScalePrior):
        return prior
    if isinstance(prior, DivergencePrior):
        return Predictive(prior)
    if isinstance(prior, str) and prior in PRESETS:
        return _preset(prior)
    if isinstance(prior, str) and prior.startswith(_FIXED):
        try:
            return FixedScale(float(prior.removeprefix(_FIXED)))
        except ValueError:
            pass
    raise ValueError(
        f"scale_prior must be one of {', '.join(map(repr, PRESETS))}, 'fixed-NUMBER', a prior on a "
        f"divergence or a predcp.resnet prior, got {prior!r}"
    )
