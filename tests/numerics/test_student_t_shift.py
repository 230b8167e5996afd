"""The table of a Student-t divergence over the shift equals the integral it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from predcp._numerics.student_t import of_shift
from predcp._numerics.student_t_shift import FEWEST, shift_divergence, stays

# Between the nodes of every piece, far beyond the last, and of either sign.
SHIFTS = np.concatenate([np.geomspace(1e-6, 1e12, 1024), -np.linspace(0.01, 4.0, 200)])


def slopes(of, df, a):
    """Values and slopes over the shift."""
    return jax.jvp(lambda a: of(df, a), (a,), (jnp.ones_like(a),))


@jax.jit
def both(df, a):
    """Values and slopes, by table and by integral."""
    return slopes(table, df, a), slopes(of_shift, df, a)


@jax.jit
def both_in_df(df, a):
    """Derivatives of values and slopes in df, by table and by integral."""
    return tuple(
        jax.jvp(lambda df, of=of: slopes(of, df, a), (df,), (jnp.ones_like(df),))[1]
        for of in (table, of_shift)
    )


def table(df, a):
    return shift_divergence(of_shift, df, a)


def assert_equal(got, wanted, tolerances):
    """Values and slopes within relative tolerances."""
    for one, other, rtol in zip(got, wanted, tolerances):
        scale = np.maximum(np.abs(np.asarray(other)), 1e-12)
        np.testing.assert_array_less(np.abs(np.asarray(one - other)) / scale, rtol)


@pytest.mark.parametrize("df", [1.0, 2.0, 4.0, 300.0])
def test_values_and_slopes(df):
    a = jnp.asarray(SHIFTS)
    # The slope of the integral itself has fewer digits where its two forms meet.
    assert_equal(*both(jnp.full_like(a, df), a), (1e-10, 1e-9))


@pytest.mark.long
@pytest.mark.parametrize("df", [1.0, 2.0, 4.0, 300.0])
def test_derivatives_in_df(df):
    a = jnp.asarray(SHIFTS)
    assert_equal(*both_in_df(jnp.full_like(a, df), a), (1e-10, 1e-8))


def test_a_cauchy_has_a_closed_form():
    a = jnp.asarray(SHIFTS)
    (value, _), _ = both(jnp.ones_like(a), a)
    np.testing.assert_allclose(value, np.log1p(SHIFTS**2 / 4.0), rtol=1e-11)


def test_unequal_degrees_of_freedom_are_integrated():
    a = jnp.asarray(SHIFTS)
    df = jnp.asarray(np.where(np.arange(a.size) % 2 == 0, 1.0, 3.0))
    for got, wanted in zip(*both(df, a)):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_only_a_change_that_is_known_to_be_zero_stays():
    assert stays(jnp.zeros((3, 1))) and not stays(jnp.ones((3, 1)))
    traced = []
    jax.make_jaxpr(lambda change: traced.append(stays(change)))(jnp.zeros(3))
    assert traced == [False]


def test_a_map_with_many_rows_uses_the_table_and_equals_one_without():
    x = np.random.default_rng(0).normal(size=(FEWEST // 2, 2))
    noise = np.random.default_rng(1).normal(size=(2, 2))

    def built(homogeneous):
        return predcp.PredictiveComplexity(
            lambda theta, x: dist.StudentT(4.0, x @ theta, 0.7),
            lambda tau, xi: tau * xi,
            jnp.zeros(2),
            jnp.asarray(x),
            jnp.asarray(noise),
            homogeneous=homogeneous,
        )

    log_tau = jnp.asarray([-30.0, -3.0, 0.0, 2.0, 30.0])
    programs = [jax.make_jaxpr(built(h).bind())(jnp.asarray(0.0)) for h in (None, False)]
    assert [" cond[" in str(program) for program in programs] == [True, False]
    for got, wanted in zip(*(built(h).log_value_and_elasticity(log_tau) for h in (None, False))):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)
