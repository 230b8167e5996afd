"""What cannot be right is refused, with the name of the site and what to do about it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan

import predcp

Y = np.array([0.1, -0.4, 1.2, 0.3])


def refused(model, scale, *args, match, **options):
    """Both doors give the same reason."""
    with pytest.raises(ValueError, match=match):
        predcp.complexity_of(model, scale, *args, noise_draws=2, method="plain", **options)
    swapped = predcp.with_complexity(
        model, {scale: predcp.LogCauchy(scale=1.0)}, noise_draws=2, method="plain", **options
    )
    with pytest.raises(ValueError, match=match):
        handlers.seed(swapped, jax.random.key(0))(*args)


def effects(tau, size=4):
    return numpyro.sample("effect", dist.Normal(0, tau).expand([size]).to_event(1))


def test_scale_that_nothing_observed_depends_on():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        effects(tau)
        numpyro.sample("y", dist.Normal(0.0, 1.0).expand([4]), obs=y)

    refused(model, "tau", Y, match=r"no observed site depends on 'tau'.*pass the data")


def test_program_without_its_data():
    def model(y=None):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(effects(tau), 1.0), obs=y)

    # A swapped program without data runs forwards; a map must know what is predicted.
    with pytest.raises(ValueError, match=r"no observed site depends on 'tau'.*observed=\["):
        predcp.complexity_of(model, "tau")


def spread(family):
    """Observations whose shape or scale the effects move, given an intercept."""

    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        level = numpyro.sample("level", dist.Normal(0, 1))
        numpyro.sample("y", family(level, effects(tau)), obs=y)

    return model


@pytest.mark.parametrize(
    "family,name",
    [
        (lambda level, e: dist.StudentT(4.0 + jnp.exp(e), level, 1.0), "df"),
        (lambda level, e: dist.Gumbel(level, jnp.exp(e)), "scale"),
        (
            lambda level, e: dist.ZeroInflatedNegativeBinomial2(2.0, jnp.exp(e), gate=0.2),
            "log_concentration",
        ),
    ],
)
def test_parameters_that_a_divergence_needs_fixed(family, name):
    model, y = spread(family), np.ones(4)
    with pytest.raises(ValueError, match=f"needs the same {name} in both, but it differs by"):
        predcp.complexity_of(model, "tau", y, noise_draws=2, method="plain")
    swapped = predcp.with_complexity(model, {"tau": predcp.Exponential(mean=0.2)}, noise_draws=2)

    @jax.jit
    def sampled(level):
        program = handlers.substitute(swapped, {"level": level})
        return handlers.trace(handlers.seed(program, 0)).get_trace(y)["tau"]["value"]

    with pytest.raises(ValueError, match=f"needs the same {name} .*depends on the scale"):
        sampled(0.3)


@pytest.mark.parametrize(
    "family",
    [
        lambda tau: dist.NegativeBinomial2(3.0, 1.0 / tau),
        lambda tau: dist.StudentT(2.0 + 1.0 / tau, 0.0, 1.0),
    ],
)
def test_a_scale_at_whose_zero_is_another_family(family):
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", family(tau).expand([4]).to_event(1), obs=y)

    with pytest.raises(ValueError, match=r"another family.*the map to that limit.*StudentTLimit"):
        predcp.complexity_of(model, "tau", np.ones(4), noise_draws=2, method="plain")


@pytest.mark.parametrize("centred", [True, False])
def test_discrete_sites_that_are_moved(centred):
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        rate = tau if centred else jnp.exp(effects(tau))
        count = numpyro.sample("count", dist.Poisson(rate).expand([4]).to_event(1))
        numpyro.sample("y", dist.Normal(count, 1.0), obs=y)

    refused(model, "tau", Y, match=r"'count' is discrete and depends on 'tau'.*sum it out")


def test_discrete_sites_of_a_scan_that_are_moved():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))

        def step(before, now):
            state = numpyro.sample("state", dist.Bernoulli(logits=tau * before))
            numpyro.sample("y", dist.Normal(state, 1.0), obs=now)
            return state.astype(float), None

        scan(step, 1.0, y)

    refused(model, "tau", Y, match=r"'state' is discrete and depends on 'tau'")


def test_structure_that_depends_on_a_value():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        if tau > 1.0:
            numpyro.sample("extra", dist.Normal(0, tau))
        numpyro.sample("y", dist.Normal(effects(tau), 1.0), obs=y)

    refused(model, "tau", Y, match=r"structure of the program depends on values.*jnp.where")


def test_a_precision():
    def model(y):
        precision = numpyro.sample("precision", dist.Gamma(1, 1))
        effect = effects(1.0 / jnp.sqrt(precision))
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)

    refused(model, "precision", Y, match=r"'precision' is 0.*precision\? then sample")


def test_a_precision_matrix():
    def model(y):
        precision = numpyro.sample("precision", dist.Gamma(1, 1))
        effect = numpyro.sample(
            "effect", dist.MultivariateNormal(jnp.zeros(4), precision_matrix=precision * jnp.eye(4))
        )
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)

    refused(model, "precision", Y, match=r"'effect'.*'precision'.*precision")


def test_a_map_that_falls():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([4]).to_event(1))
        # Overshoots and comes back.
        numpyro.sample("y", dist.Normal(tau * jnp.exp(-tau) * z, 1.0), obs=y)

    refused(model, "tau", Y, match=r"'tau' grows.*no inverse")


def test_scale_of_the_noise():
    def model(y):
        sigma = numpyro.sample("sigma", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(0.0, sigma).expand([4]), obs=y)

    refused(model, "sigma", Y, match=r"'y'.*'sigma' is 0.*noise")


def test_a_lengthscale():
    def model(y):
        rho = numpyro.sample("rho", dist.InverseGamma(5, 5))
        x = jnp.arange(4.0)
        covariance = jnp.exp(-0.5 * ((x[:, None] - x) / rho) ** 2) + 1e-6 * jnp.eye(4)
        f = numpyro.sample("f", dist.MultivariateNormal(jnp.zeros(4), covariance))
        numpyro.sample("y", dist.Normal(f, 1.0), obs=y)

    refused(model, "rho", Y, match=r"'f'.*'rho'")


@pytest.mark.parametrize("family", [dist.Normal(0, 1), dist.Uniform(-1, 1)])
def test_site_that_is_not_positive(family):
    def model(y):
        tau = numpyro.sample("tau", family)
        z = numpyro.sample("z", dist.Normal(0, 1).expand([4]).to_event(1))
        numpyro.sample("y", dist.Normal(tau * z, 1.0), obs=y)

    name = type(family).__name__
    refused(model, "tau", Y, match=rf"'tau' must be positive to be a scale, but {name} is not")


def test_observed_family_without_a_divergence():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.FoldedDistribution(dist.Normal(effects(tau), 1.0)), obs=y)

    refused(model, "tau", Y, match=r"'y'.*FoldedDistribution.*register_divergence")


def test_factors():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        effect = effects(tau)
        numpyro.factor("penalty", -jnp.sum(effect**2))
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)

    refused(model, "tau", Y, match=r"'penalty' depends on 'tau'.*observed site")


def test_a_factor_elsewhere_is_left_alone():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.factor("penalty", -(mu**2))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(mu + effects(tau), 1.0), obs=y)

    assert predcp.complexity_of(model, "tau", Y, noise_draws=2, method="plain").power is not None


def test_mask_on_an_effect():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        with numpyro.plate("groups", 4), handlers.mask(mask=jnp.array([True, True, False, True])):
            effect = numpyro.sample("effect", dist.Normal(0, tau))
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)

    refused(model, "tau", Y, match=r"'effect'.*mask")


def test_mask_on_one_of_several_observed_sites():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        rows = dist.Normal(effects(tau), 1.0)
        numpyro.sample("y", rows.mask(np.array([True, True, False, True])), obs=y)
        numpyro.sample("again", rows, obs=y)

    refused(model, "tau", Y, match=r"'y' has a mask.*\['again'\]: leave the masked rows out")


def test_effect_without_a_smooth_draw():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        rows = dist.MixtureSameFamily(
            dist.Categorical(jnp.full((4, 2), 0.5)),
            dist.Normal(jnp.zeros((4, 2)), tau * jnp.array([1.0, 3.0])),
        )
        effect = numpyro.sample("effect", rows.to_event(1))
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)

    refused(model, "tau", Y, match=r"'effect'.*'tau'.*smooth function of noise")


def test_name_that_the_program_does_not_have():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(effects(tau), 1.0), obs=y)

    refused(model, "sigma", Y, match=r"'sigma'.*latent sites are \['tau', 'effect'\]")
    refused(model, "y", Y, match=r"'y'.*latent sites are \['tau', 'effect'\]")
    refused(model, "tau", Y, match=r"'z'.*its sites are", observed=["z"])


def test_several_scales_in_one_site_need_an_index():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1).expand([2]).to_event(1))
        effect = numpyro.sample("effect", dist.Normal(0, tau).expand([2]).to_event(1))
        numpyro.sample("y", dist.Normal(jnp.tile(effect, 2), 1.0), obs=y)

    with pytest.raises(ValueError, match=r"'tau' has \(2,\) scales.*index="):
        predcp.complexity_of(model, "tau", Y)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rest": "given"}, r'"prior" or a mapping'),
        ({"rest": {"effect": 0.0}}, r"rest must name latent sites that 'tau' does not move"),
        ({"noise_draws": 0}, r"noise_draws must be a whole number of at least 1, got 0"),
        ({"method": "latin"}, r"method"),
        ({"divergence": "kl"}, r"divergence"),
        ({"index": 3}, r"index"),
    ],
)
def test_wrong_arguments_of_complexity_of(change, match):
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(mu + effects(tau), 1.0), obs=y)

    with pytest.raises(ValueError, match=match):
        predcp.complexity_of(model, "tau", Y, **change)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: predcp.with_complexity(3, {"tau": 1}), r"model must be a NumPyro program"),
        (lambda m: predcp.with_complexity(m, {}), r"priors must map names"),
        (lambda m: predcp.with_complexity(m, {"tau": 2.0}), r"prior of 'tau' must be a sentence"),
        (
            lambda m: predcp.with_complexity(m, {"tau": predcp.Exponential()}, rest="all"),
            r"rest must be",
        ),
        (
            lambda m: predcp.with_complexity(m, {"tau": predcp.Exponential()}, noise_draws=0),
            r"noise_draws must be",
        ),
        (lambda m: predcp.tail(), r"exactly one of"),
        (lambda m: predcp.tail(scale=1.0, r_squared=0.5), r"exactly one of"),
        (lambda m: predcp.tail(rate_ratio=0.5), r"rate_ratio must be above 1"),
        (lambda m: predcp.tail(scale=1.0, probability=1.5), r"probability"),
    ],
)
def test_wrong_arguments_of_the_door(call, match):
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(effects(tau), 1.0), obs=y)

    with pytest.raises(ValueError, match=match):
        call(model)


def test_a_statement_that_does_not_fit_the_predictions():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(effects(tau), 1.0), obs=y)

    swapped = predcp.with_complexity(model, {"tau": predcp.tail(rate_ratio=2.0)}, noise_draws=2)
    with pytest.raises(ValueError, match=r"rate_ratio does not fit.*noise_ratio"):
        handlers.seed(swapped, jax.random.key(0))(Y)


def weighted(y, weights, *, noise_draws=1.0):
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(effects(tau), noise_draws / weights), obs=y)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, *args, **options: predcp.complexity_of(model, "tau", *args, **options),
        lambda model, *args, **options: predcp.audit(model, *args, samples=4, **options)["tau"],
    ],
)
def test_options_with_the_name_of_an_argument_of_the_program(call):
    ones = np.ones(len(Y))
    with pytest.raises(ValueError, match=r"weights= is an option of .* pass the program's by pos"):
        call(weighted, Y, weights=ones)
    with pytest.raises(
        ValueError, match=r"noise_draws= is an option of .*partial\(model, noise_draws=\.\.\.\)"
    ):
        call(weighted, Y, ones, noise_draws=4)
    # One given by position or fixed leaves the keyword to the option.
    call(partial(weighted, noise_draws=1.0), Y, ones, weights=ones, noise_draws=4)


def test_arguments_of_the_program_named_as_our_own():
    def model(scale, y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(effects(tau), scale), obs=y)

    by_name, by_place = (
        predcp.complexity_of(model, "tau", *args, noise_draws=2, **named)(0.5)
        for args, named in (((), {"scale": 2.0, "y": Y}), ((2.0, Y), {}))
    )
    assert by_name == by_place


@pytest.mark.parametrize(
    ("sites", "pi", "match"),
    [
        ((), predcp.LogCauchy(scale=1.0), r"'tau' is sampled as 'log_tau'.*rename it"),
        ((2,), predcp.Exponential(), r"'tau' is sampled as 'tau_0'.*rename it"),
    ],
)
def test_names_of_new_sites_that_the_program_uses(sites, pi, match):
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1).expand(sites).to_event(len(sites)))
        for name in ("log_tau", "tau_0"):
            numpyro.sample(name, dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(effects(jnp.sum(tau)), 1.0), obs=y)

    swapped = predcp.with_complexity(model, {"tau": pi}, noise_draws=2, method="plain")
    with pytest.raises(ValueError, match=match):
        handlers.seed(swapped, jax.random.key(0))(Y)


def test_complexity_priors_on_top_of_others():
    swapped = predcp.with_complexity(weighted, {"tau": predcp.Exponential()})
    with pytest.raises(ValueError, match=r"already has complexity priors: name all scales in one"):
        predcp.with_complexity(swapped, {"tau": predcp.Exponential()})


def test_an_audit_without_scales_says_why():
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        numpyro.factor("likelihood", -jnp.sum((effects(tau) - y) ** 2))

    with pytest.raises(
        ValueError, match=r"no scale to audit: factor 'likelihood' depends on 'tau'"
    ):
        predcp.audit(model, Y)
