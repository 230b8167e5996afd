"""Values that functions inside an object read: the hidden part of a cache key.

A compiled program keeps the values that a function read when it was traced. `reads` lists those
values: closure cells, defaults, globals, and all that is found from there. Everything counts by its
content: numbers and arrays by value, objects by what Python's own copy protocol says they are made
of, a user's functions and methods by what they read in turn. Modules and classes count by the
attributes that the code names. Immutable things (JAX arrays, functions of libraries) count by identity.

Where that is not possible (an open file, a lock, more than 64 megabytes, code that is evaluated from
a string), `reads` returns None: the caller must trace anew.
"""

import dis
import hashlib
import sys
from collections.abc import Iterable, Iterator
from copyreg import dispatch_table
from functools import lru_cache
from operator import itemgetter
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple
from weakref import ReferenceType

import jax
import numpy as np
from jax.tree_util import Partial, PyTreeDef

from predcp._support.arrays import is_array

# Nothing in their code changes between two calls; following their functions would take long.
_LIBRARIES = sys.stdlib_module_names - {"__main__"} | {
    *("equinox", "jax", "jaxlib", "jaxtyping", "numpy", "numpyro", "optax", "predcp", "scipy"),
    *("arviz", "flax", "haiku", "matplotlib", "pandas", "pyarrow", "sklearn", "torch", "xarray"),
}
_PLAIN = (bool, int, str, bytes, complex, type(None))
# Of larger contents a digest is kept; beyond these limits reading takes longer than tracing.
_COPIED_BYTES, _MOST_BYTES, _MOST_THINGS = 2**12, 2**26, 20_000
# With these, code reads what its names do not say.
_DYNAMIC = {"eval", "exec", "globals"}


class _Unknown(Exception):
    """The content of something cannot be told."""


