"""The choice of moves during warm-up."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from tests.linear.test_gibbs import PI

from predcp.linear import Gibbs, PredCP, Target, logistic_regression
from predcp.linear import _gibbs as gibbs
from predcp.linear._tuning import LEADERS, Moves, effective_draws, tuned, work

RANDOM = np.random.default_rng(6)


def chains(persistence, change, seed=0):
    """Autoregressive numbers, and places of columns that change with some probability."""
    random = np.random.default_rng(seed)
    seen = np.zeros((1, 4, 400, 10 + LEADERS))
    for step in range(1, 400):
        noise = random.normal(size=(4, 10)) * np.sqrt(1.0 - persistence**2)
        seen[0, :, step, :10] = persistence * seen[0, :, step - 1, :10] + noise
        new = np.where(random.random((4, LEADERS)) < change, step, seen[0, :, step - 1, 10:])
        seen[0, :, step, 10:] = new
    return seen


def test_effective_draws_are_those_of_autoregressive_chains():
    """Times (1 + r) / (1 - r) of numbers and 1 / change of places, averaged."""
    expected = (10 * 1.9 / 0.1 + LEADERS / 0.05) / (10 + LEADERS)
    found = effective_draws(chains(0.9, 0.05), LEADERS)
    assert found == pytest.approx(1.0 / expected, rel=0.2)
    assert effective_draws(chains(0.5, 0.5), LEADERS) > 5.0 * found
    # Two problems: the mean of their times.
    both = np.concatenate([chains(0.9, 0.05), chains(0.5, 0.5)])
    assert found < effective_draws(both, LEADERS) < 2.5 * found


@pytest.mark.parametrize(
    ("helped", "power", "expected", "tries"),
    [
        ({}, 1.0, (1, 1), [(1, 1), (1, 1), (4, 1), (1, 3)]),
        ({"handovers": 2.0}, 0.5, (16, 1), [(1, 1), (1, 1), (4, 1), (16, 1), (16, 3)]),
        ({"paths": 3.0}, 1.0, (1, 3), [(1, 1), (1, 1), (4, 1), (1, 3)]),
        # As many more effective draws as they cost.
        ({"handovers": 1.0}, 1.0, (1, 1), [(1, 1), (1, 1), (4, 1), (1, 3)]),
    ],
)
def test_a_setting_must_be_worth_its_work(helped, power, expected, tries):
    """Trials whose rates of change, and work, are powers of the numbers of moves."""
    seen, taken = [], []

    def cost(setting):
        return (setting.handovers * setting.paths) ** power

    def advance(setting, sweeps):
        seen.append(tuple(setting))
        taken.append(sweeps)
        each = 0.004
        for name, gain in helped.items():
            each *= getattr(setting, name) ** gain
        return chains(0.0, min(each, 0.9))

    assert tuned(advance, cost, 250, LEADERS, None, None) == (Moves(*expected), sum(taken))
    assert (
        [setting[:2] for setting in seen] == tries and set(taken) == {75, 25} and sum(taken) < 250
    )


def test_good_chains_short_warmups_and_little_time_try_nothing():
    def good(setting, sweeps):
        return chains(0.0, 0.6)

    def cost(setting):
        return work(10, 100, 100, 1, setting)

    assert tuned(good, cost, 200, LEADERS, None, None) == (Moves(1, 1), 80)
    assert tuned(good, cost, 199, LEADERS, None, 3) == (Moves(1, 3), 0)
    slow = tuned(lambda setting, sweeps: None, cost, 200, LEADERS, 2, None)
    assert slow == (Moves(2, 1), 80)
    assert cost(Moves(4, 1)) > cost(Moves(1, 1)) < cost(Moves(1, 3))
    # A lattice costs less than slices only where its points are evaluated at once.
    assert cost(Moves(1, 1, 32)) > cost(Moves(1, 1))
    assert work(10, 10, 10, 1, Moves(1, 1, 32), True) < work(10, 10, 10, 1, Moves(1, 1), True)


@pytest.mark.parametrize(("worth", "expected"), [(1.0, 32), (3.0, 0)])
def test_slices_replace_a_lattice_that_mixes_less(worth, expected):
    """Slices cost more where points are evaluated at once: they must be worth it."""
    seen = []

    def advance(setting, sweeps):
        seen.append(tuple(setting))
        return chains(0.0, 0.05 * (worth if setting.lattice == 0 else 1.0))

    def cost(setting):
        return 1.0 if setting.lattice else 1.5

    found, _ = tuned(advance, cost, 250, LEADERS, 1, 1, None)
    assert found == Moves(1, 1, expected) and seen[-1] == (1, 1, 0)


@pytest.mark.parametrize("warmup", [20, 250])
def test_a_chain_goes_on_with_the_chosen_lattice(warmup, monkeypatch):
    """As one with that lattice does; a device that evaluates points at once begins with 32 of them."""
    monkeypatch.setattr(gibbs, "_points_at_once", lambda: True)
    x, y = jnp.asarray(RANDOM.normal(size=(8, 12))), jnp.asarray(RANDOM.integers(0, 2, 8))
    target = Target(logistic_regression, (x, y), {"prior": PredCP(PI), "intercept": True})
    free = Gibbs(
        chains=2, warmup=warmup, draws=20, chunk=40, layout="vectorised", handovers=1, paths=1
    )
    (draws,) = free.sample(target)
    assert draws.figures["lattice"] in (0, 32)
    if warmup == 20:
        assert draws.figures["lattice"] == 32
        (fixed,) = replace(free, lattice=32).sample(target)
        for name, values in draws.values.items():
            np.testing.assert_allclose(values, fixed.values[name], rtol=1e-9, err_msg=name)


@pytest.mark.long
def test_chosen_moves_are_those_that_were_named_and_seeds_decide():
    """After the warm-up a chain goes on as one with these moves does; twice the same draws."""
    x = jnp.asarray(RANDOM.normal(size=(8, 12)))
    y = jnp.asarray(RANDOM.integers(0, 2, 8))
    target = Target(logistic_regression, (x, y), {"prior": PredCP(PI), "intercept": True})
    free = Gibbs(chains=2, warmup=200, draws=40, chunk=40, layout="vectorised")
    (first,) = free.sample(target)
    (second,) = free.sample(target)
    np.testing.assert_array_equal(first.values["beta"], second.values["beta"])
    chosen = {name: int(value) for name, value in first.figures.items()}
    assert set(chosen) == {"handovers", "paths", "lattice"} and "watched" not in first.statistics
    # With a warm-up too short for trials, the first setting is that of a sampler with fixed moves.
    short = replace(free, warmup=20)
    (default,) = short.sample(target)
    (fixed,) = replace(short, handovers=1, paths=1).sample(target)
    for name, values in default.values.items():
        np.testing.assert_allclose(values, fixed.values[name], rtol=1e-9, err_msg=name)
