"""Line charts as SVG text: fast to draw, sharp at any size, with nothing to load."""

import math
from html import escape
from itertools import count
from typing import Any

import numpy as np

INK, GREY, RULE = "#1f2933", "#616e7c", "#e4e7eb"
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 34.0, 44.0
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STYLE = "width:100%;height:auto;font-family:system-ui,sans-serif;background:white"
_numbers = count()


class Panel:
    """One chart with a title, axes, lines and a legend.

    **Arguments**
    - `title`, `xlabel`, `ylabel`: text.
    - `xlim`, `ylim`: ends of the axes, positive where an axis is logarithmic.
    - `xlog`, `ylog`: whether an axis is logarithmic.
    - `legend_left`: for a rising curve, which fills the right side.
    - `size`: width and height in pixels.
    """

    def __init__(
        self,
        title: str,
        xlabel: str,
        ylabel: str,
        xlim: tuple[float, float],
        ylim: tuple[float, float],
        xlog: bool = False,
        ylog: bool = False,
        legend_left: bool = False,
        size: tuple[float, float] = (360.0, 262.0),
    ):
        self.title, self.xlabel, self.ylabel = title, xlabel, ylabel
        self.xlog, self.ylog = xlog, ylog
        self.xlim, self.ylim = _widened(xlim, xlog), _widened(ylim, ylog)
        self.legend_left = legend_left
        self.width, self.height = size
        self._marks: list[str] = []
        self._legend: list[tuple[str, str, str]] = []

    def line(
        self,
        x: Any,
        y: Any,
        colour: str,
        label: str = "",
        dash: str = "",
        width: float = 2.0,
        opacity: float = 1.0,
        fill: bool = False,
    ) -> None:
        """Add a curve; points that are not finite are left out.

        **Arguments**: `x`, `y`, the points; `label`, for the legend; `fill`, whether to shade the area
        below; the others are attributes of SVG.
        """
        points = self._points(x, y)
        if not points:
            return
        if fill:
            base = self.height - _BOTTOM
            first, last = points.split(" ")[0], points.split(" ")[-1]
            corners = f"{first.split(',')[0]},{base:.1f} {points} {last.split(',')[0]},{base:.1f}"
            self._marks.append(f'<polygon points="{corners}" fill="{colour}" fill-opacity="0.10"/>')
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._marks.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-opacity="{opacity}" stroke-linejoin="round"{dashed}/>'
        )
        if label:
            self._legend.append((label, colour, dash))

    def bars(self, edges: Any, heights: Any, colour: str, outline: bool = False) -> None:
        """Add a histogram: heights between neighbouring edges, filled or as a thin outline."""
        edges, heights = np.asarray(edges, float), np.asarray(heights, float)
        x = np.repeat(edges, 2)
        y = np.concatenate([[self.ylim[0]], np.repeat(heights, 2), [self.ylim[0]]])
        points = self._points(x, y)
        shape = (
            f'fill="none" stroke="{colour}" stroke-width="1.2" stroke-dasharray="3 2"'
            if outline
            else f'fill="{colour}" fill-opacity="0.65" stroke="{colour}" stroke-width="0.6"'
        )
        self._marks.append(f'<polygon points="{points}" {shape}/>')

    def rule(self, x: float | None = None, y: float | None = None, colour: str = GREY) -> None:
        """Add a thin dashed line across the chart, at one x or one y."""
        if x is not None:
            self.line([x, x], self.ylim, colour, dash="3 3", width=1.0)
        if y is not None:
            self.line(self.xlim, [y, y], colour, dash="3 3", width=1.0)

    def render(self) -> str:
        """The chart as an SVG of its own, which scales to the width that the page gives it."""
        name = f"predcp-clip-{next(_numbers)}"
        right, bottom = self.width - _RIGHT, self.height - _BOTTOM
        middle = (_LEFT + right) / 2
        clip = (
            f'<clipPath id="{name}"><rect x="{_LEFT}" y="{_TOP - 2}" width="{right - _LEFT}" '
            f'height="{bottom - _TOP + 3}"/></clipPath>'
        )
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'style="{_STYLE}" role="img" aria-label="{escape(self.title)}">',
            clip,
            f'<text x="18" y="17" fill="{INK}" font-size="13" font-weight="600">'
            f"{escape(self.title)}</text>",
            *self._axis_marks(),
            f'<g clip-path="url(#{name})">{"".join(self._marks)}</g>',
            f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="{GREY}"/>',
            f'<text x="{middle}" y="{self.height - 8}" text-anchor="middle" fill="{GREY}" '
            f'font-size="11.5">{escape(self.xlabel)}</text>',
            f'<text transform="translate(12 {(_TOP + bottom) / 2}) rotate(-90)" '
            f'text-anchor="middle" fill="{GREY}" font-size="11.5">{escape(self.ylabel)}</text>',
            *self._legend_marks(right),
            "</svg>",
        ]
        return "".join(parts)

    def _axis_marks(self) -> list[str]:
        bottom, right = self.height - _BOTTOM, self.width - _RIGHT
        marks = []
        for value in ticks(self.xlim, self.xlog):
            at = float(self._across(np.array([value]))[0])
            marks.append(
                f'<path d="M{at:.1f} {_TOP}V{bottom}" stroke="{RULE}"/>'
                f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle" fill="{GREY}" '
                f'font-size="10.5">{label(value, self.xlog)}</text>'
            )
        for value in ticks(self.ylim, self.ylog):
            at = float(self._down(np.array([value]))[0])
            marks.append(
                f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="{RULE}"/>'
                f'<text x="{_LEFT - 6}" y="{at + 3.5:.1f}" text-anchor="end" fill="{GREY}" '
                f'font-size="10.5">{label(value, self.ylog)}</text>'
            )
        return marks

    def _legend_marks(self, right: float) -> list[str]:
        marks = []
        for row, (words, colour, dash) in enumerate(self._legend):
            y = _TOP + 10 + 15 * row
            dashed = f' stroke-dasharray="{dash}"' if dash else ""
            start, at, anchor = right - 22, right - 27, "end"
            if self.legend_left:
                start, at, anchor = _LEFT + 8, _LEFT + 31, "start"
            marks.append(
                f'<path d="M{start} {y}h18" stroke="{colour}" stroke-width="2"{dashed}/>'
                f'<text x="{at}" y="{y + 3.5}" text-anchor="{anchor}" fill="{INK}" '
                f'font-size="10.5" paint-order="stroke" stroke="white" stroke-width="3">'
                f"{escape(words)}</text>"
            )
        return marks

    def _points(self, x: Any, y: Any) -> str:
        x, y = np.asarray(x, float), np.asarray(y, float)
        kept = np.isfinite(x) & np.isfinite(y)
        kept &= (x > 0.0) | (not self.xlog)
        kept &= (y > 0.0) | (not self.ylog)
        across, down = self._across(x[kept]), self._down(y[kept])
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across.tolist(), down.tolist()))

    def _across(self, x: np.ndarray) -> np.ndarray:
        share = _share(x, self.xlim, self.xlog)
        return _LEFT + share * (self.width - _LEFT - _RIGHT)

    def _down(self, y: np.ndarray) -> np.ndarray:
        share = _share(y, self.ylim, self.ylog)
        # A pole far above the chart would give numbers that are too large for a browser.
        share = np.clip(share, -3.0, 4.0)
        return self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM)


