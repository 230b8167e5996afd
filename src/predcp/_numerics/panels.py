"""Panels of Gauss's rule that resolve two location-scale densities at once.

The reference is at 0 with scale 1, the model at `shift` with scale `e^change`. The panels' edges are
those of either density, sorted: each panel is then short for both, however different their scales
and however far apart they are. A node is given as `y`, relative to the reference, and as `z`, relative to
the model in the model's units: each is exact near its own centre, where the other would cancel.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = 0.5 + 0.5 * _NODES, 0.5 * _WEIGHTS


class Nodes(NamedTuple):
    """Nodes on a trailing axis: their two positions and the log of their weight in y."""

    y: Float[Array, "... nodes"]
    z: Float[Array, "... nodes"]
    log_weight: Float[Array, "... nodes"]


def largest_change(dtype) -> float:
    """Largest |change| of the log scale that the nodes resolve."""
    return -1.1 * math.log(float(jnp.finfo(dtype).eps))


def nodes(shift: Array, change: Array, edges: np.ndarray) -> Nodes:
    """Nodes for both densities.

    **Arguments**: `shift` and `change`, of one shape, the second at most `largest_change`; `edges`, of
    the panels of a density at 0 with scale 1, in increasing order.
    """
    kind = shift.dtype
    own = jnp.broadcast_to(jnp.asarray(edges, kind), (*shift.shape, len(edges)))
    shift, change = shift[..., None], change[..., None]
    most = float(jnp.finfo(kind).max) ** 0.35
    y = jnp.concatenate([own, shift + jnp.exp(change) * own], -1)
    z = jnp.concatenate([(own - shift) * jnp.exp(-change), own], -1)
    y, z = jnp.clip(y, -most, most), jnp.clip(z, -most, most)
    of_model = jnp.arange(2 * len(edges)) >= len(edges)
    order = jnp.argsort(y, axis=-1, stable=True)
    y, z = jnp.take_along_axis(y, order, -1), jnp.take_along_axis(z, order, -1)
    of_model = of_model[order]
    # Measure the model's panels in its own units: far away they have no width in y.
    inner = of_model[..., 1:] & of_model[..., :-1]
    y_width, z_width = jnp.diff(y), jnp.diff(z)
    width = jnp.where(inner, jnp.exp(change) * z_width, y_width)
    present = width > 0.0
    log_width = jnp.where(present, jnp.log(jnp.where(present, width, 1.0)), -jnp.inf)

    def spread(start: Array, width: Array) -> Array:
        return start[..., :-1, None] + width[..., None] * jnp.asarray(_NODES, kind)

    flat = (*y.shape[:-1], -1)
    log_weight = log_width[..., None] + jnp.asarray(np.log(_WEIGHTS), kind)
    return Nodes(
        spread(y, y_width).reshape(flat),
        spread(z, z_width).reshape(flat),
        log_weight.reshape(flat),
    )
