"""Fifty-digit references: priors on a divergence, divergences, and densities of a scale."""

from collections.abc import Callable

import mpmath as mp
import numpy as np

import predcp

# v - log(1 + v) at v = 1e-40 loses eighty digits, and fifty must be left.
mp.mp.dps = 140

PRIORS = {
    "log-cauchy": predcp.LogCauchy(scale=1.3, loc=0.4),
    "half-cauchy": predcp.HalfCauchy(0.8),
    "exponential": predcp.Exponential(mean=0.5),
    "gamma": predcp.Gamma(shape=0.2, scale=2.0),
    "gamma-exponential": predcp.GammaExponential(weight=0.3, shape=0.2, scale=2.0, mean=0.5),
}


def log_pi(name: str, kappa) -> mp.mpf:
    """Log density of kappa under the prior of that name in `PRIORS`."""
    m = mp.mpf
    if name == "log-cauchy":
        scale, loc = m(1.3), m(0.4)
        z = mp.log(kappa) - loc
        return mp.log(scale) - mp.log(mp.pi * kappa) - mp.log(z**2 + scale**2)
    if name == "half-cauchy":
        scale = m(0.8)
        return mp.log(2 / (mp.pi * scale)) - mp.log(1 + (kappa / scale) ** 2)
    if name == "exponential":
        return -kappa / m(0.5) - mp.log(m(0.5))
    gamma = (
        (m(0.2) - 1) * mp.log(kappa) - kappa / m(2) - mp.loggamma(m(0.2)) - m(0.2) * mp.log(m(2))
    )
    if name == "gamma":
        return gamma
    exponential = mp.exp(-kappa / m(0.5)) / m(0.5)
    return mp.log(m(0.3) * mp.exp(gamma) + (1 - m(0.3)) * exponential)


def cdf(name: str, kappa) -> mp.mpf:
    """P(at most kappa) under the prior of that name."""
    m = mp.mpf
    if name == "log-cauchy":
        return mp.mpf(1) / 2 + mp.atan((mp.log(kappa) - m(0.4)) / m(1.3)) / mp.pi
    if name == "half-cauchy":
        return 2 / mp.pi * mp.atan(kappa / m(0.8))
    if name == "exponential":
        return -mp.expm1(-kappa / m(0.5))
    gamma = mp.gammainc(m(0.2), 0, kappa / m(2), regularized=True)
    if name == "gamma":
        return gamma
    return m(0.3) * gamma + (1 - m(0.3)) * -mp.expm1(-kappa / m(0.5))


def log_density(
    name: str, value_and_slope: Callable, tau: float, supremum=None
) -> tuple[mp.mpf, mp.mpf]:
    """Log density of tau and its derivative, from kappa and d kappa / d log tau in high precision."""

    def at(log_tau):
        kappa, slope = value_and_slope(log_tau)
        return log_pi(name, kappa) + mp.log(slope) - log_tau

    mass = mp.mpf(0) if supremum is None else mp.log(cdf(name, supremum))
    log_tau = mp.log(mp.mpf(tau))
    return at(log_tau) - mass, mp.diff(at, log_tau, h=mp.mpf(10) ** -30) / mp.mpf(tau)


def numbers(array) -> list:
    """Nested lists of exact high-precision copies of floating-point numbers."""
    array = np.asarray(array)
    if array.ndim == 0:
        return mp.mpf(float(array))
    return [numbers(row) for row in array]


def gaussian_evidence(ratios, power=1, weight=1) -> Callable:
    """kappa and slope of `weight * sum (v - log(1 + v)) / 2`, `v = ratio tau^power`."""

    def value_and_slope(log_tau):
        volumes = [ratio * mp.exp(power * log_tau) for ratio in ratios]
        kappa = sum(v - mp.log(1 + v) for v in volumes) * weight / 2
        slope = sum(v**2 / (1 + v) for v in volumes) * weight * power / 2
        return kappa, slope

    return value_and_slope


def bernoulli_kl(logits) -> Callable:
    """kappa and slope of the mean KL of coins with logits `a tau` from a fair one."""

    def value_and_slope(log_tau):
        kappa = slope = mp.mpf(0)
        for logit in logits:
            a = abs(logit) * mp.exp(log_tau)
            decay = mp.exp(-a)
            kappa += mp.log(2) - mp.log(1 + decay) - a * decay / (1 + decay)
            slope += a**2 * decay / (1 + decay) ** 2
        return kappa / len(logits), slope / len(logits)

    return value_and_slope


def relative_error(got, expected) -> float:
    """|got / expected - 1|, or |got| where the expected is 0."""
    got, expected = mp.mpf(float(got)), mp.mpf(expected)
    return float(abs(got - expected) / abs(expected)) if expected != 0 else float(abs(got))
