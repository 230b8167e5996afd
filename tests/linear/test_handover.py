"""Swaps of columns leave the exact distribution of arrangements invariant."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from predcp.linear import _handover
from predcp.linear._column_moves import Columns
from predcp.linear._handover import PriorOfScales, propose_swaps

RANDOM = np.random.default_rng(3)
ROWS, COLUMNS = 5, 4
# Correlations of both signs: trades turn some coefficients round.
ACROSS = jnp.asarray(RANDOM.normal(size=(COLUMNS, ROWS)))
SIGNS = jnp.where(jnp.asarray(RANDOM.normal(size=ROWS)) > 0, 1.0, -1.0)
SCALES = jnp.asarray([8.0, 3.0, 0.7, 0.2])
DIRECTION = jnp.asarray([4.0, -1.5, 0.9, -0.1])


def log_likelihoods(fits):
    return jnp.sum(jax.nn.log_sigmoid(SIGNS * fits), axis=-1)


def sums_at(places, scales):
    return jnp.sum(scales * jnp.arange(COLUMNS)[places])


def prior_of(scales):
    """A prior that depends on a sum over columns."""

    def others(places):
        return sums_at(jnp.arange(COLUMNS), scales.at[places].set(0.0))

    return PriorOfScales(lambda _, sums: -0.1 * sums, sums_at, others)


def log_prior(local_scales):
    return -0.1 * jnp.sum(local_scales * jnp.arange(COLUMNS))


# A prior that is the same for all scales.
FLAT = PriorOfScales(lambda *_: jnp.zeros(()), lambda *_: jnp.zeros(()), lambda *_: jnp.zeros(()))


def arrangements():
    """All that trades can reach, as `(local scales, direction)`, by trying each."""
    correlation = np.sign(np.asarray(ACROSS @ ACROSS.T))
    reached, fresh = set(), {(tuple(SCALES.tolist()), tuple(DIRECTION.tolist()))}
    while fresh:
        reached |= fresh
        found = set()
        for scales, direction in fresh:
            for first, second in itertools.combinations(range(COLUMNS), 2):
                after, moved, sign = list(scales), list(direction), correlation[first, second]
                after[first], after[second] = scales[second], scales[first]
                moved[first], moved[second] = sign * direction[second], sign * direction[first]
                found.add((tuple(after), tuple(moved)))
        fresh = found - reached
    return sorted(reached)


@pytest.mark.parametrize(
    ("proposals", "sampled"), [(1, False), (2, True), (4, False)], ids=["1", "2-sampled", "4"]
)
def test_arrangements_stay_as_probable_as_their_density_says(proposals, sampled, monkeypatch):
    """Independent starts from the exact distribution, then moves, then the same distribution."""
    if sampled:
        # Three draws among the four columns, and two columns that may be the first.
        monkeypatch.setattr(_handover, "_SAMPLED_ENTRIES", 3 * ROWS)
        monkeypatch.setattr(_handover, "_LARGEST", 2)
    across = None if sampled else ACROSS
    scales, directions = (jnp.asarray(part) for part in zip(*arrangements()))
    assert len(scales) > 100
    log_density = log_likelihoods(directions @ ACROSS) + jax.vmap(log_prior)(scales)
    expected = np.asarray(jax.nn.softmax(log_density))

    @jax.vmap
    def moved(key):
        key_start, key_moves = jax.random.split(key)
        start = jax.random.categorical(key_start, log_density)
        columns = Columns(directions[start], scales[start], directions[start] @ ACROSS)
        prior = prior_of(columns.local_scales)
        columns, sums, _, accepted = propose_swaps(
            key_moves, columns, ACROSS.T, across, log_likelihoods, prior, proposals
        )
        far = jnp.abs(directions - columns.direction) + jnp.abs(scales - columns.local_scales)
        off = jnp.max(jnp.abs(columns.fit - columns.direction @ ACROSS))
        off = off + jnp.abs(-0.1 * sums - log_prior(columns.local_scales))
        return jnp.argmin(jnp.sum(far, axis=1)), jnp.min(jnp.sum(far, axis=1)) + off, accepted

    draws = 25_000
    place, distance, accepted = jax.jit(moved)(jax.random.split(jax.random.key(0), draws))
    assert np.max(distance) < 1e-9
    assert np.mean(accepted) > 0.3
    seen = np.bincount(place, minlength=len(scales))
    rare = expected * draws < 10.0
    merged = [np.append(part[~rare], part[rare].sum()) for part in (seen, expected * draws)]
    assert stats.chisquare(*merged).pvalue > 1e-3


def test_the_one_other_column_that_will_do_is_found_among_many():
    """Two of a thousand columns separate the rows, neither the other's nearest: each has its turn."""
    rows = 40
    signs = np.where(RANDOM.normal(size=rows) > 0, 1.0, -1.0)
    many = RANDOM.normal(size=(1000, rows))
    many[17], many[801] = (signs * RANDOM.uniform(0.2, 2.0, size=rows) for _ in range(2))
    across = jnp.asarray(many)
    direction = scales = jnp.full(1000, 1e-6).at[17].set(9.0)
    begin = Columns(direction, scales, direction @ across)

    def fits_well(fits):
        return jnp.sum(jax.nn.log_sigmoid(signs * fits), axis=-1)

    def step(columns, key):
        columns, *_ = propose_swaps(key, columns, across.T, across, fits_well, FLAT, 20)
        return columns, jnp.argmax(columns.local_scales)

    keys = jax.random.split(jax.random.key(1), 20)
    _, largest = jax.jit(lambda keys: jax.lax.scan(step, begin, keys))(keys)
    assert set(np.asarray(largest).tolist()) == {17, 801}


def test_nothing_to_trade_stays():
    """A fit that is not a number is refused, whatever is proposed."""
    begin = Columns(DIRECTION, SCALES, DIRECTION @ ACROSS)
    after, *_, accepted = propose_swaps(
        jax.random.key(0),
        begin,
        ACROSS.T,
        ACROSS,
        lambda fits: jnp.full(fits.shape[:-1], jnp.nan),
        FLAT,
        5,
    )
    assert accepted == 0.0
    assert np.array_equal(after.local_scales, SCALES)
