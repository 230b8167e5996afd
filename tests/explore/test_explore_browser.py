"""The explorer end to end, in a real headless Chromium: `make test-browser`."""

import os
import re
import shutil
import subprocess
import sys

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
    for attempt in range(60):
        try:
            opened.goto(address)
            break
        except Exception:
            if attempt == 59:
                raise
            opened.wait_for_timeout(500)
    opened.wait_for_selector(".predcp-charts svg")
    opened.asked = asked
    yield opened
    context.close()


def own_file(page, name: str, contents: bytes) -> None:
    """Choose a file of one's own as the design."""
    page.get_by_role("radio", name="a CSV of mine").click()
    file = {"name": name, "mimeType": "text/csv", "buffer": contents}
    # The sidebar is a copy of what the cell shows; the copy comes first and is the one in use.
    page.locator("input[type=file]").first.set_input_files(file)


def press(page, slider: str, key: str) -> None:
    """Move a slider by one step."""
    thumb = page.get_by_role("slider", name=slider)
    thumb.focus()
    page.keyboard.press(key)


def test_the_page_loads_from_this_machine_alone(page, address):
    assert "Half of the prior mass" in page.locator(".predcp-summary h2").inner_text()
    assert page.locator(".predcp-charts svg g[role=img]").count() == 6
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


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [(b"age,sex\n1,f\n2,m\n", "'sex' of bad.csv is not numbers"), (b"", "bad.csv is empty")],
)
def test_a_bad_upload_is_refused_in_words(page, contents, complaint):
    own_file(page, "bad.csv", contents)
    error = page.locator(".predcp-error")
    page.wait_for_function(
        "text => document.querySelector('.predcp-error')?.innerText.includes(text)", arg=complaint
    )
    assert "Traceback" not in error.inner_text()
    assert page.locator(".predcp-charts").count() == 0


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
