"""Powers of tau are found in programs that have them, and in no others."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import pytest

from predcp._numerics.homogeneity import power_of

X = jnp.arange(6.0).reshape(3, 2)
XI = jnp.asarray([0.5, -1.0])


def _walk(tau, xi, advance):
    """States of a loop whose step sees the scale (a constant), its state and a sequence."""

    def step(state, noise):
        state = advance(state, tau * noise)
        return state, state

    return jax.lax.scan(step, jnp.zeros(()), xi)[1]


FOUND = {
    "linear": (lambda tau, xi: X @ (tau * xi), (1, True)),
    "variance": (lambda tau, xi: X @ (jnp.sqrt(tau) * xi), (Fraction(1, 2), True)),
    "power": (lambda tau, xi: X @ (tau**1.5 * xi), (Fraction(3, 2), True)),
    "offset": (lambda tau, xi: 3.0 + X @ (tau * xi), (1, False)),
    "relu": (lambda tau, xi: jax.nn.relu(X @ (tau * xi)) @ jnp.ones(3), (1, True)),
    "leaky": (lambda tau, xi: jax.nn.leaky_relu(X @ (tau * xi)), (1, True)),
    "square": (lambda tau, xi: jnp.square(tau * xi) / 7.0, (2, True)),
    "ratio": (lambda tau, xi: (tau * xi) ** 3 / (tau + 0.0 * xi), (2, True)),
    "fixed output beside": (lambda tau, xi: (tau * xi, jnp.exp(xi)), (1, True)),
    "nested": (lambda tau, xi: jax.jit(lambda t: X @ (t * xi))(tau).reshape(1, 3), (1, True)),
    "unused check": (lambda tau, xi: (jnp.isfinite(tau * xi), tau * xi)[1], (1, True)),
    "scan": (lambda tau, xi: _walk(tau, xi, lambda state, step: 0.5 * state + step), (1, True)),
}
NOT_FOUND = {
    "tanh": lambda tau, xi: jnp.tanh(tau * xi),
    "bias inside relu": lambda tau, xi: jax.nn.relu(tau * xi + 1.0),
    "two powers": lambda tau, xi: tau * xi + jnp.sqrt(tau) * xi,
    "two powers apart": lambda tau, xi: (tau * xi, jnp.sqrt(tau) * xi),
    "product of sums": lambda tau, xi: (1.0 + tau * xi) * (tau * xi),
    "no dependence": lambda tau, xi: xi + 0.0 * jnp.ones(2),
    "normalised": lambda tau, xi: (tau * xi) / jnp.std(tau * xi),
    "inverse": lambda tau, xi: xi / tau,
    "clipped": lambda tau, xi: jnp.maximum(tau * xi, 0.1),
    "scan of a bounded state": lambda tau, xi: _walk(tau, xi, lambda s, step: jnp.tanh(s + step)),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    function, expected = FOUND[name]
    assert power_of(function, jnp.ones(()), XI) == expected


@pytest.mark.parametrize("name", NOT_FOUND)
def test_not_found(name):
    assert power_of(NOT_FOUND[name], jnp.ones(()), XI) is None
