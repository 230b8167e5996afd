"""The door for PyMC models: the same maps, audits and priors as for the NumPyro program."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from tests.exports import posteriors

import predcp

pm = pytest.importorskip("pymc", reason="the extra `pymc` is not installed")
import pytensor  # noqa: E402
from numpyro import handlers  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402

from predcp.bridges import pymc as bridge  # noqa: E402

RANDOM = np.random.default_rng(0)
SCHOOLS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
COUNTY, FLOOR = RANDOM.integers(0, 12, 60), RANDOM.integers(0, 2, 60).astype(float)
RADON = RANDOM.normal(size=60)
BROOD, TICKS = RANDOM.integers(0, 9, 40), RANDOM.poisson(2.0, 40)
OPERATIONS, DEATHS = np.array([47, 148, 119, 810]), np.array([0, 18, 8, 46])
TAUS = np.geomspace(1e-4, 1e3, 15)


def schools():
    y, error = SCHOOLS
    with pm.Model(coords={"school": range(8)}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Normal("y", theta, error, observed=y, dims="school")
    return model


def schools_in_numpyro():
    y, error = SCHOOLS
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([8]))
    numpyro.sample("y", dist.Normal(theta, error), obs=y)


def radon():
    with pm.Model(coords={"county": range(12)}) as model:
        floor = pm.Data("floor", FLOOR)
        intercept, slope = pm.Normal("intercept", 0, 2), pm.Normal("slope")
        sigma = pm.HalfNormal("sigma", 1.0)
        tau = pm.Exponential("tau", 2.0)
        z = pm.Normal("z", dims="county")
        effects = pm.Deterministic("effects", tau * z, dims="county")
        pm.Normal("y", intercept + effects[COUNTY] + slope * floor, sigma, observed=RADON)
    return model


def radon_in_numpyro():
    intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    slope = numpyro.sample("slope", dist.Normal())
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    tau = numpyro.sample("tau", dist.Exponential(2.0))
    z = numpyro.sample("z", dist.Normal().expand([12]))
    mean = intercept + (tau * z)[COUNTY] + slope * FLOOR
    numpyro.sample("y", dist.Normal(mean, sigma), obs=RADON)


def ticks():
    with pm.Model() as model:
        mean = pm.Normal("mean")
        tau = pm.HalfNormal("tau", 2.0)
        effects = pm.Normal("effects", 0, tau, shape=9)
        pm.Poisson("y", pm.math.exp(mean + effects[BROOD]), observed=TICKS)
    return model


def ticks_in_numpyro():
    mean = numpyro.sample("mean", dist.Normal())
    tau = numpyro.sample("tau", dist.HalfNormal(2.0))
    effects = numpyro.sample("effects", dist.Normal(0, tau).expand([9]))
    numpyro.sample("y", dist.Poisson(jnp.exp(mean + effects[BROOD])), obs=TICKS)


def surgery():
    with pm.Model() as model:
        average = pm.Normal("average", -2.5, 1.0)
        tau = pm.Gamma("tau", 2.0, 3.0)
        log_odds = pm.Normal("log_odds", average, tau, shape=4)
        pm.Binomial("deaths", OPERATIONS, logit_p=log_odds, observed=DEATHS)
    return model


def surgery_in_numpyro():
    average = numpyro.sample("average", dist.Normal(-2.5, 1.0))
    tau = numpyro.sample("tau", dist.Gamma(2.0, 3.0))
    log_odds = numpyro.sample("log_odds", dist.Normal(average, tau).expand([4]))
    numpyro.sample("deaths", dist.Binomial(OPERATIONS, logits=log_odds), obs=DEATHS)


PAIRS = {
    "eight schools": (schools, schools_in_numpyro),
    "radon": (radon, radon_in_numpyro),
    "ticks": (ticks, ticks_in_numpyro),
    "surgery": (surgery, surgery_in_numpyro),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_map_is_that_of_the_numpyro_program(name):
    pymc, numpyro_program = PAIRS[name]
    ours = bridge.complexity_of(pymc(), "tau", noise_draws=4, method="plain")
    wanted = predcp.complexity_of(numpyro_program, "tau", noise_draws=4, method="plain")
    assert ours.program.sites == wanted.program.sites
    log_tau = jnp.log(TAUS)
    for found, known in zip(
        ours.log_value_and_elasticity(log_tau), wanted.log_value_and_elasticity(log_tau)
    ):
        assert np.all(np.isfinite(known))
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-6)


def test_the_audit_is_that_of_the_numpyro_program():
    found = bridge.audit(radon(), noise_draws=2, samples=32)
    wanted = predcp.audit(radon_in_numpyro, noise_draws=2, samples=32)
    assert [each.scale for each in found] == ["tau"]
    assert found["tau"].prior == "Exponential(2)"
    np.testing.assert_allclose(found["tau"].kappa, wanted["tau"].kappa, rtol=1e-6)


def test_a_swapped_model_has_the_prior_of_the_swapped_program():
    statement = predcp.tail(odds_ratio=2.0, probability=0.05)
    before = surgery()
    model = bridge.with_complexity(before, {"tau": statement}, noise_draws=4, method="plain")
    assert {rv.name for rv in model.free_RVs} == {"average", "log_tau", "log_odds"}
    assert {rv.name for rv in before.free_RVs} == {"average", "tau", "log_odds"}
    swapped = predcp.with_complexity(
        surgery_in_numpyro, {"tau": statement}, rest="prior", noise_draws=4, method="plain"
    )
    trace = handlers.trace(handlers.seed(swapped, 0)).get_trace()
    log_tau = np.linspace(-6.0, 4.0, 7)
    prior = trace["tau"]["fn"].log_scale()
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    found = pm.logp(model["log_tau"], log_tau).eval()
    np.testing.assert_allclose(found, prior.log_prob(jnp.asarray(log_tau)), rtol=0, atol=1e-6)
    with model:
        drawn = pm.sample_prior_predictive(300, random_seed=1)
    odds = np.asarray(drawn.prior["log_odds"] - drawn.prior["average"])
    tau = np.asarray(drawn.prior["tau"])
    assert np.all(np.isfinite(odds)) and tau.shape == (1, 300)


@pytest.mark.parametrize("by_hand", [False, True], ids=["with_complexity", "scale"])
def test_a_scale_sampled_as_its_logarithm_can_be_audited(by_hand):
    statement = predcp.tail(odds_ratio=2.0, probability=0.05)
    options = {"noise_draws": 4, "method": "plain"}
    if by_hand:
        prior = bridge.prior_of(surgery(), "tau", statement, **options)
        with pm.Model() as model:
            average = pm.Normal("average", -2.5, 1.0)
            tau = bridge.scale("tau", prior)
            log_odds = pm.Normal("log_odds", average, tau, shape=4)
            pm.Binomial("deaths", OPERATIONS, logit_p=log_odds, observed=DEATHS)
    else:
        model = bridge.with_complexity(surgery(), {"tau": statement}, **options)
    trace = handlers.trace(handlers.seed(bridge.program(model), 0)).get_trace()
    assert trace["tau"]["type"] == "sample" and trace["log_tau"]["type"] == "deterministic"
    np.testing.assert_allclose(trace["log_tau"]["value"], np.log(trace["tau"]["value"]))
    audited = bridge.audit(model, noise_draws=4, samples=64)
    assert [each.scale for each in audited] == ["tau"]
    median = float(trace["tau"]["fn"].icdf(jnp.asarray(0.5)))
    assert 0.5 * median < audited["tau"].tau[1] < 2.0 * median


def test_a_stated_prior_can_be_stated_again():
    options = {"noise_draws": 4, "method": "plain"}
    first, second = (predcp.tail(odds_ratio=ratio, probability=0.05) for ratio in (2.0, 4.0))
    model = bridge.with_complexity(surgery(), {"tau": first}, **options)
    again = bridge.with_complexity(model, {"tau": second}, **options)
    assert {rv.name for rv in again.free_RVs} == {"average", "log_tau", "log_odds"}
    assert [each.name for each in again.deterministics] == ["tau"]
    log_tau = np.linspace(-4.0, 2.0, 5)
    wanted = bridge.prior_of(model, "tau", second, **options).log_scale().log_prob(log_tau)
    found = pm.logp(again["log_tau"], log_tau).eval()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
    point = again.initial_point()
    moved = again.compile_logp()(point | {"log_tau": point["log_tau"] + 1.0})
    # The effects follow the new scale.
    assert np.isfinite(moved) and moved != again.compile_logp()(point)


def test_what_pm_do_sets_is_known():
    done = pm.do(surgery(), {"average": -2.0})
    options = {"noise_draws": 4, "method": "plain"}
    found = bridge.complexity_of(done, "tau", **options)
    wanted = bridge.complexity_of(surgery(), "tau", rest={"average": -2.0}, **options)
    log_tau = jnp.log(TAUS)
    for one, other in zip(
        found.log_value_and_elasticity(log_tau), wanted.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_statements_that_need_numpyro_are_refused():
    with pytest.raises(ValueError, match='rest="given" needs NumPyro'):
        bridge.with_complexity(surgery(), {"tau": predcp.LogCauchy(scale=1.0)}, rest="given")
    with pytest.raises(ValueError, match="priors must map names"):
        bridge.with_complexity(surgery(), predcp.LogCauchy(scale=1.0))
    with pytest.raises(ValueError, match="model must be a pymc.Model"):
        bridge.audit(surgery_in_numpyro)
    with pytest.raises(ValueError, match="its latent sites are"):
        bridge.complexity_of(surgery(), "sigma")
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", shape=2)
        pm.Normal("y", tau * pm.Normal("z", shape=2), observed=np.zeros(2))
    with pytest.raises(ValueError, match="'tau' has several scales"):
        bridge.with_complexity(model, {"tau": predcp.LogCauchy(scale=1.0)})


# Of each distribution, its arguments and a value; PyMC's own log density is the reference.
FAMILIES = {
    "AsymmetricLaplace": ({"b": 2.0, "kappa": 0.7, "mu": 0.3}, 0.9),
    "Bernoulli": ({"logit_p": 0.4}, 1),
    "Beta": ({"mu": 0.3, "nu": 4.0}, 0.6),
    "BetaBinomial": ({"n": 7, "alpha": 1.5, "beta": 2.0}, 3),
    "Binomial": ({"n": 7, "p": 0.3}, 3),
    "Categorical": ({"p": np.array([0.2, 0.3, 0.5])}, 2),
    "Cauchy": ({"alpha": 0.3, "beta": 2.0}, 0.9),
    "ChiSquared": ({"nu": 3.0}, 0.9),
    "Dirichlet": ({"a": np.array([1.0, 2.0, 3.0])}, np.array([0.2, 0.3, 0.5])),
    "DirichletMultinomial": ({"n": 6, "a": np.array([1.0, 2.0, 3.0])}, np.array([1, 2, 3])),
    "DiscreteUniform": ({"lower": 1, "upper": 6}, 3),
    "Exponential": ({"lam": 3.0}, 0.9),
    "Gamma": ({"mu": 2.0, "sigma": 1.3}, 0.9),
    "Gumbel": ({"mu": 0.3, "beta": 2.0}, 0.9),
    "HalfCauchy": ({"beta": 2.0}, 0.9),
    "HalfNormal": ({"tau": 2.0}, 0.9),
    "HalfStudentT": ({"nu": 4.0, "sigma": 2.0}, 0.9),
    "InverseGamma": ({"alpha": 3.0, "beta": 2.0}, 0.9),
    "Kumaraswamy": ({"a": 1.5, "b": 2.0}, 0.4),
    "Laplace": ({"mu": 0.3, "b": 2.0}, 0.9),
    "LogNormal": ({"mu": 0.3, "tau": 2.0}, 0.9),
    "Logistic": ({"mu": 0.3, "s": 2.0}, 0.9),
    "Multinomial": ({"n": 6, "p": np.array([0.2, 0.3, 0.5])}, np.array([1, 2, 3])),
    "MvNormal": ({"mu": np.zeros(2), "chol": np.array([[1.0, 0.0], [0.5, 2.0]])}, np.ones(2)),
    "NegativeBinomial": ({"mu": 2.0, "alpha": 1.5}, 3),
    "Normal": ({"mu": 0.3, "tau": 2.0}, 0.9),
    "Pareto": ({"alpha": 2.0, "m": 0.5}, 0.9),
    "Poisson": ({"mu": 2.0}, 3),
    "StudentT": ({"nu": 4.0, "mu": 0.3, "sigma": 2.0}, 0.9),
    "TruncatedNormal": ({"mu": 0.3, "sigma": 2.0, "lower": 0.0}, 0.9),
    "Uniform": ({"lower": -1.0, "upper": 2.0}, 0.9),
    "VonMises": ({"mu": 0.3, "kappa": 2.0}, 0.9),
    "Weibull": ({"alpha": 1.5, "beta": 2.0}, 0.9),
    "ZeroInflatedNegativeBinomial": ({"psi": 0.6, "mu": 2.0, "alpha": 1.5}, 0),
    "ZeroInflatedPoisson": ({"psi": 0.6, "mu": 2.0}, 0),
}


def test_every_distribution_that_is_read_has_pymcs_density():
    with pm.Model() as model:
        free = {name: getattr(pm, name)(name, **args) for name, (args, _) in FAMILIES.items()}
        base = pm.Cauchy.dist(alpha=0.3, beta=2.0)
        free["truncated Cauchy"] = pm.Truncated("truncated Cauchy", base, lower=0.0, upper=3.0)
        doubled = pm.Deterministic("p", pm.math.sigmoid(2.0 * free["Normal"]))
        free["named p"] = pm.Bernoulli("named p", p=doubled)
    values = {name: value for name, (_, value) in FAMILIES.items()}
    values |= {"truncated Cauchy": 0.9, "named p": 1}
    arrays = {name: np.asarray(value, free[name].dtype) for name, value in values.items()}
    known = {free[name]: pytensor.tensor.constant(value) for name, value in arrays.items()}
    densities = [pm.logp(rv, arrays[name], warn_rvs=False) for name, rv in free.items()]
    densities = pytensor.graph.replace.clone_replace(densities, known)
    function = pytensor.function([], densities, mode=Mode(linker="py", optimizer="fast_compile"))
    wanted = dict(zip(free, function()))
    program = handlers.substitute(handlers.seed(bridge.program(model), 0), arrays)
    trace = handlers.trace(program).get_trace()
    found = {name: trace[name]["fn"].log_prob(arrays[name]) for name in free}
    for name in free:
        # PyMC takes logarithms of small whole numbers in single precision.
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, err_msg=name)
    # Logits and means are not lost on the way through a probability.
    assert trace["Bernoulli"]["fn"].logits == 0.4
    assert trace["named p"]["fn"].logits == 1.8
    assert trace["NegativeBinomial"]["fn"].mean == 2.0


def geometric():
    pm.Geometric("x", p=pm.math.exp(-pm.HalfNormal("tau")), observed=np.ones(3, int))


def walk():
    pm.GaussianRandomWalk("x", sigma=1.0, init_dist=pm.Normal.dist(), steps=3)


def flat():
    pm.HalfFlat("x")


def nameless():
    pm.Normal("x", pm.Normal.dist(), 1.0)


def ordered():
    pm.Normal("x", shape=3, transform=pm.distributions.transforms.ordered, initval=np.arange(3.0))


def censored():
    pm.Censored("x", pm.Normal.dist(), lower=0.0, upper=None, observed=np.ones(3))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (geometric, "distribution Geometric .* count failures"),
        (walk, "distribution RandomWalk .*cumsum"),
        (flat, "distribution HalfFlat .* proper prior"),
        (nameless, "a distribution without a name"),
        (ordered, "ordered by a transform"),
        (censored, "which points are censored is part of the data"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read_is_refused_with_its_cure(build, reason):
    with pm.Model() as model:
        build()
    with pytest.raises(ValueError, match=f"variable 'x.*cannot be read.*{reason}"):
        bridge.program(model)


def test_a_potential_that_depends_on_the_scale_is_refused_by_the_door():
    model = ticks()
    with model:
        pm.Potential("penalty", -(model["effects"] ** 2))
    with pytest.raises(ValueError, match="factor 'penalty' depends on 'tau'"):
        bridge.complexity_of(model, "tau")


def test_a_model_with_our_prior_can_be_audited():
    prior = posteriors.prior_of(posteriors.EXAMPLES["normal"])
    with pm.Model() as model:
        tau = bridge.named_dist("tau", prior)
        pm.Normal("y", tau * pm.Normal("z", shape=8), 1.0, observed=np.zeros(8))
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    audited = bridge.audit(model, noise_draws=4, samples=64)["tau"]
    median = float(prior.icdf(jnp.asarray(0.5)))
    assert 0.5 * median < audited.tau[1] < 2.0 * median
