"""Programs with groups, as their authors write them."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.infer.reparam import LocScaleReparam

from tests.program import designs
from tests.program.example import EXAMPLES, Example, bernoulli, normal, poisson

# Eight schools (Rubin 1981), centred as in the first chapters of most courses.


def eight_schools(y, sigma):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def eight_schools_noncentred(y, sigma):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        z = numpyro.sample("z", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


EXAMPLES["eight schools"] = Example(
    eight_schools, designs.eight_schools, "tau",
    lambda tau, xi, y, sigma: normal(tau * xi["theta"], sigma),
    noncentred=eight_schools_noncentred, renamed={"theta": "z"}, reparam=("theta",),
)  # fmt: skip

EXAMPLES["eight schools, reparameterised"] = Example(
    handlers.reparam(eight_schools, config={"theta": LocScaleReparam(0)}),
    designs.eight_schools, "tau",
    lambda tau, xi, y, sigma: normal(tau * xi["theta_decentered"], sigma),
)  # fmt: skip


# Radon in Minnesota (Gelman and Hill 2007, chapters 12 and 13).


def radon_intercept(county, floor, uranium, log_radon):
    gamma = numpyro.sample("gamma", dist.Normal(0, 10).expand([2]))
    beta = numpyro.sample("beta", dist.Normal(0, 10))
    sigma_a = numpyro.sample("sigma_a", dist.HalfCauchy(5))
    sigma_y = numpyro.sample("sigma_y", dist.HalfCauchy(5))
    with numpyro.plate("counties", len(uranium)):
        a = numpyro.sample("a", dist.Normal(gamma[0] + gamma[1] * uranium, sigma_a))
    numpyro.sample("y", dist.Normal(a[county] + beta * floor, sigma_y), obs=log_radon)


def radon_intercept_noncentred(county, floor, uranium, log_radon):
    gamma = numpyro.sample("gamma", dist.Normal(0, 10).expand([2]))
    beta = numpyro.sample("beta", dist.Normal(0, 10))
    sigma_a = numpyro.sample("sigma_a", dist.HalfCauchy(5))
    sigma_y = numpyro.sample("sigma_y", dist.HalfCauchy(5))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([len(uranium)]).to_event(1))
    a = gamma[0] + gamma[1] * uranium + sigma_a * z
    numpyro.sample("y", dist.Normal(a[county] + beta * floor, sigma_y), obs=log_radon)


EXAMPLES["radon, intercepts"] = Example(
    radon_intercept, designs.radon, "sigma_a",
    lambda tau, xi, county, *_: normal(tau * xi["a"][county], xi["sigma_y"]),
    noncentred=radon_intercept_noncentred, renamed={"a": "z"}, reparam=("a",),
)  # fmt: skip


def radon_slope(county, floor, uranium, log_radon):
    mu = numpyro.sample("mu", dist.Normal(0, 10).expand([2]).to_event(1))
    sigma_a = numpyro.sample("sigma_a", dist.Exponential(1))
    sigma_b = numpyro.sample("sigma_b", dist.Exponential(1))
    with numpyro.plate("counties", uranium.shape[0]):
        a = numpyro.sample("a", dist.Normal(mu[0], sigma_a))
        b = numpyro.sample("b", dist.Normal(mu[1], sigma_b))
    sigma_y = numpyro.sample("sigma_y", dist.Exponential(1))
    with numpyro.plate("houses", county.shape[0]):
        numpyro.sample("y", dist.Normal(a[county] + b[county] * floor, sigma_y), obs=log_radon)


EXAMPLES["radon, slopes"] = Example(
    radon_slope, designs.radon, "sigma_b",
    lambda tau, xi, county, floor, *_: normal(tau * xi["b"][county] * floor, xi["sigma_y"]),
    # The data say much about intercepts and little about slopes.
    reparam=("b",),
)  # fmt: skip


# Rats (BUGS volume 1): its scales are variances.


def rats(rat, age, weight):
    mu_alpha = numpyro.sample("mu_alpha", dist.Normal(0, 100))
    mu_beta = numpyro.sample("mu_beta", dist.Normal(0, 100))
    sigmasq_y = numpyro.sample("sigmasq_y", dist.InverseGamma(1, 1))
    sigmasq_alpha = numpyro.sample("sigmasq_alpha", dist.InverseGamma(1, 1))
    sigmasq_beta = numpyro.sample("sigmasq_beta", dist.InverseGamma(1, 1))
    with numpyro.plate("rats", 30):
        alpha = numpyro.sample("alpha", dist.Normal(mu_alpha, jnp.sqrt(sigmasq_alpha)))
        beta = numpyro.sample("beta", dist.Normal(mu_beta, jnp.sqrt(sigmasq_beta)))
    mean = alpha[rat] + beta[rat] * age
    numpyro.sample("y", dist.Normal(mean, jnp.sqrt(sigmasq_y)), obs=weight)


EXAMPLES["rats"] = Example(
    rats, designs.rats, "sigmasq_beta",
    lambda tau, xi, rat, age, _: normal(
        np.sqrt(tau) * xi["beta"][rat] * age, np.sqrt(xi["sigmasq_y"])
    ),
    power=0.5, reparam=("alpha", "beta"),
)  # fmt: skip


# Surgical (BUGS volume 1): deaths in hospitals.


def surgical(n, r):
    mu = numpyro.sample("mu", dist.Normal(0, 3))
    sigmasq = numpyro.sample("sigmasq", dist.InverseGamma(0.5, 0.5))
    with numpyro.plate("hospitals", 12):
        b = numpyro.sample("b", dist.Normal(mu, jnp.sqrt(sigmasq)))
        numpyro.sample("r", dist.Binomial(n, logits=b), obs=r)


EXAMPLES["surgical"] = Example(
    surgical, designs.surgical, "sigmasq",
    lambda tau, xi, n, r: bernoulli(xi["mu"] + np.sqrt(tau) * xi["b"], xi["mu"], n),
    power=0.5, reparam=("b",),
)  # fmt: skip


def cbpp(herd, period, size, incidence):
    beta = numpyro.sample("beta", dist.Normal(0, 2).expand([4]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    with numpyro.plate("herds", 15):
        u = numpyro.sample("u", dist.Normal(0, sigma))
    with numpyro.plate("rows", len(herd)):
        logits = beta[period] + u[herd]
        numpyro.sample("y", dist.Binomial(total_count=size, logits=logits), obs=incidence)


EXAMPLES["cbpp"] = Example(
    cbpp, designs.cbpp, "sigma",
    lambda tau, xi, herd, period, size, _: bernoulli(
        xi["beta"][period] + tau * xi["u"][herd], xi["beta"][period], size
    ),
    reparam=("u",),
)  # fmt: skip


# Grouse ticks (Elston et al. 2001): chicks in broods in locations, each with an effect.


def grouseticks(brood, location, year, height, ticks):
    beta = numpyro.sample("beta", dist.Normal(0, 1).expand([3]).to_event(1))
    slope = numpyro.sample("slope", dist.Normal(0, 0.05))
    sigma_brood = numpyro.sample("sigma_brood", dist.HalfNormal(1))
    sigma_location = numpyro.sample("sigma_location", dist.HalfNormal(1))
    sigma_chick = numpyro.sample("sigma_chick", dist.HalfNormal(1))
    with numpyro.plate("broods", 118):
        b = numpyro.sample("b", dist.Normal(0, sigma_brood))
    with numpyro.plate("locations", 63):
        c = numpyro.sample("c", dist.Normal(0, sigma_location))
    with numpyro.plate("chicks", len(brood)):
        e = numpyro.sample("e", dist.Normal(0, sigma_chick))
        log_rate = beta[year] + slope * height + b[brood] + c[location] + e
        numpyro.sample("ticks", dist.Poisson(jnp.exp(log_rate)), obs=ticks)


def _grouseticks(tau, xi, brood, location, year, height, _):
    start = xi["beta"][year] + xi["slope"] * height + xi["c"][location] + xi["e"]
    return poisson(start + tau * xi["b"][brood], start)


EXAMPLES["grouseticks"] = Example(
    grouseticks, designs.grouseticks, "sigma_brood", _grouseticks, reparam=("b", "c", "e")
)


def dyestuff2(batch, quantity):
    mean = numpyro.sample("mean", dist.Normal(5, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(5))
    effect = numpyro.sample("effect", dist.Normal(0, tau).expand([6]).to_event(1))
    numpyro.sample("quantity", dist.Normal(mean + effect[batch], sigma), obs=quantity)


EXAMPLES["Dyestuff2"] = Example(
    dyestuff2, designs.dyestuff2, "tau",
    lambda tau, xi, batch, _: normal(tau * xi["effect"][batch], xi["sigma"]),
    reparam=("effect",),
)  # fmt: skip


def penicillin(plate, sample, diameter):
    mean = numpyro.sample("mean", dist.Normal(23, 5))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    sigma_plate = numpyro.sample("sigma_plate", dist.HalfNormal(2))
    sigma_sample = numpyro.sample("sigma_sample", dist.HalfNormal(2))
    with numpyro.plate("plates", 24):
        p = numpyro.sample("p", dist.Normal(0, sigma_plate))
    with numpyro.plate("samples", 6):
        s = numpyro.sample("s", dist.Normal(0, sigma_sample))
    numpyro.sample("y", dist.Normal(mean + p[plate] + s[sample], sigma), obs=diameter)


EXAMPLES["Penicillin"] = Example(
    penicillin, designs.penicillin, "sigma_sample",
    lambda tau, xi, plate, sample, _: normal(tau * xi["s"][sample], xi["sigma"]),
    reparam=("p", "s"),
)  # fmt: skip


# Sleep deprivation (lme4): intercepts and slopes with a correlation.


def sleepstudy(subject, days, reaction):
    beta = numpyro.sample("beta", dist.Normal(jnp.array([250.0, 10.0]), 25.0).to_event(1))
    tau_start = numpyro.sample("tau_start", dist.HalfNormal(50))
    tau_slope = numpyro.sample("tau_slope", dist.HalfNormal(10))
    corr = numpyro.sample("corr", dist.LKJCholesky(2, concentration=2.0))
    factor = jnp.stack([tau_start, tau_slope])[:, None] * corr
    with numpyro.plate("subjects", 18):
        b = numpyro.sample("b", dist.MultivariateNormal(beta, scale_tril=factor))
    sigma = numpyro.sample("sigma", dist.HalfNormal(50))
    mean = b[subject, 0] + b[subject, 1] * days
    numpyro.sample("y", dist.Normal(mean, sigma), obs=reaction)


def _sleepstudy(tau, xi, subject, days, _):
    slope = tau * xi["b"] @ xi["corr"][1]
    return normal(slope[subject] * days, xi["sigma"])


def sleepstudy_noncentred(subject, days, reaction):
    beta = numpyro.sample("beta", dist.Normal(jnp.array([250.0, 10.0]), 25.0).to_event(1))
    tau_start = numpyro.sample("tau_start", dist.HalfNormal(50))
    tau_slope = numpyro.sample("tau_slope", dist.HalfNormal(10))
    corr = numpyro.sample("corr", dist.LKJCholesky(2, concentration=2.0))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([18, 2]).to_event(2))
    b = beta + z @ (jnp.stack([tau_start, tau_slope])[:, None] * corr).T
    sigma = numpyro.sample("sigma", dist.HalfNormal(50))
    mean = b[subject, 0] + b[subject, 1] * days
    numpyro.sample("y", dist.Normal(mean, sigma), obs=reaction)


EXAMPLES["sleepstudy"] = Example(
    sleepstudy, designs.sleepstudy, "tau_slope", _sleepstudy, sampled=sleepstudy_noncentred
)


# Correlated effects with their two scales in one site (the centred form of the LKJ example).


def sleepstudy_vector(subject, days, reaction):
    beta = numpyro.sample("beta", dist.Normal(jnp.array([250.0, 10.0]), 25.0).to_event(1))
    with numpyro.plate("coefficients", 2):
        tau = numpyro.sample("tau", dist.HalfCauchy(10))
    corr = numpyro.sample("corr", dist.LKJCholesky(2, concentration=2.0))
    covariance = tau[:, None] * (corr @ corr.T) * tau
    with numpyro.plate("subjects", 18):
        b = numpyro.sample("b", dist.MultivariateNormal(beta, covariance))
    sigma = numpyro.sample("sigma", dist.HalfNormal(50))
    numpyro.sample("y", dist.Normal(b[subject, 0] + b[subject, 1] * days, sigma), obs=reaction)


# Election polls of 1988 (Gelman and Hill 2007, chapter 14).


def election88(age, edu, age_edu, state, region, v_prev, black, female, y):
    b = numpyro.sample("b", dist.Normal(0, 2).expand([5]).to_event(1))
    sigma = {
        name: numpyro.sample(f"sigma_{name}", dist.HalfNormal(1))
        for name in ("age", "edu", "age_edu", "state", "region")
    }

    def batch(name, size):
        return numpyro.sample(name, dist.Normal(0, sigma[name]).expand([size]).to_event(1))

    effect = (
        batch("age", 4)[age] + batch("edu", 4)[edu] + batch("age_edu", 16)[age_edu]
        + batch("state", 51)[state] + batch("region", 5)[region]
    )  # fmt: skip
    fixed = b[0] + b[1] * black + b[2] * female + b[3] * female * black + b[4] * v_prev
    numpyro.sample("vote", dist.Bernoulli(logits=fixed + effect), obs=y)


def _election88(tau, xi, age, edu, age_edu, state, region, v_prev, black, female, _):
    b = xi["b"]
    start = b[0] + b[1] * black + b[2] * female + b[3] * female * black + b[4] * v_prev
    start = start + xi["age"][age] + xi["edu"][edu] + xi["age_edu"][age_edu] + xi["region"][region]
    return bernoulli(start + tau * xi["state"][state], start)


_POLL = ("age", "edu", "age_edu", "state", "region", "v_prev", "black", "female", "y")
EXAMPLES["election88"] = Example(
    election88, lambda: tuple(designs.election88()[name] for name in _POLL), "sigma_state",
    _election88, reparam=("age", "edu", "age_edu", "state", "region"),
)  # fmt: skip
