"""The coordinates of local scales: a change of variables that changes nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import biject_to
from scipy import integrate

from predcp.linear._local_scales import LocalScale

TRANSFORM = biject_to(LocalScale(1.0).support)
Z = jnp.linspace(-8.0, 8.0, 33)


def log_density(z):
    scale = TRANSFORM(z)
    return LocalScale(1.0).log_prob(scale) + TRANSFORM.log_abs_det_jacobian(z, scale)


def test_inverse():
    np.testing.assert_allclose(TRANSFORM.inv(TRANSFORM(Z)), Z, rtol=1e-12, atol=1e-12)


def test_jacobian_is_the_derivative():
    slope = jax.vmap(jax.grad(TRANSFORM))(Z)
    np.testing.assert_allclose(
        jnp.log(slope), TRANSFORM.log_abs_det_jacobian(Z, TRANSFORM(Z)), rtol=1e-10, atol=1e-12
    )


def test_half_cauchy_in_these_coordinates_has_mass_one_and_is_nearly_normal():
    mass, _ = integrate.quad(lambda z: float(jnp.exp(log_density(z))), -np.inf, np.inf)
    assert abs(mass - 1.0) < 1e-6
    centre = jnp.linspace(-2.0, 2.0, 9)
    gap = log_density(centre) - dist.Normal(0.0, 1.0).log_prob(centre)
    assert float(jnp.max(jnp.abs(gap))) < 0.07
