"""Every program of the examples runs forwards with a complexity prior, and its priors are audited."""

import jax
import numpy as np
import pytest
from numpyro import handlers

import predcp
from tests.program.programs import EXAMPLES

# The program that moves in its own way with two of its sites: others are compiled in the long tests.
SHORT = {"Gaussian process"}
# Positive sites that are no scales.
SKIPPED = {"Gaussian process": {"rho"}}
NAMES = [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in EXAMPLES]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_runs_forwards_with_a_complexity_prior(name):
    example = EXAMPLES[name]
    pi = predcp.Exponential(mean=0.1)
    for model in {example.model, example.for_sampling()}:
        better = predcp.with_complexity(model, {example.scale: pi}, noise_draws=2)
        trace = handlers.trace(handlers.seed(better, jax.random.key(0))).get_trace(*example.args())
        scale = trace[example.scale]
        assert 0.0 < scale["value"] < np.inf
        assert np.isfinite(scale["fn"].log_prob(scale["value"]))


@pytest.mark.parametrize("name", NAMES)
def test_the_present_priors_of_a_program_are_audited(name):
    example = EXAMPLES[name]
    found = predcp.audit(example.model, *example.args(), samples=8, noise_draws=2)
    label = next(each.scale for each in found if each.scale.split("[")[0] == example.scale)
    assert 0.0 < found[label].kappa[1] < np.inf
    assert SKIPPED.get(name, set()) <= set(found.skipped)
