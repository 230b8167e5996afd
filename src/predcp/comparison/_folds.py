"""Repeated cross-validation: the same folds for every model."""

import numpy as np

from predcp.comparison._models import REGRESSION


def check_folds(target: np.ndarray, task: str, class_names: tuple[str, ...], folds: int) -> None:
    """Raise an error if a table is too small for the number of folds."""
    if task == REGRESSION:
        if len(target) < 2 * folds:
            raise ValueError(f"folds must be at most {len(target) // 2} for {len(target)} rows")
        return
    counts = np.bincount(target, minlength=len(class_names))
    if counts.min() < folds:
        rare = class_names[int(np.argmin(counts))]
        if counts.min() < 2:
            shown = "one row" if counts.min() == 1 else "no row that counts"
            raise ValueError(
                f"the class {rare} has {shown}, and every fold needs one of each class; leave the "
                "class out or join it with another"
            )
        raise ValueError(
            f"folds must be at most {counts.min()}: the class {rare} has {counts.min()} rows, and "
            "every fold needs one of each class; leave rare classes out or join them"
        )


def fold_rows(
    target: np.ndarray, task: str, folds: int, seed: int, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training and for testing of one fold.

    **Arguments:** `number` counts the folds of all repeats from 0. Folds have each class in the
    proportions of the table.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    repeat, fold = divmod(number, folds)
    state = int(np.random.SeedSequence((seed, repeat)).generate_state(1)[0])
    rule = KFold if task == REGRESSION else StratifiedKFold
    splits = rule(folds, shuffle=True, random_state=state).split(np.zeros(len(target)), target)
    return list(splits)[fold]
