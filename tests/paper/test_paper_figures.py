"""The numbers behind each figure of the paper against closed forms; each is rendered small."""

import json
import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import predcp
from predcp import plot
from predcp.paper import figures
from predcp.paper.figures import _design, _functions, _networks
from predcp.paper.figures._figure import peak

POINTS = 24
SLOW = ("figure-3b", "appendix-functions")
_DATA: dict[str, figures.Data] = {}


def data(name: str) -> figures.Data:
    """Computed once a session."""
    if name not in _DATA:
        _DATA[name] = figures.FIGURES[name].data(POINTS)
    return _DATA[name]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long) if n in SLOW else n for n in figures.FIGURES]
)
def test_a_figure_is_drawn_with_a_caption_from_finite_numbers(name):
    figure, numbers = figures.FIGURES[name], data(name)
    assert all(np.all(np.isfinite(array)) for array in numbers.values())
    canvas = figures.render(figure, numbers)
    assert len(canvas.axes) == math.prod(figure.panels)
    for ax in canvas.axes:
        assert ax.lines or ax.collections
        assert ax.get_title(loc="left")
    caption = figure.caption(numbers)
    assert "*What to see.*" in caption and "*What we chose.*" in caption
    assert "nan" not in caption


def test_figure_1_has_its_second_mode_at_2_455():
    numbers = data("figure-1")
    np.testing.assert_allclose(numbers["second mode"], [2.455, 0.149], atol=5e-4)
    kappa, tau = numbers["kappa"], numbers["tau"]
    np.testing.assert_allclose(numbers["pi/exponential"], 2 * np.exp(-2 * kappa), rtol=1e-10)
    np.testing.assert_allclose(
        numbers["pi/gamma"], stats.gamma(0.2, scale=2.0).pdf(kappa), rtol=1e-9
    )
    np.testing.assert_allclose(
        numbers["pi/log-Cauchy"], 1 / (np.pi * kappa * (1 + np.log(kappa) ** 2)), rtol=1e-9
    )
    # pi(D) D' with D = (tau - log(1 + tau)) / 2
    divergence, slope = (tau - np.log1p(tau)) / 2, tau / (1 + tau) / 2
    away = tau > 1e-2
    np.testing.assert_allclose(
        numbers["ecp/exponential"][away], (2 * np.exp(-2 * divergence) * slope)[away], rtol=1e-9
    )
    assert numbers["ecp/exponential"][0] < 1e-3 < 1.0 < numbers["ecp/gamma"][0]


def test_figure_1d_is_1c_stretched_by_four():
    numbers = data("figure-1")
    side = np.array([0.2, 1.0, 3.0])
    for name, pi in figures._linear.divergence_priors().items():
        near, far = (predcp.ComplexityPrior(pi, predcp.LinearEvidence(x)) for x in (1.0, 0.25))
        np.testing.assert_allclose(
            predcp.marginal(far, side), predcp.marginal(near, side / 4) / 4, rtol=1e-5
        )
        half = numbers[f"marginal x=1/{name}"]
        np.testing.assert_array_equal(half, half[::-1])


def test_figure_2_maps_and_priors():
    numbers = data("figure-2")
    tau, wide = numbers["tau"], numbers["wide tau"]
    np.testing.assert_allclose(numbers["kappa/PredCP"], wide / 2, rtol=1e-10)
    np.testing.assert_allclose(numbers["kappa/ECP"], (wide - np.log1p(wide)) / 2, rtol=1e-9)
    # an exponential of mean .5 on tau / 2 is one of mean 1 on tau
    np.testing.assert_allclose(numbers["PredCP/exponential"], np.exp(-tau), rtol=1e-9)
    # (1 + tau) exp(-tau) tau / (1 + tau): highest at tau = 1
    np.testing.assert_allclose(numbers["mode/ECP/exponential"], [1.0, np.exp(-1.0)], atol=1e-4)
    np.testing.assert_allclose(numbers["median/PredCP/log-Cauchy"], 2.0, rtol=1e-9)
    assert np.all(np.diff(numbers["PredCP/log-Cauchy"]) < 0.0)


