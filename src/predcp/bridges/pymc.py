"""Complexity priors in PyMC models, and the door for models written in PyMC.

The density of one scale, or of each of several, is written in PyTensor from the table that
`ComplexityPrior.tabulated` makes, so that every sampler and backend of PyMC can use it, and no call leaves
PyTensor. Priors without a table call JAX. The door reads a model as a NumPyro program: there is one map
for both languages.
"""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

from numpyro import handlers

from predcp import program as door
from predcp._prior import ComplexityPrior
from predcp._support.extras import needs

with needs("pymc"):
    # Imported by name, because type checkers would find this file, which is also called pymc.
    pm: Any = import_module("pymc")
    pt: Any = import_module("pytensor.tensor")

    from predcp.bridges._pymc_density import Draws, LogDensity, Median, Quantile, has_graph
    from predcp.bridges._pymc_graph import Program
    from predcp.bridges._pymc_vector import Start, VectorDraws, VectorLogDensity, median


def program(model: Any) -> Program:
    """The NumPyro program of a PyMC model, with the data that the model has now.

    It takes no arguments, and variables keep their names. `predcp.budget_of` and NumPyro's samplers
    take it as any other program.

    **Arguments**: `model`, a `pymc.Model`.
    """
    if not isinstance(model, pm.Model):
        raise ValueError(f"model must be a pymc.Model, got {type(model).__name__}")
    return Program(model)


def complexity_of(model: Any, scale: str, **options: Any) -> door.ProgramComplexity:
    """The map from a scale of a PyMC model to the divergence of its predictions, in nats.

    **Arguments**: `model`, a `pymc.Model`; `scale`, name of a positive free variable; `options` of
    `predcp.complexity_of`.
    """
    return door.complexity_of(program(model), scale, **options)


def audit(model: Any, **options: Any) -> door.Audit:
    """Report what the present prior of every scale of a PyMC model implies for its predictions.

    **Arguments**: `model`, a `pymc.Model`; `options` of `predcp.audit`.
    """
    return door.audit(program(model), **options)


def with_complexity(
    model: Any,
    priors: Mapping[str, Any],
    *,
    rest: str | Mapping[str, Any] = "prior",
    **options: Any,
) -> Any:
    """The same PyMC model, with complexity priors in place of the priors of some scales.

    The sampled variable is `log_NAME`; NAME is its exponential.

    **Arguments**
    - `model`: a `pymc.Model`, which is not changed.
    - `priors`: by name of the scale, a prior on its divergence or a statement, as in
        `predcp.with_complexity`. Each scale is compared with the model that has none of them.
    - `rest`: `"prior"` averages over the other variables; a mapping fixes those that it names.
        A prior that is conditional on the rest of the draw needs NumPyro: `program(model)`.
    - `options`: of `predcp.with_complexity`.

    **Returns** a new `pymc.Model`.
    """
    if not isinstance(priors, Mapping):
        raise ValueError(f"priors must map names of scales to priors, got {type(priors).__name__}")
    read = program(model)
    graph, memo = pm.model.fgraph.fgraph_from_model(model)
    for name, prior in _priors(model, read, priors, rest, options).items():
        with pm.Model(model=None) as single:
            scale(name, prior)
        _, made = pm.model.fgraph.fgraph_from_model(single)
        # A scale that is sampled as its logarithm already stays the exponential of the new one.
        log = read.logs.get(name)
        old, new = (model[name], single[name]) if log is None else (log, single[f"log_{name}"])
        pm.pytensorf.toposort_replace(graph, ((memo[old], made[new]),))
    return pm.model.fgraph.model_from_fgraph(graph, mutate_fgraph=True)


def prior_of(
    model: Any, scale: str, prior: Any, *, rest: str | Mapping[str, Any] = "prior", **options: Any
) -> ComplexityPrior:
    """The prior that `with_complexity` gives one scale of a PyMC model.

    **Arguments**: `scale`, its name; `prior` on its divergence, or a statement; the others as there.
    """
    return _priors(model, program(model), {scale: prior}, rest, options)[scale]


