"""Argument checks: name the argument, what it got and what it needs, before any tracing."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from predcp._support.arrays import as_float, concrete


def known(value: Any) -> np.ndarray | None:
    """The value as a NumPy array where it is known now, None while it is traced."""
    if all(concrete(leaf) for leaf in jax.tree.leaves(value)):
        return np.asarray(value)
    return None


def require_finite(name: str, value: Any) -> Array:
    """A floating-point array without NaN or infinity."""
    numbers = known(value)
    if numbers is not None:
        if numbers.dtype.kind not in "fiub" and not jax.numpy.issubdtype(
            numbers.dtype, np.floating
        ):
            raise ValueError(f"{name} must be numbers, got {type(value).__name__} {value!r:.60}")
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"{name} must be finite, got NaN or infinity in shape {numbers.shape}")
    return as_float(value)


def require_positive(name: str, value: Any, zero: bool = False) -> Array:
    """A floating-point array of positive (with `zero`: non-negative) numbers."""
    array = require_finite(name, value)
    numbers = known(value)
    if numbers is not None and not np.all(numbers >= 0.0 if zero else numbers > 0.0):
        wanted = "non-negative" if zero else "positive"
        raise ValueError(f"{name} must be {wanted}, got a minimum of {float(numbers.min()):.6g}")
    return array


def require_design(name: str, value: Any, scalar: bool = False) -> Array:
    """A finite design matrix, shape (..., N, D), at least one row and column."""
    array = require_finite(name, value)
    if scalar and array.ndim < 2:
        array = array.reshape((-1, 1))
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(f"{name} must have shape (N, D) with N, D >= 1, got {array.shape}")
    return array


def require_probability(name: str, value: Any) -> Array:
    """Numbers strictly between 0 and 1."""
    array = require_finite(name, value)
    numbers = known(value)
    if numbers is not None and not np.all((numbers > 0.0) & (numbers < 1.0)):
        raise ValueError(f"{name} must be strictly between 0 and 1, got {numbers}")
    return array


def require_callable(name: str, value: Any, signature: str) -> Any:
    """A function with the given signature."""
    if not callable(value):
        raise ValueError(f"{name} must be a function {signature}, got {type(value).__name__}")
    return value
