"""The identity of a fit: a hash of its settings and data."""

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np


def fingerprint(*parts: Any) -> str:
    """A hash of settings and data; a fit has the same hash on every machine."""
    digest = hashlib.sha256()
    for part in parts:
        for leaf in jax.tree.leaves(part, is_leaf=lambda value: is_dataclass(value)):
            if isinstance(leaf, (np.ndarray, jax.Array)):
                array = np.asarray(leaf)
                digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
            else:
                digest.update(_words(leaf).encode())
    return digest.hexdigest()


def _words(value: Any) -> str:
    """A description without addresses in memory."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(f"{f.name}={_words(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_words, value))})"
    if isinstance(value, str | int | float | bool | None):
        return repr(value)
    leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(value) if not callable(leaf)]
    return f"{getattr(value, '__qualname__', type(value).__qualname__)}{leaves}"
