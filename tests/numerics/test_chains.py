"""R-hat and effective sample sizes against ArviZ's."""

import numpy as np
import pytest

from predcp._numerics.chains import bulk_ess, rank_normalised_rhat, tail_ess, worst_rhat

arviz = pytest.importorskip("arviz_stats.base").array_stats

SHAPES = [(4, 1000), (4, 501), (1, 200), (2, 17), (3, 4)]


def autoregressive(shape, memory, seed=0):
    """Chains in which each draw remembers the last; `memory` may be negative."""
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal(shape)
    chains = np.empty(shape)
    chains[:, 0] = noise[:, 0]
    for step in range(1, shape[1]):
        chains[:, step] = memory * chains[:, step - 1] + noise[:, step]
    return chains


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("memory", [-0.6, 0.0, 0.5, 0.98])
@pytest.mark.parametrize(
    ("ours", "method"), [(bulk_ess, "bulk"), (tail_ess, "tail"), (rank_normalised_rhat, "rank")]
)
def test_agrees_with_arviz(shape, memory, ours, method):
    chains = autoregressive(shape, memory)
    theirs = arviz.rhat if method == "rank" else arviz.ess
    options = {"prob": (0.05, 0.95)} if method == "tail" else {}
    expected = theirs(chains, chain_axis=0, draw_axis=1, method=method, **options)
    if method == "rank" and shape[0] == 1:
        # ArviZ compares whole chains only; the halves of one can be compared as well.
        assert np.isfinite(ours(chains))
        return
    np.testing.assert_allclose(ours(chains), expected, rtol=1e-9)


def test_quantities_are_independent_of_each_other():
    chains = np.stack([autoregressive((4, 300), memory) for memory in (0.0, 0.9)], axis=-1)
    for measure in (bulk_ess, tail_ess, rank_normalised_rhat):
        together = measure(chains.reshape(4, 300, 1, 2))
        assert together.shape == (1, 2)
        np.testing.assert_allclose(together[0], [measure(chains[..., k]) for k in (0, 1)])


def test_chains_stuck_in_two_places_are_found():
    chains = autoregressive((4, 500), 0.0)
    chains[0] += 5.0
    assert rank_normalised_rhat(chains) > 1.2
    assert bulk_ess(chains) < 20


def test_nan_and_constant_quantities_give_nan():
    chains = autoregressive((2, 100), 0.0)
    chains[0, 3] = np.nan
    for measure in (bulk_ess, tail_ess, rank_normalised_rhat):
        assert np.isnan(measure(chains))
        assert np.isnan(measure(np.ones((2, 100))))


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match=r"at least 4, .* got \(2, 3\)"):
        bulk_ess(np.zeros((2, 3)))


def test_the_worst_rhat_leaves_out_what_every_chain_agrees_upon():
    draws = np.random.default_rng(0).normal(size=(4, 200, 3))
    apart = draws + np.array([0.0, 0.0, 1.0]) * np.arange(4)[:, None, None]
    assert worst_rhat(apart) == rank_normalised_rhat(apart)[2]
    draws[:, :, 1] = 1.0
    assert worst_rhat(draws) == np.max(rank_normalised_rhat(draws[:, :, ::2]))
    assert worst_rhat(np.ones((4, 200, 3))) == 1.0
    # Each chain stuck at a place of its own is no agreement.
    draws[:, :, 1] = np.arange(4)[:, None]
    assert not worst_rhat(draws) <= 1.01
    draws[0, 3, 1] = np.nan
    assert not worst_rhat(draws) <= 1.01
