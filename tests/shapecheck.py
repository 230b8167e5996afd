"""Check the shapes that annotations state, by beartype, and nothing else.

Bad arguments are for the library to refuse, with its own words; a checker of all types would refuse
them first.
"""

from typing import Any, get_args

import beartype
from jaxtyping import AbstractArray


def _is_shape(hint: Any) -> bool:
    if isinstance(hint, str):
        return False
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(_is_shape(part) for part in get_args(hint))


def shapes(function: Any) -> Any:
    """The function with its array annotations checked at every call."""
    annotations = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: hint for name, hint in annotations.items() if _is_shape(hint)}
    return beartype.beartype(function)
