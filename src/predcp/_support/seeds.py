"""Seeds from scikit-learn's `random_state`."""

from typing import Any

import numpy as np

_MOST = 2**31


def seed_of(random_state: Any) -> int:
    """A seed: the number itself, or one drawn from a generator or from the system."""
    if isinstance(random_state, int | np.integer) and 0 <= random_state < _MOST:
        return int(random_state)
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(_MOST - 1))
    except ValueError as error:
        raise ValueError(
            "random_state must be a whole number from 0 to 2**32 - 1, a numpy.random.RandomState or "
            f"None, got {random_state!r}"
        ) from error
