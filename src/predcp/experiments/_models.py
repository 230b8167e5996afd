"""Models of cells: their protocol and their registry."""

import importlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from predcp.experiments._cell import Cell
from predcp.experiments._result import Context, Result

Run = Callable[[Cell, Context], Result]
RunMany = Callable[[Sequence[Cell], Context], list[Result]]
GroupOf = Callable[[Cell], Hashable]


def all_but_split(cell: Cell) -> Hashable:
    """The group of cells that differ in their split alone."""
    return tuple(
        tuple(sorted(value.items())) if isinstance(value, dict) else value
        for name, value in sorted(cell.to_json().items())
        if name != "split"
    )


@dataclass(frozen=True)
class CellModel:
    """How the engine fits the cells of one model.

    **Arguments:**

    - `run(cell, context)`: fit one cell.
    - `run_many(cells, context)`: fit cells of one group in one program, results in their order;
        None if the model fits one cell at a time.
    - `group_of(cell)`: cells with equal groups may share a program.
    - `together`: the largest number of cells in one program; None for no limit.
    """

    run: Run
    run_many: RunMany | None = None
    group_of: GroupOf = all_but_split
    together: int | None = None


class ModelUnavailable(LookupError):
    """Error: no such model is registered or importable; the message says what to do."""


# Names to "module:attribute": a model's module is imported when its first cell runs.
_SOURCES: dict[str, str] = {}


def register_model(name: str, source: str) -> None:
    """Register a model, so that cells can name it.

    **Arguments:** `source`, `"module:attribute"` of a `CellModel` or of a function
    `run(cell, context)`. Worker processes import it too, so it must be importable there.
    """
    if not all(source.partition(":")):
        raise ValueError(f"source must be 'module:attribute', got {source!r}")
    _SOURCES[name] = source


def registered_models() -> Mapping[str, str]:
    """The sources of the registered models by name."""
    return dict(_SOURCES)


def resolve_model(name: str) -> CellModel:
    """The model registered under a name, or the one at `"module:attribute"`."""
    module_name, separator, attribute = _SOURCES.get(name, name).partition(":")
    if not separator:
        known = ", ".join(_SOURCES) or "none"
        raise ModelUnavailable(
            f"no model is called {name!r}; registered are: {known}; import the module that "
            "registers it, or give 'module:function'"
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A missing dependency of the module is another error and keeps its own message.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ModelUnavailable(
            f"cannot import {module_name!r} for the model {name!r}; start in the folder of the "
            "module, or put that folder on PYTHONPATH"
        ) from None
    found = getattr(module, attribute, None)
    if isinstance(found, CellModel):
        return found
    if not callable(found):
        raise ModelUnavailable(f"the module {module_name!r} has no model {attribute!r}")
    return CellModel(run=cast("Run", found))
