"""What an audit says agrees with closed forms, and reads as a person would write it."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import predcp

GROUPS = np.repeat(np.arange(6), 3)


def gaussian(groups, y):
    tau = numpyro.sample("tau", dist.HalfNormal(2.0))
    with numpyro.plate("groups", 6):
        effect = numpyro.sample("effect", dist.Normal(0.0, tau))
    numpyro.sample("y", dist.Normal(effect[groups], 0.5), obs=y)


def coin(groups, y):
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("groups", 6):
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Bernoulli(logits=tau * effect[groups]), obs=y)


@pytest.fixture(scope="module")
def of_gaussian():
    return predcp.audit(gaussian, GROUPS, np.zeros(18), noise_draws=64)


def test_quantiles_of_the_divergence_are_those_of_the_closed_form(of_gaussian):
    each = of_gaussian["tau"]
    # kappa = c tau^2 / (2 * 0.5^2) with c the mean square of the noise, close to 1.
    ratio = np.exp(each.draws["log_kappa"]) / (2.0 * each.draws["tau"] ** 2)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    np.testing.assert_allclose(ratio[0], 1.0, atol=0.05)
    # 512 draws of a half-normal: the median within four standard errors.
    assert abs(each.tau[1] - 2.0 * 0.6745) < 4.0 * 0.1
    assert each.beyond["0.1"] == np.mean(np.exp(each.draws["log_kappa"]) > 0.1)


def test_responses_are_functions_of_one_displacement(of_gaussian):
    each = of_gaussian["tau"]
    noise = each.draws["noise_ratio"]
    np.testing.assert_allclose(each.draws["r_squared"], noise**2 / (1.0 + noise**2), rtol=1e-6)
    np.testing.assert_allclose(
        noise**2 / 2.0, np.exp(each.draws["log_kappa"]), rtol=1e-6
    )  # KL of two normals of the same spread


def test_a_bounded_divergence_saturates():
    each = predcp.audit(coin, GROUPS, np.zeros(18, int))["tau"]
    assert each.supremum <= np.log(2.0) + 1e-6
    assert each.kappa[2] <= each.supremum
    assert each.saturated > 0.02
    assert "odds_ratio" in each.responses and "saturate the predictions" in each.words


def test_it_prints_a_table_and_words_and_json(of_gaussian):
    printed = str(of_gaussian)
    assert "HalfNormal(2)" in printed and "moves a prediction by" in printed
    (row,) = json.loads(of_gaussian.to_json())
    assert row["scale"] == "tau" and row["moved"] == ["effect"] and row["supremum"] is None
    assert list(of_gaussian.to_frame().index) == ["tau"]
    assert of_gaussian.prior_predictive["y"].shape == (512, 18)


def test_the_picture_has_a_row_for_each_scale(of_gaussian):
    figure = of_gaussian.plot()
    assert len(figure.axes) == 2
    assert figure.axes[0].get_title(loc="left") == "tau ~ HalfNormal(2)"


def test_entries_of_a_vector_are_audited_one_by_one():
    def slopes(x, y):
        tau = numpyro.sample("tau", dist.HalfNormal(jnp.array([0.1, 10.0])).to_event(1))
        with numpyro.plate("groups", 6):
            effect = numpyro.sample("effect", dist.Normal(0.0, tau).to_event(1))
        mean = effect[GROUPS, 0] + effect[GROUPS, 1] * x
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    found = predcp.audit(slopes, jax.random.normal(jax.random.key(0), (18,)), np.zeros(18))
    assert [each.scale for each in found] == ["tau[0]", "tau[1]"]
    assert found["tau[0]"].kappa[1] < 0.01 < 1.0 < found["tau[1]"].kappa[1]


def with_a_precision(groups, y):
    tau = numpyro.sample("tau", dist.HalfNormal(2.0))
    precision = numpyro.sample("precision", dist.Gamma(2.0, 1.0))
    with numpyro.plate("groups", 6):
        first = numpyro.sample("first", dist.Normal(0.0, tau))
        second = numpyro.sample("second", dist.Normal(0.0, precision**-0.5))
    numpyro.sample("y", dist.Normal(first[groups] + second[groups], 0.5), obs=y)


def test_a_positive_site_that_is_no_scale_is_skipped_with_the_reason():
    args, options = (GROUPS, np.zeros(18)), {"samples": 8, "noise_draws": 2}
    found = predcp.audit(with_a_precision, *args, **options)
    assert [each.scale for each in found] == ["tau"] and list(found.skipped) == ["precision"]
    reason = "no finite value where 'precision' is 0.*sample the standard deviation"
    for text in (found.words, str(found), json.loads(found.to_json())[1]["skipped"]):
        assert re.search(reason, text)
    assert found.to_frame().attrs["skipped"] == found.skipped
    with pytest.raises(ValueError, match=reason):
        predcp.audit(with_a_precision, *args, scales=["precision"], **options)


def test_words_begin_with_the_size_of_the_effect(of_gaussian):
    first, second = of_gaussian["tau"].words.split(". ")[:2]
    assert first.startswith("tau ~ HalfNormal(2): the standard deviation of the effect in units of")
    assert second.startswith("At its median") and second.endswith("nats")


def test_a_program_without_a_scale_is_refused():
    def plain(y):
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(0.0, sigma), obs=y)

    with pytest.raises(ValueError, match="no scale to audit"):
        predcp.audit(plain, np.zeros(3))
    with pytest.raises(KeyError, match="no scale 'sigma'"):
        predcp.audit(gaussian, GROUPS, np.zeros(18), samples=8)["sigma"]


@pytest.mark.parametrize("family", [predcp.Gamma, predcp.LogCauchy])
def test_a_program_with_complexity_priors_is_audited_like_any_other(family):
    sentence = predcp.tail(noise_ratio=0.5, probability=0.2, family=family)
    better = predcp.with_complexity(gaussian, {"tau": sentence}, noise_draws=16)
    found = predcp.audit(better, GROUPS, np.zeros(18))["tau"]
    # 512 draws: four standard errors.
    share = np.mean(found.draws["noise_ratio"] > 0.5)
    assert abs(share - 0.2) < 4.0 * np.sqrt(0.2 * 0.8 / 512)
    assert found.prior == str(sentence) and found.moved == ("effect",)
