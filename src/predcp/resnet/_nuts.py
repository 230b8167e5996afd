"""The posterior of a small network by NUTS, a reference for the variational one."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy

from predcp._numerics.chains import rank_normalised_rhat
from predcp.resnet._layer_priors import Comparison, FixedLayers
from predcp.resnet._network import Biases, Network, Weights
from predcp.resnet._objective import Model
from predcp.resnet._rows import InverseGammaRows
from predcp.resnet._training import Data

if TYPE_CHECKING:
    import xarray

_LARGEST = 2000


class NutsDraws(NamedTuple):
    """Draws of everything, chains and draws on one axis, one chain after the other.

    **Arguments**
    - `weights`, `biases`: each leaf (M, ...).
    - `log_tau`: (M, L); `log_precision`: (M,).
    - `rhat`: the largest of the outputs at the training rows; `divergences`: the fraction of divergent
        transitions.
    - `chains`: how many chains the M draws come from.
    """

    weights: Weights
    biases: Biases
    log_tau: Float[Array, "draws layers"]
    log_precision: Float[Array, " draws"]
    rhat: float
    divergences: float
    chains: int = 1

    @property
    def posterior_(self) -> "xarray.DataTree":
        """The draws as an ArviZ tree, with `tau` and `precision` on their own scale."""
        import arviz_base

        values = {
            "weights_body": self.weights.body,
            "weights_head": self.weights.head,
            "hidden_biases": self.biases.hidden,
            "output_biases": self.biases.output,
            "tau": np.exp(np.asarray(self.log_tau, np.float64)),
            "precision": np.exp(np.asarray(self.log_precision, np.float64)),
        }
        by_chain = {
            name: np.asarray(draws).reshape(self.chains, -1, *draws.shape[1:])
            for name, draws in values.items()
        }
        return arviz_base.from_dict({"posterior": by_chain}, dims={"tau": ["layer"]})

    def outputs(self, network: Network, x: Any) -> Float[Array, "draws points outputs"]:
        """Outputs of every draw at the rows of `x`."""
        points = jnp.asarray(x)

        def one(pair: tuple[Weights, Biases]) -> Array:
            return network.apply(pair[0], pair[1], points)

        return jax.lax.map(one, (self.weights, self.biases), batch_size=64)


def network_program(
    model: Model, data: Data, noise_draws: int = 10, seed: int = 0, temperature: float = 1.0
) -> None:
    """A NumPyro program: weights, row scales and layer scales with their priors, all sampled.

    Biases, point estimates in variational inference, have N(0, 1) priors here. The map of a
    complexity prior has `noise_draws` fixed draws of the noise, chosen by `seed`.

    **Arguments**: `temperature`, T of a tempered posterior: the likelihood to the power 1 / T times
    the prior, whose variational form counts the divergence T times (`Preset(kl_weight=T)`).
    """
    network = model.network
    (prior,) = model.priors
    kind = data.x.dtype
    body_rows = _row_variances("body", network.rows, model)
    head_rows = _row_variances("head", network.width, model)
    biases = Biases(
        _normal("hidden_biases", (network.layers + 1, network.width)),
        _normal("output_biases", (network.outputs,)),
    )
    if model.precision is None:
        precision = _sampled("log_precision", dist.Normal(2.0, 2.0))
    else:
        precision = jnp.asarray(math.log(model.precision), kind)
        numpyro.deterministic("log_precision", precision)
    noise = Weights(
        _normal("xi_body", (network.rows, network.width)),
        _normal("xi_head", (network.width, network.outputs)),
    )
    head = noise.head * jnp.sqrt(head_rows)[:, None]
    if isinstance(prior, FixedLayers):
        log_tau = jnp.full((network.layers,), math.log(prior.tau), kind)
    else:
        flat = dist.ImproperUniform(dist.constraints.real, (), (network.layers,))
        log_tau = _sampled("log_tau_free", flat)
        first = Weights(noise.body * jnp.sqrt(body_rows)[:, None], head)
        comparison = Comparison(
            network.first(first, biases, data.x),
            network.by_layer(body_rows),
            head,
            jnp.zeros_like(head),
            None if model.classes else jnp.exp(precision),
            lambda: _fixed_noise(network, noise_draws, seed, kind),
        )
        density = prior.log_density(network, log_tau, comparison)
        numpyro.factor("log_prior_tau", density + jnp.sum(log_tau))
    numpyro.deterministic("log_tau", log_tau)
    scale = jnp.sqrt(body_rows * jnp.exp(network.of_rows(log_tau)))
    weights = Weights(noise.body * scale[:, None], head)
    numpyro.deterministic("weights_body", weights.body)
    numpyro.deterministic("weights_head", weights.head)
    outputs = network.apply(weights, biases, data.x)
    numpyro.deterministic("outputs", outputs)
    with numpyro.handlers.scale(scale=1.0 / temperature):
        if model.classes:
            numpyro.sample("y", cast("Any", dist.Categorical(logits=outputs)), obs=data.y)
        else:
            numpyro.sample("y", dist.Normal(outputs[:, 0], jnp.exp(-0.5 * precision)), obs=data.y)


def sample_posterior(
    model: Model,
    data: Data,
    warmup: int = 500,
    draws: int = 500,
    chains: int = 2,
    seed: int = 0,
    progress: bool = False,
    temperature: float = 1.0,
) -> NutsDraws:
    """NUTS over the weights; for networks of at most 2000 of them.

    **Arguments**: a `Model` with one prior, standardised `Data`; `progress`, whether to show a bar;
    `temperature`, as in `network_program`.
    """
    if not temperature > 0.0:
        raise ValueError(f"temperature must be positive, got {temperature!r}")
    if model.network.weights > _LARGEST:
        raise ValueError(
            f"NUTS is a reference for networks of at most {_LARGEST} weights, got "
            f"{model.network.weights}; use a smaller width or variational inference"
        )
    if len(model.priors) != 1:
        raise ValueError(f"model must have one prior, got {len(model.priors)}")
    program = partial(network_program, temperature=temperature)
    arguments = model, data
    # Compile the start as one program: NumPyro would compile its operations one by one.
    potential = jax.jit(lambda position: potential_energy(program, arguments, {}, position))
    keys = jax.random.split(jax.random.key(seed), chains + 1)
    start, energy = jax.jit(jax.vmap(lambda key: _begun(key, program, arguments)))(keys[1:])
    if not np.all(np.isfinite(energy)):
        raise RuntimeError("no chain found a start with positive density; check the data")
    sampler = MCMC(
        NUTS(potential_fn=potential, target_accept_prob=0.9),
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized" if chains > 1 else "sequential",
        progress_bar=progress,
        postprocess_fn=lambda position: constrain_fn(
            program, arguments, {}, position, return_deterministic=True
        ),
    )
    sampler.run(keys[0], init_params=start if chains > 1 else jax.tree.map(lambda a: a[0], start))
    kept = sampler.get_samples()
    grouped = np.asarray(sampler.get_samples(group_by_chain=True)["outputs"])
    flat = grouped.reshape(*grouped.shape[:2], -1)
    rhats = [float(rank_normalised_rhat(flat[:, :, n])) for n in range(flat.shape[-1])]
    return NutsDraws(
        Weights(kept["weights_body"], kept["weights_head"]),
        Biases(kept["hidden_biases"], kept["output_biases"]),
        kept["log_tau"],
        kept["log_precision"],
        max(rhats),
        float(np.mean(sampler.get_extra_fields()["diverging"])),
        chains,
    )


def _begun(
    key: Array, program: Callable[..., None], arguments: tuple[Model, Data]
) -> tuple[dict[str, Array], Array]:
    """Start of a chain, and the potential energy there."""
    found = initialize_model(key, program, model_args=arguments).param_info
    return found.z, found.potential_energy


def _row_variances(name: str, rows: int, model: Model) -> Array:
    """`lambda_i^2` with its prior, moved on the log scale; ones without row scales."""
    if model.rows is None:
        return jnp.ones(rows)
    if isinstance(model.rows, InverseGammaRows):
        family: Any = dist.InverseGamma(model.rows.shape, model.rows.scale)
        return _sampled(f"row_variances_{name}", family.expand([rows]).to_event(1))
    family = dist.HalfCauchy(model.rows.scale)
    return _sampled(f"row_scales_{name}", family.expand([rows]).to_event(1)) ** 2


def _normal(name: str, shape: tuple[int, ...]) -> Array:
    return _sampled(name, dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape)))


def _sampled(name: str, family: Any) -> Array:
    return cast("Array", numpyro.sample(name, family))


def _fixed_noise(network: Network, noise_draws: int, seed: int, kind: Any) -> Array:
    shape = (noise_draws, network.layers, network.width, network.width)
    # Evaluated now, not traced: a sampler must not draw them at every step.
    with jax.ensure_compile_time_eval():
        return jax.random.normal(jax.random.key(seed), shape, kind)