def _priors(
    model: Any, read: Program, priors: Mapping[str, Any], rest: Any, options: Mapping[str, Any]
) -> dict[str, ComplexityPrior]:
    if isinstance(rest, str) and rest == "given":
        raise ValueError(
            'rest="given" needs NumPyro: predcp.with_complexity(program(model), ...); here it must be '
            '"prior" or a mapping of values'
        )
    for name in priors:
        if name in model.named_vars and model[name].type.ndim:
            raise ValueError(
                f"{name!r} has several scales, whose priors are conditional on each other; use "
                "predcp.with_complexity(program(model), ...) with NumPyro"
            )
    swapped = door.with_complexity(read, priors, rest=rest, **options)
    with handlers.block(), handlers.trace() as trace, handlers.seed(rng_seed=0):
        swapped()
    found: dict[str, Any] = {
        name: trace[name if trace[name]["type"] == "sample" else f"log_{name}"]["fn"]
        for name in priors
    }
    return {name: ComplexityPrior(fn.pi, fn.complexity) for name, fn in found.items()}


def scale(name: str, prior: ComplexityPrior, **options: Any) -> Any:
    """Add a scale with a complexity prior to the model: `tau = scale("tau", prior)`.

    The sampled variable is `log_NAME`, because draws of the scale itself may overflow with a
    heavy-tailed pi; NAME is its exponential.

    **Arguments**
    - `name` of the scale.
    - `prior`: with known arrays; of one scale, or of several (each with its own pi, or a map of a
        vector such as `DepthComplexity`).
    - `options`: `dims` or `shape`, for several independent scales with the prior of one, too;
        anything else that `pymc.CustomDist` takes.

    **Returns** the scale.
    """
    log_tau = log_scale(f"log_{name}", prior, **options)
    return pm.Deterministic(name, pt.exp(log_tau), dims=options.get("dims"))


def log_scale(name: str, prior: ComplexityPrior, **options: Any) -> Any:
    """Add the logarithm of a scale to the model. **Arguments**: as `scale`."""
    return _custom(prior, False, name, **options)


def dist(prior: ComplexityPrior, **options: Any) -> Any:
    """The prior of the scale itself as an unnamed PyMC distribution, for `pm.draw` and the like.

    **Arguments**: as `scale`.
    """
    return _custom(prior, True, None, **options)


def named_dist(name: str, prior: ComplexityPrior, **options: Any) -> Any:
    """Add the scale itself to the model, sampled through its logarithm by PyMC's own transform.

    For libraries that ask for one variable, such as Bambi. **Arguments**: as `scale`; scales that
    depend on each other need `scale`.
    """
    _require_positive_scales(prior)
    if prior.event_shape:
        raise ValueError(
            f"scales of {type(prior.complexity).__name__} depend on each other: use scale, not named_dist"
        )
    return _custom(prior, True, name, default_transform=pm.distributions.transforms.log, **options)


def _custom(prior: ComplexityPrior, of_scale: bool, name: str | None, **options: Any) -> Any:
    """The scale or its logarithm as a variable of a model, or without a name outside of one."""
    _require_positive_scales(prior)
    make = pm.CustomDist.dist if name is None else partial(pm.CustomDist, name)
    in_pytensor = not prior.event_shape and has_graph(prior.pi)
    if in_pytensor:
        prior = prior.tabulated()
    density = LogDensity(prior, of_scale) if in_pytensor else VectorLogDensity(prior, of_scale)
    if prior.event_shape or prior.batch_shape or not in_pytensor:
        # The parameter says how many scales there are.
        found = make(
            median(prior, of_scale),
            logp=density,
            random=VectorDraws(prior, of_scale),
            support_point=Start(),
            signature="(n)->(n)" if prior.event_shape else "()->()",
            **options,
        )
    else:
        found = make(
            logp=density,
            random=Draws(prior, of_scale),
            support_point=Median(prior, of_scale),
            **options,
        )
    quantile = Quantile(prior, of_scale)

    # Each custom distribution of PyMC is a separate class.
    @pm.logprob.abstract._icdf.register(type(found.owner.op))
    def _(op: Any, value: Any, *_: Any, **__: Any) -> Any:
        return quantile(pt.as_tensor(value, dtype="float64"))

    return found


def _require_positive_scales(prior: ComplexityPrior) -> None:
    if not isinstance(prior, ComplexityPrior):
        raise ValueError(f"prior must be a ComplexityPrior, got {type(prior).__name__}")
    if prior.complexity.signed:
        raise ValueError(
            f"prior must be of positive scales, got one of {type(prior.complexity).__name__}"
        )
