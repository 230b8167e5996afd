"""The module-wise map: one predictive map a module, side by side."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from tests.catalogue import DESIGN, PHI, PHI_NOISE, network

import predcp


def softmax_network(theta, x):
    return dist.Categorical(logits=jax.nn.relu(x @ theta["body"]) @ theta["head"])


def test_each_module_moves_alone():
    complexity = predcp.ModularComplexity(network, PHI, DESIGN, PHI_NOISE)
    assert complexity.module_names == ("body", "head")
    tau = np.asarray([0.3, 0.7])
    got = complexity(tau)
    start = network(PHI, DESIGN).base_dist.loc
    for index, name in enumerate(complexity.module_names):
        totals = []
        for draw in range(3):
            moved = {**PHI, name: PHI[name] + np.sqrt(tau[index]) * PHI_NOISE[name][draw]}
            totals.append(predcp.kl(network(moved, DESIGN), network(PHI, DESIGN)).mean())
        np.testing.assert_allclose(got[index], np.mean(totals), rtol=1e-10)
    assert start.shape == (8, 2)


def test_modules_can_be_chosen_and_are_found_in_equinox_modules():
    head_only = predcp.ModularComplexity(network, PHI, DESIGN, PHI_NOISE, modules=["head"])
    both = predcp.ModularComplexity(network, PHI, DESIGN, PHI_NOISE)
    assert head_only.event_shape == (1,)
    np.testing.assert_allclose(head_only(jnp.asarray([0.7])), both(jnp.asarray([0.3, 0.7]))[1:])

    class Network(eqx.Module):
        body: jax.Array
        head: jax.Array

    complexity = predcp.ModularComplexity(
        lambda theta, x: network({"body": theta.body, "head": theta.head}, x),
        Network(PHI["body"], PHI["head"]),
        DESIGN,
        Network(PHI_NOISE["body"], PHI_NOISE["head"]),
    )
    assert complexity.module_names == ("body", "head")
    np.testing.assert_allclose(complexity(jnp.ones(2)), both(jnp.ones(2)))


def test_the_last_layer_is_found_to_be_linear_and_the_others_not():
    complexity = predcp.ModularComplexity(softmax_network, PHI, DESIGN, PHI_NOISE)
    assert complexity.module("head").power is not None
    assert complexity.module("body").power is None
    assert complexity.bounded and np.all(np.isfinite(complexity.supremum))


def test_nothing_is_compiled_twice():
    calls = itertools.count()

    def counted(theta, x):
        next(calls)
        return softmax_network(theta, x)

    complexity = predcp.ModularComplexity(counted, PHI, DESIGN, PHI_NOISE)
    prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.1), complexity)
    tau = jnp.asarray([0.3, 0.2])

    def use(complexity, prior, factor):
        complexity.log_value_by_draw(factor * tau)
        complexity.module("head").log_value_and_elasticity(factor)
        prior.log_prob(factor * tau)
        prior.icdf(factor * tau)
        complexity.inv(1e-3 * factor * tau)
        prior.transforms[0](1e-3 * factor * tau)

    use(complexity, prior, 1.0)
    rebuilt = jax.tree.map(lambda leaf: 1.1 * leaf, complexity)
    before = next(calls)
    use(complexity, prior, 1.5)
    use(rebuilt, predcp.ComplexityPrior(predcp.Exponential(mean=0.2), rebuilt), 1.2)
    assert next(calls) == before + 1


def test_gradients_reach_the_shared_parameters():
    def density(phi):
        complexity = predcp.ModularComplexity(softmax_network, phi, DESIGN, PHI_NOISE)
        prior = predcp.ComplexityPrior(predcp.Exponential(mean=0.5), complexity, truncate=False)
        return prior.log_prob(jnp.asarray([0.2, 0.1]))

    slope = jax.jit(jax.grad(density))(PHI)["head"][1, 0]
    move = jnp.zeros((4, 2)).at[1, 0].set(1e-6)
    ahead = density({**PHI, "head": PHI["head"] + move})
    behind = density({**PHI, "head": PHI["head"] - move})
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize(
    "change,message",
    [
        ({"modules": ["neck"]}, r"modules \['neck'\] are not entries"),
        ({"noise": PHI_NOISE["body"]}, "noise must have the structure"),
        ({"noise": PHI}, "noise must have the shapes of parameters"),
        ({"parameters": jnp.ones(3), "noise": jnp.ones((2, 3))}, "named top-level entries"),
        ({"likelihood": None}, "likelihood must be a function"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {
        "likelihood": network,
        "parameters": PHI,
        "x": DESIGN,
        "noise": PHI_NOISE,
        **change,
    }
    with pytest.raises(ValueError, match=message):
        predcp.ModularComplexity(**arguments)
