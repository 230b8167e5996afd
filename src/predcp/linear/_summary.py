"""A fit as a table with a verdict below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from predcp._numerics.chains import bulk_ess, rank_normalised_rhat

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Summary:
    """What a fit says, and how far to trust it.

    **Arguments**
    - `table`: a row a quantity: `mean`, `sd`, `5%`, `95%`, `rhat`, `ess`.
    - `notes`: how the fit went; `warnings`: what to do about it, empty where all is well.
    """

    title: str
    table: pandas.DataFrame
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [self.title, "", self.table.to_string(float_format=_number, na_rep="")]
        lines += ["", *self.notes]
        lines += [f"Warning: {words}" for words in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        words = [*self.notes, *(f"Warning: {warning}" for warning in self.warnings)]
        below = "".join(f"<p>{html.escape(text)}</p>" for text in words)
        table = self.table.to_html(float_format=_number, na_rep="")
        return f"<p>{html.escape(self.title)}</p>{table}{below}"


def summary_table(quantities: dict[str, np.ndarray], sampled: bool) -> pandas.DataFrame:
    """Moments, quantiles and convergence of quantities `(chains, draws)` by name."""
    import pandas

    rows = []
    for values in quantities.values():
        low, high = np.quantile(values, [0.05, 0.95])
        # In units of the largest, whose square may overflow.
        unit = np.abs(values).max() or 1.0
        spread = unit * (values / unit).std(ddof=1)
        row = {"mean": values.mean(), "sd": spread, "5%": low, "95%": high}
        if sampled and values.shape[1] >= 4:
            row |= {"rhat": float(rank_normalised_rhat(values)), "ess": float(bulk_ess(values))}
        rows.append(row)
    return pandas.DataFrame(rows, index=list(quantities))


def _number(value: float) -> str:
    return f"{value:.4g}"
