"""The priors on a divergence that the paper's figures use, by the names in their legends."""

import predcp

EXPONENTIAL, GAMMA, LOG_CAUCHY, MIXTURE = "exponential", "gamma", "log-Cauchy", "mixture"


def divergence_priors() -> dict[str, predcp.DivergencePrior]:
    """Exponential of mean .5, gamma (.2, 2), log-Cauchy (0, 1): Figure 1a."""
    return {
        EXPONENTIAL: predcp.Exponential(mean=0.5),
        GAMMA: predcp.Gamma(shape=0.2, scale=2.0),
        LOG_CAUCHY: predcp.LogCauchy(scale=1.0),
    }


def mixture(weight: float) -> predcp.GammaExponential:
    """The gamma with this weight, the exponential with the rest, both as in Figure 1a."""
    return predcp.GammaExponential(weight=weight, shape=0.2, scale=2.0, mean=0.5)
