"""Programs as their authors write them, each with the divergence of its predictions by hand.

A hand-written divergence takes the scale and one draw: by site, the noise of what the scale moves and
the value of the rest. It is plain NumPy and shares no code with the library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.contrib.module import random_eqx_module
from numpyro.distributions.transforms import OrderedTransform
from numpyro.infer.reparam import LocScaleReparam

from tests.program import designs

Draw = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Example:
    """A program, its arguments, one of its scales, and `D` of one draw by hand.

    `power` is the power of the scale as which predictions move, None where they do not move as one.
    `noncentred` is the same program written the other way round; its noise sites have names in `renamed`.
    """

    model: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    scale: str
    divergence: Callable[..., Any]
    power: float | None = 1.0
    options: dict[str, Any] = field(default_factory=dict)
    noncentred: Callable[..., Any] | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    # Effects that a sampler needs in non-centred form, or the program written so.
    reparam: tuple[str, ...] = ()
    sampled: Callable[..., Any] | None = None
    # Latent sites with one mode; all when left out.
    identified: tuple[str, ...] | None = None

    def for_sampling(self) -> Callable[..., Any]:
        """The program in the form that a sampler needs."""
        if self.sampled is not None:
            return self.sampled
        config = {name: LocScaleReparam(0.0) for name in self.reparam}
        return handlers.reparam(self.model, config=config)


EXAMPLES: dict[str, Example] = {}


def normal(shift, noise):
    """Mean over rows of the divergence between normals that differ in location."""
    return np.mean(np.asarray(shift) ** 2 / (2.0 * np.asarray(noise) ** 2))


def softplus(x):
    return np.logaddexp(0.0, x)


def bernoulli(logits, start, trials=1.0):
    """Mean over trials of the divergence between coins."""
    p = 1.0 / (1.0 + np.exp(-logits))
    each = p * (logits - start) - softplus(logits) + softplus(start)
    return np.average(each, weights=np.broadcast_to(trials, each.shape))


def poisson(log_rate, start):
    step = log_rate - start
    return np.mean(np.exp(start) * (np.exp(step) * step - np.expm1(step)))


def classes(p, start):
    return np.mean(np.sum(p * np.log(p / start), -1))


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
    reparam=("a", "b"),
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


# A smoothing spline in the form of brms: the smooth part is a random effect of its basis.


def spline(x, basis, y):
    intercept = numpyro.sample("intercept", dist.StudentT(3, -13, 36))
    slope = numpyro.sample("slope", dist.Normal(0, 50))
    sds = numpyro.sample("sds", dist.HalfCauchy(36))
    zs = numpyro.sample("zs", dist.Normal(0, 1).expand([basis.shape[1]]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(36))
    mean = intercept + slope * x + basis @ (sds * zs)
    numpyro.sample("y", dist.Normal(mean, sigma), obs=y)


EXAMPLES["spline"] = Example(
    spline, designs.mcycle, "sds",
    lambda tau, xi, x, basis, y: normal(basis @ (tau * xi["zs"]), xi["sigma"]),
)  # fmt: skip


# A Gaussian process for counts (Stan's guide), with a jitter.


def gaussian_process(x, k):
    rho = numpyro.sample("rho", dist.Gamma(25, 4))
    alpha = numpyro.sample("alpha", dist.HalfNormal(2))
    gap = (x[:, None] - x) / rho
    covariance = alpha**2 * jnp.exp(-0.5 * gap**2) + 1e-10 * jnp.eye(11)
    f = numpyro.sample("f", dist.MultivariateNormal(jnp.zeros(11), covariance))
    numpyro.sample("k", dist.Poisson(jnp.exp(f)), obs=k)


def _gaussian_process(tau, xi, x, _):
    gap = (x[:, None] - x) / xi["rho"]
    factor = np.linalg.cholesky(tau**2 * np.exp(-0.5 * gap**2) + 1e-10 * np.eye(11))
    return poisson(factor @ xi["f"], 1e-5 * xi["f"])


def gaussian_process_noncentred(x, k):
    rho = numpyro.sample("rho", dist.Gamma(25, 4))
    alpha = numpyro.sample("alpha", dist.HalfNormal(2))
    gap = (x[:, None] - x) / rho
    factor = jnp.linalg.cholesky(jnp.exp(-0.5 * gap**2) + 1e-10 * jnp.eye(11))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([11]).to_event(1))
    numpyro.sample("k", dist.Poisson(jnp.exp(alpha * (factor @ z))), obs=k)


EXAMPLES["Gaussian process"] = Example(
    gaussian_process, designs.counts_on_a_line, "alpha", _gaussian_process, power=None,
    sampled=gaussian_process_noncentred,
)  # fmt: skip


# A latent AR(1) process, as a loop in Python and with NumPyro's scan.


def ar1(y):
    phi = numpyro.sample("phi", dist.Uniform(-1, 1))
    tau = numpyro.sample("tau", dist.HalfCauchy(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    h, states = 0.0, []
    for t in range(8):
        h = numpyro.sample(f"h_{t}", dist.Normal(phi * h, tau))
        states.append(h)
    numpyro.sample("y", dist.Normal(jnp.stack(states), sigma), obs=y)


def ar1_scan(y):
    phi = numpyro.sample("phi", dist.Uniform(-1, 1))
    tau = numpyro.sample("tau", dist.HalfCauchy(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))

    def step(before, now):
        h = numpyro.sample("h", dist.Normal(phi * before, tau))
        numpyro.sample("y", dist.Normal(h, sigma), obs=now)
        return h, None

    scan(step, 0.0, y)


def ar1_scan_noncentred(y):
    phi = numpyro.sample("phi", dist.Uniform(-1, 1))
    tau = numpyro.sample("tau", dist.HalfCauchy(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))

    def step(before, now):
        z = numpyro.sample("z", dist.Normal(0, 1))
        h = phi * before + tau * z
        numpyro.sample("y", dist.Normal(h, sigma), obs=now)
        return h, None

    scan(step, 0.0, y)


def _ar1(tau, phi, noise, sigma):
    h = np.zeros(len(noise) + 1)
    for t, each in enumerate(noise):
        h[t + 1] = phi * h[t] + tau * each
    return normal(h[1:], sigma)


EXAMPLES["AR(1)"] = Example(
    ar1, lambda: (designs.series(8),), "tau",
    lambda tau, xi, y: _ar1(tau, xi["phi"], [xi[f"h_{t}"] for t in range(8)], xi["sigma"]),
    reparam=tuple(f"h_{t}" for t in range(8)),
)  # fmt: skip

EXAMPLES["AR(1) with scan"] = Example(
    ar1_scan, lambda: (designs.series(30),), "tau",
    lambda tau, xi, y: _ar1(tau, xi["phi"], xi["h"], xi["sigma"]),
    sampled=ar1_scan_noncentred,
)  # fmt: skip


# Counts on a map: a mixture of neighbours' and independent effects (Riebler et al. 2016).


def bym(vectors, scales, exposure, y):
    beta = numpyro.sample("beta", dist.Normal(0, 1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    rho = numpyro.sample("rho", dist.Beta(0.5, 0.5))
    n = vectors.shape[0]
    theta = numpyro.sample("theta", dist.Normal(0, 1).expand([n]).to_event(1))
    with numpyro.plate("directions", n - 1):
        phi = numpyro.sample("phi", dist.Normal(0, scales))
    effect = jnp.sqrt(1 - rho) * theta + jnp.sqrt(rho) * (vectors @ phi)
    rate = exposure * jnp.exp(beta + sigma * effect)
    numpyro.sample("y", dist.Poisson(rate), obs=y)


def _bym(tau, xi, vectors, scales, exposure, _):
    field = vectors @ (scales * xi["phi"])
    effect = np.sqrt(1 - xi["rho"]) * xi["theta"] + np.sqrt(xi["rho"]) * field
    start = np.log(exposure) + xi["beta"]
    return poisson(start + tau * effect, start)


EXAMPLES["BYM"] = Example(bym, designs.lattice, "sigma", _bym)


def horseshoe(x, y):
    tau = numpyro.sample("tau", dist.HalfCauchy(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    with numpyro.plate("columns", x.shape[1]):
        lam = numpyro.sample("lambda", dist.HalfCauchy(1))
        beta = numpyro.sample("beta", dist.Normal(0, tau * lam))
    numpyro.sample("y", dist.Normal(x @ beta, sigma), obs=y)


EXAMPLES["horseshoe"] = Example(
    horseshoe, designs.mesquite, "tau",
    lambda tau, xi, x, y: normal(x @ (tau * xi["lambda"] * xi["beta"]), xi["sigma"]),
    reparam=("beta",),
)  # fmt: skip


# Two-parameter item response (Stan's case study), with discriminations that vary.


def item_response(item, person, answer):
    mu_b = numpyro.sample("mu_b", dist.Normal(0, 2))
    sigma_a = numpyro.sample("sigma_a", dist.HalfNormal(1))
    sigma_b = numpyro.sample("sigma_b", dist.HalfCauchy(2))
    with numpyro.plate("items", 14):
        a = numpyro.sample("a", dist.LogNormal(0, sigma_a))
        b = numpyro.sample("b", dist.Normal(mu_b, sigma_b))
    with numpyro.plate("persons", 40):
        theta = numpyro.sample("theta", dist.Normal(0, 1))
    logits = a[item] * (theta[person] - b[item])
    numpyro.sample("answer", dist.Bernoulli(logits=logits), obs=answer)


def _difficulties(tau, xi, item, person, _):
    start = xi["a"][item] * (xi["theta"][person] - xi["mu_b"])
    return bernoulli(start - xi["a"][item] * tau * xi["b"][item], start)


def _discriminations(tau, xi, item, person, _):
    start = xi["theta"][person] - xi["b"][item]
    return bernoulli(np.exp(tau * xi["a"][item]) * start, start)


EXAMPLES["item response, difficulties"] = Example(
    item_response, designs.items, "sigma_b", _difficulties, reparam=("b",)
)
EXAMPLES["item response, discriminations"] = Example(
    item_response, designs.items, "sigma_a", _discriminations, power=None, reparam=("b",)
)


def ordinal(item, person, answer):
    sigma = numpyro.sample("sigma", dist.HalfNormal(2))
    difficulty = numpyro.sample("difficulty", dist.Normal(0, 1).expand([7]).to_event(1))
    cuts = dist.TransformedDistribution(dist.Normal(0, 1.5).expand([3]), OrderedTransform())
    c = numpyro.sample("c", cuts)
    with numpyro.plate("persons", 30):
        theta = numpyro.sample("theta", dist.Normal(0, sigma))
    with numpyro.plate("answers", len(item)):
        eta = theta[person] - difficulty[item]
        numpyro.sample("answer", dist.OrderedLogistic(eta, c), obs=answer)


def _ordinal(tau, xi, item, person, _):
    def probabilities(eta):
        below = 1.0 / (1.0 + np.exp(eta[:, None] - xi["c"]))
        ends = np.zeros((len(eta), 1)), np.ones((len(eta), 1))
        return np.diff(np.hstack([ends[0], below, ends[1]]), axis=1)

    start = -xi["difficulty"][item]
    return classes(probabilities(start + tau * xi["theta"][person]), probabilities(start))


EXAMPLES["ordinal"] = Example(
    ordinal, designs.attitudes, "sigma", _ordinal, power=None, reparam=("theta",)
)


def crossed(row, column, y):
    intercept = numpyro.sample("intercept", dist.StudentT(3, 0, 2.5))
    sd_row = numpyro.sample("sd_row", dist.HalfNormal(2.5))
    sd_column = numpyro.sample("sd_column", dist.HalfNormal(2.5))
    rows = numpyro.plate("rows", 12)
    with rows:
        r = numpyro.sample("r", dist.Normal(0, sd_row))
    with numpyro.plate("columns", 10):
        c = numpyro.sample("c", dist.Normal(0, sd_column))
    logits = intercept + r[row] + c[column]
    numpyro.sample("y", dist.BernoulliLogits(logits), obs=y)


def _crossed(tau, xi, row, column, _):
    start = xi["intercept"] + xi["c"][column]
    return bernoulli(start + tau * xi["r"][row], start)


EXAMPLES["crossed"] = Example(crossed, designs.crossed, "sd_row", _crossed, reparam=("r", "c"))


# A Bayesian network of equinox: every weight has the same scale.


def network(x, y):
    mlp = eqx.nn.MLP(1, "scalar", 4, 1, activation=jnp.tanh, key=jax.random.key(0))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    net = random_eqx_module("net", mlp, prior=lambda name, shape: dist.Normal(0, tau))
    numpyro.sample("y", dist.Normal(jax.vmap(net)(x), sigma), obs=y)


def _network(tau, xi, x, _):
    weight, bias = (
        [xi[f"net/layers[{layer}].{part}"] * tau for layer in (0, 1)] for part in ("weight", "bias")
    )
    hidden = np.tanh(x @ weight[0].T + bias[0])
    return normal((hidden @ weight[1].T)[:, 0] + bias[1], xi["sigma"])


EXAMPLES["network"] = Example(
    network, designs.wave, "tau", _network, power=None,
    reparam=tuple(f"net/layers[{i}].{part}" for i in (0, 1) for part in ("weight", "bias")),
    identified=("tau", "sigma"),
)  # fmt: skip


# Only some of the rows are seen at each step.


def subsampled(county, floor, uranium, log_radon):
    mu = numpyro.sample("mu", dist.Normal(0, 2))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    with numpyro.plate("counties", len(uranium)):
        a = numpyro.sample("a", dist.Normal(mu, tau))
    with numpyro.plate("houses", len(county), subsample_size=50) as rows:
        numpyro.sample("y", dist.Normal(a[county[rows]], 0.8), obs=log_radon[rows])
