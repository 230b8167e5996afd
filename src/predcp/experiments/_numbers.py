"""Format numbers for reading."""

import math


def rounded(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"


def plus_minus(mean: float, error: float | None) -> str:
    """`-0.579 ± 0.020`: the error with two digits, the mean to the same place."""
    if error is None or not math.isfinite(error) or not math.isfinite(mean):
        return rounded(mean)
    # Rounding alone leaves differences of equal values with a tiny error.
    if error <= 1e-12 * max(abs(mean), 1e-300):
        return f"{rounded(mean)} ± 0"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:.{places}f} ± {error:.{places}f}"
