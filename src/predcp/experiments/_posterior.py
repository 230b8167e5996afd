"""Posterior draws as an ArviZ-readable netCDF file."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def posterior_bytes(draws: Mapping[str, np.ndarray]) -> bytes:
    """The netCDF file of draws `(chains, draws, ...)` by variable, group `posterior`."""
    import arviz_base

    for name, values in draws.items():
        if np.ndim(values) < 2:
            raise ValueError(
                f"posterior[{name!r}] must have shape (chains, draws, ...), got {np.shape(values)}"
            )
    tree = arviz_base.from_dict({"posterior": {name: np.asarray(v) for name, v in draws.items()}})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        tree.to_netcdf(path, engine="h5netcdf")
        return path.read_bytes()
