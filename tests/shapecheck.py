"""Check the shapes that annotations state, by beartype, and nothing else.

Bad arguments are for the library to refuse, with its own words; a checker of all types would refuse
them first. jaxtyping's import hook decorates every function, also those without arrays and those
defined inside others at each call, which took a quarter of the time of the tests: only functions
whose annotations state shapes ("..." is none) are decorated here.
"""

from functools import partial
from typing import Any, get_args

import beartype
import jaxtyping
from jaxtyping import AbstractArray

_decorate = jaxtyping.jaxtyped


def _is_shape(hint: Any) -> bool:
    if isinstance(hint, str):
        return False
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return hint.dim_str.strip() != "..."
    return any(_is_shape(part) for part in get_args(hint))


def shapes(function: Any) -> Any:
    """The function with its array annotations checked at every call."""
    annotations = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: hint for name, hint in annotations.items() if _is_shape(hint)}
    return beartype.beartype(function)


def _jaxtyped(thing: Any = None, *, typechecker: Any) -> Any:
    """The decorator that the import hook writes above every function and class."""
    if thing is None:
        return partial(_jaxtyped, typechecker=typechecker)
    function = getattr(thing, "__func__", getattr(thing, "fget", thing))
    if isinstance(thing, type) or any(
        map(_is_shape, getattr(function, "__annotations__", {}).values())
    ):
        return _decorate(thing, typechecker=typechecker)
    return thing


jaxtyping.jaxtyped = _jaxtyped
