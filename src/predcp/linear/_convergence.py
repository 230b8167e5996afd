"""Convergence of a fit: numbers, and warnings in words."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from predcp._numerics.chains import bulk_ess, rank_normalised_rhat, tail_ess
from predcp.linear._draws import Draws
from predcp.linear._kept_steps import coefficients_at, mean_of_draws
from predcp.linear._long import MOST_ERROR

RHAT_LIMIT = 1.01
# Effective draws over all chains that a quantile needs (Vehtari et al., 2021).
ESS_LIMIT = 400
_DIVERGENCE_LIMIT = 1e-3
_SATURATION_LIMIT = 0.01
# Newton's distance to the mode, in standard deviations.
_SLOPE_LIMIT = 0.1
_MOST_COEFFICIENTS = 1000
_OF_MANY_ROWS = ("rows", "map_rows", "map_error", "expansion_error")


@dataclass(frozen=True)
class Convergence:
    """Diagnostics of one fit.

    **Arguments**
    - `sampled`: whether the draws are of chains, rather than of an approximation.
    - `rhat`, `ess_bulk`, `ess_tail`: the worst over coefficients, intercept, log tau and sigma;
      None where there are no chains or fewer than four draws.
    - `divergences`, `depth_saturation`: fractions of steps; `max_depth` of the trees.
    - `slope`: distance from the mode of a Laplace approximation, in standard deviations.
    - `sampler`: the class that drew them, for advice.
    - `missing`: steps per chain that a time limit left out.
    - `rows`, `map_rows`, `map_error`: for a table of many rows, their number, the number over which
      the prior's divergence is a mean, and the relative standard error of that divergence.
    - `expansion_error`: standard deviation over draws of the error of the quadratic that replaces
      the log likelihood of many rows.
    """

    sampled: bool
    chains: int
    draws: int
    rhat: float | None = None
    ess_bulk: float | None = None
    ess_tail: float | None = None
    divergences: float = 0.0
    depth_saturation: float = 0.0
    max_depth: int | None = None
    slope: float | None = None
    sampler: str = "Nuts"
    missing: int = 0
    rows: float | None = None
    map_rows: float | None = None
    map_error: float | None = None
    expansion_error: float | None = None

    @classmethod
    def of(cls, draws: Draws, sampler: str = "Nuts") -> "Convergence":
        """Compute the diagnostics of a fit's draws."""
        chains, length = draws.values["beta"].shape[:2]
        sampled = "n_steps" in draws.statistics or "diverging" in draws.statistics
        worst: dict[str, Any] = {}
        if sampled and length >= 4:
            quantities = _quantities(draws)
            worst = {
                "rhat": _worst(rank_normalised_rhat(quantities), max),
                "ess_bulk": _worst(bulk_ess(quantities), min),
                "ess_tail": _worst(tail_ess(quantities), min),
            }
        return cls(
            sampled,
            chains,
            length,
            divergences=draws.divergences,
            depth_saturation=draws.depth_saturation,
            max_depth=draws.max_depth,
            slope=draws.figures.get("slope"),
            sampler=sampler,
            missing=draws.missing,
            **{name: draws.figures.get(name) for name in _OF_MANY_ROWS},
            **worst,
        )

    @property
    def ess(self) -> float | None:
        """The smaller effective number of draws."""
        known = [number for number in (self.ess_bulk, self.ess_tail) if number is not None]
        return min(known) if known else None

    def warnings(self) -> list[str]:
        """Problems and what to do about them; empty if there are none."""
        found = []
        if self.missing and self.sampled:
            found.append(
                f"the limit on time (max_seconds) ended each chain {self.missing} steps early, with "
                f"{self.draws} draws kept"
            )
        elif self.missing and self.sampler == "MeanField":
            found.append(
                f"the limit on time (max_seconds) ended the search {self.missing} steps early; allow "
                "more time"
            )
        elif self.missing and self.sampler == "QuickLook":
            found.append(
                "the limit on time (max_seconds) ended before the model was compiled: the answer is a "
                "quick look with one scale for all columns instead of the prior; allow more time"
            )
        elif self.missing:
            found.append(
                "the limit on time (max_seconds) ended before chains were of use: the answer is "
                "a first look by Laplace's method; allow more time"
            )
        if self.sampled and self.rhat is None:
            found.append(
                f"{self.draws} draws a chain are too few to tell whether they can be trusted; "
                f"draw at least 100, for instance inference={self.sampler}(draws=1000)"
            )
        elif self.rhat is not None and not self.rhat <= RHAT_LIMIT:
            found.append(
                f"the chains have not settled on the same answer (R-hat {self.rhat:.3f}, should be "
                f"below {RHAT_LIMIT}): do not rely on these figures yet; run longer, for instance "
                f"inference={self.sampler}(warmup={2 * self.draws}, draws={2 * self.draws})"
            )
        elif self.ess is not None and self.ess < ESS_LIMIT:
            found.append(
                f"the draws are worth only {self.ess:.0f} independent ones (should be "
                f"{ESS_LIMIT}): means and intervals are rough; take more draws, for instance "
                f"inference={self.sampler}(draws={_enough(self.draws, self.ess)})"
            )
        if self.divergences > _DIVERGENCE_LIMIT:
            found.append(
                f"{100 * self.divergences:.1f}% of the steps went astray (diverged), so parts of "
                "the posterior may be missing; take smaller steps, "
                f"inference={self.sampler}(target_acceptance=0.95), or a prior with lighter tails, "
                "prior='regularised-horseshoe'"
            )
        if self.depth_saturation > _SATURATION_LIMIT:
            deeper = (self.max_depth or 10) + 2
            found.append(
                f"{100 * self.depth_saturation:.0f}% of the steps were cut short at the greatest "
                f"tree depth: the answer is not wrong but slow to come; allow more with "
                f"inference=Nuts(max_depth={deeper})"
            )
        if self.slope is not None and not self.slope <= _SLOPE_LIMIT:
            found.append(
                "the search for the most probable scales did not finish, so the Laplace "
                "approximation is of the wrong place; allow more time or use inference='nuts'"
            )
        if self.expansion_error is not None and math.isnan(self.expansion_error):
            found.append(
                "the limit on time (max_seconds) ended before the quadratic that stands for the log "
                "likelihood was compared with it: its error is not known; allow more time"
            )
        elif self.expansion_error is not None and not self.expansion_error <= MOST_ERROR:
            found.append(
                f"the log likelihood is no quadratic where the posterior is (off by "
                f"{self.expansion_error:.2g} nats), perhaps because a class or a column is rare; use "
                "inference='nuts'"
            )
        return found

    def words(self) -> list[str]:
        """The diagnostics in one line, for a report."""
        if not self.sampled:
            return [
                f"{self.draws} draws from an approximation of the posterior, which no diagnostic "
                "here can vouch for; use inference='nuts' for figures to rely on",
                *self._many_rows_words(),
            ]
        shown = [f"{self.chains} chains of {self.draws} draws"]
        if self.rhat is not None:
            shown += [
                f"R-hat at most {self.rhat:.3f}",
                f"at least {self.ess_bulk:.0f} effective draws ({self.ess_tail:.0f} in the tails)",
            ]
        if self.divergences or self.max_depth is not None:
            shown.append(f"{100 * self.divergences:.2g}% divergent steps")
        if self.max_depth is not None:
            shown.append(f"{100 * self.depth_saturation:.2g}% at the greatest tree depth")
        return ["; ".join(shown)]

    def _many_rows_words(self) -> list[str]:
        found = []
        if self.map_rows is not None:
            found.append(
                f"the prior's divergence is a mean over {self.map_rows:.0f} of {self.rows:.0f} rows, "
                f"which gives it to {100.0 * (self.map_error or 0.0):.2g}% (standard error)"
            )
        if self.expansion_error is not None:
            known = not math.isnan(self.expansion_error)
            off = f"{self.expansion_error:.2g} nats at draws" if known else "an unknown error"
            found.append(f"the log likelihood of all rows was taken as a quadratic, off by {off}")
        return found


def _quantities(draws: Draws) -> np.ndarray:
    """Quantities whose convergence is checked, `(chains, draws, quantities)`."""
    values = draws.values
    shape = values["beta"].shape[:2]
    beta = values["beta"].reshape(*shape, -1)
    if beta.shape[2] > _MOST_COEFFICIENTS:
        largest = np.argsort(mean_of_draws(beta, np.abs))[-_MOST_COEFFICIENTS:]
        beta = coefficients_at(beta, largest)
    others = [values[name] for name in ("alpha", "log_tau", "sigma") if name in values]
    return np.concatenate([beta, *(other.reshape(*shape, -1) for other in others)], axis=2)


def _worst(values: np.ndarray, choose: Any) -> float:
    """The worst value; NaN (a chain that never moved) counts as the worst."""
    if np.isnan(values).any():
        return math.nan
    return float(choose(values))


def _enough(draws: int, ess: float) -> int:
    """Number of draws for the wanted effective sample size, rounded up to hundreds."""
    wanted = draws * 1.2 * ESS_LIMIT / max(ess, 1.0)
    return min(math.ceil(wanted / 100) * 100, 100_000)
