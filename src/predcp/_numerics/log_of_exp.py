"""Take `log(exp(x))` for `x` in a program, exactly, so that `exp(x)` may overflow.

A count model is written `Poisson(exp(eta))` and its coordinate is the log of the rate. Through
the rate that is NaN from `eta = 710` on, although nothing is wrong with `eta`. The rules
below follow known logs through the program: of an exponential, of a product with one, and of
either moved to another shape.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal
from jaxtyping import Array

_RESHAPING = {"broadcast_in_dim", "convert_element_type", "copy", "expand_dims", "reshape",
              "rev", "slice", "squeeze", "transpose"}  # fmt: skip
_INLINED = {"pjit", "jit"}


def without_overflow(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays with the logs of its exponentials read off their exponents."""

    def rewritten(*arguments: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        if not _takes_known_log(traced.jaxpr):
            return function(*arguments)
        inputs = [*traced.consts, *jax.tree.leaves(arguments)]
        results, _ = _run(traced.jaxpr, inputs, [None] * len(inputs))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return rewritten


def _takes_known_log(jaxpr: Any) -> bool:
    """Whether there is both an exponential and a log in a program that may be rewritten."""
    names: set[str] = set()

    def collect(inner: Any) -> None:
        for equation in inner.eqns:
            names.add(equation.primitive.name)
            if equation.primitive.name in _INLINED:
                collect(equation.params["jaxpr"].jaxpr)

    collect(jaxpr)
    return {"exp", "log"} <= names


def _run(
    jaxpr: Any, inputs: Sequence[Any], input_logs: Sequence[Array | None]
) -> tuple[list[Any], list[Array | None]]:
    """Evaluate a program on its constants and arguments; the results, and their logs if known."""
    variables = [*jaxpr.constvars, *jaxpr.invars]
    values = dict(zip(variables, inputs))
    logs = {variable: log for variable, log in zip(variables, input_logs) if log is not None}

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    def known(atom: Any) -> Array | None:
        return None if isinstance(atom, Literal) else logs.get(atom)

    for equation in jaxpr.eqns:
        name = equation.primitive.name
        arguments = [read(atom) for atom in equation.invars]
        found = [known(atom) for atom in equation.invars]
        if name in _INLINED:
            inner = equation.params["jaxpr"]
            results, new_logs = _run(
                inner.jaxpr,
                [*inner.consts, *arguments],
                [*[None] * len(inner.consts), *found],
            )
        elif name == "log" and found[0] is not None:
            results, new_logs = [found[0]], [None]
        else:
            results = _apply(equation, arguments)
            new_logs = [None] * len(results)
            if name == "exp":
                new_logs = [arguments[0]]
            elif name == "mul" and any(log is not None for log in found):
                # A factor that is not positive has no log either way.
                parts = [
                    jnp.log(value) if log is None else log for value, log in zip(arguments, found)
                ]
                new_logs = [parts[0] + parts[1]]
            elif name in _RESHAPING and found[0] is not None:
                new_logs = _apply(equation, [found[0], *arguments[1:]])
        values.update(zip(equation.outvars, results))
        logs.update(
            (variable, log) for variable, log in zip(equation.outvars, new_logs) if log is not None
        )
    outputs = jaxpr.outvars
    return [read(atom) for atom in outputs], [known(atom) for atom in outputs]


def _apply(equation: Any, arguments: Sequence[Any]) -> list[Any]:
    """One operation as it stands."""
    parameters = equation.primitive.get_bind_params(equation.params)
    functions = ()
    if isinstance(parameters, tuple):  # before JAX 0.10 functions come apart from the rest
        functions, parameters = parameters
    results = equation.primitive.bind(*functions, *arguments, **parameters)
    return list(results) if equation.primitive.multiple_results else [results]
