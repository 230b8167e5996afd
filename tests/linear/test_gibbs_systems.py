"""The two forms of the regression inside a Gibbs sweep: the same numbers, and the right ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from predcp.linear._gibbs_systems import ColumnSystem, Design, LargestColumns, RowSystem
from predcp.linear._parts import gram

ROWS, COLUMNS = 9, 3
RANDOM = np.random.default_rng(2)
X = jnp.asarray(RANDOM.normal(size=(ROWS, COLUMNS)))
WEIGHTS = jnp.asarray(RANDOM.uniform(0.5, 2.0, size=ROWS))
RESPONSE = jnp.asarray(RANDOM.normal(size=ROWS))
SCALES = jnp.asarray([3.0, 0.2, 1.1])
LOG_TAU, PRECISION, FACTOR = jnp.asarray(0.4), 1.7, jnp.asarray(0.6)


def others(columns):
    """The product over the columns that are no candidates of the group."""
    return gram(X, SCALES.at[columns.places].set(0.0))


def systems(shared, fixed):
    """Both forms, `fixed` weights known beforehand or those of one sweep."""
    columns = LargestColumns.among(jax.random.key(1), SCALES)
    root = jnp.sqrt(WEIGHTS)
    by_columns = Design.of(X, shared, WEIGHTS if fixed else None)
    by_rows = by_columns._replace(wide=None)
    found = [
        design.system(columns, others(columns)).observing(RESPONSE, design.root if fixed else root)
        for design in (by_columns, by_rows)
    ]
    assert [type(system) for system in found] == [ColumnSystem, RowSystem]
    return [system._replace(precision=PRECISION, factor=FACTOR) for system in found]


@pytest.mark.parametrize(
    ("rows", "columns", "shared", "form"),
    [
        (3, 9, 0.0, RowSystem),
        (4, 3, 1.0, RowSystem),
        (4, 3, 0.0, ColumnSystem),
        (5, 3, 1.0, ColumnSystem),
    ],
)
def test_the_smaller_matrix_is_chosen(rows, columns, shared, form):
    largest = LargestColumns.among(jax.random.key(0), jnp.ones(columns))
    none = jnp.zeros((rows, rows))
    system = Design.of(jnp.ones((rows, columns)), shared).system(largest, none)
    assert isinstance(system, form)


@pytest.mark.parametrize("shared", [0.0, 6.25])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_marginal_density_is_that_of_a_normal(shared, fixed):
    ours = systems(shared, fixed)
    scales = np.asarray(ours[0].columns.local_scales(FACTOR)) * np.exp(LOG_TAU)
    covariance = (X * scales**2) @ X.T + shared + jnp.diag(1.0 / (PRECISION * WEIGHTS))
    expected = multivariate_normal(np.zeros(ROWS), np.asarray(covariance)).logpdf(RESPONSE)
    for system in ours:
        got = system.log_marginal(LOG_TAU) - 0.5 * ROWS * np.log(2.0 * np.pi)
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("shared", [0.0, 6.25])
def test_the_marginal_density_in_tridiagonal_coordinates(shared):
    """The same numbers for all scales, from a prior without width to a flat one."""
    system = systems(shared, False)[1]
    reduced = system.reduced()
    for log_tau, precision in ((-40.0, 1.7), (-3.0, 1e4), (0.4, 1.7), (5.0, 1e-6), (5.0, 1e4)):
        wanted = system._replace(precision=precision).log_marginal(jnp.asarray(log_tau))
        got = reduced.log_marginal(jnp.asarray(log_tau), FACTOR, precision)
        # The matrix has rank three: both forms lose the digits of precision times variance.
        lost = 1e-15 * precision * (np.exp(2.0 * log_tau) + shared)
        np.testing.assert_allclose(got, wanted, rtol=1e-11 + lost)


def test_tridiagonal_coordinates_in_single_precision():
    """As right as the Cholesky factor, against double precision, for scales of very different sizes."""
    rows, columns = 120, 400
    random = np.random.default_rng(5)
    x = random.normal(size=(rows, columns))
    scales = np.abs(random.standard_cauchy(columns))
    weights, response = random.uniform(0.05, 0.25, rows), 4.0 * random.normal(size=rows)

    def errors(log_tau):
        found = []
        for kind in (np.float64, np.float32):
            given, local = jnp.asarray(x, kind), jnp.asarray(scales, kind)
            largest = LargestColumns.among(jax.random.key(0), local)
            none = gram(given, local.at[largest.places].set(0.0))
            system = Design.of(given, 6.25).system(largest, none)
            system = system.observing(
                jnp.asarray(response, kind), jnp.sqrt(jnp.asarray(weights, kind))
            )
            at = jnp.asarray(log_tau, kind)
            found.append((system.log_marginal(at), system.reduced().log_marginal(at)))
        (exact, same), (cholesky, reduced) = found
        np.testing.assert_allclose(same, exact, rtol=1e-9)
        return abs(cholesky - exact), abs(reduced - exact)

    for log_tau in (-8.0, -4.0, -1.0, 1.0):
        cholesky, reduced = errors(log_tau)
        assert reduced < max(10.0 * cholesky, 2e-3)


@pytest.mark.parametrize("shared", [0.0, 6.25])
@pytest.mark.parametrize("number", [0, 1], ids=["columns", "rows"])
def test_draws_have_the_conditional_distribution(shared, number):
    system = systems(shared, False)[number]
    draw = jax.jit(jax.vmap(lambda key: system.draw(key, LOG_TAU)))
    count = 40_000
    direction, alpha = draw(jax.random.split(jax.random.key(3), count))
    tau, local = np.exp(LOG_TAU), np.asarray(system.columns.local_scales(FACTOR))
    design, scales = np.asarray(X) * tau, local
    draws = np.asarray(direction)
    if shared:
        design = np.c_[design, np.ones(ROWS)]
        scales = np.append(scales, np.sqrt(shared))
        draws = np.c_[draws, alpha]
    else:
        assert np.all(np.asarray(alpha) == 0.0)
    weights = PRECISION * np.asarray(WEIGHTS)
    covariance = np.linalg.inv(np.diag(scales**-2.0) + (design.T * weights) @ design)
    mean = covariance @ (design.T @ (weights * np.asarray(RESPONSE)))
    white = (draws - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    np.testing.assert_allclose(white.mean(axis=0), 0.0, atol=4.5 / np.sqrt(count))
    spread = 4.5 * np.sqrt(2.0 / count)
    np.testing.assert_allclose(np.cov(white.T), np.eye(len(scales)), atol=spread)


def test_a_nearly_exact_fit_keeps_its_digits_in_single_precision():
    """The sum of squares is a millionth of the response's: as a difference it would be lost."""
    x = RANDOM.normal(size=(200, 3))
    y = x @ [1.0, -2.0, 0.5] + 1e-3 * RANDOM.normal(size=200)
    found = []
    for kind in (jnp.float32, jnp.float64):
        design = Design.of(jnp.asarray(x, kind), 0.0, jnp.ones(200, kind))
        columns = LargestColumns.among(jax.random.key(1), SCALES.astype(kind))
        none = jnp.zeros((200, 200), kind)
        system = design.system(columns, none).observing(jnp.asarray(y, kind), design.root)
        system = system._replace(precision=jnp.asarray(1e6, kind))
        found.append(float(system.log_marginal(jnp.asarray(0.0, kind))))
    assert abs(found[0] - found[1]) < 0.05
