"""The abstract prior on a divergence, given through `log kappa`."""

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions import constraints
from numpyro.distributions.util import promote_shapes

from predcp._numerics.inverse import invert, is_probability, raise_without_root
from predcp._support.arrays import as_float
from predcp._support.check import require_positive, require_probability
from predcp._support.compiled import compiled
from predcp._support.constructed import Constructed


class DivergencePrior(dist.Distribution, metaclass=Constructed):
    """A distribution of a divergence `kappa > 0`, given through `log kappa`.

    Subclasses implement the four `*_log` methods; `log_prob`, `cdf`, `icdf` and `sample` follow.
    """

    support = constraints.positive  # type: ignore[assignment]

    def __init__(self, **parameters: Array):
        promoted = promote_shapes(*parameters.values())
        for name, value in zip(parameters, promoted):
            setattr(self, name, value)
        batch_shape = jnp.broadcast_shapes(*(jnp.shape(value) for value in parameters.values()))
        super().__init__(batch_shape=batch_shape, event_shape=())

    @property
    def has_rsample(self) -> bool:
        return True

    def spread(self, shape: tuple[int, ...]) -> dict[str, Array]:
        """The parameters, each broadcast to a shape."""
        return {name: jnp.broadcast_to(value, shape) for name, value in self.get_args().items()}

    def with_parameters(self, parameters: dict[str, Array]) -> Self:
        """The same family with other parameters, unchecked."""
        made = type(self).__new__(type(self))
        DivergencePrior.__init__(made, **parameters)
        return made

    def stretched(self, log_factor: Float[Array, "..."]) -> Self:
        """The distribution of `exp(log_factor) * kappa`, in the same family."""
        raise NotImplementedError

    def log_prob_log(self, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log density of `log kappa` (not of kappa)."""
        raise NotImplementedError

    def log_cdf_log(self, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log of P(kappa <= exp(log_kappa)), accurate in the lower tail."""
        raise NotImplementedError

    def log_survival_log(self, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log of P(kappa > exp(log_kappa)), accurate in the upper tail."""
        raise NotImplementedError

    def log_tail_below(
        self, log_kappa: Float[Array, "..."], log_supremum: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """Log of P(kappa > exp(log_kappa) | kappa < exp(log_supremum)), accurate in both tails."""
        below, whole = self.log_cdf_log(log_kappa), self.log_cdf_log(log_supremum)
        above, beyond = self.log_survival_log(log_kappa), self.log_survival_log(log_supremum)
        small = above < -0.7
        # The log of the share that truncation leaves; both tails may have underflowed.
        left = jnp.where(jnp.isneginf(beyond), -jnp.inf, beyond - above)
        left = jnp.minimum(jnp.where(small, left, below - whole), 0.0)
        return jnp.where(small, above - whole, 0.0) + jnp.log(-jnp.expm1(left))

    def icdf_log(self, q: Float[Array, "..."]) -> Float[Array, "..."]:
        """The log of the quantile of kappa at `q`."""
        raise NotImplementedError

    def sample_log(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
        """Draws of `log kappa`, differentiable with respect to the parameters."""
        dtype = jnp.result_type(float, *self.get_args().values())
        uniform = jax.random.uniform(
            key, self.shape(sample_shape), dtype, minval=jnp.finfo(dtype).tiny
        )
        return self.icdf_log(uniform)

    @compiled()
    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        kappa = as_float(value)
        log_kappa = jnp.log(kappa)
        inside = kappa > 0.0
        density = self.log_prob_log(jnp.where(inside, log_kappa, 0.0)) - log_kappa
        return jnp.where(inside, density, -jnp.inf)

    @compiled()
    def cdf(self, value: Any) -> Array:
        kappa = as_float(value)
        inside = kappa > 0.0
        return jnp.where(
            inside, jnp.exp(self.log_cdf_log(jnp.log(jnp.where(inside, kappa, 1.0)))), 0.0
        )

    @raise_without_root(is_probability)
    @compiled()
    def icdf(self, q: Any) -> Array:
        return jnp.exp(self.icdf_log(as_float(q)))

    @compiled(2)
    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        return jnp.exp(self.sample_log(key, sample_shape))


@jax.custom_jvp
def with_implicit_derivative(pi: DivergencePrior, log_kappa: Array) -> Array:
    """The draws unchanged, with derivatives in the parameters that keep their cdf fixed."""
    return log_kappa


@with_implicit_derivative.defjvp
def _implicit_derivative(primals, tangents):
    pi, log_kappa = primals
    _, change = jax.jvp(lambda moved: jnp.exp(moved.log_cdf_log(log_kappa)), (pi,), (tangents[0],))
    return log_kappa, -change * jnp.exp(-pi.log_prob_log(log_kappa))


def quantile_log(pi: DivergencePrior, q: Array, start: Array) -> Array:
    """The quantile by inverting the cdf, an increasing map of log kappa bounded by 1."""
    shape = jnp.broadcast_shapes(jnp.shape(q), jnp.shape(start), pi.batch_shape)
    dtype = jnp.result_type(float, q, start)
    log_q, start = (
        jnp.broadcast_to(part, shape).reshape(-1).astype(dtype) for part in (jnp.log(q), start)
    )

    def quantiles(single, log_q, start):
        def evaluate(log_kappa):
            log_cdf = single.log_cdf_log(log_kappa)
            return log_cdf, single.log_prob_log(log_kappa) - log_cdf

        return invert(evaluate, log_q, start, jnp.zeros((), dtype))

    if not pi.batch_shape:
        return quantiles(pi, log_q, start).reshape(shape)
    # Parameters travel with their quantile: a batch of cdfs is inverted in lock-step.
    spread = {name: value.reshape(-1) for name, value in pi.spread(shape).items()}

    def one(log_q, start, parameters):
        return quantiles(pi.with_parameters(parameters), log_q[None], start[None])[0]

    return jax.vmap(one)(log_q, start, spread).reshape(shape)


@compiled()
def upper_quantile_log(pi: DivergencePrior, probability: Array) -> Array:
    """Log of the divergence exceeded with a given probability, however small."""
    log_kappa = pi.icdf_log(1.0 - probability)
    # 1 - p has lost digits of a small p: two Newton steps on the survival function restore them.
    for _ in range(2):
        log_survival = pi.log_survival_log(log_kappa)
        hazard = jnp.exp(pi.log_prob_log(log_kappa) - log_survival)
        log_kappa = log_kappa + (log_survival - jnp.log(probability)) / hazard
    return log_kappa


def require_tail(upper: Any, probability: Any) -> tuple[Array, Array]:
    return require_positive("upper", upper), require_probability("probability", probability)
