"""`posterior_` is what ArviZ's tools expect."""

import numpy as np
import pytest
import scipy.stats

from predcp.linear import Laplace, LinearRegression, LogisticRegression, Nuts

arviz_stats = pytest.importorskip("arviz_stats")

GENERATOR = np.random.default_rng(0)
X = np.c_[GENERATOR.standard_normal((30, 3)), np.full(30, 2.0)]
NOISY = X @ [2.0, 0.0, -1.0, 0.0] + GENERATOR.logistic(size=30)
GROUPS = {
    "posterior",
    "sample_stats",
    "log_likelihood",
    "log_prior",
    "posterior_predictive",
    "prior",
    "observed_data",
}


def linear(**options):
    return LinearRegression(inference=Laplace(draws=200), **options).fit(X, 10.0 * NOISY + 5.0)


def logistic(edges=(0.0,), **options):
    y = np.digitize(NOISY, edges)
    return LogisticRegression(inference=Laplace(draws=200), **options).fit(X, y)


MODELS = {
    "linear": lambda: linear(prior="predcp"),
    "two classes": lambda: logistic(prior="half-cauchy"),
    "three classes": lambda: logistic((-1.0, 1.0), prior="ridge"),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return MODELS[request.param]()


def test_groups_and_their_shapes(fitted):
    tree = fitted.posterior_
    assert set(tree.children) == GROUPS
    assert tree is fitted.posterior_
    assert tree["posterior"]["coef"].sizes["feature"] == 4
    assert tree["log_likelihood"]["y"].shape == (1, 200, 30)
    assert tree["posterior_predictive"]["y"].shape == (1, 200, 30)
    for group in tree.children.values():
        for name, values in group.data_vars.items():
            assert np.isfinite(values.to_numpy()).all(), (group.name, name)
    coefficients = tree["posterior"]["coef"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(np.squeeze(coefficients.T), np.squeeze(fitted.coef_))


def test_the_likelihood_is_that_of_the_observations(fitted):
    tree = fitted.posterior_
    found = np.exp(tree["log_likelihood"]["y"].to_numpy())[0].mean(axis=0)
    y = tree["observed_data"]["y"].to_numpy()
    if isinstance(fitted, LinearRegression):
        posterior = tree["posterior"]
        mean = posterior["coef"].to_numpy()[0] @ X.T + posterior["intercept"].to_numpy()[0][:, None]
        noise = posterior["sigma"].to_numpy()[0][:, None]
        np.testing.assert_allclose(y, 10.0 * NOISY + 5.0)
        np.testing.assert_allclose(found, scipy.stats.norm.pdf(y, mean, noise).mean(axis=0))
    else:
        np.testing.assert_allclose(found, fitted.predict_proba(X)[np.arange(30), y])


def test_replicated_outcomes_look_like_the_observed(fitted):
    tree = fitted.posterior_
    replicated = tree["posterior_predictive"]["y"].to_numpy()
    observed = tree["observed_data"]["y"].to_numpy()
    low, high = np.quantile(replicated.mean(axis=2), [0.001, 0.999])
    assert low < observed.mean() < high


def test_loo_and_power_scaling_run(fitted):
    tree = fitted.posterior_
    loo = arviz_stats.loo(tree)
    assert np.isfinite(loo.elpd)
    names = ["coef", "tau"]
    for group in ("prior", "likelihood"):
        sensitivity = arviz_stats.psense(tree, var_names=names, group=group)
        assert np.isfinite(sensitivity["tau"].to_numpy()).all()
    scaled = arviz_stats.psense(tree, var_names=names, group="prior", group_var_names=["tau"])
    assert np.isfinite(scaled["tau"].to_numpy()).all()


def test_the_prior_of_tau_is_the_prior(fitted):
    if fitted.prior == "predcp":
        pytest.skip("its prior of tau depends on the local scales")
    drawn = fitted.posterior_["prior"]["tau"].to_numpy()
    test = scipy.stats.kstest(drawn.reshape(-1), scipy.stats.halfcauchy.cdf)
    assert test.pvalue > 1e-3


def test_weights_scale_the_likelihood():
    y = (NOISY > 0).astype(int)
    weights = np.tile([1.0, 2.0, 0.0], 10)
    model = LogisticRegression("ridge", inference=Laplace(draws=50))
    model.fit(X, y, sample_weight=weights)
    kept = weights > 0
    log_likelihood = model.posterior_["log_likelihood"]["y"].to_numpy()[0]
    single = np.exp(log_likelihood / weights[kept]).mean(axis=0)
    expected = model.predict_proba(X)[np.arange(30), y][kept]
    np.testing.assert_allclose(single, expected)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_chains_and_their_statistics_are_kept(tmp_path):
    inference = Nuts(chains=2, warmup=50, draws=50, chunk=50)
    model = LogisticRegression("ridge", inference=inference).fit(X, (NOISY > 0).astype(int))
    tree = model.posterior_
    assert tree["posterior"].sizes["chain"] == 2 and tree["posterior"].sizes["draw"] == 50
    assert {"diverging", "n_steps", "lp"} <= set(tree["sample_stats"].data_vars)
    tree.to_netcdf(tmp_path / "posterior.nc", engine="h5netcdf")
    assert (tmp_path / "posterior.nc").stat().st_size > 0
