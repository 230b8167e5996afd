"""References that the user gives, where a program has none at scale 0."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy.special import digamma, entr

import predcp

GROUP, Y = np.array([0, 1, 2, 3, 0, 1]), np.zeros(6)
PI = predcp.Exponential(mean=0.1)
OPTIONS = {"noise_draws": 2, "method": "plain"}


def natural(group, y, crossed=False):
    """Groups around an average, in natural parameters, which are infinite at tau = 0."""
    average = numpyro.sample("average", dist.Normal(0, 1))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    precision = tau**-2
    groups = dist.Normal((average * precision) / precision, precision**-0.5)
    groups = groups.expand([4]).to_event(1)
    mean = numpyro.sample("level", groups)[group]
    if crossed:
        sd = numpyro.sample("sd", dist.HalfNormal(1))
        effect = numpyro.sample("effect", dist.Normal(0, sd).expand([2]).to_event(1))
        mean = mean + effect[np.arange(6) % 2]
    numpyro.sample("y", dist.Normal(mean, 2.0), obs=y)


REFERENCE = {"level": lambda values: values["average"]}


def map_of(average, **options):
    options = {**OPTIONS, "reference": REFERENCE, **options}
    return predcp.complexity_of(natural, "tau", GROUP, Y, rest={"average": average}, **options)


def test_a_given_reference_gives_the_divergence_by_hand():
    made = map_of(0.3)
    noise = np.asarray(made.noise["sites"]["level"])[:, GROUP]
    np.testing.assert_allclose(made(0.7), np.mean((0.7 * noise) ** 2) / 8.0, rtol=1e-9)
    # The same reference as a number.
    np.testing.assert_allclose(map_of(0.3, reference={"level": 0.3})(0.7), made(0.7), rtol=1e-12)


def test_the_swapped_program_and_the_audit_use_the_reference():
    values = {"average": jnp.asarray(0.3), "tau": jnp.asarray(0.6), "level": jnp.ones(4)}
    swapped = predcp.with_complexity(natural, {"tau": PI}, reference=REFERENCE, **OPTIONS)
    trace = handlers.trace(handlers.substitute(swapped, values)).get_trace(GROUP, Y)
    prior = predcp.ComplexityPrior(PI, map_of(0.3))
    np.testing.assert_allclose(trace["tau"]["fn"].log_prob(0.6), prior.log_prob(0.6), rtol=1e-9)
    found = predcp.audit(natural, GROUP, Y, noise_draws=2, samples=8, reference=REFERENCE)["tau"]
    assert np.all(np.isfinite(found.kappa)) and found.kappa[1] > 0.0


def test_sites_of_a_scale_that_is_switched_off_are_at_their_reference():
    made = predcp.complexity_of(
        natural, "sd", GROUP, Y, True, off=["tau"], reference=REFERENCE, **OPTIONS
    )
    z = np.asarray(made.noise["sites"]["effect"])
    np.testing.assert_allclose(made(0.5), np.mean((0.5 * z) ** 2) / 8.0, rtol=1e-9)


@pytest.mark.long
def test_rates_of_groups_with_a_beta_distribution():
    def rates(trials, successes):
        average = numpyro.sample("average", dist.Beta(2, 2))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        groups = dist.Beta(average / tau**2, (1.0 - average) / tau**2).expand([20]).to_event(1)
        numpyro.sample("y", dist.Binomial(trials, probs=numpyro.sample("p", groups)), obs=successes)

    data = np.full(20, 9), np.arange(20) % 9
    reference = {"p": lambda values: values["average"]}
    made = predcp.complexity_of(
        rates, "tau", *data, rest={"average": 0.3}, reference=reference, noise_draws=64
    )
    tau, means = np.array([0.3, 1.0]), np.array([0.3, 0.7])[:, None]
    # E[p log p] of a beta distribution with mean m is m (psi(a + 1) - psi(a + b + 1)).
    expected = means * (digamma(means / tau**2 + 1.0) - digamma(1.0 / tau**2 + 1.0)) + entr(means)
    np.testing.assert_allclose(made(tau), expected.sum(0), rtol=0.15)


@pytest.mark.parametrize(
    ("reference", "match"),
    [
        (None, r"'level' has no finite value where 'tau' is 0.*reference=\{'level': \.\.\.\}"),
        ({"level": 0.9}, r"'level' does not approach its reference"),
        ({"level": np.ones(2)}, r"'level' must have the shape of the site, \(4,\), got \(2,\)"),
        ({"average": 1.0}, r"reference must name sites that 'tau' moves \['level'\]"),
        ([1.0], r"reference must map names"),
    ],
)
def test_references_that_cannot_be_right(reference, match):
    with pytest.raises(ValueError, match=match):
        map_of(0.3, reference=reference)


def test_a_site_that_the_program_does_not_have():
    swapped = predcp.with_complexity(natural, {"tau": PI}, reference={"typo": 1.0}, **OPTIONS)
    with pytest.raises(ValueError, match=r"reference must name sites.*'typo'"):
        handlers.seed(swapped, jax.random.key(0))(GROUP, Y)
