"""Programs with a complexity prior in place of a scale's own, in everything NumPyro does with them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.initialization import init_to_feasible, init_to_value
from numpyro.infer.reparam import LocScaleReparam
from numpyro.infer.util import initialize_model, log_density
from scipy import stats

import predcp
from tests.program import designs, programs
from tests.program.programs import EXAMPLES

PI = predcp.Gamma(shape=0.5, scale=1.0)
HEAVY = predcp.LogCauchy(scale=1.0)
Y, SIGMA = (jnp.asarray(each) for each in designs.eight_schools())


def prior_values(model, args, key=0, kind="sample"):
    """Latent values of one draw from the program's prior; `kind` of the sites."""

    @jax.jit
    def drawn(key):
        trace = handlers.trace(handlers.seed(model, key)).get_trace(*args)
        return {
            name: site["value"]
            for name, site in trace.items()
            if site["type"] == kind and not site.get("is_observed")
        }

    return drawn(jax.random.key(key))


def schools(**options):
    return predcp.with_complexity(programs.eight_schools, {"tau": PI}, **options)


# The density


def density_of(model, args, values):
    """The log density of a program, compiled: operation by operation it costs ten times as much."""
    return jax.jit(lambda values: log_density(model, args, {}, values)[0])(values)


def prepared(model, *args):
    """A sampler's view of a program, without a search for a start, which compiles each operation."""
    return initialize_model(
        jax.random.key(0),
        model,
        model_args=args,
        validate_grad=False,
        init_strategy=init_to_feasible,
    )


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("eight schools", "prior"),
        ("AR(1) with scan", "given"),
        ("BYM", "given"),
        pytest.param("eight schools", "given", marks=pytest.mark.long),
        pytest.param("BYM", "prior", marks=pytest.mark.long),
    ],
)
def test_joint_density_is_the_original_with_the_prior_exchanged(name, rest):
    example = EXAMPLES[name]
    args, scale = example.args(), example.scale
    options = {"noise_draws": 4, "method": "plain"}
    values = prior_values(example.model, args)
    before = density_of(example.model, args, values)
    trace = handlers.trace(handlers.substitute(example.model, values)).get_trace(*args)
    old = trace[scale]["fn"].log_prob(values[scale])
    made = predcp.complexity_of(example.model, scale, *args, **options)
    if rest == "given":
        given = {site: values[site] for site in made.program.sites.rest}
        made = predcp.complexity_of(example.model, scale, *args, rest=given, **options)
    new = predcp.ComplexityPrior(PI, made).log_prob(values[scale])
    swapped = predcp.with_complexity(example.model, {scale: PI}, rest=rest, **options)
    after = density_of(swapped, args, values)
    np.testing.assert_allclose(after, before - old + new, rtol=1e-10)


def constrained(group, y):
    """Constrained sites that the scale moves, and some that it leaves."""
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    phi = numpyro.sample("phi", dist.Uniform(-1, 1))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    weight = numpyro.sample("weight", dist.Dirichlet(jnp.ones(3)))
    with numpyro.plate("groups", 3):
        effect = numpyro.sample("effect", dist.LogNormal(phi, tau))
        noise = numpyro.sample("noise", dist.Gamma(2.0, 1.0))
    mean = (weight * effect)[group]
    numpyro.sample("y", dist.Normal(mean, sigma * noise[group]), obs=y)


def constrained_scan(group, y):
    """The same inside of a scan."""
    phi = numpyro.sample("phi", dist.Uniform(-1, 1))
    tau = numpyro.sample("tau", dist.HalfNormal(1))

    def step(before, now):
        noise = numpyro.sample("noise", dist.Gamma(2.0, 1.0))
        effect = numpyro.sample("effect", dist.Normal(phi * before, tau))
        numpyro.sample("y", dist.Normal(effect, noise), obs=now)
        return effect, None

    scan(step, 0.0, y)


