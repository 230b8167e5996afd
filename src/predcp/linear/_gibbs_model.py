"""The model that the Gibbs sampler samples: its state, densities and sites."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from predcp.linear._coefficient_prior import GlobalLocalPrior, Setting, typical_log_tau
from predcp.linear._target import Target

_STANDARD = dist.Normal(0.0, 1.0)


class GibbsState(NamedTuple):
    """The state of a chain; `alpha` and `log_sigma` stay at 0 in a model without them.

    `direction` is `lambda xi` and `beta = tau direction`: no tau can push it out of floating point.
    `kept` is what a sweep need not read again from the design; `setting`, see `Moves`, where it is
    chosen during warm-up.
    """

    key: Array
    direction: Float[Array, " columns"]
    alpha: Float[Array, ""]
    local_scales: Float[Array, " columns"]
    log_tau: Float[Array, ""]
    log_sigma: Float[Array, ""]
    kept: Any = None
    setting: Any = None


@dataclass(frozen=True)
class GibbsModel:
    """`y ~ Bernoulli(logistic(x beta + alpha))` or a normal, `beta_d = tau lambda_d xi_d`.

    **Arguments**
    - `intercept_variance`: of alpha's prior; 0 without an intercept.
    - `noise_floor`: of a normal response, see `linear_regression`.
    - `weighted`: whether the third array of the data holds weights of the rows.
    """

    prior: GlobalLocalPrior
    logistic: bool
    intercept_variance: float
    noise_floor: float
    weighted: bool

    @classmethod
    def of(cls, target: Target) -> "GibbsModel":
        """Recognise the model by running it once."""
        prior = target.options.get("prior")
        if not isinstance(prior, GlobalLocalPrior):
            raise ValueError(
                "inference='gibbs' needs half-Cauchy local scales and one scale tau, as the priors "
                f"'half-cauchy', 'ecp' and 'predcp' have, got prior {prior!r}; use inference='nuts'"
            )
        trace: dict[str, Any] = {}

        def look(*data: Any) -> None:
            # Only the kinds of sites matter; to draw tau its prior would have to be inverted.
            seeded = numpyro.handlers.seed(target.model, jax.random.key(0))
            trace.update(numpyro.handlers.trace(seeded).get_trace(*data, **target.options))
            observed = trace["y"]["fn"]
            if not isinstance(observed, dist.BernoulliLogits | dist.Normal):
                several = isinstance(observed, dist.CategoricalLogits)
                given = "more classes" if several else f"outcomes {type(observed).__name__}"
                raise ValueError(
                    "inference='gibbs' needs a linear regression or two classes, got "
                    f"{given}; use inference='nuts'"
                )
            if "alpha" in trace:
                with jax.ensure_compile_time_eval():
                    trace["variance"] = float(trace["alpha"]["fn"].scale) ** 2

        jax.eval_shape(look, *target.first_problem)
        logistic = isinstance(trace["y"]["fn"], dist.BernoulliLogits)
        weighted = trace["y"]["scale"] is not None
        if logistic and weighted:
            raise ValueError(
                "inference='gibbs' takes no sample weights for two classes; use inference='nuts'"
            )
        floor = float(target.options.get("noise_floor", 0.0))
        return cls(prior, logistic, trace.get("variance", 0.0), floor, weighted)

    def start(self, key: Array, data: tuple[Any, ...]) -> GibbsState:
        """Coefficients 0, local scales near 1, tau near `typical_log_tau`."""
        x = data[0]
        key, key_scales, key_tau = jax.random.split(key, 3)
        columns, kind = x.shape[1], x.dtype
        zero = jnp.zeros((), kind)
        return GibbsState(
            key,
            jnp.zeros(columns, kind),
            zero,
            jnp.exp(jax.random.uniform(key_scales, (columns,), kind, -1.0, 1.0)),
            typical_log_tau(columns) + jax.random.uniform(key_tau, (), kind, -1.0, 1.0),
            zero,
        )

    def log_prior(
        self, x: Array, local_scales: Array, sums: Array, log_sigma: Array
    ) -> Callable[[Array], Array]:
        """The log density of `log tau` given the local scales and the prior's `sums` under them."""
        setting = self._setting(x, log_sigma)
        return cast(Any, self.prior.log_scale_of_sums(setting, local_scales, sums)).log_prob

    def _setting(self, x: Array, log_sigma: Array) -> Setting:
        noise = 1.0 if self.logistic else jnp.exp(log_sigma)
        return Setting(x, "bernoulli" if self.logistic else "normal", 1, noise)

    def log_likelihood(self, eta: Array, log_sigma: Array, data: tuple[Any, ...]) -> Array:
        """Log likelihood of the outcomes given the linear predictor `(..., rows)`."""
        y = data[1]
        if self.logistic:
            right = jnp.where(y == 1, eta, -eta)
            # log_sigmoid also checks for NaN and takes twice as long.
            return jnp.sum(jnp.minimum(right, 0.0) - jnp.log1p(jnp.exp(-jnp.abs(right))), axis=-1)
        precision = self.precision(log_sigma) * self.row_weights(data)
        white = _STANDARD.log_prob((y - eta) * jnp.sqrt(precision))
        return jnp.sum(white + 0.5 * jnp.log(precision), axis=-1)

    def precision(self, log_sigma: Array) -> Array:
        """Precision of a normal response with weight 1."""
        return jnp.hypot(jnp.exp(log_sigma), self.noise_floor) ** -2

    def row_weights(self, data: tuple[Any, ...]) -> Float[Array, " rows"]:
        """Weight of each row of a normal response."""
        x = data[0]
        return data[2].astype(x.dtype) if self.weighted else jnp.ones(x.shape[0], x.dtype)

    def log_density(
        self, state: GibbsState, fit: Array, sums: Array, data: tuple[Any, ...]
    ) -> Array:
        """Log density of the outcomes and of xi, `log lambda`, `log tau`, alpha and `log sigma`.

        **Arguments**: `fit`, design times direction; `sums` of the prior.
        """
        eta = jnp.exp(state.log_tau) * fit + state.alpha
        total = self.log_likelihood(eta, state.log_sigma, data)
        if not self.logistic:
            noise = dist.HalfNormal(1.0).log_prob(jnp.exp(state.log_sigma))
            total = total + noise + state.log_sigma
        log_scales = jnp.log(state.local_scales)
        log_prior = self.log_prior(data[0], state.local_scales, sums, state.log_sigma)
        total = total + log_prior(state.log_tau)
        # The half-Cauchy of a scale, on its logarithm, up to a constant.
        total = total - jnp.sum(jnp.logaddexp(log_scales, -log_scales))
        total = total + jnp.sum(_STANDARD.log_prob(state.direction / state.local_scales))
        if self.intercept_variance:
            total = total - 0.5 * state.alpha**2 / self.intercept_variance
        return total

    def sites(self, state: GibbsState) -> dict[str, Array]:
        """Values of the sites, by their names in the NumPyro program."""
        sites = {
            "lambda": state.local_scales,
            "log_tau": state.log_tau,
            "tau": jnp.exp(state.log_tau),
            "xi": state.direction / state.local_scales,
            "beta": jnp.exp(state.log_tau) * state.direction,
        }
        if self.intercept_variance:
            sites["alpha"] = state.alpha
        if not self.logistic:
            sites["sigma"] = jnp.exp(state.log_sigma)
        return sites
