"""Which model for my table? predcp's and scikit-learn's on the same cross-validation folds.

`predcp.compare` and `predcp.Comparison` are public there.
"""

from predcp.comparison._compare import compare as compare
from predcp.comparison._compare import compare_file
from predcp.comparison._comparison import Comparison as Comparison
from predcp.comparison._models import MODEL_NAMES, default_models
from predcp.comparison._statistics import Difference, corrected_error

__all__ = [
    "MODEL_NAMES",
    "Difference",
    "compare_file",
    "corrected_error",
    "default_models",
]
