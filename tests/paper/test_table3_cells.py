"""Cells of Table 3 through the runner: grouped, resumed, compared task by task."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from predcp.cli import app
from predcp.data import ImageClasses
from predcp.experiments import Cell, Context, Store, resolve_model, result_rows, run
from predcp.paper import EXPERIMENTS, compare_fewshot, comparison_table, read_scores, read_training
from predcp.paper import _table3_cells as cell_module
from predcp.paper._table3_cells import cell_network, cell_prior, cell_settings, group_of, run_many

SETTINGS = {
    "images": "fc100",
    "ways": 3,
    "queries": 3,
    "meta_batch": 2,
    "iterations": 4,
    "inner_steps": 1,
    "inner_steps_test": 1,
    "validate_every": 2,
    "validation_tasks": 5,
    "test_tasks": 12,
    "channels": 3,
    "blocks": 1,
}
PRIORS = ("maml", "flat", "predcp-exponential-1e-1")


def cells(**changes):
    return [
        Cell("fc100-1shot", "fewshot", prior, "map", seed=seed, settings={**SETTINGS, **changes})
        for prior in PRIORS
        for seed in (0, 1)
    ]


@pytest.fixture(autouse=True)
def images(monkeypatch, make_images):
    """Made-up images in place of FC100's."""

    def load(name, part, directory=None):
        data = make_images(5, 8, ("train", "validation", "test").index(part))
        return ImageClasses(name, part, *data, tuple("abcde"))

    cell_module._pools.cache_clear()
    monkeypatch.setattr(cell_module, "load_images", load)
    yield
    cell_module._pools.cache_clear()


@pytest.fixture
def finished(tmp_path):
    tally = run(
        *("table3", cells(), tmp_path / "results", "batch"), checkpoints=tmp_path / "checkpoints"
    )
    assert tally.finished == 6
    return tmp_path


def test_priors_and_seeds_share_a_program():
    assert len({group_of(cell) for cell in cells()}) == 1
    kept = cells(into_shared=False)
    assert group_of(kept[0]) == group_of(cells()[0])
    assert group_of(cells(complexity_draws=3)[0]) != group_of(cells()[0])
    assert group_of(cells(inner_rate=0.1, weight_decay=0.3)[0]) == group_of(cells()[0])
    groups = {group_of(cell) for cell in EXPERIMENTS["table3"]()}
    assert len(groups) == 4


def test_a_table_is_run_and_compared(finished):
    rows = result_rows(Store(finished / "results", "table3"))
    accuracy = {row["prior"]: row for row in rows if row["metric"] == "accuracy"}
    assert set(accuracy) == set(PRIORS) and accuracy["maml"]["se"] is not None
    assert {row["metric"] for row in rows} >= {
        *("accuracy", "log_likelihood", "calibration_error"),
        *("validation_accuracy", "train_accuracy"),
    }
    scores = read_scores(finished / "checkpoints" / "scores")
    assert len(scores) == 6
    table = {row["prior"]: row for row in compare_fewshot(scores)}
    for prior in PRIORS:
        np.testing.assert_allclose(table[prior]["accuracy"], accuracy[prior]["mean"])
    ours = [
        one.arrays["test/accuracy"] for one in scores if one.config["cell"]["prior"] == PRIORS[2]
    ]
    theirs = [
        one.arrays["test/accuracy"] for one in scores if one.config["cell"]["prior"] == "maml"
    ]
    gap = 100 * (np.asarray(ours) - np.asarray(theirs))
    np.testing.assert_allclose(table[PRIORS[2]]["less_maml"], gap.mean())
    for part in ("test", "check"):
        assert "| fc100-1shot | maml | 2 |" in comparison_table(compare_fewshot(scores, part))
    printed = CliRunner().invoke(
        app, ["fewshot", "compare", str(finished / "checkpoints" / "scores"), "--json"]
    )
    rows = json.loads(printed.stdout)
    assert {part: len(own) for part, own in rows.items()} == {"test": 3, "check": 3}
    assert rows["test"] == json.loads(json.dumps(compare_fewshot(scores)))
    with pytest.raises(ValueError, match="holds no scores"):
        read_scores(finished)


