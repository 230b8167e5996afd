"""Convergence of a fit: numbers, and warnings in words."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from predcp._numerics.chains import bulk_ess, rank_normalised_rhat, tail_ess
from predcp.linear._draws import Draws

RHAT_LIMIT = 1.01
# Effective draws that a quantile is worth quoting from, for all chains (Vehtari et al., 2021).
ESS_LIMIT = 400
_DIVERGENCE_LIMIT = 1e-3
_SATURATION_LIMIT = 0.01
# Newton's distance to the mode, in standard deviations.
_SLOPE_LIMIT = 0.1
_MOST_COEFFICIENTS = 1000


@dataclass(frozen=True)
class Convergence:
    """Diagnostics of one fit.

    **Arguments**
    - `sampled`: whether the draws are of chains, rather than of an approximation.
    - `rhat`, `ess_bulk`, `ess_tail`: the worst over coefficients, intercept, log tau and sigma;
      None where there are no chains or fewer than four draws.
    - `divergences`, `depth_saturation`: fractions of steps; `max_depth` of the trees.
    - `slope`: distance to the mode that a Laplace approximation claims, in standard deviations.
    - `sampler`: the class that drew them, for advice.
    - `missing`: steps of each chain that a limit on time left out.
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

    @classmethod
    def of(cls, draws: Draws, sampler: str = "Nuts") -> "Convergence":
        """Look at the draws of a fit."""
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
            **worst,
        )

    @property
    def ess(self) -> float | None:
        """The smaller effective number of draws."""
        known = [number for number in (self.ess_bulk, self.ess_tail) if number is not None]
        return min(known) if known else None

    def warnings(self) -> list[str]:
        """What is wrong, and what to do; empty where nothing is."""
        found = []
        if self.missing:
            found.append(
                f"the limit on time (max_seconds) ended each chain {self.missing} steps early, with "
                f"{self.draws} draws kept"
                if self.sampled
                else "the limit on time (max_seconds) ended before chains were of use: the answer is "
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
                "approximation is of the wrong place; use inference='nuts'"
            )
        return found

    def words(self) -> list[str]:
        """One line on the figures, for a report."""
        if not self.sampled:
            return [
                f"{self.draws} draws from an approximation of the posterior, which no diagnostic "
                "here can vouch for; use inference='nuts' for figures to rely on"
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


def _quantities(draws: Draws) -> np.ndarray:
    """What is looked at, `(chains, draws, quantities)`."""
    values = draws.values
    shape = values["beta"].shape[:2]
    beta = values["beta"].reshape(*shape, -1)
    if beta.shape[2] > _MOST_COEFFICIENTS:
        largest = np.argsort(np.abs(beta).mean(axis=(0, 1)))[-_MOST_COEFFICIENTS:]
        beta = beta[:, :, largest]
    others = [values[name] for name in ("alpha", "log_tau", "sigma") if name in values]
    return np.concatenate([beta, *(other.reshape(*shape, -1) for other in others)], axis=2)


def _worst(values: np.ndarray, choose: Any) -> float:
    """NaN (a chain that never moved) is as bad as it gets."""
    if np.isnan(values).any():
        return math.nan
    return float(choose(values))


def _enough(draws: int, ess: float) -> int:
    """Draws for the wanted effective number, rounded up to hundreds."""
    wanted = draws * 1.2 * ESS_LIMIT / max(ess, 1.0)
    return min(math.ceil(wanted / 100) * 100, 100_000)
