"""Priors of the scales of the hidden layers, and how variational EM updates a scale under each.

`w_lij ~ N(0, lambda_li^2 tau_l)`: tau is a **variance**. Given the second moments of the weights,
some priors have the best tau in closed form; with complexity priors tau is updated by gradients.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.resnet import _closed_forms
from predcp.resnet._network import Network


class Comparison(NamedTuple):
    """Points and weights at which a complexity prior compares predictions, without gradients.

    **Arguments**
    - `hidden`: `h_0` at some inputs, (N, H).
    - `row_variances`: `lambda^2` of the hidden layers, (L, H).
    - `head_mean`, `head_variance`: of the output weights, (H, K).
    - `precision`: of normal observations; None for classes, whose logits are the outputs.
    - `noise`: function that returns standard normal hidden matrices, (S, L, H, H); called only by
        the priors that need them.
    """

    hidden: Float[Array, "points width"]
    row_variances: Float[Array, "layers width"]
    head_mean: Float[Array, "width outputs"]
    head_variance: Float[Array, "width outputs"]
    precision: Float[Array, ""] | None
    noise: Callable[[], Float[Array, "noise_draws layers width width"]]


class LayerScalePrior:
    """A prior on the scales of the hidden layers."""

    # Whether tau is updated by gradients of `log_density`; otherwise `closed_form` gives it.
    by_gradient = False
    start = 1.0

    def closed_form(
        self, moment: Float[Array, " layers"], count: int
    ) -> Float[Array, " layers"] | None:
        """The best `log tau` given `sum_ij E w_ij^2 / lambda_i^2` over `count` weights."""
        raise NotImplementedError

    def log_density(
        self,
        network: Network,
        log_tau: Float[Array, " layers"],
        comparison: Comparison,
    ) -> Float[Array, ""]:
        """Log density of the scales tau (not of their logs)."""
        raise NotImplementedError


@dataclass(frozen=True)
class FixedLayers(LayerScalePrior):
    """A fixed scale: no layer is switched off.

    **Arguments**: `tau`, the variance of a weight whose row scale is 1.
    """

    tau: float = 1.0

    def __post_init__(self) -> None:
        _closed_forms.require_positive(tau=self.tau)

    @property
    def start(self) -> float:  # type: ignore[override]
        return self.tau

    def closed_form(self, moment: Any, count: int) -> Array:
        return jnp.full_like(moment, math.log(self.tau))

    def log_density(self, network: Any, log_tau: Any, comparison: Any) -> Array:
        return jnp.zeros((), log_tau.dtype)


@dataclass(frozen=True)
class InverseGammaLayers(LayerScalePrior):
    """`tau ~ IG(shape, scale)`, the paper's shrinkage prior.

    **Arguments**: `shape` and `scale`; the mode is `scale / (shape + 1)`.
    """

    shape: float = 3.0
    scale: float = 3.0

    def __post_init__(self) -> None:
        _closed_forms.require_positive(shape=self.shape, scale=self.scale)

    def closed_form(self, moment: Any, count: int) -> Array:
        return _closed_forms.inverse_gamma(moment, count, self.shape, self.scale)

    def log_density(self, network: Any, log_tau: Any, comparison: Any) -> Array:
        constant = self.shape * math.log(self.scale) - math.lgamma(self.shape)
        return jnp.sum(constant - (self.shape + 1.0) * log_tau - self.scale * jnp.exp(-log_tau))


@dataclass(frozen=True)
class HalfCauchyLayers(LayerScalePrior):
    """`sqrt(tau) ~ C+(0, scale)`.

    **Arguments**: `scale`, the median of the standard deviation.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _closed_forms.require_positive(scale=self.scale)

    def closed_form(self, moment: Any, count: int) -> Array:
        return _closed_forms.half_cauchy(moment, count, self.scale)

    def log_density(self, network: Any, log_tau: Any, comparison: Any) -> Array:
        z = log_tau - 2.0 * math.log(self.scale)
        # The density of tau is that of its square root, divided by 2 sqrt(tau).
        constant = -math.log(math.pi) - math.log(self.scale)
        return jnp.sum(constant - 0.5 * log_tau - jnp.logaddexp(0.0, z))


@dataclass(frozen=True)
class HorseshoeLayers(HalfCauchyLayers):
    """Half-Cauchy layer scales and half-Cauchy row scales."""
