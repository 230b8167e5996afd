"""kappa of every module in one pass: `ModularComplexity` for a chain of modules, made to be fast.

The map is the core's, module by module; the tests hold the two against each other. What differs is
the work: hidden states below a module are those of phi and are computed once; all modules travel
through the rest of the network side by side, with their velocities, in one product with phi's weights;
and the weights' own displacement costs one product with the noise.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, Key

from predcp._divergences import Member, kl, log_mean_and_elasticity
from predcp.fewshot._convolution import rounding
from predcp.fewshot._networks import Modules, Network

# Where a module is all noise, in units of its weights: what the supremum is read off.
_FAR = 1e6


class ModuleKappa(NamedTuple):
    """`log kappa` and `log (d log kappa / d log tau)` of every module; `log_supremum` if asked for."""

    log_kappa: Float[Array, " modules"]
    log_elasticity: Float[Array, " modules"]
    log_supremum: Float[Array, " modules"] | None


def module_draws(key: Key[Array, ""], theta: Modules, draws: int) -> Modules:
    """Standard normal noise for every module, each leaf with a leading axis of draws."""
    leaves, structure = jax.tree.flatten(theta)
    sizes = [leaf.size for leaf in leaves]
    # One call of the generator for all of them: a GPU counts programs, not numbers.
    flat = jax.random.normal(key, (draws, sum(sizes)), leaves[0].dtype)
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes) - 1)]
    parts = jnp.split(flat, ends, axis=1)
    noise = [part.reshape(draws, *leaf.shape) for part, leaf in zip(parts, leaves)]
    return jax.tree.unflatten(structure, noise)


def module_kappa(
    network: Network,
    theta: Modules,
    shared: Modules,
    log_sigma: Float[Array, " modules"],
    x: Float[Array, "n ..."],
    draws: Modules,
    supremum: bool = False,
) -> ModuleKappa:
    """Expected divergence of predictions with one module at `N(phi_m, tau_m I)` from those at phi.

    `kappa_m = mean_s mean_n KL[p(y_n | phi + sigma_m xi_s in m) || p(y_n | phi)]` (appendix D).

    **Arguments**
    - `theta`: phi. `x`: prepared inputs of all tasks, normalised together.
    - `draws`: standard normal noise, of the structure of phi with a leading axis.
    - `supremum`: also the limit of each kappa as its scale grows.
    """
    count = jax.tree.leaves(draws)[0].shape[0]

    moved, speed = _staged(network, theta, shared, jnp.exp(log_sigma), x, draws)
    shape = (len(network.module_names), count, *moved.shape[1:])
    reference = moved[0]
    difference = (moved[1:] - reference).reshape(shape)
    speed = speed.reshape(shape)
    # Predictions move as sigma near phi, so twice their speed in log tau is the step itself: exact
    # to first order, and with all its digits where the difference of two passes has lost them.
    linear = 2.0 * speed
    size = jnp.maximum(
        jnp.abs(linear).max((1, 2, 3), keepdims=True),
        jnp.abs(difference).max((1, 2, 3), keepdims=True),
    )
    threshold = math.sqrt(rounding(network.precision, moved.dtype)) * jnp.abs(reference).max()
    shift = jnp.where(size < threshold, linear, difference)
    log_kappa, log_elasticity = _divergence(reference, shift, speed)
    log_supremum = None
    if supremum:
        far = jnp.full_like(log_sigma, _FAR)
        ends, _ = _staged(network, theta, shared, far, x, draws)
        gap = (ends[1:] - ends[0]).reshape(shape)
        log_supremum = _divergence(reference, gap, gap)[0]
    return ModuleKappa(log_kappa, log_elasticity, log_supremum)


def _staged(
    network: Network,
    theta: Modules,
    shared: Modules,
    sigma: Float[Array, " modules"],
    x: Array,
    draws: Modules,
) -> tuple[Float[Array, "copies n ways"], Float[Array, "moved n ways"]]:
    """Logits at phi, then with each module moved in turn by each draw; and d / d log tau of the latter."""
    h = x[None]
    velocity = h[:0]
    for name, own_sigma in zip(network.module_names, sigma):
        own, noise = theta[name], draws[name]
        copies = h.shape[0]
        both = jnp.concatenate([h, velocity])
        features = network.features(name, both.reshape(-1, *both.shape[2:]))
        features = features.reshape(*both.shape[:2], *features.shape[1:])
        product = network.product(name, own["weight"], features)
        still, carried = product[:copies] + own["bias"].astype(product.dtype), product[copies:]
        # phi's product is known; the displacement's is linear in sigma, half of it per log tau.
        displaced = partial(_displacement, network, name, features[0])
        step = jax.vmap(displaced)(noise) * own_sigma.astype(product.dtype)
        z = jnp.concatenate([still, still[:1] + step])
        speed = jnp.concatenate([jnp.zeros_like(still[:1]), carried, 0.5 * step])
        passed = jax.vmap(partial(network.outgoing, name, shared.get(name, {})))
        h, along = jax.jvp(passed, (z,), (speed,))
        velocity = along[1:]
    return h.astype(sigma.dtype), velocity.astype(sigma.dtype)


def _displacement(
    network: Network, name: str, features: Float[Array, "n ... k"], noise: dict[str, Array]
) -> Float[Array, "n ... o"]:
    """What one draw of a module's noise adds to its product, before its scale."""
    product = network.product(name, noise["weight"], features)
    return product + noise["bias"].astype(product.dtype)


def _divergence(reference: Array, shift: Array, speed: Array) -> tuple[Array, Array]:
    """Log of the mean divergence and of its elasticity, one a module."""
    start = {"logits": reference}
    member = Member(dist.Categorical, start, reference.shape[:-1], 1)

    def one(shift: Array, speed: Array) -> tuple[Array, Array]:
        largest = jnp.abs(shift).max()
        unit = jax.lax.stop_gradient(jnp.where(largest > 0.0, largest, 1.0))
        return log_mean_and_elasticity(
            kl,
            [member],
            [start],
            [{"logits": shift / unit}],
            [jnp.log(unit)],
            [{"logits": speed / unit}],
        )

    return jax.vmap(one)(shift, speed)
