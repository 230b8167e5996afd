"""Scores of a classifier's draws, and convergence of its chains."""

import numpy as np
from numpyro.diagnostics import effective_sample_size

from predcp._numerics.chains import rank_normalised_rhat, varying_quantities, worst_rhat
from predcp.linear import Draws


def scores(logits: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """Log-likelihood (mean over rows of the log mean over draws), Brier score, accuracy in percent.

    **Arguments**: `logits` `(chains, draws, rows)`; `target` `(rows,)` of 0 and 1.
    """
    signed = np.where(target == 1, 1.0, -1.0) * logits.astype(np.float64).reshape(-1, len(target))
    # log sigmoid without overflow; then log of the mean over draws without underflow.
    log_p = -np.logaddexp(0.0, -signed)
    top = log_p.max(axis=0)
    log_mean = top + np.log(np.mean(np.exp(log_p - top), axis=0))
    probability = np.exp(log_mean)
    return {
        "log_likelihood": float(log_mean.mean()),
        "accuracy": float(100.0 * np.mean(probability > 0.5)),
        "brier": float(np.mean((1.0 - probability) ** 2)),
    }


def convergence(draws: Draws) -> dict[str, float]:
    """R-hat and ESS of the test probabilities, of tau and of the log density; how the steps went."""
    probability = draws.values["test_probability"].astype(np.float64)
    if probability.shape[0] == 1:
        return dict(draws.figures)
    log_tau = draws.values["log_tau"].astype(np.float64)
    log_density = np.asarray(draws.statistics["lp"], np.float64)
    rhats = {
        "rhat_probability": worst_rhat(probability),
        "rhat_tau": float(rank_normalised_rhat(log_tau)),
        "rhat_log_density": float(rank_normalised_rhat(log_density)),
    }
    moving = varying_quantities(probability)
    # Where every probability is saturated, tau is what is left to count.
    counted = moving if moving.size else log_tau[:, :, None]
    return {
        "rhat_max": float(np.max(list(rhats.values()))),
        **rhats,
        "ess_probability_min": float(np.min(effective_sample_size(counted))),
        "ess_tau": float(effective_sample_size(log_tau)),
        "ess_log_density": float(effective_sample_size(log_density)),
        "divergences": draws.divergences,
        "depth_saturation": draws.depth_saturation,
        "steps_mean": float(np.mean(draws.statistics["n_steps"])),
        "draws": float(log_tau.size),
        **draws.figures,
    }
