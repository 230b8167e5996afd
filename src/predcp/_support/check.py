"""Argument checks: before any tracing, name the argument, what it got and what it needs."""

from collections.abc import Collection
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


def require_whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def require_weights(name: str, value: Any) -> Array:
    """Non-negative numbers that are not all 0."""
    array = require_positive(name, value, zero=True)
    numbers = known(array)
    if numbers is not None and not np.any(numbers > 0.0):
        raise ValueError(f"{name} are all 0: D would have no observations")
    return array


def require_broadcast(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array that is not one number per point of a batch."""
    own = np.shape(array)
    padded = (1,) * (len(shape) - len(own)) + own
    if len(padded) > len(shape) or any(size not in (1, all_) for size, all_ in zip(padded, shape)):
        raise ValueError(
            f"{name} must broadcast to the batch shape {shape} of the observations, got shape {own}"
        )


def refuse_moving_angles(family: Any, angles: tuple[str, ...], moving: Collection[str]) -> None:
    """Refuse a map that moves an angle: it comes back to the reference after each turn."""
    for name in angles:
        if name in moving:
            raise ValueError(
                f"the scale moves {name} of {family.__name__} observations round the circle, so that D is "
                f"not increasing: hold {name} fixed and let the scale move another parameter"
            )
