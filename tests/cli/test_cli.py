"""Every command, on bad input too; the real entry point where a process of its own matters."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from predcp import __version__

MODELS = str(Path(__file__).parents[1] / "experiments")
# Before a test sets another.
DATA = os.environ.get("PREDCP_DATA")
SCRIPT = Path(sys.executable).with_name("predcp")
FIELDS = {"data", "prior", "inference", "metric", "mean", "se", "splits", "seconds"}
FIELDS |= {"rhat_max", "divergences", "device"}


@pytest.fixture
def predcp_process(tmp_path):
    """Run `predcp` in an empty folder, in a process of its own: a second or more each time."""

    def run(*arguments: str, data: str | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "predcp", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(data or str(tmp_path / "data")),
        )

    return run


@pytest.fixture
def predcp(tmp_path, monkeypatch):
    """The same in this process, which has the libraries loaded already."""
    from typer.testing import CliRunner

    from predcp.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(MODELS)
    for name, value in environment(str(tmp_path / "data")).items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str):
        result = CliRunner().invoke(app, arguments, prog_name="predcp")
        # Anything else would have been a traceback.
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        result.returncode = result.exit_code
        return result

    return run


def environment(data: str) -> dict[str, str]:
    path = os.pathsep.join([MODELS, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "PREDCP_DATA": data, "COLUMNS": "200"}


def json_lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def houses(tmp_path):
    rows = [f"{3 * n},{'north' if n % 3 else 'south'},{100 + 7 * n + n % 5}" for n in range(40)]
    (tmp_path / "houses.csv").write_text("size,side,price\n" + "\n".join(rows) + "\n")
    return "houses.csv"


def test_the_installed_script_and_the_module_agree(predcp_process):
    module = predcp_process("--version")
    assert (module.returncode, module.stdout) == (0, f"predcp {__version__}\n")
    if not SCRIPT.exists():
        pytest.skip("the predcp script is not installed beside this Python")
    script = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True)
    assert script.stdout == module.stdout


def test_help_is_quick_and_documents_exit_codes(predcp_process):
    result = predcp_process("--help")
    assert result.returncode == 0
    assert "Exit codes: 0 done; 1 some cells failed" in " ".join(result.stdout.split())
    heavy = ("jax", "numpy", "pandas", "pyarrow", "matplotlib", "sklearn", "scipy", "ray")
    program = f"import predcp.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["results"],
        ["report"],
        ["fit"],
        ["predict"],
        ["figures"],
        ["explore"],
        ["demo"],
        ["data", "list"],
        ["data", "fetch"],
        ["data", "check"],
        ["store", "pack"],
        ["store", "unpack"],
        ["fewshot", "compare"],
        ["fewshot", "training"],
    ],
)
def test_every_command_has_an_example(predcp, command):
    result = predcp(*command, "--help")
    assert result.returncode == 0
    assert f"Example: predcp {' '.join(command)}" in " ".join(result.stdout.split())


def test_run_results_report(predcp, tmp_path):
    first = predcp("run", "cell_models:grid")
    assert first.returncode == 0, first.stderr
    assert "4 cells, 0 already done" in first.stderr
    assert first.stdout.startswith("grid: 4 of 4 cells finished, 0 failed")
    again = predcp("run", "cell_models:grid", "--json", "--quiet")
    assert json.loads(again.stdout)["already_finished"] == 4 and again.stderr == ""
    rows = json_lines(predcp("results", "--format", "json", "grid").stdout)
    assert [row["metric"] for row in rows] == ["log_likelihood", "rmse"]
    assert all(set(row) == FIELDS for row in rows)
    assert rows[0]["splits"] == 4 and rows[0]["rhat_max"] is None
    cells = predcp("results", "grid", "--cells", "--format", "csv", "--metric", "rmse").stdout
    assert len(cells.splitlines()) == 5
    assert "log_likelihood" in predcp("results", "grid").stdout
    assert json_lines(predcp("results", "--format", "json").stdout) == [{"experiment": "grid"}]
    report = predcp("report", "grid", "--output", "out")
    assert report.stdout.split() == ["out/report.md", "out/report.html"]
    assert "predcp run cell_models:grid --cell" in (tmp_path / "out" / "report.md").read_text()


def test_a_pool_from_the_command_line(predcp):
    result = predcp("run", "cell_models:grid", "--engine", "pool", "--workers", "2", "--json")
    assert json.loads(result.stdout)["finished"] == 4


def test_failures_show_in_the_exit_status_and_can_be_retried(predcp, tmp_path):
    failed = predcp("run", "cell_models:failing_grid")
    assert failed.returncode == 1
    assert "RuntimeError: split 3 is odd" in failed.stderr
    assert "2 of 4 cells finished, 2 failed" in failed.stdout
    (tmp_path / "cure.txt").touch()
    assert predcp("run", "cell_models:failing_grid").returncode == 1
    assert predcp("run", "cell_models:failing_grid", "--retry-failed").returncode == 0


def test_one_cell_runs_again_as_the_report_says(predcp, tmp_path):
    predcp("run", "cell_models:grid")
    text = (next((tmp_path / "results").glob("grid/*/cell.json"))).read_text()
    words = json.loads(text)["rerun"].split()
    again = predcp(*words[1:], "--store", "again", "--json")
    assert json.loads(again.stdout)["total"] == 1
    assert len(list((tmp_path / "again" / "grid").iterdir())) == 1


@pytest.fixture
def heeding_interrupts():
    """Tests run in the background of a shell ignore SIGINT, and so would their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding_interrupts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("engine", ["process", "pool"])
