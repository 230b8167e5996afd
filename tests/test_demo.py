"""The demo prints the quantiles of its priors and saves a picture."""

import re

import jax.numpy as jnp
import numpy as np

from predcp import demo


def test_design_is_standardised():
    x = np.asarray(demo.design())
    assert x.shape == (20, 3)
    np.testing.assert_allclose(x.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(x.std(0), 1.0, rtol=1e-12)


# One test: running the demo is what takes the time.
def test_demo_prints_its_priors_and_saves_their_picture(tmp_path, capsys):
    demo.main(output=tmp_path)
    printed = capsys.readouterr().out

    picture = tmp_path / demo.PICTURE
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")

    rows = re.findall(r"^[\sA-Za-z:]*?(\d+)% +(\S+) +(\S+) +(\S+)$", printed, re.MULTILINE)
    numbers = np.array([[float(entry) for entry in row] for row in rows]).reshape(2, 5, 4)
    for block, prior in zip(numbers, demo.priors().values()):
        np.testing.assert_allclose(block[:, 0] / 100.0, demo.QUANTILES)
        tau = prior.icdf(jnp.asarray(demo.QUANTILES))
        np.testing.assert_allclose(block[:, 1], tau, rtol=1e-3)
        np.testing.assert_allclose(block[:, 2], prior.complexity(tau), rtol=1e-3)

    assert re.findall(r"^(accept|truncate|warn|refuse): ", printed, re.MULTILINE) == [
        "accept",
        "truncate",
    ]
    masses = re.findall(r"total mass by quadrature (\S+)", printed)
    np.testing.assert_allclose(np.array(masses, float), [1.0, 1.0], rtol=1e-6)
