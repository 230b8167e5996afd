"""`predcp fit`: what may be said, and what is said back."""

import json
import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from predcp.cli import app
from predcp.cli._estimators import ESTIMATORS, SAMPLERS, estimator_arguments
from predcp.cli._words import in_options


@pytest.fixture
def predcp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def run(*arguments):
        result = CliRunner().invoke(app, [str(word) for word in arguments], prog_name="predcp")
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        return result

    return run


@pytest.fixture
def table(tmp_path):
    """A table with a little of everything that goes wrong."""
    generator = np.random.default_rng(0)
    lines = ["patient_id;when;größe;grade;price"]
    for n in range(30):
        size = f"{generator.uniform(1, 9):.2f}".replace(".", ",")
        price = "" if n == 3 else f"{10 + n}"
        lines.append(f"{9000 + 17 * n};2024-03-{n % 28 + 1:02d};{size};{n % 3};{price}")
    path = tmp_path / "table.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    return path


def test_a_difficult_file_is_fitted_by_following_the_advice(predcp, table):
    words = ["fit", table, "--target", "price", "--model", "ridge"]
    for advice, more in (
        ("--encoding latin-1", ["--encoding", "latin-1"]),
        ("--missing drop", ["--missing", "drop"]),
        ("column 'when' holds dates, such as 2024-03-01", ["--drop", "when"]),
    ):
        refused = predcp(*words)
        assert refused.exit_code == 3 and advice in refused.stderr, refused.stderr
        words += more
    fitted = predcp(*words)
    assert fitted.exit_code == 0, fitted.stderr
    assert "columns are separated by semicolons, with decimal commas" in fitted.stderr
    assert "'patient_id' looks like an identifier" in fitted.stderr
    assert "leave it out: --drop patient_id" in fitted.stderr
    assert "on 29 rows and 3 features" in fitted.stdout
    quiet = predcp(*words, "--drop", "patient_id", "--separator", ";")
    assert "on 29 rows and 2 features" in quiet.stdout
    notes = quiet.stderr.splitlines()
    assert len(notes) == 1 and notes[0].endswith("rows with missing values are left out, 1 of 30")


def test_whole_numbers_can_be_classes(predcp, table):
    words = ["fit", table, "--target", "grade", "--encoding", "latin-1", "--drop", "when"]
    words += ["--drop", "patient_id", "--missing", "drop", "--json"]
    number = predcp(*words, "--model", "ridge")
    assert "if they are classes, give --classes" in number.stderr
    refused = predcp(*words, "--classes", "--model", "ridge")
    assert "does not fit a multiclass target" in refused.stderr


def test_sampling_options_reach_the_sampler(predcp, tmp_path):
    rows = [f"{n * n % 17},{n % 5},{2 * n + n % 3}" for n in range(30)]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    words = ["fit", "t.csv", "--target", "y", "--prior", "ridge", "--json", "--seed", "1"]
    words += ["--chains", "2", "--warmup", "50", "--draws", "40", "--acceptance", "0.9"]
    told = json.loads(predcp(*words).stdout)
    assert re.search(r"2 chains of 4\d draws", told["summary"])
    # The advice can be followed as it stands.
    advice = told["warnings"][0]
    assert "--inference nuts" in advice and "--draws" in advice
    assert advice in told["summary"] and "Nuts(" not in told["summary"]


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"inference": "laplace", "chains": 2}, "--inference laplace takes no --chains"),
        ({"inference": "gibbs", "acceptance": 0.9}, "--inference gibbs takes no --acceptance"),
        ({"max_seconds": 9.0, "max_depth": -1}, "max_depth must be at least 1"),
        (
            {"inference": "hmc"},
            "--inference must be one of auto, nuts, gibbs, laplace, vi, got 'hmc'",
        ),
    ],
)
def test_options_that_do_not_go_together(sampling, message):
    with pytest.raises(ValueError, match=message):
        estimator_arguments("linear", {"prior": None, "seed": None}, sampling)


