"""Depth-wise complexity: what each layer adds to the predictions of the layers below it."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Float

from predcp._divergences import (
    Divergence,
    Member,
    abstract_members,
    coordinates_of,
    kl,
    log_mean_and_elasticity,
)
from predcp._maps._complexity import VectorComplexity
from predcp._maps._sampled import sampled
from predcp._numerics.displacement import displacement
from predcp._numerics.homogeneity import power_of
from predcp._numerics.inverse import Evaluate
from predcp._numerics.normal_noise import normal_noise
from predcp._numerics.power_law import extrapolated, floating_range
from predcp._support.arrays import concrete
from predcp._support.check import known, require_callable, require_finite
from predcp._support.compiled import compiled

Normalization = Literal["layer", "batch"] | None
Reference = Literal["off", "short-circuit"]


def unit_normal(outputs: Float[Array, "points outputs"]) -> dist.Distribution:
    """Normal observations with unit noise, the default likelihood."""
    return dist.Normal(outputs, jnp.ones((), outputs.dtype)).to_event(1)


class _State(NamedTuple):
    """Hidden states `exp(log_size) * hidden`, with `hidden` kept near size one, row by row."""

    hidden: Float[Array, "draws points width"]
    log_size: Float[Array, "draws points"]


class _Layer(NamedTuple):
    """One layer's standardised weights, and its bias if it has one."""

    weights: Float[Array, "draws width width"]
    bias: Float[Array, " width"] | None


class _Outputs(NamedTuple):
    """Outputs below a layer, and what its branch adds, both per unit of size."""

    below: Float[Array, "draws points outputs"]
    rise: Float[Array, "draws points outputs"]
    log_size: Float[Array, "draws points"]


