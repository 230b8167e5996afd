"""Methods compile themselves once, and anew when something their functions read has changed."""

import collections
import functools
import itertools
import operator
import os
import threading
import time
import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax.tree_util import Partial
from tests.catalogue import DESIGN, NOISE, scaled
from tests.clock import slowness
from tests.compilations import count_compilations

import predcp
from predcp._support.compiled import compiled
from predcp._support.reads import reads

noise = 1.0
settings = types.SimpleNamespace(spread=1.0, offset=1.0, inner=types.SimpleNamespace(spread=1.0))
elsewhere = types.ModuleType("elsewhere")
exec("noise = 1.0\ndef helper():\n    return noise", vars(elsewhere))
table = {"noise": [1.0]}
array = np.ones(1)
large = np.ones(5_000)


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


def from_large_array(beta, x):
    return dist.Normal(x @ beta, large[-1])


def from_inner_object(beta, x):
    return dist.Normal(x @ beta, settings.inner.spread)


def spread_of_settings():
    return settings.spread


def from_second_reader(beta, x):
    return dist.Normal(x @ beta, spread_of_settings() * settings.offset)


def from_helper_of_a_module(beta, x):
    return dist.Normal(x @ beta, elsewhere.helper())


def from_environment(beta, x):
    return dist.Normal(x @ beta, float(os.environ["PREDCP_TEST_NOISE"]))


def from_name(beta, x):
    return dist.Normal(x @ beta, getattr(settings, "spread"))  # noqa: B009


def from_fields(beta, x):
    return dist.Normal(x @ beta, vars(settings)["spread"])


def from_getter(beta, x):
    return dist.Normal(x @ beta, operator.attrgetter("inner.spread")(settings))


def from_globals(beta, x):
    return dist.Normal(x @ beta, globals()["noise"])


class Indexed:
    def __init__(self):
        self.held = 1.0

    def __getitem__(self, _):
        return self.held

    def __float__(self):
        return self.held


class Guarded:
    """A lock cannot be copied: what this object holds is not known."""

    def __init__(self):
        self.held, self.lock = 1.0, threading.Lock()


def held_by(thing, read, change):
    """A likelihood that reads `thing` with `read`, and how it changes."""
    return lambda beta, x: dist.Normal(x @ beta, read(thing)), lambda: change(thing)


class Bound:
    def __init__(self):
        self.spread = 1.0

    def __call__(self, beta, x):
        return dist.Normal(x @ beta, self.spread)

    def method(self, beta, x):
        return dist.Normal(x @ beta, self.spread)

    def through_property(self, beta, x):
        return dist.Normal(x @ beta, self.doubled / 2.0)

    @property
    def doubled(self):
        return 2.0 * self.spread


class Shared:
    spread = 1.0

    def read(self):
        return self.spread


shared = Shared()


def from_method_of_a_class_attribute(beta, x):
    return dist.Normal(x @ beta, shared.read())


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


def bound_property():
    thing = Bound()
    return thing.through_property, lambda: setattr(thing, "spread", 100.0)


