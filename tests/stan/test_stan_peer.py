"""The Stan programs and the library give the same log density and gradient, constants included."""

import importlib.util

import jax
import numpy as np
import pytest
from benchmarks import stan_programs
from benchmarks.stan_ours import our_log_density, problem, with_noise

from predcp.data import DataError

pytestmark = [
    pytest.mark.long,
    # `import stan` alone would find the folder of Stan files at the root.
    pytest.mark.skipif(
        importlib.util.find_spec("httpstan") is None,
        reason="PyStan is not installed (pip install 'predcp[stan]')",
    ),
]

TOLERANCE = 1e-8
DESIGNS = ["small", "breast"]


def data_of(design):
    if design == "breast":
        try:
            return problem("breast", 10)
        except DataError as error:
            pytest.skip(f"the breast data are not here: {error}")
    random = np.random.default_rng(0)
    x = random.normal(size=(7, 3))
    # A row of zeros never moves: the supremum of D is below log 2.
    x[4] = 0.0
    return with_noise(x, random.integers(0, 2, size=7), 10)


def points(size, random):
    """Random points, then tiny scales and scales at which the predictions saturate."""
    for log_tau in [*random.normal(scale=3.0, size=4), -400.0, -30.0, -12.0, 3.0, 6.0, 10.0]:
        log_local = np.log(np.abs(random.standard_cauchy(size)))
        yield np.concatenate([log_local, random.normal(size=size), [log_tau]])


def worst_error(peer, ours, size):
    """Largest error of value and gradient, relative to max(1, |value|)."""
    value_and_gradient = jax.jit(jax.value_and_grad(ours))
    worst = 0.0
    for point in points(size, np.random.default_rng(2)):
        expected, gradient = value_and_gradient(point)
        value = peer.log_prob(point.tolist())
        pairs = np.array([[expected, *gradient], [value, *peer.grad_log_prob(point.tolist())]])
        assert np.isfinite(pairs).all(), point[-1]
        error = np.abs(pairs[0] - pairs[1]) / np.maximum(1.0, np.abs(pairs[0]))
        worst = max(worst, error.max())
    return worst


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("prior", stan_programs.PRIORS)
def test_log_density_and_gradient_agree(prior, design):
    data = data_of(design)
    peer = stan_programs.build(prior, data)
    assert worst_error(peer, our_log_density(prior, data), data["D"]) <= TOLERANCE


def test_density_as_the_paper_prints_it_agrees(monkeypatch):
    text = stan_programs.program("predcp").replace(
        "target += logistic_predcp_lpdf", "target += logistic_predcp_unnormalized_lpdf"
    )
    monkeypatch.setattr(stan_programs, "program", lambda prior: text)
    data = data_of("small")
    peer = stan_programs.build("predcp", data)
    ours = our_log_density("predcp", data, truncate=False)
    assert worst_error(peer, ours, data["D"]) <= TOLERANCE


def test_includes_are_replaced():
    text = stan_programs.program("predcp")
    assert "#include" not in text
    assert "real logistic_predcp_lpdf(" in text
