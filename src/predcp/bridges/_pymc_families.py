"""NumPyro's distribution for each random variable of PyMC."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpyro.distributions as dist
from pytensor.graph.basic import Constant  # pyright: ignore[reportMissingImports]
from pytensor.tensor.basic import (  # pyright: ignore[reportMissingImports]
    get_underlying_scalar_constant_value,
)
from pytensor.tensor.exceptions import (  # pyright: ignore[reportMissingImports]
    NotScalarConstantError,
)
from pytensor.tensor.random.op import RandomVariable  # pyright: ignore[reportMissingImports]


class Family(NamedTuple):
    """A NumPyro distribution whose parameters are the values of some variables of a PyMC graph."""

    parameters: Sequence[Any]
    make: Callable[..., Any]


class Untranslatable(ValueError):
    """A random variable without a counterpart in NumPyro, and what to write instead."""


# Keys: the name that PyMC prints. Arguments: the parameters of the random variable, in its order.
_MAKERS: dict[str, Callable[..., Any]] = {
    "AsymmetricLaplace": lambda b, kappa, mu: dist.AsymmetricLaplace(mu, 1.0 / b, kappa),
    "Beta": dist.Beta,
    "BetaBinomial": lambda n, a, b: dist.BetaBinomial(a, b, n),
    "Cauchy": dist.Cauchy,
    "Dirichlet": dist.Dirichlet,
    "DirichletMultinomial": lambda n, a: dist.DirichletMultinomial(a, n),
    "DiscreteUniform": dist.DiscreteUniform,
    "Exponential": lambda scale: dist.Exponential(1.0 / scale),
    "Gamma": lambda shape, scale: dist.Gamma(shape, 1.0 / scale),
    "Gumbel": dist.Gumbel,
    "HalfCauchy": lambda *scale: dist.HalfCauchy(scale[-1]),
    "HalfNormal": lambda *scale: dist.HalfNormal(scale[-1]),
    "HalfStudentT": lambda nu, scale: dist.FoldedDistribution(dist.StudentT(nu, 0.0, scale)),
    "InverseGamma": dist.InverseGamma,
    "Kumaraswamy": dist.Kumaraswamy,
    "Laplace": dist.Laplace,
    "LogNormal": dist.LogNormal,
    "Logistic": dist.Logistic,
    "MultivariateNormal": lambda mu, cov, *_: dist.MultivariateNormal(mu, covariance_matrix=cov),
    "Normal": dist.Normal,
    "Pareto": lambda shape, scale: dist.Pareto(scale, shape),
    "Poisson": dist.Poisson,
    "StudentT": dist.StudentT,
    "Uniform": dist.Uniform,
    "VonMises": dist.VonMises,
    "Weibull": lambda shape, scale: dist.Weibull(scale, shape),
}
_STEPS = "write its steps as pm.Normal and add them up with pm.math.cumsum"
_CURES = {
    "AR": _STEPS,
    "Censored": "which points are censored is part of the data; give the distribution without it",
    "Flat": "give it a proper prior: as the scale itself, any positive one will do",
    "GARCH11": "write the model in NumPyro",
    "Geometric": "count failures, with pm.NegativeBinomial(alpha=1)",
    "HalfFlat": "give it a proper prior: as the scale itself, any positive one will do",
    "MinibatchRandomVariable": "give the observations without total_size",
    "PartialObserved": "leave the missing values out of the data",
    "RandomWalk": _STEPS,
    "ZeroSumNormal": "write it as pm.Normal",
    "_lkjcholeskycov": "write the standard deviations and the correlation as variables of their own",
}


def name_of(op: Any) -> str:
    """The name of a random variable's distribution, as PyMC prints it."""
    printed = getattr(op, "_print_name", None)
    return printed[0] if printed else type(op).__name__.removesuffix("RV")


def family_of(node: Any) -> Family:
    """The NumPyro distribution of the random variable that a node of the graph draws.

    Probabilities computed from logits become logits, so that no digits are lost far from the reference.
    """
    name = name_of(node.op)
    parameters = _parameters(node)
    ours = getattr(getattr(node.op, "_random_fn", None), "numpyro_prior", None)
    if ours is not None:
        return Family((), ours)
    if name in _SPECIAL and (found := _SPECIAL[name](*parameters)) is not None:
        return found
    if hasattr(node.op, "base_rv_op") and name.startswith("Truncated"):
        return _truncated(node, parameters)
    if name in _MAKERS:
        return Family(parameters, _MAKERS[name])
    cure = _CURES.get(name, "use a distribution that NumPyro has, or write the model in NumPyro")
    raise Untranslatable(f"its distribution {name} has no counterpart in NumPyro here; {cure}")


def _parameters(node: Any) -> list[Any]:
    """Parameters of a random variable, without its generator and its size."""
    if isinstance(node.op, RandomVariable) or node.op.extended_signature:
        return list(node.op.dist_params(node))
    return [each for each in node.inputs if hasattr(each.type, "ndim")]


def unnamed(variable: Any) -> Any:
    """The variable behind copies that PyMC makes to give it a name, and behind Bambi's guards."""
    while (node := variable.owner) is not None:
        if _is_copy(node.op):
            variable = node.inputs[0]
        elif _is_guard(node):
            variable = node.inputs[2]
        else:
            break
    return variable


def _is_guard(node: Any) -> bool:
    """Whether a node moves a probability of exactly 0 or 1 inwards, by a rounding error."""
    if _scalar_name(node.op) != "Switch":
        return False
    test, moved, kept = node.inputs
    if test.owner is None or _scalar_name(test.owner.op) != "EQ":
        return False
    try:
        end, inside = map(get_underlying_scalar_constant_value, (test.owner.inputs[1], moved))
    except NotScalarConstantError:
        return False
    return test.owner.inputs[0] is kept and end in (0, 1) and abs(end - inside) < 1e-12


