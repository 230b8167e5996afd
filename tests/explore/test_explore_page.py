"""Uploads, the snippet, the picture and the server of the explorer, without a browser."""

import ast
import contextlib
import importlib.util
import io
import re
import xml.etree.ElementTree as ElementTree

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from predcp import cli, explore
from predcp.explore import Choices, Tail, UploadError, _serve, design, parse, scene
from predcp.explore._code import code
from predcp.explore._svg import Panel, label, ticks

RNG = np.random.default_rng(0)
NASTY = "x'); import os; os.remove('a') #\"\"\"\n{0}</svg><script>alert(1)</script>.csv"


def csv_of(x: np.ndarray, names: list[str]) -> bytes:
    lines = [",".join(names), *(",".join(map(repr, map(float, row))) for row in x)]
    return "\n".join(lines).encode()


@pytest.fixture
def patients():
    x = 3.0 + RNG.standard_normal((20, 3)) * [1.0, 10.0, 0.1]
    return x, parse("patients.csv", csv_of(x, ["age", "dose", "ph"]))


def test_an_upload_becomes_a_design(patients):
    x, upload = patients
    found = design(upload, ["dose", "age"])
    assert found.columns == ("dose", "age")
    np.testing.assert_allclose(found.x.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.x.std(0), 1.0)
    raw = design(upload, ["dose", "age"], standardise=False)
    np.testing.assert_allclose(raw.x, x[:, [1, 0]])


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"a,b\n", "no rows"),
        (b"\xff\xfe\x00a", "not text"),
        (b"a,b\n1,2\0\n", "not a text file"),
        (b"a,a\n1,2\n", "more than once"),
        (b"a,b\n1,2,3\n", "more entries"),
        (b"a,b\n1,2\n1,2,3\n", "could not be read"),
        (b"1,2\n3,4\n", "no header"),
        (b"a\n" + b"1\n" * 5_001, "5,001 rows, .* a few hundred rows"),
        (b"a\n" + b"1" * 5_000_001, "too large: 5.0 MB"),
    ],
)
def test_a_file_that_is_no_table_is_refused(contents, complaint):
    with pytest.raises(UploadError, match=complaint):
        parse("bad.csv", contents)


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"a,b\n1,red\n2,blue\n", "'b' of bad.csv is not numbers \\('red'"),
        (b"a,b\n1,\n2,3\n", "'b' of bad.csv has missing values"),
        (b"a,b\n1,inf\n2,3\n", "'b' of bad.csv has infinite"),
        (b"a,b\n1,7\n2,7\n", "'b' of bad.csv is constant"),
    ],
)
def test_columns_that_are_no_features_are_refused(contents, complaint):
    upload = parse("bad.csv", contents)
    with pytest.raises(UploadError, match=complaint):
        design(upload, upload.columns)
    design(upload, ["a"])


def test_too_many_columns_get_advice_about_columns():
    """Fewer rows would not help, and fewer columns are another prior."""
    header = ",".join(f"g{index}" for index in range(501))
    with pytest.raises(
        UploadError, match="501 columns, and at most 500 .* not features"
    ) as refused:
        parse("wide.csv", f"{header}\n{'1,' * 500}1\n".encode())
    assert "rows" not in str(refused.value)


@pytest.mark.parametrize(
    ("header", "last", "found"),
    [
        ("age,Outcome,dose", "3", "Outcome"),
        ("age,dose,recovered", "01", "recovered"),
        ("age,dose,ph", "3", None),
        ("y", "01", "y"),
        ("flag", "01", None),
    ],
)
def test_the_outcome_is_guessed_and_left_out(header, last, found):
    width = header.count(",")
    values = [[str(row + 7 * column) for column in range(width)] for row in range(4)]
    ends = [last[row % len(last)] if len(last) > 1 else str(row) for row in range(4)]
    lines = [header, *(",".join([*row, end]) for row, end in zip(values, ends))]
    upload = parse("table.csv", "\n".join(lines).encode())
    assert explore.guess_outcome(upload) == found
    if header == "y":
        with pytest.raises(UploadError, match="no column of numbers .* besides the outcome 'y'"):
            explore.features(upload, found)
    else:
        assert explore.features(upload, found)[0] == [c for c in header.split(",") if c != found]


