"""Functions that are compiled when called from plain Python, once per structure and what they read."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import jax
from jax.core import Tracer

from predcp._support.reads import reads

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MOST_PROGRAMS = 256


class _Recent(OrderedDict[Hashable, Any]):
    """The programs used last."""

    def keep(self, key: Hashable, program: Any) -> None:
        self[key] = program
        self.move_to_end(key)
        while len(self) > _MOST_PROGRAMS:
            self.popitem(last=False)


def compiled(*static: int) -> Callable[[_Function], _Function]:
    """Compile a function of a pytree (or a method of one) unless it is being traced already.

    The program is kept for the structure of the pytree and all that the functions inside it read
    (`predcp._support.reads`): a changed global or closure compiles again. Where that cannot be told,
    each call traces anew, and compiles if the program has changed.

    **Arguments**: positions of arguments that are static.
    """

    def decorate(function: _Function) -> _Function:
        described = signature(function)
        programs, traced_anew = _Recent(), _Recent()

        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if keywords:
                # Static arguments are known by their position.
                arguments = described.bind(*arguments, **keywords).args
            if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
                return function(*arguments)
            key = reads(arguments[0])
            if key is None:
                return _run_anew(function, arguments, static, traced_anew)
            program = programs.get(key) or _Program(function, static)
            programs.keep(key, program)
            count = program.traces
            result = program.run(*arguments)
            if program.traces > count:
                # What tracing itself changes, such as a counter of calls, is no input.
                after = reads(arguments[0])
                if after is not None:
                    programs.keep(after, program)
            return result

        return cast(_Function, call)

    return decorate


class _Program:
    """A compiled function that knows how often it was traced."""

    def __init__(self, function: Callable[..., Any], static: tuple[int, ...]):
        self.traces = 0

        def counted(*arguments: Any) -> Any:
            self.traces += 1
            return function(*arguments)

        self.run = jax.jit(counted, static_argnums=static)


def _run_anew(
    function: Callable[..., Any], arguments: tuple[Any, ...], static: tuple[int, ...], kept: _Recent
) -> Any:
    """Trace a function and compile what comes of it, unless the same program is kept."""
    given = [None if place in static else each for place, each in enumerate(arguments)]
    leaves, structure = jax.tree.flatten(given)

    def of_leaves(*leaves: Any) -> Any:
        restored = jax.tree.unflatten(structure, leaves)
        return function(*(arguments[place] if place in static else restored[place]
                          for place in range(len(arguments))))  # fmt: skip

    lowered = jax.jit(of_leaves).lower(*leaves)
    text = hashlib.blake2b(lowered.as_text().encode()).digest()
    # The text leaves out arguments that nothing uses, but the program checks their shapes.
    shapes = tuple(jax.typeof(leaf) for leaf in leaves)
    key = (text, shapes, lowered.in_tree, lowered.out_tree)
    program = kept.get(key) or lowered.compile()
    kept.keep(key, program)
    return program(*leaves)
