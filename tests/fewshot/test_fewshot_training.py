"""Training: same seed same bits, alone or in company, in one go or resumed."""

import itertools
import json
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from predcp._support.saved import load_model, save_model
from predcp.fewshot import (
    CheckpointError,
    ConvNet,
    Meta,
    Paused,
    PredCPModules,
    Rates,
    Run,
    Settings,
    ShrinkageModules,
    Trainer,
    as_module_prior,
    evaluate,
    fit_runs,
    module_report,
)
from predcp.fewshot import _fit as fit_module
from predcp.fewshot import _train as train_module
from predcp.fewshot._module_priors import module_prior_from_config
from predcp.fewshot._objective import outer_loss
from predcp.fewshot._runs import Present, run_values

PRIORS = ("maml", "flat", "shrinkage-gem-1e-1", "predcp-exponential-1e-1")
RUNS = [Run(as_module_prior(prior), 3) for prior in PRIORS]


@pytest.fixture(scope="module")
def whole(network, settings, train_pool, validation_pool):
    """All priors side by side, in one go."""
    return fit_runs(network, settings, RUNS, train_pool, validation_pool)


def leaves(meta, run):
    return [np.asarray(leaf)[run] for leaf in jax.tree.leaves(meta)]


def test_a_run_does_not_depend_on_its_company(
    whole, network, settings, train_pool, validation_pool
):
    index = 3
    alone = fit_runs(network, settings, [RUNS[index]], train_pool, validation_pool)
    for ours, theirs in zip(leaves(alone.best, 0), leaves(whole.best, index), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
    assert alone.iteration[0] == whole.iteration[index]


def test_scales_are_learnt_but_by_maml(whole):
    sigma = whole.history["sigma"]
    assert sigma.shape == (3, 4, 2)
    np.testing.assert_array_equal(sigma[:, 0], 1.0)
    assert np.all(sigma[-1, 1:] != 1.0)
    # The prior pulls scales down.
    assert np.all(sigma[-1, 2] < sigma[-1, 1])


def test_the_best_look_is_kept(whole):
    seen = whole.history["validation_accuracy"]
    np.testing.assert_allclose(whole.validation_accuracy, seen.max(0))
    np.testing.assert_array_equal(
        whole.iteration, whole.history["iteration"][np.argmax(seen, axis=0)]
    )


def test_a_seed_decides_the_start_whatever_the_prior(network, settings, train_pool):
    runs = [
        Run(as_module_prior(prior), seed) for prior, seed in (("flat", 0), ("maml", 0), ("flat", 1))
    ]
    start = Trainer(network, settings, runs, train_pool).start()
    first, same, other = (leaves(start.meta, run) for run in range(3))
    for ours, theirs in zip(first, same, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not np.allclose(first[1], other[1])


def paused_at(limit, error, monkeypatch):
    """Raise after so many chunks."""
    calls = []
    real = train_module._advance

    def advance(*arguments, **keywords):
        if len(calls) == limit:
            raise error
        calls.append(1)
        return real(*arguments, **keywords)

    monkeypatch.setattr(train_module, "_advance", advance)


@pytest.mark.parametrize("chunks", [1, 2])
def test_an_interrupted_fit_goes_on_to_the_same_bits(
    whole, network, settings, train_pool, validation_pool, tmp_path, monkeypatch, chunks
):
    fit = partial(fit_runs, network, settings, RUNS, train_pool, validation_pool)
    with monkeypatch.context() as patch:
        paused_at(chunks, KeyboardInterrupt(), patch)
        with pytest.raises(KeyboardInterrupt):
            fit(checkpoint=tmp_path / "fit")
    assert (tmp_path / "fit").is_file()
    reported = []
    resumed = fit(
        checkpoint=tmp_path / "fit", report_progress=lambda *words: reported.append(words[0])
    )
    assert reported == [4, 8, 12][chunks:]
    for ours, theirs in zip(jax.tree.leaves(resumed.best), jax.tree.leaves(whole.best)):
        np.testing.assert_array_equal(ours, theirs)
    for name, values in whole.history.items():
        np.testing.assert_array_equal(resumed.history[name], values)
    # A finished fit is read, not run.
    with monkeypatch.context() as patch:
        paused_at(0, AssertionError("trained again"), patch)
        again = fit(checkpoint=tmp_path / "fit")
    np.testing.assert_array_equal(again.iteration, whole.iteration)


@pytest.mark.parametrize("length,few", [(500, 5), (12, 4), (7, 1), (3, 3)])
def test_a_chunk_on_a_cpu_is_run_in_equal_pieces(length, few):
    class Part(NamedTuple):
        iteration: int

        def advance(self, state, count):
            assert count == few
            return Part(state.iteration + count), {"loss": np.array([float(state.iteration)])}

    shown = []
    after, means = fit_module._advanced(Part(10), Part(10), length, shown.append)
    assert after.iteration == 10 + length
    assert shown == list(range(10 + few, 10 + length, few))
    assert means["loss"] == pytest.approx(np.mean(range(10, 10 + length, few)))


@pytest.mark.long
def test_progress_moves_between_validations(network, settings, train_pool, monkeypatch):
    run = [Run(as_module_prior("flat"), 3)]
    whole = fit_runs(network, settings, run, train_pool)
    seconds = itertools.count(step=2.0)
    clock = SimpleNamespace(monotonic=lambda: next(seconds), perf_counter=time.perf_counter)
    monkeypatch.setattr(fit_module, "time", clock)
    monkeypatch.setattr(fit_module, "_FEW", 2)
    seen = []
    parts = fit_runs(
        network, settings, run, train_pool, report_progress=lambda *words: seen.append(words)
    )
    assert [words[0] for words in seen] == [2, 4, 6, 8, 10, 12]
    assert np.isnan(seen[0][2]).all() and not np.isnan(seen[1][2]).any()
    for ours, theirs in zip(jax.tree.leaves(parts.best), jax.tree.leaves(whole.best)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(parts.history["loss"], whole.history["loss"], rtol=1e-5)


def test_time_used_up_is_an_interrupt(network, settings, train_pool, tmp_path):
    run = [Run(as_module_prior("flat"), 3)]
    with pytest.raises(Paused, match="at iteration 4 of 12; run the same again"):
        fit_runs(network, settings, run, train_pool, checkpoint=tmp_path / "fit", seconds=0.0)
    done = fit_runs(network, settings, run, train_pool, checkpoint=tmp_path / "fit")
    assert done.iterations == 12 and list(done.history["iteration"]) == [4, 8, 12]
    assert np.isnan(done.validation_accuracy[0]) and done.iteration[0] == 12


def test_damaged_checkpoints(network, settings, train_pool, tmp_path, monkeypatch):
    run = [Run(as_module_prior("flat"), 3)]
    monkeypatch.setattr(fit_module, "_CHECKPOINT_SECONDS", -1.0)
    fit = partial(fit_runs, network, settings, run, train_pool, checkpoint=tmp_path / "fit")
    first = fit()
    newest = tmp_path / "fit"
    damaged = bytearray(newest.read_bytes())
    damaged[-5] ^= 255
    newest.write_bytes(damaged)
    # The one before it serves: eight of twelve iterations are not lost.
    reported = []
    with pytest.warns(UserWarning, match="altered or damaged"):
        again = fit(report_progress=lambda *words: reported.append(words[0]))
    assert reported == [12]
    for ours, theirs in zip(jax.tree.leaves(again.best), jax.tree.leaves(first.best)):
        np.testing.assert_array_equal(ours, theirs)
    for path in (newest, tmp_path / "fit.older"):
        path.write_bytes(b"nothing")
    with (
        pytest.warns(UserWarning),
        pytest.raises(CheckpointError, match="no checkpoint of .* is intact .* delete them"),
    ):
        fit()


def test_runs_may_differ_in_rates(network, settings, train_pool):
    rates = Rates(inner_rate=0.05, outer_rate=2e-3, final_rate=0.0, weight_decay=0.5)
    prior = as_module_prior("flat")
    short = replace(settings, iterations=2, validate_every=2)
    together = Trainer(network, short, [Run(prior, 3), Run(prior, 3, rates)], train_pool)
    own = Trainer(network, replace(short, **rates._asdict()), [Run(prior, 3)], train_pool)
    steady = rates._replace(final_rate=1.0, weight_decay=0.0)
    other = Trainer(network, replace(short, **steady._asdict()), [Run(prior, 3)], train_pool)
    begun = other.start().meta.theta["conv1"]["weight"][0]
    states = []
    for trainer in (together, own, other):
        state, _ = trainer.advance(trainer.start(), 1)
        states.append((state, trainer.advance(state, 1)[0]))
    ours, theirs = (state.meta.theta["conv1"]["weight"][-1] for state, _ in states[:2])
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    # The first step: Adam's, and a share of the weights.
    plain = states[2][0].meta.theta["conv1"]["weight"][0]
    np.testing.assert_allclose(theirs - plain, -2e-3 * 0.5 * begun, rtol=1e-6, atol=1e-12)
    # Half way along the cosine a step is half as long; scales do not decay.
    before, after = (state.meta.log_sigma[0] for state in states[1])
    assert np.abs(after - before).max() < 2e-3 * 0.51
    long, short_step = states[2], states[1]
    whole = long[1].meta.log_sigma[0] - long[0].meta.log_sigma[0]
    half = short_step[1].meta.log_sigma[0] - short_step[0].meta.log_sigma[0]
    np.testing.assert_allclose(half, 0.5 * whole, rtol=0.1, atol=1e-5)


def test_a_checkpoint_of_another_fit_is_refused(network, settings, train_pool, tmp_path):
    run = [Run(as_module_prior("flat"), 3)]
    fit_runs(network, settings, run, train_pool, checkpoint=tmp_path / "fit")
    with pytest.raises(CheckpointError, match=r"another fit \(it differs in settings\)"):
        other = replace(settings, inner_rate=0.02)
        fit_runs(network, other, run, train_pool, checkpoint=tmp_path / "fit")
    saved = load_model(tmp_path / "fit", "checkpoint")
    arrays = {**saved.arrays, "state/0000": saved.arrays["state/0000"][..., :-1]}
    save_model(tmp_path / "fit", replace(saved, arrays=arrays))
    with pytest.raises(CheckpointError, match="holds other arrays"):
        fit_runs(network, settings, run, train_pool, checkpoint=tmp_path / "fit")


def test_patience_stops_a_fit_and_freezes_a_run(network, settings, train_pool, validation_pool):
    patient = replace(settings, iterations=400, patience=2, validate_every=4)
    fit = fit_runs(network, patient, RUNS[:1], train_pool, validation_pool)
    seen = fit.history["validation_accuracy"][:, 0]
    assert fit.iterations < 400
    assert np.argmax(seen) == len(seen) - 3


@pytest.mark.long
def test_stopped_runs_leave_the_program_and_change_nothing(
    network, settings, train_pool, validation_pool, tmp_path, monkeypatch
):
    """Six runs stop at different looks: each ends as it does alone, and the program shrinks."""
    patient = replace(
        settings, iterations=400, patience=4, validate_every=2, outer_rate=1e-2, validation_tasks=40
    )
    runs = [Run(as_module_prior(prior), seed) for prior in PRIORS[1:] for seed in (3, 4)]
    sizes = []
    real = Trainer.advance

    def advance(trainer, state, length):
        sizes.append(len(trainer.runs))
        return real(trainer, state, length)

    monkeypatch.setattr(Trainer, "advance", advance)
    together = fit_runs(network, patient, runs, train_pool, validation_pool)
    sizes_in_one_go = list(sizes)
    assert sizes_in_one_go == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 2 and sizes[-1] <= 2
    for place, run in enumerate(runs):
        alone = fit_runs(network, patient, [run], train_pool, validation_pool)
        assert alone.iteration[0] == together.iteration[place]
        for ours, theirs in zip(leaves(alone.best, 0), leaves(together.best, place), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
        # What a run was seen to do until it stopped is in the history as it was.
        looks = len(alone.history["iteration"])
        for name in ("sigma", "validation_accuracy", "loss"):
            np.testing.assert_allclose(
                together.history[name][:looks, place], alone.history[name][:, 0], rtol=1e-6
            )
    sizes.clear()
    half = len(sizes_in_one_go) - 2
    fit = partial(fit_runs, network, patient, runs, train_pool, validation_pool)
    with monkeypatch.context() as patch:
        paused_at(half, KeyboardInterrupt(), patch)
        with pytest.raises(KeyboardInterrupt):
            fit(checkpoint=tmp_path / "fit")
    resumed = fit(checkpoint=tmp_path / "fit")
    assert sizes[:half] + sizes[half + 1 :] == sizes_in_one_go
    for ours, theirs in zip(jax.tree.leaves(resumed.best), jax.tree.leaves(together.best)):
        np.testing.assert_array_equal(ours, theirs)
    for name, values in together.history.items():
        np.testing.assert_array_equal(resumed.history[name], values)


def test_programs_are_traced_once(whole, network, settings, train_pool, validation_pool):
    before = train_module._advance._cache_size()
    priors = [run.prior for run in RUNS]
    others = [Run(replace(prior, beta=0.3) if prior.weight else prior, 8) for prior in priors]
    shorter = replace(settings, iterations=4, patience=3)
    fit_runs(network, shorter, others, train_pool, validation_pool)
    assert train_module._advance._cache_size() == before


def test_clipped_gradients_are_no_longer_than_asked(network, settings, train_pool):
    """With Adam a constant factor in the gradient changes nothing: compare its memory."""
    runs = [Run(PredCPModules("log-cauchy", 1.0, clip=clip), 3) for clip in (None, 1e-3, 1e9)]
    trainer = Trainer(network, settings, runs, train_pool)
    state, _ = trainer.advance(trainer.start(), 1)
    norms = np.sqrt(
        sum(
            np.square(np.asarray(leaf)).reshape(3, -1).sum(1)
            for leaf in jax.tree.leaves(state.optimiser.mu)
        )
    )
    np.testing.assert_allclose(norms[1], 0.1 * 1e-3, rtol=1e-6)
    np.testing.assert_allclose(norms[2], norms[0], rtol=1e-12)


@pytest.mark.long
def test_other_ways_to_measure_kappa_run(network, settings, train_pool):
    changed = replace(settings, kappa_inputs="query", noise_draws=3, truncate=True)
    trainer = Trainer(network, changed, RUNS[3:], train_pool)
    state, means = trainer.advance(trainer.start(), 2)
    assert np.all(np.isfinite(state.meta.log_sigma)) and np.isfinite(means["loss"][0])


def test_what_is_learnt_helps_new_classes(network, settings, train_pool, validation_pool):
    longer = replace(settings, iterations=150, validate_every=150, outer_rate=1e-2, test_tasks=60)
    fit = fit_runs(network, longer, [RUNS[1]], train_pool)
    learnt = evaluate(fit, validation_pool)[0]
    fresh = replace(fit, best=fit.trainer.start().meta)
    before = evaluate(fresh, validation_pool)[0]
    assert learnt.mean > before.mean + 10.0
    report = module_report(fit)
    assert report.modules == ("conv1", "head") and "kept" in str(report)


@pytest.mark.long
def test_devices_share_the_work():
    """Over two devices, by runs and by tasks: the same result."""
    script = """
        import jax, numpy as np
        jax.config.update("jax_enable_x64", True)
        from predcp.fewshot import DenseNet, Pool, Run, Settings, Trainer, as_module_prior
        generator = np.random.default_rng(0)
        pool = Pool.of(generator.normal(size=(40, 3)), np.repeat(np.arange(5), 8))
        settings = Settings(ways=2, queries=3, meta_batch=2, inner_steps=1)
        network = DenseNet(ways=2, widths=(4,), normalisation="batch")
        devices = jax.devices()
        assert len(devices) == 2
        for count in (1, 2):
            runs = [Run(as_module_prior("flat"), s) for s in range(count)]
            found = []
            for given in (None, devices):
                trainer = Trainer(network, settings, runs, pool, pool, given)
                state, means = trainer.advance(trainer.start(), 3)
                if given is not None:
                    leaf = state.meta.theta["head"]["weight"]
                    assert len(leaf.sharding.device_set) == 2
                found.append(jax.tree.leaves((state.meta, means)))
            for one, two in zip(*found):
                np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
        try:
            Trainer(network, Settings(ways=2, queries=3, meta_batch=3), runs[:1], pool, None, devices)
        except ValueError as error:
            assert "devices divide neither" in str(error)
        print("alike")
    """
    flags = f"--xla_force_host_platform_device_count=2 {os.environ.get('XLA_FLAGS', '')}"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )
    assert done.stdout.strip() == "alike", done.stderr


@pytest.mark.parametrize(
    "change,message",
    [
        ({"ways": 9}, "ways must be at most 8, the classes of the training data, got 9"),
        ({"shots": 10}, r"shots \+ queries must be at most 12"),
    ],
)
def test_impossible_tasks_are_refused(network, settings, train_pool, change, message):
    other = replace(network, ways=change.get("ways", 3))
    with pytest.raises(ValueError, match=message):
        Trainer(other, replace(settings, **change), RUNS, train_pool)


@pytest.mark.parametrize(
    "change,message",
    [
        ({"shots": 0}, "shots must be a whole number of at least 1, got 0"),
        ({"ways": 1}, "ways must be a whole number of at least 2"),
        ({"inner_rate": 0.0}, "inner_rate must be positive"),
        ({"final_rate": 1.5}, "final_rate must be between 0 and 1"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0"),
        ({"objective": "max"}, "objective must be mean or sum, got 'max'"),
        ({"patience": 0}, "patience must be a whole number"),
    ],
)
def test_bad_settings_are_refused(settings, change, message):
    with pytest.raises(ValueError, match=message):
        replace(settings, **change)


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: as_module_prior("predcp-cauchy-1e-1"), "no prior is called 'predcp-cauchy-1e-1'"),
        (lambda: as_module_prior("predcp-gem-much"), "no prior is called"),
        (lambda: as_module_prior(3), "prior must be a predcp.fewshot prior or .*, got int"),
        (
            lambda: as_module_prior("flat", beta=3.0),
            r"the prior flat has no beta; it has \['clip'\]",
        ),
        (lambda: ShrinkageModules("normal"), "pi must be a prior .* half-cauchy, .* got 'normal'"),
        (lambda: ShrinkageModules(3.0), "pi must be a distribution, got float"),
        (lambda: PredCPModules("gem", 0.0), "beta must be positive"),
        (lambda: PredCPModules("gem", clip=-1.0), "clip must be positive"),
        (lambda: PredCPModules("gem", measure="kappa"), "measure must be one of variance"),
        (
            lambda: PredCPModules("gem", modules=("neck",)).mask(("body", "head")),
            r"modules \['neck'\] are not in the network, which has body, head",
        ),
    ],
)
def test_bad_priors_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "name", ["maml", "flat", "predcp-gem-1e-3", "shrinkage-log-cauchy-1e-0", "predcp-gem-0.25"]
)
def test_priors_by_name(name):
    prior = as_module_prior(name)
    assert as_module_prior(prior.name) == prior and as_module_prior(prior) is prior
    assert prior.description == name


