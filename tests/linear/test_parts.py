"""Columns in parts: kept sums are those of the design, and posteriors stay exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.linear.test_gibbs import CLASSES, MANY_COLUMNS, PI, compared, kept, weighted_prior

from predcp.linear import (
    ECP,
    Gibbs,
    PredCP,
    Target,
    _gibbs_sweep,
    _gibbs_systems,
    _handover,
    _parts,
    logistic_regression,
)
from predcp.linear._gibbs_model import GibbsModel
from predcp.linear._gibbs_sweep import Sweep
from predcp.linear._parts import Parts, Reader, gram

RANDOM = np.random.default_rng(4)


@pytest.fixture
def in_parts(monkeypatch):
    """Three parts, the last of which overlaps; two columns held back; swaps look at two columns."""
    monkeypatch.setattr(
        Parts, "of", classmethod(lambda cls, rows, columns: cls(columns, 3, -(-columns // 3), 1))
    )
    monkeypatch.setattr(_gibbs_systems, "_MOST_LARGEST", 1)
    monkeypatch.setattr(_handover, "_LARGEST", 3)
    monkeypatch.setattr(_parts, "_MOST_CHANGES", 2)
    monkeypatch.setattr(_gibbs_sweep, "_REDUCED_ROWS", 2)
    monkeypatch.setattr(_handover, "_MOST_ENTRIES", 0)
    monkeypatch.setattr(_handover, "_SAMPLED_ENTRIES", 8)


def test_columns_of_parts_are_all_columns_once():
    for rows, columns in (
        (3, 10),
        (500, 100_000),
        (500, 1_000_000),
        (130, 70_001),
        (5000, 200_000),
    ):
        parts = Parts.of(rows, columns)
        assert parts.number == 1 or parts.length % parts.block == 0
        seen = np.zeros(columns, int)
        for part in range(parts.number):
            first = int(parts.start(jnp.asarray(part)))
            seen[first : first + parts.length] += np.asarray(parts.own(jnp.asarray(part)))
        assert np.all(seen == 1)


@pytest.mark.parametrize("rows", [7, 300])
def test_tiles_are_the_whole_matrix(rows):
    x, scales = jnp.asarray(RANDOM.normal(size=(rows, 5))), jnp.asarray(RANDOM.normal(size=5))
    expected = np.asarray((x * scales**2) @ x.T)
    np.testing.assert_allclose(jax.jit(gram)(x, scales), expected, rtol=1e-10, atol=1e-10)


def agrees(reader, kept, x, prior):
    """The sums are those of the design over all columns that are not held back."""
    included = np.asarray(kept.included)
    assert np.array_equal(np.flatnonzero(included == 0.0), np.sort(kept.held))
    whole, sums = gram(x, kept.included), prior.sums(x, kept.included, prior.reading_noise(8))
    np.testing.assert_allclose(reader.gram(kept), whole, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kept.sums.sum(0), sums, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("prior", [ECP(PI), PredCP(PI)], ids=["ecp", "predcp"])
def test_corrected_sums_are_those_of_the_design(prior, in_parts):
    """One part changes at a time, columns become the largest and cease to be, and some are swapped."""
    x = jnp.asarray(RANDOM.normal(size=(5, 8)))
    reader = Reader.of(x, prior, by_rows=True)
    scales, held = np.exp(RANDOM.normal(size=8)), np.array([3, 5])
    kept = jax.jit(lambda *now: reader.begin(*now, 1))(jnp.asarray(scales), jnp.ones(8), held)
    renewed = jax.jit(reader.renewed)
    for number in range(20):
        part = np.arange(8) // 3 == number % 3
        scales = np.where(part, np.exp(RANDOM.normal(size=8)), scales)
        pair = np.array([np.argmax(scales), RANDOM.integers(8)])
        scales[pair] = scales[pair[::-1]]
        kept = kept._replace(traded=jnp.asarray(pair))
        held = np.argsort(scales)[-2:]
        kept = renewed(kept, jnp.asarray(scales), held, number % 3)
        np.testing.assert_array_equal(kept.included, np.where(np.isin(range(8), held), 0, scales))
        agrees(reader, kept, x, prior)


@pytest.mark.long
@pytest.mark.parametrize("prior", [ECP(PI), PredCP(PI)], ids=["ecp", "predcp"])
def test_kept_sums_are_those_of_the_design_after_many_sweeps(prior, in_parts):
    x, y = jnp.asarray(RANDOM.normal(size=(5, 8))), CLASSES[:5]
    target = Target(logistic_regression, (x, y), {"prior": prior, "intercept": True})
    sweep = Sweep.of(GibbsModel.of(target), (x, y), handovers=2, paths=1, lattice=0)
    state = jax.jit(jax.vmap(sweep.start))(jax.random.split(jax.random.key(0), 2))
    step = jax.jit(jax.vmap(lambda state: sweep(state)[0]))
    for number in range(20):
        before, state = state, step(state)
        for chain in range(2):
            kept = jax.tree.map(lambda leaf, chain=chain: leaf[chain], state.kept)
            np.testing.assert_allclose(kept.fit, x @ state.direction[chain], rtol=1e-9, atol=1e-9)
            # The sweep read the scales before it, and then set those of one part.
            scales = before.local_scales[chain]
            agrees(sweep.reader, kept, x, prior)
            included = np.asarray(kept.included)
            still = included > 0.0
            np.testing.assert_array_equal(included[still], np.asarray(scales)[still])
            assert int(kept.number) == number + 1


@pytest.mark.long
@pytest.mark.parametrize("prior", [ECP(PI), PredCP(PI)], ids=["ecp", "predcp"])
def test_posteriors_in_parts_are_exact(prior, in_parts):
    data, options = (MANY_COLUMNS, CLASSES[:4]), {"prior": prior, "intercept": True}
    target = Target(logistic_regression, data, options, keep=kept)
    sampler = Gibbs(
        warmup=300, draws=6000, seed=1, chunk=401, lattice=0, handovers=2, layout="vectorised"
    )
    compared(target, weighted_prior(target, 200_000), sampler)


@pytest.mark.parametrize("prior", [ECP(PI), PredCP(PI)], ids=["ecp", "predcp"])
def test_sums_outside_of_a_part_leave_out_any_columns(prior, in_parts):
    """Columns held back or not, inside of the part or not: none of them is counted."""
    x, y = jnp.asarray(RANDOM.normal(size=(5, 8))), CLASSES[:5]
    target = Target(logistic_regression, (x, y), {"prior": prior, "intercept": False})
    sweep = Sweep.of(GibbsModel.of(target), (x, y), handovers=1, paths=1, lattice=0)
    scales, noise = jnp.exp(jnp.asarray(RANDOM.normal(size=8))), prior.reading_noise(8)
    state = sweep.model.start(jax.random.key(0), (x, y))._replace(local_scales=scales)
    held = jnp.argsort(scales)[-2:]
    state = state._replace(kept=sweep.reader.begin(scales, state.direction, held, 1))
    for without in ([], [int(held[0]), 0, 4], [7]):
        for part in range(3):
            places = jnp.asarray(without, int)
            seen = sweep._sums_outside(state, jnp.asarray(part), places)
            left = scales.at[places].set(0.0).at[3 * part : 3 * part + 3].set(0.0)
            np.testing.assert_allclose(seen, prior.sums(x, left, noise), rtol=1e-9, atol=1e-9)
