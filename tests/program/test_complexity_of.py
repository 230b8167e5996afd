"""The map of a program's scale against the divergence written by hand, for every program."""

from itertools import count

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer.reparam import LocScaleReparam

import predcp
from tests.compilations import count_compilations
from tests.program import designs, programs
from tests.program.programs import EXAMPLES

# As many as `complexity_of` looks at by itself: one program for both.
TAUS = np.geomspace(0.02, 4.0, 13)


def map_of(example, *args, **options):
    # Plain noise: nothing to compile for each number of dimensions.
    options = {"noise_draws": 3, "method": "plain", **example.options, **options}
    return predcp.complexity_of(example.model, example.scale, *args, **options)


def by_hand(example, made, taus, args):
    noise = {**made.noise["sites"], **made.noise.get("rest", {})}
    draws = [{name: np.asarray(v[s]) for name, v in noise.items()} for s in range(made._count)]
    return [np.mean([example.divergence(tau, xi, *args) for xi in draws]) for tau in taus]


def values(made, taus=TAUS):
    return np.exp(np.asarray(made.log_value_and_elasticity(jnp.log(taus))[0]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_map_equals_the_divergence_by_hand(name):
    example = EXAMPLES[name]
    args = example.args()
    made = map_of(example, *args)
    np.testing.assert_allclose(values(made), by_hand(example, made, TAUS, args), rtol=1e-6)
    found = None if made.power is None else float(made.power[0])
    assert found == example.power


@pytest.mark.parametrize("name", [name for name, e in EXAMPLES.items() if e.noncentred])
def test_centred_and_noncentred_programs_have_one_map(name):
    example = EXAMPLES[name]
    args = example.args()
    made = map_of(example, *args)
    rest = {site: draws[0] for site, draws in made.noise["rest"].items()}
    centred = map_of(example, *args, rest=rest)
    other = predcp.complexity_of(
        example.noncentred, example.scale, *args, rest=rest, noise_draws=3, method="plain"
    )
    for site, renamed in example.renamed.items():
        assert site in centred.program.sites.moved
        assert renamed in other.program.sites.moved
        np.testing.assert_array_equal(centred.noise["sites"][site], other.noise["sites"][renamed])
    np.testing.assert_allclose(values(centred), values(other), rtol=1e-12)


def test_correlated_effects_are_moved_in_both_forms():
    args = designs.sleepstudy()
    for model, site in ((programs.sleepstudy, "b"), (programs.sleepstudy_noncentred, "z")):
        made = predcp.complexity_of(model, "tau_slope", *args, noise_draws=2, off=["tau_start"])
        assert site in made.program.sites.moved
        assert "corr" in made.program.sites.rest


def test_one_entry_of_a_vector_of_scales():
    args = designs.sleepstudy()
    subject, days, _ = args
    for index, row in ((0, np.ones(180)), (1, days)):
        made = predcp.complexity_of(
            programs.sleepstudy_vector, "tau", *args, index=index, noise_draws=3, method="plain"
        )
        z, corr = np.asarray(made.noise["sites"]["b"]), np.asarray(made.noise["rest"]["corr"])
        sigma = np.asarray(made.noise["rest"]["sigma"])
        # With the other entry at zero the factor of the covariance has one column.
        wanted = [
            np.mean(
                [programs.normal(t * z[s, :, index][subject] * row, sigma[s]) for s in range(3)]
            )
            for t in TAUS
        ]
        assert corr.shape == (3, 2, 2)
        np.testing.assert_allclose(values(made), wanted, rtol=1e-6)


def test_second_call_compiles_nothing():
    # A counter that the model changes must not be something it reads.
    traced = count()

    def model(y, sigma):
        next(traced)
        programs.eight_schools(y, sigma)

    y, sigma = designs.eight_schools()
    first = predcp.complexity_of(model, "tau", y, sigma)
    first.log_value_and_elasticity(jnp.log(TAUS))
    with count_compilations() as compiled:
        second = predcp.complexity_of(model, "tau", y + 1.0, 2.0 * sigma)
        before = next(traced)
        second.log_value_and_elasticity(jnp.log(TAUS))
        assert next(traced) == before + 1, "the map of new data was traced anew"
    assert compiled[0] == 0
    np.testing.assert_allclose(values(second), values(first) / 4.0, rtol=1e-12)


def test_rest_by_value_moves_the_reference():
    def counts(y):
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        effect = numpyro.sample("effect", dist.Normal(mu, tau).expand([8]).to_event(1))
        numpyro.sample("y", dist.Poisson(jnp.exp(effect)), obs=y)

    low, high = (
        predcp.complexity_of(counts, "tau", np.arange(8), rest={"mu": mu}) for mu in (0.0, 3.0)
    )
    # A Poisson divergence is the rate times a function of the log ratio alone.
    np.testing.assert_allclose(values(high), np.exp(3.0) * values(low), rtol=1e-12)


def test_what_is_predicted_may_be_named_where_there_are_no_data():
    _, sigma = designs.eight_schools()
    y, _ = designs.eight_schools()
    seen = predcp.complexity_of(programs.eight_schools, "tau", y, sigma, rest={"mu": 0.0})
    named = predcp.complexity_of(
        programs.eight_schools, "tau", None, sigma, rest={"mu": 0.0}, observed=["y"]
    )
    np.testing.assert_allclose(values(named), values(seen), rtol=1e-12)


@pytest.mark.parametrize("centred", [0.0, 0.5])
def test_reparameterised_programs_have_the_map_of_the_original(centred):
    y, sigma = designs.eight_schools()
    config = {"theta": LocScaleReparam(centred)}
    changed = handlers.reparam(programs.eight_schools, config=config)
    # With the same draws: not every form is recognised as linear in the noise.
    options = {"rest": {"mu": 1.0}, "method": "sobol"}
    made = predcp.complexity_of(changed, "tau", y, sigma, **options)
    original = predcp.complexity_of(programs.eight_schools, "tau", y, sigma, **options)
    np.testing.assert_allclose(values(made), values(original), rtol=1e-9)


@pytest.mark.parametrize(
    "family",
    [
        lambda tau: dist.StudentT(4.0, 0.0, tau),
        lambda tau: dist.Laplace(0.0, tau),
        lambda tau: dist.Cauchy(0.0, tau),
        lambda tau: dist.Logistic(0.0, tau),
        lambda tau: dist.HalfNormal(tau),
        lambda tau: dist.Uniform(-tau, tau),
        lambda tau: dist.TransformedDistribution(
            dist.StudentT(4.0), dist.transforms.AffineTransform(0.0, tau)
        ),
    ],
    ids=["Student-t", "Laplace", "Cauchy", "logistic", "half-normal", "uniform", "affine"],
)
def test_effects_of_other_families_scale(family):
    def model(y):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        effect = numpyro.sample("effect", family(tau).expand([6]).to_event(1))
        numpyro.sample("y", dist.Normal(effect, 2.0), obs=y)

    made = predcp.complexity_of(model, "tau", np.zeros(6), noise_draws=4, method="plain")
    found = values(made)
    assert found[0] > 0.0
    np.testing.assert_allclose(found, (TAUS / TAUS[0]) ** 2 * found[0], rtol=1e-9)


def test_subsampled_rows_stay_the_same_rows():
    args = designs.radon()
    first = predcp.complexity_of(programs.subsampled, "tau", *args, noise_draws=2, method="plain")
    again = predcp.complexity_of(programs.subsampled, "tau", *args, noise_draws=2, method="plain")
    np.testing.assert_array_equal(values(first), values(again))
    # Each of the fifty rows has an effect of unit variance at tau = 1.
    assert 0.3 < np.mean(values(first) / TAUS**2) * 2.0 * 0.8**2 < 3.0


def test_single_precision_agrees_with_double():
    y, sigma = designs.eight_schools()

    def both(kind):
        return predcp.complexity_of(
            programs.eight_schools, "tau", y.astype(kind), sigma.astype(kind),
            rest={"mu": np.zeros((), kind)},
        )  # fmt: skip

    double = both(np.float64)
    with jax.enable_x64(False):
        single = np.exp(np.asarray(both(np.float32).log_value_and_elasticity(
            jnp.log(jnp.asarray(TAUS, jnp.float32))
        )[0]))  # fmt: skip
    assert single.dtype == np.float32
    # Sobol points of the two precisions differ in their last bits.
    np.testing.assert_allclose(single, values(double), rtol=1e-4)


@pytest.mark.parametrize("form", ["handler", "method", "obs_mask"])
def test_masked_rows_count_as_rows_left_out(form):
    y, sigma = designs.eight_schools()
    kept = np.array([True, False, True, True, True, False, True, False])

    def masked(y, sigma, kept):
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([8]).to_event(1))
        rows = dist.Normal(theta, sigma)
        if form == "handler":
            with handlers.mask(mask=kept):
                numpyro.sample("y", rows, obs=y)
        elif form == "method":
            numpyro.sample("y", rows.mask(kept), obs=y)
        else:
            numpyro.sample("y", rows, obs=y, obs_mask=kept)

    options = {"rest": {"mu": 0.0}}
    made = predcp.complexity_of(masked, "tau", y, sigma, kept, **options, method="sobol")
    z = np.asarray(made.noise["sites"]["theta"])
    wanted = [programs.normal((tau * z)[:, kept], sigma[kept]) for tau in TAUS]
    np.testing.assert_allclose(values(made), wanted, rtol=1e-9)
    exact = predcp.complexity_of(masked, "tau", y, sigma, kept, **options)
    wanted = [tau**2 / 2.0 * np.mean(1.0 / sigma[kept] ** 2) for tau in TAUS]
    np.testing.assert_allclose(values(exact), wanted, rtol=1e-9)


def test_masked_steps_of_a_scan_count_as_steps_left_out():
    kept = np.array([True, False, True, True, False])

    def walk(y, kept):
        tau = numpyro.sample("tau", dist.HalfNormal(1))

        def step(before, now):
            level = numpyro.sample("level", dist.Normal(before, tau))
            with handlers.mask(mask=now[1]):
                numpyro.sample("y", dist.Normal(level, 2.0), obs=now[0])
            return level, None

        scan(step, 0.0, (y, kept))

    made = predcp.complexity_of(walk, "tau", np.zeros(5), kept, noise_draws=3, method="plain")
    level = np.cumsum(np.asarray(made.noise["sites"]["level"]), axis=1)
    wanted = [programs.normal((tau * level)[:, kept], 2.0) for tau in TAUS]
    np.testing.assert_allclose(values(made), wanted, rtol=1e-9)


def test_new_data_that_the_program_draws_are_left_alone():
    y, sigma = designs.eight_schools()

    def with_replicates(y, sigma):
        programs.eight_schools(y, sigma)
        tau = numpyro.sample("spread", dist.HalfNormal(1))
        effect = numpyro.sample("effect", dist.Normal(0, tau))
        numpyro.sample("count", dist.Poisson(jnp.exp(effect)), obs=3)
        numpyro.sample("new", dist.Poisson(jnp.exp(effect)))

    made = predcp.complexity_of(with_replicates, "spread", y, sigma, noise_draws=2)
    assert made.program.sites.moved == ("effect",)
    assert made.program.sites.idle == ("new",)
    assert made.program.sites.predicted == ("count",)


def grouped_coins(group, trials, y):
    average = numpyro.sample("average", dist.Normal(0, 1))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    with numpyro.plate("groups", 3):
        effect = numpyro.sample("effect", dist.Normal(average, tau))
    numpyro.sample("y", dist.Binomial(trials, logits=effect[group]), obs=y)


def of_coins(args, **options):
    """The divergence of coins in three groups, given the average."""
    options = {"rest": {"average": 0.3}, "noise_draws": 2, **options}
    return values(predcp.complexity_of(grouped_coins, "tau", *args, **options))


TRIALS, HEADS = np.array([20, 5, 15]), np.array([7, 2, 3])
FEW = np.arange(3), TRIALS, HEADS


def test_aggregated_rows_leave_the_prior_as_it_is():
    tosses = np.concatenate([np.arange(n) < k for n, k in zip(TRIALS, HEADS)]).astype(int)
    many = np.repeat(np.arange(3), TRIALS), np.ones(40, int), tosses
    np.testing.assert_allclose(of_coins(FEW), of_coins(many), rtol=1e-12)


@pytest.mark.long
def test_units_of_rows_and_weights():
    few, kappa = FEW, of_coins
    # Per row, a row of twenty trials counts as much as a row of five.
    np.testing.assert_allclose(kappa(few, per="row"), kappa(few) * 40 / 3, rtol=1e-12)
    # A row with weight 2 is a row that is there twice.
    twice = tuple(each[[0, 0, 1, 2]] for each in few)
    np.testing.assert_allclose(
        kappa(few, per="row", weights=np.array([2.0, 1.0, 1.0])),
        kappa(twice, per="row"),
        rtol=1e-12,
    )


@pytest.mark.long
def test_exposure_is_a_unit_of_your_own():
    def counts(exposure):
        tau = numpyro.sample("tau", dist.HalfNormal(1))
        effect = numpyro.sample("effect", dist.Normal(0, tau).expand([3]).to_event(1))
        group = np.arange(3) if len(exposure) == 3 else np.array([0, 0, 1, 2])
        numpyro.sample("y", dist.Poisson(exposure * jnp.exp(effect[group])), obs=exposure)

    def kappa(exposure):
        return values(predcp.complexity_of(counts, "tau", exposure, per=exposure))

    # Two rows of one group with half of its exposure each.
    whole, split = np.array([4.0, 1.0, 2.0]), np.array([1.5, 2.5, 1.0, 2.0])
    np.testing.assert_allclose(kappa(whole), kappa(split), rtol=1e-12)
