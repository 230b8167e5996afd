"""The estimator: fit on many classes, adapt to new ones, saved as data."""

import copy

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from predcp._support.saved import SavedModelError, load_model
from predcp.data import ImageClasses
from predcp.fewshot import ConvNet, DenseNet, FewShotClassifier
from predcp.fewshot._classifier import _KIND, default_network

plt.switch_backend("Agg")


def blobs(classes, each, seed, noise=0.3):
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(classes, 4))
    labels = np.repeat(np.arange(classes), each)
    return centres[labels] + noise * generator.normal(size=(len(labels), 4)), labels


@pytest.fixture(scope="module")
def data():
    return blobs(20, 10, 0)


@pytest.fixture(scope="module")
def model(data):
    told = []
    made = FewShotClassifier(
        network=DenseNet(ways=3, widths=(16,)),
        ways=3,
        queries=4,
        inner_steps=2,
        inner_steps_test=5,
        inner_rate=0.3,
        outer_rate=1e-2,
        iterations=450,
        validate_every=150,
        validation_tasks=20,
        progress=lambda *words: told.append(words),
    )
    made.fit(*data, validation=blobs(6, 10, 1))
    # At every validation, and on a slow machine between them.
    assert {(150, 450), (300, 450), (450, 450)} <= {words[:2] for words in told}
    return made


@pytest.fixture(scope="module")
def task():
    x, y = blobs(3, 9, 7, noise=0.1)
    names = np.asarray(["ash", "birch", "oak"])[y]
    return x[::9], names[::9], np.delete(x, [0, 9, 18], 0), np.delete(names, [0, 9, 18])


