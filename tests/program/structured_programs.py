"""Programs with splines, processes, maps, items and networks, as their authors write them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro.contrib.module import random_eqx_module
from numpyro.distributions.transforms import OrderedTransform

from tests.program import designs
from tests.program.example import EXAMPLES, Example, bernoulli, classes, normal, poisson

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


def item_response_noncentred(item, person, answer):
    mu_b = numpyro.sample("mu_b", dist.Normal(0, 2))
    sigma_a = numpyro.sample("sigma_a", dist.HalfNormal(1))
    sigma_b = numpyro.sample("sigma_b", dist.HalfCauchy(2))
    with numpyro.plate("items", 14):
        a = jnp.exp(sigma_a * numpyro.sample("z_a", dist.Normal(0, 1)))
        b = mu_b + sigma_b * numpyro.sample("z_b", dist.Normal(0, 1))
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
    item_response, designs.items, "sigma_b", _difficulties, sampled=item_response_noncentred
)
EXAMPLES["item response, discriminations"] = Example(
    item_response, designs.items, "sigma_a", _discriminations, power=None,
    sampled=item_response_noncentred,
)  # fmt: skip


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


EXAMPLES["ordinal"] = Example(ordinal, designs.attitudes, "sigma", _ordinal, reparam=("theta",))


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
