"""One small instance of every public map, for tests that every map must pass."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import predcp
from predcp import linear

_RANDOM = np.random.default_rng(7)
DESIGN = jnp.asarray(_RANDOM.normal(size=(8, 3)))
NOISE = jnp.asarray(_RANDOM.normal(size=(4, 3)))
HIDDEN = jnp.asarray(np.abs(_RANDOM.normal(size=(6, 4))))
WEIGHTS = jnp.asarray(_RANDOM.normal(size=(5, 3, 4, 4)))
OUTPUT = jnp.asarray(_RANDOM.normal(size=(5, 4, 2)))
PHI = {
    "body": jnp.asarray(_RANDOM.normal(size=(3, 4))),
    "head": jnp.asarray(_RANDOM.normal(size=(4, 2))),
}
PHI_NOISE = jax.tree.map(lambda leaf: jnp.asarray(_RANDOM.normal(size=(3, *leaf.shape))), PHI)


def coin(beta, x):
    return dist.Bernoulli(logits=x @ beta)


def normal(beta, x):
    return dist.Normal(x @ beta, 0.7)


def poisson(beta, x):
    return dist.Poisson(jnp.exp(0.1 + x @ beta))


def softmax(outputs):
    return dist.Categorical(logits=outputs)


def scaled(tau, xi):
    return tau * xi


def deviations(tau, xi):
    return jnp.sqrt(tau) * xi


def network(theta, x):
    return dist.Normal(jax.nn.relu(x @ theta["body"]) @ theta["head"], 1.0).to_event(1)


def predictive(likelihood=coin, **options):
    return predcp.PredictiveComplexity(likelihood, scaled, jnp.zeros(3), DESIGN, NOISE, **options)


def program(x):
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    with numpyro.plate("columns", 3):
        xi = numpyro.sample("xi", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Poisson(jnp.exp(0.1 + x @ (tau * xi))), obs=jnp.zeros(8))


class Chain(predcp.VectorComplexity):
    """Two scales, the second divergence a function of both: a map as a newcomer writes one."""

    unit = "variance"
    event_shape = (2,)

    def bind_entry(self, entry, below):
        def evaluate(log_tau):
            # D_1 = tau_1, D_2 = tau_2 (1 + tau_1).
            shift = jax.nn.softplus(below).sum()
            return log_tau + shift, jnp.zeros_like(log_tau)

        return evaluate


SCALAR_MAPS = {
    "linear": lambda: predcp.LinearEvidence(DESIGN, 0.8),
    "linear-1x1": lambda: predcp.LinearEvidence(0.5),
    "logistic": lambda: predcp.LogisticEvidence(DESIGN, jnp.asarray([0.3, 1.0, 2.0])),
    "rows": lambda: predcp.RowEvidence(DESIGN, 0.7, 1.3),
    "penalised": lambda: predcp.PenalisedComplexity(0.5),
    "coin": predictive,
    "coin-general": lambda: predictive(homogeneous=False),
    "normal": lambda: predictive(normal),
    "poisson": lambda: predictive(poisson),
    "hellinger": lambda: predictive(normal, divergence=predcp.squared_hellinger),
    "jensen-shannon": lambda: predictive(divergence=predcp.jensen_shannon),
    "reverse-kl": lambda: predictive(divergence=predcp.reverse_kl),
    "program": lambda: predcp.complexity_of(program, "tau", DESIGN, noise_draws=4),
    "joint": lambda: predcp.JointComplexity(poisson, scaled, jnp.zeros(3), DESIGN, NOISE),
    "negative-binomial": lambda: predcp.NegativeBinomialLimit(2.0),
    "pc-mgamma": predcp.NegativeBinomialLimit,
    "beta-binomial": lambda: predcp.BetaBinomialLimit(0.3),
    "student-t": predcp.StudentTLimit,
    "gamma": predcp.GammaLimit,
    "gamma-bursts": lambda: predcp.GammaLimit("bursts"),
    "lengthscale": lambda: predcp.LengthscaleLimit(DESIGN[:, 0], 1.5, 0.4),
    "tabulated": lambda: predcp.TabulatedComplexity(predcp.LinearEvidence(DESIGN, 0.8)),
}
VECTOR_MAPS = {
    "depth-residual": lambda: predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT),
    "depth-plain": lambda: predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT, residual=False),
    "depth-batch": lambda: predcp.DepthComplexity(HIDDEN, WEIGHTS, OUTPUT, normalize="batch"),
    "depth-plain-softmax": lambda: predcp.DepthComplexity(
        HIDDEN, WEIGHTS, OUTPUT, softmax, residual=False
    ),
    "ordered": lambda: predcp.OrderedComplexity(
        lambda theta, x: dist.Poisson(jnp.exp(0.1 + x[:, :2] @ theta[0] + x[:, 2:] @ theta[1])),
        [deviations, deviations],
        DESIGN,
        [NOISE[:, :2], NOISE[:, 2:]],
    ),
    "modular": lambda: predcp.ModularComplexity(network, PHI, DESIGN, PHI_NOISE),
    "separate": lambda: predcp.SeparateComplexity(
        {"rows": predcp.RowEvidence(DESIGN, 0.7, 1.3), "coin": predictive()}
    ),
    "own": lambda: Chain(),
}
ALL_MAPS = {**SCALAR_MAPS, **VECTOR_MAPS}
# Maps of the whole line, which the tests of scales do not fit.
SIGNED_MAPS = {
    "coefficient": lambda: predcp.CoefficientEvidence(DESIGN[:, 0], 0.8, 0.5),
    "correlation": lambda: predcp.CorrelationLimit(5),
}


def layer(name):
    """A map of a rectified layer."""
    from predcp import resnet
    from predcp.resnet._branch import branch_moments

    moments = branch_moments(HIDDEN, jnp.ones(4), OUTPUT[0], 0.1 + 0.0 * OUTPUT[0])
    return getattr(resnet, name)(moments, jnp.asarray(2.0))


def chain():
    """A batch of maps, one per module of a network."""
    from predcp.fewshot import ChainComplexity, DenseNet, module_noise

    network = DenseNet(ways=3, widths=(5,), precision="highest")
    theta, shared = network.init(jax.random.key(0), (4,))
    x = network.prepare(jax.random.normal(jax.random.key(1), (6, 4)))
    return ChainComplexity(network, theta, shared, x, module_noise(jax.random.key(2), theta, 2))


# Maps of the rooms of models: fast forms of the maps above.
ROOM_MAPS = {
    "logistic-predictive": lambda: linear.LogisticPredictive(DESIGN, 1.3, NOISE),
    "gaussian-predictive": lambda: linear.GaussianPredictive(DESIGN, 1.3, NOISE, 0.7),
    "relu-layer": lambda: layer("ReluLayerComplexity"),
    "relu-evidence": lambda: layer("ReluLayerEvidence"),
    "chain": chain,
}
BASE_CLASSES = (predcp.Complexity, predcp.ScalarComplexity, predcp.VectorComplexity)


def public_maps():
    """Names of every map that predcp or one of its rooms exports, the base classes left out.

    They are read from the sources: importing every room takes seconds.
    """
    bases, exported = {}, set()
    for path in Path(predcp.__file__).parent.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).split(".")[-1] for base in node.bases}
        if path.name == "__init__.py":
            strings = (node.value for node in nodes if isinstance(node, ast.Constant))
            exported |= {value for value in strings if isinstance(value, str)}
    abstract = {base.__name__ for base in BASE_CLASSES}
    maps: set[str] = set()
    while found := {name for name, of in bases.items() if of & (abstract | maps)} - maps:
        maps |= found
    return (maps & exported) - abstract


# Variants of the others: they run with `make test-long`.
_VARIANTS = {
    "coin-general",
    "poisson",
    "hellinger",
    "jensen-shannon",
    "reverse-kl",
    "linear-1x1",
    "pc-mgamma",
    "gamma-bursts",
    "depth-batch",
    "depth-plain",
    "depth-plain-softmax",
}


def names(maps, costly=()):
    """The names of maps as test parameters; variants, and what is costly there, marked long."""
    late = {*_VARIANTS, *costly}
    return [pytest.param(name, marks=pytest.mark.long) if name in late else name for name in maps]
