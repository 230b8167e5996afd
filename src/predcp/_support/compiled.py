"""Functions that compile themselves when called from plain Python, once for what they read."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import jax
from jax.core import Tracer

from predcp._support.reads import reads


def compiled(*static: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function of a pytree (or a method of one) unless it is being traced already.

    The program is kept for the structure of the pytree and for all that the functions inside it
    read (`predcp._support.reads`): a changed global or closure compiles anew.

    **Arguments**: positions of arguments that are static (0, the pytree, must not be among them).
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def keyed(_: Any, *arguments: Any) -> Any:
            return function(*arguments)

        program = jax.jit(keyed, static_argnums=(0, *(place + 1 for place in static)))
        described = signature(function)

        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if keywords:
                # Static arguments are known by their position.
                arguments = described.bind(*arguments, **keywords).args
            if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
                return function(*arguments)
            return program(reads(arguments[0]), *arguments)

        return call

    return decorate
