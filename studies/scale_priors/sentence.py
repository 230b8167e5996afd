"""The sentence as priors on the scales of each design: pi, and divergences at the edges of cells."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import brentq
from scipy.stats import norm

import predcp
from studies.scale_priors import evidence, maps
from studies.scale_priors.counts import INTERCEPT_SCALE
from studies.scale_priors.designs import Design
from studies.scale_priors.group_sums import LINKS
from studies.scale_priors.interpolated import Curve
from studies.scale_priors.priors import Pi, truncated

NATS, PROBABILITY = 0.5, 0.05
FAMILIES = {"gamma": predcp.Gamma, "log-cauchy": predcp.LogCauchy}


class Divergence(eqx.Module):
    """One kind of divergence of a design, for each of its scales in their order.

    `log_shift` is added to its logarithm (another unit of the average over points).
    """

    log_shift: Any = eqx.field(default=0.0, kw_only=True)

    def log_kappa(self, scale: int, log_tau: Array, rest: dict[str, Array]) -> Array:
        """At edges that broadcast against the table."""
        return self.unshifted(scale, log_tau, rest) + self.log_shift

    def unshifted(self, scale: int, log_tau: Array, rest: dict[str, Array]) -> Array:
        """The same, per observation."""
        raise NotImplementedError

    def log_supremum(self, scale: int, rest: dict[str, Array]) -> Array:
        """Infinite where there is none."""
        return jnp.asarray(jnp.inf)

    def log_suprema(self) -> np.ndarray:
        """Over draws of the rest from its prior, on which the sentence holds on average."""
        return np.array([np.inf])


def pi_of(family: str, log_suprema: np.ndarray) -> Pi:
    """The member of a family that says the sentence, after truncation, on average over the suprema."""
    first = FAMILIES[family].from_tail(
        NATS, PROBABILITY, **({"shape": 0.5} if family == "gamma" else {})
    )
    start = float(jnp.log(first.scale) if family == "gamma" else first.loc)
    if np.all(np.isinf(log_suprema)):
        return Pi(family, start)
    bound = jnp.asarray(log_suprema)

    @jax.jit
    def beyond(place: Any) -> Array:
        return jnp.exp(truncated(Pi(family, place), bound).log_survival(np.log(NATS))).mean()

    high = start
    while beyond(high) < PROBABILITY:
        high += 0.5
    return Pi(family, brentq(lambda place: float(beyond(place)) - PROBABILITY, start - 1.0, high))


def _prior_logits() -> Array:
    return jnp.asarray(INTERCEPT_SCALE["binomial"] * norm.ppf((np.arange(64) + 0.5) / 64))


class Normal(Divergence):
    """Normal outcomes: a function of tau over the noise."""

    curves: tuple[Curve, ...]

    def unshifted(self, scale: int, log_tau: Array, rest: dict[str, Array]) -> Array:
        return self.curves[scale](log_tau - rest["log_noise"])


class Counts(Divergence):
    """Counts with one factor: at each node of the intercept."""

    family: str = eqx.field(static=True)
    joint: bool = eqx.field(static=True)
    log_divergence: Any  # a curve at rate 1 or a surface over intercepts
    supremum: Any  # a curve over intercepts; of a joint divergence, the exposures

    def unshifted(self, scale: int, log_tau: Array, rest: dict[str, Array]) -> Array:
        middle = rest["intercept"]
        if self.family == "poisson" and not self.joint:
            return self.log_divergence(log_tau) + middle
        return self.log_divergence(middle, log_tau)

    def _at(self, logits: Array) -> Array:
        if self.joint:
            return evidence.log_binomial_supremum(self.supremum, logits)
        return self.supremum(logits)

    def log_supremum(self, scale: int, rest: dict[str, Array]) -> Array:
        if self.family == "poisson":
            return jnp.asarray(jnp.inf)
        return self._at(rest["intercept"]) + self.log_shift

    def log_suprema(self) -> np.ndarray:
        if self.family == "poisson":
            return super().log_suprema()
        return np.asarray(self._at(_prior_logits()) + self.log_shift)


class Approximate(Divergence):
    """Designs of the Laplace approximation: at the conditional mode of the rest."""

    family: str = eqx.field(static=True)
    sizes: Any  # mean squared length of a row of each factor
    trials: Any
    log_divergence: Any  # a curve at rate 1, or a surface over logits
    supremum: Any

    def unshifted(self, scale: int, log_tau: Array, rest: dict[str, Array]) -> Array:
        predictors = rest["predictors"][..., scale, :]
        log_tau = log_tau + 0.5 * jnp.log(jnp.asarray(self.sizes)[scale])
        if self.family == "poisson":
            ones = jnp.ones(predictors.shape[-1])
            return self.log_divergence(log_tau) + maps.log_mean(predictors, ones)
        return maps.log_mean(self.log_divergence(predictors, log_tau[..., None]), self.trials)

    def log_supremum(self, scale: int, rest: dict[str, Array]) -> Array:
        if self.family == "poisson":
            return jnp.asarray(jnp.inf)
        return maps.log_mean(self.supremum(rest["predictors"][..., scale, :]), self.trials)

    def log_suprema(self) -> np.ndarray:
        if self.family == "poisson":
            return super().log_suprema()
        return np.asarray(self.supremum(_prior_logits()))


class ApproximateJoint(Divergence):
    """The joint divergence in the working linear model at the mode where the scale is 0."""

    family: str = eqx.field(static=True)
    z: tuple[Any, ...]
    trials: Any

    def unshifted(self, scale: int, log_tau: Array, rest: dict[str, Array]) -> Array:
        first, last = rest["predictors"], len(self.z) - 1
        # The cell where this scale is least, and those after it, which are switched off.
        for off in {scale, last}:
            first = jnp.take(first, jnp.array([0]), axis=off)
        weight = self.trials * LINKS[self.family].curvature(first[..., scale, :])
        z = jnp.asarray(self.z[scale])
        square = jnp.einsum("ng,...n,nh->...gh", z, weight, z)
        eigenvalues = jnp.maximum(jnp.linalg.eigvalsh(square), 0.0)
        return evidence.log_gaussian_kappa(log_tau, eigenvalues, self.trials.sum())


def _scaled(design: Design) -> list[np.ndarray]:
    """Rows of the factors in units of the noise, where it is known."""
    weights = 1.0 / design.noise if design.noise_known else np.ones(len(design.y))
    return [weights[:, None] * z for z in design.z]


def predictive(design: Design) -> Divergence:
    """The predictive divergence of a design, averaged over rows or trials."""
    bounded = design.family == "binomial"
    if design.method == "gaussian":
        sizes = [np.log((z**2).sum(1).mean()) + maps.normal_constant() for z in _scaled(design)]
        ends = np.array([-1.0, 1.0])
        return Normal(tuple(Curve(ends, 2.0 * ends + size) for size in sizes))
    log_divergence = maps.trial_surface()[0] if bounded else maps.poisson_curve()
    supremum = maps.trial_surface()[1] if bounded else None
    if design.method == "counts":
        return Counts(design.family, False, log_divergence, supremum)
    sizes = np.array([(z**2).sum(1).mean() for z in design.z])
    return Approximate(design.family, sizes, design.trials, log_divergence, supremum)


def joint(design: Design) -> Divergence:
    """The joint divergence of all observations (ECP), per row or trial."""
    if design.method == "gaussian":
        values = [np.linalg.eigvalsh(z.T @ z).clip(0.0) for z in _scaled(design)]
        return Normal(tuple(evidence.gaussian_curve(each, len(design.y)) for each in values))
    if design.method == "laplace":
        return ApproximateJoint(design.family, design.z, design.trials)
    exposures = design.z[0].T @ design.trials
    exposures = exposures[exposures > 0.0]
    middles = design.beta[0] + np.linspace(-8.0, 4.0, 25)
    surface = evidence.group_surface(design.family, exposures, middles)
    shift = -np.log(design.trials.sum())
    return Counts(design.family, True, surface, exposures, log_shift=shift)


def per(design: Design) -> Divergence:
    """Predictive divergence in the units that `per=` asks for: pupils, expected counts, rows."""
    # A row of a binomial is worth its trials.
    factor = design.trials.mean() if design.per == "row" else 1.0 / design.per
    base = predictive(design)
    return eqx.tree_at(lambda each: each.log_shift, base, np.log(factor))
