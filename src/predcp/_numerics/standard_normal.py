"""Whether draws may be those of a standard normal distribution, as far as their moments tell."""

import numpy as np
from scipy.special import chdtrc, erfc

# Probability that draws of a standard normal distribution fail one of the tests.
_LEVEL = 1e-4


def may_be_standard_normal(draws: np.ndarray) -> bool:
    """Whether means are 0, variances 1 and correlations 0, within the error of this many draws.

    **Arguments**: `draws`, shape (draws, coordinates). Means and variances are tested by coordinate
    and for all together, correlations together. Half of the draws count, because they may be antithetic.
    """
    count, width = draws.shape
    half = max(count / 2.0, 1.0)
    means, squares = draws.mean(0), np.mean(draws**2, axis=0)
    found = [
        erfc(np.sqrt(half / 2.0) * np.max(np.abs(means))) * width,
        erfc(np.sqrt(half * width / 2.0) * np.abs(means.mean())),
        _two_sided(half, squares).min() * width,
        _two_sided(half * width, squares.mean()),
    ]
    if half > 4.0 and width > 1:
        correlations = np.corrcoef(draws.T)[np.triu_indices(width, 1)]
        scores = np.arctanh(np.clip(correlations, -1.0 + 1e-12, 1.0 - 1e-12)) ** 2 * (half - 3.0)
        found.append(chdtrc(scores.size, scores.sum()))
    return bool(min(found) > _LEVEL)


def _two_sided(freedom: float, squares: np.ndarray) -> np.ndarray:
    """Twice the smaller tail probability of mean squares of so many draws."""
    above = chdtrc(freedom, freedom * squares)
    return 2.0 * np.minimum(above, 1.0 - above)
