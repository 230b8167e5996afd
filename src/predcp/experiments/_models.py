"""Models by name: each an importable function `run(cell, context) -> Result`."""

import importlib
from collections.abc import Callable
from typing import cast

from predcp._version import __version__
from predcp.experiments._cell import Cell
from predcp.experiments._result import Context, Result

Run = Callable[[Cell, Context], Result]

MODELS: dict[str, str] = {
    "empty": "predcp.experiments._empty:run",
    "ridge": "predcp.experiments._ridge:run",
    "logistic": "predcp.linear.cell:run",
    "resnet": "predcp.resnet.cell:run",
    "fewshot": "predcp.fewshot.cell:run",
}


class ModelUnavailable(LookupError):
    """No function runs this model here; the message names the model and the cure."""


def resolve_model(model: str) -> Run:
    """The function that runs a registered model, or `"module:function"` of the user's own."""
    entry = MODELS.get(model, model)
    module_name, separator, function_name = entry.partition(":")
    if not separator:
        known = ", ".join(MODELS)
        raise ModelUnavailable(
            f"no model is called {model!r}; there are: {known}; or give 'module:function'"
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A missing dependency of the module is another mistake and keeps its own message.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ModelUnavailable(_absent(model, module_name)) from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ModelUnavailable(f"the module {module_name!r} has no function {function_name!r}")
    return cast("Run", function)


def _absent(model: str, module_name: str) -> str:
    if model in MODELS:
        return f"the model {model!r} is not available in this version of predcp ({__version__})"
    return (
        f"cannot import {module_name!r} for the model {model!r}; start where the module lies, "
        "or put its folder on PYTHONPATH"
    )
