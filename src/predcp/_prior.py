"""The prior on a scale: a prior on the divergence pulled back through a complexity map."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import constraints

from predcp._divergence_priors import DivergencePrior, as_divergence_prior, with_truncated_tail
from predcp._exports import inla_table, stan_functions
from predcp._maps import Complexity, TabulatedComplexity
from predcp._numerics.inverse import is_probability, raise_without_root
from predcp._support.arrays import as_float
from predcp._support.check import known, require_positive, require_probability
from predcp._support.compiled import compiled
from predcp._support.constructed import Constructed
from predcp._version import __version__


class LogScalePrior(dist.Distribution, metaclass=Constructed):
    """A complexity prior as a distribution of `log tau` on the whole line, the form samplers use.

    `log p(log tau) = log pi(log kappa) + log |d log kappa / d log tau|`, less the log of the mass
    of pi below the supremum. It stays within floating point for any scale.

    **Arguments**: as `ComplexityPrior`.
    """

    arg_constraints = {}
    pytree_data_fields = ("pi", "complexity")
    pytree_aux_fields = ("truncate",)

    def __init__(self, pi: Any, complexity: Complexity, truncate: bool = True):
        if not isinstance(complexity, Complexity):
            raise ValueError(
                "complexity must be one of predcp's maps (LinearEvidence, PredictiveComplexity, "
                f"...), got {type(complexity).__name__}"
            )
        if complexity.signed:
            raise ValueError(
                f"{type(complexity).__name__} is a map of the whole line: its prior has no form on "
                "a log scale; use ComplexityPrior itself"
            )
        self.pi: DivergencePrior = as_divergence_prior(pi)
        self.complexity = complexity
        self.truncate = truncate
        batch_shape, event_shape = _shapes(self.pi, complexity)
        super().__init__(batch_shape, event_shape)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.real_vector if self.complexity.event_dim else constraints.real

    @property
    def has_rsample(self) -> bool:
        return True

    @property
    def truncated(self) -> bool:
        """Whether pi is cut at the supremum of the complexity."""
        return self.truncate and self.complexity.bounded

    def log_mass(self, log_tau: Array) -> Array | float:
        """Log of the mass of pi below the supremum of the map; 0 where pi is not truncated."""
        if not self.truncated:
            return 0.0
        return self.pi.log_cdf_log(self.complexity.log_supremum(log_tau))

    @compiled()
    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        log_tau = as_float(value)
        log_kappa, log_elasticity = self.complexity.log_value_and_elasticity(log_tau)
        density = self.pi.log_prob_log(log_kappa) + log_elasticity
        density = density - self.log_mass(log_tau)
        return density.sum(-1) if self.complexity.event_dim else density

    def divergence_log_prob(self, value: Any) -> Array:
        """`log pi(kappa)` at kappa = D(tau), entry by entry; without truncation and Jacobian."""
        log_kappa, _ = self.complexity.log_value_and_elasticity(as_float(value))
        # A density of log kappa is that of kappa times kappa.
        return self.pi.log_prob_log(log_kappa) - log_kappa

    @compiled()
    def log_cdf(self, value: Any) -> Array:
        """Log of the cdf; for a vector, one conditional cdf per entry (given those below it)."""
        log_tau = as_float(value)
        log_kappa, _ = self.complexity.log_value_and_elasticity(log_tau)
        # Rounding may put D slightly above its supremum.
        return jnp.minimum(self.pi.log_cdf_log(log_kappa) - self.log_mass(log_tau), 0.0)

    def cdf(self, value: Any) -> Array:
        return jnp.exp(self.log_cdf(value))

    @compiled()
    def survival(self, value: Any) -> Array:
        """P(log tau > value), accurate in the upper tail; for a vector, one value per entry."""
        log_tau = as_float(value)
        log_kappa, _ = self.complexity.log_value_and_elasticity(log_tau)
        if not self.truncated:
            return jnp.exp(self.pi.log_survival_log(log_kappa))
        bound = self.complexity.log_supremum(log_tau)
        return jnp.exp(self.pi.log_tail_below(log_kappa, bound))

    @raise_without_root(is_probability)
    @compiled()
    def icdf(self, q: Any) -> Array:
        shape = jnp.broadcast_shapes(jnp.shape(q), self.shape())
        # Each entry of a vector has its own supremum, so pi's parameters are passed entry by entry.
        parameters = self.pi.spread(shape) if self.pi.batch_shape else None
        return self.complexity.log_inverse_of(
            (jnp.broadcast_to(as_float(q), shape), parameters), self._quantile
        )

    def _quantile(self, inputs: tuple[Array, Any], log_supremum: Array) -> Array:
        q, parameters = inputs
        pi = self.pi if parameters is None else self.pi.with_parameters(parameters)
        if self.truncated:
            q = q * jnp.exp(pi.log_cdf_log(log_supremum))
        return pi.icdf_log(q)

    @raise_without_root()
    @compiled(2)
    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        if self.truncated:
            dtype = jnp.result_type(float)
            q = jax.random.uniform(
                key, self.shape(sample_shape), dtype, minval=jnp.finfo(dtype).tiny
            )
            return self.icdf(q)
        return self.complexity.log_inverse(_draw_log(self.pi, key, self.shape(sample_shape)))


class ComplexityPrior(dist.TransformedDistribution, metaclass=Constructed):
    """The prior `p(tau) = pi(D(tau)) |D'(tau)|` on a scale (Equations 2, 6 and 9 of the paper).

    A NumPyro distribution: use it in `numpyro.sample`. With a heavy-tailed pi, sampling
    `prior.log_scale()` instead is safer. For a map of several scales (`DepthComplexity`,
    `ModularComplexity`) it is a distribution of vectors, and `cdf` and `icdf` are those of
    each entry given the entries below it.

    **Arguments**
    - `pi`: prior on the divergence, `LogCauchy(scale=1.0)` being the paper's; or any positive NumPyro
        distribution.
    - `complexity`: the map D.
    - `truncate`: truncate pi at the supremum of a bounded map, so that the prior is proper.
        False gives the density as the paper prints it; draws without a root are then `inf`.
    """

    pytree_aux_fields = ("truncate",)

    @classmethod
    def gather_pytree_data_fields(cls) -> tuple[str, ...]:
        # The parent's fields are these two under other names.
        return ("pi", "complexity")

    @property
    def base_dist(self) -> DivergencePrior:  # type: ignore[override]
        return self.pi

    @property
    def transforms(self) -> list[Any]:  # type: ignore[override]
        return [self.complexity.inv]

    def __init__(self, pi: Any, complexity: Complexity, truncate: bool = True):
        if isinstance(complexity, Complexity) and complexity.signed:
            self.pi: DivergencePrior = as_divergence_prior(pi)
            self.complexity = complexity
        else:
            log_prior = LogScalePrior(pi, complexity, truncate)
            self.pi, self.complexity = log_prior.pi, log_prior.complexity
        self.truncate = truncate
        # Fail now, not at the first density, when pi cannot be truncated.
        if truncate and complexity.bounded:
            jax.eval_shape(lambda: self.pi.log_cdf_log(jnp.zeros(self.pi.batch_shape)))
        batch_shape, event_shape = _shapes(self.pi, complexity)
        dist.Distribution.__init__(self, batch_shape, event_shape)

    @classmethod
    def from_tail(
        cls,
        family: type[DivergencePrior],
        complexity: Complexity,
        upper: Any,
        probability: Any,
        **other: Any,
    ) -> "ComplexityPrior":
        """The prior with `P(D(tau) > upper) = probability`, truncation included.

        `family.from_tail` states the tail of pi itself; truncation at the supremum of a bounded map
        then removes mass from that tail.

        **Arguments**
        - `family`: a class of priors on a divergence, such as `LogCauchy`.
        - `complexity`: the map D.
        - `upper`, `probability`: a divergence, and the probability of a larger one; any shapes
            that broadcast with the map's.
        - `other`: further arguments of `family.from_tail`: the `scale` of a log-Cauchy (its location
            is found), the `shape` of a gamma (its scale is found).
        """
        log_upper = jnp.log(require_positive("upper", upper))
        return cls._from_log_tail(family, complexity, log_upper, probability, other)

    @classmethod
    def from_scale_tail(
        cls,
        family: type[DivergencePrior],
        complexity: Complexity,
        upper: Any,
        probability: Any,
        **other: Any,
    ) -> "ComplexityPrior":
        """The prior with `P(tau > upper) = probability`, truncation included.

        **Arguments**: as `from_tail`, with `upper` a scale, in the unit of the map.
        """
        if not isinstance(complexity, Complexity) or complexity.event_dim or complexity.signed:
            raise ValueError(
                f"complexity must be a map of one scale, got {type(complexity).__name__}; "
                "from_tail states the tail of a divergence for any map"
            )
        log_tau = jnp.log(require_positive("upper", upper))
        log_upper, _ = complexity.log_value_and_elasticity(log_tau)
        return cls._from_log_tail(family, complexity, log_upper, probability, other)

    @classmethod
    def _from_log_tail(
        cls, family: Any, complexity: Any, log_upper: Array, probability: Any, other: dict[str, Any]
    ) -> "ComplexityPrior":
        if not (isinstance(family, type) and hasattr(family, "from_tail")):
            raise ValueError(
                f"family must be a class of priors on a divergence, such as LogCauchy, got {family!r}"
            )
        if not isinstance(complexity, Complexity):
            raise ValueError(f"complexity must be a map, got {type(complexity).__name__}")
        probability = require_probability("probability", probability)
        # First for kappa / upper, then for kappa: upper itself may be outside floating point.
        pi = family.from_tail(upper=1.0, probability=probability, **other).stretched(log_upper)
        if complexity.bounded:
            log_supremum = jnp.log(complexity.supremum)
            _require_below("upper", log_upper, log_supremum, complexity)
            pi = with_truncated_tail(pi, log_upper, log_supremum, probability)
        return cls(pi, complexity)

    @property
    def support(self) -> constraints.Constraint:
        return self.complexity.domain

    @property
    def has_rsample(self) -> bool:
        return True

    def log_scale(self) -> LogScalePrior:
        """The same prior as a distribution of `log tau`."""
        return LogScalePrior(self.pi, self.complexity, self.truncate)

    def tabulated(self) -> "ComplexityPrior":
        """The same prior through a table of its map, for samplers: one look-up per evaluation.

        Use it where the map does not depend on other sampled values. The log density of
        `log tau` agrees with this prior's to 1e-8 wherever it is within 100 of its maximum
        (single precision: to 2e-4, within 20), which is checked here.
        """
        # Evaluate the table with known numbers even inside a model that is being traced.
        with jax.ensure_compile_time_eval():
            quick = ComplexityPrior(
                self.pi, TabulatedComplexity(cast(Any, self.complexity)), self.truncate
            )
            table: Any = quick.complexity
            ends = np.asarray(table.low), np.asarray(table.low + table.width * table.pieces)
            # As many as the table asks the map at a time: both share a compiled program.
            fraction = np.linspace(-0.2, 1.2, table.asked_at_once).reshape(
                -1, *(1 for _ in self.batch_shape)
            )
            points = jnp.asarray(ends[0] + fraction * (ends[1] - ends[0]), table.low.dtype)
            values = (each.log_value_and_elasticity(points) for each in (self.complexity, table))
            wanted, got = (
                np.asarray(self.pi.log_prob_log(value) + slope) for value, slope in values
            )
            double = jnp.finfo(table.low.dtype).eps < 1e-12
            allowed, depth = (1e-8, 100.0) if double else (2e-4, 20.0)
            counted = wanted > np.max(wanted, axis=0) - depth
            gap = np.subtract(got, wanted, out=np.zeros_like(wanted), where=counted)
            error = float(np.max(np.abs(gap)))
            if not error <= allowed:
                raise RuntimeError(
                    f"the table of {type(self.complexity).__name__} misses the log density by {error:.2g}, "
                    f"more than {allowed:g}: use the prior as it is"
                )
        return quick

    def to_stan(self, name: str = "tau") -> str:
        """This prior as functions of a Stan program, for its `functions` block.

        `predcp_NAME_lpdf(log_tau)` is the log density of `log tau`, to 1e-8 where `tabulated` is;
        `predcp_NAME_rng()` draws it; `predcp_NAME_map(log_tau)` is the map; `predcp_NAME_sd_lpdf(sd)`
        is for brms.

        **Arguments**: `name`, NAME in them.
        """
        self._require_one_scale("to_stan")
        quick = self.tabulated()
        log_mass = jnp.asarray(quick.log_scale().log_mass(jnp.zeros(())))
        return stan_functions(quick.pi, cast(Any, quick.complexity), log_mass, name, __version__)

    def to_inla(
        self, parameter: str = "log precision", tail: float = 1e-10, error: float = 1e-4
    ) -> str:
        """This prior as a table for INLA, `table: theta ... log density ...`, Jacobian included.

        **Arguments**
        - `parameter`: what theta is: `log precision`, `log standard deviation` or `log variance`.
        - `tail`: probability left out at each end; it may be more, because theta stays within 100 of 0, and
            1e-6 in single precision. INLA cannot be trusted outside of the table.
        - `error`: largest error of INLA's spline through the table, in the log density.
        """
        self._require_one_scale("to_inla")
        return inla_table(self.log_scale(), self.complexity.unit, parameter, tail, error)

    def _require_one_scale(self, name: str) -> None:
        if self.complexity.signed or self.event_shape:
            raise ValueError(
                f"{name} writes the prior of one positive scale, got a prior of "
                f"{type(self.complexity).__name__}"
            )

    @compiled()
    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        tau = as_float(value)
        inside = tau != 0.0 if self.complexity.signed else tau > 0.0
        log_tau = jnp.log(jnp.where(inside, jnp.abs(tau), 1.0))
        if self.complexity.signed:
            log_kappa, log_elasticity = self.complexity.log_value_and_elasticity(log_tau)
            density = self.pi.log_prob_log(log_kappa) + log_elasticity
            return jnp.where(inside, density - log_tau - jnp.log(2.0), -jnp.inf)
        density = self.log_scale().log_prob(log_tau)
        if self.complexity.event_dim:
            inside, log_tau = jnp.all(inside, -1), log_tau.sum(-1)
        return jnp.where(inside, density - log_tau, -jnp.inf)

    def divergence_log_prob(self, value: Any) -> Array:
        """`log pi(kappa)` at kappa = D(tau), entry by entry; without truncation and Jacobian."""
        return self.log_scale().divergence_log_prob(jnp.log(as_float(value)))

    @compiled()
    def cdf(self, value: Any) -> Array:
        tau = as_float(value)
        inside = jnp.abs(tau) > 0.0 if self.complexity.signed else tau > 0.0
        log_tau = jnp.log(jnp.where(inside, jnp.abs(tau), 1.0))
        if not self.complexity.signed:
            return jnp.where(inside, self.log_scale().cdf(log_tau), 0.0)
        log_kappa, _ = self.complexity.log_value_and_elasticity(log_tau)
        upper = 0.5 * jnp.exp(self.pi.log_survival_log(log_kappa))
        return jnp.where(inside, jnp.where(tau > 0.0, 1.0 - upper, upper), 0.5)

    @compiled()
    def survival(self, value: Any) -> Array:
        """P(tau > value), accurate in the upper tail; for a vector, one value per entry."""
        if self.complexity.signed:
            return self.cdf(-as_float(value))
        tau = as_float(value)
        inside = tau > 0.0
        return jnp.where(
            inside, self.log_scale().survival(jnp.log(jnp.where(inside, tau, 1.0))), 1.0
        )

    @raise_without_root(is_probability)
    @compiled()
    def icdf(self, q: Any) -> Array:
        q = as_float(q)
        if not self.complexity.signed:
            return jnp.exp(self.log_scale().icdf(q))
        tail = jnp.abs(2.0 * q - 1.0)
        return jnp.sign(q - 0.5) * jnp.exp(self.complexity.log_inverse(self.pi.icdf_log(tail)))

    @raise_without_root()
    @compiled(2)
    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        if not self.complexity.signed:
            return jnp.exp(self.log_scale().sample(key, sample_shape))
        key_size, key_side = jax.random.split(key)
        log_kappa = _draw_log(self.pi, key_size, self.shape(sample_shape))
        size = jnp.exp(self.complexity.log_inverse(log_kappa))
        return size * jax.random.rademacher(key_side, size.shape, size.dtype)

    def rsample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        return self.sample(key, sample_shape)

    def sample_with_intermediates(self, key: Any, sample_shape: tuple[int, ...] = ()):
        return self.sample(key, sample_shape), []


def _require_below(
    name: str, log_upper: Array, log_supremum: Array, complexity: Complexity
) -> None:
    """Refuse a statement about a divergence that the map never reaches."""
    bound, upper = known(log_supremum), known(log_upper)
    if bound is None or upper is None:
        return
    if np.any(np.isnan(bound)):
        name = type(complexity).__name__
        raise ValueError(f"complexity must be finite, but {name} has the supremum NaN: diagnose it")
    if not np.all(np.isfinite(bound)):
        raise ValueError(
            f"complexity must have one supremum; that of {type(complexity).__name__} depends on "
            "the other scales, so that no pi gives a stated tail after truncation"
        )
    if not np.all(upper < bound):
        raise ValueError(
            f"{name} must be below the supremum of the complexity, {np.exp(bound.min()):.6g} nats; "
            f"got a divergence of {np.exp(upper.max()):.6g}"
        )


def _draw_log(pi: DivergencePrior, key: Any, shape: tuple[int, ...]) -> Array:
    """Independent draws of `log kappa`, one per element of `shape`."""
    batch_dims = len(pi.batch_shape)
    # Axes of pi of size one stand for several independent draws.
    sample_shape = shape[: len(shape) - batch_dims]
    repeats = [
        wanted if held == 1 else 1
        for wanted, held in zip(shape[len(sample_shape) :], pi.batch_shape)
    ]
    draws = pi.sample_log(key, (*sample_shape, *repeats))
    # Each repeat axis stands before its own axis of size one (or none): fold the two together.
    order = [*range(len(sample_shape))]
    for axis in range(batch_dims):
        order += [len(sample_shape) + axis, len(sample_shape) + batch_dims + axis]
    return draws.transpose(order).reshape(shape)


def _shapes(pi: DivergencePrior, complexity: Complexity) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Batch and event shape of the prior."""
    try:
        shape = complexity.forward_shape(pi.batch_shape)
    except ValueError:
        raise ValueError(
            f"pi has batch shape {pi.batch_shape}, which does not broadcast with the complexity's "
            f"{complexity.batch_shape + complexity.event_shape}"
        ) from None
    cut = len(shape) - complexity.event_dim
    return shape[:cut], shape[cut:]
