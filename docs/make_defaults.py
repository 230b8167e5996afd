"""Fill the table of docs/defaults.md: what the default priors of three packages say about predictions.

python docs/make_defaults.py
"""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

import predcp

PAGE = Path(__file__).parent / "defaults.md"
GROUPS, ROWS = 20, 5
# Priors on the standard deviation of a group effect, on the scale of the linear predictor.
DEFAULTS = {
    "brms: half-t(3, 0, 2.5)": lambda q: 2.5 * stats.t(3).ppf(0.5 + q / 2.0),
    "rstanarm: exponential(1)": lambda q: -math.log1p(-q),
    "Bambi: half-normal(2.5)": lambda q: 2.5 * stats.norm.ppf(0.5 + q / 2.0),
}
# Means over a few hundred draws miss the extreme tail of counts: figures beyond this say no more.
_LARGE = 1000
_MEDIAN_RATIO = math.sqrt(2.0) * 0.6744897501960817


class Family(NamedTuple):
    """An observation distribution around a linear predictor."""

    base: float
    observation: Callable[[Any], Any]
    unit: str  # what the exponential of the linear predictor multiplies; empty for a location


FAMILIES = {
    "normal, noise 1": Family(0.0, lambda eta: dist.Normal(eta, 1.0), ""),
    "Student-t(4), noise 1": Family(0.0, lambda eta: dist.StudentT(4.0, eta, 1.0), ""),
    "log-normal, noise 1": Family(0.0, lambda eta: dist.LogNormal(eta, 1.0), "median"),
    "gamma, shape 2": Family(0.0, lambda eta: dist.Gamma(2.0, 2.0 * jnp.exp(-eta)), "mean"),
    "exponential": Family(0.0, lambda eta: dist.Exponential(jnp.exp(-eta)), "mean"),
    "Bernoulli, base rate 0.5": Family(0.0, lambda eta: dist.Bernoulli(logits=eta), "odds"),
    "Bernoulli, base rate 0.01": Family(-4.595, lambda eta: dist.Bernoulli(logits=eta), "odds"),
    "Poisson, rate 0.1": Family(math.log(0.1), lambda eta: dist.Poisson(jnp.exp(eta)), "rate"),
    "Poisson, rate 1": Family(0.0, lambda eta: dist.Poisson(jnp.exp(eta)), "rate"),
    "Poisson, rate 100": Family(math.log(100.0), lambda eta: dist.Poisson(jnp.exp(eta)), "rate"),
    "negative binomial, mean 10, concentration 5": Family(
        math.log(10.0), lambda eta: dist.NegativeBinomial2(jnp.exp(eta), 5.0), "mean"
    ),
    "Weibull, shape 2": Family(0.0, lambda eta: dist.Weibull(jnp.exp(eta), 2.0), "mean"),
    "beta, mean 0.5, precision 10": Family(
        0.0, lambda eta: dist.BetaProportion(jax.nn.sigmoid(eta), 10.0), "odds"
    ),
}


def complexity_of(family: Family) -> predcp.ProgramComplexity:
    """The map of the standard deviation of a group effect."""
    groups = np.repeat(np.arange(GROUPS), ROWS)

    def model() -> None:
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
        with numpyro.plate("groups", GROUPS):
            effect = numpyro.sample("effect", dist.Normal(0.0, sigma))
        numpyro.sample("y", family.observation(family.base + effect[groups]))

    return predcp.complexity_of(model, "sigma", observed=["y"], noise_draws=32)


def rows_of(name: str) -> list[str]:
    """The table's rows of one family."""
    family, complexity = FAMILIES[name], complexity_of(FAMILIES[name])
    rows = []
    for default, quantile in DEFAULTS.items():
        middle, high = quantile(0.5), quantile(0.95)
        kappa = complexity(jnp.asarray([middle, high]))
        one_nat = float(complexity.inv(1.0)) if float(complexity.supremum) > 1.0 else math.inf
        beyond = _survival(quantile, one_nat)
        rows.append(
            f"| {name} | {default} | {_number(float(kappa[0]))} | {_number(float(kappa[1]))} | "
            f"{beyond:.0%} | {_sentence(family, middle)} | {_statement(family, high)} |"
        )
    return rows


def _survival(quantile: Callable[[float], float], value: float) -> float:
    """P(sigma > value), from the quantile function by bisection."""
    if not math.isfinite(value):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if quantile(middle) < value else (low, middle)
    return 1.0 - low


def _sentence(family: Family, sigma: float) -> str:
    if not family.unit:
        return f"an effect of {sigma:.2g} times the noise"
    ratio = math.exp(_MEDIAN_RATIO * sigma)
    return f"a ratio of the {family.unit} of two groups of {ratio:.2g}"


def _statement(family: Family, sigma: float) -> str:
    """The call of `predcp.tail` that is about the 95% quantile."""
    ratio = math.exp(_MEDIAN_RATIO * sigma)
    said = {"": f"noise_ratio={sigma:.2g}", "odds": f"odds_ratio={ratio:.2g}"}
    said = said.get(family.unit, f"rate_ratio={ratio:.2g}")
    return f"`tail({said}, probability=.05)`"


def _number(value: float) -> str:
    if value > _LARGE:
        return f"over {_LARGE:,}"
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def filled(page: str) -> str:
    """The page with its table made anew."""
    header = [
        "| observations | default prior | median, nats | 95%, nats | more than 1 nat | the median says "
        "| a sentence with its 95% quantile |",
        "|---|---|---|---|---|---|---|",
    ]
    table = "\n".join([*header, *(row for name in FAMILIES for row in rows_of(name))])
    return re.sub(
        r"(<!-- defaults -->\n).*?(\n<!-- end -->)", lambda m: m[1] + table + m[2], page, flags=re.S
    )


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    PAGE.write_text(filled(PAGE.read_text()))