@pytest.mark.parametrize(
    "model,rest",
    [
        (constrained, "given"),
        (constrained_scan, "prior"),
        pytest.param(constrained, "prior", marks=pytest.mark.long),
        pytest.param(constrained_scan, "given", marks=pytest.mark.long),
    ],
)
def test_a_sampler_sees_the_original_with_the_prior_exchanged(model, rest):
    # The potential of a sampler contains the Jacobian of each constrained site, once.
    args = jnp.array([0, 1, 2, 2]), jnp.array([0.5, 1.0, 2.0, 0.1])
    options = {"noise_draws": 4, "method": "plain"}
    swapped = predcp.with_complexity(model, {"tau": PI}, rest=rest, **options)
    before, after = (prepared(each, *args) for each in (model, swapped))
    at = jax.tree.map(lambda leaf: leaf + 0.3, before.param_info.z)
    values = jax.jit(before.postprocess_fn)(at)
    given = {name: values[name] for name in values if name not in ("tau", "effect")}
    fixed = {"rest": given} if rest == "given" else {}
    made = predcp.complexity_of(model, "tau", *args, **fixed, **options)
    new = predcp.ComplexityPrior(PI, made).log_prob(values["tau"])
    old = dist.HalfNormal(1).log_prob(values["tau"])
    wanted = jax.jit(before.potential_fn)(at) + old - new
    np.testing.assert_allclose(jax.jit(after.potential_fn)(at), wanted, rtol=1e-7)


def local_scales(y):
    """A probit program with local scales, which the predictions ignore where the scale is 0."""
    twice = numpyro.sample("twice", dist.Bernoulli(0.5))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    local = numpyro.sample("local", dist.HalfNormal(1))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([3]).to_event(1))
    predictor = (1 + twice) * tau * local * z
    numpyro.sample("y", dist.Bernoulli(probs=jax.scipy.special.ndtr(predictor)), obs=y)


def test_slopes_by_sites_that_act_through_the_scale_alone_are_those_of_differences():
    # The density of a gamma of shape 1/2 would not show a slope of D that is lost.
    pi = predcp.Exponential(mean=1.0)
    model = predcp.with_complexity(local_scales, {"tau": pi}, noise_draws=2, method="plain")
    values = {"twice": jnp.array(1), "z": jnp.array([0.3, -1.0, 0.1])}

    def density(local, tau):
        known = values | {"local": local, "tau": tau}
        return log_density(model, (jnp.array([0, 1, 1]),), {}, known)[0]

    @jax.jit
    @partial(jax.vmap, in_axes=(None, 0))
    def slopes(local, tau):
        step = 1e-5
        ahead, behind = density(local + step, tau), density(local - step, tau)
        return jax.grad(density)(local, tau), (ahead - behind) / (2.0 * step)

    found, wanted = slopes(jnp.asarray(0.7), jnp.array([1e-5, 0.3]))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_reparameterised_site_of_the_rest_stays_a_site():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        level = numpyro.sample("level", dist.Normal(mu, 2.0))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        effect = numpyro.sample("effect", dist.Normal(level, tau).expand([3]).to_event(1))
        numpyro.sample("y", dist.Poisson(jnp.exp(effect)), obs=y)

    y, config = jnp.array([1, 2, 4]), {"level": LocScaleReparam(0), "effect": LocScaleReparam(0)}
    inside = predcp.with_complexity(
        handlers.reparam(model, config=config), {"tau": PI}, noise_draws=4
    )
    outside = handlers.reparam(
        predcp.with_complexity(model, {"tau": PI}, noise_draws=4), config=config
    )
    infos = [prepared(each, y) for each in (inside, outside)]
    at = jax.tree.map(lambda leaf: leaf + 0.3, infos[0].param_info.z)
    assert set(infos[1].param_info.z) == set(at)
    densities = [jax.jit(info.potential_fn)(at) for info in infos]
    np.testing.assert_allclose(*densities, rtol=1e-12)


def test_a_heavy_tail_is_sampled_by_its_logarithm_and_recorded_by_name():
    model = predcp.with_complexity(programs.eight_schools, {"tau": HEAVY})
    values = prior_values(model, (Y, SIGMA))
    assert "log_tau" in values and "tau" not in values
    after, trace = log_density(model, (Y, SIGMA), {}, values)
    np.testing.assert_allclose(trace["tau"]["value"], jnp.exp(values["log_tau"]))
    original = {**values, "tau": jnp.exp(values["log_tau"])}
    del original["log_tau"]
    before, sites = log_density(programs.eight_schools, (Y, SIGMA), {}, original)
    made = predcp.complexity_of(programs.eight_schools, "tau", Y, SIGMA, rest={"mu": values["mu"]})
    new = predcp.ComplexityPrior(HEAVY, made).log_scale().log_prob(values["log_tau"])
    old = sites["tau"]["fn"].log_prob(original["tau"])
    np.testing.assert_allclose(after, before - old + new, rtol=1e-10)


def test_values_of_the_rest_may_be_fixed():
    fixed = predcp.with_complexity(programs.eight_schools, {"tau": PI}, rest={"mu": 1.0})
    given = schools()
    values = {**prior_values(programs.eight_schools, (Y, SIGMA)), "mu": jnp.asarray(1.0)}
    densities = [density_of(model, (Y, SIGMA), values) for model in (fixed, given)]
    np.testing.assert_allclose(*densities, rtol=1e-12)


