"""Small sets that come with scikit-learn and need no download."""

import numpy as np

from predcp.data._table import Table, Task

# Our name, scikit-learn's loader, and the kind of target.
BUNDLED: dict[str, tuple[str, Task]] = {
    "diabetes": ("load_diabetes", "regression"),
    "breast-wisconsin": ("load_breast_cancer", "binary"),
    "iris": ("load_iris", "multiclass"),
    "wine-cultivars": ("load_wine", "multiclass"),
    "digits": ("load_digits", "multiclass"),
}


def load_bundled(name: str) -> Table:
    """One of the `BUNDLED` sets."""
    from sklearn import datasets

    loader, task = BUNDLED[name]
    bunch = getattr(datasets, loader)()
    classes = () if task == "regression" else tuple(str(label) for label in bunch.target_names)
    kind = np.float64 if task == "regression" else np.int64
    names = tuple(str(feature) for feature in bunch.feature_names)
    features = np.asarray(bunch.data, dtype=np.float64)
    return Table(name, features, np.asarray(bunch.target, dtype=kind), names, task, classes)
