"""Arrays: which leaves are data, what is known before tracing, and one floating-point type."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array


def is_array(leaf: Any) -> bool:
    """Whether a leaf is data (traced, differentiated, replaced without recompiling)."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic)


def as_float(value: Any) -> Array:
    """A floating-point JAX array of the value, keeping its precision."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def concrete(value: Any) -> bool:
    """Whether a value is known now (and may be checked), not traced."""
    return not isinstance(value, Tracer)


def is_floating(leaf: Any) -> bool:
    """Whether a leaf is an array of floating-point numbers."""
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)


def is_number(leaf: Any) -> bool:
    """Whether a leaf is an array or a Python number."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int)
