"""Run a NumPyro program outside of all active handlers, with given values at its sites."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.core import Tracer
from jaxtyping import Array
from numpyro import handlers
from numpyro.primitives import Messenger

from predcp.program._limits import Limits, limit_of
from predcp.program._noise import feasible, is_improper

Trace = Mapping[str, dict[str, Any]]


class Arguments(NamedTuple):
    """Arguments of a program: arrays that may be traced, and the structure that holds them.

    Strings, Python numbers and arrays that the program needs to know before tracing (sizes of
    plates, say) are part of the structure.
    """

    arrays: tuple[Any, ...]
    structure: "Structure"

    def restore(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments and keyword arguments."""
        return self.structure.restore(self.arrays)


class Structure:
    """Arguments without their traced arrays; compares by value."""

    def __init__(self, tree: Any, fixed: tuple[Any, ...]):
        self.tree, self.fixed = tree, fixed
        self._identity = (tree, tuple(_identity(leaf) for leaf in fixed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def restore(self, arrays: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with these arrays in their places."""
        given = iter(arrays)
        leaves = [next(given) if leaf is _TRACED else leaf for leaf in self.fixed]
        return jax.tree.unflatten(self.tree, leaves)


class _Traced:
    """Placeholder for an array that was taken out."""


_TRACED = _Traced()


def _identity(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray | jax.Array) and not isinstance(leaf, Tracer):
        values = np.asarray(leaf)
        return values.shape, values.dtype.str, values.tobytes()
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return type(leaf), leaf


def split_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], traced: Callable[[Any], bool]
) -> Arguments:
    """Take the arrays for which `traced` holds out of the arguments."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    # A program may index them by a traced array, which NumPy's do not allow. They stay known
    # numbers where the caller is being traced.
    with jax.ensure_compile_time_eval():
        arrays = tuple(
            jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf
            for leaf in leaves
            if traced(leaf)
        )
    fixed = tuple(_TRACED if traced(leaf) else leaf for leaf in leaves)
    return Arguments(arrays, Structure(tree, fixed))


def is_traced(leaf: Any) -> bool:
    """Whether a leaf is under a transformation of the caller."""
    return isinstance(leaf, Tracer)


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array of numbers."""
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind in "biufc"
    return isinstance(leaf, jax.Array)


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a number or an array of numbers, perhaps traced."""
    return isinstance(leaf, bool | int | float) or is_traced(leaf) or is_array(leaf)


def is_float_array(leaf: Any) -> bool:
    """Whether a leaf is an array of floating-point numbers, or traced."""
    return is_traced(leaf) or (is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating))


# From the name of a site, its distribution and (inside a scan) the step to a value or None.
Draw = Callable[[str, Any, Any], Any]


_VALUED = ("sample", "plate", "param")


class Values(Messenger):
    """Give sites their values: from a mapping, or for latent sites from a function."""

    def __init__(self, fn: Callable[..., Any], values: Mapping[str, Any], draw: Draw | None = None):
        self.values, self.draw = values, draw
        super().__init__(fn)

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == "control_flow":
            stack = msg["kwargs"]["substitute_stack"]
            stack.append(("substitute", dict(self.values)))
            if self.draw is not None:
                stack.append(("substitute", self._draw_step))
            return
        if msg["type"] not in _VALUED or msg.get("_control_flow_done", False):
            return
        name = msg["name"]
        if name in self.values:
            msg["value"] = self.values[name]
        elif msg["type"] == "sample" and msg["value"] is None and self.draw is not None:
            msg["value"] = self.draw(name, msg["fn"], None)

    def _draw_step(self, msg: dict[str, Any]) -> Any:
        """The value of a site at one step of a scan."""
        if msg["value"] is not None or self.draw is None:
            return None
        return self.draw(msg["name"], msg["fn"], msg["infer"].get("_scan_current_index"))


def run(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    values: Mapping[str, Any],
    draw: Draw | None = None,
    key: Array | None = None,
    limits: Limits = (),
) -> Trace:
    """The trace of the program with these values; outer handlers do not see the run.

    **Arguments**: `draw`, for latent sites without a value; `key`, for those that `draw` leaves; `limits`,
    for sites whose scale is 0. A site with an improper prior, of which there are no draws, gets some
    value.
    """
    key = jax.random.key(0) if key is None else key
    known_limits = dict(limits)

    def value(name: str, fn: Any, step: Any) -> Any:
        if name in known_limits:
            return limit_of(name, known_limits[name], fn, trace)
        found = None if draw is None else draw(name, fn, step)
        return feasible(fn) if found is None and is_improper(fn) else found

    # A distribution of zero spread is the reference here, not a mistake.
    with numpyro.validation_enabled(False), handlers.block(), handlers.trace() as trace:
        Values(handlers.seed(model, key), values, value)(*args, **kwargs)
    return trace
