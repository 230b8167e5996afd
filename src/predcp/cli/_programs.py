"""Programs that the user names on the command line, and the columns that are their arguments."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from predcp.cli._errors import USAGE, fail
from predcp.cli._options import file_options


def load_program(name: str) -> Callable[..., Any]:
    """The function that `module:function` or `file.py:function` names.

    The user names code of her own here; nothing that is uploaded or stored is ever run.
    """
    module_name, colon, function_name = name.rpartition(":")
    if not colon:
        fail(f"PROGRAM must be module:function or file.py:function, got {name!r}", USAGE)
    sys.path.insert(0, os.getcwd())
    if module_name.endswith(".py"):
        path = Path(module_name)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        sys.path.insert(0, str(path.resolve().parent))
        module_name = path.stem
    try:
        module = importlib.import_module(module_name)
    except SyntaxError as error:
        where = f"line {error.lineno} of {error.filename}"
        raise LookupError(
            f"module {module_name!r} cannot be imported: {error.msg}, {where}"
        ) from error
    except ModuleNotFoundError as error:
        raise LookupError(f"module {module_name!r} cannot be imported: {error}") from error
    if not callable(getattr(module, function_name, None)):
        raise LookupError(f"{module_name} has no function {function_name!r}")
    return getattr(module, function_name)


def read_columns(path: Path, separator: str | None, encoding: str | None) -> dict[str, Any]:
    """The columns of a file as arrays of numbers; text is coded from 0."""
    import numpy as np

    from predcp.data import read_frame

    frame = read_frame(path, file_options(separator=separator, encoding=encoding))
    columns: dict[str, Any] = {}
    for name, column in frame.items():
        if column.isna().any():
            missing = int(column.isna().sum())
            raise ValueError(
                f"column {name!r} has {missing} missing values; fill or drop them first"
            )
        if column.dtype.kind in "iufb":
            columns[str(name)] = column.to_numpy()
        else:
            columns[str(name)] = np.unique(column.astype(str).to_numpy(), return_inverse=True)[1]
    return columns


def match_arguments(
    model: Callable[..., Any], columns: dict[str, Any], program: str
) -> dict[str, Any]:
    """The columns that the program's arguments name."""
    parameters = inspect.signature(model).parameters
    found: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in columns:
            found[name] = columns[name]
        elif name == "data" and columns:
            found[name] = columns
        elif parameter.default is parameter.empty:
            known = ", ".join(columns) or "none; give a file with --data"
            fail(
                f"{program} needs an argument {name!r}, and there is no such column: {known}", USAGE
            )
    return found


def require_indices(model: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Refuse an index beyond its array: JAX would take the last entry without a word."""
    import jax
    from jax.experimental import checkify
    from numpyro import handlers

    def run() -> None:
        handlers.seed(model, jax.random.key(0))(**arguments)

    try:
        found = jax.jit(checkify.checkify(run, errors=checkify.index_checks))()[0].get()
    except Exception:  # The audit runs the program again and says what is wrong.
        return
    if found:
        raise ValueError(
            f"{found.splitlines()[0].rstrip('. ')}. Columns of numbers are passed as they are, and "
            "indices count from 0; a column of text is coded from 0"
        )
