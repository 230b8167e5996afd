"""Take logs of rates and probabilities in a program without forming them.

A count model is written `Poisson(exp(eta))` or `Poisson(softplus(eta))`, and its coordinate is the
log of the rate. Computed from the rate, that log is infinite or NaN from `|eta| = 745` on, although `eta`
is a good number. The rules below follow known logs through the program: of exponentials, of
sigmoids and their complements, of `log1p`, of the normal distribution function, of exponentials of
exponentials (complementary log-log), and of products, sums and rearrangements of these.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import Literal
from jax.nn import log_sigmoid, softplus
from jaxtyping import Array

from predcp._numerics.special import capped_exp, log_erfc, log_share, log_softplus, tangent_exp

_RESHAPING = {"broadcast_in_dim", "convert_element_type", "copy", "dynamic_slice", "expand_dims",
              "gather", "reshape", "rev", "slice", "squeeze", "stop_gradient", "transpose"}  # fmt: skip
_JOINING = {"concatenate", "stack"}
_INLINED = {"pjit", "jit"}
_CUSTOM = {"custom_jvp_call", "custom_vjp_call"}
_SOURCES = {"exp", "logistic", "erf", "erfc"}


class _Known(NamedTuple):
    """Logs that are known of a value v.

    **Arguments**: `log`, log v; `rest`, log(1 - v); `excess`, log(v - 1); `twofold`, log(2 - v);
    `negated`, what is known of -v. Each is None where it is not known.
    """

    log: Array | None = None
    rest: Array | None = None
    excess: Array | None = None
    twofold: Array | None = None
    negated: Any = None


_NOTHING = _Known()


def without_overflow(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays with known logs in place of logs of computed values.

    Exponentials that would overflow are capped, so that predictors that they multiply stay finite.
    """

    def rewritten(*arguments: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        if not _has_exponential(traced.jaxpr):
            return function(*arguments)
        inputs = [*traced.consts, *jax.tree.leaves(arguments)]
        results, _ = _run(traced.jaxpr, inputs, [_NOTHING] * len(inputs))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return rewritten


def _has_exponential(jaxpr: Any) -> bool:
    """Whether a program has a source of known logs, such as an exponential."""
    for equation in jaxpr.eqns:
        nested = _nested(equation)
        if equation.primitive.name in _SOURCES or (nested and _has_exponential(nested.jaxpr)):
            return True
    return False


def _nested(equation: Any) -> Any:
    """The program inside an operation that may be looked into."""
    name = equation.primitive.name
    if name in _INLINED:
        return equation.params["jaxpr"]
    if name in _CUSTOM:
        return equation.params.get("call_jaxpr", equation.params.get("fun_jaxpr"))
    return None


def _run(
    jaxpr: Any, inputs: Sequence[Any], facts: Sequence[_Known]
) -> tuple[list[Any], list[_Known]]:
    """Evaluate a program on its constants and arguments; the results, and what is known of them."""
    variables = [*jaxpr.constvars, *jaxpr.invars]
    values = dict(zip(variables, inputs))
    known = dict(zip(variables, facts))

    def read(atom: Any) -> Any:
        # A literal may be a Python number, whose type is that of its place in the program.
        if not isinstance(atom, Literal):
            return values[atom]
        kind: Any = atom.aval
        return np.asarray(atom.val, kind.dtype)

    def fact(atom: Any) -> _Known:
        return _NOTHING if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        arguments = [read(atom) for atom in equation.invars]
        found = [fact(atom) for atom in equation.invars]
        inner = _nested(equation)
        if inner is not None:
            results, new = _run(
                inner.jaxpr,
                [*inner.consts, *arguments],
                [*[_NOTHING] * len(inner.consts), *found],
            )
            if equation.primitive.name in _CUSTOM:
                results = _apply(equation, arguments)  # with the derivative it was given
                new = _softplus_of(inner.jaxpr, arguments) or new
        else:
            results = _exact(equation.primitive.name, arguments, found)
            if results is None:
                results = _apply(equation, arguments)
            new = [_NOTHING] * len(results)
            if len(results) == 1:
                new = [_learn(equation, arguments, found)]
        values.update(zip(equation.outvars, results))
        known.update(zip(equation.outvars, new))
    outputs = jaxpr.outvars
    return [read(atom) for atom in outputs], [fact(atom) for atom in outputs]


_LOGADDEXP = {"max", "sub", "ne", "add", "abs", "neg", "exp", "log1p", "select_n"}


def _softplus_of(jaxpr: Any, arguments: list[Any]) -> list[_Known] | None:
    """What is known of `logaddexp(x, 0)`, which JAX's softplus is.

    Its program has kinks at x = 0 that cancel in the value; its log has none.
    """
    if {equation.primitive.name for equation in jaxpr.eqns} != _LOGADDEXP or len(arguments) != 2:
        return None
    zero = [not isinstance(a, Tracer) and bool(np.all(np.asarray(a) == 0.0)) for a in arguments]
    wide = jnp.broadcast_arrays(*arguments)
    if zero[1]:
        return [_Known(log=log_softplus(wide[0]))]
    return [_Known(log=log_softplus(wide[1]))] if zero[0] else None


def _exact(name: str, arguments: list[Any], found: list[_Known]) -> list[Array] | None:
    """The result of an operation that may overflow or takes a known log, None for any other."""
    if name == "exp":
        exponent = jnp.asarray(arguments[0])
        return [capped_exp(exponent)] if jnp.isrealobj(exponent) else None
    if name == "log":
        return None if found[0].log is None else [found[0].log]
    if name == "log1p":
        if found[0].log is not None:
            return [softplus(found[0].log)]
        negated = found[0].negated
        return None if negated is None or negated.rest is None else [negated.rest]
    return None


def _learn(equation: Any, arguments: list[Any], found: list[_Known]) -> _Known:
    """What is known of an operation's result."""
    name, parameters = equation.primitive.name, equation.params
    if name in _SOURCES:
        return _source(name, arguments[0], found[0])
    if all(one is _NOTHING for one in found):
        return _NOTHING
    first, logs = found[0], [one.log for one in found]
    if name == "neg":
        return first.negated or _Known(negated=first)
    if name == "expm1" and first.negated is not None and first.negated.log is not None:
        inner = _source("exp", arguments[0], first)
        return _Known(negated=_Known(log=inner.rest, rest=inner.log))
    if name == "log1p" and first.log is not None:
        return _Known(log=log_softplus(first.log))
    if name == "log" and first.excess is not None:
        return _Known(log=log_softplus(first.excess))
    if name == "sub" and _is(1.0, arguments[0]):
        return _Known(log=found[1].rest, rest=found[1].log)
    if name == "sub" and _is(2.0, arguments[0]) and found[1].twofold is not None:
        return _Known(log=found[1].twofold, twofold=found[1].log)
    if name == "sub" and _is(1.0, arguments[1]) and first.excess is not None:
        return _Known(log=first.excess)
    if (
        name == "div"
        and _is(1.0, arguments[0])
        and found[1].rest is not None
        and found[1].log is not None
    ):
        # 1 / v - 1 = (1 - v) / v
        return _Known(log=-found[1].log, excess=found[1].rest - found[1].log)
    if name == "sub" and found[1].negated is not None:
        return _sum(arguments, [first.log, found[1].negated.log])
    if name in ("add", "add_any"):
        ones = [_is(1.0, value) for value in arguments]
        if any(ones):
            other = found[0 if ones[1] else 1]
            total = _Known(log=None if other.negated is None else other.negated.rest)
            if total.log is None:
                total = _sum(arguments, logs)
            return total._replace(excess=other.log, twofold=other.rest)
        return _sum(arguments, logs)
    if name in ("max", "min"):
        return _guarded(name, arguments, found)
    if name in _RESHAPING:
        return _map(first, lambda log: _apply(equation, [log, *arguments[1:]])[0])
    if name in ("mul", "div") and (signed := _signed(name, arguments, found)) is not None:
        return signed
    twofold = None
    cases = [one.twofold for one in found[1:] if one.twofold is not None]
    if name == "select_n" and len(cases) == len(found) - 1:
        twofold = jax.lax.select_n(arguments[0], *cases)
    if all(log is None for log in logs):
        return _NOTHING
    if name in _JOINING:
        return _Known(log=_apply(equation, [_filled(*pair) for pair in zip(arguments, logs)])[0])
    log = _log_of(name, parameters, arguments, logs)
    if name == "mul" and found[1].twofold is not None and _is(0.5, arguments[0]):
        return _Known(log=log, rest=found[1].twofold - math.log(2.0))
    return _Known(log=log, twofold=twofold)


def _source(name: str, argument: Array, known: _Known) -> _Known:
    """What is known of a function of any number."""
    if name == "logistic":
        return _Known(log=log_sigmoid(argument), rest=log_sigmoid(-argument))
    if name == "erfc":
        argument = jnp.asarray(argument)
        return _Known(log=log_erfc(argument), twofold=log_erfc(-argument))
    if name == "erf":
        return _Known(rest=log_erfc(argument), negated=_Known(rest=log_erfc(-argument)))
    if known.negated is None or known.negated.log is None:
        return _Known(log=argument)
    # The exponential of -r, with a known log of r.
    log_rate = jnp.asarray(known.negated.log)
    return _Known(log=-tangent_exp(log_rate), rest=log_rate + log_share(log_rate))


def _map(known: _Known, function: Callable[[Array], Array]) -> _Known:
    """What is known after every log has been rearranged."""
    if known is _NOTHING:
        return known
    *logs, negated = known
    moved = [None if log is None else function(log) for log in logs]
    rest = None if negated is None else _map(negated, function)
    return _Known(*moved, negated=rest)


def _signed(name: str, arguments: list[Any], found: list[_Known]) -> _Known | None:
    """What is known of a negative product or quotient; None if it is not known to be negative."""
    logs, signs = [], []
    for value, one in zip(arguments, found):
        sign = 1 if one.log is not None else -1 if one.negated is not None else _sign(value)
        logs.append(one.log if sign > 0 else one.negated.log if one.negated is not None else None)
        signs.append(sign)
    if math.prod(signs) >= 0 or all(log is None for log in logs):
        return None
    sizes = [jnp.abs(jnp.asarray(value)) for value in arguments]
    return _Known(negated=_Known(log=_log_of(name, {}, sizes, logs)))


def _sign(value: Any) -> int:
    """1 or -1 if all numbers have that sign, 0 if not or if it is not known."""
    if isinstance(value, Tracer):
        return 0
    numbers = np.asarray(value)
    return int(np.all(numbers >= 0.0)) - int(np.all(numbers < 0.0))


def _log_of(name: str, parameters: Any, arguments: list[Any], logs: list[Any]) -> Array | None:
    """The log of a result from the logs of its arguments, at least one of which is known."""
    if name == "select_n":
        cases = [_filled(value, log) for value, log in zip(arguments[1:], logs[1:])]
        return jax.lax.select_n(arguments[0], *cases)
    if name == "mul":
        return _filled(arguments[0], logs[0]) + _filled(arguments[1], logs[1])
    if name == "div":
        return _filled(arguments[0], logs[0]) - _filled(arguments[1], logs[1])
    first = logs[0]
    if first is None:
        return None
    if name == "reduce_sum":
        return jax.scipy.special.logsumexp(first, axis=tuple(parameters["axes"]))
    if name == "integer_pow":
        return parameters["y"] * first
    if name == "pow":
        return arguments[1] * first
    return {"sqrt": 0.5, "square": 2.0, "rsqrt": -0.5}[name] * first if name in _POWERS else None


_POWERS = {"sqrt", "square", "rsqrt"}


def _filled(value: Any, log: Array | None) -> Array:
    """A known log, or the log of the value with a derivative of 0 where it has none."""
    if log is not None:
        return log
    value = jnp.asarray(value)
    positive = value > 0.0
    none = jnp.where(value == 0.0, -jnp.inf, jnp.nan).astype(value.dtype)
    return jnp.where(positive, jnp.log(jnp.where(positive, value, 1.0)), none)


def _sum(arguments: list[Any], logs: list[Any]) -> _Known:
    """What is known of a sum with at least one known log, whatever the sign of the other term."""
    if logs[0] is None and logs[1] is None:
        return _NOTHING
    if logs[0] is not None and logs[1] is not None:
        return _Known(log=jnp.logaddexp(*logs))
    ((other, log),) = [
        (value, logs[1 - place]) for place, value in enumerate(arguments) if logs[place] is None
    ]
    # Check before it becomes an array: inside `jit` every array is traced.
    if not isinstance(other, Tracer) and bool(np.all(np.asarray(other) >= 0.0)):
        return _Known(log=jnp.logaddexp(_filled(other, None), log))
    # The total may have overflowed: leave it out of the program altogether.
    other = jnp.asarray(other)
    size = jnp.log(jnp.where(other == 0.0, 1.0, jnp.abs(other)))
    gap = size - log
    left = (other < 0.0) & (gap < 0.0)
    less = log + jnp.log(-jnp.expm1(jnp.where(left, gap, -1.0)))
    less = jnp.where(left, less, jnp.where(gap == 0.0, -jnp.inf, jnp.nan))
    more = jnp.where(other == 0.0, log, jnp.logaddexp(size, log))
    return _Known(log=jnp.where(other < 0.0, less, more))


def _is(number: float, value: Any) -> bool:
    return not isinstance(value, Tracer) and bool(np.all(np.asarray(value) == number))


def _guarded(name: str, arguments: list[Any], found: list[_Known]) -> _Known:
    """A clip of a value to within rounding of 0 and 1 is ignored: a known log does not need it."""
    for own, bound in ((0, 1), (1, 0)):
        limit = arguments[bound]
        if found[own] is _NOTHING or isinstance(limit, Tracer):
            continue
        kind = jnp.finfo(jnp.asarray(arguments[own]).dtype)
        below = name == "max" and np.all(np.asarray(limit) <= 2.0 * float(kind.tiny) ** 0.4)
        above = name == "min" and np.all(np.asarray(limit) >= 1.0 - 8.0 * float(kind.eps))
        if below or above:
            return found[own]
    return _NOTHING


def _apply(equation: Any, arguments: Sequence[Any]) -> list[Any]:
    """One operation as it stands."""
    parameters = equation.primitive.get_bind_params(equation.params)
    functions = ()
    if isinstance(parameters, tuple):  # before JAX 0.10 function parameters are separate
        functions, parameters = parameters
    # Inside of `jit` the bound of a clip must stay a number: `_guarded` asks for its value.
    number = not any(isinstance(value, Tracer) for value in arguments)
    number = number and equation.primitive.name in _RESHAPING
    with jax.ensure_compile_time_eval() if number else nullcontext():
        results = equation.primitive.bind(*functions, *arguments, **parameters)
    return list(results) if equation.primitive.multiple_results else [results]