def test_options_say_which_sampler_is_meant():
    from predcp.linear import Auto, Nuts

    nothing = {"prior": None, "seed": None}
    limited = estimator_arguments("linear", nothing, {"inference": None, "max_seconds": 9.0})
    assert limited == {"inference": Auto(max_seconds=9.0)}
    warmed = estimator_arguments("linear", nothing, {"warmup": 9, "max_seconds": 9.0})
    assert warmed == {"inference": Nuts(warmup=9, max_seconds=9.0)}


def test_every_option_of_a_sampler_exists():
    from dataclasses import fields

    import predcp.linear

    for class_name, options in SAMPLERS.values():
        known = {field.name for field in fields(getattr(predcp.linear, class_name))}
        assert set(options.values()) <= known


def test_help_lists_every_prior_and_inference(predcp):
    from predcp.linear import as_coefficient_prior
    from predcp.resnet import as_layer_prior

    text = " ".join(predcp("fit", "--help").stdout.replace("│", " ").split())
    for name in SAMPLERS:
        assert f"{name} (" in text
    for entry in ESTIMATORS.values():
        for prior in entry.priors:
            assert prior in text
    for prior in ESTIMATORS["linear"].priors:
        as_coefficient_prior(prior)
    for prior in ESTIMATORS["resnet"].priors:
        as_layer_prior(prior.replace("NUMBER", "0.5"))
    with pytest.raises(ValueError) as error:
        as_coefficient_prior("nothing")
    assert all(f"'{prior}'" in str(error.value) for prior in ESTIMATORS["linear"].priors)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("use missing='impute' or drop=['id']", "use --missing impute or --drop id"),
        ("give drop=['a, b'] and separator=';'", "give --drop 'a, b' and --separator ';'"),
        ("give classes=True", "give --classes"),
        ("workers must be at least 1", "--workers must be at least 1"),
        (
            "run inference=Nuts(warmup=200, target_acceptance=0.95).",
            "run --inference nuts --warmup 200 --acceptance 0.95.",
        ),
        ("x=3 and tau must be positive", "x=3 and tau must be positive"),
        ("--prior must be one of ecp, got 'foo'", "--prior must be one of ecp, got 'foo'"),
    ],
)
def test_messages_in_the_words_of_the_command_line(message, words):
    assert in_options(message) == words


def test_a_seed_that_is_none_names_the_option(predcp, table):
    refused = predcp("fit", table, "--target", "grade", "--encoding", "latin-1", "--seed", "-3",
                     "--drop", "when", "--missing", "impute")  # fmt: skip
    assert refused.exit_code == 2
    assert "--seed must be a whole number from 0 to 2**32 - 1" in refused.stderr


def test_a_folder_that_is_not_there_is_said_before_the_fit(predcp, table):
    refused = predcp("fit", table, "--target", "price", "--output", "absent/model.safetensors")
    assert refused.exit_code == 2
    assert "--output must lie in a folder that exists, got 'absent/model" in refused.stderr


def test_the_base_rate_on_rare_events(tmp_path, predcp):
    """Accuracy and log likelihood of the training frequencies."""
    from predcp.experiments import Cell, Context
    from predcp.paper._base_rate import run

    rows = [f"{n % 11},{'yes' if n % 29 == 0 else 'no'}" for n in range(400)]
    (tmp_path / "rare.csv").write_text("a,y\n" + "\n".join(rows) + "\n")
    cell = Cell("rare.csv", "base-rate", "base rate", "none", settings={"target": "y"})
    scores = run(cell, Context()).metrics["test"]
    assert scores["accuracy"] > 90
    rate = 14 / 400
    entropy = rate * math.log(rate) + (1 - rate) * math.log(1 - rate)
    assert scores["log_likelihood"] == pytest.approx(entropy, abs=0.1)
