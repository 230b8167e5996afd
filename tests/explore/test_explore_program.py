"""A program of the user's own in the explorer, without a browser."""

import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from tests.clock import slowness
from typer.testing import CliRunner

import predcp
from predcp import cli, explore
from predcp.explore import Sentence, scale_scene
from predcp.explore._program import prepare, quantiles
from predcp.program import scale_tables

GROUPS = np.repeat(np.arange(6), 3)
COINS = np.tile([0, 1, 1], 6)


def coins(groups, y):
    average = numpyro.sample("average", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(5.0))
    with numpyro.plate("groups", 6):
        effect = numpyro.sample("effect", dist.Normal(average, sigma))
    numpyro.sample("y", dist.Bernoulli(logits=effect[groups]), obs=y)


def lengths(groups, y):
    tau = numpyro.sample("tau", dist.HalfNormal(2.0))
    with numpyro.plate("groups", 6):
        effect = numpyro.sample("effect", dist.Normal(0.0, tau))
    numpyro.sample("y", dist.Normal(effect[groups], 0.5), obs=y)


def precision(groups, y):
    rate = numpyro.sample("rate", dist.Gamma(1.0, 1.0))
    with numpyro.plate("groups", 6):
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0 / jnp.sqrt(rate)))
    numpyro.sample("y", dist.Normal(effect[groups], 0.5), obs=y)


@pytest.fixture(scope="module")
def of_coins():
    made = explore.study(coins, {"groups": GROUPS, "y": COINS}, "mine.py:coins")
    prepare(made)
    return made


@pytest.fixture(scope="module")
def of_lengths():
    return explore.study(lengths, {"groups": GROUPS, "y": np.zeros(18)}, "mine:lengths")


def test_the_table_gives_the_cdf_of_the_complexity_prior(of_lengths):
    table = of_lengths.tables["tau"]
    pi = table.solve(predcp.tail(noise_ratio=1.0, probability=0.1))
    complexity = predcp.complexity_of(lengths, "tau", GROUPS, np.zeros(18))
    prior = predcp.ComplexityPrior(pi, complexity)
    taus = np.array([1e-3, 0.05, 0.2, 0.5, 1.0, 3.0])
    np.testing.assert_allclose(
        table.share_below(pi, "scale", taus), prior.cdf(jnp.asarray(taus)), rtol=1e-6
    )
    np.testing.assert_allclose(
        quantiles(table, pi, "scale"), prior.icdf(jnp.array([0.05, 0.5, 0.95])), rtol=2e-3
    )
    # The noise is 0.5: the noise ratio and R^2 are the same statement about the same scale.
    assert 1.0 - table.share_below(pi, "noise_ratio", [1.0])[0] == pytest.approx(0.1, abs=1e-6)
    assert 1.0 - table.share_below(pi, "r_squared", [0.5])[0] == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("family", explore.SENTENCE_FAMILIES.values())
def test_a_sentence_holds_and_agrees_with_the_swapped_program(of_coins, family):
    table = of_coins.tables["sigma"]
    sentence = Sentence("odds_ratio", 3.0, 0.1, family)
    pi = table.solve(sentence.statement)
    # The supremum depends on the rest, so the truncation is another one in each draw.
    assert np.ptp(table.log_supremum) > 0.1
    assert 1.0 - table.share_below(pi, "odds_ratio", [3.0])[0] == pytest.approx(0.1, abs=1e-6)
    if family != "Gamma":
        return
    better = predcp.with_complexity(coins, {"sigma": sentence.statement})
    drawn = numpyro.infer.Predictive(better, num_samples=2000)(jax.random.key(0), GROUPS, COINS)
    levels = np.array([0.25, 0.5, 0.75, 0.9])
    found = table.share_below(pi, "scale", np.quantile(np.asarray(drawn["sigma"]), levels))
    # Four standard errors of 2000 draws, and the 64 draws of the rest, whose shares differ by 0.1.
    np.testing.assert_allclose(found, levels, atol=4.0 * np.sqrt(0.25 / 2000 + 0.1**2 / 64))


def test_units_are_those_that_fit_the_predictions(of_coins, of_lengths):
    assert list(of_coins.units("sigma")) == [
        "odds_ratio", "probability_change", "scale", "divergence"
    ]  # fmt: skip
    assert list(of_lengths.units("tau"))[:2] == ["noise_ratio", "r_squared"]
    for made, site in ((of_coins, "sigma"), (of_lengths, "tau")):
        for unit in made.units(site).values():
            assert unit.start in unit.steps
            scene = scale_scene(made, site, Sentence(unit.name, unit.start))
            assert [ElementTree.fromstring(chart).get("role") for chart in scene.charts] == [
                "img"
            ] * 4
            assert "nan" not in "".join(scene.charts)


def run_code(code, *programs):
    """The names that a snippet of the page makes; its programs are those of this file."""
    names = {program.__name__: program for program in programs}
    exec(code.replace("from mine import", "# "), names)
    return names


