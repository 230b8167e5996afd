"""Train runs to the end, with validation, checkpoints and progress."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from predcp._support.checkpoint import Checkpoint, digest
from predcp._support.paused import Paused
from predcp.fewshot._episodes import Pool
from predcp.fewshot._networks import Network
from predcp.fewshot._objective import Meta
from predcp.fewshot._runs import Run
from predcp.fewshot._settings import Settings
from predcp.fewshot._train import State, Trainer, put_back, some_of

# Seconds between checkpoints, the most that an interruption can lose.
_CHECKPOINT_SECONDS = 60.0
History = dict[str, list[Any]]
# Iterations of one call on a CPU.
_FEW = 5
# Called with the iterations done, their total, and every run's accuracy on validation tasks (NaN
# before there is any).
ReportProgress = Callable[[int, int, np.ndarray], None]


@dataclass(frozen=True)
class Fit:
    """Result of training, for every run.

    **Arguments**
    - `best`: the parameters kept, with a leading axis of runs; `iteration`, when they were found;
        `validation_accuracy`, their accuracy (a fraction; NaN without validation classes).
    - `history`: one row per validation: `iteration` `(rows,)`; `sigma` and `kappa` `(rows, runs, modules)`;
        `loss`, `accuracy`, `validation_accuracy`, `validation_log_likelihood` `(rows, runs)`.
    - `iterations` done and `seconds` spent in training here, without compilation and validation.
    """

    trainer: Trainer
    best: Meta
    iteration: np.ndarray
    validation_accuracy: np.ndarray
    history: dict[str, np.ndarray]
    iterations: int
    seconds: float

    @property
    def diverged(self) -> np.ndarray:
        """Runs whose parameters are no longer numbers at the end."""
        return ~np.isfinite(self.history["loss"][-1])


def fit_runs(
    network: Network,
    settings: Settings,
    runs: Sequence[Run],
    train: Pool,
    validation: Pool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    devices: Sequence[Any] | None = None,
    report_progress: ReportProgress | None = None,
    seconds: float | None = None,
) -> Fit:
    """Train runs side by side in one program.

    Apart from rounding, a run's result does not depend on the other runs. Runs that have stopped (see
    `Settings.patience`) are removed from the program a third at a time. After an interruption with a
    checkpoint, the same call resumes; on a CPU it gives the same bits.

    **Arguments**: as `Trainer`'s; `checkpoint`, a file; `report_progress`, see `ReportProgress`; `seconds`,
    after which to stop with `Paused`.
    """
    trainer = Trainer(network, settings, runs, train, validation, devices)
    state, history, finished = trainer.start(), _empty_history(), False
    saved = None
    if checkpoint is not None:
        saved = Checkpoint(checkpoint, identity(trainer))
        found = saved.load(state)
        if found is not None:
            state = trainer.placed(found[0])
            finished = bool(found[1]["finished"])
            history = {name: list(values) for name, values in found[2].items()}
    spent, started, written = 0.0, time.monotonic(), time.monotonic()
    reported = started

    def show(iteration: int, last: bool = False) -> None:
        """Report at the end of a chunk, and within it every second."""
        nonlocal reported
        if report_progress is None or not (last or time.monotonic() - reported > 1.0):
            return
        known = history.get("validation_accuracy") or history["accuracy"]
        accuracy = known[-1] if known else np.full(len(runs), math.nan)
        report_progress(iteration, settings.iterations, accuracy)
        reported = time.monotonic()

    try:
        while not finished:
            began = time.perf_counter()
            done = int(state.iteration)
            length = min(settings.validate_every, settings.iterations - done)
            places = trainer.working(state)
            part = trainer.narrowed(places)
            advanced, means = _advanced(part, some_of(state, places), length, show)
            spent += time.perf_counter() - began
            looked, seen = part.selected(advanced)
            record(history, part, looked, means | seen, places)
            state = put_back(state, looked, places)
            finished = _over(settings, state)
            show(int(state.iteration), last=True)
            late = time.monotonic() - written > _CHECKPOINT_SECONDS
            over = seconds is not None and time.monotonic() - started > seconds
            if saved is not None and (finished or late or over):
                _save(saved, state, history, finished)
                written = time.monotonic()
            if over and not finished:
                raise Paused(
                    f"stopped after {seconds:g} s at iteration {int(state.iteration)} of "
                    f"{settings.iterations}; run the same again to go on"
                )
    except Paused:
        raise
    except KeyboardInterrupt:
        if saved is not None and int(state.iteration) > 0:
            _save(saved, state, history, False)
        raise
    accuracy = np.asarray(state.best_accuracy, np.float64)
    return Fit(
        trainer,
        state.best,
        np.asarray(state.best_iteration),
        np.where(accuracy < 0.0, math.nan, accuracy),
        {name: np.asarray(values) for name, values in history.items()},
        int(state.iteration),
        spent,
    )


def _advanced(
    part: Trainer, state: State, length: int, show: Callable[[int], None]
) -> tuple[State, dict[str, Any]]:
    """As `Trainer.advance`, on a CPU a few iterations at a time, so that progress is seen."""
    few = length
    if jax.default_backend() == "cpu":
        # Pieces of one length: each length is compiled.
        few = max(n for n in range(1, min(length, _FEW) + 1) if length % n == 0)
    means = []
    for done in range(0, length, few):
        if done:
            show(int(state.iteration))
        state, mean = part.advance(state, few)
        means.append(mean)
    jax.block_until_ready(state)
    return state, jax.tree.map(lambda *parts: sum(parts) / len(parts), *means)


def _save(checkpoint: Checkpoint, state: State, history: History, finished: bool) -> None:
    # An interrupt may come between a validation and the update of the state.
    known = sum(number <= int(state.iteration) for number in history["iteration"])
    seen = {name: np.asarray(values[:known]) for name, values in history.items()}
    checkpoint.save(state, {"finished": finished}, seen)


def identity(trainer: Trainer) -> dict[str, Any]:
    """The identity of a fit: everything that determines its result, as plain values."""
    train, validation = trainer.train, trainer.validation
    return {
        "network": trainer.network.to_config(),
        "settings": trainer.settings.to_config(),
        "runs": [f"{run.prior.description} {run.seed}" for run in trainer.runs],
        "rates": [None if run.rates is None else list(run.rates) for run in trainer.runs],
        "train": digest(train.examples, train.members, train.mean, train.deviation),
        "validation": None
        if validation is None
        else digest(validation.examples, validation.members),
    }


def record(
    history: History, trainer: Trainer, state: State, seen: dict[str, Any], places: list[int]
) -> None:
    """Add one validation to the history; runs that are no longer trained keep their last figures.

    **Arguments**: `trainer` and `state` of the runs at `places`.
    """
    history["iteration"].append(int(state.iteration))
    sigma = np.exp(np.asarray(state.meta.log_sigma))
    for name, values in {"sigma": sigma, "kappa": trainer.kappa(state.meta), **seen}.items():
        earlier = history.setdefault(name, [])
        whole = np.array(earlier[-1] if earlier else values)
        whole[places] = values
        earlier.append(whole)


def _empty_history() -> History:
    return {"iteration": [], "sigma": [], "kappa": [], "loss": [], "accuracy": []}


def _over(settings: Settings, state: State) -> bool:
    if int(state.iteration) >= settings.iterations:
        return True
    return settings.patience is not None and bool(
        np.all(np.asarray(state.stale) >= settings.patience)
    )
