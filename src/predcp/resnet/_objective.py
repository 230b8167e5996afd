"""The objective of one step: expected log likelihood, divergence, and the scales by EM."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from predcp.resnet._layer_priors import Comparison, InverseGammaLayers, LayerScalePrior
from predcp.resnet._network import Network
from predcp.resnet._posterior import Posterior, row_divergence, second_moments, variance
from predcp.resnet._rows import RowPrior, log_row_variances
from predcp.resnet._stochastic import Pass, flipout, local

Estimator = Literal["flipout", "local"]
ESTIMATORS: tuple[Estimator, ...] = ("flipout", "local")
# Largest learned noise precision, on standardised targets: an exact fit has no best precision.
_HIGHEST_LOG_PRECISION = math.log(1e6)


class Objective(NamedTuple):
    """Values in which fits of one program may differ: numbers, or arrays with a leading axis of fits.

    **Arguments**
    - `choice`: which of the program's priors.
    - `kl_weight`: of the divergence, summed over the weights, against the *mean* log likelihood:
        1 / N is the exact ELBO.
    - `flips`: 1 for the public code's flipout.
    - `updates`: 1 for its closed-form scales, which divide by lambda instead of lambda^2.
    - `slopes`: 1 for gradients through the scales, as its automatic differentiation takes them.
    - `warmup`: epochs over which `kl_weight` rises to its value; 0 for none.
    """

    choice: int | Array = 0
    kl_weight: float | Array = 1.0
    flips: float | Array = 0.0
    updates: float | Array = 0.0
    slopes: float | Array = 0.0
    warmup: float | Array = 0.0

    def at(self, epoch: Array) -> "Objective":
        """The objective in the given epoch."""
        share = (epoch + 1.0) / jnp.maximum(jnp.asarray(self.warmup, jnp.float32), 1.0)
        return self._replace(kl_weight=self.kl_weight * jnp.minimum(share, 1.0))


@dataclass(frozen=True)
class Model:
    """Settings for which a program is compiled.

    **Arguments**
    - `priors`: of the layer scales, chosen among by `Objective.choice`.
    - `rows`: prior of the row scales, None for none (lambda = 1).
    - `precision`: of normal noise on standardised targets, None to learn it.
    - `classes`: whether the outputs are logits of classes.
    - `samples`: S of the expected log likelihood.
    - `quirks`: whether the program knows the public code's variants (`flips`, `updates` and `slopes`
        of an objective); a program without them is a little faster.
    """

    network: Network
    priors: tuple[LayerScalePrior, ...]
    rows: RowPrior | None
    precision: float | None = 20.0
    classes: bool = False
    samples: int = 10
    estimator: Estimator = "flipout"
    quirks: bool = False

    def seen(self, objective: Objective) -> Objective:
        """The objective as the program sees it."""
        if self.quirks:
            return objective
        return Objective(objective.choice, objective.kl_weight, warmup=objective.warmup)


class Scales(NamedTuple):
    """Logs of the variances of the row scales, (D + L H,) and (H,), and of tau, (L,)."""

    body: Float[Array, " rows"]
    head: Float[Array, " width"]
    log_tau: Float[Array, " layers"]


class Terms(NamedTuple):
    """Parts of the objective: the mean log likelihood, the divergence, log p(tau), the scales."""

    log_likelihood: Float[Array, ""]
    divergence: Float[Array, ""]
    log_prior: Float[Array, ""]
    scales: Scales


def log_precision(model: Model, posterior: Posterior) -> Float[Array, ""]:
    """Log precision of the noise on standardised targets."""
    if model.precision is not None:
        return jnp.asarray(math.log(model.precision), jnp.float32)
    return jnp.minimum(posterior.log_precision, _HIGHEST_LOG_PRECISION)


def expectation_step(model: Model, posterior: Posterior, objective: Objective) -> Scales:
    """The best scales given the weights: lambda first, then tau, each in closed form."""
    network, objective = model.network, model.seen(objective)
    moments = second_moments(posterior.mean, posterior.spread)
    carried = lax.stop_gradient(posterior.log_tau)
    if model.rows is None:
        body = jnp.zeros(network.rows, jnp.float32)
        head = jnp.zeros(network.width, jnp.float32)
    else:
        # The public code never stores tau: its lambda is always that of tau = 1.
        gamma = _chosen(
            [float(isinstance(prior, InverseGammaLayers)) for prior in model.priors],
            objective.choice,
        )
        before = carried * (1.0 - objective.updates * gamma)
        body = log_row_variances(moments.body, network.of_rows(before), model.rows)
        head = log_row_variances(moments.head, 0.0, model.rows)
    sums = network.by_layer(jnp.sum(moments.body, axis=-1))
    rows = network.by_layer(body)
    exponent = 1.0 - 0.5 * jnp.asarray(objective.updates, jnp.float32)
    pooled = jnp.sum(sums * jnp.exp(-exponent * rows), axis=-1)
    taus = [
        posterior.log_tau if closed is None else _held(closed, objective.slopes)
        for closed in (prior.closed_form(pooled, network.width**2) for prior in model.priors)
    ]
    return Scales(
        _held(body, objective.slopes),
        _held(head, objective.slopes),
        _chosen(taus, objective.choice),
    )


def divergences(
    model: Model, posterior: Posterior, scales: Scales
) -> tuple[Float[Array, " rows"], Float[Array, " width"]]:
    """KL of the posterior from the prior, row by row, of the body and of the head."""
    moments = second_moments(posterior.mean, posterior.spread)
    log_scale = scales.body + model.network.of_rows(scales.log_tau)
    return (
        row_divergence(moments.body, posterior.spread.body, log_scale),
        row_divergence(moments.head, posterior.spread.head, scales.head),
    )


def loss(
    posterior: Posterior,
    model: Model,
    objective: Objective,
    x: Float[Array, "points inputs"],
    y: Array,
    key: Array,
) -> tuple[Float[Array, ""], Terms]:
    """Minus the objective on a mini-batch, and its parts."""
    network, objective = model.network, model.seen(objective)
    if model.estimator == "flipout":
        passed = flipout(network, posterior, x, model.samples, key, objective.flips)
    else:
        passed = local(network, posterior, x, model.samples, key)
    precision = log_precision(model, posterior)
    log_likelihood = jnp.mean(observed(model, passed.outputs, y, precision))
    scales = expectation_step(model, posterior, objective)
    body, head = divergences(model, posterior, scales)
    divergence = jnp.sum(body) + jnp.sum(head)
    log_prior = _log_prior(model, posterior, objective, passed, scales, precision, key)
    total = objective.kl_weight * (divergence - log_prior) - log_likelihood
    return total, Terms(log_likelihood, divergence, log_prior, scales)


def observed(model: Model, outputs: Array, y: Array, precision: Array) -> Array:
    """Log likelihood of targets (N,) given outputs (S, N, K)."""
    if model.classes:
        logs = jax.nn.log_softmax(outputs)
        own = jax.nn.one_hot(y, outputs.shape[-1], dtype=logs.dtype)
        return jnp.sum(logs * own, axis=-1)
    error = outputs[..., 0] - y
    return 0.5 * (precision - math.log(2.0 * math.pi) - jnp.exp(precision) * error**2)


def _log_prior(
    model: Model,
    posterior: Posterior,
    objective: Objective,
    passed: Pass,
    scales: Scales,
    precision: Array,
    key: Array,
) -> Float[Array, ""]:
    """Log densities of the scales that move by gradients."""
    network = model.network
    zero = jnp.zeros((), jnp.float32)
    if network.layers == 0 or not any(prior.by_gradient for prior in model.priors):
        return zero

    def noise() -> Array:
        if passed.noise is not None:
            # The noise of the step is standard normal and new, so the prior can use it as well.
            return passed.noise
        shape = (1, network.layers, network.width, network.width)
        return jax.random.normal(jax.random.fold_in(key, 1), shape, jnp.float32)

    # The hidden states are samples themselves: one per step is enough.
    points = passed.outputs.shape[1] if network.layers > 1 or model.classes else None
    comparison = Comparison(
        passed.hidden[:points],
        jnp.exp(network.by_layer(scales.body)),
        posterior.mean.head,
        variance(posterior.spread).head,
        None if model.classes else jnp.exp(precision),
        noise,
    )
    still = lax.stop_gradient(comparison._replace(noise=None))  # type: ignore[arg-type]
    comparison = still._replace(noise=noise)
    densities = [
        prior.log_density(network, scales.log_tau, comparison) if prior.by_gradient else zero
        for prior in model.priors
    ]
    return _chosen(densities, objective.choice)


def _chosen(values: list, choice: int | Array):
    """The value at a position, which may be known only when the program runs."""
    if isinstance(choice, int):
        return values[choice]
    result = values[0]
    for number, value in enumerate(values[1:], start=1):
        result = jnp.where(choice == number, value, result)
    return result


def _held(value: Array, slopes: float | Array) -> Array:
    """The value, with its gradient multiplied by `slopes`."""
    still = lax.stop_gradient(value)
    if isinstance(slopes, float):
        return still if slopes == 0.0 else value
    return still + slopes * (value - still)
