"""Pictures with a palette: small, alike, and the same every time."""

import io

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from predcp._support.png import png, with_palette


def chart():
    figure = Figure(figsize=(5.0, 3.0))
    axes = figure.subplots()
    x = np.linspace(0.0, 6.0, 50)
    for shift in range(5):
        axes.plot(x, np.sin(x + shift), label=f"shift {shift}")
    axes.legend()
    return figure


def test_a_chart_is_a_third_as_large_and_looks_the_same():
    buffer = io.BytesIO()
    chart().savefig(buffer, format="png", dpi=100)
    small = png(chart())
    assert len(small) < 0.45 * len(buffer.getvalue())
    before, after = (
        np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), float)
        for content in (buffer.getvalue(), small)
    )
    assert before.shape == after.shape
    assert np.abs(before - after).mean() < 1.0
    assert np.abs(before - after).max() < 64


def test_equal_figures_give_equal_bytes():
    assert png(chart()) == png(chart())


def test_transparent_places_become_white():
    buffer = io.BytesIO()
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(buffer, "PNG")
    found = Image.open(io.BytesIO(with_palette(buffer.getvalue()))).convert("RGB")
    assert found.getpixel((1, 1)) == (255, 255, 255)
