"""`predcp audit` on a program and a file."""

import json

import pytest
from typer.testing import CliRunner

from predcp.cli import app

PROGRAM = """
import numpyro
import numpyro.distributions as dist


def ticks(location, count):
    average = numpyro.sample("average", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(5.0))
    with numpyro.plate("locations", 3):
        effect = numpyro.sample("effect", dist.Normal(average, sigma))
    numpyro.sample("y", dist.Poisson(dist.util.jnp.exp(effect[location])), obs=count)


def asks(data):
    return data["nothing"]
"""
TABLE = "location,count\n" + "".join(f"{place},{n}\n" for place, n in zip("abcabc", range(6)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tick_models.py").write_text(
        PROGRAM.replace("dist.util.jnp", "jnp").replace(
            "import numpyro\n", "import jax.numpy as jnp\nimport numpyro\n", 1
        )
    )
    (tmp_path / "ticks.csv").write_text(TABLE)
    (tmp_path / "from_one.csv").write_text("location,count\n1,2\n2,0\n3,1\n")
    (tmp_path / "unfinished.py").write_text("def ticks(")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *arguments])


def test_it_audits_a_program_on_the_columns_of_a_file(folder):
    result = run("tick_models.py:ticks", "--data", "ticks.csv", "--json", "--picture", "new/a.png")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout.splitlines()[0])
    assert row["scale"] == "sigma" and row["prior"] == "HalfCauchy(5)"
    assert (folder / "new" / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tick_models"], "module:function"),
        (["nothing.py:ticks"], "no file"),
        (["tick_models:others"], "no function 'others'"),
        (["tick_models:ticks"], "needs an argument 'location'"),
        (["tick_models:ticks", "--data", "none.csv"], "none.csv"),
        (["tick_models:ticks", "--data", "ticks.csv", "--scale", "average"], "must be positive"),
        (["tick_models:ticks", "--data", "from_one.csv"], "index 3 is out of bounds for axis 0"),
        (["unfinished.py:ticks"], "line 1 of"),
        (["tick_models:asks", "--data", "ticks.csv"], "KeyError: 'nothing'"),
    ],
)
def test_bad_input_says_what_to_change(folder, arguments, words):
    result = run(*arguments)
    assert result.exit_code != 0
    assert words in result.output
