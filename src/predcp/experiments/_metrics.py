"""What a metric's name says: its part of the data, and which way is better."""

_LOWER_IS_BETTER = ("rmse", "mae", "nll", "loss", "error", "brier", "seconds")


def metric_name(part: str, metric: str) -> str:
    """Test metrics keep their name; the others carry their part's."""
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
