"""Divergences of every family as functions of a linear predictor, from definitions in high precision.

A case of `ORACLES` is the distribution at eta, its parameters there in high precision, and the divergences
between two sets of parameters. Nothing of the library is used for the last two.
"""

from collections.abc import Callable
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import mpmath as mp
import numpyro.distributions as dist
from tests.divergences.make_references import (
    beta_kl,
    gamma_kl,
    negative_binomial_kl,
    normal_kl,
    poisson_kl,
    weibull_kl,
)
from tests.family_cases import CASES, classes, like


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return max(x, mp.mpf(0)) + mp.log1p(mp.exp(-abs(x)))


def decay(x):
    """exp(-x), 0 where its exponent would fill the memory."""
    return mp.exp(-x) if x < 1e15 else mp.mpf(0)


def both_ways(kl, distance=None):
    """KL, reverse KL and, from the Bhattacharyya distance, Hellinger's."""

    def found(p, q):
        known = {"kl": kl(*p, *q), "reverse_kl": kl(*q, *p)}
        if distance is not None:
            known["squared_hellinger"] = 1 - decay(distance(*p, *q))
        return known

    return found


def normal_distance(loc, scale, loc_0, scale_0):
    squares = scale**2 + scale_0**2
    return (loc - loc_0) ** 2 / (4 * squares) + mp.log(squares / (2 * scale * scale_0)) / 2


def laplace_kl(loc, scale, loc_0, scale_0):
    gap = abs(loc - loc_0)
    return mp.log(scale_0 / scale) + scale / scale_0 * decay(gap / scale) + gap / scale_0 - 1


def cauchy_kl(loc, scale, loc_0, scale_0):
    """Of two Cauchy distributions (Chyzak and Nielsen 2019)."""
    return mp.log(((scale + scale_0) ** 2 + (loc - loc_0) ** 2) / (4 * scale * scale_0))


def logistic_kl(loc, scale, loc_0, _):
    far = abs(loc - loc_0) / scale
    return far - 2 + 2 * far * decay(far) / (1 - decay(far))


def poisson_distance(rate, rate_0):
    return (mp.sqrt(rate) - mp.sqrt(rate_0)) ** 2 / 2


def gamma_distance(a, b, c, d):
    mean = (a + c) / 2
    start = (mp.loggamma(a) + mp.loggamma(c)) / 2 - mp.loggamma(mean)
    return start + mean * mp.log((b + d) / 2) - a / 2 * mp.log(b) - c / 2 * mp.log(d)


def exponential_kl(rate, rate_0):
    return gamma_kl(1, rate, 1, rate_0)


def beta_distance(a, b, c, d):
    def log_beta(x, y):
        return mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)

    return (log_beta(a, b) + log_beta(c, d)) / 2 - log_beta((a + c) / 2, (b + d) / 2)


def dirichlet_kl(*both):
    a, c = both[: len(both) // 2], both[len(both) // 2 :]
    total = mp.fsum(a)
    parts = [
        mp.loggamma(y) - mp.loggamma(x) + (x - y) * (mp.digamma(x) - mp.digamma(total))
        for x, y in zip(a, c)
    ]
    return mp.fsum(parts) + mp.loggamma(total) - mp.loggamma(mp.fsum(c))


def negative_binomial_distance(mean, n, mean_0, _):
    a, b = mean / n, mean_0 / n
    return n * mp.log(mp.sqrt((1 + a) * (1 + b)) - mp.sqrt(a * b))


def kl_of(p, q):
    return mp.fsum(a * mp.log(a / b) for a, b in zip(p, q) if a)


def counted(p, q):
    """Of two lists of probabilities."""
    both = [(a + b) / 2 for a, b in zip(p, q)]
    return {
        "kl": kl_of(p, q),
        "reverse_kl": kl_of(q, p),
        "squared_hellinger": mp.fsum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in zip(p, q)) / 2,
        "jensen_shannon": (kl_of(p, both) + kl_of(q, both)) / 2,
    }


def softmax(logits):
    return [1 / mp.fsum(mp.exp(other - own) for other in logits) for own in logits]


def three(eta):
    return [eta, -eta, mp.mpf(0.3)]


def coin(logit):
    return [sigmoid(logit), sigmoid(-logit)]


def ordered(eta):
    cuts = [mp.mpf(each) for each in (-1.0, 0.5, 1.0)]
    inner = [sigmoid(b - eta) * sigmoid(eta - a) * (1 - mp.exp(a - b)) for a, b in pairwise(cuts)]
    return [sigmoid(cuts[0] - eta), *inner, sigmoid(eta - cuts[-1])]


