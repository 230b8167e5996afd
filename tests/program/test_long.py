"""Programs with complexity priors in a sampler: convergence, divergent steps and calibration."""

import jax
import numpy as np
import pytest
from numpyro.infer import MCMC, NUTS

import predcp
from predcp._numerics.chains import worst_rhat
from tests.program import calibration
from tests.program.calibration import CALIBRATED
from tests.program.programs import EXAMPLES

CHAINS, WARMUP, DRAWS = 4, 1000, 1000


def sampled(model, args, key=0, **sizes):
    kernel = NUTS(model, target_accept_prob=0.95)
    sizes = {"num_warmup": WARMUP, "num_samples": DRAWS, "num_chains": CHAINS, **sizes}
    mcmc = MCMC(kernel, chain_method="vectorized", progress_bar=False, **sizes)
    mcmc.run(jax.random.key(key), *args, extra_fields=("diverging",))
    draws = {name: np.asarray(d) for name, d in mcmc.get_samples(group_by_chain=True).items()}
    return draws, int(np.sum(mcmc.get_extra_fields()["diverging"]))


def worst(draws: dict[str, np.ndarray]) -> float:
    """The largest R-hat of all quantities."""
    return max(worst_rhat(each.reshape(*each.shape[:2], -1)) for each in draws.values())


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_program_samples_as_well_as_with_its_own_prior(name):
    example = EXAMPLES[name]
    args, program = example.args(), example.for_sampling()
    draws, after = sampled(
        predcp.with_complexity(program, {example.scale: example.statement}), args
    )
    kept = draws if example.identified is None else {n: draws[n] for n in example.identified}
    rhat = worst(kept)
    print(f"{name}: R-hat {rhat:.4f}, {after} divergent steps")
    assert rhat < 1.01
    # One divergent step in a thousand is chance; the original is sampled only if there are more.
    if after > CHAINS * DRAWS // 1000:
        assert after <= sampled(program, args)[1]


# Calibration


def test_calibration_has_the_power_to_see_a_factor():
    assert calibration.power_without_data(calibration.FACTOR) > 0.95
    assert calibration.power_without_data(1.0001) < 2.0 * calibration.LEVEL


def test_scores_and_flatness_of_known_ranks():
    flat = np.full(26, 16)
    found = calibration.score(flat), calibration.flatness(flat)
    np.testing.assert_allclose(found, [0.0, 1.0], atol=1e-12)
    # Uniform ranks have scores of unit variance.
    counts = np.random.default_rng(0).multinomial(400, np.full(26, 1 / 26), size=4000)
    scores = [calibration.score(each) for each in counts]
    np.testing.assert_allclose(np.std(scores), 1.0, atol=0.05)
    assert calibration.flatness(flat + np.linspace(-12, 12, 26).round()) < calibration.LEVEL


@pytest.mark.long
@pytest.mark.parametrize("rest", ["given", "prior"])
@pytest.mark.parametrize("name", CALIBRATED)
def test_posterior_draws_are_calibrated(name, rest):
    counts = calibration.ranks(name, rest)
    assert abs(calibration.score(counts)) < calibration.bar()
    assert calibration.flatness(counts) > calibration.LEVEL


@pytest.mark.long
@pytest.mark.parametrize("name", CALIBRATED)
def test_calibration_sees_a_scale_that_is_wrong_by_a_factor(name):
    counts = calibration.ranks(name, "given", calibration.FACTOR)
    assert abs(calibration.score(counts)) > calibration.bar()
