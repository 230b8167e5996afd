"""The compiled programs behind the estimators, for training many networks in one program.

`predcp.paper` fits all splits and priors of a data set with them; see `Programs`.
"""

from predcp.resnet._layers import ALIVE, LayerFigures, layer_program
from predcp.resnet._objective import log_precision
from predcp.resnet._predictive import predictor
from predcp.resnet._rows import row_prior
from predcp.resnet._scores import class_scores, regression_scores
from predcp.resnet._sharding import over_devices
from predcp.resnet._training import Data, Optimiser, Programs, State, programs, seed_words

__all__ = [
    "ALIVE",
    "Data",
    "LayerFigures",
    "Optimiser",
    "Programs",
    "State",
    "class_scores",
    "layer_program",
    "log_precision",
    "over_devices",
    "predictor",
    "programs",
    "regression_scores",
    "row_prior",
    "seed_words",
]