def test_an_interruption_stops_cleanly_and_says_how_to_resume(tmp_path, number, engine):
    command = [sys.executable, "-m", "predcp", "run", "cell_models:slow_grid", "--engine", engine]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(str(tmp_path)),
    )
    store = tmp_path / "results" / "slow_grid"
    deadline = time.monotonic() + 30
    while not list(store.glob("*/cell.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert "Resume: predcp run cell_models:slow_grid" in error
    assert "Traceback" not in error
    assert not list(store.glob(".*"))
    done = len(list(store.iterdir()))
    assert 0 < done < 400


@pytest.mark.parametrize("table", ["table1", "table2", "table3", "table3 --network pooled"])
def test_tables_are_declared(predcp, table):
    cells = json_lines(predcp("run", *table.split(), "--dry-run", "--json").stdout)
    assert len({cell["key"] for cell in cells}) == len(cells) > 10


def test_a_dry_run_is_a_list_that_a_person_can_read(predcp):
    predcp("run", "cell_models:grid", "--splits", "1")
    lines = predcp("run", "cell_models:grid", "--dry-run").stdout.splitlines()
    assert lines[0].split() == [
        "cell",
        "data",
        "model",
        "prior",
        "inference",
        "split",
        "seed",
        "stored",
    ]
    assert lines[1].split()[1:] == [
        "nothing",
        "cell_models:quick",
        "plain",
        "exact",
        "0",
        "0",
        "finished",
    ]
    assert lines[2].split()[1:] == ["nothing", "cell_models:quick", "plain", "exact", "1", "0"]
    assert lines[-1] == "4 cells, 1 finished"


def test_the_store_is_packed_and_read_as_before(predcp, tmp_path):
    predcp("run", "cell_models:grid")
    rows = predcp("results", "grid", "--format", "json").stdout
    assert predcp("store", "pack").stdout == "grid: 4 cells in results/grid.parquet\n"
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["grid.parquet"]
    assert predcp("results", "grid", "--format", "json").stdout == rows
    assert "4 already done" in predcp("run", "cell_models:grid").stderr
    assert predcp("report", "grid").returncode == 0
    # A file of something else stays what it is, and is named.
    foreign = tmp_path / "results" / "study.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), foreign)
    listed = predcp("results", "--format", "json")
    assert json_lines(listed.stdout) == [{"experiment": "grid"}]
    assert "study.parquet is left out" in listed.stderr
    unpacked = predcp("store", "unpack")
    assert unpacked.returncode == 0 and "study.parquet is left out" in unpacked.stderr
    assert predcp("store", "pack").returncode == 0 and foreign.exists()
    assert predcp("store", "unpack", "grid").stdout == "grid: 4 cells in results/grid\n"
    assert len(list((tmp_path / "results" / "grid").glob("*/cell.json"))) == 4


def test_toy_runs_on_a_file(predcp, houses):
    result = predcp(
        *("run", "toy", "--data", houses, "--target", "price", "--splits", "2", "--json", "--quiet")
    )
    # Three priors and the base rate, two splits each.
    assert json.loads(result.stdout)["finished"] == 8, result.stderr
    rows = json_lines(predcp("results", "toy", "--format", "json", "--metric", "rmse").stdout)
    assert [row["prior"] for row in rows] == ["base rate", "evidence", "unit", "wide"]
    assert rows[0]["mean"] > 2 * rows[1]["mean"]
    assert all(row["data"] == "houses.csv" for row in rows)


def test_fit_and_predict(predcp, houses, tmp_path):
    arguments = ["fit", houses, "--target", "price", "--output", "m.st", "--model", "ridge"]
    fitted = predcp(*arguments, "--json")
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["estimator"] == "ridge"
    assert json.loads(fitted.stdout)["features"] == ["size", "side=south"]
    printed = predcp("predict", "m.st", houses).stdout.splitlines()
    assert printed[0] == "prediction" and len(printed) == 41
    assert abs(float(printed[1]) - 100) < 5
    assert json_lines(predcp("predict", "m.st", houses, "--json").stdout)[0]["prediction"]
    assert predcp("predict", "m.st", houses, "--output", "p.csv").stdout == ""
    assert (tmp_path / "p.csv").read_text().splitlines() == printed


def test_fit_and_predict_with_a_posterior(predcp, houses):
    arguments = ["fit", houses, "--target", "price", "--output", "m.st"]
    fitted = predcp(*arguments, "--inference", "laplace")
    assert fitted.returncode == 0, fitted.stderr
    assert fitted.stderr == ""
    for words in ("LinearRegression, prior predcp, laplace", "intercept", "size", "approximation"):
        assert words in fitted.stdout
    rows = json_lines(predcp("predict", "m.st", houses, "--json").stdout)
    assert len(rows) == 40 and rows[0].keys() == {"prediction", "standard_deviation"}
    assert abs(rows[0]["prediction"] - 100) < 5
    assert all(row["standard_deviation"] > 0 for row in rows)


@pytest.mark.long
def test_fit_and_predict_several_classes(predcp, tmp_path):
    lines = [f"{i % 7 + 10 * (i % 3)},{[10, 9, 'x'][i % 3]}" for i in range(45)]
    (tmp_path / "three.csv").write_text("a,kind\n" + "\n".join(lines) + "\n")
    arguments = ["fit", "three.csv", "--target", "kind", "--inference", "laplace", "--seed", "3"]
    fitted = predcp(*arguments, "--prior", "half-cauchy", "--json")
    assert fitted.returncode == 0, fitted.stderr
    told = json.loads(fitted.stdout)
    assert told["estimator"] == "logistic" and told["task"] == "multiclass"
    assert "intercept[x]" in told["summary"]
    rows = json_lines(predcp("predict", "model.safetensors", "three.csv", "--json").stdout)
    right = [row["prediction"] == line.split(",")[1] for row, line in zip(rows, lines)]
    assert sum(right) > 40
    assert rows[0].keys() == {"prediction", *(f"probability_{k}" for k in ("10", "9", "x"))}
    probabilities = [sum(v for k, v in row.items() if k != "prediction") for row in rows]
    assert probabilities == pytest.approx([1.0] * 45)


@pytest.fixture
def yacht_address():
    if not DATA:
        pytest.skip("PREDCP_DATA is not set, so there are no real data files to serve")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, directory=f"{DATA}/uci", **keywords)

        def log_message(self, format, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/yacht.txt"
        server.shutdown()


def test_data_commands(predcp, tmp_path, yacht_address):
    listed = json_lines(predcp("data", "list", "--json").stdout)
    assert {row["name"]: row["present"] for row in listed}["yacht"] is False
    fetched = predcp("data", "fetch", "yacht", "--url", yacht_address)
    assert fetched.returncode == 0, fetched.stderr
    assert "present  yacht" in predcp("data", "list").stdout
    assert predcp("data", "check").stdout == "ok   yacht: matches the pinned hash\n"
    path = tmp_path / "data" / "uci" / "yacht.txt"
    path.write_bytes(path.read_bytes()[:-5])
    checked = predcp("data", "check", "--json")
    assert checked.returncode == 1
    assert json_lines(checked.stdout)[0]["intact"] is False


@pytest.mark.long
def test_the_demo(predcp_process):
    result = predcp_process("demo")
    assert result.returncode == 0, result.stderr


def test_long_fits_take_options_and_their_variables(predcp, monkeypatch):
    help_text = " ".join(predcp("run", "--help").stdout.split())
    for name in ("CHECKPOINTS", "SECONDS", "TOGETHER"):
        assert f"PREDCP_{name}" in help_text
    monkeypatch.setenv("PREDCP_SECONDS", "soon")
    refused = predcp("run", "toy")
    assert refused.returncode == 2
    assert "Invalid value for '--seconds'" in refused.stderr


BAD = [
    (["nonsense"], 2, "No such command"),
    (["run", "tabel1"], 2, "no experiment is called 'tabel1'"),
    (["run", "toy", "--data", "nothing"], 2, "no data set is called 'nothing'"),
    (["run", "toy", "--prior", "nothing"], 2, "no prior is called 'nothing'"),
    (["run", "toy", "--splits", "x"], 2, "--splits must be like"),
    (["run", "toy", "--splits", "99"], 2, "splits go from 0 to 19"),
    (["run", "toy", "--engine", "threads"], 2, "--engine must be one of"),
    (["run", "toy", "--workers", "0", "--engine", "pool"], 2, "--workers must be at least 1"),
    (["run", "toy", "--data", "absent.csv", "--target", "y"], 3, "there is no file absent.csv"),
    (["run", "toy", "--data", "houses.csv"], 3, "name its target column with --target NAME"),
    (["run", "absent_module:grid"], 2, "cannot find the experiment"),
    (["results", "absent"], 3, "predcp run absent"),
    (["results", "../etc"], 2, "plain folder name"),
    (["results", "toy", "--format", "xml"], 2, "--format must be table, json or csv"),
    (["report", "absent"], 3, "holds no cells"),
    (["fit", "absent.csv", "--target", "y"], 3, "there is no file absent.csv"),
    (["fit", "houses.csv", "--target", "y"], 3, "lacks the column y"),
    (
        ["fit", "houses.csv", "--target", "price", "--prior", "x"],
        2,
        "--prior must be one of predcp,",
    ),
    (
        ["fit", "houses.csv", "--target", "price", "--inference", "x"],
        2,
        "--inference must be one of auto, nuts",
    ),
    (
        ["fit", "houses.csv", "--target", "price", "--model", "ridge", "--seed", "1"],
        2,
        "the model 'ridge' takes no --seed; it takes: --prior",
    ),
    (["fit", "houses.csv", "--target", "price", "--model", "x"], 4, "no model is called 'x'"),
    (["fit", "houses.csv", "--target", "price", "--missing", "x"], 2, "--missing must be one of"),
    (["fit", "houses.csv"], 2, "Missing option"),
    (["predict", "absent.st", "houses.csv"], 3, "there is no saved model"),
    (["predict", "houses.csv", "houses.csv"], 3, "not a saved model of predcp"),
    (["data", "fetch", "nothing"], 3, "no registered data set"),
    (["data", "fetch", "mini-imagenet"], 3, "no public address"),
    (["data", "fetch", "yacht", "--url", "http://127.0.0.1:9/x"], 3, "check the network"),
    (["data", "fetch", "yacht", "boston", "--url", "u"], 2, "--url goes with a single"),
    (["data", "check"], 3, "no data set is in"),
    (["data", "check", "yacht"], 1, ""),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD)
def test_bad_input_is_one_line_and_a_documented_code(predcp, houses, arguments, code, message):
    result = predcp(*arguments)
    assert result.returncode == code, result.stderr
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_bad_input_through_the_real_entry_point(predcp_process, houses):
    arguments, code, message = BAD[1]
    result = predcp_process(*arguments)
    assert result.returncode == code
    assert message in result.stderr and "Traceback" not in result.stderr


def test_an_estimator_that_does_not_fit_the_target_says_so(predcp, tmp_path):
    (tmp_path / "two.csv").write_text("a,y\n1,no\n2,yes\n3,no\n4,yes\n5,yes\n")
    wrong = predcp("fit", "two.csv", "--target", "y", "--model", "ridge")
    assert wrong.returncode == 2
    assert "the model 'ridge' does not fit a binary target" in wrong.stderr


@pytest.mark.parametrize(
    "words", ["results grid --cells --format json", "run table2 --dry-run", "data list"]
)
def test_a_reader_that_leaves_early_is_no_error(predcp, tmp_path, words):
    predcp("run", "cell_models:grid")
    command = f"{sys.executable} -m predcp {words} | head -n 1"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(str(tmp_path)),
    )
    assert len(result.stdout.splitlines()) == 1
    assert (result.returncode, result.stderr) == (0, "")
