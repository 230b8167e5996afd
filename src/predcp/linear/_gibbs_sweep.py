"""One sweep of the Gibbs sampler.

Given local scales and, for a logistic outcome, Polya-gamma weights, the coefficients are normal.
They are integrated out while tau and the local scales move, and drawn jointly afterwards
(Bhattacharya, Chakraborty and Mallick, 2016; Johndrow, Orenstein and Bhattacharya, 2020). A
divergence prior of tau depends on the local scales. Local scales are therefore proposed without it,
and a Metropolis step accounts for it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from predcp.linear._bounce import bounced_logits
from predcp.linear._column_moves import Columns, renewed_columns
from predcp.linear._gibbs_model import GibbsModel, GibbsState
from predcp.linear._gibbs_systems import Design, LargestColumns, RowSystem, System
from predcp.linear._handover import LogPrior, propose_swaps
from predcp.linear._lattice import lattice_sample
from predcp.linear._polya_gamma import polya_gamma
from predcp.linear._slice import slice_sample

# Width of a slice on a log scale: posteriors of log tau are a few units wide.
_WIDTH = 2.0
# Reflections per row before a path is given up.
_REFLECTIONS = 4
# With more columns than this the half-Cauchy priors fix the common size of the local scales.
_FEW_COLUMNS = 64
# Blocks of columns whose local scales are proposed anew in a sweep, all columns about once.
_BLOCKS = 32


class Sweep(NamedTuple):
    """`sweep(state)` returns the next state and the acceptance rates of its proposals.

    **Arguments**: `design`, see `Design`; the others as in `Gibbs`.
    """

    model: GibbsModel
    data: tuple[Any, ...]
    design: Design
    handovers: int
    paths: int
    lattice: int

    @classmethod
    def of(
        cls, model: GibbsModel, data: tuple[Any, ...], handovers: int, paths: int, lattice: int
    ) -> "Sweep":
        """The sweep over a data set."""
        weights = None if model.logistic else model.row_weights(data)
        design = Design.of(data[0], model.intercept_variance, weights)
        return cls(model, data, design, handovers, paths, lattice)

    def __call__(self, state: GibbsState) -> tuple[GibbsState, dict[str, Array]]:
        model, (x, y) = self.model, self.data[:2]
        key, *keys = jax.random.split(state.key, 11)
        key_few, key_path, key_weights, key_apart, key_scale, *more = keys
        key_beta, key_local, key_columns, key_size, key_share = more
        state = state._replace(key=key)
        figures: dict[str, Array] = {}
        system = self.design.system(LargestColumns.among(key_few, state.local_scales))
        if model.logistic:
            eta, figures["paths_ended"] = self._logits(key_path, state, system)
            weights = polya_gamma(key_weights, eta)
            system = system.observing((y - 0.5) / weights, jnp.sqrt(weights))
        else:
            system = system.observing(y.astype(x.dtype), self.design.root)
            system = system._replace(precision=model.precision(state.log_sigma))
        if x.shape[1] > 1:
            state, system = self._tau_against_largest(key_apart, state, system)
        state, system = self._scales(key_scale, state, system)
        state = self._coefficients(key_beta, state, system)
        state, figures["acceptance_rate"] = self._local_scales(key_local, state)
        state, moves = self._columns(key_columns, state)
        state = self._size(key_size, state)
        if x.shape[1] <= _FEW_COLUMNS:
            state = self._tau_against_all(key_share, state)
        return state, figures | moves

    def _logits(
        self, key: Array, state: GibbsState, system: System
    ) -> tuple[Float[Array, " rows"], Array]:
        """The logits, moved along Hamiltonian paths where there are as many columns as rows."""
        x, y = self.data[:2]
        eta = self.model.logits(state, x)
        # With fewer columns than rows the logits have a singular prior.
        if not self.paths or x.shape[0] > x.shape[1] or not isinstance(system, RowSystem):
            return eta, jnp.ones((), x.dtype)
        variance = self.model.intercept_variance
        scales = jnp.exp(state.log_tau) * state.local_scales
        covariance = jnp.exp(2.0 * state.log_tau) * system.gram + variance
        signs = jnp.where(y == 1, 1.0, -1.0).astype(x.dtype)

        def path(eta: Array, key: Array):
            key_noise, key_level, key_walls = jax.random.split(key, 3)
            noise = jax.random.normal(key_noise, scales.shape, x.dtype)
            level = variance**0.5 * jax.random.normal(key_level, (), x.dtype)
            velocity = x @ (scales * noise) + level
            most = _REFLECTIONS * eta.size
            return bounced_logits(key_walls, eta, velocity, covariance, signs, most)

        eta, ended = jax.lax.scan(path, eta, jax.random.split(key, self.paths))
        return eta, jnp.mean(ended.astype(x.dtype))

    def _drawn(self, key: Array, log_density: Callable[[Array], Array], start: Array) -> Array:
        """One number given all others."""
        if self.lattice:
            return lattice_sample(key, log_density, start, self.lattice)
        return slice_sample(key, log_density, start, _WIDTH)

    def _metropolis(
        self, key: Array, state: GibbsState, moved: Array
    ) -> tuple[Float[Array, " columns"], Array]:
        """The Metropolis correction for p(tau given the local scales)."""
        x = self.data[0]
        log_prior = self._log_prior(state)
        level = jnp.log(jax.random.uniform(key, (), x.dtype))
        # A NaN fails the comparison and is refused.
        accept = level < log_prior(moved) - log_prior(state.local_scales)
        return jnp.where(accept, moved, state.local_scales), accept.astype(x.dtype)

    def _log_prior(self, state: GibbsState) -> LogPrior:
        """The log prior of the present tau, by the local scales."""

        def log_prior(local_scales: Array) -> Array:
            return self.model.log_prior(self.data[0], local_scales, state.log_sigma)(state.log_tau)

        return log_prior

    def _scales(self, key: Array, state: GibbsState, system: System) -> tuple[GibbsState, System]:
        """sigma, then tau, with the coefficients integrated out."""
        x, model = self.data[0], self.model
        key_sigma, key_tau = jax.random.split(key)
        log_sigma = state.log_sigma
        if not model.logistic:

            def of_sigma(log_sigma: Array) -> Array:
                half_normal = log_sigma - 0.5 * jnp.exp(2.0 * log_sigma)
                log_prior = model.log_prior(x, state.local_scales, log_sigma)(state.log_tau)
                given = system._replace(precision=model.precision(log_sigma))
                return half_normal + log_prior + given.log_marginal(state.log_tau)

            log_sigma = self._drawn(key_sigma, of_sigma, log_sigma)
            system = system._replace(precision=model.precision(log_sigma))
        log_prior = model.log_prior(x, state.local_scales, log_sigma)

        def of_tau(log_tau: Array) -> Array:
            return log_prior(log_tau) + system.log_marginal(log_tau)

        log_tau = self._drawn(key_tau, of_tau, state.log_tau)
        return state._replace(log_tau=log_tau, log_sigma=log_sigma), system

    def _tau_against_largest(
        self, key: Array, state: GibbsState, system: System
    ) -> tuple[GibbsState, System]:
        """Move tau and keep `tau lambda` of the columns with the largest local scales.

        A few columns carry the signal and hold tau in place, though tau describes all the others.
        A move after which they would not be the largest is refused: its reverse is not proposed.
        """
        x, columns = self.data[0], system.columns
        log_largest = jnp.log(columns.scales)
        log_prior = self.model.log_prior_along(x, columns.rest, columns.largest, state.log_sigma)

        def moved(shift: Array) -> System:
            # In units of the new tau their scales shrink.
            return system._replace(factor=jnp.exp(-shift))

        def log_density(shift: Array) -> Array:
            log_tau, after = state.log_tau + shift, log_largest - shift
            half_cauchys = -jnp.sum(jnp.where(columns.chosen, jnp.logaddexp(after, -after), 0.0))
            value = log_prior(jnp.exp(-shift), log_tau) + half_cauchys
            value = value + moved(shift).log_marginal(log_tau)
            return jnp.where(shift < columns.room, value, -jnp.inf)

        shift = self._drawn(key, log_density, jnp.zeros((), x.dtype))
        system = moved(shift)
        state = state._replace(
            log_tau=state.log_tau + shift, local_scales=columns.local_scales(system.factor)
        )
        return state, system

    def _coefficients(self, key: Array, state: GibbsState, system: System) -> GibbsState:
        """All coefficients and the intercept jointly."""
        direction, alpha = system.draw(key, state.log_tau)
        # Where tau has left floating point, keep the last coefficients until it is back.
        usable = jnp.all(jnp.isfinite(direction)) & jnp.isfinite(alpha)
        return state._replace(
            direction=jnp.where(usable, direction, state.direction),
            alpha=jnp.where(usable, alpha, state.alpha),
        )

    def _local_scales(self, key: Array, state: GibbsState) -> tuple[GibbsState, Array]:
        """`lambda_d` given `lambda_d xi_d`: a slice on `u = 1 / lambda^2`.

        But for the prior of tau, `p(u) = exp(-g u) / (1 + u)` with `g = (lambda xi)^2 / 2`
        (Polson, Scott and Windle, 2014).
        """
        kind = state.direction.dtype
        key_move, key_accept = jax.random.split(key)
        tiny = jnp.finfo(kind).tiny
        level, place = jax.random.uniform(key_move, (2, state.direction.size), kind, tiny)
        rate = 0.5 * state.direction**2
        bound = ((1.0 - level) + state.local_scales**-2) / level
        # An exponential below the bound; a uniform where the rate is too small to tell.
        flat = rate * bound < jnp.finfo(kind).eps
        safe = jnp.where(flat, 1.0, rate)
        curved = -jnp.log1p(place * jnp.expm1(-safe * bound)) / safe
        u = jnp.maximum(jnp.where(flat, place * bound, curved), tiny)
        scales, accept = self._metropolis(key_accept, state, jax.lax.rsqrt(u))
        return state._replace(local_scales=scales), accept

    def _columns(self, key: Array, state: GibbsState) -> tuple[GibbsState, dict[str, Array]]:
        """New local scales for blocks of columns, then swaps of columns, without the weights."""
        x = self.data[0]
        key_renew, key_accept, key_over = jax.random.split(key, 3)
        tau, alpha = jnp.exp(state.log_tau), state.alpha

        def log_likelihood(fit: Array) -> Array:
            return self.model.log_likelihood(tau * fit + alpha, state.log_sigma, self.data)

        blocks = min(_BLOCKS, x.shape[1])
        before = Columns(state.direction, state.local_scales, x @ state.direction)
        moved, renewed = renewed_columns(
            key_renew, before, self.design.across, log_likelihood, blocks
        )
        scales, accept = self._metropolis(key_accept, state, moved.local_scales)
        direction = jnp.where(accept > 0.0, moved.direction, state.direction)
        state = state._replace(direction=direction, local_scales=scales)
        figures = {"renewed": renewed * accept}
        if self.handovers:
            before = Columns(state.direction, state.local_scales, x @ state.direction)
            moved, figures["swapped"] = propose_swaps(
                key_over,
                before,
                self.design.across,
                log_likelihood,
                self._log_prior(state),
                self.handovers,
            )
            state = state._replace(direction=moved.direction, local_scales=moved.local_scales)
        return state, figures

    def _size(self, key: Array, state: GibbsState) -> GibbsState:
        """tau, and with it all coefficients, without the weights.

        For separable rows the size of the logits has a long tail, in which a step that keeps the
        weights can move only by a small fraction.
        """
        x = self.data[0]
        fit = x @ state.direction
        log_prior = self.model.log_prior(x, state.local_scales, state.log_sigma)

        def log_density(log_tau: Array) -> Array:
            eta = jnp.exp(log_tau) * fit + state.alpha
            likelihood = self.model.log_likelihood(eta, state.log_sigma, self.data)
            return likelihood + log_prior(log_tau)

        return state._replace(log_tau=self._drawn(key, log_density, state.log_tau))

    def _tau_against_all(self, key: Array, state: GibbsState) -> GibbsState:
        """Move tau and keep every `tau lambda`: with few columns this direction mixes slowly."""
        x = self.data[0]
        log_scales = jnp.log(state.local_scales)

        def log_density(shift: Array) -> Array:
            moved = log_scales - shift
            log_prior = self.model.log_prior(x, jnp.exp(moved), state.log_sigma)
            half_cauchys = -jnp.sum(jnp.logaddexp(moved, -moved))
            return log_prior(state.log_tau + shift) + half_cauchys

        shift = self._drawn(key, log_density, jnp.zeros((), x.dtype))
        return state._replace(
            log_tau=state.log_tau + shift,
            local_scales=state.local_scales * jnp.exp(-shift),
            direction=state.direction * jnp.exp(-shift),
        )