def ticks(limits: tuple[float, float], log: bool, most: int = 5) -> list[float]:
    """A few round numbers inside the limits.

    **Arguments**: `limits`; `log`, whether the axis is logarithmic; `most`, about how many.
    """
    low, high = limits
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / most))
        return [10.0**power for power in range(first, last + 1, step)]
    raw = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1.0, 2.0, 5.0, 10.0) if unit * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def label(value: float, log: bool) -> str:
    """The text of a tick: a power of ten if there are many zeros."""
    if value == 0.0:
        return "0"
    power = math.log10(abs(value))
    if log and not -3.5 < power < 3.5:
        return "10" + str(round(power)).translate(SUPERSCRIPTS)
    if not -4.0 < power < 6.0:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{float(mantissa):g}·10" + str(int(exponent)).translate(SUPERSCRIPTS)
    return f"{value:.6g}".replace("-", "−")


def _share(values: np.ndarray, limits: tuple[float, float], log: bool) -> np.ndarray:
    low, high = limits
    if log:
        low, high, values = math.log10(low), math.log10(high), np.log10(values)
    return (values - low) / (high - low)


def _widened(limits: tuple[float, float], log: bool) -> tuple[float, float]:
    """The limits, or an interval around them if they are equal."""
    low, high = float(limits[0]), float(limits[1])
    if high > low:
        return low, high
    return (low / 10.0, low * 10.0) if log else (low - 1.0, low + 1.0)
