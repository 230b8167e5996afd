"""Scale and complexity of each module over training, as a table and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp.fewshot._fit import Fit
from predcp.fewshot._networks import module_sizes

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ModuleReport:
    """Scale and complexity of every module over training.

    **Arguments**
    - `modules`: names; `sizes`: how many parameters each has.
    - `iteration`: `(rows,)`, one per validation.
    - `sigma` (a standard deviation) and `kappa` (nats per input, as in appendix D): `(rows, modules)`.
    - `selected`: the iteration whose parameters are kept.
    """

    modules: tuple[str, ...]
    sizes: tuple[int, ...]
    iteration: np.ndarray
    sigma: np.ndarray
    kappa: np.ndarray
    selected: int

    @property
    def _kept_row(self) -> int:
        """Index of the kept iteration among those recorded."""
        return min(int(np.searchsorted(self.iteration, self.selected)), len(self.iteration) - 1)

    @property
    def table(self) -> pandas.DataFrame:
        """One row per module: its size, scale and kappa at the iteration kept, and its first kappa."""
        import pandas

        columns = {
            "parameters": list(self.sizes),
            "sigma": self.sigma[self._kept_row],
            "kappa": self.kappa[self._kept_row],
            "first_kappa": self.kappa[0],
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.modules, name="module"))

    def __str__(self) -> str:
        table = self.table.to_string(float_format=_number)
        return (
            f"{table}\n\nat iteration {int(self.iteration[self._kept_row])}, the one that is kept"
        )

    def _repr_html_(self) -> str:
        return self.table.to_html(float_format=_number)

    def plot(self, axes: Any = None) -> Figure:
        """Sigma and kappa of every module against the iteration, on logarithmic scales.

        **Arguments**: `axes`, two matplotlib axes; new ones if None.
        """
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, 2, figsize=(9.0, 3.5), layout="constrained")
        for panel, values, words in zip(
            axes, (self.sigma, self.kappa), ("scale $\\sigma_m$", "divergence $\\kappa_m$ (nats)")
        ):
            for index, name in enumerate(self.modules):
                panel.plot(self.iteration, values[:, index], label=name)
            panel.axvline(self.selected, color="grey", linestyle=":", linewidth=1.0)
            panel.set(xlabel="iteration", ylabel=words, yscale="log")
        axes[0].legend(fontsize="small")
        return axes[0].figure


def module_report(fit: Fit, run: int = 0) -> ModuleReport:
    """The report of one run.

    **Arguments**: `run`, its place among the runs of the fit.
    """
    if not 0 <= run < len(fit.trainer.runs):
        raise ValueError(f"run must be 0 to {len(fit.trainer.runs) - 1}, got {run}")
    sizes = module_sizes({name: _first(own) for name, own in fit.best.theta.items()})
    names = fit.trainer.network.module_names
    return ModuleReport(
        names,
        tuple(sizes[name] for name in names),
        fit.history["iteration"],
        fit.history["sigma"][:, run],
        fit.history["kappa"][:, run],
        int(fit.iteration[run]),
    )


def _first(own: dict[str, Any]) -> dict[str, Any]:
    return {name: leaf[0] for name, leaf in own.items()}


def _number(value: float) -> str:
    return f"{value:.3g}"
