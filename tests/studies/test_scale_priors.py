"""The study of priors on scales: densities, quadrature, divergences and comparisons."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import distributions as dist
from scipy import integrate, stats
from studies.scale_priors import costs, evidence, priors, sentences, store
from studies.scale_priors import report as report_module
from studies.scale_priors.compare import difference, verdict
from studies.scale_priors.counts import counts_table, grouped, with_kinds
from studies.scale_priors.gaussian import gaussian_table, rotated
from studies.scale_priors.group_sums import integrated, log_mixed
from studies.scale_priors.maps import normal_constant, poisson_curve
from studies.scale_priors.nuts import program
from studies.scale_priors.posterior import cdf, quantile
from studies.scale_priors.sentence import pi_of
from studies.scale_priors.simulate import rows_like, simulation
from studies.scale_priors.sources import indicators
from tests.studies.small import count_design, normal_design

import predcp

POINTS = jnp.asarray([1e-3, 0.1, 1.0, 7.0, 60.0])
SD, BRMS = 3.0, 4.2


def log_likelihood(tau, sigma, y, z):
    """Log likelihood of a normal design by its covariance, the mean integrated out."""
    covariance = sigma**2 * np.eye(len(y)) + tau**2 * z @ z.T
    inverse = np.linalg.inv(covariance)
    ones = np.ones(len(y))
    weight = ones @ inverse @ ones
    left = y - ones * (ones @ inverse @ y) / weight
    return -0.5 * (np.linalg.slogdet(covariance)[1] + np.log(weight) + left @ inverse @ left)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("half-cauchy", lambda x: stats.halfcauchy(scale=5).sf(x)),
        ("half-normal", lambda x: stats.halfnorm(scale=2.5 * SD).sf(x)),
        ("half-t", lambda x: 2 * stats.t(3, scale=BRMS).sf(x)),
        ("exponential", lambda x: stats.expon(scale=SD).sf(x)),
        ("inverse-gamma", lambda x: stats.invgamma(1e-3, scale=1e-3).sf(x**2)),
        ("pc", lambda x: 0.01 ** (x / SD)),
    ],
)
def test_defaults_are_the_distributions_they_are_called(name, reference):
    made = priors.fixed(name, SD, BRMS)
    wanted = reference(np.asarray(POINTS))
    np.testing.assert_allclose(np.exp(made.log_survival(POINTS)), wanted, rtol=1e-9)
    np.testing.assert_allclose(np.exp(made.log_cdf(POINTS)), 1.0 - wanted, rtol=1e-6)


def test_mass_of_a_far_cell_keeps_its_digits():
    made = priors.half_normal(1.0)
    found = float(priors.log_mass(made, jnp.asarray(40.0), jnp.asarray(41.0)))
    wanted = (
        np.log(2)
        + stats.norm.logsf(40)
        + np.log1p(-np.exp(stats.norm.logsf(41) - stats.norm.logsf(40)))
    )
    assert found == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("family", ["gamma", "log-cauchy"])
def test_pi_is_that_of_the_library(family):
    found = pi_of(family, np.array([np.inf]))
    statement = {"gamma": (predcp.Gamma, {"shape": 0.5}), "log-cauchy": (predcp.LogCauchy, {})}
    kind, options = statement[family]
    wanted, k = kind.from_tail(0.5, 0.05, **options), jnp.linspace(-9.0, 5.0, 8)
    made = found.distribution()
    np.testing.assert_allclose(made.log_cdf(k), wanted.log_cdf_log(k), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(made.log_survival(k), wanted.log_survival_log(k), rtol=1e-7)


@pytest.mark.parametrize("family", ["gamma", "log-cauchy"])
def test_the_sentence_holds_on_average_after_truncation(family):
    bounds = np.log([0.7, 1.0, 3.0])
    made = priors.truncated(pi_of(family, bounds), jnp.asarray(bounds))
    tail = np.exp(made.log_survival(jnp.log(0.5)))
    assert tail.mean() == pytest.approx(0.05, rel=1e-6)


def test_shares_of_two_scales_have_the_mass_of_their_density():
    edges = jnp.asarray([0.0, 0.3, 2.0, jnp.inf])
    low, high = edges[:-1], edges[1:]
    lows, highs = [low[:, None], low[None]], [high[:, None], high[None]]
    mass = np.exp(priors.log_share_mass(lows, highs))
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    wanted = integrate.dblquad(lambda b, a: 1 / ((1 + a + b) ** 2 * (a + b)), 0.3, 2, 0.3, 2)[0]
    assert mass[1, 1] == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_group_integrals_match_adaptive_quadrature(family):
    total, exposure, middle, tau = 3.0, 9.0, -0.8, 0.9
    link = {"poisson": np.exp, "binomial": lambda a: np.log1p(np.exp(a))}[family]

    def density(u):
        a = middle + u
        return np.exp(total * a - exposure * link(a)) * stats.norm.pdf(u, scale=tau)

    sums = [integrate.quad(lambda u, k=k: u**k * density(u), -9, 9)[0] for k in range(4)]
    found = integrated(family, total, exposure, middle, tau**2)
    mean = sums[1] / sums[0]
    variance = sums[2] / sums[0] - mean**2
    third = sums[3] / sums[0] - 3 * mean * sums[2] / sums[0] + 2 * mean**3
    assert float(found.log_value) == pytest.approx(np.log(sums[0]), abs=1e-6)
    assert float(found.mean) == pytest.approx(mean, abs=1e-6)
    assert float(found.variance) == pytest.approx(variance, rel=1e-5)
    assert float(found.skewness) == pytest.approx(third / variance**1.5, abs=1e-4)


@pytest.mark.parametrize(("middle", "tau", "size"), [(-2.0, 0.5, 3.0), (3.0, 0.2, 4.0)])
def test_joint_divergence_of_counts_matches_the_sum_over_counts(middle, tau, size):
    x, w = np.polynomial.hermite_e.hermegauss(150)
    s = np.arange(600)
    mixed = (stats.poisson.pmf(s[:, None], size * np.exp(middle + tau * x)) * w).sum(1) / w.sum()
    start = stats.poisson.pmf(s, size * np.exp(middle))
    kept = (mixed > 1e-250) & (start > 1e-250)
    wanted = np.sum(mixed[kept] * np.log(mixed[kept] / start[kept]))
    found = evidence.poisson_group(*map(jnp.asarray, (middle, tau, size)))
    assert float(found) == pytest.approx(wanted, rel=1e-4)


def test_joint_divergence_of_proportions_matches_the_sum_over_all_numbers():
    middle, tau, size = 0.2, 0.3, 300
    x, w = np.polynomial.hermite_e.hermegauss(100)
    s = np.arange(size + 1)
    mixed = (stats.binom.pmf(s[:, None], size, 1 / (1 + np.exp(-middle - tau * x))) * w).sum(1)
    mixed /= w.sum()
    start = stats.binom.pmf(s, size, 1 / (1 + np.exp(-middle)))
    wanted = np.sum(mixed * np.log(mixed / start))
    nodes = evidence._binomial_nodes(size)
    found = evidence.binomial_group(*map(jnp.asarray, (middle, tau, float(size))), *nodes)
    assert float(found) == pytest.approx(wanted, rel=1e-3)


def test_joint_divergence_of_normals_is_that_of_linear_evidence():
    z = np.random.default_rng(0).normal(size=(7, 3))
    tau = np.array([1e-4, 0.3, 20.0])
    found = evidence.log_gaussian_kappa(jnp.log(tau), jnp.asarray(np.linalg.eigvalsh(z.T @ z)), 7.0)
    wanted = predcp.LinearEvidence(z)(jnp.asarray(tau**2)) / 7.0
    np.testing.assert_allclose(np.exp(found), wanted, rtol=1e-6)


@pytest.mark.long
def test_maps_are_those_of_the_designs_own_programs():
    tau = jnp.asarray([0.1, 0.5, 1.5])
    made = normal_design()
    model = program(made, "half-cauchy")
    known = {"coefficients": jnp.zeros(1), "log_noise": jnp.log(0.7)}
    found = predcp.complexity_of(
        model, "tau_0", jnp.asarray(made.y), 1.0, 1.0, rest=known, noise_draws=512
    )(tau)
    wanted = np.exp(2.0 * np.log(np.asarray(tau) / 0.7) + normal_constant())
    np.testing.assert_allclose(found, wanted, rtol=0.02)
    made = count_design()
    known = {"middle": jnp.asarray(-0.4)}
    found = predcp.complexity_of(
        program(made, "half-cauchy"),
        "tau_0",
        jnp.asarray(made.y),
        1.0,
        1.0,
        rest=known,
        noise_draws=1024,
    )(tau)
    wanted = np.exp(poisson_curve()(jnp.log(tau)) - 0.4)
    np.testing.assert_allclose(found, wanted, rtol=0.05)


def test_the_normal_table_gives_the_posterior_of_a_dense_grid():
    made = normal_design()
    y, z = made.y, made.z[0]
    rows = rows_like(made, np.array([0, 5]), made.new, 1.0)
    table = gaussian_table(rotated(made), jnp.asarray(y), jnp.zeros(4), rows)
    edges = table.edges[0]
    mass = np.exp(priors.log_mass(priors.half_normal(1.5), edges[:-1], edges[1:]))
    weights = mass[:, None] * np.exp(table.log_like - table.log_like.max())
    weights /= weights.sum()
    cells = jnp.asarray(weights.sum(1))
    # The reference: a dense grid of tau and log noise.
    taus, noises = np.linspace(1e-3, 6.0, 200), np.exp(np.linspace(-2.0, 1.5, 30))
    log_like = np.array([[log_likelihood(t, s, y, z) for s in noises] for t in taus])
    dense = np.exp(log_like - log_like.max()) * stats.halfnorm(scale=1.5).pdf(taus)[:, None]
    dense /= dense.sum()
    # A point of the grid stands for a step around it.
    below = np.cumsum(dense.sum(1)) - 0.5 * dense.sum(1)
    for level in (0.05, 0.5, 0.95):
        wanted = np.interp(level, below, taus)
        assert float(quantile(cells, edges, level)) == pytest.approx(wanted, rel=0.02, abs=0.01)
    means = np.array([y[made.groups == g].mean() for g in range(4)]) - y.mean()
    shrink = taus[:, None] ** 2 / (taus[:, None] ** 2 + noises**2 / 3.0)
    np.testing.assert_allclose(
        np.einsum("ck,cke->e", weights, table.mean), (dense * shrink).sum() * means, atol=2e-3
    )
    # A new row is normal(mean, noise^2 + tau^2 and the variance of the mean).
    variance = noises**2 + taus[:, None] ** 2 + (noises**2 / 3.0 + taus[:, None] ** 2) / 4.0
    wanted = (dense * stats.norm.pdf(1.0, y.mean(), np.sqrt(variance))).sum()
    found = np.einsum("ck,ckt->t", weights, np.exp(table.log_density))
    np.testing.assert_allclose(found, wanted, rtol=2e-3)


@pytest.mark.long
def test_groups_of_one_kind_share_an_integral():
    members = np.repeat(np.arange(3), 2)
    made = replace(count_design(), groups=members, z=(indicators(members),))
    # The first two groups have a sum of two each.
    y = np.array([1.0, 1.0, 2.0, 0.0, 1.0, 3.0])
    rows = rows_like(made, np.array([0, 5]), (False,), 1.0)
    groups = grouped(made)
    assert with_kinds(groups, y[None]).kinds == 2
    truth = jnp.asarray([0.1, -0.2, 0.3])
    whole, shared = (
        jax.jit(counts_table)(each, jnp.asarray(y), truth, rows)
        for each in (groups, with_kinds(groups, y[None]))
    )
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(shared), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_quantiles_and_distribution_function_of_cells_are_inverse():
    edges = jnp.asarray([0.0, 0.1, 0.4, 2.0, jnp.inf])
    cells = jnp.asarray([0.2, 0.3, 0.4, 0.1])
    for level in (0.1, 0.35, 0.6, 0.85):
        assert float(cdf(cells, edges, quantile(cells, edges, level))) == pytest.approx(level)


def test_a_mixed_row_is_normalised():
    y = jnp.arange(9.0)
    total = np.exp(log_mixed("binomial", y, 8.0, 0.3, 0.8)).sum()
    assert total == pytest.approx(1.0, abs=1e-6)


def test_simulations_are_the_same_for_the_same_seed_and_new_groups_are_new():
    made = normal_design()
    first, again = (simulation(made, 0.5, [1, 2, 3]) for _ in range(2))
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.any(first.rows.z[0]) and np.all(first.rows.group == -1)
    other = simulation(made, 0.5, [1, 2, 4])
    assert np.any(first.y != other.y)


def test_differences_are_paired_and_judged_in_the_direction_of_the_score():
    rng = np.random.default_rng(1)
    cell = rng.normal(size=200)
    theirs, ours = cell, cell - 0.1 + 0.05 * rng.normal(size=200)
    found = difference(ours, theirs)
    assert found.mean == pytest.approx(-0.1, abs=0.02) and found.error < 0.01
    assert verdict(found, "effect_error", 7000) == (1, True)
    assert verdict(found, "new_score", 7000) == (-1, True)
    same = difference(theirs, theirs)
    assert verdict(same, "effect_error", 7000) == (0, False)
    slight = difference(cell + 0.003 + 0.015 * rng.normal(size=200), theirs)
    assert verdict(slight, "effect_error", 7000)[1] is False


def test_sentences_are_checked_before_they_are_written(monkeypatch):
    made = sentences.sentences()
    assert made.count("\n- **") == 3 and "7,728 comparisons" in made
    worse = sentences._places(sentences.FEW, ("large",))
    assert sentences._all(worse, -1) and not sentences._all(worse, 1)
    # What helps and what hurts change places: the text would be wrong, and is refused.
    places = sentences._places
    swapped = {"large": "none", "none": "large"}
    monkeypatch.setattr(
        sentences,
        "_places",
        lambda designs, scales: places(designs, tuple(swapped.get(s, s) for s in scales)),
    )
    with pytest.raises(ValueError, match="the results no longer say"):
        sentences.sentences()


def test_later_cells_take_the_place_of_stored_ones(tmp_path):
    rng = np.random.default_rng(0)

    def simulated(design, offset):
        index = pd.MultiIndex.from_product([["none"], range(4), ["pc", "half-t"]])
        frame = pd.DataFrame(rng.normal(size=(8, len(store.SCORES))) + offset, index, store.SCORES)
        frame = frame.reset_index(names=["scale", "simulation", "prior"])
        return frame.assign(design=design, seconds=1.0, task=design)

    def folder(name, frame, commit):
        (tmp_path / name).mkdir()
        frame.to_parquet(tmp_path / name / "simulated.parquet")
        (tmp_path / name / "made.json").write_text(f'{{"commit": "{commit}"}}')
        return tmp_path / name

    path = tmp_path / "store.parquet"
    first = store.simulated_rows(pd.concat([simulated("a", 0.0), simulated("b", 0.0)]))
    store._write(first, [{"commit": "1"}], path)
    store.replace_cells(folder("later", simulated("b", 50.0), "2"), path)
    moved = store.stored(path)[1][store.AGAIN]
    assert moved.startswith("b (") and 45.0 < float(moved[3:-1]) < 55.0
    store.replace_cells(tmp_path / "later", path)
    frame, made = store.stored(path)
    store.stored.cache_clear()
    means = frame.groupby("design")["effect_error"].mean()
    assert made["commit"] == "1, then 2" and len(frame) == 4
    assert abs(means["a"]) < 5.0 and means["b"] > 40.0
    with pytest.raises(ValueError, match="not the same cells"):
        store.replace_cells(folder("other", simulated("c", 0.0), "3"), path)
    store.stored.cache_clear()


def test_what_pages_say_in_words_is_what_the_store_says():
    told = set()
    for page in report_module.PAGES:
        for block in report_module.BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block[2] in report_module.TOLD:
                found = block[0].removeprefix(block[1]).removesuffix(block[3])
                assert found == report_module.TOLD[block[2]](), f"{page.name}: {block[2]} is stale"
                told.add(block[2])
    assert told == set(report_module.TOLD)


def test_costs_are_told_whichever_way_they_fall():
    worse = costs.told("predcp-gamma", -1)
    assert [each.design for each in worse][:2] == ["gp", "mcycle"]
    assert worse[0].found.mean == pytest.approx(-2.23, abs=0.01)
    # Twenty splits with a fifth held out are worth fewer: errors grow by sqrt(1 + 20 / 4).
    assert worse[0].corrected == pytest.approx(worse[0].found.ratio / np.sqrt(6.0))
    ratio, low, high = costs.slower("predcp-log-cauchy")["sleepstudy"]
    assert low < ratio < high and ratio > 10.0
    frame = store.part("nuts")
    assert len(frame) + 4 * len(costs.unfinished()) >= 160


@pytest.mark.long
def test_pages_are_as_the_store_has_them():
    assert report_module.report([], check=True) == 0


@pytest.mark.long
def test_the_program_has_the_prior_it_is_asked_for():
    from numpyro import handlers

    made = normal_design()
    for name, kind in (("half-t", dist.FoldedDistribution), ("pc", dist.Exponential)):
        seeded = handlers.seed(program(made, name), 0)
        trace = handlers.trace(seeded).get_trace(jnp.asarray(made.y), SD, BRMS)
        assert isinstance(trace["tau_0"]["fn"], kind)
