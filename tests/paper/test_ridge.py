import numpy as np
import pytest

from predcp.experiments import Cell, Context, execute, run
from predcp.paper._ridge import RidgeRegression, _log_evidence


@pytest.fixture
def problem():
    generator = np.random.default_rng(3)
    x = generator.normal(size=(40, 5)) * [1, 2, 3, 4, 5] + 7
    return x, x @ [1.0, -1.0, 0.5, 0.0, 0.0] + generator.normal(size=40)


def test_weights_solve_the_normal_equations(problem):
    x, y = problem
    model = RidgeRegression("unit").fit(x, y)
    z, t = model.features_.transform(x), model.target_.transform(y)
    expected = np.linalg.solve(z.T @ z + np.eye(5), z.T @ t)
    np.testing.assert_allclose(model.weights_, expected, rtol=1e-10)
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(z.T @ z + np.eye(5)), rtol=1e-10)


def test_evidence_is_that_of_the_marginal_normal(problem):
    x, y = problem
    left, singular, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    t = y - y.mean()
    differences = []
    for ratio in (0.3, 20.0):
        shape = np.eye(40) + (x - x.mean(0)) @ (x - x.mean(0)).T / ratio
        noise = t @ np.linalg.solve(shape, t) / 40
        expected = -0.5 * (40 * np.log(noise) + np.linalg.slogdet(shape)[1])
        differences.append(_log_evidence(singular, left.T @ t, t, ratio) - expected)
    np.testing.assert_allclose(differences, 0.0, atol=1e-9)


def test_more_columns_than_rows():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(10, 30)), generator.normal(size=10)
    model = RidgeRegression("unit").fit(x, y)
    z = model.features_.transform(x)
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(z.T @ z + np.eye(30)), rtol=1e-8)


def test_state_round_trip(problem):
    x, y = problem
    model = RidgeRegression().fit(x, y)
    again = RidgeRegression.from_state(*model.to_state())
    np.testing.assert_array_equal(model.predict_moments(x)[1], again.predict_moments(x)[1])
    with pytest.raises(ValueError, match="prior must be one of wide, unit, evidence"):
        RidgeRegression("flat")


def test_cell_on_a_file_is_pinned_to_its_content(tmp_path):
    from predcp.experiments import on_file

    path = tmp_path / "mine.csv"
    rows = [f"{n},{n % 7},{3 * n + n % 5}" for n in range(60)]
    path.write_text("a,b,y\n" + "\n".join(rows) + "\n")
    cell = on_file([Cell("diabetes", "ridge", "unit", "exact")], str(path), "y")[0]
    assert not execute(cell).failed
    path.write_text("a,b,y\n" + "\n".join(rows[:-1]) + "\n")
    assert "has changed since the grid was listed" in (execute(cell).traceback or "")


def test_wrong_cells_fail_with_a_reason():
    sampled = execute(Cell("diabetes", "ridge", "unit", "nuts"))
    assert "ridge has exact inference only, got 'nuts'" in (sampled.traceback or "")
    classes = execute(Cell("iris", "ridge", "unit", "exact"))
    assert "ridge needs a numeric target" in (classes.traceback or "")


def test_real_uci_cells(tmp_path):
    import os

    if not os.environ.get("PREDCP_DATA"):
        pytest.skip("PREDCP_DATA is not set, so there are no real data files to read")
    cells = [
        Cell("yacht", "ridge", prior, "exact", s) for prior in ("wide", "unit") for s in (0, 1)
    ]
    assert run("uci", cells, tmp_path).finished == 4


def test_posterior_is_readable_by_arviz(tmp_path):
    import arviz_base
    import xarray

    cell = Cell("diabetes", "ridge", "unit", "exact")
    outcome = execute(cell, Context(keep_posterior=True))
    assert outcome.posterior is not None
    run("toy", [cell], tmp_path, keep_posterior=True)
    path = next(tmp_path.glob("toy/*/posterior.nc"))
    tree = arviz_base.convert_to_datatree(xarray.open_datatree(path, engine="h5netcdf"))
    weights = tree["posterior"]["weights"]
    assert dict(zip(weights.dims, weights.shape))["chain"] == 4
    assert weights.shape == (4, 250, 10)
    tree.close()
    assert execute(cell).posterior is None


def test_draws_without_chains_are_refused():
    from predcp.experiments._posterior import posterior_bytes

    with pytest.raises(ValueError, match=r"posterior\['beta'\] must have shape \(chains, draws"):
        posterior_bytes({"beta": np.ones(3)})