def test_figure_3a_is_a_product_of_log_cauchys():
    numbers = data("figure-3a")
    u = np.log(numbers["logarithmic"])
    first = float(numbers["unit/plain"][0])
    np.testing.assert_allclose(numbers["unit/plain"], first, rtol=1e-9)
    # plain: kappa_1 is proportional to tau_1 and kappa_2 to tau_1 tau_2
    second = 1.0 / (numbers["median/plain"] * numbers["logarithmic"])
    np.testing.assert_allclose(second, second[0], rtol=1e-9)
    across, up = np.meshgrid(u, u)
    expected = stats.cauchy.logpdf(across + np.log(first)) + stats.cauchy.logpdf(
        across + up + np.log(second[0])
    )
    np.testing.assert_allclose(numbers["logarithmic/plain"], expected, rtol=1e-7)
    # residual: flat while tau_1 is small, inversely proportional when it is large
    median = numbers["median/residual"]
    assert np.all(np.diff(median) < 0.0)
    assert median[0] / median[1] < 1.05 and median[-2] / median[-1] > 1.5
    np.testing.assert_allclose(median[-1], numbers["median/plain"][-1], rtol=0.1)


def test_appendix_lambda_keeps_the_median_and_mixes_linearly():
    numbers = data("appendix-lambda")
    medians = [float(numbers[f"median/{scale:g}"]) for scale in figures._lambda.SCALES]
    np.testing.assert_allclose(medians, medians[0], rtol=1e-9)
    # kappa = 1 there
    np.testing.assert_allclose((medians[0] - np.log1p(medians[0])) / 2, 1.0, rtol=1e-9)
    halfway = (numbers["mixture/0.1"] + numbers["mixture/0.9"]) / 2
    np.testing.assert_allclose(numbers["mixture/0.5"], halfway, rtol=1e-9)


def test_appendix_shrinkage_profiles():
    numbers = data("appendix-shrinkage")
    shrinkage = numbers["shrinkage"]
    np.testing.assert_allclose(numbers["horseshoe"], stats.beta(0.5, 0.5).pdf(shrinkage), rtol=1e-9)
    # P(shrinkage < .05) = P(tau > 19) = P(kappa > D(19))
    for x in (0.1, 1.0, 3.0):
        v = 19.0 * x**2
        kappa = (v - np.log1p(v)) / 2
        np.testing.assert_allclose(
            numbers[f"unshrunk/log-Cauchy/{x:g}"], stats.cauchy.sf(np.log(kappa)), rtol=1e-9
        )
        expected = 0.5 * np.exp(-2 * kappa) + 0.5 * stats.gamma(0.2, scale=2.0).sf(kappa)
        np.testing.assert_allclose(numbers[f"unshrunk/mixture/{x:g}"], expected, rtol=1e-7)
    assert numbers["unshrunk/mixture/0.1"] > 0.8


def test_appendix_design_is_exact_at_every_rank():
    numbers = data("appendix-design")
    rank, scale = numbers["rank"], numbers["scale"]

    def tail(kappa):
        return 0.5 * np.exp(-2 * kappa) + 0.5 * stats.gamma(0.2, scale=2.0).sf(kappa)

    kappa = (20 - rank * np.log1p(20 / rank)) / 2
    np.testing.assert_allclose(numbers["tail/rank"], tail(kappa), rtol=1e-6)
    assert np.all(np.diff(numbers["tail/rank"]) > 0.0)
    np.testing.assert_allclose(
        numbers["tail/scale"], tail(10 * (scale**2 - np.log1p(scale**2))), rtol=1e-6
    )
    assert np.all(np.diff(numbers["tail/scale"]) < 0.0)
    for each in (1, 2, 7, 18, 19, 20):
        x = _design.tight_frame(each)
        np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(x.T @ x, 20 / each * np.eye(each), atol=1e-12)


def test_appendix_coefficient_modes():
    numbers = data("appendix-coefficient")
    s = math.sqrt(2.0)
    for scale in figures._coefficient.SCALES:
        mode = math.sqrt(2.0) * s * math.exp(-1.0 + math.sqrt(1.0 - scale**2 / 4.0))
        np.testing.assert_allclose(numbers[f"mode/{scale:g}"][0], mode, atol=2e-5)
    beta = numbers["beta"]
    # kappa = beta^2 / 4 under an exponential of mean .5, half on either side
    expected = 0.5 * 2 * np.exp(-(beta**2) / 2) * np.abs(beta) / 2
    np.testing.assert_allclose(numbers["beta/exponential"], expected, rtol=1e-9)
    for variance in figures._coefficient.VARIANCES:
        grid = np.linspace(-30.0, 30.0, 60_001)
        density = figures._coefficient.non_local(grid, variance)
        np.testing.assert_allclose(density.sum() * 1e-3, 1.0, rtol=1e-9)
        np.testing.assert_allclose(
            abs(grid[density.argmax()]), math.sqrt(2.0 * variance), atol=1e-3
        )


