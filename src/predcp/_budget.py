"""A budget: one prior on the total divergence, split between the components of a model."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Array, Float
from numpyro.distributions import constraints

from predcp._diagnose import Diagnosis, diagnose, worse
from predcp._divergence_priors import DivergencePrior, as_divergence_prior
from predcp._maps import ScalarComplexity, SeparateComplexity, VectorComplexity
from predcp._numerics.inverse import invert, raise_without_root
from predcp._numerics.power_law import floating_range
from predcp._numerics.special import capped_exp
from predcp._prior import ComplexityPrior
from predcp._support.arrays import as_float
from predcp._support.check import require_positive, require_probability
from predcp._support.compiled import compiled

Total = Literal["sum", "together"]
# Fixed shares over which tails and quantiles are averaged: errors near 1e-4 in probability.
_POINTS = 4096
_STRETCHES = 400
# How far components are from adding up: draws, nats up to which, and the error that is a warning.
_DRAWS = 64
_LEVEL = 0.3
_MOST_ERROR = 0.15


@jax.tree_util.register_pytree_node_class
class Budget:
    """A total divergence and its split between components: `kappa ~ pi`, `shares ~ Dirichlet`.

    Component j gets `kappa_j = share_j kappa`. A tree of splits says which components compete: first
    the groups share the total, then the components of a group share what the group got.

    **Arguments**
    - `shares`: concentrations of the Dirichlet by name of the component, `{"site": 1.0, "year": 1.0}`. A
        pair in place of a number is a group, its concentration and its own shares:
        `{"noise": 1.0, "space": (2.0, {"site": 1.0, "region": 1.0})}`. Equal concentrations treat
        components alike; small ones (0.5) let few components spend most, large ones (5) all alike.
    - `pi`: prior on the total divergence, `LogCauchy(scale=1.0)`; or any positive NumPyro distribution.
    """

    def __init__(self, shares: Mapping[str, Any], pi: Any):
        self.pi: DivergencePrior = as_divergence_prior(pi)
        if self.pi.batch_shape:
            raise ValueError(f"pi must be one distribution, got batch shape {self.pi.batch_shape}")
        names: list[str] = []
        splits: list[Any] = []
        _read_splits("shares", shares, names, splits)
        if len(set(names)) < len(names):
            raise ValueError(f"shares must name each component once, got {names}")
        self.names = tuple(names)
        # Per split: the concentrations, and the places of the components under each part.
        self.splits: tuple[tuple[tuple[float, ...], tuple[tuple[int, ...], ...]], ...] = tuple(
            splits
        )

    def tree_flatten(self) -> Any:
        return (self.pi,), (self.names, self.splits)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        made = object.__new__(cls)
        made.pi, (made.names, made.splits) = children[0], aux_data
        return made

    def log_density_of_shares(self, log_kappa: Float[Array, "... components"]) -> Array:
        """Log density of the shares, as it enters that of the vector `log kappa`.

        Per split, `log Dirichlet(s) + sum_c log s_c`: the density of `log kappa` is this plus the log
        density of the log of the total.
        """
        total = jnp.zeros(log_kappa.shape[:-1], log_kappa.dtype)
        for concentrations, groups in self.splits:
            a = np.asarray(concentrations)
            parts = jnp.stack(
                [logsumexp(log_kappa[..., g], axis=-1) for g in map(list, groups)], -1
            )
            log_shares = parts - logsumexp(parts, axis=-1, keepdims=True)
            total += jnp.sum(a * log_shares, -1) + gammaln(a.sum()) - gammaln(a).sum()
        return total

    def sample_log_shares(
        self, key: Array, sample_shape: tuple[int, ...] = ()
    ) -> Float[Array, "... components"]:
        """Draws of the logs of the shares of all components."""
        logs = jnp.zeros((*sample_shape, len(self.names)))
        for concentrations, groups in self.splits:
            key, own = jax.random.split(key)
            a = jnp.asarray(concentrations, logs.dtype)
            logs = _shared_out(logs, jax.random.loggamma(own, a, (*sample_shape, a.size)), groups)
        return logs

    def points(self) -> tuple[Array, Array]:
        """Evenly spread log shares (4096, components), and levels of the total (4096,)."""
        from scipy.special import betaincinv, betaln
        from scipy.stats import qmc

        def log_part(a: float, b: float, u: np.ndarray) -> np.ndarray:
            """Log quantiles of a beta; where they underflow, P(part < x) = x^a / (a B(a, b))."""
            part, log_low = betaincinv(a, b, u), (np.log(a * u) + betaln(a, b)) / a
            return np.where(part > 1e-200, np.log(np.maximum(part, 1e-200)), log_low)

        count = sum(len(groups) - 1 for _, groups in self.splits)
        uniform = qmc.Sobol(count + 1, scramble=False).random(_POINTS) + 0.5 / _POINTS
        columns = iter(np.clip(uniform, 1e-12, 1.0 - 1e-12).T)
        logs = jnp.zeros((_POINTS, len(self.names)))
        for concentrations, groups in self.splits:
            left, parts = np.zeros(_POINTS), []
            for place, a in enumerate(concentrations[:-1]):
                rest, u = sum(concentrations[place + 1 :]), next(columns)
                parts.append(left + log_part(a, rest, u))
                left = left + log_part(rest, a, 1.0 - u)
            logs = _shared_out(logs, jnp.asarray(np.stack([*parts, left], -1)), groups)
        return logs, jnp.asarray(next(columns))


def _read_splits(where: str, shares: Any, names: list[str], splits: list[Any]) -> tuple[int, ...]:
    """Note the components and splits of one level and those below; the places of its components."""
    if not isinstance(shares, Mapping) or not shares:
        raise ValueError(
            f"{where} must map names to concentrations, or to pairs of a concentration and shares; "
            f"got {shares!r}"
        )
    concentrations, groups = [], []
    own = len(splits)
    for name, given in shares.items():
        place = f"{where}[{name!r}]"
        concentration, below = (
            given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        )
        if not isinstance(concentration, Real) or not 0.0 < float(concentration) < np.inf:
            raise ValueError(f"{place} must have a positive concentration, got {concentration!r}")
        concentrations.append(float(concentration))
        if below is None:
            names.append(str(name))
            groups.append((len(names) - 1,))
        else:
            groups.append(_read_splits(place, below, names, splits))
    if len(groups) > 1:
        splits.insert(own, (tuple(concentrations), tuple(groups)))
    return tuple(place for group in groups for place in group)


def _shared_out(logs: Array, log_amounts: Array, groups: Any) -> Array:
    """Multiply the components under each part of a split by that part's share."""
    log_shares = log_amounts - logsumexp(log_amounts, axis=-1, keepdims=True)
    for part, group in enumerate(groups):
        logs = logs.at[..., list(group)].add(log_shares[..., part, None])
    return logs


