"""A fit as a table with a verdict below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from predcp._numerics.chains import bulk_ess, rank_normalised_rhat
from predcp.linear._kept_steps import coefficients_at, mean_of_draws

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Summary:
    """Summary of a fit, with a verdict on its convergence.

    **Arguments**
    - `table`: one row per quantity, with its `median`, `5%` and `95%` quantiles, `P(>0)`, `P(large)`
      and, where there are chains, `rhat` and `ess`.
    - `notes`: the meaning of the columns and the diagnostics; `warnings`: problems and what to do,
      empty if there are none.
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


# Coefficients of one probability whose medians are compared.
_MOST_MEDIANS = 2000


@dataclass(frozen=True)
class Quantity:
    """One row of the table.

    **Arguments**: `values` `(chains, draws)`; `signed`, whether it may be negative; `large`, the
    probability that it is larger than the stated size, None where no size is stated.
    """

    values: np.ndarray
    signed: bool = True
    large: float | None = None


def summary_table(quantities: dict[str, Quantity], sampled: bool) -> pandas.DataFrame:
    """Quantiles, probabilities and convergence of quantities by name."""
    import pandas

    rows = []
    for quantity in quantities.values():
        values = quantity.values
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95])
        row = {"median": median, "5%": low, "95%": high}
        row["P(>0)"] = float(np.mean(values > 0.0)) if quantity.signed else np.nan
        row["P(large)"] = np.nan if quantity.large is None else quantity.large
        if sampled and values.shape[1] >= 4:
            row |= {"rhat": float(rank_normalised_rhat(values)), "ess": float(bulk_ess(values))}
        rows.append(row)
    return pandas.DataFrame(rows, index=list(quantities))


def ranked(beta: np.ndarray, size: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients by the probability of being larger than `size`, then by the median.

    Posterior means are unreliable here: a few draws in a heavy tail determine them.

    **Arguments**: `beta` `(chains, draws, coefficients)` in standard units.
    **Returns** the order of the first `most`, most probable first, and all probabilities.
    """
    large = mean_of_draws(beta, lambda piece: np.abs(piece) > size)
    # Medians are compared among those whose probability may be among the first.
    limit = np.sort(large)[-min(max(most, 1), large.size)]
    close = np.flatnonzero(large >= limit)[:_MOST_MEDIANS]
    medians = np.abs(np.median(coefficients_at(beta, close), axis=(0, 1)))
    return close[np.lexsort((-medians, -large[close]))][:most], large


def _number(value: float) -> str:
    return f"{value:.4g}"