class DepthComplexity(VectorComplexity):
    """`kappa_l = D_l(tau_l; tau_1..tau_(l-1))`, all layers in one pass (Equations 10 and 11).

    Residual: `h_l = h_(l-1) + f(h_(l-1) sqrt(tau_l) W_l + b_l)`, plain: without the skip. Layer l
    is compared with the same network whose `W_l` is zero, both read out by the output weights.
    The Jacobian is lower triangular, and the inverse a forward substitution. `tau_l` is the
    **variance** of layer l's weights.

    **Arguments**
    - `hidden`: h_0, shape (N, H), or (S, N, H) with one per draw; for inputs x: `f(x @ W_in)`.
    - `weights`: standard normal draws of the L weight matrices, shape (S, L, H, H), times any row
        scales.
    - `output_weights`: shape (H, K), or (S, H, K) with one per draw.
    - `likelihood`: a function from outputs (N, K) to a NumPyro distribution; unit normal by default.
    - `activation`: f, a function of an array (N, H).
    - `biases`: shape (L, H), kept by the reference too; None for none.
    - `residual`: False for a plain network.
    - `normalize`: None, "layer" or "batch": normalise h *before* the weights, which keeps deep
        networks in floating point and D linear in tau.
    - `reference`: "off" as above; "short-circuit" compares a plain network's h_l with h_(l-1)
        literally; that is not a bijection, and serves to show the report of `diagnose`.
    - `divergence`: as in `PredictiveComplexity`.
    """

    unit = "variance"

    def __init__(
        self,
        hidden: Any,
        weights: Any,
        output_weights: Any,
        likelihood: Callable[[Array], Any] = unit_normal,
        activation: Callable[[Array], Array] = jax.nn.relu,
        biases: Any = None,
        residual: bool = True,
        normalize: Normalization = None,
        reference: Reference = "off",
        divergence: Divergence = kl,
    ):
        self.weights = require_finite("weights", weights)
        if self.weights.ndim != 4 or self.weights.shape[-1] != self.weights.shape[-2]:
            raise ValueError(f"weights must have shape (S, L, H, H), got {self.weights.shape}")
        draws, layers, width, _ = self.weights.shape
        if 0 in self.weights.shape:
            raise ValueError(f"weights must have S, L, H >= 1, got shape {self.weights.shape}")
        self.hidden = require_finite("hidden", hidden)
        if self.hidden.ndim not in (2, 3) or self.hidden.shape[-1] != width:
            raise ValueError(
                f"hidden must have shape (N, {width}) or ({draws}, N, {width}), got {self.hidden.shape}"
            )
        if self.hidden.ndim == 3 and self.hidden.shape[0] != draws:
            raise ValueError(f"hidden must have {draws} draws first, got {self.hidden.shape}")
        self.output_weights = require_finite("output_weights", output_weights)
        if self.output_weights.shape[:-1] not in ((width,), (draws, width)):
            raise ValueError(
                f"output_weights must have shape ({width}, K) or ({draws}, {width}, K), "
                f"got {self.output_weights.shape}"
            )
        self.biases = None if biases is None else require_finite("biases", biases)
        if self.biases is not None and self.biases.shape != (layers, width):
            raise ValueError(f"biases must have shape ({layers}, {width}), got {self.biases.shape}")
        self.likelihood = require_callable("likelihood", likelihood, "(outputs)")
        self.activation = require_callable("activation", activation, "(hidden @ weights)")
        if normalize not in (None, "layer", "batch"):
            raise ValueError(f'normalize must be None, "layer" or "batch", got {normalize!r}')
        if reference not in ("off", "short-circuit"):
            raise ValueError(f'reference must be "off" or "short-circuit", got {reference!r}')
        if reference == "short-circuit" and residual:
            raise ValueError('reference="short-circuit" is for plain networks: set residual=False')
        self.residual, self.normalize, self.reference = residual, normalize, reference
        self.divergence = divergence
        # Found once: a map rebuilt from new arrays has the same program.
        self.bounded = all(divergence.rule(member.family).bounded for member in self._members())
        self.homogeneous = self._is_proportional(to_hidden=False)
        self.rescalable = self._is_proportional(to_hidden=True)
        self.affine_head = self._has_affine_head()
        if reference == "short-circuit" and not (self.homogeneous and self.affine_head):
            raise ValueError(
                'reference="short-circuit" needs an activation with f(a t) = a f(t), no biases, and a '
                "likelihood whose location or logits are the outputs"
            )

        self._check_alive()

    def _check_alive(self) -> None:
        """Every layer must change some prediction for some draw, or its D is constant."""
        inputs = (self.hidden, self.weights, self.output_weights)
        if not all(concrete(leaf) for leaf in inputs):
            return
        hidden = jnp.broadcast_to(self.hidden, (self.weights.shape[0], *self.hidden.shape[-2:]))
        for index in range(self.weights.shape[1]):
            bias = None if self.biases is None else self.biases[index]
            branch = jax.vmap(self._branch, in_axes=(0, 0, None))
            rise = branch(hidden, self.weights[:, index], bias)
            rest = branch(hidden, jnp.zeros_like(self.weights[:, index]), bias)
            moved = known(self._read_out(rise - rest))
            if moved is None:
                return
            if not np.any(moved):
                raise ValueError(
                    f"layer {index + 1} is dead: with these weights it changes no prediction for any "
                    "draw, so its complexity is constant; use more draws, or biases"
                )
            hidden = hidden + rise if self.residual else rise
            # Only whether it is zero matters: keep deep networks within floating point.
            hidden = hidden / jnp.maximum(1.0, jnp.max(jnp.abs(hidden)))

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (self.weights.shape[1],)

    @property
    def _points(self) -> int:
        return self.hidden.shape[-2]

    def _members(self) -> list[Member]:
        """Families and shapes of the observations."""
        shape = (self._points, self.output_weights.shape[-1])
        return abstract_members(self.likelihood, jax.ShapeDtypeStruct(shape, self.weights.dtype))

    def _coordinates(self, outputs: Array) -> list[dict[str, Array]]:
        return coordinates_of(self.likelihood, outputs)

    def _normalized(self, hidden: Array) -> Array:
        if self.normalize is None:
            return hidden
        axis = -1 if self.normalize == "layer" else -2
        centred = hidden - hidden.mean(axis, keepdims=True)
        return centred * lax.rsqrt(jnp.mean(centred**2, axis, keepdims=True) + 1e-5)

    def _branch(self, hidden: Array, weights: Array, bias: Array | None) -> Array:
        """`f(h W + b)` for one draw."""
        inner = self._normalized(hidden) @ weights
        return self.activation(inner if bias is None else inner + bias)

    def _is_proportional(self, to_hidden: bool) -> bool:
        """Whether the branch is proportional to the size of its hidden states, or of its weights."""
        hidden = self.hidden if self.hidden.ndim == 2 else self.hidden[0]
        bias = None if self.biases is None else self.biases[0]

        def branch(t, h, w):
            return self._branch(t * h, w, bias) if to_hidden else self._branch(h, t * w, bias)

        one = jnp.ones((), self.weights.dtype)
        return power_of(branch, one, hidden, self.weights[0, 0]) == (1, True)

    def _has_affine_head(self) -> bool:
        """Whether the coordinates of the observations are affine in the outputs."""
        outputs = jnp.ones((self._points, self.output_weights.shape[-1]), self.weights.dtype)
        moved = power_of(
            lambda t, f, d: self._coordinates(f + t * d),
            jnp.ones((), outputs.dtype),
            outputs,
            outputs,
        )
        return moved is not None and moved[0] == 1

    def _read_out(self, hidden: Array) -> Array:
        return jnp.einsum(
            "snh,shk->snk" if self.output_weights.ndim == 3 else "snh,hk->snk",
            hidden,
            self.output_weights,
        )

    def _start(self) -> _State:
        draws = self.weights.shape[0]
        hidden = jnp.broadcast_to(self.hidden, (draws, *self.hidden.shape[-2:]))
        state = _State(hidden, jnp.zeros(hidden.shape[:-1], hidden.dtype))
        return _rescaled(state) if self.rescalable else state

    def _layers(self) -> _Layer:
        return _Layer(jnp.moveaxis(self.weights, 1, 0), self.biases)

    def _layer(
        self, state: _State, layer: _Layer, keep: int = 0
    ) -> tuple[Evaluate, Callable[[Array], _State]]:
        """One layer as a map of its own scale, and the state above it at a scale."""
        if self.homogeneous and self.affine_head:
            branch = self._branches(state, layer)
            evaluate = self._evaluate(self._moved(self._outputs(state, branch)), keep)
            return evaluate, lambda log_tau: self._above(state, branch, log_tau)
        moved, advance = self._general_layer(state, layer, self._limit)
        return self._evaluate(moved, keep), advance

    @property
    def _limit(self) -> float:
        return floating_range(self.weights.dtype)

    def _evaluate(self, moved: Callable[[Array], Any], keep: int) -> Evaluate:
        """The map from a scale to the log divergence and its elasticity, given how the outputs move."""
        found = self._members()

        def evaluate(log_tau):
            reference, directions, log_size, velocities = moved(log_tau)
            sizes = [_row_size(log_size, m, d) for m, d in zip(found, directions)]
            return log_mean_and_elasticity(
                self.divergence, found, reference, directions, sizes, velocities, keep
            )

        return extrapolated(evaluate, 2.0 * self._limit)

    # A layer that moves the outputs as sqrt(tau): one product with W serves every scale.

    def _branches(self, state: _State, layer: _Layer) -> Float[Array, "draws points width"]:
        branch = jax.vmap(self._branch, in_axes=(0, 0, None))
        return branch(state.hidden, layer.weights, layer.bias)

    def _outputs(self, state: _State, branch: Array) -> _Outputs:
        return _Outputs(self._read_out(state.hidden), self._read_out(branch), state.log_size)

    def _moved(self, outputs: _Outputs) -> Callable[[Array], Any]:
        limit, (below, rise, layer_size) = self._limit, outputs
        size = jnp.minimum(layer_size, limit)
        start = jnp.exp(size)[..., None] * below
        if not self.residual and self.reference == "off":
            start = jnp.zeros_like(start)
        reference = jax.vmap(self._coordinates)(start)

        def along(outputs):
            return jax.jvp(jax.vmap(self._coordinates), (start,), (outputs,))[1]

        unit = along(rise) if self.reference == "off" else None

        def moved(log_tau):
            half = jnp.clip(0.5 * log_tau, -limit, limit)
            if unit is not None:
                # Quadratic divergences are exact at any size; bounded ones are saturated at the limit.
                log_size = layer_size + half
                log_size = log_size if not self.bounded else jnp.minimum(log_size, limit)
                return reference, unit, log_size, jax.tree.map(lambda leaf: 0.5 * leaf, unit)
            lift = jnp.maximum(half, 0.0)
            up, down = jnp.exp(half - lift) * rise, jnp.exp(-lift) * below
            return reference, along(up - down), size + lift, along(0.5 * up)

        return moved

    def _above(self, state: _State, branch: Array, log_tau: Array) -> _State:
        half = jnp.clip(0.5 * log_tau, -self._limit, self._limit)
        if not self.rescalable:
            rise = jnp.exp(half) * branch
            return state._replace(hidden=state.hidden + rise if self.residual else rise)
        lift = jnp.maximum(half, 0.0)
        if self.residual:
            hidden = jnp.exp(-lift) * state.hidden + jnp.exp(half - lift) * branch
            return _rescaled(_State(hidden, state.log_size + lift))
        return _rescaled(_State(branch, state.log_size + 0.5 * log_tau))

    def _general_layer(self, state: _State, layer: _Layer, limit: float):
        """A layer with a bias inside the activation, or any other activation or likelihood."""
        zero = jnp.zeros_like(layer.weights)

        def branch(hidden, weights):
            return self._branch(hidden, weights, layer.bias)

        def above(hidden, rise):
            return hidden + rise if self.residual else rise

        def coordinates(weights):
            rise = jax.vmap(branch)(state.hidden, weights)
            return jax.vmap(self._coordinates)(self._read_out(above(state.hidden, rise)))

        def moved(log_tau):
            weights = jnp.exp(jnp.clip(0.5 * log_tau, -limit, limit)) * layer.weights
            if not self.affine_head:
                start = coordinates(zero)
                shift, speed = displacement(
                    coordinates, weights, 0.5 * weights, weights, zero, start
                )
                return start, shift, jnp.zeros(()), speed
            # Use the displacement of the branch alone: subtracting the skip connection would lose digits.
            origin = jax.vmap(branch)(state.hidden, zero)
            shift, speed = displacement(
                lambda w: jax.vmap(branch)(state.hidden, w),
                weights,
                0.5 * weights,
                weights,
                zero,
                origin,
            )
            start = self._read_out(above(state.hidden, origin))
            head = jax.vmap(self._coordinates)

            def along(rise):
                return jax.jvp(head, (start,), (self._read_out(rise),))[1]

            return head(start), along(shift), jnp.zeros(()), along(speed)

        def advance(log_tau):
            weights = jnp.exp(jnp.clip(0.5 * log_tau, -limit, limit)) * layer.weights
            rise = jax.vmap(branch)(state.hidden, weights)
            return state._replace(hidden=above(state.hidden, rise))

        return moved, advance

    def _visit_entries(self, visit, values, keep: int = 0):
        def step(state: _State, inputs: tuple[_Layer, Any]):
            layer, own = inputs
            evaluate, advance = self._layer(state, layer, keep)
            log_tau, result = visit(evaluate, lambda: self._bound(evaluate), own)
            return advance(log_tau), result

        return lax.scan(step, self._start(), (self._layers(), values))[1]

    def _value_and_elasticity(self, log_tau):
        if not (self.homogeneous and self.affine_head):
            return super()._value_and_elasticity(log_tau)

        def step(state: _State, inputs: tuple[_Layer, Array]):
            layer, scale = inputs
            branch = self._branches(state, layer)
            return self._above(state, branch, scale), self._outputs(state, branch)

        def of(scales: Array):
            # Only the hidden states need the layers one by one; the divergences are taken at once.
            _, outputs = lax.scan(step, self._start(), (self._layers(), scales))
            each = jax.vmap(lambda outputs, scale: self._evaluate(self._moved(outputs), 0)(scale))
            return each(outputs, scales)

        return self._each_vector(of, log_tau)

    @property
    def cost(self) -> int:  # type: ignore[override]
        return 2 * self.weights.shape[0] * self._points * self.weights.shape[-1]

    def _bound(self, evaluate: Evaluate) -> Array:
        if not self.bounded:
            return jnp.asarray(jnp.inf, self.weights.dtype)
        return evaluate(jnp.asarray(self._limit, self.weights.dtype))[0]

    def simulate(self, tau: Float[Array, " layers"], key: Array) -> Any:
        """Observations of the whole network at the scales, with fresh standard normal weights.

        Hidden inputs and output weights are those of a randomly chosen draw.
        """
        key_noise, key_choice, key_data = jax.random.split(key, 3)
        chosen = jax.random.randint(key_choice, (), 0, self.weights.shape[0])
        hidden = self.hidden if self.hidden.ndim == 2 else self.hidden[chosen]
        output = (
            self.output_weights if self.output_weights.ndim == 2 else self.output_weights[chosen]
        )
        noise = normal_noise(key_noise, 1, self.weights[0])[0]

        def step(hidden, layer):
            scale, weights, bias = layer
            rise = self._branch(hidden, jnp.sqrt(scale) * weights, bias)
            return (hidden + rise if self.residual else rise), None

        hidden, _ = lax.scan(step, hidden, (tau, noise, self.biases))
        return sampled(self.likelihood(hidden @ output), key_data)

    @compiled()
    def log_value_by_draw(self, log_tau: Float[Array, " layers"]) -> Float[Array, "draws layers"]:
        """`log` of each divergence under each draw alone, for its Monte Carlo error."""

        def visit(evaluate: Evaluate, _: Any, own: Array):
            return own, evaluate(own)[0]

        return self._visit_entries(visit, log_tau, keep=1).T


def _row_size(log_size: Array, member: Any, direction: dict[str, Array]) -> Array:
    """The size of each row, with axes added to broadcast over the row's arrays."""
    rank = max(leaf.ndim for leaf in direction.values()) - member.class_axes
    return log_size.reshape(log_size.shape + (1,) * max(0, rank - log_size.ndim))


def _rescaled(state: _State) -> _State:
    """The same hidden states with the largest entry of each row of size one."""
    largest = lax.stop_gradient(jnp.max(jnp.abs(state.hidden), axis=-1))
    unit = jnp.where(largest > 0.0, largest, 1.0)
    return _State(state.hidden / unit[..., None], state.log_size + jnp.log(unit))