def test_columns_that_cannot_be_features_are_left_out_with_the_reason():
    upload = parse("table.csv", b"age,sex,site,dose\n1,f,9,\n2,m,9,3\n5,m,9,4\n")
    chosen, left_out = explore.features(upload)
    assert chosen == ["age"]
    assert left_out["sex"].startswith("is not numbers ('f'")
    assert left_out["site"].startswith("is constant")
    assert left_out["dose"] == "has missing values"


def test_long_names_have_short_labels_that_stay_apart():
    names = ["short", "a" * 40 + "_one_more_thing", "a" * 60 + "_one_more_thing", "b" * 200]
    found = explore.labels(names)
    assert list(found.values()) == names
    assert max(map(len, found)) <= 28
    written = code(Choices(design=explore.Design(RNG.normal(size=(9, 4)), "f", tuple(names), True)))
    assert ast.parse(written)
    assert written.count("\n    '") == 4


def test_a_problem_leaves_the_scene_on_the_page():
    shown = scene(Choices())
    both = explore.page(shown, problem="<b>bad.csv</b> is empty")
    assert "&lt;b&gt;bad.csv&lt;/b&gt; is empty. The page still shows the previous choice." in both
    assert both.count("<svg") == 6 and shown.headline in both
    alone = explore.page(None, hint="Choose a CSV file.")
    assert "Choose a CSV file." in alone and "<svg" not in alone and "alert" not in alone


def test_no_column_and_no_information_are_refused():
    upload = parse("zero.csv", b"a\n0\n0\n")
    with pytest.raises(UploadError, match="at least one"):
        design(upload, [])
    with pytest.raises(UploadError, match="are 0"):
        design(upload, ["a"], standardise=False)
    with pytest.raises(UploadError, match="no column 'b'"):
        design(upload, ["b"])


def test_a_formula_in_a_file_stays_text():
    """What a spreadsheet would run, and what Python would, is text here."""
    upload = parse("f.csv", b"a,b\n=1+1,__import__('os')\n=2,3\n")
    with pytest.raises(UploadError, match="not numbers"):
        design(upload, ["a"])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"model": "tree"}, "model must be one of"),
        ({"rows": 33}, "rows must be one of"),
        ({"depth": 99}, "depth must be 1 to 8"),
        ({"noise": 0.0}, "noise must be a positive"),
        ({"parameters": {"mean": 1.0}}, "parameters of LogCauchy are scale, loc"),
        ({"model": "network", "divergence": "jensen_shannon"}, "not available"),
    ],
)
def test_choices_that_make_no_prior(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        Choices(**wrong)


def executed(text: str) -> dict:
    space: dict = {"__name__": "snippet"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, "snippet", "exec"), space)
    assert "tau" in printed.getvalue()
    return space


def test_the_snippet_of_an_upload_makes_the_prior_shown(patients, tmp_path, monkeypatch):
    x, upload = patients
    (tmp_path / "patients.csv").write_bytes(csv_of(x, ["age", "dose", "ph"]))
    monkeypatch.chdir(tmp_path)
    choices = Choices("logistic", design=design(upload, ["age", "ph"]), tail=Tail(0.2, 0.4))
    shown = scene(choices)
    space = executed(shown.code)
    wanted = space["prior"].icdf(jnp.asarray(explore._curves.LEVELS))
    np.testing.assert_allclose(shown.layers[0][1].tau_levels, wanted, rtol=2e-3)
    assert space["draws"]["y"].shape == (100, 20)
    assert "patients.csv" in shown.code


def test_the_snippet_of_a_linear_regression_makes_the_prior_shown():
    choices = Choices(
        rows=8,
        columns=5,
        noise=0.5,
        family="Exponential",
        divergence="squared_hellinger",
        parameters={"mean": 0.3},
    )
    shown = scene(choices)
    space = executed(shown.code)
    wanted = space["prior"].icdf(jnp.asarray(explore._curves.LEVELS))
    np.testing.assert_allclose(shown.layers[0][1].tau_levels, wanted, rtol=2e-3)
    assert float(space["pi"].mean) == 0.3


def test_the_snippet_of_a_network_makes_the_prior_shown():
    shown = scene(Choices("network", depth=2, family="Exponential"))
    space = executed(shown.code)
    wanted = space["prior"].icdf(jnp.full(2, 0.5))
    found = [curves.tau_levels[1] for _, curves in shown.layers]
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert space["draws"]["y"].shape == (10, 40)


