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
# Rows of several sizes: a form may fail where some points have saturated and others not.
DESIGN = np.array(
    [[0.8, -0.5], [-1.1, 0.3], [0.7, 0.9], [-0.01, 0.002], [0.3, -0.2], [-0.9, -0.43]]
)
NOISE = np.array([[0.6, -1.2], [-0.4, 0.9], [1.3, 0.2]])
PI = predcp.LogCauchy(scale=1.0)


# Families whose first case runs by default; the others share programs with these or are slow to compile.
QUICK = (dist.Normal, dist.StudentT, dist.Poisson, dist.Gamma)


def combinations():
    """One parameter per accepted combination, in single and double precision.

    KL in single precision of the first case of the `QUICK` families runs by default; the rest is long.
    """
    for family, cases in CASES.items():
        for place, (name, case) in enumerate(cases.items()):
            for divergence in DIVERGENCES:
                if not divergence.knows(family):
                    continue
                for dtype in ("float32", "float64"):
                    early = place == 0 and dtype == "float32" and divergence is predcp.kl
                    early = early and family in QUICK
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


# Scales: eight or five a decade, because a form may fail in a narrow range.
COUNT = 193
# Probabilities of quantiles, and points for the quadrature of the mass: log tau = sinh t, because
# exp(-t) of a Cauchy's mass is left beyond t.
PROBABILITIES = np.array([0.05, 0.5, 0.9])
T = np.linspace(-16.0, 16.0, 401)


def program_of(built, pi):
    """One compiled program of all that a prior is asked for: compilation takes most of the time."""

    def log_density(log_tau, x, noise):
        moved = predcp.PredictiveComplexity.trusted(**{**vars(built), "x": x, "noise": noise})
        log_kappa, log_elasticity = moved.log_value_and_elasticity(log_tau)
        return pi.log_prob_log(log_kappa) + log_elasticity, (log_kappa, log_elasticity)

    density = jax.vmap(jax.value_and_grad(log_density, (0, 1, 2), has_aux=True), (0, None, None))

    def everything(log_tau, x, noise):
        moved = predcp.PredictiveComplexity.trusted(**{**vars(built), "x": x, "noise": noise})
        prior = predcp.ComplexityPrior(pi, moved)
        quantiles = prior.icdf(jnp.asarray(PROBABILITIES, noise.dtype))
        supremum = moved.log_supremum(jnp.zeros((), noise.dtype))
        return density(log_tau, x, noise), quantiles, supremum

    return jax.jit(everything)


def assert_finite_and_increasing(values, points):
    """Of what the program gives at the points, which are the first scales."""
    (_, (log_kappa, log_elasticity)), slopes = values
    for name, array in {
        "value": log_kappa,
        "elasticity": log_elasticity,
        "slope in log tau": slopes[0],
        "slope in x": slopes[1],
        "slope in noise": slopes[2],
    }.items():
        finite = np.isfinite(np.asarray(array[:COUNT])).reshape(COUNT, -1).all(-1)
        assert finite.all(), (name, points[~finite] / np.log(10.0))
    rise = np.diff(np.asarray(log_kappa[:COUNT], float))
    fall = 1e-4 if log_kappa.dtype == "float32" else 1e-9
    assert np.all(rise >= -fall), ("not increasing", points[1:][rise < -fall] / np.log(10.0))


@pytest.mark.parametrize("case,divergence,dtype", list(combinations()))
def test_values_slopes_mass_and_quantiles(case, divergence, dtype):
    single = dtype == "float32"
    built = complexity(case, divergence, dtype)
    pi = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), PI)
    program = program_of(built, pi)
    edge = 12 if single else 20
    points = np.linspace(-edge, edge, COUNT) * np.log(10.0)
    # The elasticity is the derivative of the value: two neighbours of each point.
    step = np.asarray(0.02 if single else 1e-4, dtype)
    here = np.asarray(points, dtype)
    log_tau = np.concatenate([here, here + step, here - step, np.sinh(T).astype(dtype)])
    values, quantiles, supremum = program(jnp.asarray(log_tau), built.x, built.noise)
    density, (log_kappa, log_elasticity) = values[0]
    assert density.dtype == quantiles.dtype == dtype
    assert_finite_and_increasing(values, points)
    above, below = np.split(np.asarray(log_kappa[COUNT : 3 * COUNT], float), 2)
    np.testing.assert_allclose(
        np.exp(np.asarray(log_elasticity[:COUNT], float)),
        (above - below) / float(2.0 * step),
        rtol=3e-2 if single else 1e-5,
        atol=2e-4,
    )
    log_mass = np.asarray(density[3 * COUNT :], float)
    # Of pi, the mass below the supremum, which truncation leaves.
    log_kept = float(pi.log_cdf_log(supremum)) if built.bounded else 0.0
    log_mass = np.where(np.isnan(log_mass), -np.inf, log_mass - log_kept)
    mass = np.sum(np.exp(log_mass) * np.cosh(T)) * (T[1] - T[0])
    assert abs(mass - 1.0) < (1e-2 if single else 1e-3), mass
    assert np.all(np.isfinite(quantiles)) and np.all(np.diff(np.asarray(quantiles)) > 0.0)
    # The same program at the quantiles gives their probabilities.
    asked = log_tau.copy()
    asked[: len(quantiles)] = np.log(quantiles)
    found = program(jnp.asarray(asked), built.x, built.noise)[0][0][1][0][: len(quantiles)]
    cdf = np.exp(np.asarray(pi.log_cdf_log(found)) - log_kept)
    np.testing.assert_allclose(cdf, PROBABILITIES, rtol=2e-3, atol=1e-5)
    # Other designs of other sizes, by the same program; one where a quadrature makes it costly.
    random = np.random.default_rng(0)
    for _ in range(4 if built.cost < 20_000 else 1):
        size = 10.0 ** random.uniform(-2.0, 2.0)
        x, noise = size * random.normal(size=DESIGN.shape), random.normal(size=NOISE.shape)
        # Up to the same largest predictor.
        asked = log_tau - np.log(max(1.0, np.max(np.abs(x @ noise.T))))
        given = (jnp.asarray(each, dtype) for each in (asked, x, noise))
        assert_finite_and_increasing(program(*given)[0], points)