def urn(concentrations, trials):
    """Probabilities of every outcome of a Dirichlet-multinomial."""
    total, found = mp.fsum(concentrations), []
    for counts in product(range(trials + 1), repeat=len(concentrations) - 1):
        if sum(counts) <= trials:
            every = (*counts, trials - sum(counts))
            ways = mp.factorial(trials) / mp.fprod(mp.factorial(y) for y in every)
            drawn = [a + i for a, y in zip(concentrations, every) for i in range(y)]
            left = [total + i for i in range(trials)]
            found.append(ways * mp.fprod(a / b for a, b in zip(drawn, left)))
    return found


def multivariate_kl(p, q):
    (loc, root), (loc_0, root_0) = p, q
    step, gap = root_0**-1 * root, root_0**-1 * (loc - loc_0)
    squares = mp.fsum(each**2 for each in step) + mp.fsum(each**2 for each in gap)
    logs = mp.fsum(mp.log(step[i, i]) for i in range(3))
    return (squares - 3) / 2 - logs


def multivariate(p, q):
    (loc, root), (loc_0, root_0) = p, q
    middle = (root * root.T + root_0 * root_0.T) / 2
    logs = mp.fsum(mp.log(root[i, i] * root_0[i, i]) for i in range(3))
    gap = mp.cholesky(middle) ** -1 * (loc - loc_0)
    distance = mp.fsum(each**2 for each in gap) / 8 + (mp.log(mp.det(middle)) - logs) / 2
    return {
        "kl": multivariate_kl(p, q),
        "reverse_kl": multivariate_kl(q, p),
        "squared_hellinger": 1 - decay(distance),
    }


def rooted(eta, shift=0):
    root = mp.matrix(3, 3)
    for i, row in enumerate([[1.0], [0.5, 0.7], [-0.3, 0.2, 1.5]]):
        for j, each in enumerate(row):
            root[i, j] = mp.mpf(each) + (shift if j == i - 1 else 0)
    return mp.matrix(three(eta)), root


def behind_gate(open_coin, rest):
    """A gate that opens with probability p, and a distribution without zeros behind it."""

    def found(p, q):
        (gate, own), (gate_0, own_0) = p, q
        forth, back = rest(own, own_0), rest(own_0, own)
        coins, backwards = (
            kl_of(open_coin(gate), open_coin(gate_0)),
            kl_of(open_coin(gate_0), open_coin(gate)),
        )
        return {
            "kl": coins + open_coin(gate)[0] * forth,
            "reverse_kl": backwards + open_coin(gate_0)[0] * back,
        }

    return found


def log_odds_of_a_poisson(rate):
    """log(e^rate - 1)"""
    return rate + mp.log(-mp.expm1(-rate)) if rate < 1e15 else rate


def positive_poisson_kl(rate, rate_0):
    mean = rate / (1 - decay(rate)) if rate > 1e-30 else 1 + rate / 2 + rate**2 / 12
    return (
        mean * mp.log(rate / rate_0) - log_odds_of_a_poisson(rate) + log_odds_of_a_poisson(rate_0)
    )


def inflated_poisson(p, q):
    """Of the coin of a count that is not zero, and the rest; chances as (open, shut) pairs."""

    def coins(gate, rate):
        (opened, shut), none = gate, decay(rate)
        return [opened * -mp.expm1(-rate) if rate < 1e15 else opened, shut + opened * none]

    (gate, rate), (gate_0, rate_0) = p, q
    here, there = coins(gate, rate), coins(gate_0, rate_0)
    return {
        "kl": kl_of(here, there) + here[0] * positive_poisson_kl(rate, rate_0),
        "reverse_kl": kl_of(there, here) + there[0] * positive_poisson_kl(rate_0, rate),
    }


def mixed_kl(p, q):
    """The bound: labels, and components matched in order."""
    (weights, parts), (weights_0, parts_0) = p, q
    each = [normal_kl(*one, *other) for one, other in zip(parts, parts_0)]
    back = [normal_kl(*other, *one) for one, other in zip(parts, parts_0)]
    return {
        "kl": kl_of(weights, weights_0) + mp.fsum(w * k for w, k in zip(weights, each)),
        "reverse_kl": kl_of(weights_0, weights) + mp.fsum(w * k for w, k in zip(weights_0, back)),
    }


def inflated_binomial(eta):
    """Probabilities of 0 to 3 ones with log odds eta behind a gate with log odds -eta."""
    one, none = coin(eta)
    some = [none * mp.binomial(3, y) * one**y * none ** (3 - y) for y in (1, 2, 3)]
    return [one + none**4, *some]


