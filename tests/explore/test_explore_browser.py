"""The explorer end to end, in a real headless Chromium: `make test-browser`."""

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from predcp.explore._serve import free_port

pytestmark = pytest.mark.browser
CHROMIUM = os.environ.get("PREDCP_CHROMIUM") or shutil.which("chromium") or ""
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TABLE = b"age,dose,ill\n" + b"\n".join(
    b"%.3f,%.3f,%d" % (*pair, index % 2)
    for index, pair in enumerate(np.random.default_rng(1).normal(size=(30, 2)))
)
# The first compilation on a slow machine.
PATIENCE = 90_000


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address(browser):
    pytest.importorskip("marimo", reason="the extra explore is not installed")
    port = str(free_port("127.0.0.1", 27180))
    # As a user starts it: none of the flags that make tests compile fast.
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    server = subprocess.Popen(
        [sys.executable, "-m", "predcp", "explore", "--no-browser", "--port", port],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found is not None
    yield found.group()
    server.terminate()
    server.wait(timeout=30)


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    asked = []
    opened.on("request", lambda request: asked.append(request.url))
    visit(opened, address)
    opened.wait_for_selector(".predcp-charts svg")
    opened.asked = asked
    yield opened
    context.close()


def visit(page, address: str) -> None:
    """Open the page once its server answers."""
    for attempt in range(60):
        try:
            page.goto(address)
            return
        except Exception:
            if attempt == 59:
                raise
            page.wait_for_timeout(500)


def own_file(page, name: str, contents: bytes) -> None:
    """Choose a file of one's own as the design."""
    page.get_by_role("radio", name="a CSV file").click()
    file = {"name": name, "mimeType": "text/csv", "buffer": contents}
    # The sidebar shows a copy of what the cell made. The copy comes first and is the one in use.
    page.locator("input[type=file]").first.set_input_files(file)


def press(page, slider: str, key: str) -> None:
    """Move a slider by one step."""
    thumb = page.get_by_role("slider", name=slider)
    thumb.focus()
    page.keyboard.press(key)


def test_the_page_loads_from_this_machine_alone(page, address):
    assert "Half of the prior mass" in page.locator(".predcp-summary h2").inner_text()
    assert page.locator(".predcp-charts svg[role=img]").count() == 6
    assert page.locator(".codehilite").inner_text().startswith("import jax")
    outside = [url for url in page.asked if not url.startswith((address, "data:", "blob:"))]
    assert outside == []


def test_a_slider_changes_the_plot_the_words_and_the_code(page):
    before = page.locator(".predcp-charts").inner_html()
    words = page.locator(".predcp-summary ul").inner_text()
    press(page, "scale", "ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('.predcp-charts').innerHTML !== before", arg=before
    )
    assert page.locator(".predcp-summary ul").inner_text() != words
    page.wait_for_function(
        "() => document.querySelector('.codehilite').innerText.includes('scale=1.08,')"
    )


def test_an_upload_becomes_the_design(page):
    x = np.random.default_rng(0).normal(size=(30, 2))
    rows = "\n".join(f"{a},{b}" for a, b in x)
    own_file(page, "mine.csv", f"age,dose\n{rows}\n".encode())
    page.wait_for_function(
        "() => document.querySelector('.codehilite')?.innerText.includes('mine.csv')"
    )
    assert "Half of the prior mass" in page.locator(".predcp-summary h2").inner_text()
    assert "['age', 'dose']" in page.locator(".codehilite").inner_text()


def test_a_refused_file_leaves_the_page_as_it_was(page):
    own_file(page, "good.csv", TABLE)
    page.wait_for_function(
        "() => document.querySelector('.codehilite')?.innerText.includes('good.csv')"
    )
    # The last column has two values: it is taken for the outcome.
    assert "['age', 'dose']" in page.locator(".codehilite").inner_text()
    curves = "all => all.map(line => line.getAttribute('points'))"
    before = page.locator(".predcp-charts polyline").evaluate_all(curves)
    own_file(page, "bad.csv", b"")
    page.wait_for_function(
        "() => document.querySelector('.predcp-problem')?.innerText.includes('bad.csv is empty')"
    )
    assert "Traceback" not in page.locator("body").inner_text()
    assert page.locator(".predcp-charts polyline").evaluate_all(curves) == before
    assert "good.csv" in page.locator(".codehilite").inner_text()


def test_on_a_phone_the_charts_are_one_below_the_other(browser, address, page):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    phone = context.new_page()
    phone.set_default_timeout(PATIENCE)
    phone.goto(address)
    phone.wait_for_selector(".predcp-charts svg")
    boxes = [chart.bounding_box() for chart in phone.locator(".predcp-charts > svg").all()]
    assert len(boxes) == 6
    assert len({box["x"] for box in boxes}) == 1
    assert all(box["width"] > 300 and box["x"] + box["width"] <= 390 for box in boxes)
    assert all(low["y"] >= high["y"] + high["height"] for high, low in pairwise(boxes))
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_long_column_names_stay_inside_the_controls(page):
    name = b"mean_corpuscular_haemoglobin_concentration_at_admission_grams_per_decilitre"
    own_file(page, "long.csv", TABLE.replace(b"age", name))
    page.wait_for_function(
        "() => document.querySelector('.codehilite')?.innerText.includes('long.csv')"
    )
    button = page.locator("marimo-multiselect button").first
    box = button.bounding_box()
    assert box["x"] + box["width"] <= 330


def test_the_copied_code_runs(page, tmp_path):
    page.get_by_label("Copy to clipboard").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    script = tmp_path / "pasted.py"
    script.write_text(copied)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=150, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    # log-Cauchy(1) has median 1 nat; the page's own words give the scale it belongs to.
    median = float(re.findall(r"[\d.e+-]+", done.stdout.split(":")[1])[1])
    said = page.locator(".predcp-summary ul").inner_text()
    assert f"has median {median:.2f}" in said


PROGRAM = """
import numpyro
import numpyro.distributions as dist


def lengths(group, y):
    for name in ("first", "second"):
        tau = numpyro.sample(f"sd_{name}", dist.HalfCauchy(2.0))
        with numpyro.plate(f"groups_{name}", 3):
            effect = numpyro.sample(name, dist.Normal(0.0, tau))
        numpyro.sample(f"y_{name}", dist.Normal(effect[group], 0.5), obs=y)
"""


def test_a_program_on_a_phone_has_its_charts_one_below_the_other(browser, tmp_path):
    pytest.importorskip("marimo", reason="the extra explore is not installed")
    (tmp_path / "mine.py").write_text(PROGRAM)
    (tmp_path / "table.csv").write_text("group,y\na,1.5\nb,2.5\nc,0.5\na,1.0\n")
    port = str(free_port("127.0.0.1", 27280))
    named = ["mine.py:lengths", "--data", "table.csv"]
    server = subprocess.Popen(
        [sys.executable, "-m", "predcp", "explore", *named, "--no-browser", "--port", port],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found is not None
    context = browser.new_context(viewport={"width": 390, "height": 844})
    phone = context.new_page()
    phone.set_default_timeout(PATIENCE)
    visit(phone, found.group())
    phone.wait_for_selector(".predcp-charts svg")
    boxes = [chart.bounding_box() for chart in phone.locator(".predcp-charts > svg").all()]
    # For each scale a pair of charts in its own unit, and a pair in nats.
    assert len(boxes) == 8 and len({box["x"] for box in boxes}) == 1
    assert all(box["x"] + box["width"] <= 390 for box in boxes)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert "sd_second alone, as in its charts" in phone.locator(".codehilite").inner_text()
    context.close()
    server.terminate()
    server.wait(timeout=30)
