"""The inner loop against plain gradient descent and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from predcp.fewshot import ConvNet, adapted
from predcp.fewshot._adapt import cross_entropy

KEY = jax.random.key(0)
NETWORK = ConvNet(ways=3, channels=3, blocks=1, precision="highest")
THETA, SHARED = NETWORK.init(KEY, (4, 4, 2))
X = NETWORK.prepare(jax.random.normal(jax.random.key(1), (6, 4, 4, 2)))
TARGETS = jnp.repeat(jnp.eye(3), 2, axis=0)
LOG_SIGMA = jnp.asarray([0.3, -0.4])
ONE = jnp.ones(())


def close(ours, theirs, rtol):
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=1e-11)


def support_loss(theta, shared=SHARED, reduce=jnp.mean):
    return reduce(cross_entropy(NETWORK.logits(theta, shared, X), TARGETS))


def naive(theta, shared, log_sigma, decay, steps, rate, reduce=jnp.mean):
    """sigma-MAML as the paper writes it: gradient descent on the whole objective in eps."""
    names = NETWORK.module_names

    def at(eps):
        return {
            name: jax.tree.map(
                lambda phi, e, scale=scale: phi + jnp.exp(scale) * e, theta[name], eps[name]
            )
            for name, scale in zip(names, log_sigma)
        }

    def objective(eps):
        square = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(eps))
        return support_loss(at(eps), shared, reduce) + 0.5 * decay * square

    eps = jax.tree.map(jnp.zeros_like, theta)
    for _ in range(steps):
        eps = jax.tree.map(lambda e, g: e - rate * g, eps, jax.grad(objective)(eps))
    return at(eps)


def test_maml_is_gradient_descent():
    theta, slope = THETA, jax.jit(jax.grad(support_loss))
    for _ in range(3):
        theta = jax.tree.map(lambda t, g: t - 0.1 * g, theta, slope(theta))
    ours = jax.jit(
        lambda log_sigma: adapted(
            NETWORK, THETA, SHARED, log_sigma, 0.0 * ONE, X, TARGETS, 3, 0.1, unroll=True
        )
    )(jnp.zeros(2))
    close(ours, theta, 1e-9)


@pytest.mark.parametrize(
    "objective,reduce,unroll", [("mean", jnp.mean, True), ("sum", jnp.sum, False)]
)
def test_sigma_maml_descends_its_objective(objective, reduce, unroll):
    ours = jax.jit(
        lambda log_sigma: adapted(
            NETWORK, THETA, SHARED, log_sigma, ONE, X, TARGETS, 3, 0.1, objective, unroll=unroll
        )
    )(LOG_SIGMA)
    theirs = jax.jit(lambda log_sigma: naive(THETA, SHARED, log_sigma, 1.0, 3, 0.1, reduce))
    close(ours, theirs(LOG_SIGMA), 1e-9)


def test_no_steps_leave_what_is_shared():
    assert adapted(NETWORK, THETA, SHARED, LOG_SIGMA, ONE, X, TARGETS, 0, 0.1) is THETA


def test_a_tiny_scale_keeps_a_module_still():
    log_sigma = jnp.asarray([0.0, -40.0])
    ours = jax.jit(
        lambda log_sigma: adapted(NETWORK, THETA, SHARED, log_sigma, ONE, X, TARGETS, 3, 0.1)
    )(log_sigma)
    close(ours["head"], THETA["head"], 1e-14)
    assert not np.allclose(ours["conv1"]["weight"], THETA["conv1"]["weight"])


def outer(adapt):
    def loss(theta, shared, log_sigma):
        own = adapt(theta, shared, log_sigma)
        return cross_entropy(NETWORK.logits(own, shared, X[::-1]), TARGETS).mean()

    return loss


def ours_of(**options):
    def adapt(theta, shared, log_sigma):
        return adapted(NETWORK, theta, shared, log_sigma, ONE, X, TARGETS, 3, 0.1, **options)

    return adapt


@pytest.mark.parametrize("unroll", [True, False])
def test_second_order_gradients_are_those_of_plain_differentiation(unroll):
    def plain(theta, shared, log_sigma):
        return naive(theta, shared, log_sigma, 1.0, 3, 0.1)

    arguments = (THETA, SHARED, LOG_SIGMA)
    mine = jax.jit(jax.grad(outer(ours_of(unroll=unroll)), (0, 1, 2)))(*arguments)
    theirs = jax.jit(jax.grad(outer(plain), (0, 1, 2)))(*arguments)
    close(mine, theirs, 1e-7)


def test_second_order_gradients_are_slopes():
    loss = jax.jit(outer(ours_of()))
    slope = jax.jit(jax.grad(loss, (0, 1, 2)))(THETA, SHARED, LOG_SIGMA)
    generator = np.random.default_rng(0)
    step = jax.tree.map(
        lambda leaf: jnp.asarray(generator.normal(size=leaf.shape)), (THETA, SHARED, LOG_SIGMA)
    )
    moved = [
        loss(*jax.tree.map(lambda leaf, s, h=h: leaf + h * s, (THETA, SHARED, LOG_SIGMA), step))
        for h in (1e-6, -1e-6)
    ]
    along = sum(
        jnp.vdot(g, s) for g, s in zip(jax.tree.leaves(slope), jax.tree.leaves(step), strict=True)
    )
    np.testing.assert_allclose(along, (moved[0] - moved[1]) / 2e-6, rtol=1e-5)


def test_first_order_takes_inner_gradients_as_constants():
    def plain(theta, shared, log_sigma):
        # One step at a time, each gradient held constant.
        names = NETWORK.module_names
        eps = jax.tree.map(jnp.zeros_like, theta)
        for _ in range(3):
            own = {
                name: jax.tree.map(lambda p, e, s=s: p + jnp.exp(s) * e, theta[name], eps[name])
                for name, s in zip(names, log_sigma)
            }
            slope = jax.lax.stop_gradient(jax.grad(support_loss)(own, shared))
            eps = {
                name: jax.tree.map(
                    lambda e, g, s=s: e - 0.1 * (jnp.exp(s) * g + e), eps[name], slope[name]
                )
                for name, s in zip(names, log_sigma)
            }
        return {
            name: jax.tree.map(lambda p, e, s=s: p + jnp.exp(s) * e, theta[name], eps[name])
            for name, s in zip(names, log_sigma)
        }

    arguments = (THETA, SHARED, LOG_SIGMA)
    mine = jax.jit(jax.grad(outer(ours_of(first_order=True)), (0, 1, 2)))(*arguments)
    close(mine, jax.jit(jax.grad(outer(plain), (0, 1, 2)))(*arguments), 1e-8)
    second = jax.jit(jax.grad(outer(ours_of())))(*arguments)
    assert not np.allclose(mine[0]["conv1"]["weight"], second["conv1"]["weight"], rtol=1e-3)
