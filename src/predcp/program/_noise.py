"""Latent sites as fixed, differentiable functions of noise: the non-centred form of any program."""

import itertools
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import ndtr
from jaxtyping import Array
from numpyro.distributions.distribution import ExpandedDistribution, Independent
from numpyro.distributions.transforms import ExpTransform

from predcp._numerics.normal_noise import normal_noise
from predcp._numerics.special import capped_exp
from predcp._support.arrays import concrete

# Multivariate families given by a location and a triangular factor.
_TRIANGULAR = (dist.MultivariateNormal,)
_WRAPPERS = (Independent, ExpandedDistribution, dist.MaskedDistribution)


def unwrapped(distribution: Any) -> Any:
    """The distribution inside `Independent`, `ExpandedDistribution` and `MaskedDistribution`."""
    while isinstance(distribution, _WRAPPERS):
        distribution = distribution.base_dist
    return distribution


def is_masked(distribution: Any) -> bool:
    """Whether there is a mask in the distribution."""
    return mask_of(distribution) is not None


def is_improper(distribution: Any) -> bool:
    """Whether the distribution has no finite mass, so that nothing can be drawn from it."""
    return isinstance(unwrapped(distribution), dist.ImproperUniform)


def feasible(distribution: Any) -> Array:
    """Some value in the support."""
    transform = dist.biject_to(distribution.support)
    return transform(jnp.zeros(transform.inverse_shape(distribution.shape())))


def mask_of(distribution: Any) -> Any:
    """The mask of a distribution that has one, None if it has none."""
    found = None
    while isinstance(distribution, _WRAPPERS):
        if isinstance(distribution, dist.MaskedDistribution):
            mask = distribution._mask
            found = mask if found is None else found & mask
        distribution = distribution.base_dist
    return found


def without_mask(distribution: Any) -> Any:
    """The distribution that a mask was put on."""
    while isinstance(distribution, dist.MaskedDistribution):
        distribution = distribution.base_dist
    return distribution


def _has_quantiles(distribution: Any) -> bool:
    """Whether one number of noise gives one value by the quantile function."""
    if distribution.event_shape or type(distribution).icdf is dist.Distribution.icdf:
        return False
    try:
        jax.eval_shape(distribution.icdf, jax.ShapeDtypeStruct((), float))
    except (NotImplementedError, ImportError):
        # Some quantile functions of NumPyro need a library that it does not depend on.
        return False
    return True


def _is_transformed(distribution: Any) -> bool:
    """Whether draws are those of a base distribution, each transformed to one of the same shape."""
    if not isinstance(distribution, dist.TransformedDistribution):
        return False
    base = distribution.base_dist
    return noise_shape(base) == tuple(distribution.shape())


def noise_shape(distribution: Any) -> tuple[int, ...] | None:
    """Shape of the standard normal noise of one draw; None if a random key is needed."""
    inner = unwrapped(distribution)
    if isinstance(inner, _TRIANGULAR) or _is_transformed(inner) or _has_quantiles(inner):
        return tuple(distribution.shape())
    return None


def can_be_drawn(distribution: Any) -> bool:
    """Whether draws are a differentiable function of noise and of the parameters."""
    if noise_shape(distribution) is not None:
        return True
    try:
        return bool(distribution.has_rsample)
    except (AttributeError, NotImplementedError):
        return False


def drawn(distribution: Any, noise: Array, singular: bool = False) -> Array:
    """The draw for this noise: a quantile, or a location plus a factor times noise.

    **Arguments**: `singular`, whether some variances of a covariance matrix may be zero.
    """
    inner = unwrapped(distribution)
    if isinstance(inner, dist.Normal):
        return jnp.asarray(inner.loc) + jnp.asarray(inner.scale) * noise
    if isinstance(inner, _TRIANGULAR):
        factor = _singular_factor(inner) if singular else jnp.asarray(inner.scale_tril)
        return jnp.asarray(inner.loc) + jnp.squeeze(factor @ noise[..., None], -1)
    if _is_transformed(inner):
        value = drawn(inner.base_dist, noise, singular)
        for transform in inner.transforms:
            # Saturated predictions stay finite.
            exponential = isinstance(transform, ExpTransform)
            value = capped_exp(value) if exponential else transform(value)
        return value
    if _has_quantiles(inner):
        return inner.icdf(ndtr(noise))
    return distribution.rsample(jax.random.wrap_key_data(noise))


def _singular_factor(distribution: Any) -> Array:
    """Triangular factor of a covariance in which some variances are zero."""
    covariance = vars(distribution).get("covariance_matrix")
    if covariance is None:
        return distribution.scale_tril
    # Rows of zeros become rows of the identity for the factorisation, and zeros after it.
    still = jnp.diagonal(covariance, axis1=-2, axis2=-1)[..., None] == 0.0
    unit = jnp.where(still, jnp.eye(covariance.shape[-1], dtype=covariance.dtype), 0.0)
    return jnp.where(still, 0.0, jnp.linalg.cholesky(covariance + unit))


def at_step(noise: Array, step: Array | None) -> Array:
    """The noise of one step of a scan."""
    if step is None:
        return noise
    if jnp.issubdtype(noise.dtype, jnp.floating):
        return noise[step]
    return jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(noise), step))


def make_noise(
    key: Array,
    count: int,
    shapes: dict[str, tuple[int, ...] | None],
    method: str,
    dtypes: dict[str, Any],
) -> dict[str, Array]:
    """Noise of each site with a leading axis of `count` draws.

    **Arguments**: `shapes` of one draw by site, None for a site that needs a key; `method`, as in
    `normal_noise`; `dtypes` by site.
    """
    names = sorted(shapes)
    described = tuple((shapes[name], jnp.dtype(dtypes[name])) for name in names)
    if not isinstance(method, str):
        # A user's own method may not support tracing.
        made = _make_noise.__wrapped__(key, count, described, method)
    elif concrete(key):
        # A program is traced several times with the same noise.
        data = np.asarray(jax.random.key_data(key))
        made = _kept_noise(
            data.tobytes(), data.shape, jax.random.key_impl(key), count, described, method
        )
    else:
        made = _make_noise(key, count, described, method)
    return dict(zip(names, made))


@lru_cache(maxsize=16)
def _kept_noise(
    data: bytes, shape: tuple[int, ...], kind: Any, count: int, sites: Any, method: str
) -> list[Array]:
    # Keep known numbers even inside a trace of the caller.
    with jax.ensure_compile_time_eval():
        words = jnp.asarray(np.frombuffer(data, np.uint32).reshape(shape))
        return _make_noise(jax.random.wrap_key_data(words, impl=kind), count, sites, method)


@partial(jax.jit, static_argnums=(1, 2, 3))
def _make_noise(
    key: Array, count: int, sites: tuple[tuple[Any, Any], ...], method: Any
) -> list[Array]:
    key_normal, key_sites = jax.random.split(key)
    like = [jax.ShapeDtypeStruct(*each) for each in sites if each[0] is not None]
    normal = iter(normal_noise(key_normal, count, like, method) if like else ())
    places = itertools.count()
    return [
        next(normal)
        if shape is not None
        else _random_keys(jax.random.fold_in(key_sites, next(places)), count)
        for shape, _ in sites
    ]


def _random_keys(key: Array, count: int) -> Array:
    return jax.random.key_data(jax.random.split(key, count))
