"""One fit from start to end: chunks of epochs, progress, early stopping, checkpoints."""

import math
import os
import time
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._support.checkpoint import Checkpoint
from predcp._support.pace import Pace
from predcp._support.progress import Progress, as_report
from predcp.resnet._fingerprint import fingerprint
from predcp.resnet._objective import Model, Objective, log_precision, observed
from predcp.resnet._posterior import Posterior
from predcp.resnet._predictive import predictor
from predcp.resnet._training import Data, Optimiser, State, programs, seed_words

_EVALUATIONS = 50
_VALIDATION_SAMPLES = 50


@dataclass(frozen=True)
class Stopping:
    """When to stop before the last epoch.

    **Arguments**
    - `x`, `y`: standardised rows set aside, (N, D) and (N,).
    - `patience`: evaluations of their log likelihood without improvement before training stops.
    """

    x: Array
    y: Array
    patience: int


class Fitted(NamedTuple):
    """The result of a fit.

    **Arguments**
    - `posterior`: the last one, or the best on the rows set aside.
    - `history`: one row per evaluation: epochs, log likelihood, divergence, log p(tau), and the log
        likelihood of the rows set aside (NaN without any).
    """

    posterior: Posterior
    history: np.ndarray


def fit(
    model: Model,
    optimiser: Optimiser,
    data: Data,
    objective: Objective,
    epochs: int,
    batch: int,
    seed: int,
    report_progress: Progress | None = None,
    stopping: Stopping | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Fitted:
    """Train one network.

    **Arguments**: `report_progress(done, total)` is called with epochs, about every second;
    `checkpoint` is a file that is written at every evaluation, and resumed from where it exists.
    """
    program = programs(model, optimiser, batch, many=False)
    (prior,) = model.priors
    state = program.start(seed_words(seed), jnp.float32(math.log(prior.start)))
    best, history, waited = state.posterior, np.zeros((0, 5)), 0
    saved = None
    if checkpoint is not None:
        name = fingerprint(
            (model,),
            (optimiser,),
            data,
            objective,
            epochs,
            batch,
            seed,
            () if stopping is None else (stopping.x, stopping.y, stopping.patience),
        )
        saved = Checkpoint(checkpoint, {"fit": name})
        found = saved.load((state, best))
        if found is not None:
            (state, best), notes, kept = found
            history, waited = kept["looks"], int(notes["waited"])
    # The state is donated to the next step, so copy what is kept.
    best = jax.tree.map(jnp.copy, best)
    every, pace, report = max(1, epochs // _EVALUATIONS), Pace(), as_report(report_progress)
    report(int(state.epoch), epochs, "compiling")
    while (done := int(state.epoch)) < epochs and not (stopping and waited >= stopping.patience):
        end = min(done + every, epochs)
        while done < end:
            began, steps = time.perf_counter(), pace.steps(end - done)
            state = program.advance(state, data, objective, steps)
            done = int(state.epoch)
            pace.took(steps, time.perf_counter() - began)
            if done < end:
                report(done, epochs, "training")
        score = math.nan if stopping is None else _score(model, state, stopping, objective)
        row = [int(state.epoch), *np.asarray(state.objective, np.float64), score]
        if stopping is None or not len(history) or score > np.nanmax(history[:, 4]):
            best, waited = jax.tree.map(jnp.copy, state.posterior), 0
        else:
            waited += 1
        history = np.vstack([history, row])
        _require_finite(state)
        if saved is not None:
            saved.save((state, best), {"waited": waited}, {"looks": history})
        report(done, epochs, "training")
    return Fitted(best, history)


def _score(model: Model, state: State, stopping: Stopping, objective: Objective) -> float:
    """Log likelihood of the rows set aside, always with the same noise."""
    predict = predictor(model.network, _VALIDATION_SAMPLES, many=False)
    posterior = state.posterior
    outputs = predict(posterior, stopping.x, state.seed, objective.flips)
    logs = observed(model, outputs, stopping.y, log_precision(model, posterior))
    pooled = jax.nn.logsumexp(logs, axis=0) - math.log(_VALIDATION_SAMPLES)
    return float(jnp.mean(pooled))


def _require_finite(state: State) -> None:
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(state.posterior)):
        raise FloatingPointError(
            f"the posterior left floating point in epoch {int(state.epoch)}: try a smaller "
            "learning_rate, or normalize='layer' for deep networks"
        )
