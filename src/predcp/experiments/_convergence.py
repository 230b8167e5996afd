"""Convergence: rank-normalised split R-hat, and what deserves a flag."""

from collections.abc import Mapping

import numpy as np

SAMPLED = ("nuts", "hmc", "mcmc")
RHAT_LIMIT = 1.01


def rank_normalised_rhat(draws: np.ndarray) -> np.ndarray:
    """The larger of bulk and tail R-hat (Vehtari et al., 2021), one for each quantity.

    **Arguments:** `draws` is `(chains, draws, ...)`; constant or non-finite quantities give NaN.
    """
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim < 2 or draws.shape[1] < 4:
        raise ValueError(f"draws must have shape (chains, at least 4, ...), got {draws.shape}")
    half = draws.shape[1] // 2
    # An odd middle draw is left out, so that both halves are equally long.
    split = np.concatenate([draws[:, :half], draws[:, -half:]])
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    return np.maximum(_rhat(_normal_scores(split)), _rhat(_normal_scores(folded)))


def flags(inference: str, convergence: Mapping[str, float | None]) -> list[str]:
    """What a reader must know about a fit; a sampler without figures is flagged too."""
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


def _normal_scores(values: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    flat = values.reshape(values.shape[0] * values.shape[1], *values.shape[2:])
    ranks = rankdata(flat, axis=0, nan_policy="propagate")
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(values.shape)


def _rhat(scores: np.ndarray) -> np.ndarray:
    length = scores.shape[1]
    within = scores.var(axis=1, ddof=1).mean(axis=0)
    between = length * scores.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((between / within + length - 1) / length)
