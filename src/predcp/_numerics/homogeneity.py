"""Find, from the traced program, whether predictions move from the reference as a power of tau.

`f(tau) = constant + tau^a z` holds for a linear predictor `x @ (tau * lam * xi)`, and for a
ReLU branch without a bias. The divergence is then a function of `tau^a z` with `z` computed once,
without a forward pass per evaluation. The rules below follow the degree `a` through the program
and are exact, never numerical; an unknown operation gives "not a power".
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Literal

from predcp._numerics.traced import NESTED, inner_program, scan_operands


class Form(NamedTuple):
    """`constant + tau^degree z`; `degree` None: no dependence on tau."""

    constant: bool
    degree: Fraction | None
    zero: bool = False

    @property
    def pure(self) -> bool:
        return self.degree is not None and not self.constant


FIXED = Form(True, None)
ZERO = Form(True, None, zero=True)

_REARRANGING = {
    "broadcast_in_dim", "convert_element_type", "copy", "cumsum", "dynamic_slice", "expand_dims",
    "gather", "neg", "reduce_sum", "reduce_window_sum", "reshape", "rev", "slice", "split",
    "squeeze", "stop_gradient", "tile", "transpose", "unstack",
}  # fmt: skip
_PRODUCTS = {"mul", "dot_general", "conv_general_dilated"}
_SUMS = {"add", "sub", "add_any", "concatenate", "pad", "stack"}
_COMPARISONS = {"gt", "ge", "lt", "le", "eq", "ne"}


def _sum(forms: Sequence[Form]) -> Form | None:
    degrees = {form.degree for form in forms if form.degree is not None}
    if not degrees:
        return ZERO if all(form.zero for form in forms) else FIXED
    if len(degrees) > 1:
        return None
    constant = any(form.constant and not form.zero for form in forms)
    return Form(constant, degrees.pop())


def _product(left: Form, right: Form) -> Form | None:
    if left.zero or right.zero:
        return ZERO
    if left.degree is None or right.degree is None:
        return left if right.degree is None else right
    if left.pure and right.pure:
        return _power(left.degree + right.degree)
    return None


def _power(degree: Fraction) -> Form:
    return FIXED if degree == 0 else Form(False, degree)


def _apply(name: str, parameters: dict[str, Any], forms: list[Form], operands: list[Any]) -> Any:
    """The form of an operation's result (a list for a nested program), None where unknown."""
    if name in NESTED:
        return _trace(inner_program(parameters), forms)
    if name == "scan":
        return _scan(parameters, forms)
    if all(form.degree is None for form in forms):
        kept = name in _REARRANGING or name in _SUMS
        zero = kept and all(form.zero for form in forms)
        zero |= name in _PRODUCTS and any(form.zero for form in forms)
        return ZERO if zero else FIXED
    first = forms[0]
    if name in _REARRANGING:
        # Operands after the first are indices, which must not depend on tau.
        return first if all(form.degree is None for form in forms[1:]) else None
    if name in _SUMS:
        return _sum(forms)
    if name in _PRODUCTS:
        return _product(*forms)
    if name == "div":
        right = forms[1]
        if right.degree is None:
            return first
        if right.pure and (first.pure or first.degree is None):
            return _power((first.degree or Fraction(0)) - right.degree)
        return None
    if name == "triangular_solve":
        return forms[1] if first.degree is None else None
    if name == "select_n":
        return _sum(forms[1:]) if forms[0].degree is None else None
    moving = [form for form in forms if form.degree is not None]
    alike = all(form.pure for form in moving) and len({form.degree for form in moving}) == 1
    to_zero = alike and all(form.zero for form in forms if form.degree is None)
    if name in ("max", "min"):
        return moving[0] if to_zero else None
    if name in _COMPARISONS:
        return FIXED if to_zero else None
    if not first.pure or first.degree is None:
        return None
    if name == "abs":
        return first
    if name == "sign":
        return FIXED
    if name in ("sqrt", "cholesky"):
        return _power(first.degree / 2)
    if name == "square":
        return _power(first.degree * 2)
    if name == "integer_pow":
        return _power(first.degree * parameters["y"])
    if name == "pow" and isinstance(operands[1], Literal):
        return _power(first.degree * Fraction(float(operands[1].val)))
    return None


def _scan(parameters: dict[str, Any], forms: Sequence[Form | None]) -> list[Form | None]:
    carry: list[Form | None]
    fixed, carry, sequences = scan_operands(parameters, forms)
    while True:
        results = _trace(inner_program(parameters), [*fixed, *carry, *sequences])
        # A form only grows (zero, fixed, a power, unknown), so this ends.
        after = [
            None if old is None or new is None else _sum([old, new])
            for old, new in zip(carry, results)
        ]
        if after == carry:
            return [*carry, *results[len(carry) :]]
        carry = after


def _trace(jaxpr: Any, inputs: Sequence[Form | None]) -> list[Form | None]:
    known: dict[Any, Form | None] = dict(zip(jaxpr.invars, inputs))
    known.update({variable: FIXED for variable in jaxpr.constvars})

    def read(atom: Any) -> Form | None:
        if isinstance(atom, Literal):
            return ZERO if np.all(np.asarray(atom.val) == 0) else FIXED
        return known[atom]

    for equation in jaxpr.eqns:
        forms = [form for atom in equation.invars if (form := read(atom)) is not None]
        # An unknown value matters only if the result depends on it (argument checks do not).
        result = None
        if len(forms) == len(equation.invars):
            result = _apply(equation.primitive.name, equation.params, forms, equation.invars)
        results = result if isinstance(result, list) else [result] * len(equation.outvars)
        known.update(zip(equation.outvars, results))
    return [read(atom) for atom in jaxpr.outvars]


def power_and_moving(
    function: Callable[..., Any], tau: Any, *fixed: Any
) -> tuple[tuple[Fraction, bool], tuple[bool, ...]] | None:
    """The degree `a` if every array of `function(tau, *fixed)` is fixed or `constant + tau^a z`.

    None if it is not so or cannot be shown.

    **Returns** the degree and whether no moving array has a constant part; by array, whether it moves.
    """
    traced = jax.make_jaxpr(function)(tau, *fixed)
    inputs = [Form(False, Fraction(1))] + [FIXED] * (len(traced.jaxpr.invars) - 1)
    forms = [form for form in _trace(traced.jaxpr, inputs) if form is not None]
    if len(forms) < len(traced.jaxpr.outvars):
        return None
    moving = [form for form in forms if form.degree is not None]
    degrees = {form.degree for form in moving}
    if len(degrees) != 1:
        return None
    degree = degrees.pop()
    if degree is None or degree <= 0:
        return None
    power = degree, all(form.pure for form in moving)
    return power, tuple(form.degree is not None for form in forms)


def power_of(function: Callable[..., Any], tau: Any, *fixed: Any) -> tuple[Fraction, bool] | None:
    """The degree alone of `power_and_moving`, and whether no moving array has a constant part."""
    found = power_and_moving(function, tau, *fixed)
    return None if found is None else found[0]