def test_what_a_name_does_not_tell_is_described_in_full():
    """Descriptions tell checkpoints apart: the same fit has the same one in every process."""
    body = as_module_prior("predcp-gem-1e-3", modules="body")
    assert list(body.mask(("conv1", "head"))) == [1.0, 0.0]
    for prior, words in (
        (body, '"pi": "gem", "beta": 0.001, "modules": "body"'),
        (ShrinkageModules(predcp.Exponential(mean=0.25)), '{"pi": "Exponential", "parameters"'),
        (PredCPModules(dist.HalfNormal(0.5), modules=("a", "b")), '{"numpyro": "HalfNormal"'),
    ):
        assert words in prior.description
        again = module_prior_from_config(json.loads(prior.description))
        assert type(again) is type(prior) and again.description == prior.description


@pytest.mark.long
def test_half_precision_trains_as_single_does():
    """Loss and meta-gradient in bfloat16 point where those in single precision do."""
    x = jax.random.normal(jax.random.key(1), (2, 3, 5, 4, 4, 2), jnp.float32)
    prior = as_module_prior("predcp-exponential-1e-2")
    run, densities = run_values([prior], ("conv1", "head"), [Rates(inner_rate=0.1)])
    run = jax.tree.map(lambda leaf: leaf[0].astype(jnp.float32), run)._replace(pi=0)
    task = Settings(ways=3, queries=4, meta_batch=2, inner_steps=2, inner_rate=0.1, unroll=False)
    found = {}
    for precision in ("highest", "bfloat16"):
        network = ConvNet(ways=3, channels=4, blocks=1, precision=precision)
        theta, shared = network.init(jax.random.key(0), (4, 4, 2))
        meta = jax.tree.map(
            lambda leaf: leaf.astype(jnp.float32), Meta(theta, shared, jnp.full(2, -2.0))
        )

        def loss(meta, network=network):
            present = Present.among([prior])
            return outer_loss(meta, network, task, densities, present, run, x, jax.random.key(2))[0]

        value, slope = jax.jit(jax.value_and_grad(loss))(meta)
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(slope))
        flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(slope)])
        found[precision] = float(value), flat / np.linalg.norm(flat)
    np.testing.assert_allclose(found["bfloat16"][0], found["highest"][0], rtol=0.01)
    cosine = float(found["bfloat16"][1] @ found["highest"][1])
    assert 0.99 < cosine < 1.0