def test_a_new_task_is_learnt_from_one_example_a_class(model, task):
    support, names, query, truth = task
    adapted = model.adapt(support, names)
    probabilities = model.predict_proba(query)
    assert probabilities.shape == (24, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    assert (model.predict(query) == truth).mean() > 0.8
    np.testing.assert_array_equal(adapted.predict(query), model.predict(query))
    assert list(adapted.classes_) == ["ash", "birch", "oak"]


def test_a_task_may_have_fewer_classes_and_uneven_shots(model, task):
    support, names, query, _ = task
    adapted = model.adapt(np.concatenate([support[:2], query[:1]]), [*names[:2], names[0]])
    assert adapted.predict_proba(query).shape == (24, 2)


def test_many_tasks_are_scored(model):
    found = model.evaluate(*blobs(8, 10, 3), tasks=50)
    assert found.mean > 60.0 and found.accuracy.shape == (50,)


def test_saved_and_loaded(model, task, tmp_path):
    support, names, query, _ = task
    model.save(tmp_path / "model")
    again = FewShotClassifier.load(tmp_path / "model")
    model.adapt(support, names)
    again.adapt(support, names)
    np.testing.assert_array_equal(again.predict_proba(query), model.predict_proba(query))
    assert str(again.summary()) == str(model.summary())
    assert again.sigma_ == model.sigma_ and again.get_params()["ways"] == 3
    again.save(tmp_path / "twice")
    twice = FewShotClassifier.load(tmp_path / "twice").adapt(support, names)
    np.testing.assert_array_equal(twice.predict_proba(query), model.predict_proba(query))
    damaged = bytearray((tmp_path / "model").read_bytes())
    damaged[-3] ^= 255
    (tmp_path / "model").write_bytes(damaged)
    with pytest.raises(SavedModelError, match="altered or damaged"):
        FewShotClassifier.load(tmp_path / "model")


def test_the_report_and_its_picture(model):
    report = model.summary()
    assert report.modules == ("dense1", "head") and report.sizes == (80, 51)
    assert report.sigma.shape == report.kappa.shape == (3, 2)
    assert np.all(report.kappa > 0.0)
    assert str(report).splitlines()[-1].startswith("at iteration")
    figure = report.plot()
    assert [axis.get_ylabel()[:5] for axis in figure.axes] == ["scale", "diver"]
    assert len(figure.axes[0].lines) == 3
    plt.close(figure)


def test_the_same_seed_is_the_same_model_and_has_no_task_yet(model, data, task):
    support, names, query, _ = task
    again = copy.copy(model)
    first = again.adapt(support, names)
    before = first.predict_proba(query)
    again.set_params(progress=None).fit(*data, validation=blobs(6, 10, 1))
    np.testing.assert_array_equal(
        again.meta_.theta["head"]["weight"], model.meta_.theta["head"]["weight"]
    )
    with pytest.raises(NotFittedError, match="no task yet"):
        again.predict_proba(query)
    again.mean_ = again.mean_ + 1.0
    np.testing.assert_array_equal(first.predict_proba(query), before)


def test_settings_and_failures_after_a_fit_change_nothing(model, data, task, tmp_path):
    support, names, query, _ = task
    again = copy.copy(model)
    again.adapt(support, names)
    before = again.predict_proba(query)
    again.set_params(prior="maml", random_state=3)
    with pytest.raises(ValueError, match="y must be given"):
        again.fit(data[0])
    np.testing.assert_array_equal(again.predict_proba(query), before)
    for number, each in enumerate((model, again)):
        each.save(tmp_path / f"{number}")
    first, second = (load_model(tmp_path / f"{number}", _KIND).config for number in range(2))
    assert first == second


def test_images_come_as_they_are_loaded():
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (30, 6, 6, 1)).astype(np.uint8)
    classes = ImageClasses("made-up", "train", images, np.repeat(np.arange(3), 10), ("a", "b", "c"))
    small = FewShotClassifier(
        "flat",
        network=DenseNet(ways=2, widths=()),
        ways=2,
        queries=2,
        inner_steps=1,
        inner_steps_test=1,
        iterations=2,
        validate_every=2,
    )
    small.fit(classes)
    assert np.isnan(small.validation_accuracy_)
    assert default_network((6, 6, 1), 2).module_names == ("conv1", "conv2", "head")
    assert default_network((6,), 2).module_names == ("dense1", "dense2", "head")
    with pytest.raises(ValueError, match=r"shape \(6, 6, 3\), the model was fitted to \(6, 6, 1\)"):
        small.adapt(np.zeros((2, 6, 6, 3)), [0, 1])


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda m, x, y: m.adapt(x, np.arange(len(x))), "y has 20 classes; .* 2 to 3"),
        (lambda m, x, y: m.adapt(x, y[:-1]), r"y must have shape \(20,\)"),
        (lambda m, x, y: m.adapt(x[:, :2], y), r"examples of shape \(2,\), .* fitted to \(4,\)"),
        (lambda m, x, y: m.adapt(x * np.nan, y), "X must hold finite numbers"),
        (lambda m, x, y: m.fit(x), "y must be given"),
        (lambda m, x, y: m.fit(x, y, validation=x), r"validation must be a pair \(X, y\)"),
        (
            lambda m, x, y: (
                clone(m).set_params(ways=2, network=None).fit(x, y, validation=(x[:, :2], y))
            ),
            "validation examples have shape",
        ),
        (lambda m, x, y: clone(m).set_params(progress=3).fit(x, y), "progress must be None, True"),
        (
            lambda m, x, y: m.evaluate(x[:4], y[:4]),
            "ways must be at most 1, the classes of X, got 3",
        ),
    ],
)
def test_bad_input_is_named(model, data, call, message):
    x, y = blobs(2, 10, 5)
    with pytest.raises(ValueError, match=message):
        call(model, x, y)


def test_calls_out_of_order_say_what_to_do(model):
    with pytest.raises(NotFittedError, match="call fit first"):
        FewShotClassifier().adapt(np.zeros((2, 2)), [0, 1])
    fresh = clone(model)
    fresh.__dict__.update({k: v for k, v in model.__dict__.items() if k != "adapted_"})
    with pytest.raises(NotFittedError, match="call adapt"):
        fresh.predict(np.zeros((2, 4)))


@pytest.mark.long
def test_omniglot_with_a_tiny_network_on_a_processor():
    from predcp.data import is_present, load_images, source

    if not is_present(source("omniglot")):
        pytest.skip("Omniglot is not in the data directory")
    tiny = FewShotClassifier(
        network=ConvNet(channels=16, blocks=3, average=False),
        queries=5,
        inner_steps=1,
        inner_steps_test=3,
        inner_rate=0.4,
        outer_rate=3e-3,
        iterations=600,
        validate_every=200,
    )
    tiny.fit(load_images("omniglot", "train"), validation=load_images("omniglot", "validation"))
    # Chance is 20%.
    assert tiny.evaluate(load_images("omniglot", "test"), tasks=100).mean > 45.0