def test_two_scales_in_order_form_a_proper_joint_prior():
    row, column = np.repeat(np.arange(3), 2), np.tile(np.arange(2), 3)

    def crossed(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        first = numpyro.sample("first", dist.HalfNormal(1))
        second = numpyro.sample("second", dist.HalfNormal(1))
        a = numpyro.sample("a", dist.Normal(0, first).expand([3]).to_event(1))
        b = numpyro.sample("b", dist.Normal(0, second).expand([2]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=mu + a[row] + b[column]), obs=y)

    pi = predcp.Exponential(mean=0.1)
    model = predcp.with_complexity(crossed, {"first": pi, "second": pi}, noise_draws=4)
    fixed = {"mu": jnp.asarray(0.4), "a": jnp.array([0.5, -1.0, 2.0]), "b": jnp.array([1.0, 0.2])}
    y = jnp.array([1, 0, 1, 1, 0, 1])

    def density(log_first, log_second):
        values = {**fixed, "first": jnp.exp(log_first), "second": jnp.exp(log_second)}
        trace = handlers.trace(handlers.substitute(model, values)).get_trace(y)
        parts = [trace[name]["fn"].log_prob(values[name]) for name in ("first", "second")]
        return jnp.exp(sum(parts) + log_first + log_second), jnp.exp(parts[0] + log_first)

    grid = jnp.linspace(-9.0, 9.0, 121)
    both = jax.jit(jax.vmap(jax.vmap(density, (None, 0)), (0, None)))
    joint, marginal = both(grid, grid)
    step = grid[1] - grid[0]
    # The trapezoid rule is spectrally accurate for densities that vanish at both ends.
    np.testing.assert_allclose(joint.sum() * step**2, 1.0, atol=2e-4)
    np.testing.assert_allclose(joint.sum(1) * step, marginal[:, 0], atol=2e-4)


def test_a_later_scale_sees_the_effects_of_an_earlier_one_and_not_the_reverse():
    args = designs.crossed()
    model = predcp.with_complexity(
        programs.crossed, {"sd_row": PI, "sd_column": PI}, noise_draws=4, method="plain"
    )
    values = prior_values(programs.crossed, args)

    def densities(**changed):
        substituted = handlers.substitute(model, {**values, **changed})
        trace = handlers.trace(substituted).get_trace(*args)
        return [trace[name]["fn"].log_prob(values[name]) for name in ("sd_row", "sd_column")]

    start = densities()
    moved_rows, moved_columns = densities(r=3.0 * values["r"]), densities(c=3.0 * values["c"])
    assert moved_rows[0] == start[0] and moved_rows[1] != start[1]
    assert moved_columns == start


# Inference


def test_nuts_records_the_scale():
    kernel = NUTS(predcp.with_complexity(programs.eight_schools_noncentred, {"tau": HEAVY}))
    mcmc = MCMC(kernel, num_warmup=20, num_samples=20, progress_bar=False)
    mcmc.run(jax.random.key(0), Y, SIGMA)
    draws = mcmc.get_samples()
    np.testing.assert_allclose(draws["tau"], jnp.exp(draws["log_tau"]))
    assert draws["theta"].shape == (20, 8)
    assert np.all(np.isfinite(draws["theta"]))


def test_variational_inference_improves_its_bound():
    model = schools(noise_draws=4)
    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
    result = svi.run(jax.random.key(0), 300, Y, SIGMA, progress_bar=False)
    assert np.all(np.isfinite(result.losses))
    assert np.mean(result.losses[-50:]) < np.mean(result.losses[:10])
    assert "tau" in svi.guide.median(result.params)


@pytest.mark.parametrize("rest", ["given", "prior"])
def test_forward_draws_have_the_stated_divergences(rest):
    model = predcp.with_complexity(programs.cbpp, {"sigma": PI}, rest=rest, noise_draws=4)
    args = designs.cbpp()
    draws = Predictive(model, num_samples=300)(jax.random.key(1), *args)
    assert draws["u"].shape == (300, 15)
    whole = predcp.complexity_of(programs.cbpp, "sigma", *args, noise_draws=4)

    def level(sigma, beta):
        made = whole
        if rest == "given":
            made = predcp.complexity_of(
                programs.cbpp, "sigma", *args, rest={"beta": beta}, noise_draws=4
            )
        return predcp.ComplexityPrior(PI, made).cdf(sigma)

    levels = jax.jit(jax.vmap(level))(draws["sigma"], draws["beta"])
    assert stats.kstest(np.asarray(levels), "uniform").pvalue > 1e-3


def test_initialize_model_and_its_gradient():
    info = initialize_model(
        jax.random.key(0), schools(), model_args=(Y, SIGMA), init_strategy=init_to_value
    )
    assert set(info.param_info.z) == {"mu", "tau", "theta"}
    gradient = jax.jit(jax.grad(info.potential_fn))(info.param_info.z)
    assert all(np.all(np.isfinite(each)) for each in gradient.values())


def test_jit_and_vmap_agree_with_plain_calls():
    model = schools()
    values = [prior_values(programs.eight_schools, (Y, SIGMA), key) for key in range(3)]
    stacked = jax.tree.map(lambda *each: jnp.stack(each), *values)

    def density(values, y):
        return log_density(model, (y, SIGMA), {}, values)[0]

    plain = [density(each, Y) for each in values]
    compiled = jax.jit(jax.vmap(density, (0, None)))(stacked, Y)
    np.testing.assert_allclose(compiled, jnp.stack(plain), rtol=1e-12)


def test_no_second_trace_for_new_data():
    calls = []
    model = schools()

    @jax.jit
    def density(values, y, sigma):
        calls.append(1)
        return log_density(model, (y, sigma), {}, values)[0]

    values = prior_values(programs.eight_schools, (Y, SIGMA))
    first, second = density(values, Y, SIGMA), density(values, Y + 1.0, 2.0 * SIGMA)
    assert len(calls) == 1 and first != second


# Handlers


@pytest.mark.parametrize("inside", [True, False])
def test_reparam_inside_and_outside(inside):
    config = {"theta": LocScaleReparam(0.0)}
    if inside:
        changed = handlers.reparam(programs.eight_schools, config=config)
        model = predcp.with_complexity(changed, {"tau": PI})
    else:
        model = handlers.reparam(schools(), config=config)
    values = prior_values(model, (Y, SIGMA))
    assert "theta_decentered" in values
    after, trace = log_density(model, (Y, SIGMA), {}, values)
    theta = values["mu"] + values["tau"] * values["theta_decentered"]
    np.testing.assert_allclose(trace["theta"]["value"], theta)
    centred = {"mu": values["mu"], "tau": values["tau"], "theta": theta}
    wanted = log_density(schools(), (Y, SIGMA), {}, centred)[0] + 8.0 * jnp.log(values["tau"])
    np.testing.assert_allclose(after, wanted, rtol=1e-9)


def test_condition_observes_a_latent_site():
    values = prior_values(programs.eight_schools, (Y, SIGMA))
    known = {"mu": values.pop("mu")}
    model = handlers.condition(schools(), known)
    after, trace = log_density(model, (Y, SIGMA), {}, values)
    assert trace["mu"]["is_observed"]
    np.testing.assert_allclose(
        after, log_density(schools(), (Y, SIGMA), {}, {**values, **known})[0], rtol=1e-12
    )
    inside = predcp.with_complexity(handlers.condition(programs.eight_schools, known), {"tau": PI})
    np.testing.assert_allclose(log_density(inside, (Y, SIGMA), {}, values)[0], after, rtol=1e-12)


@pytest.mark.parametrize(
    "handler",
    [lambda m: handlers.scale(m, scale=0.5), lambda m: handlers.mask(m, mask=jnp.array(False))],
    ids=["scale", "mask"],
)
def test_scale_and_mask_reach_every_site(handler):
    values = prior_values(programs.eight_schools, (Y, SIGMA))
    whole = log_density(schools(), (Y, SIGMA), {}, values)[0]
    changed = log_density(handler(schools()), (Y, SIGMA), {}, values)[0]
    factor = log_density(handler(programs.eight_schools), (Y, SIGMA), {}, values)[0]
    factor = factor / log_density(programs.eight_schools, (Y, SIGMA), {}, values)[0]
    np.testing.assert_allclose(changed, factor * whole, rtol=1e-9)


def test_do_and_block_and_replay():
    model = schools()
    done = handlers.do(model, {"tau": jnp.asarray(2.0)})
    values = prior_values(programs.eight_schools, (Y, SIGMA))
    trace = handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(Y, SIGMA)
    replayed = handlers.trace(handlers.replay(model, trace)).get_trace(Y, SIGMA)
    np.testing.assert_array_equal(replayed["theta"]["value"], trace["theta"]["value"])
    shown = handlers.trace(handlers.seed(done, jax.random.key(0))).get_trace(Y, SIGMA)
    spread = shown["theta"]["fn"]
    while hasattr(spread, "base_dist"):
        spread = spread.base_dist
    np.testing.assert_allclose(spread.scale, 2.0)
    del values["tau"]
    hidden = handlers.block(handlers.substitute(model, {"tau": jnp.asarray(1.0)}), hide=["tau"])
    assert np.isfinite(log_density(hidden, (Y, SIGMA), {}, values)[0])


def test_subsampling_keeps_one_prior_for_every_batch():
    args = tuple(jnp.asarray(each) for each in designs.radon())
    model = predcp.with_complexity(programs.subsampled, {"tau": PI}, noise_draws=4, method="plain")
    values = prior_values(programs.subsampled, args)

    @jax.jit
    def parts(key):
        seeded = handlers.seed(handlers.substitute(model, values), key)
        trace = handlers.trace(seeded).get_trace(*args)
        return trace["tau"]["fn"].log_prob(values["tau"]), trace["houses"]["value"]

    (first, rows), (second, others) = parts(jax.random.key(0)), parts(jax.random.key(1))
    assert not np.array_equal(rows, others)
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.long
def test_subsampled_rows_are_fitted_by_variational_inference():
    args = tuple(jnp.asarray(each) for each in designs.radon())
    model = predcp.with_complexity(programs.subsampled, {"tau": PI}, noise_draws=4, method="plain")
    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
    losses = svi.run(jax.random.key(0), 5, *args, progress_bar=False).losses
    assert np.all(np.isfinite(losses))


def test_statement_in_own_units_holds_in_forward_draws():
    statement = predcp.tail(scale=10.0, probability=0.1)
    model = predcp.with_complexity(programs.eight_schools, {"tau": statement})
    draws = Predictive(model, num_samples=1500)(jax.random.key(0), Y, SIGMA)["tau"]
    share = float(np.mean(draws > 10.0))
    # Four standard errors.
    assert abs(share - 0.1) < 4.0 * np.sqrt(0.09 / 1500)


def test_a_statement_is_solved_anew_for_other_data():
    statement = predcp.tail(noise_ratio=1.0, probability=0.1)
    model = predcp.with_complexity(programs.eight_schools, {"tau": statement})

    def pi(y, sigma):
        seeded = handlers.seed(model, jax.random.key(0))
        prior = handlers.trace(seeded).get_trace(y, sigma)["tau"]["fn"]
        return prior.icdf(0.9)

    plain = pi(np.asarray(Y), np.asarray(SIGMA))
    # The noise is twice as large, so the same statement allows twice the scale.
    np.testing.assert_allclose(pi(np.asarray(Y), 2.0 * np.asarray(SIGMA)), 2.0 * plain, rtol=1e-6)


def test_new_data_that_the_program_draws_come_last():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        effect = numpyro.sample("effect", dist.Normal(mu, tau).expand([3]).to_event(1))
        rate = jnp.exp(effect)
        numpyro.sample("new", dist.Poisson(1e-6 * rate + 5.0))
        numpyro.sample("y", dist.Poisson(rate), obs=y)

    changed = predcp.with_complexity(model, {"tau": PI}, noise_draws=4)
    draws = Predictive(changed, num_samples=10)(jax.random.key(0), jnp.array([1, 2, 0]))
    assert draws["new"].shape == (10, 3) and np.all(np.isfinite(draws["tau"]))


def test_entries_of_one_site_are_sampled_in_order():
    args = designs.sleepstudy()
    model = predcp.with_complexity(programs.sleepstudy_vector, {"tau": PI}, noise_draws=4)
    values = prior_values(model, args)
    entries = [values[f"tau_{place}"] for place in range(2)]
    recorded = prior_values(model, args, kind="deterministic")
    np.testing.assert_allclose(recorded["tau"], jnp.stack(entries), rtol=1e-12)
    assert np.isfinite(density_of(model, args, values))


def test_a_program_without_its_data_runs_forwards():
    def model(y=None):
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        with numpyro.plate("groups", 4):
            effect = numpyro.sample("effect", dist.Normal(0.0, tau))
            numpyro.sample("y", dist.Poisson(jnp.exp(effect)), obs=y)

    better = predcp.with_complexity(model, {"tau": predcp.Exponential(mean=0.1)}, noise_draws=2)
    forwards = numpyro.infer.Predictive(better, num_samples=5)(jax.random.key(0))
    assert forwards["y"].shape == (5, 4)
    given = numpyro.infer.Predictive(better, {"tau": forwards["tau"], "effect": forwards["effect"]})
    assert given(jax.random.key(1))["y"].shape == (5, 4)
