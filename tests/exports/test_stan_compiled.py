"""The functions of a text as Stan computes them, and the programs of the page; run by `make test-stan`."""

import math
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.exports.posteriors import stan_model
from tests.exports.test_stan import DESIGN, PIS, coin_map

import predcp

pytest.importorskip("stan", reason="the extra `stan` is not installed")
compiler = pytest.importorskip("httpstan.compile", reason="the extra `stan` is not installed")

pytestmark = pytest.mark.long
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "stan-and-inla.md"
# What brms writes for the prior `predcp_b_sd()` of two group-level standard deviations.
PROGRAM = """
functions {{
{functions}
}}
data {{ int which; }}
parameters {{ real log_tau; vector<lower=0>[2] sd_1; }}
model {{
{cases}
}}
generated quantities {{ real drawn = predcp_b_sd_rng(); }}
"""


def test_stans_density_and_gradient_over_forty_decades():
    unbounded = predcp.LinearEvidence(DESIGN)
    priors = [
        predcp.ComplexityPrior(pi, each) for pi in PIS.values() for each in (unbounded, coin_map())
    ]
    names = [f"prior_{i}" for i in range(len(priors))]
    of_sd = priors[-1]
    functions = "\n".join(prior.to_stan(name) for prior, name in zip(priors, names))
    functions += of_sd.to_stan("b") + priors[0].to_stan("v")
    cases = [
        f"if (which == {i}) target += predcp_{name}_lpdf(log_tau);" for i, name in enumerate(names)
    ]
    count = len(cases)
    for name in "bv":
        density = f"predcp_{name}_sd_lpdf(sd_1) - 1 * predcp_{name}_sd_lccdf(0)"
        cases.append(f"if (which == {len(cases)}) target += {density};")
    # brms writes this where the user sets a lower bound.
    cases.append(f"if (which == {len(cases)}) target += predcp_b_sd_lccdf(0.5);")
    program = PROGRAM.format(functions=functions, cases="\n".join(cases))

    def at(which, log_tau, sd=(1.0, 1.0)):
        point = [log_tau, *np.log(sd)]
        model = models[which]
        return (
            model.log_prob(point, adjust_transform=False),
            model.grad_log_prob(point)[0],
        )

    models = [
        stan_model(program, data={"which": which}, random_seed=1) for which in range(len(cases))
    ]
    grid = np.linspace(-20.0, 20.0, 41) * math.log(10.0)
    for which, prior in enumerate(priors[:count]):
        log_prior = prior.log_scale()
        wanted = np.asarray(log_prior.log_prob(jnp.asarray(grid)))
        slopes = np.asarray(jax.vmap(jax.grad(log_prior.log_prob))(jnp.asarray(grid)))
        counted = wanted > wanted.max() - 100.0
        found = np.array([at(which, point) for point in grid[counted]])
        np.testing.assert_allclose(found[:, 0], wanted[counted], rtol=0, atol=1e-8)
        np.testing.assert_allclose(found[:, 1], slopes[counted], rtol=1e-6, atol=1e-6)
    sd = np.array([0.3, 2.0])
    on_sd = np.asarray(of_sd.log_prob(jnp.asarray(sd))).sum()
    np.testing.assert_allclose(at(count, 0.0, sd)[0], on_sd, rtol=0, atol=1e-8)
    # tau is a variance there: p(sd) = p(sd^2) 2 sd.
    on_variance = np.asarray(priors[0].log_prob(jnp.asarray(sd**2))) + np.log(2.0 * sd)
    np.testing.assert_allclose(at(count + 1, 0.0, sd)[0], on_variance.sum(), rtol=0, atol=1e-8)
    beyond = np.log(of_sd.survival(jnp.asarray(0.5)))
    np.testing.assert_allclose(at(count + 2, 0.0)[0], beyond, rtol=0, atol=1e-8)
    drawn = models[count].sample(num_chains=1, num_warmup=200, num_samples=2000)["drawn"].ravel()
    assert stats.kstest(drawn, lambda v: np.asarray(of_sd.cdf(v))).pvalue > 1e-4


@pytest.mark.parametrize("end", ["", " | "])
def test_stan_takes_what_brms_writes_for_a_prior_without_arguments(end):
    # Older versions of brms write an empty list of arguments after a bar.
    prior = predcp.ComplexityPrior(PIS["half-cauchy"], predcp.LinearEvidence(DESIGN))
    density = f"predcp_b_sd_lpdf(sd_1{end}) - 1 * predcp_b_sd_lccdf(0{end})"
    program = PROGRAM.format(functions=prior.to_stan("b"), cases=f"target += {density};")
    translated, _ = compiler.compile(program, "brms")
    assert "predcp_b_sd_lccdf" in translated


def test_the_program_of_the_page_runs():
    from tests.test_documentation import blocks

    text = PAGE.read_text()
    namespace = {}
    for block in blocks(text):
        exec(block.code, namespace)
    [program] = re.findall(r"^```stan\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    [place] = re.findall(r"^  // the text of .*$", program, re.MULTILINE)
    program = program.replace(place, namespace["functions"])
    data = {"hospital": [*range(1, 9)], "y": [3, 1, 2, 0, 4, 2, 1, 2]}
    fit = stan_model(program, data=data, random_seed=1).sample(num_chains=1, num_samples=200)
    assert np.all(np.isfinite(fit["tau"])) and np.all(fit["tau"] > 0)
    # The names that the R code uses are functions of the text.
    [code] = re.findall(r"^```r\n(code.*?)^```", text, re.MULTILINE | re.DOTALL)
    [used] = re.findall(r'set_prior\("(\w+)\(\)"', code)
    assert f"real {used}_lpdf(vector sd)" in namespace["functions"]
