"""Complexity priors in Bambi models."""

from typing import Any

from predcp._prior import ComplexityPrior
from predcp._support.extras import needs
from predcp.bridges.pymc import named_dist

with needs("bambi"):
    import bambi as bmb  # pyright: ignore[reportMissingImports]


def prior(complexity_prior: ComplexityPrior) -> Any:
    """A `bambi.Prior` for a scale, such as the `sigma` of a group-specific term.

        effects = bmb.Prior("Normal", mu=0, sigma=predcp.bridges.bambi.prior(tau_prior))
        bmb.Model("y ~ x + (1|group)", data, priors={"1|group": effects})

    **Arguments**: `complexity_prior`, of one scale in the unit of a standard deviation.
    """
    unit = getattr(getattr(complexity_prior, "complexity", None), "unit", None)
    if unit == "variance":
        raise ValueError(
            "complexity_prior must be on a standard deviation, which is what Bambi's sigma is; "
            "this one is on a variance"
        )

    def make(name: str, dims: Any = None, shape: Any = None, **_: Any) -> Any:
        options = {
            key: each for key, each in (("dims", dims), ("shape", shape)) if each is not None
        }
        return named_dist(name, complexity_prior, **options)

    return bmb.Prior("PredictiveComplexity", auto_scale=False, dist=make)
