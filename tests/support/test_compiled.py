"""Methods compile themselves once, and anew when something their functions read has changed."""

import functools
import itertools
import time
import types

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from tests.catalogue import DESIGN, NOISE, scaled

import predcp
from predcp._support.reads import reads

noise = 1.0
settings = types.SimpleNamespace(spread=1.0)
table = {"noise": [1.0]}
array = np.ones(1)


def helper():
    return noise


def from_global(beta, x):
    return dist.Normal(x @ beta, noise)


def from_helper(beta, x):
    return dist.Normal(x @ beta, helper())


def from_inner(beta, x):
    return (lambda: dist.Normal(x @ beta, noise))()


def from_attribute(beta, x):
    return dist.Normal(x @ beta, settings.spread)


def from_table(beta, x):
    return dist.Normal(x @ beta, table["noise"][0])


def from_array(beta, x):
    return dist.Normal(x @ beta, array[0])


class Bound:
    def __init__(self):
        self.spread = 1.0

    def __call__(self, beta, x):
        return dist.Normal(x @ beta, self.spread)

    def method(self, beta, x):
        return dist.Normal(x @ beta, self.spread)


def with_default(beta, x, spread=1.0):
    return dist.Normal(x @ beta, spread)


def closure():
    spread = 1.0

    def likelihood(beta, x):
        return dist.Normal(x @ beta, spread)

    def change():
        nonlocal spread
        spread = 100.0

    return likelihood, change


def change_global():
    global noise
    noise = 100.0


def bound():
    thing = Bound()
    return thing, lambda: setattr(thing, "spread", 100.0)


def bound_method():
    thing = Bound()
    return thing.method, lambda: setattr(thing, "spread", 100.0)


CASES = {
    "global": lambda: (from_global, change_global),
    "through a function": lambda: (from_helper, change_global),
    "in an inner function": lambda: (from_inner, change_global),
    "attribute": lambda: (from_attribute, lambda: setattr(settings, "spread", 100.0)),
    "container": lambda: (from_table, lambda: table["noise"].__setitem__(0, 100.0)),
    "array in place": lambda: (from_array, lambda: array.fill(100.0)),
    "default": lambda: (with_default, lambda: setattr(with_default, "__defaults__", (100.0,))),
    "partial": lambda: (
        functools.partial(lambda f, beta, x: f(beta, x), from_global),
        change_global,
    ),
    "closure": closure,
    "callable object": bound,
    "bound method": bound_method,
}


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """What the tests change is put back."""
    global noise
    noise = settings.spread = table["noise"][0] = 1.0
    array.fill(1.0)
    monkeypatch.setattr(with_default, "__defaults__", (1.0,))


def prior_of(likelihood):
    complexity = predcp.PredictiveComplexity(likelihood, scaled, jnp.zeros(3), DESIGN, NOISE)
    return predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)


@pytest.mark.parametrize("case", CASES)
def test_a_changed_value_is_seen(case):
    likelihood, change = CASES[case]()
    prior = prior_of(likelihood)
    before = prior.icdf(0.5)
    change()
    # kappa = tau^2 |x xi|^2 / (2 noise^2): the scale is proportional to the noise.
    np.testing.assert_allclose(prior.icdf(0.5), 100.0 * before, rtol=1e-9)


def test_summaries_and_diagnoses_see_a_changed_value_too():
    prior = prior_of(from_global)
    before = predcp.marginal(prior, 0.3), predcp.diagnose(prior).entries[0].increasing_on
    change_global()
    after = predcp.marginal(prior, 0.3), predcp.diagnose(prior).entries[0].increasing_on
    assert before[0] != after[0] and before[1] != after[1]


def test_a_divergence_that_is_registered_again_is_seen():
    class Scaled(dist.Normal):
        pass

    def register(factor):
        @predcp.register_divergence(predcp.kl, Scaled, lambda d: {"loc": d.loc})
        def _(reference, shift):
            return factor * shift["loc"] ** 2

    register(1.0)
    prior = prior_of(lambda beta, x: Scaled(x @ beta, 1.0))
    before = prior.icdf(0.5)
    register(4.0)
    np.testing.assert_allclose(prior.icdf(0.5), before / 2.0, rtol=1e-9)


def test_a_rebuilt_prior_is_not_traced_again_and_a_call_costs_little():
    # Not a list: what a function reads is part of its key, and a list counts by its contents.
    traces = itertools.count()

    def counted(beta, x):
        next(traces)
        return dist.Normal(x @ beta, noise)

    first = prior_of(counted)
    first.log_prob(0.5)
    # Building a map traces its program to look at it; evaluating one must not.
    second = prior_of(counted)
    count = next(traces)
    second.log_prob(0.7)
    second.log_prob(0.9)
    assert next(traces) == count + 1
    calls = 300
    start = time.perf_counter()
    for _ in range(calls):
        reads(second)
    assert (time.perf_counter() - start) / calls < 1e-3
