"""Divergences against references.json, fifty digits from definitions (make_references.py)."""

import json
from itertools import groupby

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions.discrete import BernoulliLogits, CategoricalLogits
from tests.divergences.make_references import PATH

import predcp
from predcp._divergences import _divergence, jensen_shannon
from predcp._numerics.special import log_abs_sum_and_ratio

CASES = [
    (name, list(cases))
    for name, cases in groupby(json.loads(PATH.read_text()), lambda case: case["distribution"])
]
MAKE = {
    "CategoricalLogits": CategoricalLogits,
    "BernoulliLogits": BernoulliLogits,
    "ZeroInflatedNegativeBinomial2": lambda gate, mean, concentration: (
        dist.ZeroInflatedNegativeBinomial2(mean, concentration, gate=gate)
    ),
}
DIVERGENCES = (predcp.kl, predcp.reverse_kl, predcp.squared_hellinger, predcp.jensen_shannon)
# Rules that are quadratures or long sums themselves.
INTEGRATED = {
    "StudentT": 1e-10,
    "Logistic": 1e-10,
    "VonMises": 1e-10,
    "BetaBinomial": 1e-10,
    "DirichletMultinomial": 1e-10,
    "NegativeBinomial2": 1e-10,
}


def grouped():
    """The cases of a distribution in one batch: one program serves them all."""
    found = {}
    for name, cases in CASES:
        found.setdefault(name, []).extend(cases)
    return found.items()


@pytest.fixture
def own_registry(monkeypatch):
    """A registry to write in that is gone after the test."""
    monkeypatch.setattr(_divergence, "_READERS", dict(_divergence._READERS))
    for divergence in DIVERGENCES:
        monkeypatch.setattr(divergence, "_rules", dict(divergence._rules))


@pytest.mark.parametrize("name,cases", grouped(), ids=[name for name, _ in grouped()])
def test_divergences_match_fifty_digits(name, cases, own_registry):
    if ("Hurdle" in name or "Inflated" in name) and not hasattr(dist, "HurdlePoisson"):
        pytest.skip("this NumPyro has no hurdles")
    make = MAKE.get(name) or getattr(dist, name)
    columns = [
        [jnp.asarray(column, float) for column in zip(*(case[which] for case in cases))]
        for which in ("p", "q")
    ]
    known = {each.name: each for each in DIVERGENCES if each.name in cases[0]}
    program = jax.jit(lambda p, q: {key: own(make(*p), make(*q)) for key, own in known.items()})
    for divergence, got in program(*columns).items():
        for value, case in zip(np.asarray(got), cases):
            expected = mp.mpf(case[divergence])
            # The displacement itself is known to rounding over its size.
            tolerance = 4e-13 + 4e-15 / abs(case["size"])
            tolerance = max(tolerance, INTEGRATED.get(name, 0.0))
            error = float(abs(mp.mpf(float(value)) / expected - 1))
            assert error < tolerance, (divergence, case)


@pytest.mark.parametrize("dtype,tolerance", [("float64", 2e-6), ("float32", 2e-3)])
def test_jensen_shannon_of_normals_with_scales_far_apart(dtype, tolerance):
    """The slope in the log ratio R of the scales is `e^-R Gamma(3/2) F(R) / sqrt(pi)` there.

    F(R) is the Fermi-Dirac integral `-Li_(3/2)(-e^R)`. Nodes resolve R up to 40 (18 in single precision).
    """
    rule = jensen_shannon.rule(dist.Normal)
    zero = jnp.zeros((), dtype)
    still, widening = {"loc": zero, "log_scale": zero}, {"loc": zero, "log_scale": zero + 1.0}

    @jax.jit
    @jax.vmap
    def log_slope(change):
        direction = {"loc": zero, "log_scale": change}
        terms = rule.slope(still, direction, zero, widening)
        return log_abs_sum_and_ratio(terms, terms)[0]

    for ratio in (60.0, 300.0, 3e4):
        weight = -mp.re(mp.polylog(1.5, -mp.exp(ratio))) if ratio < 100 else _sommerfeld(ratio)
        expected = mp.log(mp.gamma(1.5) * weight / mp.sqrt(mp.pi)) - ratio
        for got in log_slope(jnp.asarray([ratio, -ratio], dtype)):
            assert abs(float(got) - float(expected)) < tolerance * max(1.0, ratio / 1e3), ratio


def _sommerfeld(ratio):
    """The expansion of the Fermi-Dirac integral, whose rest is below 1e-12 from 100 on."""
    terms = 1 + mp.pi**2 / (8 * ratio**2) + 7 * mp.pi**4 / (640 * mp.mpf(ratio) ** 4)
    return mp.mpf(ratio) ** 1.5 / mp.gamma(2.5) * terms
