"""Convergence of chains: rank-normalised split R-hat and effective sample sizes.

The same definitions as in arviz-stats (Vehtari et al., 2021), against which the tests check them.
arviz-stats is an extra and not needed at run time. It computes quantities one by one; here
thousands of coefficients are one array operation, which a sampler repeats while it runs.
"""

import numpy as np

_TAILS = (0.05, 0.95)


def rank_normalised_rhat(draws: np.ndarray) -> np.ndarray:
    """The larger of bulk and tail R-hat (Vehtari et al., 2021), one for each quantity.

    **Arguments:** `draws` is `(chains, draws, ...)`; constant or non-finite quantities give NaN.
    """
    split = _split(draws)
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    return np.maximum(_rhat(_normal_scores(split)), _rhat(_normal_scores(folded)))


def varying_quantities(draws: np.ndarray) -> np.ndarray:
    """The quantities that are not constant over all draws and chains.

    R-hat is undefined for constants, such as saturated probabilities; treat them as converged.

    **Arguments:** `draws` is `(chains, draws, quantities)`; what is not finite counts as varying.
    """
    with np.errstate(invalid="ignore"):
        still = np.ptp(draws, axis=(0, 1)) == 0.0
    return draws[:, :, ~still]


def worst_rhat(draws: np.ndarray) -> float:
    """The largest R-hat of the quantities that vary, 1 if none does; NaN if one is not finite.

    **Arguments:** as `varying_quantities`.
    """
    varying = varying_quantities(draws)
    return float(np.max(rank_normalised_rhat(varying))) if varying.size else 1.0


def bulk_ess(draws: np.ndarray) -> np.ndarray:
    """Effective number of draws for the centre of the distribution, one for each quantity.

    **Arguments:** as `rank_normalised_rhat`.
    """
    return _ess(_normal_scores(_split(draws)))


def tail_ess(draws: np.ndarray) -> np.ndarray:
    """The smaller effective number of draws for the 5% and 95% quantiles.

    **Arguments:** as `rank_normalised_rhat`.
    """
    draws = np.asarray(draws, dtype=np.float64)
    # A NaN anywhere makes the quantity's quantiles NaN, every comparison false, and the ESS NaN.
    edges = np.quantile(draws, _TAILS, axis=(0, 1))
    return np.minimum(*(_ess(_split(draws <= edge)) for edge in edges))


def _split(draws: np.ndarray) -> np.ndarray:
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim < 2 or draws.shape[1] < 4:
        raise ValueError(f"draws must have shape (chains, at least 4, ...), got {draws.shape}")
    half = draws.shape[1] // 2
    # An odd middle draw is left out, so that both halves are equally long.
    return np.concatenate([draws[:, :half], draws[:, -half:]])


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


def _ess(values: np.ndarray) -> np.ndarray:
    """Geyer's initial monotone sequence over the chains `(chains, draws, ...)`."""
    chains, length = values.shape[:2]
    correlation = _autocorrelation(values)
    pairs = correlation[: length // 2 * 2].reshape(length // 2, 2, *values.shape[2:])
    # Lags above length - 3 use two draws or fewer.
    pairs = pairs[: max((length - 1) // 2, 1)]
    sums = pairs.sum(axis=1)
    positive = np.logical_and.accumulate(sums > 0.0, axis=0)
    # The last pair closes the sequence whatever its sign.
    positive[-1] = False
    decreasing = np.minimum.accumulate(sums, axis=0)
    # Add the first lag after the sequence where it is positive.
    beyond = np.take_along_axis(pairs[:, 0], positive.sum(axis=0)[None], axis=0)[0]
    time = -1.0 + 2.0 * np.where(positive, decreasing, 0.0).sum(axis=0) + np.maximum(beyond, 0.0)
    total = chains * length
    return total / np.maximum(time, 1.0 / np.log10(total))


def _autocorrelation(values: np.ndarray) -> np.ndarray:
    """Pooled over chains, `(lags, ...)`, with the spread between chains in the denominator."""
    from scipy.fft import irfft, next_fast_len, rfft

    chains, length = values.shape[:2]
    centred = values - values.mean(axis=1, keepdims=True)
    size = next_fast_len(2 * length)
    spectrum = np.abs(np.asarray(rfft(centred, size, axis=1))) ** 2
    covariance = np.asarray(irfft(spectrum, size, axis=1))[:, :length].mean(axis=0) / length
    within = covariance[0] * length / (length - 1)
    total = covariance[0]
    if chains > 1:
        total = total + values.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1.0 - (within - covariance) / total
    correlation[0] = np.where(np.isfinite(correlation[0]), 1.0, np.nan)
    return correlation