def test_appendix_softmax_peaks_in_the_middle():
    numbers = data("appendix-softmax")
    np.testing.assert_allclose(numbers["peak"][0], 1.46, atol=5e-3)
    # there the middle logit is the mean logit
    weights = figures._softmax.probabilities(numbers["peak"][0])
    np.testing.assert_allclose(weights @ np.array([2.0, 1.85, 0.5]), 1.85, atol=1e-4)
    outputs = numbers["outputs"]
    assert np.all(np.diff(outputs[:, 0]) > -1e-15) and np.all(np.diff(outputs[:, 2]) < 1e-15)
    np.testing.assert_allclose(outputs[0], 1 / 3, atol=0.01)
    np.testing.assert_allclose(outputs[-1], [1.0, 0.0, 0.0], atol=1e-6)
    kappa = np.sum(np.where(outputs > 0, outputs * np.log(3 * outputs + 1e-300), 0.0), axis=1)
    np.testing.assert_allclose(numbers["kappa"], kappa, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(numbers["supremum"], math.log(3.0), rtol=1e-9)


def test_functions_are_the_networks_that_the_map_measures():
    # Half the mean square change of a function is its divergence under unit noise.
    x = jnp.linspace(-1.0, 1.0, 7)
    weights = _networks.draw_weights(jax.random.key(0), 4, 1, 5)
    log_tau = jnp.full((4, 1), math.log(0.3))
    for residual in (True, False):
        map = _networks.depth_map(weights, x, residual, "batch")
        off = _networks.functions(weights, log_tau - 700.0, x, residual, "batch")
        moved = _networks.functions(weights, log_tau, x, residual, "batch") - off
        # Cut at exp(-250), the layer is off to all digits.
        np.testing.assert_allclose(
            map(jnp.array([0.3]))[0], 0.5 * np.mean(np.square(moved)), rtol=1e-9
        )


@pytest.mark.long
def test_appendix_functions_have_fewer_turns_under_the_predcp_in_residual_networks():
    numbers = figures.FIGURES["appendix-functions"].data(150)
    for depth in _functions.DEPTHS:
        ours = np.median(numbers[f"turns/residual/{depth}/PredCP"])
        assert ours < np.median(numbers[f"turns/residual/{depth}/normal"])
        # In plain networks normalisation takes every scale but the last away; what its epsilon and
        # rounding leave of tiny ones, twenty-five chaotic layers make visible in a few functions.
        plain = [numbers[f"turns/plain/{depth}/{name}"] for name in ("normal", "horseshoe")]
        close = np.isclose(plain[0], plain[1], rtol=0.1)
        assert close.all() if depth == min(_functions.DEPTHS) else close.mean() >= 0.9
        np.testing.assert_allclose(np.median(plain[0]), np.median(plain[1]), rtol=0.02)


def test_turns_and_peak_of_known_curves():
    x = np.linspace(0.0, 1.0, 2001)
    curves = np.stack([x**3, np.sin(np.pi * x), np.sin(4 * np.pi * x)])
    np.testing.assert_allclose(_functions.turns(curves), [1.0, 2.0, 4.0], rtol=1e-5)
    np.testing.assert_allclose(peak(np.sin, 0.0, 3.0), [np.pi / 2, 1.0], rtol=1e-7)


def test_each_pi_has_one_colour():
    pis = [
        predcp.Exponential(mean=0.5),
        predcp.Gamma(shape=0.2, scale=2.0),
        predcp.LogCauchy(),
        predcp.HalfCauchy(),
    ]
    pis.append(predcp.GammaExponential())
    assert len({plot.colour(pi) for pi in pis}) == 5
    prior = predcp.ComplexityPrior(pis[0], predcp.LinearEvidence(1.0))
    assert plot.colour(prior) == plot.colour(predcp.Exponential) == plot.colour(pis[0])
    assert plot.colour(dist.Gamma(1.0)) not in {plot.colour(pi) for pi in pis}


def test_files_and_an_unknown_name(tmp_path):
    paths = figures.write(figures.FIGURES["appendix-softmax"], tmp_path / "new", POINTS, True)
    assert [path.suffix for path in paths] == [".pdf", ".png", ".md", ".npz"]
    assert paths[0].read_bytes().startswith(b"%PDF") and paths[1].read_bytes()[1:4] == b"PNG"
    with np.load(paths[3]) as saved:
        assert saved["outputs"].shape == (POINTS, 3)
    with pytest.raises(ValueError, match="no figure is called 'figure-9'; there are: figure-1"):
        figures.select(["figure-9"])


def test_the_command_lists_them(tmp_path):
    command = [sys.executable, "-m", "predcp", "figures", "--list", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["name"] for row in rows] == list(figures.FIGURES)
    assert list(tmp_path.iterdir()) == []
