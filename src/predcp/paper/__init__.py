"""The reproduction of the paper: its experiments, tables and figures, and its known errors.

Importing it registers the paper's models and experiments with `predcp.experiments`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from predcp._support.extras import needs
from predcp.experiments import PublishedFigure
from predcp.paper._grids import EXPERIMENTS, MEDICAL, UCI
from predcp.paper._pooled_grids import CHOSEN, chosen_by, table3_pooled, table3_pooled_search
from predcp.paper._published import paper_figures, paper_notes
from predcp.paper._register import register

if TYPE_CHECKING:
    from predcp.paper._algorithm_1 import algorithm_1
    from predcp.paper._fewshot_comparison import compare_fewshot, comparison_table, read_scores
    from predcp.paper._fewshot_training import (
        Training,
        read_training,
        training_lines,
        training_picture,
    )
    from predcp.paper._horseshoe import horseshoe_variance
    from predcp.paper._layer_tables import depth_picture, depth_table, layer_table
    from predcp.paper._ridge import RidgeRegression

__all__ = [
    "CHOSEN",
    "EXPERIMENTS",
    "MEDICAL",
    "UCI",
    "PublishedFigure",
    "RidgeRegression",
    "Training",
    "algorithm_1",
    "chosen_by",
    "compare_fewshot",
    "comparison_table",
    "depth_picture",
    "depth_table",
    "horseshoe_variance",
    "layer_table",
    "paper_figures",
    "paper_notes",
    "read_scores",
    "read_training",
    "table3_pooled",
    "table3_pooled_search",
    "training_lines",
    "training_picture",
]

# They need JAX, which listing an experiment's cells does not.
_LATE = {
    "RidgeRegression": "_ridge",
    "Training": "_fewshot_training",
    "algorithm_1": "_algorithm_1",
    "compare_fewshot": "_fewshot_comparison",
    "comparison_table": "_fewshot_comparison",
    "depth_picture": "_layer_tables",
    "depth_table": "_layer_tables",
    "horseshoe_variance": "_horseshoe",
    "layer_table": "_layer_tables",
    "read_scores": "_fewshot_comparison",
    "read_training": "_fewshot_training",
    "training_lines": "_fewshot_training",
    "training_picture": "_fewshot_training",
}

register()


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'predcp.paper' has no attribute {name!r}")
    with needs("experiments"):
        return getattr(import_module(f"predcp.paper.{_LATE[name]}"), name)
