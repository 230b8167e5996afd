"""An audit in words and as a table of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from predcp.program._responses import RESPONSES

if TYPE_CHECKING:
    from predcp.program._audit import ScaleAudit

THRESHOLDS = (0.1, 1.0, 10.0)


def in_words(each: ScaleAudit) -> str:
    """The audit of one scale in a few sentences: the size of the effect first, then its divergence."""
    sizes = [
        f"the {RESPONSES[name].words} is above {number(values[1])} in half of its draws and above "
        f"{number(values[2])} in one of twenty."
        for name, values in each.responses.items()
        if name != "r_squared"
    ]
    moves = f"at its median ({number(each.tau[1])}) it moves a prediction by {number(each.kappa[1])} nats."
    parts = [part[0].upper() + part[1:] for part in (*sizes, moves)]
    parts[0] = f"{each.scale} ~ {each.prior}: {(*sizes, moves)[0]}"
    if np.isfinite(each.supremum) and each.saturated >= 0.005:
        parts.append(f"{share_in_words(each.saturated)} of its draws saturate the predictions.")
    elif each.beyond["10"] >= 0.005:
        parts.append(
            f"{share_in_words(each.beyond['10'])} of its draws move them by more than 10 nats."
        )
    return " ".join(parts)


def number(value: float) -> str:
    if not np.isfinite(value):
        return "more than can be written"
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.3g}" if abs(value) < 1e3 else f"{value:,.0f}"
    return f"{value:.1e}"


def share_in_words(share: float) -> str:
    if share > 0.995:
        return "All"
    if share > 0.95:
        return f"{share:.0%}"
    words = {1: "One in ten", 2: "Two in ten", 3: "Three in ten", 4: "Four in ten", 5: "Half"}
    words |= {6: "Six in ten", 7: "Seven in ten", 8: "Eight in ten", 9: "Nine in ten"}
    tenths = round(10 * share)
    return words.get(tenths, f"{share:.1%}")


def table_of(scales: Sequence[ScaleAudit]) -> str:
    """A plain-text table, one row for each scale."""
    header = [
        "scale",
        "prior",
        "tau 50%",
        "nats 5%",
        "50%",
        "95%",
        "> 0.1",
        "> 1",
        "> 10",
        "saturated",
    ]
    rows = [
        [
            each.scale,
            each.prior,
            number(each.tau[1]),
            *(number(value) for value in each.kappa),
            *(f"{each.beyond[f'{u:g}']:.0%}" for u in THRESHOLDS),
            f"{each.saturated:.0%}" if np.isfinite(each.supremum) else "-",
        ]
        for each in scales
    ]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
