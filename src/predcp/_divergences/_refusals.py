"""Why observations of a NumPyro distribution without a divergence are refused."""

import numpyro.distributions as dist

_SUPPORT = "its support moves with its parameters, so that the divergence is infinite"
_PRIOR = "it is a prior on matrices or processes, which nothing observes; pass what is observed"
_OPEN = "its divergences have no closed form and none has been registered"
_MIXED = "it is a mixture, whose divergences have no closed form"

_REASONS: dict[str, tuple[type, ...]] = {
    _SUPPORT: (
        dist.Delta,
        dist.DiscreteUniform,
        dist.DoublyTruncatedPowerLaw,
        dist.LogUniform,
        dist.LowerTruncatedPowerLaw,
        dist.Uniform,
    ),
    _PRIOR: (
        dist.CAR,
        dist.EulerMaruyama,
        dist.GaussianRandomWalk,
        dist.GaussianStateSpace,
        dist.ImproperUniform,
        dist.InverseWishart,
        dist.InverseWishartCholesky,
        dist.LKJ,
        dist.LKJCholesky,
        dist.TruncatedPolyaGamma,
        dist.Wishart,
        dist.WishartCholesky,
        dist.ZeroSumNormal,
    ),
    _MIXED: (
        dist.HurdleLogits,
        dist.HurdleProbs,
        dist.MixtureGeneral,
        dist.MixtureSameFamily,
        dist.discrete.ZeroInflatedLogits,
        dist.discrete.ZeroInflatedProbs,
    ),
    "it carries no observation: its log density is a number": (dist.Unit,),
    "its log density is relaxed, not that of the observation": (
        dist.continuous.RelaxedBernoulliLogits,
    ),
}


def reason(distribution_class: type) -> str:
    """Why a class is refused, in half a sentence."""
    for text, classes in _REASONS.items():
        if any(base in classes for base in distribution_class.__mro__):
            return text
    return _OPEN
