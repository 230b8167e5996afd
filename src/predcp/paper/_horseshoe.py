"""The horseshoe of the paper's figures."""

from typing import Any

import numpyro.distributions as dist
from numpyro.distributions.transforms import PowerTransform

from predcp._support.check import require_positive


def horseshoe_variance(scale: Any = 1.0) -> dist.Distribution:
    """The variance `tau` of a horseshoe coefficient: `sqrt(tau) ~ C+(0, scale)`."""
    return dist.TransformedDistribution(
        dist.HalfCauchy(require_positive("scale", scale)), PowerTransform(2.0)
    )
