"""Why observations of a NumPyro distribution without a divergence are refused."""

_SUPPORT = "its support moves with its parameters, so that the divergence is infinite"
_PRIOR = "it is a prior on matrices or processes, which nothing observes; pass what is observed"
_OPEN = "its divergences have no closed form and none has been registered"
_MIXED = "it is a mixture, whose divergences have no closed form"

_REASONS: dict[str, tuple[str, ...]] = {
    _SUPPORT: (
        "Delta",
        "DiscreteUniform",
        "DoublyTruncatedPowerLaw",
        "LogUniform",
        "LowerTruncatedPowerLaw",
        "Uniform",
    ),
    _PRIOR: (
        "CAR",
        "EulerMaruyama",
        "GaussianRandomWalk",
        "GaussianStateSpace",
        "ImproperUniform",
        "InverseWishart",
        "InverseWishartCholesky",
        "LKJ",
        "LKJCholesky",
        "TruncatedPolyaGamma",
        "Wishart",
        "WishartCholesky",
        "ZeroSumNormal",
    ),
    _MIXED: ("MixtureGeneral", "MixtureSameFamily"),
    "which points are censored is part of the data; give the distribution without censoring": (
        "IntervalCensoredDistribution",
        "LeftCensoredDistribution",
        "RightCensoredDistribution",
    ),
    "it carries no observation: its log density is a number": ("Unit",),
    "its log density is relaxed, not that of the observation": ("RelaxedBernoulliLogits",),
}


def reason(distribution_class: type) -> str:
    """Why a class is refused, in half a sentence."""
    for text, classes in _REASONS.items():
        if any(base.__name__ in classes for base in distribution_class.__mro__):
            return text
    return _OPEN
