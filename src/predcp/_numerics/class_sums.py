"""Sums and maxima over the classes of a softmax, usually few."""

from functools import reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array

# Up to this number of classes a sum is written out: a compiler fuses additions with the code around
# them, but makes a separate loop of every reduction.
_WRITTEN_OUT = 8


def _classes(values: Array) -> list[Array]:
    return [values[..., place : place + 1] for place in range(values.shape[-1])]


def class_sum(values: Array) -> Array:
    """Over classes, which stay as an axis of one."""
    if values.shape[-1] > _WRITTEN_OUT:
        return jnp.sum(values, axis=-1, keepdims=True)
    return reduce(jnp.add, _classes(values))


def class_max(values: Array) -> Array:
    """Over classes, which stay as an axis of one."""
    if values.shape[-1] > _WRITTEN_OUT:
        return jnp.max(values, axis=-1, keepdims=True)
    return reduce(jnp.maximum, _classes(values))


def top_class(logits: Array) -> Array:
    """The most probable class, the first of equals."""
    logits = jax.lax.stop_gradient(logits)
    if logits.shape[-1] > _WRITTEN_OUT:
        return jnp.argmax(logits, axis=-1, keepdims=True)
    best, *others = _classes(logits)
    place = jnp.zeros(best.shape, int)
    for number, other in enumerate(others, 1):
        better = other > best
        best, place = jnp.where(better, other, best), jnp.where(better, number, place)
    return place


def from_top_class(values: Array, top: Array) -> Array:
    """Values minus that of the top class, whose own difference is exactly 0 for any rounding."""
    own = jnp.arange(values.shape[-1]) == top
    # A sum of one term, not a look-up: the derivative of a look-up scatters, which a GPU does slowly.
    return jnp.where(own, 0.0, values - class_sum(jnp.where(own, values, 0.0)))


def log_softmax_from_top(from_top: Array) -> Array:
    """Log probabilities from logits relative to the largest; they cannot overflow."""
    below = jnp.minimum(from_top, 0.0)
    return below - jnp.log(class_sum(jnp.exp(below)))
