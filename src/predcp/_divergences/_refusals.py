"""Why observations of a NumPyro distribution without a divergence are refused."""

_SUPPORT = "its support moves with its parameters, so that the divergence is infinite"
_PRIOR = "it is a prior on matrices or processes that are not observed; pass the observations"
_OPEN = "its divergences have no closed form and none has been registered"

_REASONS: dict[str, tuple[str, ...]] = {
    _SUPPORT: (
        "Delta",
        "DiscreteUniform",
        "LogUniform",
        "Uniform",
    ),
    _PRIOR: (
        "CAR",
        "EulerMaruyama",
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
    "without the sign there is no closed form; register a fallback": ("FoldedDistribution",),
    "its marginals and its copula move together; pass the marginals as a tuple": (
        "GaussianCopula",
        "GaussianCopulaBeta",
    ),
    "its counts have no upper bound; say up to which count to sum with "
    "predcp.register_quadrature(BetaNegativeBinomial, counts=...)": ("BetaNegativeBinomial",),
    "its normalising constant has no closed form": ("SineBivariateVonMises", "SineSkewed"),
    "it is no observation: its log density is a number": ("Unit",),
}


def reason(distribution_class: type) -> str:
    """The reason why a class is refused, as part of a sentence."""
    for text, classes in _REASONS.items():
        if any(base.__name__ in classes for base in distribution_class.__mro__):
            return text
    return _OPEN


def is_refused(distribution_class: type) -> bool:
    """Whether there is a specific reason."""
    return reason(distribution_class) is not _OPEN
