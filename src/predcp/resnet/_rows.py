"""Row scales lambda (automatic relevance determination), set in closed form."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.resnet import _closed_forms
from predcp.resnet._layer_priors import HorseshoeLayers, LayerScalePrior


@dataclass(frozen=True)
class InverseGammaRows:
    """`lambda_i^2 ~ IG(shape, scale)`, the paper's prior of every squared row scale."""

    shape: float = 3.0
    scale: float = 3.0

    def __post_init__(self) -> None:
        _closed_forms.require_positive(shape=self.shape, scale=self.scale)

    def closed_form(self, moment: Float[Array, " rows"], count: int) -> Float[Array, " rows"]:
        """`log lambda_i^2` at its best given `sum_j E w_ij^2 / tau` over `count` weights."""
        return _closed_forms.inverse_gamma(moment, count, self.shape, self.scale)


@dataclass(frozen=True)
class HalfCauchyRows:
    """`lambda_i ~ C+(0, scale)`, the row scales of the horseshoe."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        _closed_forms.require_positive(scale=self.scale)

    def closed_form(self, moment: Float[Array, " rows"], count: int) -> Float[Array, " rows"]:
        """`log lambda_i^2` at its best given `sum_j E w_ij^2 / tau` over `count` weights."""
        return _closed_forms.half_cauchy(moment, count, self.scale)


RowPrior = InverseGammaRows | HalfCauchyRows
ROWS = InverseGammaRows()


def row_prior(prior: LayerScalePrior) -> RowPrior:
    """The prior of the row scales that goes with a prior of the layer scales."""
    return HalfCauchyRows() if isinstance(prior, HorseshoeLayers) else ROWS


def log_row_variances(
    moments: Float[Array, "rows columns"],
    log_tau: Float[Array, " rows"] | float,
    prior: RowPrior,
) -> Float[Array, " rows"]:
    """The best `log lambda_i^2` given the second moments of the row's weights and its tau."""
    sums: Array = jnp.sum(moments, axis=-1) * jnp.exp(-jnp.asarray(log_tau, moments.dtype))
    return prior.closed_form(sums, moments.shape[-1])
