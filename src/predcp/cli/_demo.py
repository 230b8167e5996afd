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
# Hospitals in the second half of the demo: with few groups the prior matters most.
FEW = slice(0, 4)
SENTENCE = predcp.tail(odds_ratio=2.0, probability=0.05)
# Where the axis of posterior ratios ends.
_WIDEST = 40.0
_COLOURS = {"before": "#8c8c8c", "after": "#0072B2"}
_LABELS = {
    "before": "sigma ~ HalfCauchy(5)",
    "after": "stated: an odds ratio above 2 has probability 5%",
}
_RAW = "raw rate: deaths / operations"
_RATIO = "median odds ratio of two hospitals"
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
    """Draws of one chain, which compiles faster than several at once."""
    sampler = MCMC(NUTS(model), num_warmup=400, num_samples=1600, progress_bar=False)
    sampler.run(jax.random.key(0), OPERATIONS[rows], DEATHS[rows])
    return {name: np.asarray(values) for name, values in sampler.get_samples().items()}


def demo(output: Path) -> Path:
    """Audit, state a sentence, fit before and after; print the results and draw one picture."""
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
        low, centre, high = _ratios(draws)
        print(f"{words}, {name}: {_RATIO} {centre:.2f} (90% from {low:.2f} to {high:.2f})")
    output.mkdir(parents=True, exist_ok=True)
    path = output / "demo.png"
    _draw(scales, fits).savefig(path, dpi=120)
    _say(f"a picture in {path}; {time.perf_counter() - started:.0f} s in all")
    return path


def _ratios(draws: dict[str, np.ndarray]) -> np.ndarray:
    """Median odds ratio of two hospitals: its quantiles at 5, 50 and 95%."""
    return np.exp(_TO_RATIO * np.quantile(draws["sigma"], [0.05, 0.5, 0.95]))


def _say(words: str) -> None:
    print(f"predcp: {words}", file=sys.stderr, flush=True)


def _draw(scales: dict[str, np.ndarray], fits: dict[tuple[str, str], dict[str, np.ndarray]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    panels = figure.subplots(1, 3, width_ratios=(1.1, 1.0, 1.2))
    figure.suptitle(
        "How much do hospitals differ? One model with two priors, before and after the data\n",
        fontsize=14,
    )
    _draw_prior(panels[0], scales)
    _draw_posterior(panels[1], fits)
    groups = list(dict.fromkeys(group for group, _ in fits))
    _draw_hospitals(panels[2], {name: fits[groups[1], name]["log_odds"] for name in scales})
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[2].get_legend_handles_labels()
    order = [labels.index(label) for label in (*_LABELS.values(), _RAW)]
    handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_prior(panel: Any, scales: dict[str, np.ndarray]) -> None:
    edges = np.linspace(0.0, 4.0, 41)
    for name, sigma in scales.items():
        ratio = np.clip(_TO_RATIO * sigma / np.log(10.0), 0.0, 4.0)
        weights = np.full(ratio.size, 100.0 / ratio.size)
        panel.hist(ratio, edges, weights=weights, color=_COLOURS[name], alpha=0.75)
    beyond = np.mean(_TO_RATIO * scales["before"] > 4.0 * np.log(10.0))
    panel.annotate(
        f"{beyond:.0%} of its draws\nare odds ratios\nabove 10,000", (3.95, 100 * beyond),
        xytext=(2.0, 45), fontsize=10, color="#555555", va="top",
        arrowprops={"arrowstyle": "->", "color": "#999999"},
    )  # fmt: skip
    panel.set_xticks([0, 1, 2, 3, 4], ["1", "10", "100", "1,000", "more"])
    panel.set_title("Before the data", loc="left")
    panel.set_ylabel("% of draws from the prior")
    panel.set_xlabel(_RATIO)


def _draw_posterior(panel: Any, fits: dict[tuple[str, str], dict[str, np.ndarray]]) -> None:
    heights = (3.0, 2.5, 1.0, 0.5)
    for height, (group, name) in zip(heights, fits):
        low, centre, high = _ratios(fits[group, name])
        panel.plot([low, high], [height, height], color=_COLOURS[name], linewidth=3)
        if high > _WIDEST:
            panel.plot(_WIDEST, height, ">", color=_COLOURS[name], clip_on=False)
        panel.plot(centre, height, "o", color=_COLOURS[name])
        words = f"{centre:.1f} ({low:.1f} to {high:{'.1f' if high < 100.0 else '.0f'}})"
        panel.annotate(
            words, (low, height), xytext=(0, 6), textcoords="offset points", fontsize=10,
            color=_COLOURS[name],
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_xlim(0.95, _WIDEST)
    panel.set_ylim(0.2, 3.5)
    panel.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    panel.minorticks_off()
    panel.set_yticks([2.75, 0.75], ["12 hospitals", "4 hospitals"])
    panel.tick_params(axis="y", length=0)
    panel.set_title("After the data", loc="left")
    panel.set_xlabel(_RATIO)


def _draw_hospitals(panel: Any, log_odds: dict[str, np.ndarray]) -> None:
    for offset, (name, draws) in zip((-0.12, 0.12), log_odds.items()):
        rates = 100.0 / (1.0 + np.exp(-draws))
        low, centre, high = np.quantile(rates, [0.05, 0.5, 0.95], axis=0)
        at = np.arange(len(centre)) + offset
        panel.errorbar(
            at, centre, [centre - low, high - centre], fmt="o", color=_COLOURS[name], linewidth=2,
            label=_LABELS[name],
        )  # fmt: skip
    raw = 100.0 * DEATHS[FEW] / OPERATIONS[FEW]
    panel.plot(np.arange(len(raw)), raw, "kx", label=_RAW)
    panel.set_xticks(
        np.arange(len(raw)), [f"{d} of {n}" for d, n in zip(DEATHS[FEW], OPERATIONS[FEW])]
    )
    panel.set_ylim(bottom=-0.5)
    panel.set_ylabel("deaths per 100 operations")
    panel.set_xlabel("deaths out of operations, by hospital")
    panel.set_title("The four hospitals (90% intervals)", loc="left")
