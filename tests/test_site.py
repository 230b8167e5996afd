"""The documentation site: it builds strictly, needs nothing from elsewhere, and leaves no name out."""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.main import get_command

from predcp.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ROOMS = ("", ".linear", ".resnet", ".fewshot", ".data", ".experiments", ".figures")


def load(path):
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Fetched(HTMLParser):
    """What a browser fetches to show a page; links that are clicked are not."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(values.get("href") or "")
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(values.get("src") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("mkdocs", "material", "mkdocstrings_handlers.python"):
        pytest.importorskip(name, reason="the extra `docs` is not installed: `make docs` does that")
    folder = tmp_path_factory.mktemp("site")
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def test_the_site_builds_strictly_and_fetches_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.glob("*.md")))
    for page in pages:
        assert "```" not in page.read_text(), f"{page}: a block of code that is not one"
        fetched = Fetched()
        fetched.feed(page.read_text())
        assert fetched.addresses
        assert not [item for item in fetched.addresses if re.match(r"(https?:)?//", item)], page


def test_the_reference_shows_arguments_as_lists(site):
    text = (site / "api" / "maps.html").read_text()
    section = text[text.index('id="predcp.PredictiveComplexity"') :]
    assert re.search(
        r"<strong>Arguments</strong></p>\s*<ul>\s*<li><code>likelihood</code>", section
    )


def test_the_page_of_the_idea_has_sliders_in_a_browser(site):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    page = (site / "idea.html").as_uri()
    result = subprocess.run(
        [browser, *options, "--dump-dom", page], capture_output=True, text=True, timeout=120
    )
    shown = re.findall(r'<input type="range" max="8"><output>([^<]+)</output>', result.stdout)
    assert shown == ["x = 1", "upper = 0.1"]


def test_the_reference_has_every_public_name():
    text = "\n".join(page.read_text() for page in DOCS.glob("api/*.md"))
    listed = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    public = {
        f"predcp{room}.{name}"
        for room in ROOMS
        for name in importlib.import_module(f"predcp{room}").__all__
        if room or (name != "__version__" and f".{name}" not in ROOMS)
    }
    assert public <= set(listed)
    # What is listed and in no `__all__` is of a module without one.
    assert {name.rsplit(".", 1)[0] for name in set(listed) - public} <= {"predcp.plot"}


def test_the_command_line_reference_has_every_command_and_option():
    module = load(DOCS / "hooks" / "command_line.py")
    text = module.reference(app, "predcp")
    found = list(module.commands(get_command(app), "predcp"))
    assert {"predcp run", "predcp data fetch", "predcp figures"} <= {path for path, _ in found}
    for path, command in found:
        section = text.split(f"## {path}\n")[1].split("\n## ")[0]
        assert command.help in section
        for item in command.params:
            if item.param_type_name == "option" and item.name != "help":
                assert all(flag in section for flag in item.opts)
    assert module._MARK in (DOCS / "api" / "command-line.md").read_text()


def test_a_list_under_a_line_of_text_is_set_apart():
    pytest.importorskip("griffe", reason="the extra `docs` is not installed")
    as_markdown = load(DOCS / "hooks" / "docstrings.py").as_markdown
    assert as_markdown("**Arguments**\n- `x`: one,\n    more.\n- `y`: two.") == (
        "**Arguments**\n\n- `x`: one,\n    more.\n- `y`: two."
    )
    assert as_markdown("a\n\n- b\n- c") == "a\n\n- b\n- c"


def test_the_galleries_show_every_example_and_every_figure():
    from predcp.paper.figures import FIGURES

    examples = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    for page, names in (("examples", examples), ("figures", list(FIGURES))):
        text = (DOCS / f"{page}.md").read_text()
        assert re.findall(r"^## (\S+)$", text, re.MULTILINE) == names
        for name in names:
            assert f"images/{page}/{name}.png" in text
            assert (DOCS / "images" / page / f"{name}.png").is_file()


def test_the_sliders_have_the_pictures_that_were_made():
    module = load(DOCS / "make_slides.py")
    figures = re.findall(
        r'data-values="([^"]+)">\s*<img src="images/idea/(\w)-\d+\.png"',
        (DOCS / "idea.md").read_text(),
    )
    made = {"x": module.FEATURES, "u": module.UPPERS}
    assert {letter: values for values, letter in figures} == {
        letter: ",".join(f"{value:g}" for value in values) for letter, values in made.items()
    }
    for letter, values in made.items():
        assert len(list((DOCS / "images" / "idea").glob(f"{letter}-*.png"))) == len(values)


def test_the_rooms_of_the_house_are_there():
    rooms = re.findall(r"`(predcp/[\w./]+)`", (DOCS / "develop.md").read_text())
    assert len(rooms) > 15
    assert not [room for room in rooms if not (ROOT / "src" / room).exists()]
    packages = {path.name for path in (ROOT / "src" / "predcp").iterdir() if path.is_dir()}
    assert packages - {"__pycache__"} <= {Path(room).name for room in rooms}
