"""The predictive map: its definition, its fast path, its arguments."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from tests.catalogue import DESIGN, NOISE, coin, normal, predictive, scaled

import predcp


def test_it_is_the_mean_over_points_and_draws_and_the_sum_over_events():
    def likelihood(theta, x):
        mean = jnp.stack([x @ theta, 2.0 * (x @ theta)], axis=-1)
        return dist.Normal(mean, 0.5).to_event(1)

    complexity = predcp.PredictiveComplexity(likelihood, scaled, jnp.zeros(3), DESIGN, NOISE)
    moves = 0.3 * DESIGN @ NOISE.T
    expected = np.mean((moves**2 + 4 * moves**2) / (2 * 0.25))
    np.testing.assert_allclose(complexity(0.3), expected, rtol=1e-13)


def test_products_of_observations_add_up():
    both = predcp.PredictiveComplexity(
        lambda theta, x: {"a": coin(theta, x), "b": normal(theta, x)},
        scaled,
        jnp.zeros(3),
        DESIGN,
        NOISE,
    )
    expected = predictive(coin)(0.4) + predictive(normal)(0.4)
    np.testing.assert_allclose(both(0.4), expected, rtol=1e-13)


@pytest.mark.parametrize("divergence", ["kl", "reverse_kl", "squared_hellinger", "jensen_shannon"])
@pytest.mark.parametrize("likelihood", [coin, normal])
def test_the_fast_path_equals_the_general_one(divergence, likelihood):
    options = {"divergence": getattr(predcp, divergence)}
    fast, general = (
        predictive(likelihood, **options),
        predictive(likelihood, homogeneous=False, **options),
    )
    log_tau = jnp.linspace(-30.0, 4.0, 12)
    for got, expected in zip(
        fast.log_value_and_slope(log_tau), general.log_value_and_slope(log_tau)
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("homogeneous", [None, False])
def test_draws_share_the_arrays_of_the_reference_that_are_the_same_in_all(homogeneous):
    level = jnp.linspace(-1.0, 2.0, len(NOISE))

    def parameters(tau, xi):
        return {"level": xi["level"], "effect": tau * xi["effect"]}

    complexity = predcp.PredictiveComplexity(
        lambda theta, x: dist.Normal(theta["level"] + x @ theta["effect"], 0.5),
        parameters,
        lambda xi: parameters(0.0, xi),
        DESIGN,
        {"level": level, "effect": NOISE},
        homogeneous=homogeneous,
    )
    # Coordinates in order: the location, which differs and moves, and the log of the spread.
    assert complexity.fixed_reference == (False, True)
    assert complexity.moving == (None if homogeneous is False else (True, False))
    tau = np.array([1e-12, 1e-3, 0.3, 20.0])
    expected = np.mean((DESIGN @ NOISE.T) ** 2) * tau**2 / (2 * 0.25)
    np.testing.assert_allclose(complexity(tau), expected, rtol=1e-12)


def test_a_declared_power_is_used_and_a_wrong_claim_refused():
    declared = predictive(homogeneous=1.0)
    np.testing.assert_allclose(declared(0.7), predictive()(0.7), rtol=1e-12)
    with pytest.raises(ValueError, match="not seen to move as a power"):
        predcp.PredictiveComplexity(
            coin, lambda tau, xi: jnp.tanh(tau) * xi, jnp.zeros(3), DESIGN, NOISE, homogeneous=True
        )


def test_a_relu_network_without_bias_is_linear_in_the_variance():
    def likelihood(theta, x):
        return dist.Normal(2.0 + jax.nn.relu(x @ theta) @ jnp.ones(2), 1.0)

    draws = predcp.normal_noise(jax.random.key(0), 6, (3, 2))
    complexity = predcp.PredictiveComplexity(
        likelihood, lambda tau, xi: jnp.sqrt(tau) * xi, jnp.zeros((3, 2)), DESIGN, draws
    )
    tau = jnp.asarray([1e-18, 1e-3, 1.0, 1e9])
    np.testing.assert_allclose(complexity(tau) / tau, complexity(1.0), rtol=1e-12)


def test_modules_and_partials_carry_their_arrays_as_leaves():
    class Head(eqx.Module):
        offset: jax.Array

        def __call__(self, theta, x):
            return dist.Normal(self.offset + x @ theta, 1.0)

    traces = []

    @jax.jit
    def evaluate(complexity):
        traces.append(None)
        return complexity(0.5)

    for offset in (0.0, 1.0):
        evaluate(
            predcp.PredictiveComplexity(
                Head(jnp.asarray(offset)), scaled, jnp.zeros(3), DESIGN, NOISE
            )
        )
    assert len(traces) == 1


def test_unsupervised_models_need_no_inputs():
    complexity = predcp.PredictiveComplexity(
        lambda theta, _: dist.Normal(theta, 1.0), lambda tau, xi: tau * xi, 0.0, None, jnp.ones(1)
    )
    np.testing.assert_allclose(complexity(3.0), 4.5, rtol=1e-14)


def test_local_scales_receive_gradients():
    def density(local):
        complexity = predcp.PredictiveComplexity(
            coin, lambda tau, xi: tau * local * xi, jnp.zeros(3), DESIGN, NOISE
        )
        return predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity).log_prob(0.8)

    local = jnp.asarray([0.5, 1.0, 2.0])
    slope = jax.jit(jax.grad(density))(local)
    for index in range(3):
        step = 1e-6 * (jnp.arange(3) == index)
        difference = (density(local + step) - density(local - step)) / 2e-6
        np.testing.assert_allclose(slope[index], difference, rtol=1e-6)


def test_a_model_that_saturates_by_itself_can_be_declared_bounded():
    def likelihood(theta, x):
        return dist.Normal(jnp.tanh(x @ theta), 1.0)

    complexity = predcp.PredictiveComplexity(
        likelihood, scaled, jnp.zeros(3), DESIGN, NOISE, bounded=True
    )
    np.testing.assert_allclose(complexity.supremum, 0.5, rtol=1e-12)
    prior = predcp.ComplexityPrior(predcp.LogCauchy(scale=1.0), complexity)
    np.testing.assert_allclose(prior.cdf(1e15), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    "change,message",
    [
        ({"likelihood": 3}, r"likelihood must be a function \(theta, x\)"),
        ({"parameters": None}, r"parameters must be a function \(tau, xi\)"),
        ({"reference": jnp.zeros(2)}, "reference must have the structure and shapes"),
        ({"reference": jnp.ones(3)}, "must equal reference as tau goes to 0"),
        ({"noise": jnp.zeros((0, 3))}, "noise must share a leading axis"),
        ({"noise": {}}, "noise must hold at least one array"),
        ({"x": jnp.zeros((8, 3))}, "constant in tau"),
        ({"divergence": "kl"}, "divergence must be one of predcp's"),
        ({"likelihood": lambda theta, x: x @ theta}, "must return a NumPyro distribution"),
        (
            {
                "likelihood": lambda theta, x: dist.BetaNegativeBinomial(
                    1.0, jnp.exp(x @ theta), 2.0
                )
            },
            "no divergence is known for",
        ),
        ({"per": "patient"}, "per must be 'trial', 'row' or an array"),
        ({"per": jnp.zeros(8)}, "per must be positive"),
        ({"weights": jnp.ones(7)}, r"weights must broadcast to the batch shape \(8,\)"),
        ({"weights": -jnp.ones(8)}, "weights must be non-negative"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {
        "likelihood": coin,
        "parameters": scaled,
        "reference": jnp.zeros(3),
        "x": DESIGN,
        "noise": NOISE,
        **change,
    }
    with pytest.raises(ValueError, match=message):
        predcp.PredictiveComplexity(**arguments)


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: predcp.LinearEvidence(np.zeros((3, 2))), "x is all zero"),
        (lambda: predcp.LinearEvidence(np.full((3, 2), np.nan)), "x must be finite"),
        (lambda: predcp.LinearEvidence(np.ones((3, 2)), -1.0), "noise_scale must be positive"),
        (lambda: predcp.LinearEvidence(np.ones((3, 0))), r"x must have shape \(N, D\)"),
        (lambda: predcp.LogisticEvidence(np.ones(3)), r"x must have shape \(N, D\)"),
        (lambda: predcp.LogisticEvidence(np.ones((3, 2)), np.ones(3)), "local_scales must end in"),
        (lambda: predcp.LogisticEvidence(np.ones((3, 2)), -1.0), "local_scales must be positive"),
        (lambda: predcp.CoefficientEvidence(0.0), "x is all zero"),
        (lambda: predcp.CoefficientEvidence(1.0, 0.0), "noise_scale must be positive"),
        (lambda: predcp.CoefficientEvidence(1.0, 1.0, -1.0), "intercept_scale must be non-neg"),
        (lambda: predcp.PenalisedComplexity(0.0), "scale must be positive"),
    ],
)
def test_bad_arguments_of_closed_forms_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_binomial_rows_and_their_bernoulli_trials_have_one_complexity():
    design = DESIGN[:6]
    counts = jnp.full(6, 20)
    rows = predcp.PredictiveComplexity(
        lambda beta, x: dist.Binomial(counts, logits=x @ beta), scaled, jnp.zeros(3), design, NOISE
    )
    trials = predcp.PredictiveComplexity(
        coin, scaled, jnp.zeros(3), jnp.repeat(design, 20, axis=0), NOISE
    )
    log_tau = jnp.linspace(-30.0, 10.0, 9)
    for got, expected in zip(
        rows.log_value_and_elasticity(log_tau), trials.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "likelihood,repeats",
    [
        (lambda beta, x: dist.Binomial(jnp.asarray([3, 1, 7]), logits=x @ beta), [3, 1, 7]),
        (
            lambda beta, x: dist.Multinomial(
                jnp.asarray([3, 1, 7]), logits=jnp.stack([x @ beta, -(x @ beta)], -1)
            ),
            [3, 1, 7],
        ),
        (lambda beta, x: dist.Poisson(jnp.exp(x @ beta)), [1, 1, 1]),
    ],
    ids=["binomial", "multinomial", "poisson"],
)
def test_the_mean_is_per_trial_per_row_or_per_unit(likelihood, repeats):
    def kappa(**options):
        return predcp.PredictiveComplexity(
            likelihood, scaled, jnp.zeros(3), DESIGN[:3], NOISE, **options
        )(0.4)

    moved = jax.jit(
        jax.vmap(
            lambda xi: predcp.kl(likelihood(0.4 * xi, DESIGN[:3]), likelihood(0.0 * xi, DESIGN[:3]))
        )
    )
    each = np.asarray(moved(NOISE)).mean(0)
    weights, units = np.asarray([0.5, 0.0, 2.0]), np.asarray([1.0, 2.0, 4.0])
    np.testing.assert_allclose(kappa(), each.sum() / np.sum(repeats), rtol=1e-12)
    np.testing.assert_allclose(kappa(per="row"), each.mean(), rtol=1e-12)
    np.testing.assert_allclose(
        kappa(weights=weights), weights @ each / (weights @ np.asarray(repeats)), rtol=1e-12
    )
    np.testing.assert_allclose(kappa(per=units), each.sum() / units.sum(), rtol=1e-12)
    np.testing.assert_allclose(
        kappa(per="row", weights=weights), weights @ each / weights.sum(), rtol=1e-12
    )


def test_exposure_leaves_the_complexity_of_a_rate_as_it_is():
    exposure = jnp.asarray([2.0, 5.0, 1.0])
    rows = predcp.PredictiveComplexity(
        lambda beta, x: dist.Poisson(exposure * jnp.exp(x @ beta)),
        scaled, jnp.zeros(3), DESIGN[:3], NOISE, per=exposure,
    )  # fmt: skip
    units = predcp.PredictiveComplexity(
        lambda beta, x: dist.Poisson(jnp.exp(x @ beta)),
        scaled, jnp.zeros(3), jnp.repeat(DESIGN[:3], jnp.asarray([2, 5, 1]), axis=0), NOISE,
    )  # fmt: skip
    np.testing.assert_allclose(rows(0.7), units(0.7), rtol=1e-12)


def test_an_expanded_distribution_is_as_many_points():
    def build(likelihood):
        return predcp.PredictiveComplexity(
            likelihood, lambda tau, xi: tau * xi, 0.0, None, jnp.asarray([0.5, -1.0])
        )

    one = build(lambda theta, _: dist.Normal(theta, 1.0))
    many = build(lambda theta, _: dist.Normal(theta, 1.0).expand((5,)))
    np.testing.assert_allclose(many(0.6), one(0.6), rtol=1e-14)


@pytest.mark.parametrize("counts", [None, jnp.asarray([2, 5, 1, 9, 3, 4, 1, 1])])
def test_masked_points_are_left_out(counts):
    kept = np.asarray([True, False, True, True, False, True, False, True])

    def likelihood(beta, x):
        if counts is None:
            return coin(beta, x)
        held = counts if x.shape[0] == 8 else counts[kept]
        return dist.Binomial(held, logits=x @ beta)

    def masked(beta, x):
        return likelihood(beta, x).mask(jnp.asarray(kept))

    whole = predcp.PredictiveComplexity(masked, scaled, jnp.zeros(3), DESIGN, NOISE)
    part = predcp.PredictiveComplexity(likelihood, scaled, jnp.zeros(3), DESIGN[kept], NOISE)
    log_tau = jnp.asarray([-20.0, 0.0, 3.0])
    for got, expected in zip(
        whole.log_value_and_elasticity(log_tau), part.log_value_and_elasticity(log_tau)
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
