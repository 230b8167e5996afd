"""A PyMC model as a NumPyro program: each random variable is a site, its parameters are sub-graphs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import pytensor  # pyright: ignore[reportMissingImports]
from pymc.distributions.distribution import (  # pyright: ignore[reportMissingImports]
    SymbolicRandomVariable,
)
from pymc.distributions.transforms import Ordered  # pyright: ignore[reportMissingImports]
from pytensor.compile import SharedVariable  # pyright: ignore[reportMissingImports]
from pytensor.compile.mode import JAX, Mode  # pyright: ignore[reportMissingImports]
from pytensor.graph import graph_inputs  # pyright: ignore[reportMissingImports]
from pytensor.graph.basic import Constant  # pyright: ignore[reportMissingImports]
from pytensor.graph.fg import FunctionGraph  # pyright: ignore[reportMissingImports]
from pytensor.graph.replace import clone_replace  # pyright: ignore[reportMissingImports]
from pytensor.link.jax.dispatch import jax_funcify  # pyright: ignore[reportMissingImports]
from pytensor.raise_op import CheckAndRaise  # pyright: ignore[reportMissingImports]
from pytensor.tensor import constant  # pyright: ignore[reportMissingImports]
from pytensor.tensor.random.op import RandomVariable  # pyright: ignore[reportMissingImports]

from predcp.bridges._pymc_families import Family, Untranslatable, argument, family_of


class _Values(NamedTuple):
    """Some variables of the graph: numbers where they are known, else a function of sites."""

    parents: tuple[str, ...]
    known: tuple[Any, ...]  # None where the value depends on a site
    function: Callable[..., Any]

    def __call__(self, sites: Mapping[str, Any]) -> list[Any]:
        found = iter(self.function(*(sites[name] for name in self.parents)))
        return [next(found) if each is None else each for each in self.known]


class _Site(NamedTuple):
    name: str
    parameters: _Values
    make: Callable[..., Any]
    shape: tuple[int, ...]
    observed: Any
    of_log: str | None = None  # the name of its logarithm, where the model has that

    def distribution(self, sites: Mapping[str, Any]) -> Any:
        made = self.make(*self.parameters(sites))
        return made.expand(self.shape[: len(self.shape) - made.event_dim])


class Program:
    """The NumPyro program of a PyMC model; call it without arguments.

    Random variables, deterministics and potentials keep their names. A scale with a complexity prior that
    PyMC samples as its logarithm is the site, and the logarithm is deterministic. Data are those of
    the model when the program was made.

    `logs`: by name of such a scale, the variable of the model that is its logarithm.
    """

    def __init__(self, model: Any):
        self._scales = _scales_of_logs(model)
        self.logs = {scale.name: log for log, scale in self._scales.items()}
        variables = [*self._scales.values(), *model.basic_RVs]
        self._model_variables = {each: each.name for each in variables}
        self._sites: list[_Site] = []
        self._add(model)
        rest = [each for each in model.deterministics if each not in self._scales.values()]
        self._deterministics = self._values_of("deterministics", rest)
        self._potentials = self._values_of("potentials", model.potentials)

    def __call__(self) -> None:
        values: dict[str, Any] = {}
        for site in self._sites:
            fn = site.distribution(values)
            value = values[site.name] = numpyro.sample(site.name, fn, obs=site.observed)
            if site.of_log is not None:
                values[site.of_log] = numpyro.deterministic(site.of_log, jnp.log(value))
        for name, value in self._deterministics(values):
            numpyro.deterministic(name, value)
        for name, value in self._potentials(values):
            numpyro.factor(name, jnp.sum(value))

    def _add(self, model: Any) -> None:
        """Translate the random variables, each after those that it depends on."""
        shapes = _shapes(model.basic_RVs)
        waiting = {rv: self._translated(model, rv, shapes[rv]) for rv in model.basic_RVs}
        placed: set[str] = set()
        while waiting:
            ready = [
                rv for rv, site in waiting.items() if placed.issuperset(site.parameters.parents)
            ]
            for rv in ready:
                self._sites.append(waiting.pop(rv))
                placed |= {rv.name, self._sites[-1].name}

    def _translated(self, model: Any, rv: Any, shape: tuple[int, ...]) -> _Site:
        try:
            if isinstance(model.rvs_to_transforms.get(rv), Ordered):
                raise Untranslatable("it is ordered by a transform; write it as a sum of steps")
            scale = self._scales.get(rv)
            family = family_of(rv.owner)
            if scale is not None:
                family = Family((), lambda: _prior_of(rv))
            parameters = self._read(family.parameters)
        except (Untranslatable, NotImplementedError) as error:
            raise ValueError(
                f"variable {rv.name!r} cannot be read from the PyMC model: {error}"
            ) from error
        observed = None
        if rv in model.observed_RVs:
            [observed] = self._read([model.rvs_to_values[rv]]).known
        if scale is not None:
            return _Site(scale.name, parameters, family.make, shape, observed, rv.name)
        return _Site(rv.name, parameters, family.make, shape, observed)

    def _values_of(self, kind: str, variables: Sequence[Any]) -> Callable[..., Any]:
        """Named functions of the sites."""
        try:
            values = self._read(variables)
        except (Untranslatable, NotImplementedError) as error:
            raise ValueError(f"the model's {kind} cannot be read: {error}") from error
        names = [each.name for each in variables]
        return lambda sites: zip(names, values(sites))

    def _read(self, variables: Sequence[Any]) -> _Values:
        """The values of some variables as a function of the sites that they depend on."""
        needed = [self._needed(variable) for variable in variables]
        known = tuple(
            None if parents else _number(variable) for variable, parents in zip(variables, needed)
        )
        parents = [rv for rv in self._model_variables if any(rv in each for each in needed)]
        unknown = [variable for variable, rvs in zip(variables, needed) if rvs]
        names = tuple(self._model_variables[rv] for rv in parents)
        return _Values(names, known, _jaxified(parents, unknown))

    def _needed(self, variable: Any) -> set[Any]:
        """Random variables of the model that a variable depends on directly."""
        found, seen, queue = set(), set(), [variable]
        while queue:
            each = queue.pop()
            if each in seen:
                continue
            seen.add(each)
            if each in self._model_variables:
                found.add(each)
            elif each.owner is not None:
                if isinstance(each.owner.op, RandomVariable | SymbolicRandomVariable):
                    raise Untranslatable(
                        "it depends on a distribution without a name; make that a variable of the model"
                    )
                queue.extend(each.owner.inputs)
        return found


def _scales_of_logs(model: Any) -> dict[Any, Any]:
    """Of free variables that are logarithms of scales with our priors, the scales' deterministics."""
    found = {}
    for scale in model.deterministics:
        log = argument(scale, "Exp")
        if log in model.free_RVs and _prior_of(log) is not None:
            found.setdefault(log, scale)
    return found


