"""A stated probability holds for the prior as used, in every unit and for every family of pi."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import predcp

GROUPS = np.repeat(np.arange(8), 4)
FAMILIES = {
    "gamma": (predcp.Gamma, {"shape": 0.5}),
    "log-cauchy": (predcp.LogCauchy, {}),
    "half-cauchy": (predcp.HalfCauchy, {}),
    "exponential": (predcp.Exponential, {}),
    "mixture": (predcp.GammaExponential, {}),
}


def model_of(observation):
    def model(groups, y=None):
        average = numpyro.sample("average", dist.Normal(0.0, 1.0))
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        with numpyro.plate("groups", 8):
            effect = numpyro.sample("effect", dist.Normal(0.0, tau))
        numpyro.sample("y", observation(average + effect[groups]), obs=y)

    return model


MODELS = {
    "normal": (model_of(lambda eta: dist.Normal(eta, 0.7)), np.zeros(32)),
    "coin": (model_of(lambda eta: dist.Bernoulli(logits=eta)), np.zeros(32, int)),
    "counts": (model_of(lambda eta: dist.Poisson(jax.numpy.exp(eta))), np.ones(32, int)),
}
DRAWS = 4000
# Four standard errors of a share of 10% among that many draws.
ERROR = 4.0 * np.sqrt(0.1 * 0.9 / DRAWS)


def scales(name, statement, **options):
    model, y = MODELS[name]
    better = predcp.with_complexity(model, {"tau": statement}, draws=4, **options)
    drawn = numpyro.infer.Predictive(better, num_samples=DRAWS)(jax.random.key(0), GROUPS, y)
    return np.asarray(drawn["tau"])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tail_of_the_scale_holds_after_truncation(family):
    kind, options = FAMILIES[family]
    statement = predcp.tail(scale=1.5, probability=0.1, family=kind, **options)
    assert abs(np.mean(scales("coin", statement) > 1.5) - 0.1) < ERROR


@pytest.mark.parametrize("rest", ["given", "prior"])
@pytest.mark.parametrize(
    ("name", "statement", "factor"),
    [
        ("counts", {"rate_ratio": 3.0}, np.log(3.0) / (np.sqrt(2.0) * 0.6745)),
        ("coin", {"odds_ratio": 3.0}, np.log(3.0) / (np.sqrt(2.0) * 0.6745)),
        ("normal", {"noise_ratio": 0.5}, 0.35),
        ("normal", {"r_squared": 0.5}, 0.7),
        ("coin", {"probability_change": (0.5, 0.8)}, np.log(4.0)),
    ],
    ids=str,
)
def test_responses_are_turned_into_scales(name, statement, factor, rest):
    # The mean square of four antithetic-like noise draws is not 1: allow its effect on the size.
    tau = scales(name, predcp.tail(**statement, probability=0.1), rest=rest)
    model, y = MODELS[name]
    complexity = predcp.complexity_of(model, "tau", GROUPS, y, draws=4)
    size = np.sqrt(np.mean(np.asarray(complexity.noise["sites"]["effect"])[:, GROUPS] ** 2))
    assert abs(np.mean(tau > factor / size) - 0.1) < ERROR


def test_a_statement_reads_as_a_sentence():
    assert str(predcp.tail(rate_ratio=2.0)) == (
        "the median ratio of the rates of two groups exceeds 2 with probability 0.05"
    )
    assert "takes a probability of 0.1 beyond 0.3" in str(
        predcp.tail(probability_change=(0.1, 0.3))
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of"),
        ({"scale": 1.0, "r_squared": 0.5}, "exactly one of"),
        ({"rate_ratio": 0.5}, "rate_ratio must be above 1"),
        ({"r_squared": 1.5}, "r_squared must be between 0 and 1"),
        ({"scale": -1.0}, "scale must be positive"),
        ({"scale": 1.0, "probability": 1.5}, "probability must be strictly between"),
        ({"scale": 1.0, "family": dist.Normal}, "family must be a class"),
        ({"probability_change": 0.5}, "must be a pair"),
        ({"probability_change": (0.0, 0.5)}, "between 0 and 1"),
    ],
)
def test_bad_statements_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        predcp.tail(**arguments)


def test_a_quantity_that_does_not_fit_names_those_that_do():
    with pytest.raises(ValueError, match="rate_ratio does not fit.*odds_ratio"):
        scales("coin", predcp.tail(rate_ratio=2.0))


def test_a_divergence_that_is_never_reached_is_refused():
    with pytest.raises(ValueError, match="never reached"):
        scales("coin", predcp.tail(divergence=50.0))
