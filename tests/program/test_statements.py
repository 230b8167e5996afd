"""A stated probability holds for the prior as used, in every unit and for every family of pi."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy import stats

import predcp
from predcp.program._predictors import predictors_of

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
    "counts": (model_of(lambda eta: dist.Poisson(jnp.exp(eta))), np.ones(32, int)),
}
# Families by the kind of their predictor; each is around a linear predictor.
CUTS = np.array([-1.0, 0.5, 2.0])
MEANS = {
    "counts": lambda eta: dist.Poisson(jnp.exp(eta)),
    "overdispersed": lambda eta: dist.NegativeBinomial2(jnp.exp(eta), 4.0),
    "gamma-poisson": lambda eta: dist.GammaPoisson(3.0, 3.0 * jnp.exp(-eta)),
    "geometric": lambda eta: dist.GeometricLogits(-eta),
    "log-normal": lambda eta: dist.LogNormal(eta, 0.7),
    "Weibull": lambda eta: dist.Weibull(jnp.exp(eta), 2.0),
    "gamma": lambda eta: dist.Gamma(3.0, 3.0 * jnp.exp(-eta)),
    "inverse gamma": lambda eta: dist.InverseGamma(3.0, jnp.exp(eta)),
    "exponential": lambda eta: dist.Exponential(jnp.exp(-eta)),
    "zero-inflated": lambda eta: dist.ZeroInflatedPoisson(0.2, jnp.exp(eta)),
    "hurdle": lambda eta: dist.HurdleNegativeBinomial2(0.2, jnp.exp(eta), 4.0),
}
ODDS = {
    "coin": lambda eta: dist.Bernoulli(logits=eta),
    "probit": lambda eta: dist.Bernoulli(probs=jax.nn.sigmoid(eta)),
    "trials": lambda eta: dist.Binomial(5, logits=eta),
    "beta": lambda eta: dist.BetaProportion(jax.nn.sigmoid(eta), 8.0),
    "beta-binomial": lambda eta: dist.BetaBinomial(
        8.0 * jax.nn.sigmoid(eta), 8.0 * jax.nn.sigmoid(-eta), 5
    ),
    "ordinal": lambda eta: dist.OrderedLogistic(eta, CUTS),
}
LOCATIONS = {
    "normal": lambda eta: dist.Normal(0.7 * eta, 0.7),
    "Student": lambda eta: dist.StudentT(4.0, 0.7 * eta, 0.7),
    "vector": lambda eta: dist.MultivariateNormal(0.7 * eta, 0.49 * jnp.eye(len(eta))),
}
FAMILIES_OF = {"log_mean": MEANS, "log_odds": ODDS, "location": LOCATIONS}
DRAWS = 4000
# Four standard errors of a share of 10% among that many draws.
ERROR = 4.0 * np.sqrt(0.1 * 0.9 / DRAWS)


def scales(name, statement, **options):
    model, y = MODELS[name]
    better = predcp.with_complexity(model, {"tau": statement}, noise_draws=4, **options)
    drawn = numpyro.infer.Predictive(better, num_samples=DRAWS)(jax.random.key(0), GROUPS, y)
    return np.asarray(drawn["tau"])


def beyond(program, statement, tau):
    """P(scale > tau) under the prior of a program that averages over the rest, without sampling."""
    model, y = program
    better = predcp.with_complexity(model, {"tau": statement}, noise_draws=4, rest="prior")
    trace = handlers.trace(handlers.seed(better, jax.random.key(0))).get_trace(GROUPS, y)
    if "log_tau" in trace:
        return 1.0 - float(trace["log_tau"]["fn"].cdf(np.log(tau)))
    return 1.0 - float(trace["tau"]["fn"].cdf(tau))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stated_tail_is_exact_after_truncation(family):
    kind, options = FAMILIES[family]
    statement = predcp.tail(scale=1.5, probability=0.1, family=kind, **options)
    np.testing.assert_allclose(beyond(MODELS["coin"], statement, 1.5), 0.1, rtol=1e-9)


# The median ratio of two groups is exp(sqrt(2) q tau), with q the upper quartile of a normal.
RATIO_OF_THREE = np.log(3.0) / (np.sqrt(2.0) * stats.norm.ppf(0.75))
SIZES = [
    ("counts", {"rate_ratio": 3.0}, RATIO_OF_THREE),
    ("coin", {"odds_ratio": 3.0}, RATIO_OF_THREE),
    ("normal", {"noise_ratio": 0.5}, 0.35),
    ("normal", {"r_squared": 0.5}, 0.7),
    ("coin", {"probability_change": (0.5, 0.8)}, np.log(4.0)),
]


@pytest.mark.parametrize(
    ("kind", "family"), [(kind, name) for kind, known in FAMILIES_OF.items() for name in known]
)
def test_predictors_are_read_by_family(kind, family):
    start, step = jnp.array([-0.5, 0.2, 1.0]), jnp.array([0.1, 1.0, -2.0])
    made = FAMILIES_OF[kind][family]
    before, after = (predictors_of(made(at)) for at in (start, start + step))
    unit = jnp.exp(before["log_noise"]) if kind == "location" else 1.0
    np.testing.assert_allclose((after[kind] - before[kind]) / unit, step, rtol=1e-12)
    others = {"location", "log_noise"} if family == "log-normal" else {"log_noise"}
    assert set(before) <= {kind, *others}


def test_class_probabilities_have_no_predictor():
    assert not predictors_of(dist.Categorical(logits=jnp.zeros((4, 3))))


@pytest.mark.long
@pytest.mark.parametrize(
    ("quantity", "family"),
    [*(("rate_ratio", name) for name in MEANS), *(("odds_ratio", name) for name in ODDS)],
)
def test_a_ratio_is_that_of_the_predictor_in_every_family(quantity, family):
    model = model_of({**MEANS, **ODDS}[family])
    y = np.full(32, 0.5) if family == "beta" else np.ones(32, int)
    sentence = predcp.tail(**{quantity: 3.0}, probability=0.1)
    tau = at_unit_effect((model, y), RATIO_OF_THREE)
    np.testing.assert_allclose(beyond((model, y), sentence, tau), 0.1, rtol=1e-6)


def at_unit_effect(program, tau):
    """The scale at which effects have this root mean square: of four draws where the map has draws."""
    model, y = program
    complexity = predcp.complexity_of(model, "tau", GROUPS, y, noise_draws=4)
    if complexity.nodes is not None:
        return tau
    noise = np.asarray(complexity.noise["sites"]["effect"])
    return tau / np.sqrt(np.mean(noise[:, GROUPS] ** 2))


@pytest.mark.parametrize(("name", "statement", "tau"), SIZES, ids=str)
def test_responses_are_turned_into_scales_exactly(name, statement, tau):
    sentence = predcp.tail(**statement, probability=0.1)
    program = MODELS[name]
    found = beyond(program, sentence, at_unit_effect(program, tau))
    np.testing.assert_allclose(found, 0.1, rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_the_tail_of_the_scale_holds_in_draws(family):
    kind, options = FAMILIES[family]
    statement = predcp.tail(scale=1.5, probability=0.1, family=kind, **options)
    assert abs(np.mean(scales("coin", statement) > 1.5) - 0.1) < ERROR


@pytest.mark.long
@pytest.mark.parametrize("rest", ["given", "prior"])
@pytest.mark.parametrize(("name", "statement", "tau"), SIZES, ids=str)
def test_responses_are_turned_into_scales_in_draws(name, statement, tau, rest):
    drawn = scales(name, predcp.tail(**statement, probability=0.1), rest=rest)
    assert abs(np.mean(drawn > at_unit_effect(MODELS[name], tau)) - 0.1) < ERROR


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
