"""kappa of every module of a network in one pass: a fast form of `predcp.ModularComplexity`.

The tests compare the two maps, module by module. This one is faster: hidden
states below a module are those of phi and are computed once; all modules pass through the rest of
the network side by side, with their velocities, in one product with phi's weights; and the
displacement of the weights costs one product with the noise.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, Key

from predcp._divergences import Member, kl, log_mean_and_elasticity
from predcp._maps import Complexity
from predcp._numerics.inverse import Evaluate, invert
from predcp._numerics.power_law import extrapolated, floating_range
from predcp.fewshot._convolution import rounding
from predcp.fewshot._networks import Modules, Network

# Standard deviation, in units of the weights, at which a module is pure noise.
_FAR = 1e6


class ChainComplexity(Complexity):
    """Divergence of predictions with one module at `N(phi_m, tau_m I)` from those at phi.

    `kappa_m = mean_s mean_n KL[p(y_n | phi + sqrt(tau_m) xi_s in m) || p(y_n | phi)]` (appendix D).
    A batch of independent maps, one per module in the order of `network.module_names`, all
    evaluated in one pass. `tau_m` is a **variance**.

    **Arguments**
    - `network`: a chain of modules that ends in class scores.
    - `theta`: phi; `shared`: the affine part of the normalisation.
    - `x`: prepared inputs, (N, ...), normalised together.
    - `noise`: standard normal noise of the structure of phi, each leaf with a leading axis of draws.
    """

    unit = "variance"
    bounded = True

    def __init__(
        self,
        network: Network,
        theta: Modules,
        shared: Modules,
        x: Float[Array, "n ..."],
        noise: Modules,
    ):
        self.network = network
        self.theta, self.shared = theta, shared
        self.x, self.noise = x, noise

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return (len(self.network.module_names),)

    def _value_and_elasticity(self, log_tau):
        evaluate = extrapolated(
            partial(self._evaluate, self.network.module_names), floating_range(log_tau.dtype)
        )
        log_tau = jnp.broadcast_to(log_tau, self.forward_shape(log_tau.shape))
        if log_tau.ndim == 1:
            return evaluate(log_tau)
        found = jax.lax.map(evaluate, log_tau.reshape(-1, log_tau.shape[-1]))
        return jax.tree.map(lambda leaf: leaf.reshape(log_tau.shape), found)

    def _supremum_at(self, log_tau):
        bound = self._log_supremum(log_tau.dtype)
        return jnp.broadcast_to(bound, self.forward_shape(log_tau.shape))

    def log_inverse_of(self, inputs: Any, log_kappa: Any) -> Array:
        first = jax.tree.leaves(inputs)[0]
        bounds = self._log_supremum(first.dtype)
        shape = self.forward_shape(first.shape)
        targets = jnp.broadcast_to(log_kappa(inputs, jnp.broadcast_to(bounds, shape)), shape)
        roots = []
        for place, name in enumerate(self.network.module_names):
            own = targets[..., place].reshape(-1)
            evaluate = self._module(name, targets.dtype)
            roots.append(invert(evaluate, own, jnp.zeros_like(own), bounds[place]))
        return jnp.stack(roots, axis=-1).reshape(shape)

    def _module(self, name: str, dtype: jnp.dtype) -> Evaluate:
        """The map of one module's scale."""

        def evaluate(log_tau):
            log_kappa, log_elasticity = self._evaluate((name,), log_tau[None])
            return log_kappa[0], log_elasticity[0]

        return extrapolated(evaluate, floating_range(dtype))

    def _evaluate(
        self, names: tuple[str, ...], log_tau: Float[Array, " moved"]
    ) -> tuple[Float[Array, " moved"], Float[Array, " moved"]]:
        """`log kappa` and log elasticity of the named modules, each moved by itself."""
        logits, speed = self._moved(names, jnp.exp(0.5 * log_tau))
        reference = logits[0]
        difference, speed = self._by_module(names, logits[1:] - reference, speed)
        # Near phi predictions move in proportion to sigma, so twice their derivative in log tau is the
        # step: exact to first order, and with all digits where the difference of two passes loses them.
        linear = 2.0 * speed
        size = jnp.maximum(
            jnp.abs(linear).max((1, 2, 3), keepdims=True),
            jnp.abs(difference).max((1, 2, 3), keepdims=True),
        )
        relative = math.sqrt(rounding(self.network.precision, logits.dtype))
        shift = jnp.where(size < relative * jnp.abs(reference).max(), linear, difference)
        return _divergence(reference, shift, speed)

    def _log_supremum(self, dtype: jnp.dtype) -> Float[Array, " modules"]:
        """Limit of each `log kappa` as its scale grows."""
        names = self.network.module_names
        logits, _ = self._moved(names, jnp.full(len(names), _FAR, dtype))
        (gap,) = self._by_module(names, logits[1:] - logits[0])
        return _divergence(logits[0], gap, gap)[0]

    def _by_module(self, names: tuple[str, ...], *rows: Array) -> list[Float[Array, "m s n ways"]]:
        """Rows of modules and draws with an axis for each."""
        draws = jax.tree.leaves(self.noise)[0].shape[0]
        return [each.reshape(len(names), draws, *each.shape[1:]) for each in rows]

    def _moved(
        self, names: tuple[str, ...], sigma: Float[Array, " moved"]
    ) -> tuple[Float[Array, "copies n ways"], Float[Array, "rows n ways"]]:
        """Logits at phi, then with each named module moved by each draw; d / d log tau of the latter."""
        network = self.network
        scales = dict(zip(names, sigma))
        h = self.x[None]
        velocity = h[:0]
        for name in network.module_names:
            own = self.theta[name]
            copies = h.shape[0]
            both = jnp.concatenate([h, velocity])
            features = network.features(name, both.reshape(-1, *both.shape[2:]))
            features = features.reshape(*both.shape[:2], *features.shape[1:])
            product = network.product(name, own["weight"], features)
            z, carried = product[:copies] + own["bias"].astype(product.dtype), product[copies:]
            speed = jnp.concatenate([jnp.zeros_like(z[:1]), carried])
            if name in scales:
                # phi's product is known; the displacement's is linear in sigma, its derivative half of it.
                displaced = partial(_displacement, network, name, features[0])
                step = jax.vmap(displaced)(self.noise[name]) * scales[name].astype(product.dtype)
                z = jnp.concatenate([z, z[:1] + step])
                speed = jnp.concatenate([speed, 0.5 * step])
            passed = jax.vmap(partial(network.outgoing, name, self.shared.get(name, {})))
            h, along = jax.jvp(passed, (z,), (speed,))
            velocity = along[1:]
        return h.astype(sigma.dtype), velocity.astype(sigma.dtype)


def module_noise(key: Key[Array, ""], theta: Modules, noise_draws: int) -> Modules:
    """Standard normal noise for every module, each leaf with a leading axis of draws."""
    leaves, structure = jax.tree.flatten(theta)
    sizes = [leaf.size for leaf in leaves]
    # One call of the generator for all: on a GPU the number of calls matters, not that of draws.
    flat = jax.random.normal(key, (noise_draws, sum(sizes)), leaves[0].dtype)
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes) - 1)]
    parts = jnp.split(flat, ends, axis=1)
    noise = [part.reshape(noise_draws, *leaf.shape) for part, leaf in zip(parts, leaves)]
    return jax.tree.unflatten(structure, noise)


def _displacement(
    network: Network, name: str, features: Float[Array, "n ... k"], noise: dict[str, Array]
) -> Float[Array, "n ... o"]:
    """Change of a module's product by one draw of its noise, at scale 1."""
    product = network.product(name, noise["weight"], features)
    return product + noise["bias"].astype(product.dtype)


def _divergence(
    reference: Float[Array, "n ways"],
    shift: Float[Array, "m s n ways"],
    speed: Float[Array, "m s n ways"],
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Log of the mean divergence and of its elasticity, for each module."""
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
