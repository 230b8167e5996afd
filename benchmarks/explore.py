"""How fast the explorer redraws: `python -m benchmarks.explore` writes results/explore.json.

The bar: under 200 ms after a slider moved, the first compilation left out. `scene` is the time in
Python, from choices to picture, words and code; `browser` is the time from the key press to the
new picture in a headless Chromium, where there is one.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from predcp._support.environment import environment
from predcp.explore import COLUMNS, ROWS, Choices, Design, Tail, scene
from predcp.explore._serve import free_port

OUTPUT = Path(__file__).parent / "results" / "explore.json"
BAR = 200.0
REPEATS = 20
SCALES = np.geomspace(0.5, 2.0, REPEATS)
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Resolves with the milliseconds from now to the next change of the charts.
_WATCH = """() => { window.redrawn = new Promise(done => {
  const start = performance.now();
  const before = document.querySelector('.predcp-charts').innerHTML;
  const look = () => {
    const now = document.querySelector('.predcp-charts');
    if (now && now.innerHTML !== before) done(performance.now() - start);
    else requestAnimationFrame(look);
  };
  look();
}); }"""


def moves() -> dict[str, list[Choices]]:
    """Slider moves, by what is moved."""
    rng = np.random.default_rng(0)
    own = Design(rng.standard_normal((1000, 30)), "own.csv", tuple(map(str, range(30))), True)

    def scaled(**fixed: Any) -> list[Choices]:
        return [Choices(parameters={"scale": float(scale)}, **fixed) for scale in SCALES]

    return {
        "linear: scale of pi": scaled(),
        "logistic: scale of pi": scaled(model="logistic"),
        "logistic, Jensen-Shannon: scale of pi": scaled(
            model="logistic", divergence="jensen_shannon"
        ),
        "linear, gamma: scale of pi": scaled(family="Gamma"),
        "linear: tail probability": [
            Choices(tail=Tail(0.1, float(p))) for p in np.linspace(0.02, 0.5, REPEATS)
        ],
        "linear: noise": [Choices(noise=float(scale)) for scale in SCALES],
        "linear: rows": [Choices(rows=rows) for rows in ROWS],
        "linear: columns": [Choices(columns=columns) for columns in COLUMNS],
        "own file of 1000 rows: scale of pi": scaled(design=own),
        "network: scale of pi": scaled(model="network"),
        "network, squared Hellinger: scale of pi": scaled(
            model="network", divergence="squared_hellinger"
        ),
        "network: layers": [Choices("network", depth=depth) for depth in range(1, 9)],
    }


def of_scenes() -> dict[str, dict[str, float]]:
    """Milliseconds of every move, the first of its kind (which compiles) apart."""
    results = {}
    for name, choices in moves().items():
        start = time.perf_counter()
        scene(choices[0])
        first = time.perf_counter() - start
        if name.endswith(("columns", "rows")):
            # Each count is compiled or drawn once.
            for each in choices:
                scene(each)
        times = []
        for each in choices:
            start = time.perf_counter()
            scene(each)
            times.append(1e3 * (time.perf_counter() - start))
        results[name] = {
            "first": round(1e3 * first),
            "median": round(statistics.median(times), 1),
            "slowest": round(max(times), 1),
        }
        print(f"{name}: {results[name]}", flush=True)
    return results


def in_browser() -> dict[str, Any] | None:
    """Milliseconds from key press to new picture; None without Chromium."""
    chromium = os.environ.get("PREDCP_CHROMIUM") or shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    port = str(free_port("127.0.0.1", 27280))
    command = [sys.executable, "-m", "predcp", "explore", "--no-browser", "--port", port]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(120_000)
            _open(page, found.group())
            page.wait_for_selector(".predcp-charts svg")
            # What is compiled in the background would be measured too.
            page.wait_for_timeout(20_000)
            thumb = page.get_by_role("slider", name="scale")
            thumb.focus()
            times = []
            for step in range(2 * REPEATS):
                page.evaluate(_WATCH)
                page.keyboard.press("ArrowRight" if step % 2 == 0 else "ArrowLeft")
                times.append(page.evaluate("() => window.redrawn"))
                page.wait_for_timeout(50)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return {
        "moves": len(times),
        "median": round(statistics.median(times), 1),
        "nine_in_ten_below": round(float(np.quantile(times, 0.9)), 1),
        "slowest": round(max(times), 1),
    }


def _open(page: Any, address: str) -> None:
    for attempt in range(100):
        try:
            page.goto(address)
            return
        except Exception:
            if attempt == 99:
                raise
            time.sleep(0.5)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    results = {
        "bar_milliseconds": BAR,
        "scene_milliseconds": of_scenes(),
        "browser_milliseconds": in_browser(),
        "environment": environment(),
    }
    OUTPUT.write_text(json.dumps(results, indent=2) + "\n")
    print(f"wrote {OUTPUT}")


if __name__ == "__main__":
    main()
