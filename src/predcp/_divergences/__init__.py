"""Divergences between observation distributions, stable near equality and at saturation."""

from predcp._divergences import (  # each registers its family
    _bernoulli,
    _beta_binomial,
    _categorical,
    _dirichlet,
    _gamma,
    _hurdle,
    _hurdle_distances,
    _laplace,
    _mixture,
    _multivariate_distances,
    _multivariate_normal,
    _negative_binomial,
    _normal,
    _ordered,
    _poisson,
    _student_t,
    _transformed,
    _weibull,
)
from predcp._divergences._divergence import (
    Coordinates,
    Divergence,
    Member,
    abstract_members,
    beyond_rounding,
    coordinates_of,
    families,
    has_moved,
    jensen_shannon,
    kl,
    log_mean_and_elasticity,
    members,
    reverse_kl,
    squared_hellinger,
    trials_up_to,
)
from predcp._divergences._monte_carlo import register_monte_carlo
from predcp._divergences._quadrature import register_quadrature
from predcp._divergences._register import register_divergence
