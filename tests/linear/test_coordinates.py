"""The coordinates of the scales: changes of variables that change nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import biject_to
from scipy import integrate

from predcp.linear._coordinates import LocalScale, LongTailed

TRANSFORM = biject_to(LocalScale(1.0).support)
Z = jnp.linspace(-8.0, 8.0, 33)


def log_density(z):
    scale = TRANSFORM(z)
    return LocalScale(1.0).log_prob(scale) + TRANSFORM.log_abs_det_jacobian(z, scale)


def test_inverse():
    np.testing.assert_allclose(TRANSFORM.inv(TRANSFORM(Z)), Z, rtol=1e-12, atol=1e-12)


def test_jacobian_is_the_derivative():
    slope = jax.jit(jax.vmap(jax.grad(TRANSFORM)))(Z)
    np.testing.assert_allclose(
        jnp.log(slope), TRANSFORM.log_abs_det_jacobian(Z, TRANSFORM(Z)), rtol=1e-10, atol=1e-12
    )


def test_half_cauchy_in_these_coordinates_has_mass_one_and_is_nearly_normal():
    program = jax.jit(log_density)
    mass, _ = integrate.quad(lambda z: float(np.exp(program(z))), -np.inf, np.inf)
    assert abs(mass - 1.0) < 1e-6
    centre = jnp.linspace(-2.0, 2.0, 9)
    gap = log_density(centre) - dist.Normal(0.0, 1.0).log_prob(centre)
    assert float(jnp.max(jnp.abs(gap))) < 0.07


def test_long_tails_become_short_and_the_density_stays():
    cauchy = LongTailed(dist.Cauchy(-4.0, 1.0), -5.0)
    transform = biject_to(cauchy.support)
    np.testing.assert_allclose(transform.inv(transform(Z)), Z, atol=1e-12)
    slope = jax.jit(jax.vmap(jax.grad(transform)))(Z)
    np.testing.assert_allclose(
        jnp.log(slope), transform.log_abs_det_jacobian(Z, transform(Z)), atol=1e-12
    )
    value = jnp.asarray([-1e6, -4.0, 50.0])
    np.testing.assert_allclose(cauchy.log_prob(value), dist.Cauchy(-4.0, 1.0).log_prob(value))
    # A ten-thousandth of the prior lies beyond 3000; in these coordinates that is near.
    assert float(transform.inv(3000.0)) < 25.0
