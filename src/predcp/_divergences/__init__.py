"""Divergences between observation distributions, stable near equality and at saturation."""

from predcp._divergences import (  # noqa: F401  (each registers its family)
    _bernoulli,
    _categorical,
    _normal,
    _poisson,
    _student_t,
)
from predcp._divergences._divergence import (
    Divergence,
    jensen_shannon,
    kl,
    register_divergence,
    reverse_kl,
    squared_hellinger,
)

__all__ = [
    "Divergence",
    "jensen_shannon",
    "kl",
    "register_divergence",
    "reverse_kl",
    "squared_hellinger",
]
