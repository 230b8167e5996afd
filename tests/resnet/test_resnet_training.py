"""Training: the same bits however it is cut, one program for many fits, and it learns."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tests.compilations import count_compilations

from predcp._support.checkpoint import CheckpointError
from predcp.resnet import Model, Network, Objective, Preset, as_layer_prior, as_preset
from predcp.resnet import _fit as fit_module
from predcp.resnet._branch import branch_moments
from predcp.resnet._fit import Stopping, fit
from predcp.resnet._objective import expectation_step, loss
from predcp.resnet._posterior import start
from predcp.resnet._rows import ROWS
from predcp.resnet._stochastic import flipout
from predcp.resnet._training import Data, Optimiser, programs, seed_words, steps_of

NETWORK = Network(2, 6, 1)
ROWS_COUNT = 40


def data(rows=ROWS_COUNT, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, 2)).astype(np.float32)
    y = (np.sin(2.0 * x[:, 0]) + 0.1 * generator.standard_normal(rows)).astype(np.float32)
    return Data(jnp.asarray(x), jnp.asarray(y))


def model(*priors, **options):
    chosen = tuple(as_layer_prior(prior) for prior in priors)
    return Model(NETWORK, chosen, ROWS, samples=2, **options)


def leaves_equal(one, other):
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other)))


def trained(description, epochs=6, batch=16, seed=3, **options):
    objective = Preset().objective(NETWORK, ROWS_COUNT)
    return fit(description, Optimiser(), data(), objective, epochs, batch, seed, **options)


def test_the_same_seed_gives_the_same_bits_and_another_others():
    one, same, other = (trained(model("predcp"), seed=seed) for seed in (3, 3, 4))
    leaves_equal(one.posterior, same.posterior)
    assert not np.array_equal(one.posterior.mean.body, other.posterior.mean.body)
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(one.posterior))


def test_chunks_do_not_change_a_bit():
    program = programs(model("predcp"), Optimiser(), 16, many=False)
    objective = Objective(0, 1.0 / ROWS_COUNT)
    begin = lambda: program.start(seed_words(0), jnp.zeros((), jnp.float32))  # noqa: E731
    whole = program.advance(begin(), data(), objective, 7)
    # The number of epochs is no part of the program.
    with count_compilations() as compiled:
        parts = begin()
        for epochs in (1, 4, 2):
            parts = program.advance(parts, data(), objective, epochs)
    assert compiled == [0]
    leaves_equal(whole, parts)


def test_progress_moves_between_evaluations(monkeypatch):
    seen = []
    # One evaluation of forty epochs.
    monkeypatch.setattr(fit_module, "_EVALUATIONS", 1)
    trained(model("predcp"), epochs=40, report_progress=lambda *words: seen.append(words))
    assert seen[:3] == [(0, 40, "compiling"), (1, 40, "training"), (2, 40, "training")]
    assert seen[-1] == (40, 40, "training")


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "fit.checkpoint"
    whole = trained(model("predcp"), epochs=6)

    class Killed(Exception):
        pass

    def kill(done, total):
        if done == 4:
            raise Killed

    with pytest.raises(Killed):
        trained(model("predcp"), epochs=6, checkpoint=path, report_progress=kill)
    seen = []
    resumed = trained(
        model("predcp"),
        epochs=6,
        checkpoint=path,
        report_progress=lambda done, total: seen.append(done),
    )
    assert seen == [4, 5, 6]
    leaves_equal(whole.posterior, resumed.posterior)
    np.testing.assert_array_equal(whole.history, resumed.history)
    # A finished fit is only read.
    leaves_equal(whole.posterior, trained(model("predcp"), epochs=6, checkpoint=path).posterior)
    for changed in ({"seed": 4}, {"epochs": 7}):
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            trained(model("predcp"), checkpoint=path, **{"epochs": 6} | changed)
    with pytest.raises(CheckpointError, match="belongs to another fit"):
        trained(model("inverse-gamma"), epochs=6, checkpoint=path)


def test_many_fits_in_one_program_are_those_of_single_ones():
    names = ("fixed-0.1", "inverse-gamma", "predcp", "predcp")
    presets = ("paper", "public-code", "paper", "public-code")
    several = model("fixed-0.1", "inverse-gamma", "predcp", quirks=True)
    program = programs(several, Optimiser(), 16, many=True)
    objectives = [
        as_preset(preset).objective(NETWORK, ROWS_COUNT, several.priors.index(as_layer_prior(name)))
        for name, preset in zip(names, presets)
    ]
    columns = list(zip(*objectives))
    objective = Objective(
        jnp.asarray(columns[0], jnp.int32), *(jnp.asarray(c, jnp.float32) for c in columns[1:])
    )
    starts = jnp.log(jnp.asarray([as_layer_prior(name).start for name in names], jnp.float32))
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), data())
    state = program.start(jnp.stack([seed_words(3)] * 4), starts)
    state = program.advance(state, stacked, objective, 5)
    for number, (name, preset) in enumerate(zip(names, presets)):
        alone = fit(
            model(name, quirks=True),
            Optimiser(),
            data(),
            as_preset(preset).objective(NETWORK, ROWS_COUNT),
            5,
            16,
            3,
        )
        together = jax.tree.map(lambda leaf, n=number: leaf[n], state.posterior)
        for ours, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(alone.posterior)):
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)
    # They are different fits.
    assert len(np.unique(np.asarray(state.posterior.log_tau))) == 4


def test_repeated_fits_compile_once():
    description = model("half-cauchy")
    trained(description, seed=0)
    with count_compilations() as compiled:
        for seed in range(1, 3):
            trained(description, seed=seed)
    assert compiled == [0]


def slopes(name, objective=None):
    description = model(name, quirks=objective is not None)
    objective = objective or Objective(0, 1.0 / ROWS_COUNT)
    posterior, batch, key = start(jax.random.key(0), NETWORK), data(16), jax.random.key(5)

    @jax.jit
    def value(posterior):
        return loss(posterior, description, objective, batch.x, batch.y, key)[0]

    return posterior, value, jax.jit(jax.grad(value))(posterior)


def test_gradients_of_the_biases_are_those_of_the_objective():
    # A complexity prior looks at the hidden states too, and passes no gradient back to them.
    posterior, value, slope = slopes("fixed")
    step = 1e-2

    def moved(size):
        biases = jax.tree.map(lambda leaf: leaf + size, posterior.biases)
        return float(value(posterior._replace(biases=biases)))

    exact = float(sum(leaf.sum() for leaf in jax.tree.leaves(slope.biases)))
    assert exact == pytest.approx((moved(step) - moved(-step)) / (2.0 * step), rel=1e-2)


def test_one_gradient_step_of_tau_is_that_of_its_log_posterior():
    _, _, slope = slopes("predcp")
    description, objective = model("predcp"), Objective(0, 1.0 / ROWS_COUNT)
    posterior, batch, key = start(jax.random.key(0), NETWORK), data(16), jax.random.key(5)
    scales = expectation_step(description, posterior, objective)
    hidden = flipout(NETWORK, posterior, batch.x, description.samples, key).hidden
    rows = jnp.exp(NETWORK.by_layer(scales.body))[0]
    moments = np.asarray(posterior.mean.body**2 + jax.nn.softplus(posterior.spread.body))[2:]
    head = posterior.mean.head
    second = branch_moments(hidden, rows, head, jax.nn.softplus(posterior.spread.head)).second()
    # log kappa = log tau + log c, tau = 1, and d/du of
    # -n u / 2 - sum(m / lambda^2) e^-u / 2 + log pi(log kappa) - u.
    kappa = np.log(0.5 * 20.0 * float(second))
    by_hand = (
        -18.0 + 0.5 * (moments.sum(1) / np.asarray(rows)).sum() - 2.0 * kappa / (1 + kappa**2) - 1.0
    )
    assert float(slope.log_tau[0]) == pytest.approx(-by_hand / ROWS_COUNT, rel=1e-4)


def test_scales_in_closed_form_are_held_still_unless_asked():
    _, _, held = slopes("inverse-gamma")
    _, _, passed = slopes("inverse-gamma", Objective(0, 1.0 / ROWS_COUNT, slopes=1.0))
    assert np.all(np.asarray(held.log_tau) == 0.0)
    assert not np.allclose(held.mean.body, passed.mean.body, rtol=1e-3)
    np.testing.assert_allclose(held.biases.hidden, passed.biases.hidden, rtol=1e-5)


@pytest.mark.parametrize("preset", ["paper", "tempered", "public-code"])
@pytest.mark.parametrize("estimator", ["flipout", "local"])
def test_it_learns(preset, estimator):
    if preset == "public-code" and estimator == "local":
        pytest.skip("the public code has one estimator")
    description = model("predcp", estimator=estimator, quirks=preset == "public-code")
    objective = as_preset(preset).objective(NETWORK, ROWS_COUNT)
    fitted = fit(description, Optimiser(1e-2), data(), objective, 150, 16, 0)
    outputs = NETWORK.apply(fitted.posterior.mean, fitted.posterior.biases, data().x)[:, 0]
    assert float(jnp.mean((outputs - data().y) ** 2)) < 0.35 * float(jnp.var(data().y))
    # The expected log likelihood rises.
    assert fitted.history[-1, 1] > fitted.history[0, 1]


def test_the_objective_of_the_paper_is_the_elbo():
    exact = Preset().objective(NETWORK, 200)
    assert exact.kl_weight == 1.0 / 200 and exact.flips == exact.updates == exact.slopes == 0.0
    averaged = as_preset("public-code").objective(NETWORK, 200)
    assert averaged.kl_weight == 1.0 / (2 * 6 + 6 * 6 + 6) and averaged.flips == 1.0
    assert Preset(kl_weight=0.1).objective(NETWORK, 200).kl_weight == pytest.approx(0.1 / 200)
    with pytest.raises(ValueError, match="preset must be one of 'paper'"):
        as_preset("exact")


def test_a_schedule_and_a_learned_noise():
    schedule = optax.cosine_decay_schedule(1e-2, 150 * 2)
    fitted = fit(
        model("predcp", precision=None),
        Optimiser(schedule),
        data(),
        Preset().objective(NETWORK, ROWS_COUNT),
        150,
        16,
        0,
    )
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(fitted.posterior))
    # From 20 towards the data's own.
    assert abs(float(fitted.posterior.log_precision) - np.log(20.0)) > 0.1
    with pytest.raises(ValueError, match="learning_rate must be positive"):
        Optimiser(0.0)


def test_training_stops_when_the_rows_set_aside_say_so():
    held = data(20, seed=1)
    stopping = Stopping(held.x, held.y + 100.0, patience=3)
    fitted = trained(model("predcp"), epochs=40, stopping=stopping)
    scores = fitted.history[:, 4]
    assert len(scores) < 40 and np.argmax(scores) == len(scores) - 1 - 3
    # The kept posterior is the best one, not the last.
    again = trained(model("predcp"), epochs=40, stopping=stopping)
    leaves_equal(fitted.posterior, again.posterior)


def test_batches():
    assert steps_of(455, 32) == (32, 14)
    assert steps_of(5, 32) == (5, 1)
    assert steps_of(1, 32) == (1, 1)
