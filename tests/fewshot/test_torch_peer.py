"""Second-order MAML against the PyTorch programs of the benchmark, where PyTorch is installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from predcp.fewshot import ConvNet, Meta, Settings, as_module_prior
from predcp.fewshot._objective import outer_loss
from predcp.fewshot._runs import Present, run_values

torch = pytest.importorskip("torch")

from benchmarks.fewshot_torch import _loop_loss, _vmap_loss  # noqa: E402

NETWORK = ConvNet(ways=3, channels=4, blocks=2, precision="highest")
SETTINGS = Settings(ways=3, shots=2, queries=2, meta_batch=2, inner_steps=2, inner_rate=0.1)


def in_torch(meta):
    """The same parameters under the names and in the layout of the benchmark."""
    found = {}
    for block in range(NETWORK.blocks):
        own, affine = meta.theta[f"conv{block + 1}"], meta.shared[f"conv{block + 1}"]
        channels = own["weight"].shape[0] // 9
        weight = np.asarray(own["weight"]).reshape(3, 3, channels, -1).transpose(3, 2, 0, 1)
        found[f"weight{block}"], found[f"bias{block}"] = weight, own["bias"]
        found[f"scale{block}"], found[f"shift{block}"] = affine["scale"], affine["shift"]
    found["head_weight"] = np.asarray(meta.theta["head"]["weight"]).T
    found["head_bias"] = meta.theta["head"]["bias"]
    return {
        name: torch.tensor(np.array(value), dtype=torch.float64).requires_grad_()
        for name, value in found.items()
    }


@pytest.mark.parametrize("loss_of", [_loop_loss, _vmap_loss])
def test_loss_and_gradient_are_pytorchs(loss_of):
    theta, shared = NETWORK.init(jax.random.key(0), (8, 8, 3))
    meta = Meta(theta, shared, jnp.zeros(3))
    run, densities = run_values([as_module_prior("maml")], NETWORK.module_names, [SETTINGS.rates])
    run = jax.tree.map(lambda leaf: leaf[0], run)
    x = jax.random.normal(jax.random.key(1), (2, 3, 4, 8, 8, 3))

    def ours(meta):
        return outer_loss(
            meta,
            NETWORK,
            SETTINGS,
            densities,
            Present.among([as_module_prior("maml")]),
            run,
            x,
            jax.random.key(2),
        )[0]

    loss, slope = jax.jit(jax.value_and_grad(ours))(meta)
    parameters = in_torch(meta)
    images = torch.tensor(np.array(x)).permute(0, 1, 2, 5, 3, 4)
    support, query = images[:, :, :2].flatten(1, 2), images[:, :, 2:].flatten(1, 2)
    theirs = loss_of(parameters, NETWORK, SETTINGS, support, query)
    theirs.backward()
    np.testing.assert_allclose(loss, theirs.item(), rtol=1e-8)
    for name, value in in_torch(slope).items():
        gradient = parameters[name].grad.numpy()
        np.testing.assert_allclose(value.detach().numpy(), gradient, rtol=1e-5, atol=1e-8)