def test_words_and_code_say_what_was_stated(of_coins, of_lengths):
    scene = scale_scene(of_coins, "sigma", Sentence("odds_ratio", 2.0, 0.05))
    assert scene.present.startswith("Present: sigma ~ HalfCauchy(5)")
    share = np.mean(of_coins.present("sigma").draws["odds_ratio"] > 2.0)
    assert "odds ratio of two groups exceeds 2 with probability 0.05" in scene.yours
    assert f"(under the present prior: {100 * share:.0f}%)" in scene.yours
    names = run_code(explore.program_code(of_coins, [scene]), coins)
    assert names["sentence"] == predcp.tail(odds_ratio=2.0, probability=0.05)
    changed = Sentence("probability_change", 0.8, 0.05, "LogCauchy", before=0.5)
    assert "probability_change=(0.5, 0.8)" in changed.code and "predcp.LogCauchy" in changed.code
    # Several scales: one at a time as in the charts, and all of them.
    several = [scene, replace(scene, site="second", sentence=changed.code)]
    code = explore.program_code(of_coins, several)
    assert code.count("predcp.with_complexity(coins, ") == 3
    names = run_code(code, coins)
    assert names["sentences"] == {
        "sigma": Sentence("odds_ratio", 2.0, 0.05).statement,
        "second": changed.statement,
    }
    # From 1/2, a displacement r of the log odds leads to the logistic function of r.
    odds = of_coins.present("sigma").draws["odds_ratio"]
    at = np.log(odds) / (np.sqrt(2.0) * 0.6744897501960817)
    np.testing.assert_allclose(
        changed.present(of_coins.present("sigma").draws), 1.0 / (1.0 + np.exp(-at)), rtol=1e-6
    )


def test_a_move_of_a_slider_compiles_nothing_and_is_quick(of_coins):
    compiled, listening = [], [True]

    def listen(event, duration, **_):
        if listening[0] and "compile" in event:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    # Tests compile without optimisation, which makes incomplete gamma functions ten times as slow, so
    # only the log-Cauchy is timed. With users' flags a gamma takes about 20 ms.
    seconds: dict[str, list[float]] = {"Gamma": [], "LogCauchy": []}
    for family, taken in seconds.items():
        for upper, probability in ((1.5, 0.07), (1.6, 0.07), (1.6, 0.08)):
            started = time.perf_counter()
            scale_scene(of_coins, "sigma", Sentence("odds_ratio", upper, probability, family))
            taken.append(time.perf_counter() - started)
    listening[0] = False
    assert compiled == []
    # The quickest, because other processes share the machine.
    assert min(seconds["LogCauchy"]) < 0.2 * slowness()


def test_what_cannot_be_shown_is_said_on_the_page(of_coins):
    plain = explore.study(
        lambda y: numpyro.sample("y", dist.Normal(), obs=y), {"y": COINS}, "m:plain"
    )
    page = explore.program_page(plain, {}, {})
    assert "m:plain cannot be explored: the program has no scale to audit" in page
    broken = explore.study(lambda y: y["nothing"], {"y": {}}, "m:broken")
    assert "KeyError" in explore.program_page(broken, {}, {})
    refused = explore.study(precision, {"groups": GROUPS, "y": np.zeros(18)}, "m:precision")
    assert "precision" in (refused.problem or refused.problems["rate"])
    assert 'role="alert"' in explore.program_page(refused, {}, {})
    shown = explore.program_page(of_coins, {}, {"sigma": "<b>never reached</b>"})
    assert "&lt;b&gt;never reached" in shown and "Present: sigma" in shown
    assert of_coins.audit is not None and "skipped" not in shown
    skipping = replace(of_coins, audit=replace(of_coins.audit, skipped={"rate": "<b>why</b>"}))
    assert "rate was skipped: &lt;b&gt;why" in explore.program_page(skipping, {}, {})
    with pytest.raises(ValueError, match="never reached"):
        scale_scene(of_coins, "sigma", Sentence("divergence", 10.0))
    with pytest.raises(ValueError, match="must be above the one before, 0.5"):
        Sentence("probability_change", 0.3)


def test_a_site_with_several_scales_has_a_table_for_each():
    def slopes(x, y):
        tau = numpyro.sample("tau", dist.HalfNormal(jnp.ones(2)).to_event(1))
        with numpyro.plate("groups", 6):
            effect = numpyro.sample("effect", dist.Normal(0.0, tau).to_event(1))
        numpyro.sample("y", dist.Normal(effect[GROUPS, 0] + effect[GROUPS, 1] * x, 1.0), obs=y)

    first, second = scale_tables(slopes, "tau", 10.0 * np.ones(18), np.zeros(18))
    assert (first.scale, second.scale) == ("tau[0]", "tau[1]")
    # A slope over inputs of 10 moves predictions as an intercept ten times as large does, but for
    # the noise draws, which differ.
    ratio = np.exp(second.log_kappa_at("scale", [0.1]) - first.log_kappa_at("scale", [1.0]))
    np.testing.assert_allclose(ratio, 1.0, rtol=0.5)


PROGRAM = """
import numpyro
import numpyro.distributions as dist


def lengths(group, y):
    tau = numpyro.sample("tau", dist.HalfNormal(2.0))
    with numpyro.plate("groups", 3):
        effect = numpyro.sample("effect", dist.Normal(0.0, tau))
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    other = numpyro.sample("other", dist.Normal(0.0, rate**-0.5))
    numpyro.sample("y", dist.Normal(effect[group] + other, 0.5), obs=y)


def fixed(y):
    numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)
"""


def test_the_command_checks_the_page(tmp_path, monkeypatch):
    pytest.importorskip("marimo", reason="the extra explore is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "explored_models.py").write_text(PROGRAM)
    (tmp_path / "table.csv").write_text("group,y\na,1.5\nb,2.5\nc,0.5\na,1.0\n")

    def run(*arguments):
        return CliRunner().invoke(cli.app, ["explore", *arguments, "--check"])

    result = run("explored_models.py:lengths", "--data", "table.csv")
    assert result.exit_code == 0, result.output
    assert "Yours: the standard deviation of the effect in units of the noise" in result.output
    assert "rate was skipped: site 'other' has no finite value where 'rate' is 0" in result.output
    result = run("explored_models.py:fixed", "--data", "table.csv")
    assert result.exit_code != 0 and "no scale to audit" in result.output
    result = run("--data", "table.csv")
    assert result.exit_code == 2 and "need a PROGRAM" in result.output
    result = run()
    assert result.exit_code == 0 and "Half of the prior mass" in result.output
