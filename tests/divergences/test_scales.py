"""Maps of every family against 140 digits, tau from 1e-20 to 1e20 (1e-12 to 1e12 in single precision)."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from tests.divergences.scale_oracles import ORACLES

import predcp

# Products of these are exact.
DESIGN = np.array([[0.75, -0.5], [-1.25, 0.25]])
NOISE = np.array([[0.625, -1.25], [-0.375, 0.875]])
ETA = [mp.mpf(float(eta)) for eta in (DESIGN @ NOISE.T).ravel()]
DIVERGENCES = (predcp.kl, predcp.reverse_kl, predcp.squared_hellinger, predcp.jensen_shannon)
MIDDLE = (1e-3, 0.03, 0.3, 1.0, 3.0, 30.0)
QUICK = ("gamma-both",)
# Quadratures are continued by their power law beyond a million (600 in single precision).
INTEGRATED = {"logistic": {"float64": (1e-8, 1e5), "float32": (1e-3, 500.0)}}


def exact(name, tau):
    """Per divergence, its value and its log slope, by differences in the last digits."""
    _, parameters, divergences = ORACLES[name]
    start, step = parameters(mp.mpf(0)), mp.mpf(10) ** -30

    def at(size):
        found = [divergences(parameters(size * eta), start) for eta in ETA]
        return {key: mp.fsum(each[key] for each in found) / len(found) for key in found[0]}

    here, above, below = (at(mp.mpf(float(tau)) * f) for f in (1, 1 + step, 1 - step))
    found = {}
    for key, value in here.items():
        slope = (above[key] - below[key]) / value / (2 * step)
        # None where it is below what the digits resolve: saturated.
        found[key] = value, slope if slope > mp.mpf(10) ** -40 else None
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "name",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in ORACLES],
)
def test_maps_match_140_digits_at_every_scale(name, dtype):
    make = ORACLES[name][0]
    single = dtype == "float32"
    tolerance, most = INTEGRATED.get(name, {}).get(dtype, (1e-4 if single else 1e-10, np.inf))
    edge = 12 if single else 20
    taus = np.asarray([*np.logspace(-edge, edge, 9), *MIDDLE], dtype)
    known = [each for each in DIVERGENCES if each.name in exact(name, 1.0)]
    maps = {
        each.name: predcp.PredictiveComplexity(
            lambda theta, x: make(x @ theta),
            lambda tau, xi: tau * xi,
            jnp.zeros(2, dtype),
            jnp.asarray(DESIGN, dtype),
            jnp.asarray(NOISE, dtype),
            divergence=each,
            per="row",
        )
        for each in known
    }

    @jax.jit
    def program(log_tau):
        return {key: each.log_value_and_elasticity(log_tau) for key, each in maps.items()}

    got = program(jnp.log(jnp.asarray(taus)))
    with mp.workdps(140):
        for place, tau in enumerate(taus):
            if tau > most:
                continue
            for key, (value, slope) in exact(name, tau).items():
                log_kappa, log_elasticity = (mp.mpf(float(each[place])) for each in got[key])
                size = max(mp.mpf(1), abs(mp.log(value)))
                assert abs(log_kappa - mp.log(value)) < tolerance * size, (key, tau)
                if slope is not None:
                    assert abs(mp.exp(log_elasticity) / slope - 1) < 10 * tolerance, (key, tau)
