"""Run one cell in this process and describe what happened."""

import time
import traceback

from predcp._support.environment import environment
from predcp.experiments._cell import Cell
from predcp.experiments._models import resolve_model
from predcp.experiments._posterior import posterior_bytes
from predcp.experiments._result import Context, Outcome, Result


def execute(cell: Cell, context: Context | None = None) -> Outcome:
    """The outcome of a cell; whatever it raises becomes its traceback, except Ctrl-C."""
    context = context or Context()
    started = time.perf_counter()
    try:
        result = resolve_model(cell.model).run(cell, context)
        return outcome(result, context, time.perf_counter() - started)
    except KeyboardInterrupt:
        raise
    except BaseException:
        seconds = time.perf_counter() - started
        return Outcome(seconds, environment(), traceback=traceback.format_exc())


def outcome(result: Result, context: Context, seconds: float) -> Outcome:
    """What an engine reports of a model's result."""
    if not isinstance(result, Result):
        raise TypeError(f"a model must return predcp.experiments.Result, got {type(result)}")
    if not any(result.metrics.values()):
        raise ValueError("a model must return at least one metric")
    metrics = tuple(
        (part, metric, float(value))
        for part, values in result.metrics.items()
        for metric, value in values.items()
    )
    convergence = {name: float(value) for name, value in result.convergence.items()}
    posterior = None
    if context.keep_posterior and result.posterior is not None:
        posterior = posterior_bytes(result.posterior)
    return Outcome(seconds, environment(), metrics, convergence, posterior=posterior)