class BudgetPrior(dist.Distribution):
    """The prior of a vector of scales under a budget: `tau_j = D_j^-1(share_j kappa)`.

    A NumPyro distribution with the exact density of the vector. With `kappa_j = D_j(tau_j)` that add up
    to k, and shares `s_j = kappa_j / k`, it is
    `p(log tau) = p(log k) Dirichlet(s) prod_j s_j prod_j (d log kappa_j / d log tau_j)`.

    The divergences of components do not add up exactly. `diagnose` measures how far the divergence of
    the model with all components is from their sum. With `total="together"` kappa is that divergence
    itself: then `P(D(tau) > u)` is what pi says for any model, at the price of one more evaluation. It must
    grow as the sum does at fixed shares.

    A component with a finite supremum cannot spend more than that. pi is cut, given the shares, at the
    total at which the first component reaches its supremum, and renormalised: the shares keep
    their distribution, every vector of scales has positive density, and the mass is 1.

    **Arguments**
    - `budget`: shares and pi.
    - `complexity`: maps of one scale by name, or a `SeparateComplexity` or another map of as many scales as
        the budget has names, in that order.
    - `total`: "sum", or "together" where `complexity` has that function.
    - `log`: a distribution of `log tau` rather than tau; `log_scale()` sets it.
    """

    arg_constraints = {}
    pytree_data_fields = ("budget", "complexity")
    pytree_aux_fields = ("total", "log")

    def __init__(
        self,
        budget: Budget,
        complexity: Mapping[str, ScalarComplexity] | VectorComplexity,
        total: Total = "sum",
        log: bool = False,
    ):
        if not isinstance(budget, Budget):
            raise ValueError(f"budget must be a Budget, got {type(budget).__name__}")
        if isinstance(complexity, Mapping):
            if set(complexity) != set(budget.names):
                raise ValueError(
                    f"complexity must have a map for each name of the budget, {list(budget.names)}, "
                    f"got {list(complexity)}"
                )
            complexity = SeparateComplexity({name: complexity[name] for name in budget.names})
        if not isinstance(complexity, VectorComplexity):
            raise ValueError(
                f"complexity must be maps by name or a map of several scales, got "
                f"{type(complexity).__name__}"
            )
        if complexity.event_shape != (len(budget.names),):
            raise ValueError(
                f"complexity has {complexity.event_shape[0]} scales, the budget {len(budget.names)} names "
                f"{list(budget.names)}"
            )
        if complexity.bounded and not getattr(complexity, "separate_entries", False):
            raise ValueError(
                f"{type(complexity).__name__} is bounded and its suprema depend on the other scales; a "
                "budget needs a map whose entries are separate (OrderedComplexity.separate())"
            )
        if total not in ("sum", "together"):
            raise ValueError(f'total must be "sum" or "together", got {total!r}')
        if total == "together" and not hasattr(complexity, "together"):
            raise ValueError(
                f'total="together" needs the divergence of all components, which this '
                f"{type(complexity).__name__} does not have; give SeparateComplexity(maps, together=...)"
            )
        self.budget, self.complexity, self.total, self.log = budget, complexity, total, log
        super().__init__((), complexity.event_shape)

    @classmethod
    def from_tail(
        cls,
        family: type[DivergencePrior],
        shares: Mapping[str, Any],
        complexity: Mapping[str, ScalarComplexity] | VectorComplexity,
        upper: Any,
        probability: Any,
        total: Total = "sum",
        **other: Any,
    ) -> "BudgetPrior":
        """The prior with `P(total > upper) = probability`, truncation included.

        **Arguments**: as `ComplexityPrior.from_tail`, with the shares of a `Budget`.
        """
        upper = require_positive("upper", upper)
        probability = float(require_probability("probability", probability))
        pi = cast(Any, family).from_tail(upper=upper, probability=probability, **other)
        made = cls(Budget(shares, pi), complexity, total)
        if not made.complexity.bounded:
            return made
        caps = made.log_limits(made.budget.points()[0])

        def excess(stretch: Array) -> Array:
            return _mean_tail(pi.stretched(stretch), jnp.log(upper), caps) - probability

        grid = jnp.linspace(0.0, 30.0, _STRETCHES)
        reached = np.asarray(jax.lax.map(excess, grid)) >= 0.0
        if not reached.any():
            raise ValueError(
                f"probability {probability:.4g} cannot be had for upper {float(upper):.4g}: the "
                "components reach their suprema before; state a smaller upper or probability"
            )
        high = int(np.argmax(reached))
        low, high = grid[max(high - 1, 0)], grid[high]
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if excess(middle) >= 0.0 else (middle, high)
        return cls(Budget(shares, pi.stretched(high)), made.complexity, total)

    @property
    def support(self) -> constraints.Constraint:
        kind = constraints.real if self.log else constraints.positive
        return constraints.independent(kind, 1)

    @property
    def has_rsample(self) -> bool:
        return True

    def log_scale(self) -> "BudgetPrior":
        """The same prior as a distribution of `log tau`, the form for samplers."""
        return BudgetPrior(self.budget, self.complexity, self.total, log=True)

    def _log_together(self, log_tau: Array) -> Array:
        limit = floating_range(log_tau.dtype)
        return jnp.log(
            cast(Any, self.complexity).together(jnp.exp(jnp.clip(log_tau, -limit, limit)))
        )

    def log_caps(self, log_shares: Float[Array, "... components"]) -> Float[Array, "..."]:
        """Log of the largest total that these shares can spend; `inf` where nothing saturates."""
        if not self.complexity.bounded:
            return jnp.full(log_shares.shape[:-1], jnp.inf, log_shares.dtype)
        bound = self.complexity.log_supremum(jnp.zeros(self.event_shape, log_shares.dtype))
        return jnp.min(bound - log_shares, axis=-1)

    def log_limits(self, log_shares: Float[Array, "... components"]) -> Float[Array, "..."]:
        """Log of the largest total that these shares can have, of the kind that pi is about."""
        caps = self.log_caps(log_shares)
        if self.total == "sum" or not self.complexity.bounded:
            return caps
        bound = self.complexity.log_supremum(jnp.zeros(self.event_shape, log_shares.dtype))
        log_kappa = caps[..., None] + log_shares
        full = bound - log_kappa <= 1e-6
        log_tau = self.complexity.log_inverse(jnp.where(full, bound - 1.0, log_kappa))
        log_tau = jnp.where(full, floating_range(log_tau.dtype), log_tau)
        return jnp.vectorize(self._log_together, signature="(n)->()")(log_tau)

    def _spent(self, log_total: Array, log_shares: Array) -> Array:
        """Log scales at which the components spend their shares of a sum."""
        return self.complexity.log_inverse(log_total[..., None] + log_shares)

    @compiled()
    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        value = as_float(value)
        inside = jnp.ones(value.shape[:-1], bool) if self.log else jnp.all(value > 0.0, axis=-1)
        log_tau = value if self.log else jnp.log(jnp.where(inside[..., None], value, 1.0))
        log_kappa, log_elasticity = self.complexity.log_value_and_elasticity(log_tau)
        log_sum = logsumexp(log_kappa, axis=-1)
        density = self.budget.log_density_of_shares(log_kappa) + log_elasticity.sum(-1)
        if self.total == "sum":
            density += self.budget.pi.log_prob_log(log_sum)
        else:

            def along(log_tau: Array, speed: Array) -> tuple[Array, Array]:
                return jax.jvp(self._log_together, (log_tau,), (speed,))

            # Where the sum grows at fixed shares, log tau_j moves by one over the elasticity.
            rows = jnp.vectorize(along, signature="(n),(n)->(),()")
            log_total, rate = rows(log_tau, capped_exp(-log_elasticity))
            density += self.budget.pi.log_prob_log(log_total) + jnp.log(rate)
        if self.complexity.bounded:
            limits = self.log_limits(log_kappa - log_sum[..., None])
            density -= self.budget.pi.log_cdf_log(limits)
        density = density if self.log else density - log_tau.sum(-1)
        return jnp.where(inside, density, -jnp.inf)

    @raise_without_root()
    @compiled(2)
    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        key_shares, key_total = jax.random.split(key)
        log_shares = self.budget.sample_log_shares(key_shares, sample_shape)
        if self.complexity.bounded:
            tiny = jnp.finfo(log_shares.dtype).tiny
            uniform = jax.random.uniform(key_total, sample_shape, log_shares.dtype, minval=tiny)
            below = jnp.exp(self.budget.pi.log_cdf_log(self.log_limits(log_shares)))
            log_total = self.budget.pi.icdf_log(uniform * below)
        else:
            log_total = self.budget.pi.sample_log(key_total, sample_shape)
        log_tau = self._scales(log_total, log_shares)
        return log_tau if self.log else jnp.exp(log_tau)

    def _scales(self, log_total: Array, log_shares: Array) -> Array:
        """The log scales of a total and its shares."""
        if self.total == "sum":
            return self._spent(log_total, log_shares)

        def one(log_total: Array, log_shares: Array) -> Array:
            def evaluate(log_sum: Array) -> tuple[Array, Array]:
                value, rate = jax.jvp(
                    lambda u: self._log_together(self._spent(u, log_shares)),
                    (log_sum,),
                    (jnp.ones_like(log_sum),),
                )
                return value, jnp.log(rate)

            cap = self.log_caps(log_shares)
            unbounded = jnp.asarray(jnp.inf, log_total.dtype)
            start = jnp.minimum(log_total, cap - 0.1)[None]
            log_sum = invert(evaluate, log_total[None], start, unbounded)[0]
            return self._spent(log_sum, log_shares)

        return jnp.vectorize(one, signature="(),(n)->(n)")(log_total, log_shares)

    def quantile(self, q: Any) -> Float[Array, "... components"]:
        """Quantiles of each scale by itself, the last axis the components.

        Errors are below 1e-3 in probability (below 5e-3 with `total="together"`).
        """
        log_tau = _quantiles(self, require_probability("q", q), *self.budget.points())
        return log_tau if self.log else jnp.exp(log_tau)

    def diagnosis(self) -> Diagnosis:
        """What `diagnose` says: the components one by one, and how far all are from the budget."""
        found = diagnose(ComplexityPrior(self.budget.pi, self.complexity))
        whole = self.total == "together"
        verdict, errors = found.verdict, None
        said = "the total is the divergence of all components together" if whole else ""
        # The divergence that is the total is off by the error of its noise alone.
        known = [name for name in ("check", "together") if hasattr(self.complexity, name)]
        if known and (known[0] == "check" or not whole):
            low, median, high = errors = self._errors(known[0])
            said += "; with other noise it is" if whole else "with all components the divergence is"
            said += (
                f" {100 * low:+.1f}% to {100 * high:+.1f}% off the budget (median "
                f"{100 * median:+.1f}%) below {_LEVEL:g} nats"
            )
            if max(-low, high) > _MOST_ERROR:
                verdict = worse(verdict, "warn")
                cure = 'the components do not add up; total="together" states the budget for all of them'
                said += ": " + ("take more draws" if whole else cure)
        elif not whole:
            said = "how far components are from adding up is unknown: the map has no function `together`"
        return Diagnosis(verdict, (*found.reasons, said), found.entries, errors)

    def _errors(self, measure: str) -> tuple[float, float, float]:
        """Relative differences of the divergence of all components from the budget, at fixed draws."""
        log_shares, levels = (each[:_DRAWS] for each in self.budget.points())
        whole, log_total = _measured(self, log_shares, levels, measure)
        errors = np.asarray(whole, float) / np.exp(np.asarray(log_total, float)) - 1.0
        return float(errors.min()), float(np.median(errors)), float(errors.max())

    def tail(self, upper: Any) -> Float[Array, ""]:
        """P(total > upper), truncation included."""
        caps = self.log_limits(self.budget.points()[0])
        return _mean_tail(self.budget.pi, jnp.log(require_positive("upper", upper)), caps)


