"""Every Python and bash block of the documentation runs and prints the output that the page shows."""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import jax
import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner

import predcp
from predcp._divergences import _divergence
from predcp.cli import app

plt.switch_backend("Agg")

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
# Their code takes a quarter of a minute or more; `make test-long` runs it.
LONG = ("docs/errata.md", "docs/few-shot.md", "docs/how-to/budget.md", "docs/resnet.md")
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_SNIPPET = re.compile(r'^--8<-- "([^"]+)"$', re.MULTILINE)
_ELSEWHERE = re.compile(r"<!-- tested elsewhere: (\S+) -->")


class Block(NamedTuple):
    """A piece of code, its line in the page, and the output shown below it (None if none is)."""

    language: str
    code: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    """The Python and bash blocks of a page; a `text` block straight after one is its output."""
    found: list[Block] = []
    end = -1
    for match in _FENCE.finditer(text):
        language, content = match.groups()
        follows = not text[end : match.start()].strip() if end >= 0 else False
        if language in ("python", "bash"):
            line = text.count("\n", 0, match.start()) + 2
            found.append(Block(language, _SNIPPET.sub(included, content), line, None))
            end = match.end()
        elif language == "text" and follows:
            found[-1] = found[-1]._replace(output=content)
            end = -1
    return found


def included(match: re.Match[str]) -> str:
    """The file that a line of a block stands for."""
    return (ROOT / match.group(1)).read_text()


def commands(code: str) -> str:
    """Run lines of `predcp ...` in this process and return what they print."""
    printed = ""
    for line in code.splitlines():
        program, *words = shlex.split(line, comments=True) or [""]
        assert program in ("", "predcp"), f"only predcp is run here; mark as console: {line}"
        if program:
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, f"{line}\n{result.output}"
            printed += result.stdout
    return printed


def run(page: Path, apart: bool = False) -> None:
    """Run a page's blocks in order.

    **Arguments**: `page`, the file; `apart`, whether each block has a namespace of its own.
    """
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page.read_text()):
        if apart:
            namespace = {"__name__": page.stem}
        if block.language == "bash":
            output = commands(block.code)
        else:
            printed = io.StringIO()
            # Blank lines in front make a traceback point at the line of the page.
            code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
            output = printed.getvalue()
        if block.output is not None:
            assert output.strip() == block.output.strip(), f"{page}, line {block.line}"


@pytest.fixture
def settings(monkeypatch):
    """Double precision, and whatever a page sets or registers undone after it."""
    monkeypatch.setattr(_divergence, "_READERS", dict(_divergence._READERS))
    for divergence in (
        predcp.kl,
        predcp.reverse_kl,
        predcp.squared_hellinger,
        predcp.jensen_shannon,
    ):
        monkeypatch.setattr(divergence, "_rules", dict(divergence._rules))
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
    plt.close("all")


def timed(page):
    """A page, in the long tests if its code takes that long."""
    name = page.relative_to(ROOT).as_posix()
    return pytest.param(page, id=name, marks=[pytest.mark.long] if name in LONG else [])


@pytest.mark.parametrize("page", [timed(page) for page in PAGES])
def test_page_runs(page, settings, tmp_path, monkeypatch):
    elsewhere = _ELSEWHERE.match(page.read_text())
    if elsewhere is not None:
        tests = ROOT / elsewhere.group(1)
        assert tests.is_file(), f"{page} says it is tested in {tests}, which is not there"
        return
    # Pages may write files.
    monkeypatch.chdir(tmp_path)
    # People copy a single block of the README.
    run(page, apart=page.name == "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_local_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_a_wrong_output_or_an_exception_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="line 6"):
        run(page)
    with pytest.raises(NameError):
        run(page, apart=True)
    page.write_text("```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError):
        run(page)


def test_commands_and_included_files_run(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("```bash\npredcp --version\n```\n\n```text\npredcp 0\n```\n")
    with pytest.raises(AssertionError, match="line 2"):
        run(page)
    page.write_text("```bash\nrm -r /tmp/nothing\n```\n")
    with pytest.raises(AssertionError, match="only predcp"):
        run(page)
    (tmp_path / "part.py").write_text("1 / 0\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page.write_text('```python\n--8<-- "part.py"\n```\n')
    with pytest.raises(ZeroDivisionError):
        run(page)
