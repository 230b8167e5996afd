"""Read from the name of a metric its part of the data, and whether higher is better."""

_LOWER_IS_BETTER = ("rmse", "mae", "nll", "loss", "error", "brier", "seconds")
_TITLES = {
    "log_likelihood": "log likelihood",
    "accuracy": "accuracy (%)",
    "brier": "Brier score",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "calibration_error": "calibration error",
    "coverage_90": "coverage of 90% intervals",
    "r_squared": "R^2",
    "auc": "area under the ROC curve",
    "fit_seconds": "seconds per fit",
}
_PARTS = {"train_": "training rows", "validation_": "validation rows"}


def metric_title(name: str) -> str:
    """The name of a metric in words."""
    for prefix, part in _PARTS.items():
        if name.startswith(prefix):
            return f"{metric_title(name.removeprefix(prefix))}, {part}"
    return _TITLES.get(name, name.replace("_", " "))


def metric_name(part: str, metric: str) -> str:
    """Name of a metric in a table: metrics of other parts than the test part carry the name of the part."""
    return metric if part == "test" else f"{part}_{metric}"


def is_test_metric(name: str) -> bool:
    """Whether `metric_name` made it from the test part."""
    return not name.startswith(("train_", "validation_"))


def is_comparable(metric: str) -> bool:
    """Whether more or less of it is better; a coverage is best at its nominal level."""
    return "coverage" not in metric


def higher_is_better(metric: str) -> bool:
    """True but for errors and losses."""
    return not metric.endswith(_LOWER_IS_BETTER)
