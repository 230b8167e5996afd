"""The network: an input layer, residual (or plain) hidden layers, a linear output."""

import operator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from predcp._support.check import require_whole

Normalization = Literal["layer"] | None
# Deeper networks are compiled as a loop, which keeps compilation fast.
UNROLLED_LAYERS = 3


class Weights(NamedTuple):
    """All weight matrices of a network, or one number for each of their entries.

    **Arguments**
    - `body`: the rows of the input matrix and of the hidden matrices below it, (D + L H, H).
    - `head`: of the output matrix, (H, K).
    """

    body: Float[Array, "rows width"]
    head: Float[Array, "width outputs"]


class Biases(NamedTuple):
    """Biases of the hidden layers, (L + 1, H), the input layer first, and of the outputs, (K,)."""

    hidden: Float[Array, "layers width"]
    output: Float[Array, " outputs"]


@dataclass(frozen=True)
class Network:
    """`h_0 = f(x W_0 + b_0)`, `h_l = h_(l-1) + f(h_(l-1) W_l + b_l)`, outputs `h_L W_out + b_out`.

    f is the rectified linear unit.

    **Arguments**
    - `inputs`, `width`, `layers`, `outputs`: D, H, L (layers with a skip; the paper has one) and K.
    - `residual`: False leaves the skip out.
    - `normalize`: "layer" centres and scales h before the weights of a hidden layer.
    """

    inputs: int
    width: int
    layers: int
    outputs: int = 1
    residual: bool = True
    normalize: Normalization = None

    def __post_init__(self) -> None:
        least = {"inputs": 1, "width": 1, "layers": 0, "outputs": 1}
        for name, low in least.items():
            require_whole(name, getattr(self, name), low)
        if self.normalize not in (None, "layer"):
            raise ValueError(f'normalize must be None or "layer", got {self.normalize!r}')

    @property
    def rows(self) -> int:
        """Number of rows of `Weights.body`."""
        return self.inputs + self.layers * self.width

    @property
    def weights(self) -> int:
        """Number of weights, without biases."""
        return self.rows * self.width + self.width * self.outputs

    def split(
        self, body: Float[Array, "rows width"]
    ) -> tuple[Float[Array, "inputs width"], Float[Array, "layers width width"]]:
        """The input matrix and the stack of hidden ones."""
        hidden = body[self.inputs :].reshape(self.layers, self.width, self.width)
        return body[: self.inputs], hidden

    def by_layer(self, rows: Float[Array, "rows"]) -> Float[Array, "layers width"]:
        """Values of the rows of the hidden matrices, layer by layer."""
        return rows[self.inputs :].reshape(self.layers, self.width)

    def of_rows(self, values: Float[Array, " layers"]) -> Float[Array, " rows"]:
        """Repeat the value of each hidden layer over its rows; zero for the input rows."""
        inputs = jnp.zeros(self.inputs, values.dtype)
        return jnp.concatenate([inputs, jnp.repeat(values, self.width)])

    def normalized(self, hidden: Float[Array, "... width"]) -> Float[Array, "... width"]:
        """The hidden states that a hidden layer's weights multiply."""
        if self.normalize is None:
            return hidden
        centred = hidden - hidden.mean(-1, keepdims=True)
        return centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)

    def first(
        self, weights: Weights, biases: Biases, x: Float[Array, "points inputs"]
    ) -> Float[Array, "points width"]:
        """`h_0`, the output of the input layer."""
        return jax.nn.relu(x @ weights.body[: self.inputs] + biases.hidden[0])

    def apply(
        self, weights: Weights, biases: Biases, x: Float[Array, "points inputs"]
    ) -> Float[Array, "points outputs"]:
        """The outputs for one set of weights."""
        _, hidden_weights = self.split(weights.body)

        def layer(hidden, parameters):
            matrix, bias = parameters
            rise = jax.nn.relu(self.normalized(hidden) @ matrix + bias)
            return hidden + rise if self.residual else rise

        hidden = self.through(
            layer, self.first(weights, biases, x), (hidden_weights, biases.hidden[1:])
        )
        return hidden @ weights.head + biases.output

    def through(self, layer: Any, hidden: Any, parameters: Any) -> Any:
        """`h_L` from `h_0`: apply `layer(h, parameters of a layer)` once per hidden layer."""
        if self.layers > UNROLLED_LAYERS:
            return lax.scan(lambda h, each: (layer(h, each), None), hidden, parameters)[0]
        for number in range(self.layers):
            hidden = layer(hidden, jax.tree.map(operator.itemgetter(number), parameters))
        return hidden
