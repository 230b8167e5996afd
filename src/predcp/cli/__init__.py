"""The command line `predcp`: one file per group of commands.

Commands import what they need when they run, so that `predcp --help` is quick.
"""

from predcp.cli import (
    _audit,
    _compare,
    _data,
    _explore,
    _fewshot,
    _figures,
    _fit,
    _results,
    _run,
    _store,
)
from predcp.cli._app import app, main

__all__ = ["app", "main"]

# In the order of the help page.
for group in (
    *(_audit, _compare, _fit, _data, _run, _results, _store),
    *(_figures, _fewshot, _explore),
):
    group.add_to(app)
