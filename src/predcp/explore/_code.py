"""The NumPyro program of the prior on the screen: complete, and equal to it up to rounding."""

from predcp.explore._choices import Choices
from predcp.explore._network import DRAWS, POINTS, REACH, WIDTH
from predcp.explore._pi import prior_code
from predcp.explore._regression import draw_count

_LONGEST_LIST = 80
_IMPORTS = """\
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
{more}
import predcp
"""
_REGRESSION = """
{design}

def likelihood(beta, x):
    return {likelihood}


def parameters(tau, xi):
    return jnp.sqrt(tau) * xi  # beta ~ N(0, tau): tau is a variance


complexity = predcp.PredictiveComplexity(
    likelihood,
    parameters,
    reference=jnp.zeros(x.shape[1]),
    x=jnp.asarray(x),
    noise=predcp.normal_noise(jax.random.key(0), {draws}, (x.shape[1],), method="sobol"),
    divergence=predcp.{divergence},
)
{prior}


def model(x, y=None):
    tau = jnp.exp(numpyro.sample("log_tau", prior.log_scale()))
    xi = numpyro.sample("xi", dist.Normal().expand([x.shape[1]]).to_event(1))
    beta = numpyro.deterministic("beta", parameters(tau, xi))
    numpyro.sample("y", likelihood(beta, x), obs=y)


print("tau at 5%, 50%, 95%:", prior.icdf(jnp.array([0.05, 0.5, 0.95])))
draws = numpyro.infer.Predictive(model, num_samples=100)(jax.random.key(1), jnp.asarray(x))
# with outcomes y: numpyro.infer.MCMC(numpyro.infer.NUTS(model), ...).run(key, x, y)
"""
_NORMAL_DESIGN = """\
x = np.random.default_rng(0).standard_normal(({rows}, {columns}))  # your design here
"""
_FILE_DESIGN = """\
columns = {columns}
x = pandas.read_csv({name})[columns].to_numpy(float)
"""
_STANDARDISED = """\
x = (x - x.mean(0)) / x.std(0)
"""
_NETWORK = """
depth, width, draws = {depth}, {width}, {draws}
x = np.linspace(-{reach}, {reach}, {points})  # your inputs here

# weights over which the divergence of a layer is averaged; tau is the variance of a layer
rng = np.random.default_rng(0)
first = rng.standard_normal((draws, 2, width))
output = rng.standard_normal((draws, width, 1)) / width**0.5
weights = rng.standard_normal((depth, draws, width, width)) / width**0.5

complexity = predcp.DepthComplexity(
    hidden=jax.nn.relu(x[:, None] * first[:, :1] + first[:, 1:]),
    weights=weights.swapaxes(0, 1),
    output_weights=output,
    normalize="batch",
    divergence=predcp.{divergence},
)
{prior}


def normalized(hidden):
    centred = hidden - hidden.mean(0)
    return centred / jnp.sqrt(jnp.mean(centred**2, 0) + 1e-5)


def model(x, y=None):
    log_tau = numpyro.sample("log_tau", prior.log_scale())
    first = numpyro.sample("first", dist.Normal().expand([2, width]).to_event(2))
    xi = numpyro.sample("xi", dist.Normal().expand([depth, width, width]).to_event(3))
    output = numpyro.sample("output", dist.Normal(0.0, width**-0.5).expand([width]).to_event(1))
    hidden = jax.nn.relu(x[:, None] * first[0] + first[1])
    for layer in range(depth):
        matrix = jnp.exp(0.5 * log_tau[layer]) * xi[layer] / width**0.5
        hidden = hidden + jax.nn.relu(normalized(hidden) @ matrix)
    numpyro.sample("y", dist.Normal(hidden @ output, 1.0), obs=y)


print("median tau of each layer, those below at theirs:", prior.icdf(jnp.full(depth, 0.5)))
draws = numpyro.infer.Predictive(model, num_samples=10)(jax.random.key(1), jnp.asarray(x))
# with outcomes y: numpyro.infer.MCMC(numpyro.infer.NUTS(model), ...).run(key, x, y)
"""


def code(choices: Choices) -> str:
    """A program that makes the chosen prior, puts it in a model and draws from both."""
    if choices.model == "network":
        body = _NETWORK.format(
            depth=choices.depth,
            width=WIDTH,
            draws=DRAWS,
            reach=REACH,
            points=POINTS,
            divergence=choices.divergence,
            prior=prior_code(choices),
        )
        return _IMPORTS.format(more="") + body
    logistic = choices.model == "logistic"
    observed = "Bernoulli(logits=x @ beta)" if logistic else f"Normal(x @ beta, {choices.noise!r})"
    rows = choices.rows if choices.design is None else choices.design.x.shape[0]
    body = _REGRESSION.format(
        design=_design(choices),
        likelihood=f"dist.{observed}",
        draws=draw_count(rows),
        divergence=choices.divergence,
        prior=prior_code(choices),
    )
    return _IMPORTS.format(more="" if choices.design is None else "import pandas\n") + body


def _design(choices: Choices) -> str:
    if choices.design is None:
        return _NORMAL_DESIGN.format(rows=choices.rows, columns=choices.columns)
    # Names come from the visitor: as literals they cannot become code.
    names = list(map(_literal, choices.design.columns))
    columns = f"[{', '.join(names)}]"
    if len(columns) > _LONGEST_LIST:
        columns = "[\n" + "".join(f"    {name},\n" for name in names) + "]"
    text = _FILE_DESIGN.format(name=_literal(choices.design.name), columns=columns)
    return text + (_STANDARDISED if choices.design.standardised else "")


def _literal(text: str) -> str:
    # They must not end the Markdown block of the code either.
    return ascii(text).replace("`", r"\x60")
