"""Which inputs of a program each of its outputs depends on, with some inputs known to be zero.

A dataflow analysis of the traced program. It never runs the program. A product with zero is zero and
depends on nothing, so `mu + 0 * z` depends on `mu` alone. Operations without a rule depend on
all of their operands.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Literal

from predcp._numerics.traced import NESTED, inner_program, scan_operands


class Origin(NamedTuple):
    """Labels of the inputs a value depends on, and whether the value is known to be zero."""

    labels: frozenset[str] = frozenset()
    zero: bool = False


_CONSTANT = Origin()
_ZERO = Origin(zero=True)

_PRODUCTS = {"mul", "dot_general", "conv_general_dilated"}
_SUMS = {"add", "sub", "add_any", "concatenate", "pad", "max", "min", "stack"}
# Functions with f(0) = 0 of their first operand; the others are indices or sizes.
_FIXING_ZERO = {
    "abs", "asin", "asinh", "atan", "atanh", "broadcast_in_dim", "cbrt", "cholesky", "convert_element_type",
    "copy", "copy_p", "cumsum", "dynamic_slice", "erf", "expand_dims", "expm1", "gather",
    "imag", "log1p", "neg", "real", "reduce_max", "reduce_min", "reduce_sum", "reshape", "rev",
    "sign", "sin", "sinh", "slice", "sort", "split", "sqrt", "square", "squeeze",
    "stop_gradient", "tan", "tanh", "tile", "transpose", "unstack",
}  # fmt: skip


def dependencies(
    function: Callable[..., Any], inputs: Mapping[str, Any], zero: Sequence[str] = ()
) -> Any:
    """The inputs that each output array depends on, and whether it is zero.

    **Arguments**
    - `function`: takes the inputs as keyword arguments, returns a pytree of arrays.
    - `inputs`: pytrees of arrays (or of their shapes), by label.
    - `zero`: labels of inputs that are zero.

    **Returns** a pytree like the function's result, with an `Origin` for each array.
    """
    shapes: list[Any] = []

    def flat(values: dict[str, Any]) -> list[Any]:
        result = function(**values)
        leaves, structure = jax.tree.flatten(result)
        shapes.append(structure)
        return leaves

    traced = jax.make_jaxpr(flat)(dict(inputs))
    origins = []
    # Dictionaries are flattened in the order of their keys.
    for label in sorted(inputs):
        origin = _ZERO if label in zero else Origin(frozenset([label]))
        origins += [origin] * len(jax.tree.leaves(inputs[label]))
    results = _follow(traced.jaxpr, origins)
    return jax.tree.unflatten(shapes[-1], results)


def _follow(jaxpr: Any, inputs: Sequence[Origin]) -> list[Origin]:
    known: dict[Any, Origin] = dict(zip(jaxpr.invars, inputs))
    known.update({variable: _CONSTANT for variable in jaxpr.constvars})

    def read(atom: Any) -> Origin:
        if isinstance(atom, Literal):
            return _ZERO if np.all(np.asarray(atom.val) == 0) else _CONSTANT
        return known[atom]

    for equation in jaxpr.eqns:
        origins = [read(atom) for atom in equation.invars]
        results = _apply(equation, origins)
        known.update(zip(equation.outvars, results))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(equation: Any, origins: list[Origin]) -> list[Origin]:
    name, parameters = equation.primitive.name, equation.params
    if name in NESTED:
        return _follow(inner_program(parameters), origins)
    if name == "scan":
        return _scan(parameters, origins)
    if name == "while":
        return _while(parameters, origins)
    if name == "cond":
        # The first operand says which branch is taken.
        branches = [_follow(branch.jaxpr, origins[1:]) for branch in parameters["branches"]]
        results = [_either(*each) for each in zip(*branches)]
        return [Origin(each.labels | origins[0].labels, each.zero) for each in results]
    if origins and _is_zero(equation, origins):
        return [_ZERO] * len(equation.outvars)
    union = Origin(frozenset().union(*(origin.labels for origin in origins)))
    return [union] * len(equation.outvars)


def _either(*origins: Origin) -> Origin:
    """What is known of a value that may be any one of several."""
    labels = frozenset().union(*(origin.labels for origin in origins))
    return Origin(labels, all(origin.zero for origin in origins))


def _scan(parameters: dict[str, Any], origins: list[Origin]) -> list[Origin]:
    fixed, carry, sequences = scan_operands(parameters, origins)
    while True:
        results = _follow(inner_program(parameters), [*fixed, *carry, *sequences])
        # What a step depends on only grows, so this ends.
        after = [_either(old, new) for old, new in zip(carry, results)]
        if after == carry:
            return [*carry, *results[len(carry) :]]
        carry = after


def _while(parameters: dict[str, Any], origins: list[Origin]) -> list[Origin]:
    tests, constants = parameters["cond_nconsts"], parameters["body_nconsts"]
    asked, fixed = origins[:tests], origins[tests : tests + constants]
    carry = origins[tests + constants :]
    while True:
        (stop,) = _follow(parameters["cond_jaxpr"].jaxpr, [*asked, *carry])
        results = _follow(parameters["body_jaxpr"].jaxpr, [*fixed, *carry])
        # The number of steps of the loop depends on the inputs of its test.
        after = [
            _either(old, Origin(new.labels | stop.labels, new.zero))
            for old, new in zip(carry, results)
        ]
        if after == carry:
            return carry
        carry = after


def _is_zero(equation: Any, origins: list[Origin]) -> bool:
    name = equation.primitive.name
    if name in _PRODUCTS:
        return any(origin.zero for origin in origins)
    if name in _SUMS:
        return all(origin.zero for origin in origins)
    if name.startswith("scatter"):
        return origins[0].zero and origins[2].zero
    if name == "select_n":
        return all(origin.zero for origin in origins[1:])
    if name == "div":
        # Zero over zero is not zero.
        return origins[0].zero and not origins[1].zero
    if name in _FIXING_ZERO:
        return origins[0].zero
    if name == "triangular_solve":
        return origins[1].zero
    if name == "integer_pow":
        return origins[0].zero and equation.params["y"] > 0
    if name == "pow":
        power = equation.invars[1]
        return origins[0].zero and isinstance(power, Literal) and bool(np.all(power.val > 0))
    return False
