"""Divergences of families without a closed form or quantiles, by fixed Monte Carlo."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergences._divergence import Coordinates, register_family
from predcp._divergences._quadrature import READ, add_rules, held_exp, same
from predcp._numerics.quadrature_nodes import drawn


def register_monte_carlo(
    distribution: type[dist.Distribution], fixed: Sequence[str] = (), noise_draws: int = 512
) -> None:
    """Teach all four divergences any family of NumPyro distributions with a smooth sampler.

    Expectations are averages over fixed base noise, so that a divergence is deterministic and its slope
    exact for that noise. `predcp.diagnose` reports the error, the change with half the draws. Prefer
    `register_quadrature` for a univariate family.

    **Arguments**
    - `distribution`: a NumPyro class with a log density and a reparameterised sampler. Its parameters
        must be real, positive, probabilities, vectors of those, or roots of a covariance.
    - `fixed`: parameters that must not move.
    - `noise_draws`: how many draws are taken of each of the two distributions.
    """
    if not (isinstance(distribution, type) and issubclass(distribution, dist.Distribution)):
        raise ValueError(f"distribution must be a NumPyro class, got {distribution!r}")
    if noise_draws < 4:
        raise ValueError(f"noise_draws must be at least 4, got {noise_draws}")
    if not distribution.reparametrized_params:
        raise ValueError(
            f"{distribution.__name__} has no smooth sampler in NumPyro: write its divergence with "
            "predcp.register_divergence"
        )
    readers = {
        name: _whole_reader(distribution, name, constraint)
        for name, constraint in distribution.arg_constraints.items()
    }
    unknown = set(fixed) - set(readers)
    if unknown:
        raise ValueError(f"fixed names {sorted(unknown)}, but the parameters are {list(readers)}")

    def coordinates(made: Any) -> Coordinates:
        given = {name: getattr(made, name) for name in readers}
        kind = jnp.result_type(float, *given.values())
        arrays = {name: jnp.asarray(value) for name, value in given.items()}

        def read_one(name: str) -> Array:
            axes, read, _ = readers[name]
            events = arrays[name].shape[arrays[name].ndim - axes :]
            return read(jnp.broadcast_to(arrays[name], (*made.batch_shape, *events)).astype(kind))

        return {name: read_one(name) for name in readers}

    def build(found: Coordinates) -> dist.Distribution:
        given = {name: back(found[name]) for name, (_, _, back) in readers.items()}
        return distribution(**given, validate_args=False)

    register_family(distribution, distribution, class_axes=1)(coordinates)
    moving = tuple(name for name in readers if name not in fixed)
    places = {share: drawn(noise_draws // share) for share in (1, 2)}
    add_rules(distribution, build, places, moving, tuple(fixed), 2 * noise_draws, event_axes=1)


def _whole_reader(distribution: type, name: str, constraint: Any) -> tuple[int, Callable, Callable]:
    """Number of event axes of a parameter, the function to coordinates along one axis, its inverse."""
    if constraint is constraints.lower_cholesky:
        return 2, _root_to_entries, _entries_to_root
    axes = getattr(constraint, "event_dim", 0)
    inner = getattr(constraint, "base_constraint", constraint)
    found = next((read for known, read in READ if same(known, inner)), None)
    if found is None or axes > 1:
        raise ValueError(
            f"parameter {name} of {distribution.__name__} is {constraint}: draws need real numbers, "
            "positive ones, probabilities, vectors of them or roots of covariances; write the "
            "divergence with predcp.register_divergence"
        )
    _, read, back = found
    if axes:
        return 1, read, back
    return 0, lambda value: read(value)[..., None], lambda value: back(value[..., 0])


def _root_to_entries(root: Array) -> Array:
    """All entries of a root of a covariance, those of the diagonal as logs."""
    eye = jnp.eye(root.shape[-1], dtype=bool)
    return jnp.where(eye, jnp.log(jnp.where(eye, root, 1.0)), root).reshape(*root.shape[:-2], -1)


def _entries_to_root(entries: Array) -> Array:
    size = math.isqrt(entries.shape[-1])
    square = entries.reshape(*entries.shape[:-1], size, size)
    eye = jnp.eye(size, dtype=bool)
    return jnp.where(eye, held_exp(jnp.where(eye, square, 0.0)), square)


register_monte_carlo(dist.MultivariateStudentT, fixed=("df",))
register_monte_carlo(dist.ProjectedNormal)
