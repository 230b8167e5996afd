"""The demo prints the quantiles of its priors and saves a picture."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("matplotlib")

from predcp import demo


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """What one run printed, and its folder."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("demo")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        demo.main(output=folder)
    return printed.getvalue(), folder


def test_design_is_standardised():
    x = np.asarray(demo.design())
    assert x.shape == (20, 3)
    np.testing.assert_allclose(x.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(x.std(0), 1.0, rtol=1e-12)


def test_picture_is_saved_where_the_demo_says(result):
    printed, folder = result
    picture = folder / demo.PICTURE
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_printed_quantiles_are_those_of_the_priors(result):
    rows = re.findall(r"^[\sA-Za-z:]*?(\d+)% +(\S+) +(\S+) +(\S+)$", result[0], re.MULTILINE)
    numbers = np.array([[float(entry) for entry in row] for row in rows]).reshape(2, 5, 4)
    for block, prior in zip(numbers, demo.priors().values()):
        np.testing.assert_allclose(block[:, 0] / 100.0, demo.QUANTILES)
        tau = prior.icdf(jnp.asarray(demo.QUANTILES))
        np.testing.assert_allclose(block[:, 1], tau, rtol=1e-3)
        np.testing.assert_allclose(block[:, 2], prior.complexity(tau), rtol=1e-3)


def test_both_priors_pass_their_diagnosis(result):
    verdicts = re.findall(r"^(accept|truncate|warn|refuse): ", result[0], re.MULTILINE)
    assert verdicts == ["accept", "truncate"]
    masses = re.findall(r"total mass by quadrature (\S+)", result[0])
    np.testing.assert_allclose(np.array(masses, float), 1.0, rtol=1e-6)
