"""Runs in a few-shot checkpoint (`predcp fewshot training`).

Accuracy on training and on validation classes, and scale and kappa of every module, at every
validation. The runs may be finished or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from predcp._support.checkpoint import KIND, history_of
from predcp._support.saved import load_model
from predcp.fewshot import network_from_config

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Training:
    """One run at every validation.

    **Arguments**
    - `prior`, `seed`, `shots`: which run it is.
    - `modules`: names; `iteration` `(looks,)`; `sigma` (a standard deviation) and `kappa` (nats an
        input): `(looks, modules)`.
    - `accuracy` on training and `validation_accuracy` on validation classes, in per cent:
        `(looks,)`.
    """

    prior: str
    seed: int
    shots: int
    modules: tuple[str, ...]
    iteration: np.ndarray
    sigma: np.ndarray
    kappa: np.ndarray
    accuracy: np.ndarray
    validation_accuracy: np.ndarray

    @property
    def selected(self) -> int:
        """The iteration that is best on validation classes."""
        return int(self.iteration[self.validation_accuracy.argmax()])

    def to_json(self) -> dict[str, Any]:
        """As plain values, numbers with five digits."""

        def rounded(values: Any) -> Any:
            if isinstance(values, list):
                return [rounded(value) for value in values]
            return float(f"{values:.5g}")

        names = ("sigma", "kappa", "accuracy", "validation_accuracy")
        return {
            "prior": self.prior,
            "seed": self.seed,
            "shots": self.shots,
            "modules": list(self.modules),
            "iteration": [int(x) for x in self.iteration],
            **{name: rounded(getattr(self, name).tolist()) for name in names},
        }

    @staticmethod
    def from_json(values: dict[str, Any]) -> Training:
        """The run that `to_json` wrote."""
        arrays = ("iteration", "sigma", "kappa", "accuracy", "validation_accuracy")
        held = {name: np.asarray(values[name]) for name in arrays}
        return Training(**{**values, **held, "modules": tuple(values["modules"])})


def read_training(path: str | Path) -> list[Training]:
    """Every run of a checkpoint; nothing of it is executed.

    **Arguments**: `path`, a file that training wrote (`*.checkpoint`).
    """
    saved = load_model(path, KIND)
    identity = saved.config["identity"]
    history = history_of(saved)
    runs = []
    for place, text in enumerate(identity["runs"]):
        prior, seed = _named(text)
        runs.append(
            Training(
                prior,
                seed,
                int(identity["settings"]["shots"]),
                network_from_config(identity["network"]).module_names,
                history["iteration"],
                history["sigma"][:, place],
                history["kappa"][:, place],
                100.0 * history["accuracy"][:, place],
                100.0 * history["validation_accuracy"][:, place],
            )
        )
    return runs


def _named(run: str) -> tuple[str, int]:
    """The prior's description and the seed, of a run as a checkpoint names it."""
    prior, _, seed = run.rpartition(" ")
    return prior, int(seed)


def training_picture(runs: Sequence[Training]) -> Figure:
    """One row per run: accuracies, scales and kappas against the iteration."""
    import matplotlib.pyplot as plt

    figure, rows = plt.subplots(
        len(runs),
        3,
        figsize=(10.0, 0.6 + 2.2 * len(runs)),
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey="col",
    )
    for (first, *panels), run in zip(rows, runs):
        first.plot(run.iteration, run.accuracy, color="#999999", label="training classes")
        first.plot(run.iteration, run.validation_accuracy, color="#000000", label="validation")
        first.set(ylabel="accuracy (%)", title=f"{run.prior}, {run.shots}-shot")
        names = ("scale $\\sigma_m$", "divergence $\\kappa_m$ (nats)")
        for panel, values, words in zip(panels, (run.sigma, run.kappa), names):
            for index, name in enumerate(run.modules):
                # Zero cannot be shown on a logarithmic scale.
                panel.plot(run.iteration, np.maximum(values[:, index], 1e-6), label=name)
            panel.set(ylabel=words, yscale="log")
        for panel in (first, *panels):
            panel.axvline(run.selected, color="grey", linestyle=":", linewidth=1.0)
    for panel in rows[0][:2]:
        panel.legend(fontsize="x-small", loc="best")
    for panel in rows[-1]:
        panel.set_xlabel("iteration")
    return figure


def training_lines(runs: Sequence[Training]) -> str:
    """The runs as lines: where each stands and what its modules do there."""
    lines = []
    for run in runs:
        look = int(run.validation_accuracy.argmax())
        scales = ", ".join(f"{name} {x:.2g}" for name, x in zip(run.modules, run.sigma[look]))
        lines.append(
            f"{run.prior}, seed {run.seed}: validation accuracy {run.validation_accuracy[look]:.2f} at "
            f"iteration {run.selected} of {int(run.iteration[-1])}, now "
            f"{run.validation_accuracy[-1]:.2f} (training {run.accuracy[-1]:.1f}); sigma there: {scales}"
        )
    return "\n".join(lines)
