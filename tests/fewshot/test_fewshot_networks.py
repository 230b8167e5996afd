"""Networks against the library's own convolution, pooling and differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from predcp.fewshot import ConvNet, DenseNet, paper_network, pooled_network
from predcp.fewshot._convolution import max_pool, patches
from predcp.fewshot._networks import _standard, module_sizes, network_from_config

KEY = jax.random.key(0)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [5, 8])
def test_patches_and_a_product_are_a_convolution(stride, size):
    x = jax.random.normal(KEY, (2, size, size + 1, 3))
    weight = jax.random.normal(jax.random.key(1), (27, 4))
    ours = patches(x, stride) @ weight
    theirs = lax.conv_general_dilated(
        x,
        weight.reshape(3, 3, 3, 4),
        (stride, stride),
        ((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [4, 7])
def test_max_pool(size):
    x = jax.random.normal(KEY, (2, size, size, 3))
    theirs = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    np.testing.assert_array_equal(max_pool(x), theirs)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2)])
def test_derivatives_of_the_normalisation_are_those_of_its_formula(axes):
    x = jax.random.normal(KEY, (3, 2, 2)) * 2.0 + 1.0
    weights = jax.random.normal(jax.random.key(1), (3, 2, 2))

    def plain(x):
        centred = x - x.mean(axes, keepdims=True)
        return jnp.sum(weights * centred / jnp.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5))

    def ours(x):
        return jnp.sum(weights * _standard(x, axes)[0])

    for derive in (lambda f: f, jax.grad, jax.hessian):
        mine, theirs = jax.jit(derive(ours))(x), jax.jit(derive(plain))(x)
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)


def test_a_constant_channel_is_no_trouble():
    x = jnp.full((4, 3, 2), 7.3)
    value, slope = jax.value_and_grad(lambda x: _standard(x, (0, 1))[0].sum())(x)
    assert np.isfinite(value) and np.all(np.isfinite(slope))


def test_the_papers_networks_have_its_features():
    theta, shared = paper_network("fc100").init(KEY, (32, 32, 3))
    assert theta["head"]["weight"].shape == (64, 5)
    assert theta["conv2"]["weight"].shape == (9 * 64, 64)
    assert module_sizes(theta)["conv1"] == 27 * 64 + 64
    assert set(shared) == {"conv1", "conv2", "conv3", "conv4"}
    theta, _ = paper_network("mini-imagenet").init(KEY, (84, 84, 3))
    assert theta["head"]["weight"].shape == (800, 5)
    for stride, pixels in ((1, 32), (2, 16)):
        network = paper_network("fc100", stride=stride, blocks=1)
        prepared = network.prepare(jnp.ones((1, 32, 32, 3)))
        # 27 numbers a pixel, and zeros up to a width that products like.
        assert prepared.shape == (1, pixels, pixels, 32) and not prepared[..., 27:].any()
    theta, _ = pooled_network("fc100").init(KEY, (32, 32, 3))
    assert theta["head"]["weight"].shape == (2 * 2 * 32, 5)
    theta, _ = pooled_network("omniglot-rotated").init(KEY, (28, 28, 1))
    assert theta["head"]["weight"].shape == (64, 5)


@pytest.mark.parametrize(
    "network,shape",
    [
        (ConvNet(ways=3, channels=4, blocks=2), (8, 8, 3)),
        (ConvNet(ways=3, channels=4, blocks=2, stride=1, pool=True, average=False), (8, 8, 3)),
        (ConvNet(ways=3, channels=4, blocks=1, normalisation="layer"), (5, 6, 1)),
        (DenseNet(ways=3, widths=(5, 4), normalisation="batch"), (7,)),
        (DenseNet(ways=3, widths=()), (2, 3)),
    ],
)
def test_networks_run_and_are_made_again_from_plain_values(network, shape):
    theta, shared = network.init(KEY, shape)
    assert tuple(theta) == network.module_names
    x = jax.random.normal(jax.random.key(1), (6, *shape))
    logits = network.logits(theta, shared, network.prepare(x))
    assert logits.shape == (6, 3) and np.all(np.isfinite(logits))
    assert network_from_config(network.to_config()) == network


def test_layer_normalisation_sees_one_example_and_batch_normalisation_all():
    x = jax.random.normal(KEY, (4, 8, 8, 3))
    for normalisation, alone in (("layer", True), ("batch", False)):
        network = ConvNet(ways=3, channels=4, blocks=2, normalisation=normalisation)
        theta, shared = network.init(KEY, (8, 8, 3))
        together = network.logits(theta, shared, network.prepare(x))[:1]
        single = network.logits(theta, shared, network.prepare(x[:1]))
        assert np.allclose(together, single) == alone


def test_half_precision_is_near_single():
    x = jax.random.normal(KEY, (10, 8, 8, 3), jnp.float32)
    found = {}
    for precision in ("highest", "bfloat16"):
        network = ConvNet(ways=3, channels=8, blocks=2, precision=precision)
        theta, shared = network.init(KEY, (8, 8, 3))
        theta, shared = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), (theta, shared))
        found[precision] = network.logits(theta, shared, network.prepare(x))
    assert found["bfloat16"].dtype == jnp.float32
    gap = np.abs(np.asarray(found["bfloat16"] - found["highest"]))
    # Eight bits in each of two products.
    assert 0.0 < gap.max() < 0.05 * np.abs(np.asarray(found["highest"])).max()


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: ConvNet(stride=3), "stride must be 1 or 2, got 3"),
        (lambda: ConvNet(ways=1), "ways must be at least 2, got 1"),
        (lambda: ConvNet(channels=0), "channels must be at least 1, got 0"),
        (lambda: ConvNet(precision="half"), "precision must be one of highest"),
        (lambda: DenseNet(normalisation="instance"), "normalisation must be one of batch"),
        (lambda: ConvNet().init(KEY, (7,)), "a ConvNet takes images .* use a DenseNet"),
        (
            lambda: ConvNet(pool=True).init(KEY, (8, 8, 3)),
            r"images of \(8, 8\) pixels are used up in block conv2",
        ),
        (lambda: paper_network("mnist"), "no network is declared for 'mnist'"),
    ],
)
def test_bad_networks_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
