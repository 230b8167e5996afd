"""The experiment engine: run grids of cells anywhere, resume after any interruption, report.

It knows no model. Models register themselves with `register_model`, and experiments with
`register_experiment`; `import predcp.paper` registers those of the paper.
"""

from predcp.experiments._baseline import BASE_RATE, is_baseline
from predcp.experiments._cell import Cell, Setting
from predcp.experiments._cell_data import FILE_SETTINGS, cell_split, on_data, on_file
from predcp.experiments._convergence import flags, rank_normalised_rhat
from predcp.experiments._document import Block, Grid, Heading, Paragraph, Picture, write_document
from predcp.experiments._execute import execute
from predcp.experiments._experiments import (
    Experiment,
    Published,
    PublishedFigure,
    experiment_cells,
    find_experiment,
    register_experiment,
    registered_experiments,
    with_network,
)
from predcp.experiments._grid import place_on_data
from predcp.experiments._labels import prior_labels
from predcp.experiments._models import (
    CellModel,
    ModelUnavailable,
    register_model,
    registered_models,
    resolve_model,
)
from predcp.experiments._numbers import plus_minus, rounded
from predcp.experiments._pack import pack, unpack
from predcp.experiments._progress import Lines, Live, Progress, Silent, choose_progress
from predcp.experiments._query import query
from predcp.experiments._record import CorruptRecord, Record
from predcp.experiments._report import report, write_report
from predcp.experiments._result import Context, Outcome, Result, cells_name
from predcp.experiments._result_rows import result_rows
from predcp.experiments._run import ENGINES, engine_name, make_engine, run
from predcp.experiments._runner import Runner, Tally
from predcp.experiments._select import SelectionError, parse_numbers, select
from predcp.experiments._statistics import Pair, Row, Summary, mean_and_error, summarise
from predcp.experiments._store import DEFAULT_STORE, Records, Store, experiments, foreign_files

__all__ = [
    "BASE_RATE",
    "DEFAULT_STORE",
    "ENGINES",
    "FILE_SETTINGS",
    "Block",
    "Cell",
    "CellModel",
    "Context",
    "CorruptRecord",
    "Experiment",
    "Grid",
    "Heading",
    "Lines",
    "Live",
    "ModelUnavailable",
    "Outcome",
    "Pair",
    "Paragraph",
    "Picture",
    "Progress",
    "Published",
    "PublishedFigure",
    "Record",
    "Records",
    "Result",
    "Row",
    "Runner",
    "SelectionError",
    "Setting",
    "Silent",
    "Store",
    "Summary",
    "Tally",
    "cell_split",
    "cells_name",
    "choose_progress",
    "engine_name",
    "execute",
    "experiment_cells",
    "experiments",
    "find_experiment",
    "flags",
    "foreign_files",
    "is_baseline",
    "make_engine",
    "mean_and_error",
    "on_data",
    "on_file",
    "pack",
    "parse_numbers",
    "place_on_data",
    "plus_minus",
    "prior_labels",
    "query",
    "rank_normalised_rhat",
    "register_experiment",
    "register_model",
    "registered_experiments",
    "registered_models",
    "report",
    "resolve_model",
    "result_rows",
    "rounded",
    "run",
    "select",
    "summarise",
    "unpack",
    "with_network",
    "write_document",
    "write_report",
]