CASES = {
    "global": lambda: (from_global, change_global),
    "through a function": lambda: (from_helper, change_global),
    "in an inner function": lambda: (from_inner, change_global),
    "attribute": lambda: (from_attribute, lambda: setattr(settings, "spread", 100.0)),
    "container": lambda: (from_table, lambda: table["noise"].__setitem__(0, 100.0)),
    "array in place": lambda: (from_array, lambda: array.fill(100.0)),
    "large array in place": lambda: (from_large_array, lambda: large.fill(100.0)),
    "attribute of an attribute": lambda: (
        from_inner_object,
        lambda: setattr(settings.inner, "spread", 100.0),
    ),
    "attribute that the second function reads": lambda: (
        from_second_reader,
        lambda: setattr(settings, "offset", 100.0),
    ),
    "function of a module": lambda: (
        from_helper_of_a_module,
        lambda: setattr(elsewhere, "noise", 100.0),
    ),
    "class attribute": lambda: (
        from_method_of_a_class_attribute,
        lambda: setattr(Shared, "spread", 100.0),
    ),
    "property": bound_property,
    "default": lambda: (with_default, lambda: setattr(with_default, "__defaults__", (100.0,))),
    "partial": lambda: (
        functools.partial(lambda f, beta, x: f(beta, x), from_global),
        change_global,
    ),
    "closure": closure,
    "callable object": bound,
    "bound method": bound_method,
    "environment": lambda: (
        from_environment,
        lambda: os.environ.__setitem__("PREDCP_TEST_NOISE", "100"),
    ),
    "getattr": lambda: (from_name, lambda: setattr(settings, "spread", 100.0)),
    "vars": lambda: (from_fields, lambda: setattr(settings, "spread", 100.0)),
    "attrgetter": lambda: (from_getter, lambda: setattr(settings.inner, "spread", 100.0)),
    "data frame": lambda: held_by(
        pd.DataFrame({"noise": [1.0, 2.0], "unit": ["m", "s"]}),
        lambda frame: frame["noise"].iloc[0],
        lambda frame: frame.__setitem__("noise", [100.0, 2.0]),
    ),
    "series": lambda: held_by(
        pd.Series([1.0, 2.0]),
        lambda series: series.iloc[0],
        lambda series: series.__setitem__(0, 100.0),
    ),
    "array of megabytes": lambda: held_by(
        np.ones(500_000), lambda array: array[-1], lambda array: array.__setitem__(-1, 100.0)
    ),
    "array of objects": lambda: held_by(
        np.asarray([1.0, "m"], object),
        lambda array: array[0],
        lambda array: array.__setitem__(0, 100.0),
    ),
    "masked array": lambda: held_by(
        np.ma.masked_array([1.0, 2.0], [False, True]),
        lambda array: float(array.sum()),
        lambda array: array.__setitem__(0, np.ma.masked),
    ),
    "item of an object": lambda: held_by(
        Indexed(), lambda thing: thing[0], lambda thing: setattr(thing, "held", 100.0)
    ),
    "object as a number": lambda: held_by(
        Indexed(), float, lambda thing: setattr(thing, "held", 100.0)
    ),
    "user dictionary": lambda: held_by(
        collections.UserDict(noise=1.0),
        lambda table: table["noise"],
        lambda table: table.__setitem__("noise", 100.0),
    ),
    "queue": lambda: held_by(
        collections.deque([1.0]), lambda queue: queue[0], lambda queue: queue.appendleft(100.0)
    ),
    "set": lambda: held_by({1.0}, max, lambda numbers: numbers.add(100.0)),
    "distribution": lambda: held_by(
        dist.Normal(0.0, np.ones(())), lambda d: d.scale, lambda d: setattr(d, "scale", 100.0)
    ),
}
# What is not known is traced anew.
UNKNOWN = {
    "object with a lock": lambda: held_by(
        Guarded(), lambda thing: thing.held, lambda thing: setattr(thing, "held", 100.0)
    ),
    "globals": lambda: (from_globals, change_global),
    "array beyond the limit": lambda: held_by(
        np.ones(2**23 + 1), lambda array: array[-1], lambda array: array.__setitem__(-1, 100.0)
    ),
}


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """What the tests change is put back."""
    global noise
    noise = settings.spread = settings.offset = settings.inner.spread = table["noise"][0] = 1.0
    elsewhere.noise = Shared.spread = 1.0
    array.fill(1.0)
    large.fill(1.0)
    monkeypatch.setattr(with_default, "__defaults__", (1.0,))
    monkeypatch.setenv("PREDCP_TEST_NOISE", "1")


def prior_of(likelihood):
    complexity = predcp.PredictiveComplexity(likelihood, scaled, jnp.zeros(3), DESIGN, NOISE)
    return predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)


@pytest.mark.parametrize("case", CASES)
def test_a_changed_value_is_part_of_the_key(case):
    likelihood, change = CASES[case]()
    before = reads(likelihood)
    assert reads(likelihood) == before and hash(reads(likelihood)) == hash(before)
    change()
    assert reads(likelihood) != before


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_cannot_be_told_has_no_key(case):
    likelihood, _ = UNKNOWN[case]()
    assert reads(likelihood) is None


@pytest.mark.parametrize("case", ["global", "data frame", "object with a lock"])
def test_a_changed_value_is_seen(case):
    likelihood, change = (CASES | UNKNOWN)[case]()
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


def test_what_tracing_changes_is_no_part_of_the_key():
    class Counting:
        def __init__(self):
            self.calls, self.seen = 0, []

        def __call__(self, beta, x):
            self.calls += 1
            self.seen.append(noise)
            return dist.Normal(x @ beta, noise)

    likelihood = Counting()
    prior = prior_of(likelihood)
    prior.log_prob(0.5)
    count = likelihood.calls
    prior.log_prob(0.7)
    assert likelihood.calls == count
    change_global()
    prior.log_prob(0.7)
    assert likelihood.calls > count


def test_what_is_traced_anew_is_compiled_once():
    likelihood, _ = UNKNOWN["object with a lock"]()
    prior = prior_of(likelihood)
    prior.log_prob(0.5)
    with count_compilations() as counts:
        prior.log_prob(0.7)
    assert counts == [0]


def test_what_is_traced_anew_may_leave_out_arguments_of_other_shapes():
    guarded = Guarded()

    class Holder(NamedTuple):
        held: Partial
        unused: jax.Array

        @compiled()
        def value(self):
            return self.held(2.0)

    for size in (2, 3):
        holder = Holder(Partial(lambda number: number * guarded.held), jnp.zeros(size))
        assert reads(holder) is None and holder.value() == 2.0


def test_the_inverse_transform_compiles_nothing_again():
    complexity = predcp.LinearEvidence(DESIGN)
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
    points = jnp.asarray([0.3, 0.4, 0.5])
    complexity.inv(points), prior.log_prob(points)
    with count_compilations() as counts:
        # Held weakly by the map, the inverse is made anew.
        complexity.inv(points)
        complexity.inv(points), prior.transforms
        prior.log_prob(points)
    assert counts == [0]


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
    assert min(_seconds_of_a_call(second) for _ in range(6)) < 1e-3 * slowness()


def _seconds_of_a_call(prior, calls=50):
    # Of this thread alone: other work on the machine does not count.
    start = time.thread_time()
    for _ in range(calls):
        reads(prior)
    return (time.thread_time() - start) / calls
