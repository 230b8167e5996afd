"""The depth-wise map against one forward pass a layer, and at extremes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from tests.catalogue import HIDDEN, OUTPUT, WEIGHTS

import predcp

TAU = jnp.asarray([0.5, 2.0, 0.1])
BIASES = jnp.asarray(np.random.default_rng(3).normal(size=(3, 4)))


def layer_by_layer(tau, residual, softmax, biases, normalize):
    """kappa from two whole forward passes a layer, as the definition has it."""

    def rise(hidden, weights, layer, scale):
        if normalize == "layer":
            hidden = (hidden - hidden.mean(-1, keepdims=True)) / np.sqrt(
                hidden.var(-1, keepdims=True) + 1e-5
            )
        elif normalize == "batch":
            hidden = (hidden - hidden.mean(0)) / np.sqrt(hidden.var(0) + 1e-5)
        inner = np.sqrt(scale) * hidden @ weights
        return np.maximum(inner + (0.0 if biases is None else biases[layer]), 0.0)

    hidden, weights, output = (np.asarray(a) for a in (HIDDEN, WEIGHTS, OUTPUT))
    kappas = []
    for top in range(3):
        total = []
        for draw in range(weights.shape[0]):
            outputs = []
            for scale in (tau[top], 0.0):
                state = hidden
                for layer in range(top + 1):
                    here = scale if layer == top else tau[layer]
                    branch = rise(state, weights[draw, layer], layer, here)
                    state = state + branch if residual else branch
                outputs.append(state @ output[draw])
            if softmax:
                p, q = (jax.nn.log_softmax(f) for f in outputs)
                total.append(np.mean(np.sum(np.exp(p) * (p - q), -1)))
            else:
                total.append(np.mean(np.sum((outputs[0] - outputs[1]) ** 2, -1)) / 2)
        kappas.append(np.mean(total))
    return np.asarray(kappas)


NORMALISED = [(None, None), (BIASES, None), (None, "layer"), (None, "batch")]
# Each choice by default, every combination of them with `make test-long`.
EARLY = {(0, False, True), (1, True, False), (2, False, False), (3, True, True)}


@pytest.mark.parametrize(
    "biases,normalize,softmax,residual",
    [
        pytest.param(*each, *rest, marks=[] if (place, *rest) in EARLY else [pytest.mark.long])
        for place, each in enumerate(NORMALISED)
        for rest in itertools.product([False, True], [True, False])
    ],
)
def test_one_pass_equals_one_pass_a_layer(residual, softmax, biases, normalize):
    options = {"likelihood": lambda f: dist.Categorical(logits=f)} if softmax else {}
    complexity = predcp.DepthComplexity(
        HIDDEN, WEIGHTS, OUTPUT, residual=residual, biases=biases, normalize=normalize, **options
    )
    expected = layer_by_layer(np.asarray(TAU), residual, softmax, biases, normalize)
    np.testing.assert_allclose(complexity(TAU), expected, rtol=1e-10)


def test_residual_divergence_is_linear_in_its_own_scale():
    complexity = predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT)
    kappa = complexity(TAU)
    for factor in (1e-14, 1e14):
        moved = complexity(TAU.at[2].multiply(factor))
        np.testing.assert_allclose(moved, kappa * jnp.asarray([1, 1, factor]), rtol=1e-12)


def test_plain_divergence_is_proportional_to_the_product_of_scales():
    complexity = predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT, residual=False)
    unit = complexity(jnp.ones(3))
    np.testing.assert_allclose(complexity(TAU), unit * np.cumprod(TAU), rtol=1e-12)


def test_general_activations_and_likelihoods_have_their_own_path():
    def poisson(f):
        return dist.Poisson(jnp.exp(0.1 * f)).to_event(1)

    complexity = predcp.DepthComplexity(
        HIDDEN, WEIGHTS, OUTPUT, likelihood=poisson, activation=jnp.tanh
    )
    state, log_rates = np.asarray(HIDDEN), []
    draw = 1
    for layer in range(3):
        log_rates.append(0.1 * state @ np.asarray(OUTPUT[draw]))
        state = state + np.tanh(np.sqrt(TAU[layer]) * state @ np.asarray(WEIGHTS[draw, layer]))
    log_rates.append(0.1 * state @ np.asarray(OUTPUT[draw]))
    single = predcp.DepthComplexity(
        HIDDEN, WEIGHTS[draw][None], OUTPUT[draw], likelihood=poisson, activation=jnp.tanh
    )
    expected = [
        np.mean(np.sum(np.exp(p) * (p - q) - np.exp(p) + np.exp(q), -1))
        for p, q in zip(log_rates[1:], log_rates[:-1])
    ]
    np.testing.assert_allclose(single(TAU), expected, rtol=1e-10)
    assert np.all(np.isfinite(complexity(TAU)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_twenty_five_layers_neither_overflow_nor_lose_their_gradient(dtype):
    random = np.random.default_rng(0)
    weights = jnp.asarray(random.normal(size=(2, 25, 8, 8)), dtype)
    hidden = jnp.asarray(np.abs(random.normal(size=(5, 8))), dtype)
    output = jnp.asarray(random.normal(size=(8, 1)), dtype)
    complexity = predcp.DepthComplexity(hidden, weights, output)
    prior = predcp.ComplexityPrior(
        predcp.LogCauchy(scale=jnp.asarray(1.0, dtype), loc=jnp.asarray(0.0, dtype)), complexity
    )
    program = jax.jit(jax.value_and_grad(prior.log_prob))
    for size in (1e-12, 1.0, 1e12):
        value, slope = program(jnp.full(25, size, dtype))
        assert value.dtype == dtype and np.isfinite(value) and np.all(np.isfinite(slope)), size


def test_draws_from_a_truncated_network_have_the_conditional_distribution():
    complexity = predcp.DepthComplexity(
        HIDDEN, WEIGHTS, OUTPUT, lambda f: dist.Categorical(logits=f), residual=False
    )
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), complexity)
    uniform = np.asarray(prior.cdf(prior.sample(jax.random.key(0), (500,))))
    # Three times 500 conditional cdfs: their means and spreads are a uniform's.
    np.testing.assert_allclose(uniform.mean(0), 0.5, atol=0.06)
    np.testing.assert_allclose(uniform.std(0), np.sqrt(1 / 12), atol=0.03)


@pytest.mark.parametrize(
    "change,message",
    [
        ({"weights": np.ones((2, 3, 4, 5))}, r"weights must have shape \(S, L, H, H\)"),
        ({"hidden": np.ones((6, 3))}, "hidden must have shape"),
        ({"hidden": np.ones((2, 6, 4))}, "hidden must have 5 draws first"),
        ({"output_weights": np.ones((3, 2))}, "output_weights must have shape"),
        ({"biases": np.ones((2, 4))}, "biases must have shape"),
        ({"normalize": "after"}, "normalize must be None"),
        ({"reference": "zero"}, "reference must be"),
        ({"reference": "short-circuit"}, "plain networks"),
        ({"activation": lambda a: 0.0 * a}, "layer 1 is dead"),
        ({"hidden": np.zeros((6, 4))}, "layer 1 is dead"),
        ({"likelihood": 1.0}, "likelihood must be a function"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"hidden": HIDDEN, "weights": WEIGHTS, "output_weights": OUTPUT, **change}
    with pytest.raises(ValueError, match=message):
        predcp.DepthComplexity(**arguments)
