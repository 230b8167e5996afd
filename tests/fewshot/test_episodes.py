"""Tasks: different classes, different examples, decided by the seed alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from predcp.fewshot import Pool
from predcp.fewshot._episodes import channel_statistics, task_key

# Classes of 5, 7 and 9 examples whose labels are not in order.
COUNTS = (5, 7, 9)
LABELS = np.random.default_rng(0).permutation(np.repeat([30, 10, 20], COUNTS))
EXAMPLES = np.random.default_rng(1).integers(0, 256, (21, 2, 2, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def pool():
    return Pool.of(EXAMPLES, LABELS)


def draw(pool, count, ways=2, each=5):
    keys = jax.vmap(lambda number: task_key(0, 1, number))(jnp.arange(count))
    return np.asarray(jax.jit(jax.vmap(lambda key: pool.rows(key, ways, each)))(keys))


def test_rows_are_of_different_classes_and_different_examples(pool):
    rows = draw(pool, 200)
    assert rows.shape == (200, 2, 5)
    classes = LABELS[rows]
    assert np.all(classes == classes[:, :, :1])
    assert np.all(classes[:, 0, 0] != classes[:, 1, 0])
    assert all(len(set(row)) == 5 for task in rows for row in task)


def test_every_example_and_class_is_equally_likely(pool):
    rows = draw(pool, 3000, ways=1, each=2).reshape(-1)
    seen = np.bincount(rows, minlength=21)
    for label in np.unique(LABELS):
        members = np.flatnonzero(label == LABELS)
        # A third of 3000 tasks, two examples each: expectation 2000 / size, five deviations.
        expected = 2000.0 / len(members)
        assert np.all(np.abs(seen[members] - expected) < 5.0 * np.sqrt(expected))


def test_a_task_depends_on_its_seed_and_number_alone(pool):
    def rows(*place):
        return np.asarray(pool.rows(task_key(*place), 2, 3))

    np.testing.assert_array_equal(rows(3, 1, 4), rows(3, 1, 4))
    others = [rows(2, 1, 4), rows(3, 2, 4), rows(3, 1, 5)]
    assert not any(np.array_equal(rows(3, 1, 4), other) for other in others)


def test_examples_are_standardised_by_channel(pool):
    x = np.asarray(pool.standardised(jnp.arange(21)))
    np.testing.assert_allclose(x.mean((0, 1, 2)), 0.0, atol=1e-12)
    np.testing.assert_allclose(x.std((0, 1, 2)), 1.0, rtol=1e-12)
    assert pool.examples.dtype == jnp.uint8


def test_a_constant_channel_keeps_its_scale():
    values = np.ones((10, 4))
    values[:, 0] = np.arange(10)
    mean, deviation = channel_statistics(values)
    np.testing.assert_allclose(mean, [4.5, 1, 1, 1])
    np.testing.assert_allclose(deviation, [np.arange(10).std(), 1, 1, 1])


def test_statistics_of_many_blocks():
    values = np.random.default_rng(0).integers(0, 256, (9001, 3)).astype(np.uint8)
    mean, deviation = channel_statistics(values)
    np.testing.assert_allclose(mean, values.mean(0), rtol=1e-12)
    np.testing.assert_allclose(deviation, values.std(0), rtol=1e-12)


@pytest.mark.parametrize(
    "sizes,message",
    [
        ((4, 1, 1), "ways must be at most 3, the classes of X, got 4"),
        ((1, 1, 1), "ways must be at least 2, got 1"),
        ((2, 3, 3), r"shots \+ queries must be at most 5, .* got 3 \+ 3"),
        ((2, 0, 3), "at least one of each"),
    ],
)
def test_tasks_that_cannot_be_are_refused(pool, sizes, message):
    with pytest.raises(ValueError, match=message):
        pool.require(*sizes)


@pytest.mark.parametrize(
    "examples,labels,message",
    [
        (np.zeros(5), np.zeros(5), r"X must be examples in rows, \(count, ...\), got shape \(5,\)"),
        (np.zeros((5, 2)), np.zeros(4), r"labels of X must have shape \(5,\)"),
        (np.full((5, 2), "a"), np.zeros(5), "X must hold numbers"),
        (np.full((5, 2), np.nan), np.zeros(5), "X must be finite"),
    ],
)
def test_bad_examples_are_refused(examples, labels, message):
    with pytest.raises(ValueError, match=message):
        Pool.of(examples, labels)
