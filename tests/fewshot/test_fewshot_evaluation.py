"""Scores against their definitions, and comparisons task by task."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from predcp.fewshot import Pool, Run, as_module_prior, evaluate, fit_runs, paired_difference
from predcp.fewshot import _scores as scores_module
from predcp.fewshot._evaluate import evaluations
from predcp.fewshot._scores import score, score_tasks


@pytest.fixture(scope="module")
def fit(network, settings, train_pool):
    runs = [Run(as_module_prior(prior), 0) for prior in ("maml", "flat")]
    return fit_runs(network, replace(settings, iterations=4), runs, train_pool)


def test_scores_of_one_task(settings):
    logits = jax.random.normal(jax.random.key(0), (12, 3)) * 3.0
    found = score(logits, settings)
    p = np.exp(logits - jax.scipy.special.logsumexp(logits, axis=1, keepdims=True))
    classes = np.repeat(np.arange(3), 4)
    right = p.argmax(1) == classes
    np.testing.assert_allclose(found.accuracy, right.mean())
    np.testing.assert_allclose(found.log_likelihood, np.log(p[np.arange(12), classes]).mean())
    np.testing.assert_allclose(found.small_accuracy, right[::4].mean())
    counts, confidence, hits = np.asarray(found.bins)
    assert counts.sum() == 12 and hits.sum() == right.sum()
    np.testing.assert_allclose(confidence.sum(), p.max(1).sum())
    edges = np.minimum((p.max(1) * 15).astype(int), 14)
    np.testing.assert_array_equal(counts, np.bincount(edges, minlength=15))


def test_tasks_are_the_same_for_every_run_and_block(fit, validation_pool, monkeypatch):
    once = evaluate(fit, validation_pool, tasks=7)
    scores_module.score_tasks.clear_cache()
    monkeypatch.setattr(scores_module, "_BLOCK", 3)
    again = evaluate(fit, validation_pool, tasks=7)
    scores_module.score_tasks.clear_cache()
    for ours, theirs in zip(once, again):
        np.testing.assert_allclose(ours.accuracy, theirs.accuracy)
        np.testing.assert_allclose(ours.log_likelihood, theirs.log_likelihood, rtol=1e-9)
    assert len(once) == 2 and once[0].accuracy.shape == (7,)
    # The scales have hardly moved in four iterations: on the same tasks both runs do alike.
    assert np.corrcoef(once[0].log_likelihood, once[1].log_likelihood)[0, 1] > 0.9
    other = evaluate(fit, validation_pool, tasks=7, stream="check")
    assert not np.allclose(other[0].log_likelihood, once[0].log_likelihood)


def test_an_evaluations_figures(fit, validation_pool):
    found = fit.trainer.scores(fit.best, validation_pool, 20, "test")
    one = evaluations(found)[0]
    accuracy = np.asarray(found.accuracy)[0]
    np.testing.assert_allclose(one.mean, 100 * accuracy.mean())
    np.testing.assert_allclose(one.standard_error, 100 * accuracy.std(ddof=1) / math.sqrt(20))
    small = np.asarray(found.small_accuracy)[0]
    np.testing.assert_allclose(
        one.small_query_interval, 100 * 1.96 * small.std(ddof=1) / math.sqrt(600), rtol=1e-3
    )
    assert set(one.metrics()) == {"accuracy", "log_likelihood", "calibration_error"}
    assert 0.0 <= one.calibration_error <= 1.0


def test_the_papers_interval_is_about_binomial():
    """PROTOCOLS, known error 8: 600 tasks of 5 queries at 36% give +-1.7 by binomial noise alone."""
    generator = np.random.default_rng(0)
    small = generator.binomial(5, 0.36, 600) / 5
    one = evaluations(
        scores_module.Scores(*(jnp.asarray(small)[None],) * 3, bins=jnp.ones((1, 600, 3, 15)))
    )[0]
    np.testing.assert_allclose(one.small_query_interval, 1.72, atol=0.15)
    assert one.calibration_error == 0.0


def test_paired_differences():
    generator = np.random.default_rng(0)
    tasks = generator.normal(size=500)
    ours = 0.5 + 0.1 * tasks + 0.01 * generator.normal(size=500)
    theirs = 0.48 + 0.1 * tasks
    gap = paired_difference(ours, theirs)
    np.testing.assert_allclose(gap.mean, 100 * (ours - theirs).mean())
    np.testing.assert_allclose(gap.standard_error, 100 * (ours - theirs).std(ddof=1) / 500**0.5)
    assert gap.mean > 20.0 * gap.standard_error and gap.degrees == 499
    # Seeds that disagree make the error theirs, and its degrees of freedom.
    seeds = paired_difference([ours, ours - 0.05], [theirs, theirs])
    np.testing.assert_allclose(seeds.standard_error, 2.5, rtol=1e-6)
    assert seeds.degrees == 1
    agreeing = paired_difference([ours, ours], [theirs, theirs])
    assert agreeing.degrees == 499
    assert agreeing.standard_error == pytest.approx(gap.standard_error)
    assert paired_difference([ours], [theirs]) == gap


def test_impossible_tests_are_refused(fit, validation_pool, train_pool):
    grey = Pool.of(np.zeros((24, 8, 8, 1)), np.repeat(np.arange(4), 6))
    with pytest.raises(ValueError, match=r"test examples have shape \(8, 8, 1\).* channels too"):
        evaluate(fit, grey)
    few = Pool.of(np.zeros((8, 8, 8, 3)), np.repeat(np.arange(2), 4))
    with pytest.raises(
        ValueError, match="ways must be at most 2, the classes of the test data, got 3"
    ):
        evaluate(fit, few)


def test_programs_are_shared_between_fits(fit, validation_pool):
    evaluate(fit, validation_pool, tasks=5)
    before = score_tasks._cache_size()
    evaluate(replace(fit, best=fit.trainer.start().meta), validation_pool, tasks=5)
    assert score_tasks._cache_size() == before
