"""Experiments: declared as cells, run anywhere, resumed after anything, reported honestly."""

from predcp._support.saved import SavedModel, SavedModelError, load_model, save_model
from predcp.experiments._cell import Cell
from predcp.experiments._cell_data import cell_split, on_data, on_file
from predcp.experiments._convergence import flags, rank_normalised_rhat
from predcp.experiments._estimators import ESTIMATORS, EstimatorUnavailable, resolve_estimator
from predcp.experiments._execute import execute
from predcp.experiments._file_models import Fitted, fit_file, predict_file
from predcp.experiments._grid import experiment_cells, place_on_data
from predcp.experiments._models import MODELS, ModelUnavailable, resolve_model
from predcp.experiments._paper import PaperFigure, paper_figures, paper_notes
from predcp.experiments._progress import Lines, Live, Progress, Silent, choose_progress
from predcp.experiments._query import dataset, query
from predcp.experiments._record import CorruptRecord, Record
from predcp.experiments._report import report, write_report
from predcp.experiments._result import Context, Outcome, Result
from predcp.experiments._result_rows import result_rows
from predcp.experiments._run import ENGINES, engine_name, make_engine, run
from predcp.experiments._runner import Runner, Tally
from predcp.experiments._select import SelectionError, parse_numbers, select
from predcp.experiments._statistics import Pair, Row, Summary, mean_and_error, summarise
from predcp.experiments._store import DEFAULT_STORE, Records, Store, experiments
from predcp.experiments.tables import EXPERIMENTS

__all__ = [
    "DEFAULT_STORE",
    "ENGINES",
    "ESTIMATORS",
    "EXPERIMENTS",
    "MODELS",
    "Cell",
    "Context",
    "CorruptRecord",
    "EstimatorUnavailable",
    "Fitted",
    "Lines",
    "Live",
    "ModelUnavailable",
    "Outcome",
    "Pair",
    "PaperFigure",
    "Progress",
    "Record",
    "Records",
    "Result",
    "Row",
    "Runner",
    "SavedModel",
    "SavedModelError",
    "SelectionError",
    "Silent",
    "Store",
    "Summary",
    "Tally",
    "cell_split",
    "choose_progress",
    "dataset",
    "engine_name",
    "execute",
    "experiment_cells",
    "experiments",
    "fit_file",
    "flags",
    "load_model",
    "make_engine",
    "mean_and_error",
    "on_data",
    "on_file",
    "paper_figures",
    "paper_notes",
    "parse_numbers",
    "place_on_data",
    "predict_file",
    "query",
    "rank_normalised_rhat",
    "report",
    "resolve_estimator",
    "resolve_model",
    "result_rows",
    "run",
    "save_model",
    "select",
    "summarise",
    "write_report",
]
