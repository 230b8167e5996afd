"""The explorer's curves and numbers against the library's own, and against closed forms."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from predcp.explore import DIVERGENCES, FAMILIES, PARAMETERS, Choices, Design, Tail, scene
from predcp.explore._curves import LEVELS, curves
from predcp.explore._network import DRAWS, _scene, first_hidden, inputs, network_scene, weights
from predcp.explore._pi import divergence_prior
from predcp.explore._regression import bounded, draw_count, normal_design, predictors
from predcp.explore._table import inverse, mean_table, unit_table, value_and_elasticity
from predcp.explore._words import beyond, number, percent, words

LOG_TAU = jnp.asarray([-25.0, -8.3, -2.1, 0.4, 1.7, 6.6, 20.0])


def library_map(choices: Choices, x: np.ndarray) -> predcp.PredictiveComplexity:
    """The map as a user would write it, from rows, columns and draws."""

    def likelihood(beta, x):
        if choices.model == "logistic":
            return dist.Bernoulli(logits=x @ beta)
        return dist.Normal(x @ beta, choices.noise)

    count, width = draw_count(x.shape[0]), x.shape[1]
    xi = predcp.normal_noise(jax.random.key(0), count, (width,), method="sobol")
    measure = getattr(predcp, choices.divergence)
    return predcp.PredictiveComplexity(
        likelihood, lambda tau, xi: jnp.sqrt(tau) * xi, jnp.zeros(width), x, xi, measure
    )


@pytest.mark.parametrize(
    ("model", "divergence"),
    [("linear", "kl"), ("linear", "squared_hellinger"), ("logistic", "reverse_kl")],
)
def test_a_table_is_the_library_map(model, divergence):
    choices = Choices(model, rows=256, columns=2, divergence=divergence)
    table = mean_table(
        unit_table(model == "logistic", getattr(predcp, divergence)),
        jnp.asarray(predictors(choices).values),
    )
    wanted = library_map(choices, normal_design(256, 2)).log_value_and_elasticity(LOG_TAU)
    found = value_and_elasticity(table, LOG_TAU)
    np.testing.assert_allclose(found[0], wanted[0], atol=2e-4)
    np.testing.assert_allclose(found[1], wanted[1], atol=5e-3)
    assert bool(jnp.isfinite(table.log_supremum)) == bounded(model == "logistic", divergence)
    inside = wanted[0][:-2]
    np.testing.assert_allclose(inverse(table, inside), LOG_TAU[:-2], atol=1e-3)


@pytest.mark.parametrize("divergence", DIVERGENCES.values())
@pytest.mark.parametrize("logistic", [False, True])
def test_bounded_is_what_the_library_says(logistic, divergence):
    one = dist.Bernoulli(logits=0.0) if logistic else dist.Normal(0.0, 1.0)
    rule = getattr(predcp, divergence).rule(dist.Bernoulli if logistic else dist.Normal)
    assert rule.bounded == bounded(logistic, divergence), one


def test_curves_are_the_library_prior():
    """Density, quantiles, marginal, shrinkage and tail of a truncated prior."""
    # One row keeps the library's quadrature of the marginal short.
    row = Design(np.ones((1, 1)), "one.csv", ("x",), False)
    choices = Choices("logistic", design=row, parameters={"scale": 0.7, "loc": -1.0})
    prior = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=0.7, loc=-1.0), library_map(choices, row.x)
    )
    found = scene(choices).layers[0][1]
    some = np.arange(0, found.tau.size, 40)
    density = np.exp(prior.log_prob(found.tau[some])) * found.tau[some]
    np.testing.assert_allclose(found.density[some], density, rtol=5e-3)
    np.testing.assert_allclose(found.tau_levels, prior.icdf(jnp.asarray(LEVELS)), rtol=2e-3)
    np.testing.assert_allclose(found.divergence[some], prior.complexity(found.tau[some]), rtol=1e-3)
    np.testing.assert_allclose(found.small, prior.cdf(1.0), rtol=1e-3)
    np.testing.assert_allclose(found.supremum, prior.complexity.supremum, rtol=1e-6)
    log_tau = np.linspace(-40.0, 60.0, 1501)
    mass = np.exp(prior.log_scale().log_prob(log_tau))
    for index in (0, 30, 119):
        normal = np.exp(dist.Normal(0.0, np.exp(0.5 * log_tau)).log_prob(found.beta[index]))
        wanted = np.trapezoid(mass * normal, log_tau)
        np.testing.assert_allclose(found.marginal[index], wanted, rtol=5e-3)
    few = jnp.asarray([0, 100, 239])
    wanted = predcp.shrinkage_profile(prior, found.shrinkage[few])
    np.testing.assert_allclose(found.profile[few], wanted, rtol=5e-3)
    above = prior.survival(prior.complexity.inv(0.1))
    np.testing.assert_allclose(beyond(prior.pi, found, 0.1), above, rtol=1e-4)


def test_the_horseshoe_is_the_library_horseshoe():
    found = scene(Choices()).layers[0][1]
    some = [0, 60, 119]
    at = found.beta[jnp.asarray(some)]
    wanted = predcp.marginal(dist.HalfCauchy(1.0), at, unit="standard deviation")
    np.testing.assert_allclose(found.marginal_horseshoe[some], wanted, rtol=5e-3)
    # 1 / (1 + tau) is Beta(1/2, 1/2) under the horseshoe.
    density = 1.0 / (np.pi * np.sqrt(found.shrinkage * (1.0 - found.shrinkage)))
    np.testing.assert_allclose(found.profile_horseshoe, density, rtol=1e-9)


def test_areas_are_probabilities():
    """On logarithmic axes, between the ends shown, pi and p(tau) hold the same mass."""
    for model in ("linear", "logistic"):
        found = scene(Choices(model, family="Exponential")).layers[0][1]
        of_tau = np.trapezoid(found.density, np.log(found.tau))
        of_kappa = np.trapezoid(found.pi, np.log(found.kappa))
        assert 0.9 < of_tau <= 1.001
        assert 0.9 < of_kappa <= 1.001


def test_noise_moves_the_scale_and_nothing_else():
    """D depends on tau over the noise variance."""
    quiet, loud = (scene(Choices(noise=noise)).layers[0][1] for noise in (1.0, 3.0))
    np.testing.assert_allclose(loud.tau_levels, 9.0 * quiet.tau_levels, rtol=1e-9)
    np.testing.assert_allclose(loud.kappa_levels, quiet.kappa_levels)


def test_the_layers_of_a_network_are_the_library_prior():
    pi = predcp.HalfCauchy(0.5)
    made = weights(0, DRAWS)
    depth = 3
    complexity = predcp.DepthComplexity(
        first_hidden(made, jnp.asarray(inputs())),
        made.hidden[:, :depth],
        made.output,
        normalize="batch",
    )
    medians = predcp.LogScalePrior(pi, complexity).icdf(jnp.full(depth, 0.5))
    choices = Choices("network", depth=depth, family="HalfCauchy", parameters={"scale": 0.5})
    shown = scene(choices)
    first, last = (curves.tau_levels[1] for _, curves in shown.layers)
    np.testing.assert_allclose([first, last], np.exp(medians[jnp.array([0, 2])]), rtol=1e-3)
    assert [name for name, _ in shown.layers] == ["layer 1", "layer 3"]
    found = network_scene(pi, depth, predcp.kl)
    assert found.functions.shape == (12, 40)
    assert bool(jnp.all(jnp.isfinite(found.functions)))


def test_moves_do_not_trace_again():
    """Every slider is a leaf of a pytree or leaves all shapes as they are."""
    first = Choices()
    moves = [
        {"parameters": {"scale": 2.0}},
        {"parameters": {"loc": -3.0}},
        {"tail": Tail(0.2, 0.3)},
        {"noise": 0.3},
        {"rows": 128},
        {"columns": 2},
    ]
    network = [{"model": "network", "depth": depth} for depth in (1, 2, 5)]
    scene(first)
    scene(Choices("network"))
    programs = (curves, mean_table, _scene)
    before = [program._cache_size() for program in programs]
    for move in moves + network:
        scene(dataclasses.replace(first, **move))
    assert [program._cache_size() for program in programs] == before


def test_the_headline_of_a_tail_statement():
    """P(kappa > 0.1) = 1/2 means: half of the mass within 0.1 nats."""
    said = scene(Choices(family="HalfCauchy", tail=Tail(0.1, 0.5)))
    assert said.headline.startswith("Half of the prior mass keeps predictions within 0.10 nats of")
    assert "P(κ > 0.1) is 0.5, as you stated." in said.sentences
    # A normal mean moved by d has moved by d^2 / 2 nats.
    assert f"by {number(0.2**0.5)} standard deviations" in said.sentences[0]


@pytest.mark.parametrize(
    ("model", "divergence"), [("logistic", "kl"), ("network", "squared_hellinger")]
)
def test_a_stated_tail_holds_after_truncation(model, divergence):
    choices = Choices(model, divergence=divergence, family="HalfCauchy", tail=Tail(0.1, 0.3))
    said = scene(choices)
    pi = divergence_prior(choices, float(np.log(said.layers[0][1].supremum)))
    for _, found in said.layers:
        np.testing.assert_allclose(beyond(pi, found, 0.1), 0.3, rtol=1e-6)
    assert "P(κ > 0.1) is 0.3, as you stated." in said.sentences
    removed = percent(1.0 - float(pi.cdf(said.layers[0][1].supremum)))
    assert any(f"removes {removed}" in sentence for sentence in said.sentences)


def test_a_tail_that_no_prior_has_is_refused():
    # Against a fair coin no divergence exceeds log 2.
    with pytest.raises(ValueError, match="no κ exceeds 0.693; choose u below"):
        scene(Choices("logistic", tail=Tail(1.0, 0.05)))
    with pytest.raises(ValueError, match="is not possible with this π"):
        scene(Choices("logistic", family="Exponential", tail=Tail(0.6, 0.9)))


@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_the_scale_is_a_variance_in_words_charts_and_code(model):
    choices = Choices(model, rows=8, columns=2, family="Exponential")
    shown = scene(choices)
    prior = predcp.ComplexityPrior(
        predcp.Exponential(mean=0.5), library_map(choices, normal_design(8, 2))
    )
    assert prior.complexity.unit == "variance"
    found = shown.layers[0][1]
    some = np.array([0, 40, 119])
    wanted = predcp.marginal(prior, found.beta[some])
    np.testing.assert_allclose(found.marginal[some], wanted, rtol=5e-3)
    median = number(float(found.tau_levels[1]))
    deviation = number(float(found.tau_levels[1]) ** 0.5)
    wanted_words = (
        f"variance τ of the coefficients has median {median} (a standard deviation of {deviation})"
    )
    assert any(wanted_words in sentence for sentence in shown.sentences)
    assert "tau is a variance" in shown.code
    assert all("τ (a variance)" in chart for chart in shown.charts[1:3])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1, "0.10"),
        (1.0, "1.0"),
        (12.3, "12"),
        (5273.0, "5,273"),
        (3.5e-4, "3.5·10⁻⁴"),
        (0.0, "0"),
    ],
)
def test_numbers_in_words(value, shown):
    assert number(value) == shown


def test_percentages_never_round_to_certainty():
    assert percent(1e-9) == "less than 0.1%"
    assert percent(1.0 - 1e-9) == "more than 99.9%"
    assert percent(0.5) == "50%"


@pytest.mark.parametrize("divergence", DIVERGENCES.values())
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_every_divergence_gives_numbers(model, divergence):
    """Also where a map has saturated: half of a log-Cauchy's mass is there."""
    shown = scene(Choices(model, parameters={"loc": 3.0}, divergence=divergence))
    for name, array in shown.layers[0][1]._asdict().items():
        assert not np.any(np.isnan(array)), name


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=pytest.mark.long if "GammaE" in family else ())
        for family in FAMILIES.values()
    ],
)
def test_every_family_by_parameters_and_by_tail(family):
    """The stated tail is met exactly where nothing is cut, at both ends of every slider."""
    for end in (0, -1):
        parameters = {each.name: each.steps[end] for each in PARAMETERS[family]}
        for tail in (None, Tail(0.3, 0.2)):
            choices = Choices(family=family, parameters=parameters, tail=tail)
            shown = scene(choices)
            numbers = shown.layers[0][1]
            for name, array in numbers._asdict().items():
                assert not np.any(np.isnan(array)), (family, end, tail, name)
            if tail is not None:
                assert any("as you stated" in sentence for sentence in shown.sentences)


def test_words_of_a_network_name_its_layer():
    said = scene(Choices("network", depth=2))
    assert "layer 2" in said.headline
    assert callable(words)
