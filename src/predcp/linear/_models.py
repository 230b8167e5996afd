"""Linear and logistic regression as plain NumPyro programs: import them, read them, change them."""

from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from predcp.linear._coefficient_prior import CoefficientPrior, Setting
from predcp.linear._priors import Horseshoe


def logistic_regression(
    x: Float[Array, "rows columns"],
    y: Any = None,
    prior: CoefficientPrior | None = None,
    classes: int = 2,
    intercept: bool = True,
    weights: Any = None,
) -> None:
    """`y_n ~ Bernoulli(logistic(alpha + x_n . beta))`, or a softmax of as many logits as classes.

    **Arguments**
    - `x`: standardised design; `y`: class numbers from 0, `(N,)`; None to sample them.
    - `prior`: of beta; the horseshoe if None.
    - `intercept`: `alpha ~ Normal(0, 2.5)` (the paper has none).
    - `weights`: `(N,)`, how often each row counts.
    """
    outputs = 1 if classes == 2 else classes
    family = "bernoulli" if outputs == 1 else "categorical"
    beta = (prior or Horseshoe()).coefficients(Setting(x, family, outputs))
    logits = x @ beta
    if intercept:
        shape = () if outputs == 1 else (outputs,)
        alpha = dist.Normal(0.0, 2.5).expand(shape)
        logits = logits + numpyro.sample("alpha", alpha.to_event(len(shape)))
    observed: Any = dist.Bernoulli if outputs == 1 else dist.Categorical
    _observe(observed(logits=logits), y, x.shape[0], weights)


def linear_regression(
    x: Float[Array, "rows columns"],
    y: Any = None,
    prior: CoefficientPrior | None = None,
    intercept: bool = True,
    weights: Any = None,
    noise_floor: float = 0.0,
) -> None:
    """`y_n ~ Normal(alpha + x_n . beta, sigma)` on standardised responses.

    **Arguments**: as `logistic_regression`; `sigma ~ half-Normal(1)`, `alpha ~ Normal(0, 1)`;
    `noise_floor`, added to sigma in quadrature: where a fit can be exact, the posterior of sigma
    alone is improper at 0.
    """
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    setting = Setting(x, "normal", 1, sigma)
    mean = x @ (prior or Horseshoe()).coefficients(setting)
    if intercept:
        mean = mean + numpyro.sample("alpha", dist.Normal(0.0, 1.0))
    noise = jnp.hypot(sigma, noise_floor) if noise_floor else sigma
    _observe(dist.Normal(mean, noise), y, x.shape[0], weights)


def _observe(observed: dist.Distribution, y: Any, rows: int, weights: Any) -> None:
    with numpyro.plate("rows", rows):
        if weights is None:
            numpyro.sample("y", observed, obs=y)
        else:
            with numpyro.handlers.scale(scale=jnp.asarray(weights)):
                numpyro.sample("y", observed, obs=y)
