"""Reverse KL and squared Hellinger distance of multivariate normal observations.

With z, r and the root `M = L_0^-1 L` in units of the reference's root, and W its inverse,

    KL[reference || model] = |W z|^2 / 2 + sum_i (e^(-2 r_i) - 1 + 2 r_i) / 2 + sum_(i > j) W_ij^2 / 2,
    B = z' C^-1 W z / 8 + log det(C) / 2,   C = (W + M') / 2,

where B is the Bhattacharyya distance: `L_0 M C L_0'` is the mean of the two covariances.
"""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array

from predcp._divergences._closed_form import closed_form, hellinger_from
from predcp._divergences._divergence import Coordinates, Rule, register_rules
from predcp._divergences._multivariate_normal import whitened
from predcp._numerics.special import Terms, capped_exp, exponential_excess, half


def _backwards(
    reference: Coordinates, direction: Coordinates, log_size: Array
) -> tuple[Array, Array, Array]:
    """W z and W below its diagonal, in units of the last, which is a log."""
    shift, below = whitened(reference, direction, log_size)
    dimension = shift.shape[-1]
    change = direction["log_diagonal"] * capped_exp(log_size)
    corner = jnp.tril_indices(dimension, -1)
    strict = jnp.zeros((*below.shape[:-1], dimension, dimension), below.dtype)
    strict = strict.at[..., *corner].set(below)
    # In units of e^r on the columns: M = (I + N) e^r, with N strictly below the diagonal.
    strict = strict * jnp.exp(-change)[..., None, :]
    root = jnp.eye(dimension, dtype=strict.dtype) + strict * capped_exp(log_size)[..., None]
    right = jnp.concatenate([shift[..., None], strict], -1)
    found = solve_triangular(
        jnp.broadcast_to(root, (*right.shape[:-1], dimension)),
        right,
        lower=True,
        unit_diagonal=True,
    )
    large = capped_exp(jnp.maximum(log_size, 0.0))[..., None]
    found = found * jnp.exp(-change)[..., None] * large
    # Their squares may leave floating point.
    unit = jnp.max(jnp.abs(found), axis=(-2, -1), keepdims=True)
    unit = jax.lax.stop_gradient(jnp.maximum(unit, 1.0))
    found = found / unit
    log_unit = jnp.minimum(log_size, 0.0) + jnp.log(unit[..., 0])
    return found[..., 0], found[..., 1:][..., *corner], log_unit


def _reverse_value(reference: Coordinates, direction: Coordinates, log_size: Array) -> list[Terms]:
    log_size = jnp.asarray(log_size, reference["loc"].dtype)[..., None]
    shift, below, log_unit = _backwards(reference, direction, log_size)
    return [
        (2.0 * log_unit, 0.5 * shift**2),
        (2.0 * log_unit, 0.5 * below**2),
        *half(exponential_excess(-2.0 * direction["log_diagonal"], log_size)),
    ]


def _reverse_slope(
    reference: Coordinates, direction: Coordinates, log_size: Array, velocity: Coordinates
) -> list[Terms]:
    terms, speeds = jax.jvp(
        lambda moved: _reverse_value(reference, moved, log_size), (direction,), (velocity,)
    )
    # d (e^w c) = e^w (c' + c w').
    return [
        (weight, c_speed + c * w_speed) for (weight, c), (w_speed, c_speed) in zip(terms, speeds)
    ]


def _roots(reference: Coordinates, displacement: Coordinates) -> tuple[Array, Array, Array]:
    """z, and M and W as matrices."""
    log_size = jnp.zeros((1,), displacement["loc"].dtype)
    shift, below = whitened(reference, displacement, log_size)
    dimension = shift.shape[-1]
    corner = jnp.tril_indices(dimension, -1)
    eye = jnp.eye(dimension, dtype=shift.dtype)
    root = eye * jnp.exp(displacement["log_diagonal"])[..., None]
    root = jnp.broadcast_to(root, (*below.shape[:-1], dimension, dimension))
    root = root.at[..., *corner].set(below)
    inverse = solve_triangular(root, jnp.broadcast_to(eye, root.shape), lower=True)
    return shift, root, inverse


def _distance(reference: Coordinates, displacement: Coordinates) -> list[Terms]:
    """The Bhattacharyya distance, far from equality."""
    shift, root, inverse = _roots(reference, displacement)
    middle = 0.5 * (inverse + jnp.swapaxes(root, -1, -2))
    # Its square may leave floating point.
    unit = jax.lax.stop_gradient(jnp.maximum(jnp.max(jnp.abs(shift), -1, keepdims=True), 1.0))
    scaled = (shift / unit)[..., None]
    solved = jnp.linalg.solve(middle, inverse @ scaled)
    mean = jnp.sum(scaled * solved, axis=(-2, -1)) / 8.0
    return [
        (2.0 * jnp.log(unit[..., 0]), mean),
        (jnp.zeros_like(mean), 0.5 * jnp.linalg.slogdet(middle)[1]),
    ]


def _length(reference: Coordinates, direction: Coordinates) -> Array:
    """Root of the sum of squares of z, of M without the identity, and of r, to first order."""
    start = {
        name: jnp.broadcast_to(each, direction[name].shape) for name, each in reference.items()
    }
    shift, below = whitened(start, direction, jnp.full((1,), -jnp.inf, direction["loc"].dtype))
    parts = jnp.concatenate([shift, below, direction["log_diagonal"]], axis=-1)
    return jnp.sqrt(jnp.sum(parts**2, axis=-1))


_bhattacharyya = closed_form(
    _distance,
    ("loc", "log_diagonal", "below"),
    bounded=False,
    event_axes=1,
    length=_length,
)

register_rules(
    dist.MultivariateNormal,
    reverse_kl=Rule(_reverse_value, _reverse_slope, bounded=False),
    squared_hellinger=hellinger_from(_bhattacharyya),
)
