"""The Stan programs in `stan/`, built and run through PyStan; imports neither JAX nor predcp.

PyStan hands a program over as text, so that `#include` has nothing to be relative to: it is
replaced by the file here.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "stan"
PRIORS = ("half_cauchy", "ecp", "predcp")
_INCLUDE = re.compile(r"^[ \t]*#include[ \t]+[<\"]?([^\s>\"]+)[>\"]?[ \t]*$", re.MULTILINE)
_ELAPSED = re.compile(rb"([\d.]+) seconds \((Warm-up|Sampling)\)")


def program(prior: str) -> str:
    """The text of the logistic regression with this prior on tau, includes replaced."""
    text = (FOLDER / f"logistic_{prior}.stan").read_text()
    return _INCLUDE.sub(lambda found: (FOLDER / found[1]).read_text(), text)


def build(prior: str, data: dict[str, Any], seed: int | None = None) -> Any:
    """A PyStan model, compiled at the first use of its program (about a minute)."""
    import stan

    wanted = ("N", "D", "X", "y") + (("S", "noise") if prior == "predcp" else ())
    # httpstan gives stanc one second, which a busy machine may not.
    for attempt in range(3):
        try:
            with quiet():
                return stan.build(program(prior), {name: data[name] for name in wanted}, seed)
        except RuntimeError as error:
            if "TimeoutExpired" not in str(error) or attempt == 2:
                raise
    raise AssertionError


@dataclass(frozen=True)
class Run:
    """What a sampler did; arrays have shape (chains, draws)."""

    log_tau: np.ndarray
    log_density: np.ndarray
    leapfrogs: np.ndarray
    divergent: np.ndarray
    wall_seconds: float
    # Of each chain: shape (chains,), warm-up and then sampling.
    warmup_seconds: np.ndarray
    sampling_seconds: np.ndarray


def sample(
    prior: str,
    data: dict[str, Any],
    chains: int,
    warmup: int,
    draws: int,
    target_acceptance: float,
    depth: int,
    seed: int = 1,
) -> Run:
    """Sample with Stan's NUTS; compilation is not counted, PyStan's handling of the draws is."""
    model = build(prior, data, seed)
    start = time.perf_counter()
    fit = _fit(model, chains, warmup, draws, delta=target_acceptance, max_depth=depth)
    wall = time.perf_counter() - start

    def of(name: str) -> np.ndarray:
        # PyStan keeps draws of one chain side by side with those of the others.
        return fit[name].reshape(draws, chains).T.copy()

    seconds = np.array([_elapsed(output) for output in fit.stan_outputs])
    return Run(
        of("log_tau"),
        of("lp__"),
        of("n_leapfrog__").astype(int),
        of("divergent__").astype(bool),
        wall,
        seconds[:, 0],
        seconds[:, 1],
    )


def gradient_seconds(
    prior: str, data: dict[str, Any], warmup: int = 30, draws: int = 30, seed: int = 1
) -> dict[str, float]:
    """Time a leapfrog step of Stan's sampler takes, and time PyStan takes to hand over a draw.

    The same chain is run twice: with every draw handed over, which tells how many steps there
    were, and with the first alone, which tells how long they took.
    """
    model = build(prior, data, seed)
    full = _fit(model, 1, warmup, draws)
    steps = float(full["n_leapfrog__"].sum())
    thinned = _fit(model, 1, warmup, draws, num_thin=draws)
    with_draws, without = _elapsed(full.stan_outputs[0])[1], _elapsed(thinned.stan_outputs[0])[1]
    a_draw = max(0.0, (with_draws - without) / (draws - 1))
    return {"gradient": (without - a_draw) / steps, "draw": a_draw, "steps": steps}


def apart(work: str, prior: str, data: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The results of "sample" or "gradient_seconds" by name, computed in a process of its own.

    PyStan's workers are forks, which a process in which JAX runs should not have.
    """
    with tempfile.TemporaryDirectory() as folder:
        job = {"work": work, "prior": prior, "options": options}
        Path(folder, "job.json").write_text(json.dumps(job))
        np.savez(Path(folder, "data.npz"), **data)
        command = [sys.executable, "-m", "benchmarks.stan_programs", folder]
        subprocess.run(command, check=True, cwd=FOLDER.parent)
        with np.load(Path(folder, "result.npz")) as result:
            return {name: array if array.ndim else array.item() for name, array in result.items()}


def _work(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    with np.load(folder / "data.npz") as arrays:
        data = {name: array if array.ndim else array.item() for name, array in arrays.items()}
    if job["work"] == "sample":
        result = asdict(sample(job["prior"], data, **job["options"]))
    else:
        result = gradient_seconds(job["prior"], data, **job["options"])
    np.savez(folder / "result.npz", **result)


def _fit(model: Any, chains: int, warmup: int, draws: int, **options: Any) -> Any:
    import httpstan.cache

    # PyStan answers a seed it has seen from its cache, in no time.
    for path in httpstan.cache.model_directory(model.model_name).rglob("*.jsonlines.gz"):
        path.unlink()
    with quiet():
        return model.sample(num_chains=chains, num_warmup=warmup, num_samples=draws, **options)


def _elapsed(output: bytes) -> tuple[float, float]:
    """Seconds of warm-up and of sampling, as Stan itself reports them."""
    seconds = {phase: float(number) for number, phase in _ELAPSED.findall(output)}
    return seconds[b"Warm-up"], seconds[b"Sampling"]


@contextlib.contextmanager
def quiet():
    """Swallow PyStan's progress lines and its compiler's warnings; its errors are exceptions."""
    sys.stdout.flush()
    sys.stderr.flush()
    # The compiler is another program: only the descriptors themselves reach it.
    kept = [os.dup(1), os.dup(2)]
    with open(os.devnull, "w") as nothing:
        for descriptor in (1, 2):
            os.dup2(nothing.fileno(), descriptor)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for descriptor, original in zip((1, 2), kept):
                os.dup2(original, descriptor)
                os.close(original)


if __name__ == "__main__":
    _work(Path(sys.argv[1]))
