"""Shapes and stated tails of priors: batches of pi and of maps, entries of vectors, vmap."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import predcp
from tests.catalogue import (
    DESIGN,
    HIDDEN,
    OUTPUT,
    PHI,
    PHI_NOISE,
    SCALAR_MAPS,
    VECTOR_MAPS,
    WEIGHTS,
    softmax,
)

FAMILIES = (
    predcp.LogCauchy,
    predcp.HalfCauchy,
    predcp.Exponential,
    predcp.Gamma,
    predcp.GammaExponential,
)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "make", [SCALAR_MAPS["coin"], pytest.param(SCALAR_MAPS["linear"], marks=pytest.mark.long)]
)
def test_a_stated_tail_holds_for_the_prior_as_used(make, family):
    upper, probability = jnp.asarray([0.1, 0.3, 1e-4]), jnp.asarray([0.05, 0.12, 1e-6])
    for complexity in (make(),):
        prior = predcp.ComplexityPrior.from_tail(family, complexity, upper, probability)
        assert prior.batch_shape == (3,)
        tau = complexity.inv(upper)
        np.testing.assert_allclose(prior.survival(tau), probability, rtol=1e-10)
        np.testing.assert_allclose(1.0 - prior.cdf(tau), probability, rtol=0, atol=1e-10)
        scale = jnp.asarray([[0.3], [2.0]])
        prior = predcp.ComplexityPrior.from_scale_tail(family, complexity, scale, 0.1)
        assert prior.batch_shape == (2, 1)
        np.testing.assert_allclose(prior.survival(scale), 0.1, rtol=1e-10)


def test_a_stated_tail_takes_what_the_family_takes_and_keeps_it():
    complexity = SCALAR_MAPS["coin"]()
    prior = predcp.ComplexityPrior.from_tail(predcp.LogCauchy, complexity, 0.1, 0.3, scale=2.5)
    np.testing.assert_allclose(prior.pi.scale, 2.5)
    # More mass above upper than pi itself states: truncation took the rest.
    assert prior.pi.loc > predcp.LogCauchy.from_tail(0.1, 0.3, scale=2.5).loc
    narrow = predcp.ComplexityPrior.from_tail(predcp.Gamma, complexity, 0.1, 0.3, shape=2.0)
    np.testing.assert_allclose(narrow.pi.concentration, 2.0)
    modules = predcp.ModularComplexity(softmax_network, PHI, DESIGN, PHI_NOISE)
    prior = predcp.ComplexityPrior.from_tail(predcp.HalfCauchy, modules, 0.05, 0.1)
    beyond = prior.log_scale().survival(modules.log_inverse(jnp.log(jnp.full(2, 0.05))))
    np.testing.assert_allclose(beyond, 0.1, rtol=1e-9)


def test_a_tail_that_cannot_be_is_refused_with_what_can():
    coin_map, make = SCALAR_MAPS["coin"](), predcp.ComplexityPrior.from_tail
    supremum = float(coin_map.supremum)
    # A truncated exponential is uniform at most: P(kappa > u) <= 1 - u / sup.
    most = 1.0 - 0.3 / supremum
    with pytest.raises(ValueError, match=f"probability must be at most {most:.4g}"):
        make(predcp.Exponential, coin_map, 0.3, most + 0.01)
    prior = make(predcp.Exponential, coin_map, 0.3, most - 0.01)
    np.testing.assert_allclose(prior.survival(coin_map.inv(0.3)), most - 0.01, rtol=1e-10)
    with pytest.raises(
        ValueError, match="upper must be below the supremum of the complexity, 0.69"
    ):
        make(predcp.HalfCauchy, coin_map, 0.7, 0.1)
    with pytest.raises(ValueError, match="complexity must have one supremum"):
        make(predcp.HalfCauchy, VECTORS_BY_SHAPE["depth bounded"](), 0.1, 0.1)
    with pytest.raises(ValueError, match="family must be a class"):
        make(predcp.HalfCauchy(1.0), coin_map, 0.1, 0.1)
    with pytest.raises(ValueError, match="complexity must be a map of one scale"):
        predcp.ComplexityPrior.from_scale_tail(
            predcp.HalfCauchy, VECTORS_BY_SHAPE["depth"](), 0.1, 0.1
        )


MAPS_BY_SHAPE = {
    # Batch shape of the map, then the map.
    "unbounded": ((), lambda: predcp.LinearEvidence(DESIGN)),
    "bounded": ((), lambda: SCALAR_MAPS["coin"]()),
    "batched": (
        (2, 1),
        lambda: predcp.LinearEvidence(DESIGN * jnp.asarray([[[[1.0]]], [[[2.0]]]])),
    ),
    "signed": ((), lambda: predcp.CoefficientEvidence(1.3)),
}
VECTORS_BY_SHAPE = {
    "depth": lambda: predcp.DepthComplexity(HIDDEN[:3], WEIGHTS[:2, :2], OUTPUT[:2]),
    "depth bounded": lambda: predcp.DepthComplexity(
        HIDDEN[:3], WEIGHTS[:2, :2], OUTPUT[:2], softmax
    ),
    "modular": VECTOR_MAPS["modular"],
}
# Batch shapes of pi: none, one axis, two, and a family whose quantiles are searched for.
PI_BY_SHAPE = {
    "none": lambda shape: predcp.LogCauchy(scale=0.5),
    "log-cauchy": lambda shape: predcp.LogCauchy(
        scale=jnp.linspace(0.5, 1.0, 6)[: np.prod(shape, dtype=int)].reshape(shape)
    ),
    "gamma": lambda shape: predcp.Gamma(
        shape=jnp.linspace(0.3, 1.0, 6)[: np.prod(shape, dtype=int)].reshape(shape), scale=2.0
    ),
    "log-normal": lambda shape: dist.LogNormal(jnp.zeros(shape), 1.0),
}


def softmax_network(theta, x):
    return dist.Categorical(logits=jax.nn.relu(x @ theta["body"]) @ theta["head"])


def entry_of(pi, index):
    """The pi of one entry of a batch."""
    if isinstance(pi, dist.LogNormal):
        return dist.LogNormal(pi.loc[index], 1.0)
    if not pi.batch_shape:
        return pi
    return pi.with_parameters(
        {name: value[index] for name, value in pi.spread(pi.batch_shape).items()}
    )


@pytest.mark.parametrize(
    "map_name,pi_name,pi_shape",
    [
        *((map_name, "log-cauchy", (3,)) for map_name in MAPS_BY_SHAPE),
        ("batched", "none", ()),
        ("batched", "gamma", (2, 3)),
        *(
            pytest.param(map_name, *pi, marks=pytest.mark.long)
            for map_name in MAPS_BY_SHAPE
            for pi in (("none", ()), ("gamma", (2, 3)))
            if map_name != "batched"
        ),
    ],
)
def test_every_shape_broadcasts_as_numpyros_do(map_name, pi_name, pi_shape):
    map_shape, make = MAPS_BY_SHAPE[map_name]
    pi, complexity = PI_BY_SHAPE[pi_name](pi_shape), make()
    batch = np.broadcast_shapes(map_shape, pi_shape)
    prior = predcp.ComplexityPrior(pi, complexity)
    # NumPyro's own distribution of that batch shape says what the shapes should be.
    model = dist.LogNormal(jnp.zeros(batch), 1.0)
    key = jax.random.key(0)
    both = (prior,) if complexity.signed else (prior, prior.log_scale())
    for ours in both:
        assert ours.batch_shape == batch and ours.event_shape == ()
        # Traced only: a shape is known before anything is compiled.
        for sample_shape in ((), (2, 7)):
            drawn, expected = (
                shape_of(partial(each.sample, sample_shape=sample_shape), key)
                for each in (ours, model)
            )
            assert drawn == expected
        for q_shape in ((2, 1), (5, 1, 1)):
            value = jax.eval_shape(model.icdf, jax.ShapeDtypeStruct(q_shape, float))
            assert shape_of(ours.icdf, jax.ShapeDtypeStruct(q_shape, float)) == value.shape
            for method in ("log_prob", "cdf"):
                ours_shape, expected = (shape_of(getattr(d, method), value) for d in (ours, model))
                assert ours_shape == expected
        wide = ours.expand((4, *np.broadcast_shapes(batch, (2, 3))))
        assert shape_of(partial(wide.sample, sample_shape=(5,)), key) == (5, 4, 2, 3)
        value = jax.ShapeDtypeStruct((4, 2, 3), float)
        assert shape_of(wide.log_prob, value) == (4, 2, 3)


@pytest.mark.parametrize(
    "map_name,pi_name,pi_shape",
    [
        ("unbounded", "none", ()),
        ("bounded", "log-cauchy", (3,)),
        ("batched", "log-cauchy", (3,)),
        ("signed", "log-cauchy", (3,)),
        # Quantiles of a gamma are roots of their own.
        pytest.param("bounded", "gamma", (2, 3), marks=pytest.mark.long),
    ],
)
def test_batches_have_the_quantiles_of_their_entries(map_name, pi_name, pi_shape):
    _, make = MAPS_BY_SHAPE[map_name]
    prior = predcp.ComplexityPrior(PI_BY_SHAPE[pi_name](pi_shape), make())
    q = jnp.linspace(0.2, 0.7, 2).reshape(2, *[1] * len(prior.batch_shape))
    value = prior.icdf(q)
    np.testing.assert_allclose(prior.cdf(value), np.broadcast_to(q, value.shape), rtol=1e-9)
    assert np.all(np.isfinite(prior.sample(jax.random.key(0), (7,))))
    if not prior.complexity.signed:
        np.testing.assert_allclose(jnp.exp(prior.log_scale().icdf(q)), value)


def shape_of(function, argument):
    """Shape of `function(argument)`, without compiling it."""
    return jax.eval_shape(function, argument).shape


@pytest.mark.parametrize(
    "map_name,pi_name",
    [
        ("depth", "none"),
        ("depth", "gamma"),
        ("depth bounded", "log-cauchy"),
        ("modular", "log-normal"),
        *(pytest.param("modular", name, marks=pytest.mark.long) for name in ("none", "gamma")),
    ],
)
def test_each_entry_of_a_vector_has_its_own_pi(map_name, pi_name):
    complexity = VECTORS_BY_SHAPE[map_name]()
    pi = PI_BY_SHAPE[pi_name]((2,))
    prior = predcp.ComplexityPrior(pi, complexity)
    assert (prior.batch_shape, prior.event_shape) == ((), (2,))
    q = jnp.asarray([[0.2, 0.6], [0.4, 0.3]])
    tau = prior.icdf(q)
    log_kappa, _ = complexity.log_value_and_elasticity(jnp.log(tau))
    bound = complexity.log_supremum(jnp.log(tau))
    for entry in range(2):
        own = predcp.ComplexityPrior(entry_of(pi, entry), predcp.PenalisedComplexity()).pi
        wanted = q[:, entry] * jnp.exp(own.log_cdf_log(bound[:, entry]))
        np.testing.assert_allclose(np.exp(own.log_cdf_log(log_kappa[:, entry])), wanted, rtol=1e-9)
    several = predcp.ComplexityPrior(PI_BY_SHAPE["gamma"]((3, 2)), complexity)
    assert (several.batch_shape, several.event_shape) == ((3,), (2,))
    draw = partial(several.sample, sample_shape=(4,))
    assert shape_of(draw, jax.random.key(0)) == (4, 3, 2)
    assert shape_of(several.log_prob, jnp.ones((4, 3, 2))) == (4, 3)


def test_a_batch_of_priors_is_what_vmap_makes():
    scales = jnp.asarray([0.5, 1.0, 2.0])
    complexity = SCALAR_MAPS["coin"]()
    batch = predcp.ComplexityPrior(predcp.LogCauchy(scale=scales), complexity)

    def one(scale, q):
        return predcp.ComplexityPrior(predcp.LogCauchy(scale=scale), complexity).icdf(q)

    q = jnp.asarray([0.1, 0.5, 0.8])
    np.testing.assert_allclose(batch.icdf(q), jax.jit(jax.vmap(one))(scales, q), rtol=1e-12)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[
        predcp.ComplexityPrior(predcp.LogCauchy(scale=scale), predcp.LinearEvidence(DESIGN * scale))
        for scale in scales
    ])  # fmt: skip
    density = jax.jit(jax.vmap(lambda prior, tau: prior.log_prob(tau)))(stacked, q)
    for index, scale in enumerate(scales):
        alone = predcp.ComplexityPrior(
            predcp.LogCauchy(scale=scale), predcp.LinearEvidence(DESIGN * scale)
        )
        np.testing.assert_allclose(density[index], alone.log_prob(q[index]), rtol=1e-12)