def test_time_used_up_leaves_no_record_and_the_run_goes_on(tmp_path):
    grid, settings = cells(), {"engine": "batch", "checkpoints": tmp_path / "checkpoints"}
    with pytest.raises(KeyboardInterrupt, match="at iteration 2 of 4"):
        run("table3", grid, tmp_path / "results", seconds=0, **settings)
    store = Store(tmp_path / "results", "table3")
    assert store.status(grid[0]) == "absent" and not store.cell_folders()
    assert run("table3", grid, tmp_path / "results", **settings).finished == 6
    log = next((tmp_path / "checkpoints").glob("*.log")).read_text().splitlines()
    assert [line.split()[0] for line in log] == ["2", "4"]
    (path,) = (tmp_path / "checkpoints").glob("*.checkpoint")
    assert [run.seed for run in read_training(path)] == [cell.seed for cell in grid]


def test_a_search_does_not_touch_the_test_classes(monkeypatch):
    asked = []
    real = cell_module.load_images
    monkeypatch.setattr(
        cell_module,
        "load_images",
        lambda *arguments: asked.append(arguments[1]) or real(*arguments),
    )
    result = run_many(cells(tested=False)[:1], Context())[0]
    assert set(result.metrics) == {"validation", "train"}
    searched = EXPERIMENTS["fewshot-search"]()
    assert all(cell.settings["tested"] is False for cell in searched)


def test_at_most_sixteen_runs_share_a_program():
    assert resolve_model("fewshot").together == 16


@pytest.mark.parametrize(
    "name",
    ["table3", "table3-omniglot", "fewshot-search", "appendix-fc100", "table3-pooled"],
)
def test_every_declared_cell_can_be_read(name):
    for cell in EXPERIMENTS[name]():
        settings, network, prior = cell_settings(cell), cell_network(cell), cell_prior(cell)
        assert settings.ways == network.ways == 5
        prior.mask(network.module_names)
        assert cell.prior == prior.name


@pytest.mark.parametrize(
    "change,message",
    [
        ({"settings": {"network": "deep"}}, "network must be one of paper, pooled, got 'deep'"),
        ({"settings": {"shot": 3}}, r"settings \['shot'\] are not known for fewshot"),
        ({"prior": "horseshoe"}, "no prior is called 'horseshoe'"),
        ({"inference": "vi"}, "inference must be 'map' for fewshot"),
        ({"settings": {"images": "mnist"}}, "no network is declared for 'mnist'"),
    ],
)
def test_bad_cells_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        run_many([replace(cells()[0], **change)], Context())


@pytest.mark.long
def test_mini_imagenet_runs_from_a_folder(tmp_path, monkeypatch):
    """A made-up folder of the layout that users bring, at its real size of 84 x 84."""
    image_module = pytest.importorskip("PIL.Image")
    from predcp.data import load_images

    monkeypatch.setattr(cell_module, "load_images", load_images)
    folder = tmp_path / "fewshot" / "mini-imagenet"
    (folder / "images").mkdir(parents=True)
    generator = np.random.default_rng(0)
    for part in ("train", "val", "test"):
        lines = ["filename,label"]
        for label in range(4):
            for number in range(4):
                name = f"{part}{label}{number}.jpg"
                pixels = generator.integers(0, 256, (20, 30, 3)).astype(np.uint8)
                image_module.fromarray(pixels).save(folder / "images" / name)
                lines.append(f"{name},{part}{label}")
        (folder / f"{part}.csv").write_text("\n".join(lines) + "\n")
    settings = {**SETTINGS, "images": "mini-imagenet", "blocks": 4, "channels": 2, "test_tasks": 3}
    cell = Cell("mini-imagenet-1shot", "fewshot", PRIORS[2], "map", settings=settings)
    assert cell_network(cell).pool and cell_network(cell).stride == 1
    result = run_many([cell], Context(str(tmp_path)))[0]
    assert 0.0 <= result.metrics["test"]["accuracy"] <= 100.0
