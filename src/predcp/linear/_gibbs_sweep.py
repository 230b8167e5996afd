"""One sweep of the Gibbs sampler.

Given local scales and, for a logistic outcome, Polya-gamma weights, the coefficients are normal:
they are integrated out where tau and the local scales move, and drawn jointly afterwards, through
a matrix as large as the rows are many (Bhattacharya, Chakraborty and Mallick, 2016; Johndrow,
Orenstein and Bhattacharya, 2020). A divergence prior of tau looks at the local scales, so these are
moved without it, and the Metropolis rule answers for the difference.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Bool, Float

from predcp.linear._bounce import bounced_logits
from predcp.linear._column_moves import Columns, renewed_columns
from predcp.linear._gibbs_model import GibbsModel, GibbsState
from predcp.linear._handover import LogPrior, handed_over
from predcp.linear._lattice import lattice_sample
from predcp.linear._polya_gamma import polya_gamma
from predcp.linear._slice import slice_sample

# Of a slice on a log scale: posteriors of log tau are a few units wide.
_WIDTH = 2.0
# Reflections of a path: some for every row, before it is given up.
_REFLECTIONS = 4
# Columns that tau may leave as they are.
_LARGEST = 64
# Of more columns the half-Cauchys hold their common size in place.
_FEW_COLUMNS = 64
# Stretches of columns whose local scales are tried anew in a sweep, all columns about once.
_STRETCHES = 32


class Rows(NamedTuple):
    """Rows as a normal regression: `response ~ N(X beta + alpha, diag(weights^-1))`.

    **Arguments**: `gram`, `X Lambda^2 X^T`; `root`, of the weights; `shared`, the variance of alpha.
    """

    gram: Float[Array, "rows rows"]
    root: Float[Array, " rows"]
    response: Float[Array, " rows"]
    shared: float

    def factor(self, log_tau: Array) -> Float[Array, "rows rows"]:
        """The Cholesky factor of `I + W^1/2 (tau^2 gram + shared) W^1/2`."""
        prior = jnp.exp(2.0 * log_tau) * self.gram + self.shared
        eye = jnp.eye(self.root.size, dtype=self.root.dtype)
        return jnp.linalg.cholesky(eye + self.root[:, None] * prior * self.root)

    def log_marginal(self, log_tau: Array) -> Array:
        """The log density of the response with the coefficients integrated out."""
        lower = self.factor(log_tau)
        white = solve_triangular(lower, self.root * self.response, lower=True)
        log_scale = jnp.sum(jnp.log(self.root) - jnp.log(jnp.diagonal(lower)))
        return log_scale - 0.5 * jnp.sum(white**2)


class Few(NamedTuple):
    """The columns of the largest local scales, as many as chance has it, and all the others.

    **Arguments**: `scales` of more columns than are `chosen`; local scales of `those`
    chosen and of the `rest`, 0 elsewhere; `gram` of the former, `others` of the latter; `room`, how far
    the others' log scales may grow before one joins.
    """

    scales: Float[Array, " largest"]
    chosen: Bool[Array, " largest"]
    those: Float[Array, " columns"]
    rest: Float[Array, " columns"]
    gram: Float[Array, "rows rows"]
    others: Float[Array, "rows rows"]
    room: Float[Array, ""]

    @classmethod
    def among(
        cls,
        key: Array,
        local_scales: Float[Array, " columns"],
        across: Float[Array, "columns rows"],
    ) -> "Few":
        """Few more often than many: their number is drawn on a log scale."""
        most = min(_LARGEST, local_scales.size - 1)
        scales, places = jax.lax.top_k(local_scales, most + 1)
        log_count = jax.random.uniform(key, (), scales.dtype) * math.log(most + 1.0)
        count = jnp.clip(jnp.exp(log_count).astype(int), min(1, most), most)
        chosen = jnp.arange(most + 1) < count
        logs = jnp.log(scales)
        room = jnp.where(count > 0, logs[count - 1], jnp.inf) - logs[count]
        largest = jnp.where(chosen, scales, 0.0)
        own = _gram(across[places], largest)
        those = jnp.zeros_like(local_scales).at[places].set(largest)
        # Not the whole less these: they can be larger by more than there are digits.
        rest = local_scales.at[places].set(jnp.where(chosen, 0.0, scales))
        return cls(scales, chosen, those, rest, own, _gram(across, rest), room)


class Sweep(NamedTuple):
    """`sweep(state)` is the next state, and how its proposals went.

    **Arguments**: `across`, the design on its side; the others as `Gibbs` has them.
    """

    model: GibbsModel
    data: tuple[Any, ...]
    across: Float[Array, "columns rows"]
    handovers: int
    paths: int
    lattice: int

    def __call__(self, state: GibbsState) -> tuple[GibbsState, dict[str, Array]]:
        model, (x, y) = self.model, self.data[:2]
        key, *keys = jax.random.split(state.key, 11)
        key_few, key_path, key_weights, key_apart, key_scale, *more = keys
        key_beta, key_local, key_columns, key_size, key_share = more
        state = state._replace(key=key)
        figures: dict[str, Array] = {}
        few = Few.among(key_few, state.local_scales, self.across)
        gram = few.gram + few.others
        weights = None
        if model.logistic:
            eta, figures["paths_ended"] = self._logits(key_path, state, gram)
            weights = polya_gamma(key_weights, eta)

        def rows(gram: Array, log_sigma: Array) -> Rows:
            if weights is not None:
                return Rows(gram, jnp.sqrt(weights), (y - 0.5) / weights, model.intercept_variance)
            precision = model.precisions(log_sigma, self.data)
            return Rows(gram, jnp.sqrt(precision), y.astype(x.dtype), model.intercept_variance)

        if x.shape[1] > 1:
            state, now = self._apart(key_apart, state, few, rows(gram, state.log_sigma))
            gram = now.gram
        state, now = self._scales(key_scale, state, lambda log_sigma: rows(gram, log_sigma))
        state = self._coefficients(key_beta, state, now)
        state, figures["acceptance_rate"] = self._local_scales(key_local, state)
        state, moves = self._columns(key_columns, state)
        state = self._size(key_size, state)
        if x.shape[1] <= _FEW_COLUMNS:
            state = self._shared_out(key_share, state)
        return state, figures | moves

    def _logits(
        self, key: Array, state: GibbsState, gram: Array
    ) -> tuple[Float[Array, " rows"], Array]:
        """The logits, moved along paths where the rows leave them a full space to move in."""
        x, y = self.data[:2]
        eta = self.model.logits(state, x)
        if not self.paths or x.shape[0] > x.shape[1]:
            return eta, jnp.ones((), x.dtype)
        variance = self.model.intercept_variance
        scales = jnp.exp(state.log_tau) * state.local_scales
        covariance = jnp.exp(2.0 * state.log_tau) * gram + variance
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

    def _answered(
        self, key: Array, state: GibbsState, moved: Array
    ) -> tuple[Float[Array, " columns"], Array]:
        """The Metropolis rule for what the prior of tau thinks of moved local scales."""
        x = self.data[0]
        log_prior = self._log_prior(state)
        level = jnp.log(jax.random.uniform(key, (), x.dtype))
        # A NaN fails the comparison and is refused.
        accept = level < log_prior(moved) - log_prior(state.local_scales)
        return jnp.where(accept, moved, state.local_scales), accept.astype(x.dtype)

    def _log_prior(self, state: GibbsState) -> LogPrior:
        """What the prior of tau, as it is, thinks of local scales."""

        def log_prior(local_scales: Array) -> Array:
            return self.model.log_prior(self.data[0], local_scales, state.log_sigma)(state.log_tau)

        return log_prior

    def _scales(
        self, key: Array, state: GibbsState, rows: Callable[[Array], Rows]
    ) -> tuple[GibbsState, Rows]:
        """sigma, then tau, with the coefficients integrated out."""
        x = self.data[0]
        key_sigma, key_tau = jax.random.split(key)
        log_sigma = state.log_sigma
        if not self.model.logistic:

            def of_sigma(log_sigma: Array) -> Array:
                half_normal = log_sigma - 0.5 * jnp.exp(2.0 * log_sigma)
                log_prior = self.model.log_prior(x, state.local_scales, log_sigma)(state.log_tau)
                return half_normal + log_prior + rows(log_sigma).log_marginal(state.log_tau)

            log_sigma = self._drawn(key_sigma, of_sigma, log_sigma)
        now = rows(log_sigma)
        log_prior = self.model.log_prior(x, state.local_scales, log_sigma)

        def of_tau(log_tau: Array) -> Array:
            return log_prior(log_tau) + now.log_marginal(log_tau)

        log_tau = self._drawn(key_tau, of_tau, state.log_tau)
        return state._replace(log_tau=log_tau, log_sigma=log_sigma), now

    def _apart(
        self, key: Array, state: GibbsState, few: Few, rows: Rows
    ) -> tuple[GibbsState, Rows]:
        """tau against the largest local scales, whose columns stay as they are: only the rest move.

        A few columns carry the signal and hold tau in place, though tau is there for all the others.
        A move after which they would not be the largest is refused, so that the way back is the same.
        """
        x = self.data[0]
        log_largest = jnp.log(few.scales)

        log_prior = self.model.log_prior_along(x, few.rest, few.those, state.log_sigma)

        def moved_rows(shift: Array) -> Rows:
            # In units of the new tau they shrink.
            return rows._replace(gram=few.others + jnp.exp(-2.0 * shift) * few.gram)

        def log_density(shift: Array) -> Array:
            log_tau, after = state.log_tau + shift, log_largest - shift
            half_cauchys = -jnp.sum(jnp.where(few.chosen, jnp.logaddexp(after, -after), 0.0))
            value = log_prior(jnp.exp(-shift), log_tau) + half_cauchys
            value = value + moved_rows(shift).log_marginal(log_tau)
            return jnp.where(shift < few.room, value, -jnp.inf)

        shift = self._drawn(key, log_density, jnp.zeros((), x.dtype))
        scales = few.rest + jnp.exp(-shift) * few.those
        state = state._replace(log_tau=state.log_tau + shift, local_scales=scales)
        return state, moved_rows(shift)

    def _coefficients(self, key: Array, state: GibbsState, rows: Rows) -> GibbsState:
        """A draw of the prior, corrected by what it gets wrong of the rows."""
        x = self.data[0]
        key_beta, key_alpha, key_rows = jax.random.split(key, 3)
        tau = jnp.exp(state.log_tau)
        scales = state.local_scales
        noise = jax.random.normal(key_beta, scales.shape, x.dtype)
        level = rows.shared**0.5 * jax.random.normal(key_alpha, (), x.dtype)
        error = jax.random.normal(key_rows, rows.root.shape, x.dtype)
        guess = rows.root * (tau * (x @ (scales * noise)) + level) + error
        lower = rows.factor(state.log_tau)
        missing = rows.root * cho_solve((lower, True), rows.root * rows.response - guess)
        direction = scales * (noise + tau * scales * (missing @ x))
        alpha = level + rows.shared * jnp.sum(missing)
        # Where tau has left floating point the coefficients wait until it is back.
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
        scales, accept = self._answered(key_accept, state, jax.lax.rsqrt(u))
        return state._replace(local_scales=scales), accept

    def _columns(self, key: Array, state: GibbsState) -> tuple[GibbsState, dict[str, Array]]:
        """Columns that try a new local scale, then columns that hand over, without the weights."""
        x = self.data[0]
        key_renew, key_answer, key_over = jax.random.split(key, 3)
        tau, alpha = jnp.exp(state.log_tau), state.alpha

        def log_likelihood(fit: Array) -> Array:
            return self.model.log_likelihood(tau * fit + alpha, state.log_sigma, self.data)

        stretches = min(_STRETCHES, x.shape[1])
        before = Columns(state.direction, state.local_scales, x @ state.direction)
        moved, renewed = renewed_columns(key_renew, before, self.across, log_likelihood, stretches)
        scales, accept = self._answered(key_answer, state, moved.local_scales)
        direction = jnp.where(accept > 0.0, moved.direction, state.direction)
        state = state._replace(direction=direction, local_scales=scales)
        figures = {"renewed": renewed * accept}
        if self.handovers:
            before = Columns(state.direction, state.local_scales, x @ state.direction)
            moved, figures["handed_over"] = handed_over(
                key_over,
                before,
                self.across,
                log_likelihood,
                self._log_prior(state),
                self.handovers,
            )
            state = state._replace(direction=moved.direction, local_scales=moved.local_scales)
        return state, figures

    def _size(self, key: Array, state: GibbsState) -> GibbsState:
        """tau, and with it all coefficients, without the weights.

        Separable rows leave the size of the logits to the tail of the prior, where the weights
        would hold each step to a small fraction of it.
        """
        x = self.data[0]
        fit = x @ state.direction
        log_prior = self.model.log_prior(x, state.local_scales, state.log_sigma)

        def log_density(log_tau: Array) -> Array:
            eta = jnp.exp(log_tau) * fit + state.alpha
            likelihood = self.model.log_likelihood(eta, state.log_sigma, self.data)
            return likelihood + log_prior(log_tau)

        return state._replace(log_tau=self._drawn(key, log_density, state.log_tau))

    def _shared_out(self, key: Array, state: GibbsState) -> GibbsState:
        """tau against all local scales, coefficients as they are: what few columns leave open."""
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


def _gram(across: Array, local_scales: Array) -> Float[Array, "rows rows"]:
    scaled = across * local_scales[:, None]
    return scaled.T @ scaled
