"""Log densities and their gradients against fifty digits, tau from 1e-20 to 1e20, every pi."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import numpyro.distributions as dist
import pytest
from tests.oracle import (
    PRIORS,
    bernoulli_kl,
    gaussian_evidence,
    log_density,
    numbers,
    relative_error,
)

import predcp

RANDOM = np.random.default_rng(11)
DESIGN = RANDOM.normal(size=(5, 2))
NOISE = RANDOM.normal(size=(3, 2))
SCALES = np.array([0.4, 2.5])
TAU = np.concatenate([np.logspace(-20, 20, 9), [1e-3, 0.3, 3.0, 30.0]])
SINGLE_TAU = np.logspace(-12, 12, 7).astype(np.float32)


def slope_error(got, expected, tau) -> float:
    """Error of d log p / d log tau, relative to its size or to 1: where p is flat it is a zero."""
    got, expected = mp.mpf(float(got)) * mp.mpf(float(tau)), expected * mp.mpf(float(tau))
    return float(abs(got - expected) / max(mp.mpf(1), abs(expected)))


def linear_ratios(design, noise_scale):
    gram = mp.matrix(numbers(design)).T * mp.matrix(numbers(design))
    return [value / mp.mpf(noise_scale) ** 2 for value in mp.eigsy(gram, eigvals_only=True)]


def coin_logits(design, draws, scales):
    rows, noise, local = numbers(design), numbers(draws), numbers(scales)
    return [sum(x * lam * e for x, lam, e in zip(row, local, xi)) for xi in noise for row in rows]


def coin_map(dtype=jnp.float64, **options):
    design, draws, local = (jnp.asarray(a, dtype) for a in (DESIGN, NOISE, SCALES))
    return predcp.PredictiveComplexity(
        lambda beta, x: dist.Bernoulli(logits=x @ beta),
        lambda tau, xi: tau * local * xi,
        jnp.zeros(2, dtype),
        design,
        draws,
        **options,
    )


def normal_map(dtype=jnp.float64, **options):
    design, draws, local = (jnp.asarray(a, dtype) for a in (DESIGN, NOISE, SCALES))
    return predcp.PredictiveComplexity(
        lambda beta, x: dist.Normal(x @ beta, jnp.asarray(0.5, dtype)),
        lambda tau, xi: jnp.sqrt(tau) * local * xi,
        jnp.zeros(2, dtype),
        design,
        draws,
        **options,
    )


def exact_normal(dtype):
    moves = coin_logits(*(np.asarray(a, dtype) for a in (DESIGN, NOISE, SCALES)))
    constant = sum(z**2 for z in moves) / len(moves) / 2 / mp.mpf(0.5) ** 2
    return lambda u: (constant * mp.exp(u), constant * mp.exp(u))


CASES = {
    "linear": (
        lambda dtype: predcp.LinearEvidence(jnp.asarray(DESIGN, dtype), jnp.asarray(0.75, dtype)),
        lambda dtype: gaussian_evidence(linear_ratios(np.asarray(DESIGN, dtype), 0.75)),
        None,
    ),
    "logistic": (
        lambda dtype: predcp.LogisticEvidence(
            jnp.asarray(DESIGN, dtype), jnp.asarray(SCALES, dtype)
        ),
        lambda dtype: gaussian_evidence(
            [
                mp.pi
                / 8
                * sum((x * lam) ** 2 for x, lam in zip(row, numbers(SCALES.astype(dtype))))
                for row in numbers(DESIGN.astype(dtype))
            ],
            power=2,
            weight=mp.mpf(1) / len(DESIGN),
        ),
        None,
    ),
    "coin": (
        coin_map,
        lambda dtype: bernoulli_kl(
            coin_logits(*(a.astype(dtype) for a in (DESIGN, NOISE, SCALES)))
        ),
        mp.log(2),
    ),
    "coin-general": (
        lambda dtype: coin_map(dtype, homogeneous=False),
        lambda dtype: bernoulli_kl(
            coin_logits(*(a.astype(dtype) for a in (DESIGN, NOISE, SCALES)))
        ),
        mp.log(2),
    ),
    "normal": (normal_map, exact_normal, None),
    "normal-general": (lambda dtype: normal_map(dtype, homogeneous=False), exact_normal, None),
}


# The general path is the same code with the forward passes left in: long.
NAMES = [
    pytest.param(name, marks=pytest.mark.long) if name.endswith("general") else name
    for name in CASES
]


def densities(complexity, tau):
    """Log densities of every pi, and their derivatives: one program, which shares the map."""
    kind = jnp.result_type(tau)
    priors = {
        name: predcp.ComplexityPrior(
            jax.tree.map(lambda leaf: jnp.asarray(leaf, kind), pi), complexity
        )
        for name, pi in PRIORS.items()
    }
    return jax.jit(
        jax.vmap(
            lambda t: {n: jax.value_and_grad(prior.log_prob)(t) for n, prior in priors.items()}
        )
    )(tau)


@pytest.mark.parametrize("case", NAMES)
def test_double_precision_is_exact_to_ten_digits(case):
    make, reference, supremum = CASES[case]
    for name, (values, slopes) in densities(make(jnp.float64), jnp.asarray(TAU)).items():
        for tau, value, slope in zip(TAU, values, slopes):
            density, derivative = log_density(name, reference(np.float64), tau, supremum)
            assert relative_error(value, density) < 1e-10, (name, tau)
            assert slope_error(slope, derivative, tau) < 1e-10, (name, tau)


@pytest.mark.parametrize("case", NAMES)
def test_single_precision_is_exact_to_four_digits(case):
    make, reference, supremum = CASES[case]
    for name, (values, slopes) in densities(make(jnp.float32), jnp.asarray(SINGLE_TAU)).items():
        assert values.dtype == slopes.dtype == jnp.float32
        for tau, value, slope in zip(SINGLE_TAU, values, slopes):
            density, derivative = log_density(name, reference(np.float32), float(tau), supremum)
            # A density near 1 has a log near 0: its error is measured against 1.
            assert abs(value - float(density)) < 1e-4 * max(1.0, abs(float(density))), (name, tau)
            assert slope_error(slope, derivative, tau) < 1e-4, (name, tau)


def test_saturated_coin_is_right_where_the_log_density_is_minus_ten_million():
    complexity = coin_map()
    reference = bernoulli_kl(coin_logits(DESIGN, NOISE, SCALES))
    prior = predcp.ComplexityPrior(PRIORS["log-cauchy"], complexity)
    smallest = min(abs(z) for z in coin_logits(DESIGN, NOISE, SCALES))
    tau = float(mp.mpf(10) ** 7 / smallest)
    density, _ = log_density("log-cauchy", reference, tau, mp.log(2))
    value = prior.log_prob(tau)
    assert -1.1e7 < value < -0.9e7
    assert relative_error(value, density) < 1e-10


def excess(d):
    return mp.expm1(d) - d


def count_oracle(logits, reverse):
    """Mean KL between Poissons with log rates 0.1 + d and 0.1, or the other way round."""

    def value_and_slope(log_tau):
        rate = mp.exp(mp.mpf(0.1))
        moves = [z * mp.exp(log_tau) for z in logits]
        kappa = [excess(d) if reverse else d * mp.exp(d) - mp.expm1(d) for d in moves]
        slope = [d * mp.expm1(d) if reverse else d**2 * mp.exp(d) for d in moves]
        return rate * sum(kappa) / len(moves), rate * sum(slope) / len(moves)

    return value_and_slope


def spread_oracle(logits, reverse):
    """Mean KL between normals with location and log scale d and 0, or the other way round."""
    sign = -1 if reverse else 1

    def value_and_slope(log_tau):
        moves = [z * mp.exp(log_tau) for z in logits]
        weights = [mp.exp(-2 * d) if reverse else mp.mpf(1) for d in moves]
        kappa = [w * d**2 / 2 + excess(sign * 2 * d) / 2 for w, d in zip(weights, moves)]
        slope = [
            w * d**2 * (1 - (d if reverse else 0)) + sign * d * mp.expm1(sign * 2 * d)
            for w, d in zip(weights, moves)
        ]
        return sum(kappa) / len(moves), sum(slope) / len(moves)

    return value_and_slope


@pytest.mark.parametrize("homogeneous", [None, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("divergence", [predcp.kl, predcp.reverse_kl], ids=["kl", "reverse"])
@pytest.mark.parametrize("family", ["counts", "spread"])
def test_rates_and_scales_far_outside_floating_point(family, divergence, homogeneous):
    def likelihood(beta, x):
        if family == "counts":
            return dist.Poisson(jnp.exp(0.1 + x @ beta))
        return dist.Normal(x @ beta, jnp.exp(x @ beta))

    complexity = predcp.PredictiveComplexity(
        likelihood,
        lambda tau, xi: tau * jnp.asarray(SCALES) * xi,
        jnp.zeros(2),
        jnp.asarray(DESIGN),
        jnp.asarray(NOISE),
        divergence=divergence,
        homogeneous=homogeneous,
    )
    oracle = count_oracle if family == "counts" else spread_oracle
    exact = oracle(coin_logits(DESIGN, NOISE, SCALES), divergence is predcp.reverse_kl)
    prior = predcp.ComplexityPrior(PRIORS["log-cauchy"], complexity)
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(prior.log_prob)))(jnp.asarray(TAU))
    for tau, value, slope in zip(TAU, values, slopes):
        density, derivative = log_density("log-cauchy", exact, tau)
        assert relative_error(value, density) < 1e-10, tau
        if tau < 1e3:
            assert slope_error(slope, derivative, tau) < 1e-10, tau
        else:
            # It is a difference of terms of size d log kappa / d log tau, as large as tau here.
            assert np.isfinite(slope)


def softmax_oracle(start, moves, power):
    """kappa and slope of the mean KL between softmaxes with logits `start + tau^power * move`."""

    def value_and_slope(log_tau):
        kappa = slope = mp.mpf(0)
        for base, move in moves:
            shift = [mp.exp(power * log_tau) * d for d in move]
            p = [mp.exp(a + d) for a, d in zip(base, shift)]
            q = [mp.exp(a) for a in base]
            p, q = [a / sum(p) for a in p], [a / sum(q) for a in q]
            kappa += sum(a * (mp.log(a) - mp.log(b)) for a, b in zip(p, q))
            mean = sum(a * d for a, d in zip(p, shift))
            slope += power * sum(a * (d - mean) * d for a, d in zip(p, shift))
        return kappa / len(moves), slope / len(moves)

    del start
    return value_and_slope


@pytest.mark.parametrize(
    "power,dtype,tolerance",
    [
        (0.5, "float64", 1e-6),
        (1.0, "float32", 5e-3),
        pytest.param(1.0, "float64", 1e-6, marks=pytest.mark.long),
        pytest.param(0.5, "float32", 5e-3, marks=pytest.mark.long),
    ],
)
def test_black_box_around_a_reference_that_is_not_zero(dtype, tolerance, power):
    phi = RANDOM.normal(size=(2, 3)).astype(dtype)
    noise = np.random.default_rng(2).normal(size=(2, 2, 3)).astype(dtype)
    design = DESIGN.astype(dtype)
    complexity = predcp.PredictiveComplexity(
        lambda theta, x: dist.Categorical(logits=x @ theta),
        lambda tau, xi: jnp.asarray(phi) + tau**power * xi,
        jnp.asarray(phi),
        jnp.asarray(design),
        jnp.asarray(noise),
        homogeneous=False,
    )
    with mp.workdps(140):
        rows, centre = numbers(design), numbers(phi)
        product = lambda row, matrix: [  # noqa: E731
            sum(x * line[k] for x, line in zip(row, matrix)) for k in range(3)
        ]
        moves = [
            (product(row, centre), product(row, draw)) for draw in numbers(noise) for row in rows
        ]
        oracle = softmax_oracle(None, moves, mp.mpf(power))
        prior = predcp.ComplexityPrior(
            predcp.HalfCauchy(jnp.asarray(0.8, dtype)), complexity, False
        )
        program = jax.jit(jax.value_and_grad(prior.log_prob))
        taus = np.logspace(-14, 6, 6) if dtype == "float64" else np.logspace(-12, 4, 5)
        for tau in taus:
            tau = float(np.asarray(tau, dtype))
            value, slope = program(jnp.asarray(tau, dtype))
            if tau**power > 1e3:
                assert np.isfinite(value) and np.isfinite(slope)
                continue
            density, derivative = log_density("half-cauchy", oracle, tau)
            assert relative_error(value, density) < tolerance, tau
            assert slope_error(slope, derivative, tau) < tolerance, tau


def test_black_box_stays_finite_from_1e_minus_20_to_1e20():
    phi = jnp.asarray(RANDOM.normal(size=(2, 3)))
    complexity = predcp.PredictiveComplexity(
        lambda theta, x: dist.Categorical(logits=jax.nn.relu(x @ theta) @ jnp.eye(3) + 0.3),
        lambda tau, xi: phi + jnp.sqrt(tau) * xi,
        phi,
        jnp.asarray(DESIGN),
        jnp.asarray(RANDOM.normal(size=(4, 2, 3))),
    )
    prior = predcp.ComplexityPrior(PRIORS["log-cauchy"], complexity)
    program = jax.jit(jax.vmap(jax.value_and_grad(prior.log_prob)))
    values, slopes = program(jnp.logspace(-20, 20, 41))
    assert np.all(np.isfinite(values)) and np.all(np.isfinite(slopes))


def residual_oracle(hidden, weights, output, taus, entry):
    """kappa_entry and slope of a residual ReLU network with unit normal outputs."""

    def product(vector, matrix):
        return [sum(v * line[k] for v, line in zip(vector, matrix)) for k in range(len(matrix[0]))]

    def value_and_slope(log_tau):
        total, count = mp.mpf(0), 0
        for draw in range(len(weights)):
            for row in hidden:
                state = list(row)
                for layer in range(entry + 1):
                    scale = mp.exp((log_tau if layer == entry else mp.log(taus[layer])) / 2)
                    inner = product(state, weights[draw][layer])
                    rise = [max(scale * a, mp.mpf(0)) for a in inner]
                    state = [a + b for a, b in zip(state, rise)]
                total += sum(f**2 for f in product(rise, output[draw])) / 2
                count += 1
        return total / count, total / count

    return value_and_slope


@pytest.mark.parametrize("dtype,tolerance", [("float64", 1e-10), ("float32", 1e-4)])
def test_depth_wise_density_matches_fifty_digits(dtype, tolerance):
    random = np.random.default_rng(5)
    hidden = np.abs(random.normal(size=(3, 2))).astype(dtype)
    weights = random.normal(size=(2, 2, 2, 2)).astype(dtype)
    output = random.normal(size=(2, 2, 1)).astype(dtype)
    complexity = predcp.DepthComplexity(hidden, weights, output)
    pi = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), PRIORS["log-cauchy"])
    program = jax.jit(jax.value_and_grad(predcp.ComplexityPrior(pi, complexity).log_prob))
    exact = [numbers(array) for array in (hidden, weights, output)]
    edge = 20 if dtype == "float64" else 12
    for powers in [(-edge, -edge), (-edge, edge), (edge, -edge), (edge, edge), (0, -3), (2, 1)]:
        taus = np.asarray([10.0**power for power in powers], dtype)
        value, _ = program(jnp.asarray(taus))
        scales = [mp.mpf(float(tau)) for tau in taus]
        expected = sum(
            log_density("log-cauchy", residual_oracle(*exact, scales, entry), float(taus[entry]))[0]
            for entry in range(2)
        )
        assert relative_error(value, expected) < tolerance, powers