@compiled(3)
def _measured(prior: BudgetPrior, log_shares: Array, levels: Array, name: str) -> tuple[Any, Array]:
    """The divergence of all components at totals below a third of a nat, and those totals."""
    caps = jnp.minimum(prior.log_limits(log_shares), math.log(_LEVEL))
    pi = prior.budget.pi
    log_total = pi.icdf_log(levels * jnp.exp(pi.log_cdf_log(caps)))
    tau = jnp.exp(prior._scales(log_total, log_shares))
    return jax.lax.map(getattr(prior.complexity, name), tau), log_total


@compiled()
def _quantiles(prior: BudgetPrior, q: Array, log_shares: Array, levels: Array) -> Array:
    """Quantiles of the log scales, the shares averaged over given points."""
    if prior.total == "together":
        below = jnp.exp(prior.budget.pi.log_cdf_log(prior.log_limits(log_shares)))
        log_total = prior.budget.pi.icdf_log(levels * below)
        return jnp.quantile(prior._scales(log_total, log_shares), q, axis=0)
    pi, caps = prior.budget.pi, prior.log_caps(log_shares)[:, None]
    log_mass = pi.log_cdf_log(caps)

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        below = pi.log_cdf_log(jnp.minimum(middle[..., None, :] - log_shares, caps)) - log_mass
        under = jnp.mean(jnp.exp(below), axis=-2) < q[..., None]
        return jnp.where(under, middle, low), jnp.where(under, high, middle)

    # Between quantiles of the total that are far out and as far below them as shares are small.
    ends = pi.icdf_log(0.5 * q), pi.icdf_log(0.5 + 0.5 * q)
    shape = (*q.shape, log_shares.shape[-1])
    low = jnp.broadcast_to(ends[0][..., None] + jnp.min(log_shares, axis=0), shape)
    high = jnp.broadcast_to(ends[1][..., None], shape)
    log_kappa, _ = jax.lax.fori_loop(0, 48, halve, (low, high))
    return prior.complexity.log_inverse(log_kappa)


def _mean_tail(pi: DivergencePrior, log_upper: Array, caps: Array) -> Array:
    """P(total > upper) with pi cut at each cap, averaged over the caps."""
    return jnp.mean(jnp.exp(pi.log_tail_below(log_upper, caps)))
