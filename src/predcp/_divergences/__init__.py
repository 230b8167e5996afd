"""Divergences between observation distributions, stable near equality and at saturation."""

import numpyro.distributions as dist

from predcp._divergences import (  # noqa: F401  (each registers its family)
    _bernoulli,
    _categorical,
    _dirichlet,
    _gamma,
    _laplace,
    _multivariate_normal,
    _negative_binomial,
    _normal,
    _poisson,
    _student_t,
    _weibull,
)
from predcp._divergences._divergence import (
    Coordinates,
    Divergence,
    Member,
    abstract_members,
    coordinates_of,
    families,
    jensen_shannon,
    kl,
    log_mean_and_elasticity,
    members,
    register_divergence,
    reverse_kl,
    squared_hellinger,
)
from predcp._divergences._quadrature import register_quadrature

if hasattr(dist, "HurdlePoisson"):
    # Older releases of NumPyro have no hurdles.
    from predcp._divergences import _hurdle  # noqa: F401

__all__ = [
    "Coordinates",
    "Divergence",
    "Member",
    "abstract_members",
    "coordinates_of",
    "families",
    "jensen_shannon",
    "kl",
    "log_mean_and_elasticity",
    "members",
    "register_divergence",
    "register_quadrature",
    "reverse_kl",
    "squared_hellinger",
]