def test_a_nasty_name_stays_a_name():
    """Names of files and columns are literals in the snippet and text in the page."""
    x = RNG.standard_normal((10, 1))
    plain, nasty = (explore.Design(x, name, (name,), True) for name in ("plain", NASTY))

    def shape(text: str) -> list[type]:
        return [type(node) for node in ast.walk(ast.parse(text))]

    written = code(Choices(design=nasty))
    assert shape(written) == shape(code(Choices(design=plain)))
    constants = [n.value for n in ast.walk(ast.parse(written)) if isinstance(n, ast.Constant)]
    assert constants.count(NASTY) == 2
    fenced = code(Choices(design=explore.Design(x, "```", ("```",), True)))
    assert "```" not in fenced
    assert shape(fenced) == shape(written)
    for html in (explore.page(None, NASTY, NASTY), explore.refusal(NASTY), explore.note(NASTY)):
        assert "<script>" not in html


def test_the_picture_is_drawing_and_nothing_else():
    for choices in (Choices(), Choices("logistic", log_axes=False), Choices("network")):
        shown = scene(choices)
        roots = [ElementTree.fromstring(chart) for chart in shown.charts]
        tags = {re.sub("{.*}", "", element.tag) for root in roots for element in root.iter()}
        assert tags <= {"svg", "g", "clipPath", "rect", "text", "path", "polyline", "polygon"}
        titles = {root.get("aria-label") for root in roots if root.get("role") == "img"}
        assert len(titles) == len(roots) == 6
        drawn = "".join(shown.charts)
        assert "nan" not in drawn
        assert "inf" not in re.sub("[a-z-]*info[a-z]*", "", drawn)
        assert len(drawn) < 200_000


def test_a_slider_changes_the_curves_and_a_line_is_where_it_should_be():
    assert scene(Choices()).charts != scene(Choices(parameters={"scale": 2.0})).charts
    panel = Panel("t", "x", "y", (1.0, 100.0), (0.0, 1.0), xlog=True, size=(166.0, 178.0))
    panel.line([1.0, 10.0, 100.0], [0.0, 0.5, 1.0], "red")
    # 52 to 152 across, 134 to 34 down.
    assert 'points="52.0,134.0 102.0,84.0 152.0,34.0"' in panel.render()


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 3.0), (0.0, 4.7e-9), (0.0, 123456.0)])
def test_ticks_are_round_and_inside(low, high):
    found = ticks((low, high), False)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-12 <= tick <= high * (1 + 1e-9) for tick in found)
    assert len({label(tick, False) for tick in found}) == len(found)


def test_ticks_of_decades():
    assert ticks((1e-3, 1e3), True) == [1e-3, 1e-1, 1e1, 1e3]
    assert [label(tick, True) for tick in (1e-5, 0.01, 1.0, 1e4)] == ["10⁻⁵", "0.01", "1", "10⁴"]


def test_serving_warns_of_other_machines(monkeypatch, capsys):
    uvicorn = pytest.importorskip("uvicorn", reason="the extra explore is not installed")
    pytest.importorskip("marimo", reason="the extra explore is not installed")
    served = []
    monkeypatch.setattr(uvicorn, "run", lambda app, **options: served.append(options))
    monkeypatch.setattr(_serve, "_prepare", lambda: None)
    monkeypatch.setattr(_serve, "application", lambda local: None)
    _serve.serve(browser=False)
    assert served[0]["host"] == "127.0.0.1"
    assert "warning" not in capsys.readouterr().err
    _serve.serve("0.0.0.0", browser=False)
    assert "lets other machines reach" in capsys.readouterr().err


def test_a_taken_port_is_stepped_over():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < _serve.free_port("127.0.0.1", port) < port + 20
    with pytest.raises(ValueError, match="port must be"):
        _serve.free_port("127.0.0.1", 70_000)


def test_the_command_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(cli.app, ["explore"])
    assert result.exit_code == 4
    assert "the explorer needs marimo: pip install" in result.output


def test_the_page_runs_as_a_notebook():
    """Every cell, without a server."""
    pytest.importorskip("marimo", reason="the extra explore is not installed")
    from predcp.explore.app import app

    _, definitions = app.run()
    assert definitions["problem"] == ""
    assert definitions["scene"].headline.startswith("Half of the prior mass")
