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
BUILD = ("-m", "properdocs", "build", "--strict", "--config-file", "mkdocs.yml")
ROOMS = (
    "",
    ".linear",
    ".resnet",
    ".fewshot",
    ".data",
    ".comparison",
    ".experiments",
    ".paper",
    ".paper.figures",
)


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
    for name in ("properdocs", "material", "mkdocstrings_handlers.python"):
        pytest.importorskip(name, reason="the extra `docs` is not installed: `make docs` does that")
    folder = tmp_path_factory.mktemp("site")
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, *BUILD, "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture(scope="module")
def browser():
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium on this machine")
    return found


def dom(browser, page):
    """A page as the browser has it after its scripts ran."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    result = subprocess.run(
        [browser, *options, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.stdout


def test_the_site_builds_strictly_and_fetches_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.glob("*.md")))
    for page in pages:
        assert "```" not in page.read_text(), f"{page}: a block of code that is not one"
        fetched = Fetched()
        fetched.feed(page.read_text())
        assert fetched.addresses
        assert not [item for item in fetched.addresses if re.match(r"(https?:)?//", item)], page


@pytest.mark.browser
def test_formulas_are_typeset_in_a_browser(site, browser):
    pages = [page for page in site.rglob("*.html") if 'class="arithmatex"' in page.read_text()]
    assert (site / "idea.html") in pages
    for page in pages:
        shown = dom(browser, page)
        marked = len(re.findall(r'class="arithmatex"', shown))
        assert "katex-error" not in shown, page
        assert marked > 0 and len(re.findall(r'class="katex"', shown)) == marked, page


def test_the_fonts_of_the_formulas_are_in_the_site(site):
    folder = site / "assets" / "katex"
    fonts = re.findall(r"url\(([^)]+)\)", (folder / "katex.min.css").read_text())
    assert len(fonts) > 10
    assert all((folder / font).is_file() for font in fonts)
    assert (folder / "LICENSE").is_file()


def test_the_reference_shows_arguments_as_lists(site):
    text = (site / "api" / "maps.html").read_text()
    section = text[text.index('id="predcp.PredictiveComplexity"') :]
    assert re.search(
        r"<strong>Arguments</strong></p>\s*<ul>\s*<li><code>likelihood</code>", section
    )


def test_the_page_of_the_idea_has_sliders_in_a_browser(site, browser):
    shown = dom(browser, site / "idea.html")
    sliders = re.findall(r'<input type="range" max="8"><output>([^<]+)</output>', shown)
    assert sliders == ["x = 1", "upper = 0.1"]


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
    assert {name.rsplit(".", 1)[0] for name in set(listed) - public} <= {
        "predcp.plot",
        "predcp.bridges.pymc",
        "predcp.bridges.bambi",
    }


def test_the_command_line_reference_has_every_command_and_option():
    module = load(DOCS / "make_command_line.py")
    text = module.reference(app, "predcp")
    found = list(module.commands(get_command(app), "predcp"))
    assert {"predcp run", "predcp data fetch", "predcp figures"} <= {path for path, _ in found}
    for path, command in found:
        section = text.split(f"## {path}\n")[1].split("\n## ")[0]
        assert command.help in section
        for item in command.params:
            if item.param_type_name == "option" and item.name != "help":
                assert all(flag in section for flag in item.opts)


def test_the_page_of_the_command_line_is_up_to_date():
    module = load(DOCS / "make_command_line.py")
    assert module.PAGE.read_text() == module.page(), "run: python docs/make_command_line.py"


def test_the_site_needs_no_hook():
    """A hook is Python that another builder of the same sources would ignore."""
    assert not re.search(r"^hooks:", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert "mkdocs.yml" in BUILD and " ".join(BUILD) in (ROOT / "Makefile").read_text()


def test_a_list_under_a_line_of_text_is_set_apart():
    pytest.importorskip("griffe", reason="the extra `docs` is not installed")
    as_markdown = load(DOCS / "griffe_docstrings.py").as_markdown
    assert as_markdown("**Arguments**\n- `x`: one,\n    more.\n- `y`: two.") == (
        "**Arguments**\n\n- `x`: one,\n    more.\n- `y`: two."
    )
    assert as_markdown("a\n\n- b\n- c") == "a\n\n- b\n- c"


def found(name):
    """What a dotted name of the package stands for."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:place]))
    return value


def test_renamed_names_are_there_and_the_old_ones_are_gone():
    text = (DOCS / "renamed.md").read_text()
    rows = re.findall(r"^\| `(predcp\.[\w.]+)` \| `(predcp\.[\w.]+)`", text, re.MULTILINE)
    assert len(rows) > 3
    for old, new in rows:
        assert found(new) is not None
        with pytest.raises((AttributeError, ModuleNotFoundError)):
            found(old)


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
