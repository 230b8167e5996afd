"""Flags for fits that have not converged."""

from collections.abc import Mapping

from predcp._numerics.chains import rank_normalised_rhat

__all__ = ["RHAT_LIMIT", "SAMPLED", "flags", "rank_normalised_rhat"]

SAMPLED = ("nuts", "gibbs", "mcmc")
RHAT_LIMIT = 1.01


def flags(inference: str, convergence: Mapping[str, float | None]) -> list[str]:
    """Warnings about a fit; a sampler without diagnostics is flagged too."""
    found = []
    sampled = inference.startswith(SAMPLED)
    if sampled and "rhat_max" not in convergence:
        found.append("no R-hat")
    if "rhat_max" in convergence:
        rhat = convergence["rhat_max"]
        if rhat is None:
            found.append("R-hat not finite")
        elif rhat > RHAT_LIMIT:
            found.append(f"R-hat {rhat:.2f}")
    for name, words in (("divergences", "divergent"), ("depth_saturation", "at greatest depth")):
        fraction = convergence.get(name)
        if fraction:
            found.append(f"{100 * fraction:.1f}% {words}")
    return found
