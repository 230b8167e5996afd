"""Parameters, improper priors and computed scales in programs with complexity priors."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.distributions import constraints
from numpyro.infer.util import log_density
from scipy import special, stats

import predcp
from predcp.program._increasing import GRID, require_increasing_values
from predcp.program._noise import drawn

GROUP, COUNTS = np.array([0, 0, 1, 2]), np.array([1, 3, 0, 2])
PI = predcp.Exponential(mean=0.3)
VALUES = {"tau": jnp.asarray(0.7), "effect": jnp.array([0.2, -0.1, 0.4])}
IMPROPER = dist.ImproperUniform(constraints.real, (), ())


def counts(average):
    """A program whose average is whatever `average()` says."""

    def model(group, y):
        mean = average()
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        with numpyro.plate("groups", 3):
            effect = numpyro.sample("effect", dist.Normal(mean, tau))
        numpyro.sample("y", dist.Poisson(jnp.exp(effect[group])), obs=y)

    return model


SAMPLED = counts(lambda: numpyro.sample("average", dist.Normal(0, 1)))
FLAT = counts(lambda: numpyro.sample("average", IMPROPER))
PARAMETER = counts(lambda: numpyro.param("average", 0.0))


def density(model, values, params=None, rest="given"):
    swapped = predcp.with_complexity(model, {"tau": PI}, rest=rest, noise_draws=2, method="plain")
    known = handlers.substitute(swapped, params or {})
    return jax.jit(lambda v: log_density(known, (GROUP, COUNTS), {}, v)[0])(values)


def test_parameters_and_flat_priors_leave_the_map_of_the_values_of_this_call():
    parameter = {"average": jnp.asarray(1.3)}
    whole = {**VALUES, **parameter}
    wanted = density(SAMPLED, whole) - dist.Normal(0, 1).log_prob(1.3)
    np.testing.assert_allclose(density(FLAT, whole), wanted, rtol=1e-12)
    np.testing.assert_allclose(density(PARAMETER, VALUES, parameter), wanted, rtol=1e-12)
    # Averaging over the rest leaves parameters where they are.
    averaged = density(PARAMETER, VALUES, parameter, rest="prior")
    np.testing.assert_allclose(averaged, wanted, rtol=1e-12)
    given = [
        predcp.complexity_of(
            model, "tau", GROUP, COUNTS, rest=parameter, noise_draws=2, method="plain"
        )
        for model in (PARAMETER, SAMPLED)
    ]
    np.testing.assert_allclose(given[0](0.5), given[1](0.5), rtol=1e-12)


def test_draws_of_an_improper_prior_are_refused():
    wanted = r"'average' has an improper prior.*rest=\{'average': ...\}"
    with pytest.raises(ValueError, match=wanted):
        predcp.complexity_of(FLAT, "tau", GROUP, COUNTS, noise_draws=2)
    with pytest.raises(ValueError, match=wanted):
        predcp.audit(FLAT, GROUP, COUNTS)
    swapped = predcp.with_complexity(FLAT, {"tau": predcp.tail(rate_ratio=2.0)}, noise_draws=2)
    with pytest.raises(ValueError, match=wanted):
        handlers.seed(swapped, jax.random.key(0))(GROUP, COUNTS)


def flat_scale(group, y):
    tau = numpyro.sample("tau", dist.ImproperUniform(constraints.positive, (), ()))
    with numpyro.plate("groups", 3):
        effect = numpyro.sample("effect", dist.Normal(0, tau))
    numpyro.sample("y", dist.Poisson(jnp.exp(effect[group])), obs=y)


def test_an_improper_scale_can_be_replaced_and_not_audited():
    made = predcp.complexity_of(flat_scale, "tau", GROUP, COUNTS, noise_draws=2, method="plain")
    wanted = predcp.ComplexityPrior(PI, made).log_prob(VALUES["tau"])
    swapped = predcp.with_complexity(flat_scale, {"tau": PI}, noise_draws=2, method="plain")
    held = handlers.substitute(swapped, VALUES)
    found = handlers.trace(held).get_trace(GROUP, COUNTS)["tau"]["fn"].log_prob(VALUES["tau"])
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    with pytest.raises(ValueError, match=r"scale 'tau' is improper.*proper prior"):
        predcp.audit(flat_scale, GROUP, COUNTS)


def computed_scale(group, y):
    tau = numpyro.deterministic("tau", jnp.exp(numpyro.sample("log_tau", dist.Normal(0, 1))))
    with numpyro.plate("groups", 3):
        effect = numpyro.sample("effect", dist.Normal(0, tau))
    numpyro.sample("y", dist.Poisson(jnp.exp(effect[group])), obs=y)


def test_a_computed_scale_is_refused():
    with pytest.raises(ValueError, match=r"'tau' is computed.*tau = numpyro.sample.*LogNormal"):
        predcp.complexity_of(computed_scale, "tau", GROUP, COUNTS)
    with pytest.raises(ValueError, match=r"no scale to audit.*sample a scale itself"):
        predcp.audit(computed_scale, GROUP, COUNTS)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: predcp.complexity_of(SAMPLED, "tau", GROUP, COUNTS, off=["typo"]), r"off must.*typo"),
        (lambda: predcp.audit(SAMPLED, GROUP, COUNTS, rest={"typo": 0.0}), r"rest must.*typo"),
        (lambda: predcp.audit(SAMPLED, GROUP, COUNTS, observed=["typo"]), r"observed must.*typo"),
        (lambda: density(SAMPLED, VALUES, rest={"typo": 0.0}), r"rest must name.*typo"),
    ],
)  # fmt: skip
def test_names_that_the_program_does_not_have(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def probit(group, y):
    average = numpyro.sample("average", dist.Normal(0, 1))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    with numpyro.plate("groups", 3):
        effect = numpyro.sample("effect", dist.Normal(average, tau))
    numpyro.sample("y", dist.Bernoulli(probs=jax.scipy.stats.norm.cdf(effect[group])), obs=y)


def test_probabilities_that_underflow_have_gradients():
    answers = (COUNTS > 0).astype(int)
    made = predcp.complexity_of(probit, "tau", GROUP, answers, rest={"average": 0.3}, noise_draws=2)
    z = np.asarray(made.noise["sites"]["effect"])[:, GROUP]
    start = stats.norm.cdf(0.3)
    p = stats.norm.cdf(0.3 + 2.0 * z)
    by_hand = np.mean(special.rel_entr(p, start) + special.rel_entr(1.0 - p, 1.0 - start))

    @jax.jit
    @jax.jacrev
    def gradients(at):
        moved = made.trusted(**vars(made) | {"rest": {"average": at["average"]}})
        return moved.log_value_and_elasticity(at["log_tau"])

    # At e^3 probabilities underflow, at e^10 every prediction is saturated.
    for log_tau in (0.0, 3.0, 10.0):
        found = gradients({"average": jnp.asarray(0.3), "log_tau": jnp.asarray(log_tau)})
        assert np.all(np.isfinite(jax.tree.leaves(found)))
    np.testing.assert_allclose(made(2.0), by_hand, rtol=1e-9)


def test_slopes_by_the_rest_are_finite_for_the_root_of_a_variance():
    def model(y):
        average = numpyro.sample("average", dist.Normal(0, 1))
        width = numpyro.sample("width", dist.HalfNormal(1))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        # The root has no slope at zero.
        spread = jnp.sqrt(tau**2 * width)
        effect = numpyro.sample("effect", dist.Normal(average, spread).expand([3]).to_event(1))
        numpyro.sample("y", dist.Poisson(jnp.exp(effect)), obs=y)

    rest = {"average": jnp.asarray(0.3), "width": jnp.asarray(2.0)}
    made = predcp.complexity_of(model, "tau", COUNTS[:3], rest=rest, noise_draws=2, method="plain")

    @jax.jit
    @jax.grad
    def slopes(at):
        moved = made.trusted(**vars(made) | {"rest": at})
        return moved.log_value_and_elasticity(jnp.zeros(()))[0]

    found, elasticity = slopes(rest), made.log_value_and_elasticity(jnp.zeros(()))[1]
    # Divergences grow with the rate; a width of 2 is a scale of the root of 2.
    np.testing.assert_allclose(found["average"], 1.0, rtol=1e-9)
    np.testing.assert_allclose(found["width"], 0.5 * np.exp(elasticity) / 2.0, rtol=1e-9)


def test_draws_of_discrete_sites_stay_whole_numbers():
    def mixture(y):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        means = numpyro.sample("means", dist.Normal(0, tau).expand([2]).to_event(1))
        which = numpyro.sample("which", dist.Categorical(weights).expand([4]).to_event(1))
        numpyro.sample("y", dist.Normal(means[which], 1.0), obs=y)

    made = predcp.complexity_of(mixture, "tau", np.zeros(4), noise_draws=3, method="plain")
    which, z = np.asarray(made.noise["rest"]["which"]), np.asarray(made.noise["sites"]["means"])
    moved = np.take_along_axis(z, which, axis=1)
    np.testing.assert_allclose(made(2.0), np.mean(2.0 * moved**2), rtol=1e-9)


def test_a_statement_needs_the_data_themselves():
    swapped = predcp.with_complexity(SAMPLED, {"tau": predcp.tail(divergence=1.0)}, noise_draws=2)
    values = {**VALUES, "average": jnp.asarray(0.0)}

    with pytest.raises(ValueError, match=r"being traced: let the compiled function close over"):
        jax.jit(lambda y: log_density(swapped, (GROUP, y), {}, values)[0])(COUNTS)


def noisy(x, y):
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    slope = numpyro.sample("slope", dist.Normal(0, tau))
    numpyro.sample("y", dist.Normal(0.0, jnp.exp(slope * x)), obs=y)


X = np.linspace(-1.0, 1.0, 4)


def test_a_scale_that_moves_the_noise_alone_has_no_size_in_units_of_the_noise():
    found = predcp.audit(noisy, X, X, samples=8, noise_draws=2)["tau"]
    assert not found.responses and "noise" not in found.words
    swapped = predcp.with_complexity(noisy, {"tau": predcp.tail(noise_ratio=1.0)}, noise_draws=2)
    with pytest.raises(ValueError, match=r"noise_ratio = 1.0 is never reached.*scale or diverg"):
        handlers.seed(swapped, jax.random.key(0))(X, X)


def test_a_statement_beyond_computing_is_refused():
    statement = predcp.tail(scale=1e12)
    swapped = predcp.with_complexity(flat_scale, {"tau": statement}, noise_draws=2)
    with pytest.raises(
        ValueError, match=r"scale = 1000000000000.0 moves predictions by more than can be"
    ):
        handlers.seed(swapped, jax.random.key(0))(GROUP, COUNTS)


def discriminations(size):
    """A response to which a scale adds nothing: it multiplies, by an exponential."""

    def model(ability, y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([4]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=size(tau, z) * ability), obs=y)

    return model


def lognormal(ability, y):
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    a = numpyro.sample("z", dist.LogNormal(0, tau).expand([4]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=a * ability), obs=y)


ABILITY, ANSWERS = np.array([-2.0, 0.3, 1.0, 4.0]), np.array([0, 1, 1, 0])


def test_draws_of_an_exponential_are_capped_with_their_slope():
    def at(scale):
        return drawn(dist.LogNormal(0.0, scale), jnp.asarray([-1.0, 0.0, 1.0]))

    value, slope = jax.jvp(at, (jnp.asarray(1e4),), (jnp.asarray(1.0),))
    assert np.all(np.isfinite(value)) and value[2] > 1e150
    np.testing.assert_array_equal(slope, 0.0)


@pytest.mark.long
def test_an_exponential_of_the_scale_saturates_and_does_not_overflow():
    options = {"noise_draws": 4, "method": "plain"}
    model = discriminations(lambda tau, z: jnp.exp(tau * z))
    made = predcp.complexity_of(model, "tau", ABILITY, ANSWERS, **options)
    centred = predcp.complexity_of(lognormal, "tau", ABILITY, ANSWERS, **options)
    # From the answers that turn into certainties to those that turn into coin tosses.
    up = np.asarray(made.noise["sites"]["z"]) > 0.0
    p = special.expit(ABILITY)
    certain = np.log1p(np.exp(-np.abs(ABILITY)))
    tossed = -np.log(2.0) - 0.5 * (np.log(p) + np.log1p(-p))
    supremum = np.mean(np.where(up, certain, tossed))
    for each in (made, centred):
        log_kappa, log_elasticity = each.log_value_and_elasticity(jnp.linspace(-9.0, 300.0, 200))
        assert np.all(np.diff(log_kappa) >= -1e-12) and not np.any(np.isnan(log_elasticity))
        np.testing.assert_allclose(np.exp(log_kappa[-1]), supremum, rtol=1e-12)
    # A sentence is solved, as for the centred program.
    better = predcp.with_complexity(
        model, {"tau": predcp.tail(divergence=0.2)}, rest="prior", **options
    )
    assert handlers.seed(better, jax.random.key(0))(ABILITY, ANSWERS) is None


def test_numbers_that_overflow_are_told_from_rounding():
    fine = np.arange(float(GRID.size))
    for wrong, words in (
        (np.where(fine > 8, np.nan, fine), r"at tau = 90: numbers of the program overflow float64"),
        (np.where(fine == 3, np.nan, fine), "rounding in float64"),
        (np.where(fine > 3, np.inf, fine), "rounding in float64"),
    ):
        with pytest.raises(ValueError, match=words):
            require_increasing_values("tau", wrong)


@pytest.mark.long
def test_other_numbers_that_overflow_are_refused_with_the_cure():
    model = discriminations(lambda tau, z: jnp.cosh(tau * z))
    with pytest.raises(ValueError, match=r"numbers of the program overflow float64.*jnp.minimum"):
        predcp.complexity_of(model, "tau", ABILITY, ANSWERS, noise_draws=4)
    bounded = discriminations(lambda tau, z: jnp.minimum(jnp.cosh(tau * z), 1e100))
    made = predcp.complexity_of(bounded, "tau", ABILITY, ANSWERS, noise_draws=4)
    assert np.isfinite(made.log_value_and_elasticity(jnp.asarray(9.0))[0])
