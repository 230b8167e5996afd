"""Row scales lambda (automatic relevance determination), set in closed form."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.resnet._scale_priors import HalfCauchyScale, Horseshoe, InverseGamma, ScalePrior

# The paper's prior of every squared row scale.
ROWS = InverseGamma(3.0, 3.0)
_HORSESHOE_ROWS = HalfCauchyScale(1.0)

RowPrior = InverseGamma | HalfCauchyScale


def row_prior(prior: ScalePrior) -> RowPrior:
    """Of the row scales that go with a prior of the layer scales."""
    return _HORSESHOE_ROWS if isinstance(prior, Horseshoe) else ROWS


def log_row_variances(
    moments: Float[Array, "rows columns"],
    log_tau: Float[Array, " rows"] | float,
    prior: RowPrior,
) -> Float[Array, " rows"]:
    """`log lambda_i^2` at its best given the second moments of the row's weights and its tau."""
    sums: Array = jnp.sum(moments, axis=-1) * jnp.exp(-jnp.asarray(log_tau, moments.dtype))
    return prior.closed_form(sums, moments.shape[-1])
