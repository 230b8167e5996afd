"""The priors: exact probabilities of the cells of the scales."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, gammainc, gammaincc, log_ndtr
from jaxtyping import Array

FIXED = ("half-cauchy", "half-normal", "half-t", "exponential", "inverse-gamma", "pc")
OTHERS = (*FIXED, "r2d2")
OURS = ("predcp-gamma", "predcp-log-cauchy", "ecp-gamma", "ecp-log-cauchy")
PER = ("predcp-gamma-per", "predcp-log-cauchy-per")


class Distribution(NamedTuple):
    """Log distribution function and log survival function."""

    log_cdf: Callable[[Array], Array]
    log_survival: Callable[[Array], Array]


def log_mass(made: Distribution, low: Array, high: Array) -> Array:
    """Log probability between two points, accurate in both tails."""
    cdf_low, cdf_high = made.log_cdf(low), made.log_cdf(high)
    above_low, above_high = made.log_survival(low), made.log_survival(high)
    upper = above_low + _log_one_less(above_high - above_low)
    lower = cdf_high + _log_one_less(cdf_low - cdf_high)
    found = jnp.where(cdf_low > np.log(0.5), upper, lower)
    # Without mass: minus infinity less itself.
    return jnp.where(jnp.isnan(found), -jnp.inf, found)


def _log_one_less(log_ratio: Array) -> Array:
    return jnp.log(-jnp.expm1(jnp.minimum(log_ratio, 0.0)))


def half_cauchy(scale: Any) -> Distribution:
    """Of tau."""
    return Distribution(
        lambda x: jnp.log(jnp.arctan2(x, scale) * 2.0 / np.pi),
        lambda x: jnp.log(jnp.arctan(scale / x) * 2.0 / np.pi),
    )


def half_normal(scale: Any) -> Distribution:
    """Of tau."""
    return Distribution(
        lambda x: jnp.log(erf(x / (scale * np.sqrt(2.0)))),
        lambda x: np.log(2.0) + log_ndtr(-x / scale),
    )


def half_t3(scale: Any) -> Distribution:
    """Student's t with three degrees of freedom, folded at 0."""

    def parts(x: Array) -> tuple[Array, Array]:
        z = jnp.minimum(x / (scale * np.sqrt(3.0)), 1e100)
        return z, z / (1.0 + z**2)

    def below(x: Array) -> Array:
        z, ratio = parts(x)
        return jnp.log((jnp.arctan(z) + ratio) * 2.0 / np.pi)

    def above(x: Array) -> Array:
        z, ratio = parts(x)
        # Far out the two terms cancel: the first term of the series there is left.
        far = (2.0 / 3.0) * jnp.maximum(z, 1.0) ** -3
        return jnp.log(jnp.where(z > 1e3, far, jnp.arctan(1.0 / z) - ratio) * 2.0 / np.pi)

    return Distribution(below, above)


def exponential(mean: Any) -> Distribution:
    """Of tau."""
    return Distribution(lambda x: jnp.log(-jnp.expm1(-x / mean)), lambda x: -x / mean)


def inverse_gamma(shape: float, scale: float) -> Distribution:
    """Of tau squared, as a distribution of tau."""
    return Distribution(
        lambda x: jnp.log(gammaincc(shape, scale / x**2)),
        lambda x: jnp.log(gammainc(shape, scale / x**2)),
    )


def spread_of(family: str, y: Array) -> dict[str, Array]:
    """What scaled defaults take from the outcomes: sd(y), and the scale of brms."""
    if family == "binomial":
        return {"sd": jnp.ones(()), "brms": jnp.asarray(2.5)}
    values = jnp.log(jnp.maximum(y, 0.1)) if family == "poisson" else y
    mad = 1.4826 * jnp.median(jnp.abs(values - jnp.median(values)))
    sd = jnp.std(y, ddof=1) if family == "normal" else jnp.ones(())
    return {"sd": sd, "brms": jnp.maximum(2.5, jnp.round(mad, 1))}


def fixed(name: str, sd: Any, brms: Any) -> Distribution:
    """A default of the field as a distribution of tau; `sd` is 1 with a log or logit link."""
    return {
        "half-cauchy": lambda: half_cauchy(5.0),
        "half-normal": lambda: half_normal(2.5 * sd),
        "half-t": lambda: half_t3(brms),
        "exponential": lambda: exponential(sd),
        "inverse-gamma": lambda: inverse_gamma(1e-3, 1e-3),
        "pc": lambda: exponential(sd / -np.log(0.01)),
    }[name]()


class Pi(NamedTuple):
    """A prior on a divergence: "gamma" of shape 1/2 (`place` is the log of its scale) or "log-cauchy"."""

    family: str
    place: Any

    def distribution(self) -> Distribution:
        """Of log kappa."""
        if self.family == "gamma":
            return Distribution(
                lambda k: jnp.log(erf(jnp.exp(0.5 * (k - self.place)))),
                lambda k: (
                    np.log(2.0) + log_ndtr(-jnp.exp(0.5 * (k - self.place) + 0.5 * np.log(2.0)))
                ),
            )
        return Distribution(
            lambda k: jnp.log(jnp.arctan2(1.0, self.place - k) / np.pi),
            lambda k: jnp.log(jnp.arctan2(1.0, k - self.place) / np.pi),
        )


def truncated(pi: Pi, log_supremum: Array) -> Distribution:
    """pi cut off at the supremum of the divergence, infinite where there is none."""
    whole = pi.distribution()
    bounded = jnp.isfinite(log_supremum)
    at_end = jnp.where(bounded, whole.log_cdf(jnp.where(bounded, log_supremum, 0.0)), 0.0)

    def above(k: Array) -> Array:
        left = _log_one_less(whole.log_cdf(k) - at_end)
        return jnp.where(bounded, left, whole.log_survival(k))

    return Distribution(lambda k: jnp.minimum(whole.log_cdf(k) - at_end, 0.0), above)


def log_mass_of_kappa(pi: Pi, low: Array, high: Array, log_supremum: Array) -> Array:
    """Log probability of a cell between two log divergences; ends are -inf and inf."""
    top = jnp.where(jnp.isinf(high), log_supremum, jnp.minimum(high, log_supremum))
    made = truncated(pi, log_supremum)
    return log_mass(made, jnp.minimum(low, log_supremum), top)


def log_share_mass(lows: list[Array], highs: list[Array]) -> Array:
    """Log probability of a cell under R2-D2: R^2 uniform, shares uniform.

    **Arguments**: explained variances over that of the noise at the edges, one array per scale.
    """
    if len(lows) == 1:
        made = Distribution(
            lambda s: -jnp.log1p(1.0 / s),
            lambda s: -jnp.log1p(s),
        )
        return log_mass(made, lows[0], highs[0])

    def double(w: Array) -> Array:
        """Second antiderivative of the density of the total over its range of shares."""
        inside = jnp.where((w > 0.0) & jnp.isfinite(w), w, 1.0)
        value = -inside * jnp.log1p(1.0 / inside)
        return jnp.where(w == 0.0, 0.0, jnp.where(jnp.isinf(w), -1.0, value))

    (a1, b1), (a2, b2) = lows, highs
    mass = double(a2 + b2) - double(a1 + b2) - double(a2 + b1) + double(a1 + b1)
    return jnp.log(jnp.maximum(mass, 1e-30))
