"""Complexity priors in Bambi models, and what Bambi's automatic priors say."""

from importlib import import_module
from typing import Any

from predcp import program as door
from predcp._prior import ComplexityPrior
from predcp._support.extras import needs

with needs("bambi"):
    # Imported by name, because type checkers would find this file, which is also called bambi.
    bmb: Any = import_module("bambi")

    from predcp.bridges import pymc as bridge


def audit(model: Any, **options: Any) -> door.Audit:
    """Report what the prior of every scale of a Bambi model implies for its predictions.

    **Arguments**: `model`, a `bambi.Model`, built if it is not; `options` of `predcp.audit`.
    """
    return bridge.audit(_built(model), **options)


def prior(source: Any, scale: str | None = None, statement: Any = None, **options: Any) -> Any:
    """A `bambi.Prior` for a scale, such as the `sigma` of a group-specific term.

        sentence = predcp.tail(rate_ratio=2.0, probability=0.05)
        sigma = predcp.bridges.bambi.prior(model, "1|group_sigma", sentence)
        effects = bmb.Prior("Normal", mu=0, sigma=sigma)
        bmb.Model("y ~ x + (1|group)", data, priors={"1|group": effects})

    **Arguments**
    - `source`: a `bambi.Model` with any priors, built if it is not; or a `ComplexityPrior` of one
        scale in the unit of a standard deviation, which needs no other argument.
    - `scale`: name of the scale in the model.
    - `statement`: its prior, as in `predcp.with_complexity`.
    - `options` of `predcp.with_complexity`.
    """
    if isinstance(source, bmb.Model):
        if scale is None or statement is None:
            raise ValueError("prior of a Bambi model needs scale, a name, and statement")
        source = bridge.prior_of(_built(source), scale, statement, **options)
    if not isinstance(source, ComplexityPrior):
        raise ValueError(
            f"source must be a bambi.Model or a ComplexityPrior, got {type(source).__name__}"
        )
    if source.complexity.unit == "variance":
        raise ValueError(
            "source must be on a standard deviation, which is what Bambi's sigma is; this prior is on "
            "a variance"
        )
    complexity_prior = source

    def make(name: str, dims: Any = None, shape: Any = None, **_: Any) -> Any:
        options = {
            key: each for key, each in (("dims", dims), ("shape", shape)) if each is not None
        }
        return bridge.named_dist(name, complexity_prior, **options)

    return bmb.Prior("PredictiveComplexity", auto_scale=False, dist=make)


def _built(model: Any) -> Any:
    """The PyMC model of a Bambi model."""
    if not isinstance(model, bmb.Model):
        raise ValueError(f"model must be a bambi.Model, got {type(model).__name__}")
    if not model.built:
        model.build()
    return model.backend.model
