"""Take logs of rates and probabilities in a program without forming them.

A count model is written `Poisson(exp(eta))` or `Poisson(softplus(eta))`, and its coordinate is the
log of the rate. Through the rate that log is infinite or NaN from `|eta| = 745` on, although nothing
is wrong with `eta`. The rules below follow known logs through the program: of exponentials, of
sigmoids and their complements, of `log1p`, and of products, sums and rearrangements of these.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import Literal
from jax.nn import log_sigmoid, softplus
from jaxtyping import Array

from predcp._numerics.special import log_softplus

_RESHAPING = {"broadcast_in_dim", "convert_element_type", "copy", "dynamic_slice", "expand_dims",
              "gather", "reshape", "rev", "slice", "squeeze", "stop_gradient", "transpose"}  # fmt: skip
_JOINING = {"concatenate", "stack"}
_INLINED = {"pjit", "jit"}
_CUSTOM = {"custom_jvp_call", "custom_vjp_call"}
_SOURCES = {"exp", "logistic"}


class _Known(NamedTuple):
    """What is known of a value v besides itself.

    **Arguments**: `log`, log v; `rest`, log(1 - v); `excess`, log(v - 1); `negated`, what is known
    of -v. Each is None where it is not known.
    """

    log: Array | None = None
    rest: Array | None = None
    excess: Array | None = None
    negated: Any = None


_NOTHING = _Known()


def without_overflow(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays with known logs in place of logs of computed values."""

    def rewritten(*arguments: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        if not _takes_known_log(traced.jaxpr):
            return function(*arguments)
        inputs = [*traced.consts, *jax.tree.leaves(arguments)]
        results, _ = _run(traced.jaxpr, inputs, [_NOTHING] * len(inputs))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return rewritten


def _takes_known_log(jaxpr: Any) -> bool:
    """Whether there is both a source of known logs and a log in a program."""
    names: set[str] = set()

    def collect(inner: Any) -> None:
        for equation in inner.eqns:
            names.add(equation.primitive.name)
            nested = _nested(equation)
            if nested is not None:
                collect(nested.jaxpr)

    collect(jaxpr)
    return bool(names & _SOURCES) and bool(names & {"log", "log1p"})


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
            results = _exact(equation.primitive.name, found)
            if results is None:
                results = _apply(equation, arguments)
            new = [_NOTHING] * len(results)
            if len(results) == 1:
                new = [_learn(equation, arguments, found, results[0])]
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
    if zero[1]:
        return [_Known(log=log_softplus(jnp.asarray(arguments[0])))]
    return [_Known(log=log_softplus(jnp.asarray(arguments[1])))] if zero[0] else None


def _exact(name: str, found: list[_Known]) -> list[Array] | None:
    """The result of an operation that takes a known log, None for any other."""
    if name == "log":
        return None if found[0].log is None else [found[0].log]
    if name == "log1p":
        if found[0].log is not None:
            return [softplus(found[0].log)]
        negated = found[0].negated
        return None if negated is None or negated.rest is None else [negated.rest]
    return None


def _learn(equation: Any, arguments: list[Any], found: list[_Known], result: Any) -> _Known:
    """What is known of an operation's result."""
    name, parameters = equation.primitive.name, equation.params
    if name == "exp":
        return _Known(log=arguments[0])
    if name == "logistic":
        return _Known(log=log_sigmoid(arguments[0]), rest=log_sigmoid(-arguments[0]))
    if all(one is _NOTHING for one in found):
        return _NOTHING
    first, logs = found[0], [one.log for one in found]
    if name == "neg":
        return first.negated or _Known(negated=first)
    if name == "log1p" and first.log is not None:
        return _Known(log=log_softplus(first.log))
    if name == "log" and first.excess is not None:
        return _Known(log=log_softplus(first.excess))
    if name == "sub" and _is_one(arguments[0]):
        return _Known(log=found[1].rest, rest=found[1].log)
    if name == "sub" and _is_one(arguments[1]) and first.excess is not None:
        return _Known(log=first.excess)
    if (
        name == "div"
        and _is_one(arguments[0])
        and found[1].rest is not None
        and found[1].log is not None
    ):
        # 1 / v - 1 = (1 - v) / v
        return _Known(log=-found[1].log, excess=found[1].rest - found[1].log)
    if name == "sub" and found[1].negated is not None:
        return _sum(arguments, [first.log, found[1].negated.log], result)
    if name in ("add", "add_any"):
        total = _sum(arguments, logs, result)
        ones = [_is_one(value) for value in arguments]
        return total._replace(excess=logs[1] if ones[0] else logs[0] if ones[1] else None)
    if name in ("max", "min"):
        return _guarded(name, arguments, found)
    if name in _RESHAPING:
        moved = [None if log is None else _apply(equation, [log, *arguments[1:]])[0]
                 for log in (first.log, first.rest, first.excess)]  # fmt: skip
        return _Known(*moved) if any(log is not None for log in moved) else _NOTHING
    if all(log is None for log in logs):
        return _NOTHING
    if name in _JOINING:
        return _Known(log=_apply(equation, [_filled(*pair) for pair in zip(arguments, logs)])[0])
    return _Known(log=_log_of(name, parameters, arguments, logs))


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


def _sum(arguments: list[Any], logs: list[Any], total: Any) -> _Known:
    """What is known of a sum with at least one known log, whatever the sign of the other term."""
    if logs[0] is None and logs[1] is None:
        return _NOTHING
    if logs[0] is not None and logs[1] is not None:
        return _Known(log=jnp.logaddexp(*logs))
    (other,) = [jnp.asarray(value) for value, log in zip(arguments, logs) if log is None]
    (log,) = [log for log in logs if log is not None]
    if not isinstance(other, Tracer) and bool(np.all(np.asarray(other) >= 0.0)):
        # The total may have overflowed: leave it out of the program altogether.
        return _Known(log=jnp.logaddexp(_filled(other, None), log))
    positive = other > 0.0
    both = jnp.logaddexp(jnp.log(jnp.where(positive, other, 1.0)), log)
    less = _filled(jnp.where(other < 0.0, total, 1.0), None)
    return _Known(log=jnp.where(positive, both, jnp.where(other == 0.0, log, less)))


def _is_one(value: Any) -> bool:
    return not isinstance(value, Tracer) and bool(np.all(np.asarray(value) == 1.0))


def _guarded(name: str, arguments: list[Any], found: list[_Known]) -> _Known:
    """A value kept within rounding of 0 and 1 is itself: a known log needs no such guard."""
    for own, bound in ((0, 1), (1, 0)):
        limit = arguments[bound]
        if found[own] is _NOTHING or isinstance(limit, Tracer):
            continue
        kind = jnp.finfo(jnp.asarray(arguments[own]).dtype)
        below = name == "max" and np.all(np.asarray(limit) <= 2.0 * float(kind.tiny))
        above = name == "min" and np.all(np.asarray(limit) >= 1.0 - 8.0 * float(kind.eps))
        if below or above:
            return found[own]
    return _NOTHING


def _apply(equation: Any, arguments: Sequence[Any]) -> list[Any]:
    """One operation as it stands."""
    parameters = equation.primitive.get_bind_params(equation.params)
    functions = ()
    if isinstance(parameters, tuple):  # before JAX 0.10 functions come apart from the rest
        functions, parameters = parameters
    results = equation.primitive.bind(*functions, *arguments, **parameters)
    return list(results) if equation.primitive.multiple_results else [results]
