"""The demo: a model as people write it, what its prior says, one sentence, before and after.

Deaths after heart surgery on infants in twelve hospitals (Spiegelhalter et al., BUGS examples,
volume 1; from posteriordb, BSD-3-Clause).
"""

import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import predcp

OPERATIONS = np.array([47, 148, 119, 810, 211, 196, 148, 215, 207, 97, 256, 360])
DEATHS = np.array([0, 18, 8, 46, 8, 13, 9, 31, 14, 8, 29, 24])
# Hospitals that the second half of the demo keeps: with few groups a prior speaks loudest.
FEW = slice(0, 4)
SENTENCE = predcp.tail(odds_ratio=2.0, probability=0.05)
_BEFORE, _AFTER = "#999999", "#0072B2"
# From the spread of log odds to the median odds ratio of two hospitals.
_TO_RATIO = float(np.sqrt(2.0) * 0.6744897501960817)


def surgery(operations: Any, deaths: Any = None) -> None:
    """Each hospital has its own log odds of a death, around a common average."""
    average = numpyro.sample("average", dist.Normal(-2.5, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(5.0))
    with numpyro.plate("hospitals", len(operations)):
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
        logits = numpyro.deterministic("log_odds", average + sigma * effect)
        numpyro.sample("deaths", dist.Binomial(operations, logits=logits), obs=deaths)


def posterior(model: Any, rows: slice) -> dict[str, np.ndarray]:
    """Draws of four chains."""
    numpyro.set_host_device_count(1)
    sampler = MCMC(
        NUTS(model), num_warmup=500, num_samples=500, num_chains=4, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip
    sampler.run(jax.random.key(0), OPERATIONS[rows], DEATHS[rows])
    return {name: np.asarray(values) for name, values in sampler.get_samples().items()}


def demo(output: Path) -> Path:
    """Audit, say a sentence, fit before and after; print words and draw one picture."""
    started = time.perf_counter()
    _say("the model: deaths in hospitals, sigma ~ HalfCauchy(5)")
    before = predcp.audit(surgery, OPERATIONS, DEATHS)
    print(before, flush=True)
    _say(f"the sentence: {SENTENCE}")
    better = predcp.with_complexity(surgery, {"sigma": SENTENCE})
    scales = {
        "before": before["sigma"].draws["tau"],
        "after": np.asarray(
            numpyro.infer.Predictive(better, num_samples=512)(
                jax.random.key(1), OPERATIONS, DEATHS
            )["sigma"]
        ),
    }
    fits = {}
    for words, rows in (("all twelve hospitals", slice(None)), ("the first four", FEW)):
        for name, model in (("before", surgery), ("after", better)):
            _say(f"fitting {words}, {name}")
            fits[words, name] = posterior(model, rows)
    for (words, name), draws in fits.items():
        ratio = np.exp(_TO_RATIO * np.quantile(draws["sigma"], [0.05, 0.5, 0.95]))
        print(
            f"{words}, {name}: median odds ratio of two hospitals {ratio[1]:.2f} "
            f"(90% from {ratio[0]:.2f} to {ratio[2]:.2f})"
        )
    output.mkdir(parents=True, exist_ok=True)
    path = output / "demo.png"
    _draw(scales, fits).savefig(path, dpi=120)
    _say(f"a picture in {path}; {time.perf_counter() - started:.0f} s in all")
    return path


def _say(words: str) -> None:
    print(f"predcp: {words}", file=sys.stderr, flush=True)


def _draw(scales: dict[str, np.ndarray], fits: dict[tuple[str, str], dict[str, np.ndarray]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 1.3))
    figure.suptitle(
        "Do these hospitals differ? What each prior says, and what it makes of the data"
    )
    colours = {"before": _BEFORE, "after": _AFTER}
    words = {"before": "sigma ~ HalfCauchy(5)", "after": "odds ratio above 2: 5%"}
    edges = np.linspace(0.0, 4.0, 41)
    for name, sigma in scales.items():
        ratio = np.clip(_TO_RATIO * sigma / np.log(10.0), 0.0, 4.0)
        left.hist(
            ratio, edges, weights=np.full(ratio.size, 1 / ratio.size), color=colours[name],
            alpha=0.6, label=words[name],
        )  # fmt: skip
    left.set_xticks([0, 1, 2, 3, 4], ["1", "10", "100", "1000", "more"])
    left.set_title("The prior", loc="left")
    left.set_ylabel("share of the draws")
    left.legend(loc="upper center", frameon=False, fontsize=9)
    left.set_xlabel("median odds ratio of two hospitals")
    groups = list(dict.fromkeys(group for group, _ in fits))
    for place, (group, name) in enumerate(fits):
        low, centre, high = np.exp(
            _TO_RATIO * np.quantile(fits[group, name]["sigma"], [0.05, 0.5, 0.95])
        )
        middle.plot([low, high], [-place, -place], color=colours[name], linewidth=3)
        middle.plot(centre, -place, "o", color=colours[name])
    middle.set_xscale("log")
    middle.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    middle.minorticks_off()
    middle.set_yticks([-0.5, -2.5], groups)
    middle.set_title("The posterior", loc="left")
    middle.set_xlabel("median odds ratio of two hospitals")
    for offset, name in ((-0.14, "before"), (0.14, "after")):
        rates = 100.0 / (1.0 + np.exp(-fits[groups[1], name]["log_odds"]))
        low, centre, high = np.quantile(rates, [0.05, 0.5, 0.95], axis=0)
        at = np.arange(len(centre)) + offset
        right.errorbar(
            at, centre, [centre - low, high - centre], fmt="o", color=colours[name],
            label=words[name],
        )  # fmt: skip
    raw = 100.0 * DEATHS[FEW] / OPERATIONS[FEW]
    right.plot(np.arange(len(raw)), raw, "kx", label="deaths / operations")
    right.set_xticks(
        np.arange(len(raw)), [f"{d} of {n}" for d, n in zip(DEATHS[FEW], OPERATIONS[FEW])]
    )
    right.set_ylabel("deaths per 100 operations")
    right.set_title("Four hospitals by themselves", loc="left")
    right.legend(frameon=False, fontsize=9)
    return figure