def _is_copy(op: Any) -> bool:
    return type(op).__name__ == "ViewOp" or _scalar_name(op) == "Identity"


def _scalar_name(op: Any) -> str:
    return type(getattr(op, "scalar_op", None)).__name__


def argument(variable: Any, function: str) -> Any:
    """What a function was applied to, None if the variable is not its value."""
    node = unnamed(variable).owner
    if node is None or function not in (_scalar_name(node.op), type(node.op).__name__):
        return None
    return node.inputs[0]


def _bernoulli(p: Any) -> Family:
    logits = argument(p, "Sigmoid")
    if logits is None:
        return Family((p,), dist.BernoulliProbs)
    return Family((logits,), dist.BernoulliLogits)


def _binomial(n: Any, p: Any) -> Family:
    logits = argument(p, "Sigmoid")
    if logits is None:
        return Family((n, p), lambda n, p: dist.BinomialProbs(p, n))
    return Family((n, logits), lambda n, logits: dist.BinomialLogits(logits, n))


def _categorical(p: Any) -> Family:
    logits = argument(p, "Softmax")
    if logits is None:
        return Family((p,), dist.CategoricalProbs)
    return Family((logits,), dist.CategoricalLogits)


def _multinomial(n: Any, p: Any) -> Family:
    logits = argument(p, "Softmax")
    if logits is None:
        return Family((n, p), lambda n, p: dist.MultinomialProbs(p, n))
    return Family((n, logits), lambda n, logits: dist.MultinomialLogits(logits, n))


def _negative_binomial(n: Any, p: Any) -> Family:
    """A count by its mean where PyMC made the probability from one, which loses a small mean."""
    found = _mean_of_ratio(p) or _mean_of_log_odds(p)
    if found is not None:
        return Family(found, dist.NegativeBinomial2)
    return Family((n, p), lambda n, p: dist.NegativeBinomialProbs(n, 1.0 - p))


def _mean_of_ratio(p: Any) -> tuple[Any, Any] | None:
    """Mean and alpha of `p = alpha / (mu + alpha)`."""
    ratio = unnamed(p).owner
    if ratio is None or _scalar_name(ratio.op) != "TrueDiv":
        return None
    alpha, total = (unnamed(each) for each in ratio.inputs)
    if total.owner is None or _scalar_name(total.owner.op) != "Add":
        return None
    added = [unnamed(each) for each in total.owner.inputs]
    others = [each for each in added if each is not alpha]
    return (others[0], alpha) if len(added) == 2 and len(others) == 1 else None


def _mean_of_log_odds(p: Any) -> tuple[Any, Any] | None:
    """Mean and alpha of `p = sigmoid(log(alpha) - log(mu))`, as PyMC writes it from 6.4 on."""
    log_odds = argument(p, "Sigmoid")
    change = None if log_odds is None else unnamed(log_odds).owner
    if change is None or _scalar_name(change.op) != "Sub":
        return None
    alpha, mean = (argument(each, "Log") for each in change.inputs)
    return None if alpha is None or mean is None else (mean, alpha)


def _mixture(weights: Any, *components: Any) -> Family | None:
    """A Poisson or negative binomial count with extra zeros."""
    if len(components) != 2 or any(each.owner is None for each in components):
        return None
    zero, counts = (each.owner for each in components)
    if name_of(zero.op) != "DiracDelta" or name_of(counts.op) not in (
        "Poisson",
        "NegativeBinomial",
    ):
        return None
    at = _parameters(zero)[0]
    if not isinstance(at, Constant) or np.any(at.data != 0):
        return None
    inner = family_of(counts)
    return Family(
        (weights, *inner.parameters),
        lambda weights, *rest: dist.ZeroInflatedDistribution(
            inner.make(*rest), gate=weights[..., 0]
        ),
    )


def _truncated_normal(mu: Any, sigma: Any, lower: Any, upper: Any) -> Family:
    bounds, make = _bounds(lower, upper)
    return Family((mu, sigma, *bounds), lambda mu, sigma, *b: make(dist.Normal(mu, sigma), b))


def _truncated(node: Any, parameters: list[Any]) -> Family:
    *_, lower, upper = parameters
    base = node.op.base_rv_op
    inner = family_of(base.make_node(*node.inputs[: len(node.inputs) - 2]))
    bounds, make = _bounds(lower, upper)
    count = len(inner.parameters)
    return Family(
        (*inner.parameters, *bounds), lambda *all_: make(inner.make(*all_[:count]), all_[count:])
    )


def _bounds(lower: Any, upper: Any) -> tuple[list[Any], Callable[..., Any]]:
    """The finite bounds of a truncated distribution, and the function that makes it from its base."""
    sides = {"low": (lower, -np.inf), "high": (upper, np.inf)}
    given = {
        side: each
        for side, (each, none) in sides.items()
        if not (isinstance(each, Constant) and np.all(each.data == none))
    }
    names = list(given)

    def make(base: Any, values: Sequence[Any]) -> Any:
        return dist.TruncatedDistribution(base, **dict(zip(names, values)))

    return list(given.values()), make


_SPECIAL: dict[str, Callable[..., Family | None]] = {
    "Bernoulli": _bernoulli,
    "Binomial": _binomial,
    "Categorical": _categorical,
    "Mixture": _mixture,
    "MarginalMixture": _mixture,
    "Multinomial": _multinomial,
    "NegativeBinomial": _negative_binomial,
    "TruncatedNormal": _truncated_normal,
}
