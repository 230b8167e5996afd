"""Three models with one prior on their scale, sampled by NumPyro, PyMC and Stan.

Each engine gives draws of every parameter by chain, `(chains, draws, 9)`: `log tau`, then eight effects.
"""

import subprocess
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from arviz_stats.base import array_stats
from scipy import special

import predcp

GROUPS = np.repeat(np.arange(8), 5)
_RANDOM = np.random.default_rng(1)
_EFFECTS = 0.7 * _RANDOM.normal(size=8)
CHAINS, WARMUP, DRAWS, ACCEPT = 4, 1000, 2000, 0.95
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
PARAMETERS = ("log_tau", *(f"z[{i}]" for i in range(8)))


class Example(NamedTuple):
    """A model's outcomes and its distribution of them given the linear predictor, by engine."""

    outcomes: np.ndarray
    numpyro: Callable[[Any], Any]
    stan_data: str
    stan: str
    pymc: str  # name of the distribution, whose parameter `pymc_parameter` makes of eta
    pymc_parameter: Callable[[Any, Any], dict[str, Any]]


EXAMPLES = {
    "normal": Example(
        _EFFECTS[GROUPS] + _RANDOM.normal(size=40),
        lambda eta: dist.Normal(eta, 1.0),
        "vector[40] y;",
        "normal(eta, 1)",
        "Normal",
        lambda pm, eta: {"mu": eta, "sigma": 1.0},
    ),
    "poisson": Example(
        _RANDOM.poisson(np.exp(_EFFECTS[GROUPS])),
        lambda eta: dist.Poisson(jnp.exp(eta)),
        "array[40] int y;",
        "poisson_log(eta)",
        "Poisson",
        lambda pm, eta: {"mu": pm.math.exp(eta)},
    ),
    "bernoulli": Example(
        (_RANDOM.uniform(size=40) < special.expit(2 * _EFFECTS[GROUPS])).astype(int),
        lambda eta: dist.Bernoulli(logits=eta),
        "array[40] int y;",
        "bernoulli_logit(eta)",
        "Bernoulli",
        lambda pm, eta: {"logit_p": eta},
    ),
}
PROGRAM = """
functions {{
{functions}
}}
data {{ array[40] int g; {data} }}
parameters {{ real log_tau; vector[8] z; }}
model {{
  // Local: PyStan cannot read an infinite value that is saved.
  vector[40] eta = exp(log_tau) * z[g];
  log_tau ~ predcp_tau(); z ~ std_normal(); y ~ {family};
}}
generated quantities {{ real drawn = predcp_tau_rng(); }}
"""


def prior_of(example: Example) -> predcp.ComplexityPrior:
    """The prior of the scale of eight group effects, against none."""
    complexity = predcp.PredictiveComplexity(
        lambda theta, g: example.numpyro(theta[g]),
        lambda tau, xi: tau * xi,
        jnp.zeros(8),
        jnp.arange(8),
        predcp.normal_noise(jax.random.key(0), 64, (8,)),
        unit="standard deviation",
    )
    # A log-Cauchy pi has tails in log tau that no chain of this length explores.
    return predcp.ComplexityPrior(predcp.HalfCauchy(0.4), complexity)


def in_numpyro(example: Example, seed: int = 0, draws: int = DRAWS) -> np.ndarray:
    """Draws of NumPyro's NUTS."""
    prior = prior_of(example).tabulated().log_scale()

    def model():
        log_tau = numpyro.sample("log_tau", prior)
        z = numpyro.sample("z", dist.Normal().expand([8]).to_event(1))
        eta = jnp.exp(log_tau) * z[GROUPS]
        numpyro.sample("y", example.numpyro(eta), obs=jnp.asarray(example.outcomes))

    mcmc = numpyro.infer.MCMC(
        numpyro.infer.NUTS(model, target_accept_prob=ACCEPT),
        num_warmup=WARMUP,
        num_samples=draws,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(seed))
    found = mcmc.get_samples(group_by_chain=True)
    return np.concatenate([np.asarray(found["log_tau"])[..., None], np.asarray(found["z"])], -1)


def in_pymc(
    example: Example, seed: int = 2, sampler: str = "pymc", draws: int = DRAWS
) -> np.ndarray:
    """Draws of a sampler of PyMC, with the prior through the bridge."""
    import pymc as pm

    from predcp.bridges import pymc as bridge

    with pm.Model():
        tau = bridge.scale("tau", prior_of(example))
        z = pm.Normal("z", shape=8)
        parameters = example.pymc_parameter(pm, tau * z[GROUPS])
        getattr(pm, example.pymc)("y", **parameters, observed=example.outcomes)
        found = pm.sample(
            draws,
            tune=WARMUP,
            chains=CHAINS,
            cores=1,
            target_accept=ACCEPT,
            nuts_sampler=sampler,
            # With one device the chains of BlackJAX must be one program.
            nuts_sampler_kwargs={"chain_method": "vectorized"} if sampler == "blackjax" else None,
            progressbar=False,
            random_seed=seed,
        )
    posterior = found.posterior
    return np.concatenate(
        [np.asarray(posterior["log_tau"])[..., None], np.asarray(posterior["z"])], -1
    )


def stan_model(text: str, **options: Any) -> Any:
    """A program that Stan has compiled: `stan.build`, with time to translate and to compile it.

    PyStan allows a second and five minutes, which are too short on a busy machine.
    """
    import aiohttp

    import stan

    original = subprocess.run

    def patient(*args: Any, **given: Any) -> Any:
        return original(*args, **given | ({"timeout": 60} if "timeout" in given else {}))

    patience = aiohttp.ClientTimeout(total=3600.0)
    with (
        mock.patch.object(subprocess, "run", patient),
        mock.patch.object(aiohttp.client, "DEFAULT_TIMEOUT", patience),
    ):
        return stan.build(text, **options)


def in_stan(example: Example, seed: int = 1, draws: int = DRAWS) -> tuple[np.ndarray, np.ndarray]:
    """Draws of Stan's NUTS, with the prior as text; and Stan's own draws of the prior."""
    text = PROGRAM.format(
        functions=prior_of(example).to_stan("tau"),
        data=example.stan_data,
        family=example.stan,
    )
    data = {"g": (GROUPS + 1).tolist(), "y": example.outcomes.tolist()}
    fit = stan_model(text, data=data, random_seed=seed).sample(
        num_chains=CHAINS, num_warmup=WARMUP, num_samples=draws, delta=ACCEPT
    )
    # PyStan has the chains of one draw next to each other.
    by_chain = [
        fit[name].reshape(-1, draws, CHAINS).transpose(2, 1, 0) for name in ("log_tau", "z")
    ]
    return np.concatenate(by_chain, -1), fit["drawn"].ravel()


def quantiles(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of every parameter and their Monte Carlo errors, `(quantiles, parameters)`."""
    axes = {"chain_axis": 0, "draw_axis": 1}
    errors = [array_stats.mcse(draws, method="quantile", prob=q, **axes) for q in QUANTILES]
    return np.quantile(draws, QUANTILES, axis=(0, 1)), np.stack(errors)


def differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """How far the quantiles of two samples are apart, in Monte Carlo errors of their difference."""
    (a, a_error), (b, b_error) = quantiles(first), quantiles(second)
    return (a - b) / np.hypot(a_error, b_error)


def farthest_of(quantities: int, one: float = 3.0) -> float:
    """How many errors apart the farthest of some quantities may be.

    Bonferroni's rule: equal posteriors exceed it as rarely as one quantity is beyond `one` error bars.
    """
    return -NormalDist().inv_cdf(NormalDist().cdf(-one) / quantities)