NORMAL = both_ways(normal_kl, normal_distance)
GAMMA = both_ways(gamma_kl, gamma_distance)
EXPONENTIAL = both_ways(exponential_kl, lambda a, b: gamma_distance(1, a, 1, b))
POISSON = both_ways(poisson_kl, poisson_distance)
BETA = both_ways(beta_kl, beta_distance)
NEGATIVE_BINOMIAL = both_ways(negative_binomial_kl, negative_binomial_distance)
LAPLACE, CAUCHY, LOGISTIC = map(both_ways, (laplace_kl, cauchy_kl, logistic_kl))

# The distribution at eta, its parameters in high precision, and the divergences between two of those.
ORACLES: dict[str, tuple[Callable, Callable, Callable]] = {
    "normal": (lambda e: dist.Normal(e, like(e, 0.75)), lambda e: (e, mp.mpf(0.75)), NORMAL),
    "normal-scale": (
        lambda e: dist.Normal(like(e, 0.25), jnp.exp(e)),
        lambda e: (mp.mpf(0.25), mp.exp(e)),
        NORMAL,
    ),
    "normal-both": (
        lambda e: dist.LogNormal(e, jax.nn.softplus(e)),
        lambda e: (e, softplus(e)),
        NORMAL,
    ),
    "half-normal": (
        lambda e: dist.HalfNormal(jnp.exp(e)),
        lambda e: (mp.mpf(0), mp.exp(e)),
        NORMAL,
    ),
    "cauchy": (lambda e: dist.Cauchy(e, like(e, 0.75)), lambda e: (e, mp.mpf(0.75)), CAUCHY),
    "cauchy-both": (lambda e: dist.Cauchy(e, jnp.exp(e)), lambda e: (e, mp.exp(e)), CAUCHY),
    "half-cauchy": (
        lambda e: dist.HalfCauchy(jnp.exp(e)),
        lambda e: (mp.mpf(0), mp.exp(e)),
        CAUCHY,
    ),
    "laplace": (lambda e: dist.Laplace(e, like(e, 0.75)), lambda e: (e, mp.mpf(0.75)), LAPLACE),
    "laplace-both": (lambda e: dist.Laplace(e, jnp.exp(e)), lambda e: (e, mp.exp(e)), LAPLACE),
    "logistic": (lambda e: dist.Logistic(e, like(e, 1.0)), lambda e: (e, mp.mpf(1)), LOGISTIC),
    "poisson": (lambda e: dist.Poisson(jnp.exp(e)), lambda e: (mp.exp(e),), POISSON),
    "poisson-softplus": (
        lambda e: dist.Poisson(jax.nn.softplus(e)),
        lambda e: (softplus(e),),
        POISSON,
    ),
    "bernoulli": (
        lambda e: dist.Bernoulli(logits=e + 0.25),
        lambda e: coin(e + 0.25),
        counted,
    ),
    "categorical": (
        lambda e: dist.Categorical(logits=classes(e)),
        lambda e: softmax(three(e)),
        counted,
    ),
    "ordered": (
        lambda e: dist.OrderedLogistic(e, jnp.asarray([-1.0, 0.5, 1.0], e.dtype)),
        ordered,
        counted,
    ),
    "beta-binomial": (
        lambda e: dist.BetaBinomial(jnp.exp(e), like(e, 2.0), 5),
        lambda e: urn([mp.exp(e), mp.mpf(2)], 5),
        counted,
    ),
    "dirichlet-multinomial": (
        lambda e: dist.DirichletMultinomial(jnp.exp(classes(e)), 3),
        lambda e: urn([mp.exp(each) for each in three(e)], 3),
        lambda p, q: {"kl": kl_of(p, q), "reverse_kl": kl_of(q, p)},
    ),
    "negative-binomial": (
        lambda e: dist.NegativeBinomial2(jnp.exp(e), like(e, 1.5)),
        lambda e: (mp.exp(e), mp.mpf(1.5)),
        NEGATIVE_BINOMIAL,
    ),
    "geometric": (
        lambda e: dist.Geometric(logits=e),
        lambda e: (mp.exp(-e), mp.mpf(1)),
        NEGATIVE_BINOMIAL,
    ),
    "gamma-rate": (
        lambda e: dist.Gamma(like(e, 0.5), jnp.exp(e)),
        lambda e: (mp.mpf(0.5), mp.exp(e)),
        GAMMA,
    ),
    "gamma-concentration": (
        lambda e: dist.Gamma(jnp.exp(e), like(e, 1.5)),
        lambda e: (mp.exp(e), mp.mpf(1.5)),
        GAMMA,
    ),
    "gamma-both": (
        lambda e: dist.Gamma(jnp.exp(e), jax.nn.softplus(e)),
        lambda e: (mp.exp(e), softplus(e)),
        GAMMA,
    ),
    "inverse-gamma": (
        lambda e: dist.InverseGamma(like(e, 3.0), jnp.exp(e)),
        lambda e: (mp.mpf(3), mp.exp(e)),
        GAMMA,
    ),
    "exponential": (
        lambda e: dist.Exponential(jnp.exp(e)),
        lambda e: (mp.exp(e),),
        EXPONENTIAL,
    ),
    "pareto": (
        lambda e: dist.Pareto(like(e, 1.5), jnp.exp(e)),
        lambda e: (mp.exp(e),),
        EXPONENTIAL,
    ),
    "gumbel": (
        lambda e: dist.Gumbel(e, like(e, 0.5)),
        lambda e: (mp.exp(2 * e),),
        EXPONENTIAL,
    ),
    "kumaraswamy": (
        lambda e: dist.Kumaraswamy(like(e, 1.5), jnp.exp(e)),
        lambda e: (mp.exp(e),),
        EXPONENTIAL,
    ),
    "levy": (
        lambda e: dist.Levy(like(e, 0.0), jnp.exp(e)),
        lambda e: (mp.mpf(0.5), mp.exp(e)),
        GAMMA,
    ),
    "weibull-scale": (
        lambda e: dist.Weibull(jnp.exp(e), like(e, 1.75)),
        lambda e: (mp.exp(e), mp.mpf(1.75)),
        both_ways(weibull_kl),
    ),
    "weibull-shape": (
        lambda e: dist.Weibull(like(e, 1.25), 0.5 + jax.nn.softplus(e)),
        lambda e: (mp.mpf(1.25), mp.mpf(0.5) + softplus(e)),
        lambda p, q: {"kl": weibull_kl(*p, *q)},
    ),
    "beta": (
        lambda e: dist.Beta(jnp.exp(e), like(e, 2.0)),
        lambda e: (mp.exp(e), mp.mpf(2)),
        BETA,
    ),
    "beta-mean": (
        lambda e: dist.BetaProportion(jax.nn.sigmoid(e), like(e, 5.0)),
        lambda e: (5 * sigmoid(e), 5 * sigmoid(-e)),
        BETA,
    ),
    "dirichlet": (
        lambda e: dist.Dirichlet(jnp.exp(classes(e))),
        lambda e: [mp.exp(each) for each in three(e)],
        both_ways(dirichlet_kl),
    ),
    "multivariate-normal": (
        CASES[dist.MultivariateNormal]["cholesky"],
        rooted,
        multivariate,
    ),
    "multivariate-normal-low-rank": (
        lambda e: dist.LowRankMultivariateNormal(
            classes(e), jnp.zeros((3, 1), e.dtype), jnp.asarray([0.25, 1.0, 4.0], e.dtype)
        ),
        lambda e: (mp.matrix(three(e)), mp.diag([mp.mpf(0.5), 1, 2])),
        multivariate,
    ),
    "multivariate-normal-covariance": (
        CASES[dist.MultivariateNormal]["covariance"],
        lambda e: rooted(e, e),
        multivariate,
    ),
    "mixture": (
        lambda e: dist.MixtureSameFamily(
            dist.Categorical(logits=classes(e)), dist.Normal(classes(0.5 * e), 0.75)
        ),
        lambda e: (softmax(three(e)), [(each, mp.mpf(0.75)) for each in three(0.5 * e)]),
        mixed_kl,
    ),
}
if hasattr(dist, "HurdlePoisson"):
    ORACLES |= {
        "hurdle-poisson": (
            lambda e: dist.HurdleDistribution(dist.Poisson(jnp.exp(e)), gate_logits=e),
            lambda e: (-e, (mp.exp(e),)),
            behind_gate(coin, lambda p, q: positive_poisson_kl(*p, *q)),
        ),
        "hurdle-gamma": (
            lambda e: dist.HurdleDistribution(dist.Gamma(like(e, 2.0), jnp.exp(e)), gate_logits=e),
            lambda e: (-e, (mp.mpf(2), mp.exp(e))),
            behind_gate(coin, lambda p, q: gamma_kl(*p, *q)),
        ),
        "hurdle-log-normal": (
            lambda e: dist.HurdleLogNormal(jax.nn.sigmoid(e), e, like(e, 0.75)),
            lambda e: (-e, (e, mp.mpf(0.75))),
            behind_gate(coin, lambda p, q: normal_kl(*p, *q)),
        ),
        "zero-inflated-poisson": (
            lambda e: dist.ZeroInflatedDistribution(dist.Poisson(jnp.exp(e)), gate_logits=e),
            lambda e: (coin(-e), mp.exp(e)),
            inflated_poisson,
        ),
        "zero-inflated-binomial": (
            lambda e: dist.ZeroInflatedDistribution(dist.Binomial(3, logits=e), gate_logits=e),
            inflated_binomial,
            counted,
        ),
    }