class _Same:
    """An object that equals only itself; it is kept alive, so that its id stays unique."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any):
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and self.thing is other.thing


class _Names(NamedTuple):
    """What code looks up: globals, attributes (any string may be one), modules that it imports."""

    known: tuple[str, ...]
    attributes: tuple[str, ...]
    imported: tuple[str, ...]


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> _Names:
    """The names in code and in the functions defined in it."""
    found: tuple[dict[str, None], ...] = ({}, {}, {})
    for each in dis.get_instructions(code):
        if each.opcode in dis.hasname and not each.opname.startswith(("STORE", "DELETE")):
            is_known = "GLOBAL" in each.opname or each.opname == "LOAD_NAME"
            place = 0 if is_known else 2 if each.opname == "IMPORT_NAME" else 1
            found[place][each.argval] = None
    pending = list(code.co_consts)
    for constant in pending:
        if isinstance(constant, str):
            found[1][constant] = None
        elif isinstance(constant, tuple | frozenset):
            pending.extend(constant)
        elif isinstance(constant, CodeType):
            for own, inner in zip(found, _names(constant)):
                own.update(dict.fromkeys(inner))
    return _Names(*map(tuple, found))


def _is_library(module: Any) -> bool:
    return type(module) is str and module.partition(".")[0] in _LIBRARIES


class _Walk:
    """One pass over objects and functions, collecting what is read."""

    def __init__(self):
        self.found: list[Any] = []
        # Where each object was met first; they are kept alive, so that ids stay unique.
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []
        self.bytes = 0
        # Attributes that the code names, and the modules and classes in which they are looked up.
        self.names: dict[str, None] = {}
        self.spaces: list[tuple[Any, dict[str, Any]]] = []

    def finish(self) -> tuple[Any, ...]:
        """Look up every name in every module and class; each may lead to others."""
        done: list[int] = []
        place = 0
        while place < len(self.spaces):
            done += [0] * (len(self.spaces) - len(done))
            names = list(self.names)
            if done[place] < len(names):
                space, held = self.spaces[place]
                asked, done[place] = names[done[place] :], len(names)
                self.attributes(space, held, asked)
                # What was found may name attributes of the spaces before.
                place = 0 if len(self.names) > len(names) else place + 1
            else:
                place += 1
        return tuple(self.found)

    def visit(self, value: Any) -> None:
        """Record one value that is read."""
        kind = type(value)
        if kind is float:
            self.found.append(value.hex())
        elif kind in (str, bytes):
            self.content(kind, value.encode(errors="surrogatepass") if kind is str else value)
            if kind is str:
                self.names.setdefault(value)
        elif kind in _PLAIN:
            self.found.append((kind, value))
        elif kind is PyTreeDef:
            self.found.append(value)
        elif isinstance(value, ReferenceType):
            # What is held weakly is a cache.
            return
        elif id(value) in self.seen:
            self.found.append(("seen", self.seen[id(value)]))
        else:
            self.seen[id(value)] = len(self.seen)
            self.kept.append(value)
            if len(self.kept) > _MOST_THINGS:
                raise _Unknown
            self.new(value)

    def new(self, value: Any) -> None:
        """Record something that may hold other things, the first time that it is met."""
        kind: Any = type(value)
        if issubclass(kind, np.ndarray | np.generic) and kind.__module__ == "numpy":
            self.array(np.asarray(value))
        elif isinstance(value, jax.Array) or hasattr(kind, "__next__"):
            # Reading an iterator changes it: it is a counter, no input.
            self.found.append(_Same(value))
        elif kind in (tuple, list):
            self.found.append((kind, len(value)))
            for each in value:
                self.visit(each)
        elif issubclass(kind, dict | MappingProxyType) and _is_library(kind.__module__):
            self.found.append((kind, len(value)))
            for pair in value.items():
                self.visit(pair[0])
                self.visit(pair[1])
        elif kind is FunctionType:
            self.found.append(_Same(value))
            self.function(value)
        elif kind is MethodType:
            self.visit(value.__func__)
            self.visit(value.__self__)
        elif kind is BuiltinFunctionType:
            self.found.append(value.__name__)
            if isinstance(value.__self__, ModuleType | type):
                self.found.append(_Same(value))
            else:
                self.visit(value.__self__)
        elif isinstance(value, ModuleType):
            self.found.append(_Same(value))
            self.spaces.append((value, vars(value)))
        elif isinstance(value, type):
            self.found.append(_Same(value))
            for base in value.__mro__:
                if not _is_library(base.__module__):
                    self.spaces.append((base, dict(vars(base))))
                    for name, held in list(vars(base).items()):
                        # Python calls it without naming it.
                        if name.startswith("__") and isinstance(held, FunctionType):
                            self.visit(held)
        elif isinstance(value, Partial):
            # Its leaves are data, like the arrays of the map itself.
            self.visit(value.func)
        else:
            self.instance(value)

    def content(self, kind: Any, content: Any) -> None:
        size = memoryview(content).nbytes
        self.bytes += size
        if self.bytes > _MOST_BYTES:
            raise _Unknown
        small = size <= _COPIED_BYTES
        self.found.append((kind, bytes(content) if small else hashlib.blake2b(content).digest()))

    def array(self, array: np.ndarray) -> None:
        self.found.append((array.dtype, array.shape))
        if array.dtype.hasobject:
            self.visit(array.tolist())
        else:
            self.content("array", np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def function(self, function: FunctionType) -> None:
        for cell in function.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:
                # An empty cell.
                continue
            self.visit(held)
        for held in (function.__defaults__, function.__kwdefaults__, *vars(function).values()):
            self.visit(held)
        if _is_library(function.__module__):
            return
        names = _names(function.__code__)
        if not _DYNAMIC.isdisjoint(names.known):
            raise _Unknown
        self.names.update(dict.fromkeys(names.attributes))
        for name in names.known:
            if name in function.__globals__:
                self.visit(function.__globals__[name])
        for name in names.imported:
            self.visit(sys.modules.get(name))

    def instance(self, value: Any) -> None:
        """What an object is made of."""
        kind = type(value)
        self.visit(kind)
        if hasattr(kind, "trace_key"):
            # It says itself what of it a program depends on.
            self.found.append((_Same(value), value.trace_key))
            return
        library = _is_library(kind.__module__)
        if not library:
            self.visit(getattr(value, "__dict__", None))
        try:
            reduce = dispatch_table.get(kind, lambda whole: whole.__reduce_ex__(4))
            parts: Any = reduce(value)
        except Exception:
            if not (library and callable(value)):
                raise _Unknown from None
            # A compiled function: its author answers for what it holds, and for what it wraps.
            parts = ""
        if isinstance(parts, str):
            self.found.append(_Same(value))
            self.visit(getattr(value, "__wrapped__", None))
            return
        for part in parts:
            # Items of a list or a dictionary come as iterators.
            self.visit(list(part) if hasattr(type(part), "__next__") else part)

    def attributes(self, space: Any, held: dict[str, Any], names: Iterable[str]) -> None:
        """The attributes of a module or a class that the code names."""
        library = isinstance(space, ModuleType) and _is_library(space.__name__)
        for name in names:
            found = held.get(name)
            if found is None or (library and not _is_setting(found)):
                continue
            self.found.append(name)
            if isinstance(space, type):
                self.methods((found,))
            else:
                self.visit(found)

    def methods(self, found: Iterable[Any]) -> None:
        """Attributes of a class, with the functions behind properties."""
        for each in found:
            if isinstance(each, staticmethod | classmethod):
                self.visit(each.__func__)
            elif isinstance(each, property):
                self.methods((each.fget,))
            elif not isinstance(each, MemberDescriptorType | GetSetDescriptorType):
                self.visit(each)


def _is_setting(value: Any) -> bool:
    """Whether an attribute of a library's module may be a value (or a module) and not its code."""
    return isinstance(value, ModuleType) or not (isinstance(value, type) or callable(value))


def _held(thing: Any) -> Iterator[Any]:
    """What an object with fields holds beside its arrays and plain values, through its fields."""
    if not _is_library(type(thing).__module__):
        # A user's own class: its methods are traced as well.
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
                yield from _held(leaf)
            elif not (type(leaf) in _PLAIN or type(leaf) is float or is_array(leaf)):
                yield leaf


def _is_whole(value: Any) -> bool:
    return isinstance(value, Partial) or _has_fields(value)


def _has_fields(value: Any) -> bool:
    return hasattr(value, "tree_flatten") and hasattr(value, "__dict__")


def reads(*things: Any) -> tuple[Any, ...] | None:
    """A hashable list of what some functions, or the functions inside some objects, read now.

    None if that cannot be told.
    """
    walk = _Walk()
    try:
        for thing in things:
            if _has_fields(thing):
                for held in _held(thing):
                    walk.visit(held)
            else:
                walk.visit(thing)
        return walk.finish()
    except _Unknown:
        return None
