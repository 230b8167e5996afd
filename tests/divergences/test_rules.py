"""Rules at random references, directions and sizes, against 60 digits: values and slopes."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from predcp._numerics.special import log_abs_sum_and_ratio

COUNT = 12


def hellinger(distance):
    return -mp.expm1(-distance)


def normal(p, q):
    s, t = mp.exp(2 * p["log_scale"]), mp.exp(2 * q["log_scale"])
    gap = (p["loc"] - q["loc"]) ** 2
    kl = (gap / t + s / t - 1 - mp.log(s / t)) / 2
    distance = gap / (4 * (s + t)) + mp.log((s + t) / (2 * mp.sqrt(s * t))) / 2
    return {"kl": kl, "squared_hellinger": hellinger(distance)}


def laplace(p, q):
    a, b = mp.exp(p["log_scale"]), mp.exp(q["log_scale"])
    gap = abs(p["loc"] - q["loc"])
    kl = mp.log(b / a) + a / b * mp.exp(-gap / a) + gap / b - 1
    x, y = 1 / (2 * a), 1 / (2 * b)
    inner = (mp.exp(-gap * y) - mp.exp(-gap * x)) / (x - y) if x != y else gap * mp.exp(-gap * x)
    overlap = ((mp.exp(-gap * y) + mp.exp(-gap * x)) / (x + y) + inner) / (2 * mp.sqrt(a * b))
    return {"kl": kl, "squared_hellinger": 1 - overlap}


def poisson(p, q):
    gap = mp.exp(p["log_rate"] / 2) - mp.exp(q["log_rate"] / 2)
    return {"squared_hellinger": hellinger(gap**2 / 2)}


def negative_binomial(p, q):
    ones = [1 / (1 + mp.exp(-each["logits"])) for each in (p, q)]
    zeros = mp.log((1 - ones[0]) * (1 - ones[1])) / 2 - mp.log(1 - mp.sqrt(ones[0] * ones[1]))
    return {"squared_hellinger": hellinger(-mp.exp(p["log_concentration"]) * zeros)}


def gamma(p, q):
    a, b, c, d = (mp.exp(x[k]) for x in (p, q) for k in ("log_concentration", "log_rate"))
    mean = (a + c) / 2
    distance = (mp.loggamma(a) + mp.loggamma(c)) / 2 - mp.loggamma(mean)
    distance += mean * mp.log((b + d) / 2) - a / 2 * mp.log(b) - c / 2 * mp.log(d)
    return {"squared_hellinger": hellinger(distance)}


def dirichlet(p, q):
    def log_beta(a):
        return mp.fsum(mp.loggamma(x) for x in a) - mp.loggamma(mp.fsum(a))

    a, c = ([mp.exp(x) for x in each["log_concentration"]] for each in (p, q))
    middle = log_beta([(x + y) / 2 for x, y in zip(a, c)])
    return {"squared_hellinger": hellinger((log_beta(a) + log_beta(c)) / 2 - middle)}


def weibull(p, q):
    k, moved = mp.exp(q["log_concentration"]), p["log_scale"] - q["log_scale"]
    kl = mp.expm1(k * moved) - k * moved
    return {"kl": kl, "squared_hellinger": 1 - 1 / mp.cosh(k * moved / 2)}


def gated_poisson(p, q, zeros):
    """A Poisson count behind a hurdle, or zero-inflated."""
    r, s = mp.exp(p["log_rate"]), mp.exp(q["log_rate"])
    gate = "open_logits" if zeros else "nonzero_logits"
    a, b = (1 / (1 + mp.exp(-each[gate])) for each in (p, q))
    if zeros:
        a, b = -a * mp.expm1(-r), -b * mp.expm1(-s)

    def kl(a, b, r, s):
        rest = -r / mp.expm1(-r) * mp.log(r / s) - mp.log(mp.expm1(r)) + mp.log(mp.expm1(s))
        return a * mp.log(a / b) + (1 - a) * mp.log((1 - a) / (1 - b)) + a * rest

    overlap = mp.expm1(mp.sqrt(r * s)) / mp.sqrt(mp.expm1(r) * mp.expm1(s))
    whole = mp.sqrt((1 - a) * (1 - b)) + mp.sqrt(a * b) * overlap
    return {"kl": kl(a, b, r, s), "reverse_kl": kl(b, a, s, r), "squared_hellinger": 1 - whole}


# The family, the oracle, ranges of the reference's coordinates (with a number of classes), those that move.
CASES = {
    "normal": (dist.Normal, normal, {"loc": (-5, 5), "log_scale": (-8, 8)}, ()),
    "laplace": (dist.Laplace, laplace, {"loc": (-5, 5), "log_scale": (-8, 8)}, ()),
    "laplace-loc": (dist.Laplace, laplace, {"loc": (-5, 5), "log_scale": (-8, 8)}, ("log_scale",)),
    "poisson": (dist.Poisson, poisson, {"log_rate": (-12, 12)}, ()),
    "negative-binomial": (
        dist.GammaPoisson, negative_binomial,
        {"logits": (-12, 8), "log_concentration": (-6, 8)}, ("log_concentration",),
    ),
    "gamma": (dist.Gamma, gamma, {"log_concentration": (-8, 10), "log_rate": (-8, 8)}, ()),
    "dirichlet": (dist.Dirichlet, dirichlet, {"log_concentration": (-7, 9, 3)}, ()),
    "weibull": (
        dist.Weibull, weibull, {"log_scale": (-4, 4), "log_concentration": (-2, 5)},
        ("log_concentration",),
    ),
}  # fmt: skip
if hasattr(dist, "HurdlePoisson"):
    from predcp._divergences._hurdle import hurdle, zero_inflated

    CASES |= {
        "hurdle": (
            hurdle(dist.Poisson), lambda p, q: gated_poisson(p, q, zeros=False),
            {"nonzero_logits": (-8, 8), "log_rate": (-10, 12)}, (),
        ),
        "zero-inflated": (
            zero_inflated(dist.Poisson), lambda p, q: gated_poisson(p, q, zeros=True),
            {"open_logits": (-8, 8), "log_rate": (-10, 12)}, (),
        ),
    }  # fmt: skip


def exact(array):
    return mp.mpf(float(array)) if np.ndim(array) == 0 else [exact(each) for each in array]


def moved(start, move, size):
    if isinstance(start, list):
        return [a + size * b for a, b in zip(start, move)]
    return start + size * move


QUICK = ("laplace-loc", "weibull")


@pytest.mark.parametrize(
    "name",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in CASES],
)
def test_rules_at_random_places_match_sixty_digits(name):
    family, oracle, ranges, fixed = CASES[name]
    random = np.random.default_rng(5)
    reference, direction = {}, {}
    for key, (low, high, *classes) in ranges.items():
        shape = (COUNT, *classes)
        reference[key] = random.uniform(low, high, shape)
        direction[key] = random.normal(size=shape) * (key not in fixed)
    log_size = np.log(10.0) * random.uniform(-9.0, 1.0, COUNT)
    known = [
        each
        for each in (predcp.kl, predcp.reverse_kl, predcp.squared_hellinger)
        if each.knows(family)
    ]

    @jax.jit
    def program(reference, direction, log_size):
        def both(divergence):
            rule = divergence.rule(family)
            value = rule.value(reference, direction, log_size)
            slope = rule.slope(reference, direction, log_size, direction)
            return log_abs_sum_and_ratio(value, slope, keep=1)

        return {each.name: both(each) for each in known}

    got = program(*jax.tree.map(jnp.asarray, (reference, direction, log_size)))
    step = mp.mpf(10) ** -15
    with mp.workdps(60):
        for place in range(COUNT):
            start = {key: exact(array[place]) for key, array in reference.items()}
            move = {key: exact(array[place]) for key, array in direction.items()}
            size = mp.exp(mp.mpf(float(log_size[place])))
            here, above, below = (
                oracle({key: moved(start[key], move[key], size * f) for key in start}, start)
                for f in (1, 1 + step, 1 - step)
            )
            for divergence, value in here.items():
                found, ratio = (mp.exp(mp.mpf(float(each[place]))) for each in got[divergence])
                assert abs(found / value - 1) < 1e-10, (divergence, place)
                slope = (above[divergence] - below[divergence]) / (2 * step)
                # Saturated: the slope is below what 60 digits resolve.
                if slope > value * mp.mpf(10) ** -25:
                    assert abs(found * ratio / slope - 1) < 1e-10, (divergence, place)


def _classes(predictor, cutpoints):
    """Probabilities of ordered classes, by their definition."""
    above = 1.0 / (1.0 + np.exp(cutpoints - predictor))
    ends = [(0, 0)] * (above.ndim - 1)
    return np.pad(above, [*ends, (1, 0)], constant_values=1.0) - np.pad(above, [*ends, (0, 1)])


@pytest.mark.parametrize("divergence", [predcp.kl, predcp.jensen_shannon])
@pytest.mark.parametrize("stay", ["known to stay", "velocity unknown", "stay", "move"])
def test_ordered_classes_whether_their_cutpoints_move_or_stay(stay, divergence):
    random = np.random.default_rng(3)
    start = {"predictor": random.normal(size=(5, 1)), "cutpoints": np.array([-1.0, 0.2, 1.0])}
    move = {"predictor": random.normal(size=(5, 1)), "cutpoints": np.zeros((1, 1))}
    if stay in ("stay", "move"):
        move["cutpoints"] = 0.1 * random.normal(size=(5, 3)) * (stay == "move")
    rule = divergence.rule(dist.OrderedLogistic)

    @jax.jit
    def run(unknown, log_size):
        # Values are known while the program is traced only outside of its arguments.
        direction = unknown if stay in ("stay", "move") else move
        value = rule.value(start, direction, log_size)
        velocity = move if stay == "known to stay" else unknown
        return log_abs_sum_and_ratio(
            value, rule.slope(start, direction, log_size, velocity), keep=1
        )

    for size in (0.1, 1.0, 4.0):
        at = jnp.full(5, np.log(size))
        (log_value, log_elasticity), (slope, _) = jax.jvp(
            lambda log_size: run(move, log_size), (at,), (jnp.ones(5),)
        )
        there = {key: start[key] + size * move[key] for key in start}
        p, q = _classes(**there), _classes(**start)
        exact = np.sum(p * np.log(p / q), -1)
        if divergence is predcp.jensen_shannon:
            middle = (p + q) / 2.0
            exact = 0.5 * np.sum(p * np.log(p / middle) + q * np.log(q / middle), -1)
        np.testing.assert_allclose(np.exp(log_value), exact, rtol=1e-10)
        np.testing.assert_allclose(np.exp(log_elasticity), slope, rtol=1e-11)