def _prior_of(log_scale: Any) -> Any:
    """The prior of the scale that this is the logarithm of, None if it is no such variable of ours."""
    draws = getattr(log_scale.owner.op, "_random_fn", None)
    if getattr(draws, "of_scale", True) or not hasattr(draws, "numpyro_prior"):
        return None
    return getattr(draws, "prior", None)


def _number(variable: Any) -> np.ndarray:
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    [value] = _jaxified([], [variable])()
    return np.asarray(value)


def _jaxified(inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., Any]:
    """A JAX function of some variables of the graph, with its data as constants."""
    if not outputs:
        return lambda *_: ()
    fresh = [each.type(name=each.name) for each in inputs]
    data = [each for each in graph_inputs(outputs, inputs) if isinstance(each, SharedVariable)]
    numbers = [constant(each.get_value(borrow=True)) for each in data]
    graph = clone_replace(list(outputs), dict(zip([*inputs, *data], [*fresh, *numbers])))
    function = FunctionGraph(fresh, graph, clone=True)
    for node in function.toposort():
        # Remove checks of values: they cannot run on traced values.
        if isinstance(node.op, CheckAndRaise):
            function.replace(node.outputs[0], node.inputs[0])
    JAX.optimizer.rewrite(function)
    return jax_funcify(function)


def _shapes(rvs: Sequence[Any]) -> dict[Any, tuple[int, ...]]:
    """The shape of each random variable."""
    open_ = [rv for rv in rvs if None in rv.type.shape]
    function = pytensor.function(
        [], [rv.shape for rv in open_], mode=Mode(linker="py", optimizer="fast_compile")
    )
    found = {rv: rv.type.shape for rv in rvs}
    return found | {rv: tuple(map(int, shape)) for rv, shape in zip(open_, function())}
