"""Networks as sequences of named modules, each adapted to a task with its own scale."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from predcp.fewshot._convolution import PRECISIONS, Precision, aligned, max_pool, patches, product

# By module: weight and bias, which tasks adapt; the affine part of the normalisation, which they share.
Modules = dict[str, dict[str, Array]]
Normalisation = Literal["batch", "layer", "none"]
NORMALISATIONS: tuple[Normalisation, ...] = ("batch", "layer", "none")
HEAD = "head"
_EPSILON = 1e-5


class Network(eqx.Module):
    """A classifier that is a chain of named modules; the last is the linear head.

    Normalisation is by the statistics of all examples passed through together (`batch`: transductive,
    as in MAML: a query's prediction depends on the other queries of the call), of each example by
    itself (`layer`), or none. Its scale and shift are shared by all tasks.
    """

    ways: eqx.AbstractVar[int]
    normalisation: eqx.AbstractVar[Normalisation]
    precision: eqx.AbstractVar[Precision]

    @property
    def module_names(self) -> tuple[str, ...]:
        """Modules in the order in which data pass them."""
        raise NotImplementedError

    def init(self, key: Array, example_shape: tuple[int, ...]) -> tuple[Modules, Modules]:
        """Random weights of every module, and the affine part of its normalisation."""
        raise NotImplementedError

    def prepare(self, x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        """Prepare inputs for the first module; done once per task, as no parameter changes it."""
        return x

    def features(self, name: str, h: Float[Array, "n ..."]) -> Float[Array, "n ... k"]:
        """Array that a module's weights multiply; linear in the prepared inputs or hidden states."""
        raise NotImplementedError

    def product(
        self, name: str, weight: Float[Array, "k o"], features: Float[Array, "n ... wide"]
    ) -> Float[Array, "n ... o"]:
        """Features times a module's weights, in the precision that module has."""
        if name != HEAD:
            return product(features, weight, self.precision)
        # The head is tiny and its logits matter, so it stays in single precision.
        exact = "default" if self.precision == "bfloat16" else self.precision
        return product(features.astype(weight.dtype), weight, exact)

    def outgoing(
        self, name: str, shared: dict[str, Array], z: Float[Array, "n ... o"]
    ) -> Float[Array, "n ..."]:
        """Output of a module: the product plus its bias, pooled, rectified, normalised."""
        raise NotImplementedError

    def block(
        self, name: str, own: dict[str, Array], shared: dict[str, Array], h: Array
    ) -> Float[Array, "n ..."]:
        """Pass prepared inputs or hidden states through one module."""
        z = self.product(name, own["weight"], self.features(name, h))
        return self.outgoing(name, shared, z + own["bias"].astype(z.dtype))

    def logits(self, theta: Modules, shared: Modules, prepared: Array) -> Float[Array, "n ways"]:
        """Scores of the classes of a task."""
        h = prepared
        for name in self.module_names:
            h = self.block(name, theta[name], shared.get(name, {}), h)
        return h.astype(jnp.result_type(theta[HEAD]["weight"]))

    def width(self, example_shape: tuple[int, ...]) -> int:
        """Largest number of values that one example takes in any layer."""
        raise NotImplementedError

    def to_config(self) -> dict[str, Any]:
        """Plain values from which `network_from_config` makes it again."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"kind": type(self).__name__, **values}


class ConvNet(Network):
    """Blocks of 3 x 3 convolution, pooling, ReLU and normalisation, in the paper's order.

    **Arguments**
    - `ways`: classes of a task.
    - `channels`: of every block; `blocks`: how many.
    - `stride`: of the convolutions, 1 or 2; the paper does not say which it used on FC100.
    - `pool`: 2 x 2 max-pooling after each convolution.
    - `average`: the global average of the last block's pixels; else they are all kept.
    - `normalisation`: see `Network`.
    - `precision`: of matrix products: `highest` (exact single), `default` (the device's
        default, such as TF32 on a GPU) or `bfloat16` (hidden states too; statistics stay single).
    """

    ways: int = eqx.field(static=True, default=5)
    channels: int = eqx.field(static=True, default=64)
    blocks: int = eqx.field(static=True, default=4)
    stride: int = eqx.field(static=True, default=2)
    pool: bool = eqx.field(static=True, default=False)
    average: bool = eqx.field(static=True, default=True)
    normalisation: Normalisation = eqx.field(static=True, default="batch")
    precision: Precision = eqx.field(static=True, default="default")

    def __check_init__(self) -> None:
        _check_common(self)
        for name in ("channels", "blocks"):
            _check_count(name, getattr(self, name))
        if self.stride not in (1, 2):
            raise ValueError(f"stride must be 1 or 2, got {self.stride}")

    @property
    def module_names(self) -> tuple[str, ...]:
        return (*(f"conv{number + 1}" for number in range(self.blocks)), HEAD)

    def init(self, key: Array, example_shape: tuple[int, ...]) -> tuple[Modules, Modules]:
        if len(example_shape) != 3:
            raise ValueError(
                "a ConvNet takes images (height, width, channels), got examples of shape "
                f"{example_shape}; use a DenseNet for other arrays"
            )
        height, width, incoming = example_shape
        theta: Modules = {}
        shared: Modules = {}
        keys = jax.random.split(key, self.blocks + 1)
        for name, own in zip(self.module_names[:-1], keys):
            height, width = -(-height // self.stride), -(-width // self.stride)
            if self.pool:
                height, width = height // 2, width // 2
            if min(height, width) < 1:
                raise ValueError(
                    f"images of {example_shape[:2]} pixels are used up in block {name}; use fewer "
                    "blocks or larger images"
                )
            theta[name] = _linear(own, 9 * incoming, self.channels, gain=2.0)
            shared |= _affine(self.normalisation, name, self.channels)
            incoming = self.channels
        features = incoming if self.average else incoming * height * width
        theta[HEAD] = _linear(keys[-1], features, self.ways, gain=1.0)
        return theta, shared

    def width(self, example_shape: tuple[int, ...]) -> int:
        height, width, incoming = example_shape
        most = 0
        for _ in range(self.blocks):
            height, width = -(-height // self.stride), -(-width // self.stride)
            most = max(most, height * width * max(9 * incoming, self.channels))
            if self.pool:
                height, width = height // 2, width // 2
            incoming = self.channels
        return most

    def prepare(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j k"]:
        return aligned(patches(x, self.stride))

    def features(self, name: str, h: Any) -> Array:
        if name == HEAD:
            return h.mean((1, 2)) if self.average else h.reshape(h.shape[0], -1)
        # Features of the first module are prepared once, because they are the same at every step.
        return h if name == self.module_names[0] else patches(h, self.stride)

    def outgoing(self, name: str, shared: Any, z: Any) -> Array:
        if name == HEAD:
            return z
        pooled = max_pool(z) if self.pool else z
        return _normalised(jax.nn.relu(pooled), shared, self.normalisation)


class DenseNet(Network):
    """Fully connected blocks for arrays of any shape.

    **Arguments**: as `ConvNet`'s; `widths` of the hidden layers.
    """

    ways: int = eqx.field(static=True, default=5)
    widths: tuple[int, ...] = eqx.field(static=True, default=(64, 64))
    normalisation: Normalisation = eqx.field(static=True, default="none")
    precision: Precision = eqx.field(static=True, default="default")

    def __check_init__(self) -> None:
        _check_common(self)
        for width in self.widths:
            _check_count("widths", width)

    @property
    def module_names(self) -> tuple[str, ...]:
        return (*(f"dense{number + 1}" for number in range(len(self.widths))), HEAD)

    def init(self, key: Array, example_shape: tuple[int, ...]) -> tuple[Modules, Modules]:
        incoming = math.prod(example_shape)
        theta: Modules = {}
        shared: Modules = {}
        keys = jax.random.split(key, len(self.widths) + 1)
        for name, own, width in zip(self.module_names, keys, self.widths):
            theta[name] = _linear(own, incoming, width, gain=2.0)
            shared |= _affine(self.normalisation, name, width)
            incoming = width
        theta[HEAD] = _linear(keys[-1], incoming, self.ways, gain=1.0)
        return theta, shared

    def width(self, example_shape: tuple[int, ...]) -> int:
        return max(math.prod(example_shape), *self.widths, self.ways)

    def prepare(self, x: Float[Array, "n ..."]) -> Float[Array, "n d"]:
        return x.reshape(x.shape[0], -1)

    def features(self, name: str, h: Any) -> Array:
        return h

    def outgoing(self, name: str, shared: Any, z: Any) -> Array:
        if name == HEAD:
            return z
        return _normalised(jax.nn.relu(z), shared, self.normalisation)


def paper_network(data: str, ways: int = 5, **changes: Any) -> ConvNet:
    """The paper's network for `fc100` or `mini-imagenet`, a smaller one for `omniglot`."""
    presets: dict[str, dict[str, Any]] = {
        "fc100": {"channels": 64, "stride": 2, "average": True},
        "mini-imagenet": {"channels": 32, "stride": 1, "pool": True, "average": False},
        "omniglot": {"channels": 64, "stride": 2, "average": True},
    }
    if data not in presets:
        raise ValueError(f"no network is declared for {data!r}; there are: {', '.join(presets)}")
    return ConvNet(ways=ways, **(presets[data] | changes))


def pooled_network(data: str, ways: int = 5, **changes: Any) -> ConvNet:
    """The usual network for these data: 2 x 2 max-pooling, and all last pixels as inputs of the head."""
    channels = 64 if data.startswith("omniglot") else 32
    preset: dict[str, Any] = {"channels": channels, "stride": 1, "pool": True, "average": False}
    return ConvNet(ways=ways, **(preset | changes))


def network_from_config(config: dict[str, Any]) -> Network:
    """The inverse of `Network.to_config`."""
    values = dict(config)
    kinds = {"ConvNet": ConvNet, "DenseNet": DenseNet}
    kind = values.pop("kind")
    if kind not in kinds:
        raise ValueError(f"no network is called {kind!r}; there are: {', '.join(kinds)}")
    if "widths" in values:
        values["widths"] = tuple(values["widths"])
    return kinds[kind](**values)


def _check_common(network: Network) -> None:
    if network.ways < 2:
        raise ValueError(f"ways must be at least 2, got {network.ways}")
    _check_choice("normalisation", network.normalisation, NORMALISATIONS)
    _check_choice("precision", network.precision, PRECISIONS)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _check_count(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def _linear(key: Array, incoming: int, outgoing: int, gain: float) -> dict[str, Array]:
    kind = jnp.result_type(float)
    weight = jax.random.normal(key, (incoming, outgoing), kind) * jnp.sqrt(gain / incoming)
    return {"weight": weight.astype(kind), "bias": jnp.zeros(outgoing, kind)}


def _affine(normalisation: str, name: str, width: int) -> Modules:
    kind = jnp.result_type(float)
    if normalisation == "none":
        return {}
    return {name: {"scale": jnp.ones(width, kind), "shift": jnp.zeros(width, kind)}}


def _normalised(h: Array, shared: dict[str, Array], normalisation: str) -> Array:
    """Mean 0 and variance 1, over examples and pixels or over an example, then scale and shift."""
    if normalisation == "none":
        return h
    kind = shared["scale"].dtype
    axes = tuple(range(h.ndim - 1)) if normalisation == "batch" else tuple(range(1, h.ndim))
    wide = h.astype(kind)
    standard, _ = _standard(wide, axes)
    return (standard * shared["scale"] + shared["shift"]).astype(h.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _standard(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """`x` with mean 0 and variance 1 over some axes, and one over its standard deviation.

    Its derivative is written by hand: two means instead of the dozen reductions of automatic
    differentiation, and likewise in the second derivative.
    """
    mean = x.mean(axes, keepdims=True)
    # Both moments in one pass; rounding may make the variance of a constant channel negative.
    variance = jnp.maximum(jnp.square(x).mean(axes, keepdims=True) - jnp.square(mean), 0.0)
    slope = jax.lax.rsqrt(variance + _EPSILON)
    return (x - mean) * slope, slope


@_standard.defjvp
def _standard_jvp(axes, primals, tangents):
    (x,), (change,) = primals, tangents
    standard, slope = _standard(x, axes)
    level = change.mean(axes, keepdims=True)
    along = (standard * change).mean(axes, keepdims=True)
    return (standard, slope), (
        slope * (change - level - standard * along),
        -jnp.square(slope) * along,
    )


def module_sizes(theta: PyTree) -> dict[str, int]:
    """Number of parameters of each module."""
    modules = cast("Modules", theta)
    return {name: sum(leaf.size for leaf in own.values()) for name, own in modules.items()}
