"""Methods that compile themselves when called from plain Python, and once only."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import jax
from jax.core import Tracer


def compiled(*static: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a method of a pytree, keyed by its structure, unless it is being traced already.

    **Arguments**: positions of arguments that are static (`self` is 0 and must not be among them).
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        program = jax.jit(method, static_argnums=static)
        described = signature(method)

        @wraps(method)
        def call(self, *arguments: Any, **keywords: Any) -> Any:
            if keywords:
                # Static arguments are known by their position.
                arguments = described.bind(self, *arguments, **keywords).args[1:]
            if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((self, arguments))):
                return method(self, *arguments)
            return program(self, *arguments)

        return call

    return decorate
