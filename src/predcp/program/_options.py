"""Functions that take a program's arguments next to options of their own."""

from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def refuse_ambiguous_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse a keyword that could be meant for the function or for the program.

    `function(model, ..., *args, option=..., **kwargs)` passes `args` and `kwargs` on to the program.
    """
    described = signature(function).parameters.values()
    options = {each.name for each in described if each.kind is Parameter.KEYWORD_ONLY}
    own = sum(each.kind is Parameter.POSITIONAL_ONLY for each in described)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        given = options & set(kwargs)
        both = given and given & _open_arguments(args[0], len(args) - own)
        if both:
            name = min(both)
            raise ValueError(
                f"{name}= is an option of {function.__name__} and an argument of the program: pass the "
                f"program's by position, or fix it with functools.partial(model, {name}=...)"
            )
        return function(*args, **kwargs)

    return call


def _open_arguments(model: Any, count: int) -> set[str]:
    """Arguments of a program that keywords may give, after those given by position."""
    try:
        parameters = list(signature(model).parameters.values())
    except (TypeError, ValueError):
        return set()
    fixed = set(model.keywords) if isinstance(model, partial) else set()
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return {
        each.name
        for place, each in enumerate(parameters)
        if each.kind in named
        and each.name not in fixed
        and (place >= count or each.kind is Parameter.KEYWORD_ONLY)
    }
