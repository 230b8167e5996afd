"""Priors on the divergence that each hidden layer causes, and priors by name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergence_priors import (
    DivergencePrior,
    LogCauchy,
    as_divergence_prior,
    prior_from_config,
)
from predcp._maps import Complexity, DepthComplexity
from predcp._prior import ComplexityPrior
from predcp.resnet._branch import BranchMoments, branch_moments
from predcp.resnet._layer_maps import ReluLayerComplexity, ReluLayerEvidence
from predcp.resnet._layer_priors import (
    Comparison,
    FixedLayers,
    HalfCauchyLayers,
    HorseshoeLayers,
    InverseGammaLayers,
    LayerScalePrior,
)
from predcp.resnet._network import Network

# Added to hidden states: far below their size, but not zero.
_TRACE = 1e-7


@dataclass(frozen=True)
class _ComplexityLayers(LayerScalePrior):
    """A prior `pi` on the divergence that a layer causes."""

    pi: Any = field(default_factory=LogCauchy)
    by_gradient = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "pi", as_divergence_prior(self.pi))

    def closed_form(self, moment: Any, count: int) -> None:
        return None

    def complexity(self, network: Network, comparison: Comparison) -> Complexity:
        """The map from the layers' scales to divergences."""
        raise NotImplementedError

    def log_density(self, network: Any, log_tau: Any, comparison: Any) -> Array:
        # pi in the precision of the network.
        pi = jax.tree.map(lambda leaf: jnp.asarray(leaf, log_tau.dtype), self.pi)
        prior = ComplexityPrior(pi, self.complexity(network, comparison)).log_scale()
        return jnp.sum(prior.log_prob(log_tau)) - jnp.sum(log_tau)


@dataclass(frozen=True)
class PredCPLayers(_ComplexityLayers):
    """The depth-wise PredCP (Equations 10 and 11): layer l against the network without it.

    Biases are left out of the comparison, so that kappa of a normal output is linear in tau. With
    one hidden layer its expectation over the weights is exact; with more, or with classes, it is
    over noise, by `predcp.DepthComplexity`.

    **Arguments**: `pi`, the prior on a divergence such as `predcp.LogCauchy(scale=1.0)`, or any
    positive NumPyro distribution.
    """

    def complexity(self, network: Any, comparison: Any) -> Complexity:
        if network.layers == 1 and comparison.precision is not None:
            return ReluLayerComplexity(_moments(network, comparison), comparison.precision)
        return depth_complexity(network, comparison)


@dataclass(frozen=True)
class ECPLayers(_ComplexityLayers):
    """Like an ECP: averages over the hidden weights first; their contribution is taken as normal.

    In closed form, for one hidden layer with a scale and a normal output: see
    `ReluLayerEvidence`.

    **Arguments**: `pi`, as in `PredCPLayers`.
    """

    def complexity(self, network: Any, comparison: Any) -> Complexity:
        if network.layers != 1 or comparison.precision is None:
            raise ValueError(
                "the closed form of scale_prior='ecp' is for a normal output and one hidden layer "
                f"above the first (depth=2), got {network.layers} of them; use 'predcp'"
            )
        return ReluLayerEvidence(_moments(network, comparison), comparison.precision)


def _moments(network: Network, comparison: Comparison) -> BranchMoments:
    return branch_moments(
        network.normalized(comparison.hidden),
        comparison.row_variances[0],
        comparison.head_mean,
        comparison.head_variance,
    )


def depth_complexity(network: Network, comparison: Comparison) -> DepthComplexity:
    """The general map for this network, its noise scaled row by row."""
    # If every unit were off, D would be constant: a tiny signal keeps it increasing.
    trace = _TRACE * jnp.linspace(0.5, 1.0, network.width, dtype=comparison.hidden.dtype)
    weights = comparison.noise() * jnp.sqrt(comparison.row_variances)[:, :, None]
    if comparison.precision is None:
        likelihood = _classes
    else:
        deviation = jax.lax.rsqrt(comparison.precision)

        def likelihood(outputs):
            return dist.Normal(outputs, deviation).to_event(1)

    return DepthComplexity(
        comparison.hidden + trace,
        weights,
        comparison.head_mean,
        likelihood,
        residual=network.residual,
        normalize=network.normalize,
    )


def _classes(outputs: Array) -> Any:
    return dist.Categorical(logits=outputs)


PRESETS: dict[str, Callable[[], LayerScalePrior]] = {
    "predcp": PredCPLayers,
    "ecp": ECPLayers,
    "inverse-gamma": InverseGammaLayers,
    "half-cauchy": HalfCauchyLayers,
    "horseshoe": HorseshoeLayers,
    "fixed": FixedLayers,
}
_KINDS: tuple[type[LayerScalePrior], ...] = (
    PredCPLayers,
    ECPLayers,
    InverseGammaLayers,
    HalfCauchyLayers,
    HorseshoeLayers,
    FixedLayers,
)
_FIXED = "fixed-"


@lru_cache(maxsize=len(PRESETS))
def _preset(name: str) -> LayerScalePrior:
    """One object per name (a program is compiled per object), made at the first use."""
    return PRESETS[name]()


def layer_prior_from_config(config: Any) -> Any:
    """The inverse of `prior_to_config` for any form of `scale_prior`."""
    return prior_from_config(config, {kind.__name__: kind for kind in _KINDS})


def as_layer_prior(prior: Any) -> LayerScalePrior:
    """A `LayerScalePrior` as it is, a prior on a divergence as a `PredCPLayers`, or one by name.

    **Arguments**: `prior`; the names are those of the presets, and `fixed-0.1` for
    `FixedLayers(0.1)`.
    """
    if isinstance(prior, LayerScalePrior):
        return prior
    if isinstance(prior, DivergencePrior):
        return PredCPLayers(prior)
    if isinstance(prior, str) and prior in PRESETS:
        return _preset(prior)
    if isinstance(prior, str) and prior.startswith(_FIXED):
        try:
            return FixedLayers(float(prior.removeprefix(_FIXED)))
        except ValueError:
            pass
    raise ValueError(
        "scale_prior must be a predcp.resnet prior such as PredCPLayers(), a prior on a divergence, "
        f"or one of {', '.join(map(repr, PRESETS))}, 'fixed-NUMBER'; got {prior!r}"
    )
