"""Functions drawn from the prior of a network (appendix: induced priors over functions)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from predcp._divergence_priors import LogCauchy
from predcp._maps import DepthComplexity
from predcp._prior import ComplexityPrior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FunctionPrior = Literal["normal", "horseshoe", "predcp"]
PRIORS: tuple[FunctionPrior, ...] = ("normal", "horseshoe", "predcp")
_TITLES = {"normal": "normal", "horseshoe": "horseshoe", "predcp": "PredCP"}


def prior_functions(
    prior: FunctionPrior,
    layers: int,
    x: Any,
    residual: bool = True,
    functions: int = 5,
    width: int = 50,
    noise_draws: int = 5,
    seed: int = 0,
    pi: Any = None,
) -> Float[np.ndarray, "functions points"]:
    """Functions of one input drawn from a network's prior, before the noise.

    Hidden states are normalised over the points before the weights, as in the paper.
    First-layer weights and biases and output weights are standard normal, the output's over
    sqrt(H).

    **Arguments**
    - `prior`: `normal` (tau = 1), `horseshoe` (sqrt(tau) ~ C+(0, 1)) or `predcp` with `pi`
        (log-Cauchy(0, 1)) on the divergence of normal observations with variance 1.
    - `layers`: hidden layers with a scale; `x`: where, (N,).
    - `noise_draws`: draws of the weights that the PredCP's map averages over.
    """
    if prior not in PRIORS:
        raise ValueError(f"prior must be one of {', '.join(map(repr, PRIORS))}, got {prior!r}")
    points = np.asarray(x, float)
    if points.ndim != 1 or not points.size or not np.isfinite(points).all():
        raise ValueError(f"x must be finite numbers in one axis, got shape {points.shape}")
    if layers < 1 or functions < 1 or width < 1 or noise_draws < 1:
        raise ValueError("layers, functions, width and noise_draws must be at least 1")
    keys = jax.random.split(jax.random.key(seed), functions)
    pi = LogCauchy(scale=1.0) if pi is None else pi
    inputs = jnp.asarray(points)[:, None]

    def one(key: Array) -> Array:
        return _function(prior, layers, inputs, residual, width, noise_draws, pi, key)

    return np.asarray(jax.jit(lambda keys: lax.map(one, keys))(keys))


def _function(
    prior: str,
    layers: int,
    x: Array,
    residual: bool,
    width: int,
    noise_draws: int,
    pi: Any,
    key: Array,
) -> Float[Array, " points"]:
    keys = jax.random.split(key, 6)
    first = jax.nn.relu(
        x @ jax.random.normal(keys[0], (1, width)) + jax.random.normal(keys[1], (width,))
    )
    output = jax.random.normal(keys[2], (width, 1)) / np.sqrt(width)
    # Rows of unit scale add up over the width: 1 / H makes a layer's size independent of it.
    unit = 1.0 / np.sqrt(width)
    if prior == "normal":
        log_tau = jnp.zeros(layers)
    elif prior == "horseshoe":
        log_tau = 2.0 * jnp.log(jnp.abs(jax.random.cauchy(keys[3], (layers,))))
    else:
        noise = unit * jax.random.normal(keys[4], (noise_draws, layers, width, width))
        complexity = DepthComplexity(first, noise, output, residual=residual, normalize="batch")
        log_tau = ComplexityPrior(pi, complexity).log_scale().sample(keys[3])
    weights = unit * jax.random.normal(keys[5], (layers, width, width))

    def layer(hidden, parameters):
        log_scale, matrix = parameters
        centred = hidden - hidden.mean(0)
        normal = centred * lax.rsqrt(jnp.mean(centred**2, 0) + 1e-5)
        rise = jnp.exp(0.5 * log_scale) * jax.nn.relu(normal @ matrix)
        return (hidden + rise if residual else rise), None

    hidden, _ = lax.scan(layer, first, (log_tau, weights))
    return (hidden @ output)[:, 0]


def plot_prior_functions(
    layers: tuple[int, ...] = (5, 25),
    residual: bool = True,
    x: Any = None,
    functions: int = 5,
    seed: int = 0,
    **options: Any,
) -> Figure:
    """Rows: depths; columns: priors. The figure of the appendix.

    **Arguments**: as `prior_functions`; `x` from -3 to 3 when None.
    """
    import matplotlib.pyplot as plt

    points = np.linspace(-3.0, 3.0, 200) if x is None else np.asarray(x)
    figure, axes = plt.subplots(
        len(layers), len(PRIORS), figsize=(9, 2.6 * len(layers)), sharex=True, squeeze=False
    )
    for row, depth in zip(axes, layers):
        for ax, prior in zip(row, PRIORS):
            drawn = prior_functions(prior, depth, points, residual, functions, seed=seed, **options)
            ax.plot(points, drawn.T, linewidth=1.2)
            kind = "residual" if residual else "plain"
            ax.set_title(f"{_TITLES[prior]}, {depth} layers, {kind}", fontsize=9)
    figure.tight_layout()
    return figure
