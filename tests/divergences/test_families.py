"""Every accepted family, parameterisation and divergence stays finite and gives a proper prior."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from tests.family_cases import CASES

import predcp
from predcp._divergences import families

DIVERGENCES = (predcp.kl, predcp.reverse_kl, predcp.squared_hellinger, predcp.jensen_shannon)
DESIGN = np.array([[0.8, -0.5], [-1.1, 0.3]])
NOISE = np.array([[0.6, -1.2], [-0.4, 0.9]])
PI = predcp.LogCauchy(scale=1.0)


# Families whose first case runs by default; the others share programs with these or are slow to compile.
QUICK = (dist.Normal, dist.StudentT, dist.Poisson, dist.Gamma)


def combinations(quick=QUICK):
    """One parameter per accepted combination, in single and double precision.

    KL in single precision of the first case of the `quick` families runs by default; the rest is long.
    """
    for family, cases in CASES.items():
        for place, (name, case) in enumerate(cases.items()):
            for divergence in DIVERGENCES:
                if not divergence.knows(family):
                    continue
                for dtype in ("float32", "float64"):
                    early = place == 0 and dtype == "float32" and divergence is predcp.kl
                    early = early and family in quick
                    yield pytest.param(
                        case,
                        divergence,
                        dtype,
                        id=f"{family.__name__}-{name}-{divergence.name}-{dtype}",
                        marks=[] if early else [pytest.mark.long],
                    )


def test_every_registered_family_has_cases():
    known = {family.__name__ for family in families() if predcp.kl.rule(family).coarse is None}
    made = {family.__name__ for family in families() if hasattr(family, "derived")}
    assert known - made == {family.__name__ for family in CASES} - made


def complexity(case, divergence, dtype):
    try:
        return predcp.PredictiveComplexity(
            lambda theta, x: case(x @ theta),
            lambda tau, xi: tau * xi,
            jnp.zeros(2, dtype),
            jnp.asarray(DESIGN, dtype),
            jnp.asarray(NOISE, dtype),
            divergence=divergence,
        )
    except ValueError as error:
        if "needs the same" not in str(error):
            raise
        pytest.skip(f"refused: {error}")


@pytest.mark.parametrize("case,divergence,dtype", list(combinations()))
def test_values_slopes_and_mass(case, divergence, dtype):
    single = dtype == "float32"
    built = complexity(case, divergence, dtype)
    pi = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), PI)

    def log_density(log_tau, x, noise):
        moved = predcp.PredictiveComplexity.trusted(**{**vars(built), "x": x, "noise": noise})
        log_kappa, log_elasticity = moved.log_value_and_elasticity(log_tau)
        return pi.log_prob_log(log_kappa) + log_elasticity, (log_kappa, log_elasticity)

    program = jax.jit(
        jax.vmap(jax.value_and_grad(log_density, (0, 1, 2), has_aux=True), (0, None, None))
    )
    edge = 12 if single else 20
    points = np.linspace(-edge, edge, 33) * np.log(10.0)
    # exp(-t) of a Cauchy's mass is left beyond t: log tau = sinh t for the quadrature.
    t = np.linspace(-16.0, 16.0, 401)
    # The elasticity is the derivative of the value: two neighbours of each point.
    step = np.asarray(0.02 if single else 1e-4, dtype)
    here = np.asarray(points, dtype)
    log_tau = np.concatenate([here, here + step, here - step, np.sinh(t).astype(dtype)])
    (density, (log_kappa, log_elasticity)), slopes = program(
        jnp.asarray(log_tau), built.x, built.noise
    )
    assert density.dtype == dtype
    for name, array in {
        "value": log_kappa,
        "elasticity": log_elasticity,
        "slope in log tau": slopes[0],
        "slope in x": slopes[1],
        "slope in noise": slopes[2],
    }.items():
        finite = np.isfinite(np.asarray(array[:33])).reshape(33, -1).all(-1)
        assert finite.all(), (name, points[~finite] / np.log(10.0))
    rise = np.diff(np.asarray(log_kappa[:33], float))
    assert np.all(rise >= -(1e-4 if single else 1e-9)), "not increasing"
    above, below = np.split(np.asarray(log_kappa[33:99], float), 2)
    np.testing.assert_allclose(
        np.exp(np.asarray(log_elasticity[:33], float)),
        (above - below) / float(2.0 * step),
        rtol=3e-2 if single else 1e-5,
        atol=2e-4,
    )
    log_mass = np.asarray(density[99:], float)
    if built.bounded:
        log_mass = log_mass - float(pi.log_cdf_log(built.log_supremum(jnp.zeros((), dtype))))
    log_mass = np.where(np.isnan(log_mass), -np.inf, log_mass)
    mass = np.sum(np.exp(log_mass) * np.cosh(t)) * (t[1] - t[0])
    assert abs(mass - 1.0) < (1e-2 if single else 1e-3), mass


@pytest.mark.parametrize("case,divergence,dtype", list(combinations(quick=(dist.Normal,))))
def test_quantiles_are_finite(case, divergence, dtype):
    pi = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), PI)
    prior = predcp.ComplexityPrior(pi, complexity(case, divergence, dtype))
    probabilities = jnp.asarray([0.05, 0.5, 0.9], dtype)
    quantiles = prior.icdf(probabilities)
    assert np.all(np.isfinite(quantiles)) and np.all(np.diff(np.asarray(quantiles)) > 0.0)
    np.testing.assert_allclose(prior.cdf(quantiles), probabilities, rtol=2e-3, atol=1e-5)
