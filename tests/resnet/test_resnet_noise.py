"""Noise of a step: what the words become, and that every way to add it has the same moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from predcp.resnet import Biases, Network, Weights
from predcp.resnet._noise import Source, coins, normals, words_for
from predcp.resnet._posterior import Posterior, draw
from predcp.resnet._stochastic import flipout, local


def test_normals_are_normal_and_never_infinite():
    ends = normals(jnp.asarray([0, 2**32 - 1], jnp.uint32))
    assert ends.dtype == jnp.float32
    assert np.isfinite(ends).all() and ends[0] == -ends[1] and ends[1] > 5.0
    bits = jax.random.bits(jax.random.key(0), (20_000,), jnp.uint32)
    assert stats.kstest(np.asarray(normals(bits)), "norm").pvalue > 1e-3


def test_every_bit_is_used_once():
    bits = jnp.asarray([[[0b1011, 0]], [[0, 2**31]]], jnp.uint32)
    found = np.asarray(coins(bits, 32))
    assert found.shape == (2, 32, 2)
    assert found[0, :4, 0].tolist() == [1, 1, 0, 1] and found.sum() == 4
    assert found[1, 31, 1] == 1
    assert coins(jnp.zeros((1, 2, 3), jnp.uint32), 40).shape == (1, 40, 3)
    assert (words_for(32), words_for(33)) == (1, 2)


def test_a_source_gives_each_word_once():
    source = Source(jax.random.key(1), 12)
    first, second = source.take(2, 3), source.take(6)
    assert not set(np.asarray(first).ravel().tolist()) & set(np.asarray(second).tolist())
    with pytest.raises(ValueError, match="words asked for"):
        source.take(1)


def posterior_of(network, seed=0, size=0.5, spread=-2.0):
    keys = jax.random.split(jax.random.key(seed), 4)
    body, head = (network.rows, network.width), (network.width, network.outputs)
    normal = lambda key, shape: jax.random.normal(key, shape, jnp.float32)  # noqa: E731
    return Posterior(
        Weights(size * normal(keys[0], body), size * normal(keys[1], head)),
        Weights(spread + normal(keys[2], body), spread + normal(keys[3], head)),
        Biases(
            jnp.full((network.layers + 1, network.width), 0.1, jnp.float32),
            jnp.full((network.outputs,), 0.2, jnp.float32),
        ),
        jnp.zeros(network.layers, jnp.float32),
        jnp.zeros((), jnp.float32),
    )


@pytest.mark.parametrize(
    "residual,normalize,layers", [(True, None, 1), (False, "layer", 1), (True, "layer", 4)]
)
def test_every_estimator_has_the_moments_of_the_posterior(residual, normalize, layers):
    network = Network(2, 4, layers, 2, residual, normalize)
    posterior = posterior_of(network)
    x = jnp.asarray([[1.0, -0.5], [0.3, 2.0], [-1.0, 0.0]], jnp.float32)
    count = 8000
    keys = jax.random.split(jax.random.key(3), count)

    @jax.jit
    @jax.vmap
    def outputs(key):
        return {
            "draws": network.apply(draw(key, posterior), posterior.biases, x),
            "flipout": flipout(network, posterior, x, 1, key).outputs[0],
            "local": local(network, posterior, x, 1, key).outputs[0],
        }

    moments = {name: np.asarray(v, np.float64) for name, v in outputs(keys).items()}
    reference = moments.pop("draws")
    error = reference.std(0) / np.sqrt(count)
    for values in moments.values():
        assert np.all(np.abs(values.mean(0) - reference.mean(0)) < 6.0 * error)
        spread = np.sqrt(values.var(0) / reference.var(0))
        assert np.all(np.abs(spread - 1.0) < 0.15)


def test_samples_and_points_of_one_pass_differ():
    network = Network(2, 16, 1)
    posterior = posterior_of(network)
    x = jnp.ones((5, 2), jnp.float32)
    outputs = np.asarray(flipout(network, posterior, x, 3, jax.random.key(0)).outputs)
    assert outputs.shape == (3, 5, 1) and len(np.unique(outputs)) == 15


def test_the_public_code_multiplies_by_minus_one_and_three():
    network = Network(1, 1, 0)
    mean, variance = 2.0, 0.25
    posterior = Posterior(
        Weights(jnp.full((1, 1), mean, jnp.float32), jnp.ones((1, 1), jnp.float32)),
        Weights(
            jnp.full((1, 1), np.log(np.expm1(variance)), jnp.float32),
            jnp.full((1, 1), -60.0, jnp.float32),
        ),
        Biases(jnp.full((1, 1), 100.0, jnp.float32), jnp.zeros(1, jnp.float32)),
        jnp.zeros(0, jnp.float32),
        jnp.zeros((), jnp.float32),
    )
    x = jnp.full((32, 1), 4.0, jnp.float32)
    outputs = flipout(network, posterior, x, 8, jax.random.key(0), quirk=1.0).outputs
    products = (np.asarray(outputs, np.float64) - 100.0 - 4.0 * mean) / (4.0 * variance**0.5)
    assert sorted(set(np.round(products, 3).ravel().tolist())) == [-3.0, 1.0, 9.0]
