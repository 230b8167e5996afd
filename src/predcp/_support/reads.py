"""What the functions inside an object read: the part of a cache key that Python does not show.

A compiled program keeps the values that a function read when it was traced. `reads` lists those
values: closure cells, defaults, globals, and the attributes of global modules and objects that
the code names, through plain Python functions. Plain values and small NumPy arrays count by
value, everything else by identity. Left out are functions of installed numerical libraries, and
variables that a function assigns itself, such as a counter of its calls.
"""

import dis
from collections.abc import Iterator
from functools import lru_cache, partial
from operator import itemgetter
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial, PyTreeDef

from predcp._support.arrays import is_array

_LIBRARIES = frozenset(
    ("builtins", "equinox", "jax", "jaxlib", "jaxtyping", "math", "numpy", "numpyro", "predcp", "scipy")
)  # fmt: skip
_PLAIN = (bool, int, str, bytes, complex, type(None))
# Larger NumPy arrays count by identity: comparing them would take longer than the program.
_MOST_BYTES = 2**12


class _Same:
    """A thing that equals only itself; it is kept alive, so that its identity stays its own."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any):
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and self.thing is other.thing


@lru_cache(maxsize=4096)
def _assigned(code: CodeType) -> frozenset[str]:
    """Globals and variables of outer functions that the code assigns: counters, not inputs."""
    stores = ("STORE_GLOBAL", "STORE_DEREF")
    found = {each.argval for each in dis.get_instructions(code) if each.opname in stores}
    return frozenset(found)


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> tuple[str, ...]:
    """Every global and attribute that the code, or a function defined in it, names."""
    found = {name: None for name in code.co_names if name not in _assigned(code)}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(_names(constant)))
    return tuple(found)


def _is_library(module: Any) -> bool:
    return type(module) is str and module.partition(".")[0] in _LIBRARIES


def _value(value: Any) -> Any | None:
    """A hashable stand-in for a plain value or an array, None for anything else."""
    kind = type(value)
    if kind is float:
        return value.hex()
    if kind in _PLAIN:
        return kind, value
    if kind is PyTreeDef:
        return value
    if isinstance(value, np.ndarray) and value.nbytes <= _MOST_BYTES and value.dtype != object:
        return value.dtype, value.shape, value.tobytes()
    if is_array(value):
        return _Same(value)
    return None


class _Walk:
    """One pass over an object and the functions it holds, collecting what they read."""

    def __init__(self):
        self.found: list[Any] = []
        self.seen: set[int] = set()

    def visit(self, value: Any, names: tuple[str, ...] = ()) -> None:
        """Record one value that a function reads; `names` are what its code may ask of it."""
        plain = _value(value)
        if plain is not None:
            self.found.append(plain)
            return
        if isinstance(value, ModuleType):
            self.found.append(_Same(value))
            if not _is_library(value.__name__):
                self.attributes(vars(value), names)
            return
        by_parts = isinstance(value, tuple | list | dict | Partial)
        self.found.append(type(value) if by_parts or _by_value(value) else _Same(value))
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        if isinstance(value, tuple | list):
            for each in value:
                self.visit(each, names)
        elif isinstance(value, dict):
            for name, each in value.items():
                self.found.append(name if isinstance(name, str) else _Same(name))
                self.visit(each, names)
        elif isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, MethodType):
            self.visit(value.__func__)
            self.visit(value.__self__, _names(value.__func__.__code__))
        elif isinstance(value, partial):
            self.visit(value.func)
            # What a pytree holds is data, as the arrays of the map itself are.
            if not isinstance(value, Partial):
                self.visit(value.args)
                self.visit(value.keywords)
        elif not isinstance(value, BuiltinFunctionType):
            self.instance(value, names)

    def function(self, function: FunctionType) -> None:
        names = _names(function.__code__)
        assigned = _assigned(function.__code__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name in assigned:
                continue
            try:
                self.visit(cell.cell_contents, names)
            except ValueError:
                # A cell that is not filled yet.
                continue
        for default in function.__defaults__ or ():
            self.visit(default, names)
        for default in (function.__kwdefaults__ or {}).values():
            self.visit(default, names)
        if _is_library(function.__module__):
            return
        known = function.__globals__
        for name in names:
            if name in known:
                self.visit(known[name], names)

    def instance(self, value: Any, names: tuple[str, ...]) -> None:
        """Attributes that the code names, and the call of a callable object."""
        held = getattr(value, "__dict__", None)
        if held is None:
            return
        kind = value if isinstance(value, type) else type(value)
        library = _is_library(kind.__module__)
        calls = (vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base))
        call = None if library or isinstance(value, type) else next(calls, None)
        if isinstance(call, FunctionType):
            self.visit(call)
            names = (*names, *_names(call.__code__))
        self.attributes(held, names)
        if _by_value(value):
            for each in held.values():
                self.visit(each, names)

    def attributes(self, held: Any, names: tuple[str, ...]) -> None:
        for name in names:
            if name in held:
                plain = _value(held[name])
                if plain is not None:
                    self.found.append((name, plain))


def _functions(thing: Any) -> Iterator[Any]:
    """The functions that an object with fields holds, through the objects in its fields."""
    if not _is_library(type(thing).__module__):
        # A class of the user's own: its methods are traced as well.
        for base in type(thing).__mro__:
            if not _is_library(base.__module__):
                yield from (held for held in vars(base).values() if isinstance(held, FunctionType))
    # A copy of a map may hold its fields in another order.
    for _, value in sorted(vars(thing).items(), key=itemgetter(0)):
        kind = type(value)
        if kind in _PLAIN or kind is float or is_array(value):
            continue
        for leaf in jax.tree.leaves(value, is_leaf=_is_whole):
            if _has_fields(leaf):
                yield from _functions(leaf)
            elif callable(leaf):
                yield leaf


def _is_whole(value: Any) -> bool:
    return isinstance(value, Partial) or _has_fields(value)


def _by_value(value: Any) -> bool:
    """Frozen dataclasses are what they hold."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and not hasattr(value, "tree_flatten")


def _has_fields(value: Any) -> bool:
    return hasattr(value, "tree_flatten") and hasattr(value, "__dict__")


def reads(*things: Any) -> tuple[Any, ...]:
    """A hashable list of what some functions, or the functions inside some objects, read now."""
    walk = _Walk()
    for thing in things:
        if _has_fields(thing):
            for function in _functions(thing):
                walk.visit(function, ("rules_added",))
        elif callable(thing):
            walk.visit(thing)
    return tuple(walk.found)
