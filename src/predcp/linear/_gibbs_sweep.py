"""One sweep of the Gibbs sampler.

Given local scales and, for a logistic outcome, Polya-gamma weights, the coefficients are normal.
They are integrated out while tau and the local scales move, and drawn jointly afterwards
(Bhattacharya, Chakraborty and Mallick, 2016; Johndrow, Orenstein and Bhattacharya, 2020). A
divergence prior of tau depends on the local scales. Local scales are therefore proposed without it,
and a Metropolis step accounts for it.

A sweep reads the design four times: the path of the logits, the draw of the coefficients (twice), and
their predictor. The local scales of one part of the columns move (see `Parts`), which reads that part
three times more, and the swaps of columns read a limited number of columns.
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
from predcp.linear._handover import PriorOfScales, propose_swaps, transposed_if_small
from predcp.linear._lattice import lattice_sample
from predcp.linear._parts import Reader, predictor, same_for_all_chains
from predcp.linear._polya_gamma import polya_gamma
from predcp.linear._slice import slice_sample
from predcp.linear._tuning import HANDOVERS, LATTICES, PATHS, Moves, watched

# Width of a slice on a log scale: posteriors of log tau are a few units wide.
_WIDTH = 2.0
# Reflections per row after which a path is abandoned.
_REFLECTIONS = 4
# With more columns the half-Cauchy priors determine the common size of the local scales.
_FEW_COLUMNS = 64
# Fewest rows for which a reduction is worth its cost.
_REDUCED_ROWS = 100
# Blocks of columns whose local scales are proposed anew in a sweep, those of a part about once.
_BLOCKS = 32


# Of log tau, the factor of the largest columns, and the precision.
LogMarginal = Callable[[Array, Any, Any], Array]


class _Sums(NamedTuple):
    """The prior's sums over columns, for the part that moves in this sweep.

    **Arguments**
    - `part` and its number of the columns that move; `others`, the sums over all columns outside of it.
    - `whole`: over all columns.
    """

    part: Array
    others: Array
    whole: Array


class Sweep(NamedTuple):
    """`sweep(state)` returns the next state and the acceptance rates of its proposals.

    **Arguments**: `design`, see `Design`; `reader`, see `Reader`; `across`, the transposed design
    if it is small; the others as in `Gibbs`. `handovers`, `paths` and `lattice` may be None: the state
    then says how many there are.
    """

    model: GibbsModel
    data: tuple[Any, ...]
    design: Design
    reader: Reader
    across: Any
    handovers: int | None
    paths: int | None
    lattice: int | None

    @classmethod
    def of(
        cls,
        model: GibbsModel,
        data: tuple[Any, ...],
        handovers: int | None,
        paths: int | None,
        lattice: int | None,
    ) -> "Sweep":
        """The sweep over a data set."""
        x = data[0]
        weights = None if model.logistic else model.row_weights(data)
        design = Design.of(x, model.intercept_variance, weights)
        reader = Reader.of(x, model.prior, design.by_rows)
        return cls(model, data, design, reader, transposed_if_small(x), handovers, paths, lattice)

    @property
    def tuned(self) -> bool:
        """Whether a setting is chosen during warm-up."""
        return self.handovers is None or self.paths is None or self.lattice is None

    @property
    def _most(self) -> Moves:
        """The largest numbers of handovers and paths."""
        return Moves(
            HANDOVERS[-1] if self.handovers is None else self.handovers,
            PATHS[-1] if self.paths is None else self.paths,
        )

    def _now(self, state: GibbsState) -> tuple[Any, Any]:
        """The numbers of handovers and paths of this sweep."""
        if not self.tuned:
            return self._most[:2]
        setting = same_for_all_chains(state.setting)
        return (
            setting[0] if self.handovers is None else self.handovers,
            setting[1] if self.paths is None else self.paths,
        )

    def start(self, key: Array) -> GibbsState:
        """The first state of a chain."""
        state = self.model.start(key, self.data)
        held = LargestColumns.among(key, state.local_scales).places
        kept = self.reader.begin(state.local_scales, state.direction, held, self._most.handovers)
        setting = None
        if self.tuned:
            setting = jnp.asarray(
                [
                    HANDOVERS[0] if self.handovers is None else self.handovers,
                    PATHS[0] if self.paths is None else self.paths,
                    LATTICES[0] if self.lattice is None else self.lattice,
                ]
            )
        return state._replace(kept=kept, setting=setting)

    def __call__(self, state: GibbsState) -> tuple[GibbsState, dict[str, Array]]:
        model, (x, y) = self.model, self.data[:2]
        key, *keys = jax.random.split(state.key, 11)
        key_few, key_path, key_weights, key_apart, key_scale, *more = keys
        key_beta, key_local, key_columns, key_size, key_share = more
        state = state._replace(key=key)
        figures: dict[str, Array] = {}
        number, count = same_for_all_chains(state.kept.number), self.reader.parts.number
        largest = LargestColumns.among(key_few, state.local_scales)
        # The last sweep changed the part before.
        kept = self.reader.renewed(
            state.kept, state.local_scales, largest.places, (number - 1) % count
        )
        state = state._replace(kept=kept._replace(number=kept.number + 1))
        system = self.design.system(largest, self.reader.gram(kept))
        if model.logistic:
            eta, figures["paths_ended"] = self._logits(key_path, state, system)
            weights = polya_gamma(key_weights, eta)
            system = system.observing((y - 0.5) / weights, jnp.sqrt(weights))
        else:
            system = system.observing(y.astype(x.dtype), self.design.root)
            system = system._replace(precision=model.precision(state.log_sigma))
        rest = jnp.sum(kept.sums, axis=0)
        rest = rest + self.reader.sums_at(largest.places, largest.unchosen_scales)
        apart = self.reader.sums_at(largest.places, largest.chosen_scales)
        log_marginal = self._log_marginal(system)
        if x.shape[1] > 1:
            state, system = self._tau_against_largest(
                key_apart, state, system, log_marginal, rest, apart
            )
        whole = rest + system.factor**model.prior.sums_power * apart
        state, system = self._scales(key_scale, state, system, log_marginal, whole)
        state = self._coefficients(key_beta, state, system)
        sums = self._sums(state, number % count, whole)
        state, sums, figures["acceptance_rate"] = self._local_scales(key_local, state, sums)
        state, whole, moves = self._columns(key_columns, state, sums, number)
        state = self._size(key_size, state, whole)
        if count == 1 and x.shape[1] <= _FEW_COLUMNS:
            state, whole = self._tau_against_all(key_share, state, whole)
        lp = model.log_density(state, state.kept.fit, whole, self.data)
        figures["lp"] = lp
        if self.tuned:
            eta = jnp.exp(state.log_tau) * state.kept.fit + state.alpha
            figures["watched"] = watched(eta, state.log_tau, lp, state.direction)
        return state, figures | moves

    def _logits(
        self, key: Array, state: GibbsState, system: System
    ) -> tuple[Float[Array, " rows"], Array]:
        """The logits, moved along Hamiltonian paths where there are as many columns as rows."""
        x, y = self.data[:2]
        eta = jnp.exp(state.log_tau) * state.kept.fit + state.alpha
        _, count = self._now(state)
        # With fewer columns than rows the logits have a singular prior.
        if self.paths == 0 or x.shape[0] > x.shape[1] or not isinstance(system, RowSystem):
            return eta, jnp.ones((), x.dtype)
        variance = self.model.intercept_variance
        scales = jnp.exp(state.log_tau) * state.local_scales
        covariance = jnp.exp(2.0 * state.log_tau) * system.gram + variance
        signs = jnp.where(y == 1, 1.0, -1.0).astype(x.dtype)

        keys = jax.random.split(key, self._most.paths)

        def path(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            eta, all_ended = carry
            key_noise, key_level, key_walls = jax.random.split(keys[number], 3)
            noise = jax.random.normal(key_noise, scales.shape, x.dtype)
            level = variance**0.5 * jax.random.normal(key_level, (), x.dtype)
            velocity = predictor(x, scales * noise) + level
            most = _REFLECTIONS * eta.size
            eta, ended = bounced_logits(key_walls, eta, velocity, covariance, signs, most)
            return eta, all_ended + ended

        eta, ended = jax.lax.fori_loop(0, count, path, (eta, jnp.zeros((), x.dtype)))
        return eta, ended / count

    def _drawn(
        self, key: Array, state: GibbsState, log_density: Callable[[Array], Array], start: Array
    ) -> Array:
        """Draw one number given all others."""

        def by_slices() -> Array:
            return slice_sample(key, log_density, start, _WIDTH)

        def by_points(points: int) -> Array:
            return lattice_sample(key, log_density, start, points)

        if self.lattice is not None:
            return by_points(self.lattice) if self.lattice else by_slices()
        points = same_for_all_chains(state.setting)[2]
        return jax.lax.cond(points > 0, lambda: by_points(LATTICES[0]), by_slices)

    def _metropolis(
        self, key: Array, state: GibbsState, before: Array, moved: Array, after: Array
    ) -> Array:
        """Whether the Metropolis correction for p(tau given the local scales) accepts.

        **Arguments**: the prior's sums `before` and `after`; the `moved` local scales.
        """
        x = self.data[0]
        now = self._log_prior(state, state.local_scales, before)
        level = jnp.log(jax.random.uniform(key, (), x.dtype))
        # A NaN fails the comparison and is refused.
        return level < self._log_prior(state, moved, after) - now

    def _log_prior(self, state: GibbsState, local_scales: Array, sums: Array) -> Array:
        """The log prior of the present tau given local scales."""
        log_prior = self.model.log_prior(self.data[0], local_scales, sums, state.log_sigma)
        return log_prior(state.log_tau)

    def _scales(
        self,
        key: Array,
        state: GibbsState,
        system: System,
        log_marginal: LogMarginal,
        sums: Array,
    ) -> tuple[GibbsState, System]:
        """sigma, then tau, with the coefficients integrated out."""
        x, model = self.data[0], self.model
        key_sigma, key_tau = jax.random.split(key)
        log_sigma = state.log_sigma
        if not model.logistic:

            def of_sigma(log_sigma: Array) -> Array:
                half_normal = log_sigma - 0.5 * jnp.exp(2.0 * log_sigma)
                log_prior = model.log_prior(x, state.local_scales, sums, log_sigma)
                value = log_marginal(state.log_tau, system.factor, model.precision(log_sigma))
                return half_normal + log_prior(state.log_tau) + value

            log_sigma = self._drawn(key_sigma, state, of_sigma, log_sigma)
            system = system._replace(precision=model.precision(log_sigma))
        log_prior = model.log_prior(x, state.local_scales, sums, log_sigma)

        def of_tau(log_tau: Array) -> Array:
            return log_prior(log_tau) + log_marginal(log_tau, system.factor, system.precision)

        log_tau = self._drawn(key_tau, state, of_tau, state.log_tau)
        return state._replace(log_tau=log_tau, log_sigma=log_sigma), system

    def _log_marginal(self, system: System) -> LogMarginal:
        """The marginal density of the response."""
        # With one point after the other. On a GPU, where a recursion over rows is slow, by factorisations.
        one_by_one = self.lattice == 0 and jax.default_backend() == "cpu"
        if one_by_one and isinstance(system, RowSystem) and len(system.x) >= _REDUCED_ROWS:
            return system.reduced().log_marginal
        return lambda log_tau, factor, precision: system._replace(
            factor=factor, precision=precision
        ).log_marginal(log_tau)

    def _tau_against_largest(
        self,
        key: Array,
        state: GibbsState,
        system: System,
        log_marginal: LogMarginal,
        rest: Array,
        apart: Array,
    ) -> tuple[GibbsState, System]:
        """Move tau and keep `tau lambda` of the columns with the largest local scales.

        A few columns carry the signal and hold tau in place, though tau describes all the others.
        A move after which they would not be the largest is refused: its reverse is not proposed.

        **Arguments**: the prior's sums over the columns of the group (`apart`) and over the `rest`.
        """
        x, columns, model = self.data[0], system.columns, self.model
        log_largest = jnp.log(columns.scales)

        def log_density(shift: Array) -> Array:
            log_tau, after, factor = state.log_tau + shift, log_largest - shift, jnp.exp(-shift)
            half_cauchys = -jnp.sum(jnp.where(columns.chosen, jnp.logaddexp(after, -after), 0.0))
            sums = rest + factor**model.prior.sums_power * apart
            log_prior = model.log_prior(x, columns.local_scales(factor), sums, state.log_sigma)
            value = log_prior(log_tau) + half_cauchys
            # In units of the new tau their scales shrink.
            value = value + log_marginal(log_tau, factor, system.precision)
            return jnp.where(shift < columns.room, value, -jnp.inf)

        shift = self._drawn(key, state, log_density, jnp.zeros((), x.dtype))
        system = system._replace(factor=jnp.exp(-shift))
        state = state._replace(
            log_tau=state.log_tau + shift, local_scales=columns.local_scales(system.factor)
        )
        return state, system

    def _coefficients(self, key: Array, state: GibbsState, system: System) -> GibbsState:
        """All coefficients and the intercept jointly."""
        direction, alpha = system.draw(key, state.log_tau)
        # While tau overflows, keep the last coefficients.
        usable = jnp.all(jnp.isfinite(direction)) & jnp.isfinite(alpha)
        direction = jnp.where(usable, direction, state.direction)
        return state._replace(
            direction=direction,
            alpha=jnp.where(usable, alpha, state.alpha),
            kept=state.kept._replace(fit=predictor(self.data[0], direction)),
        )

    def _sums(self, state: GibbsState, part: Array, whole: Array) -> _Sums:
        """The prior's sums inside and outside of a part."""
        return _Sums(part, self._sums_outside(state, part, state.kept.held[:0]), whole)

    def _sums_outside(self, state: GibbsState, part: Array, without: Array) -> Array:
        """The prior's sums over the columns outside of a part, but for those at some places."""
        kept, parts = state.kept, self.reader.parts
        outside = (jnp.arange(parts.number) != part)[:, None, None]
        held = kept.held // parts.length != part
        held = held & ~jnp.any(kept.held[:, None] == without, axis=1)
        scales = jnp.where(held, state.local_scales[kept.held], 0.0)
        whole = jnp.sum(jnp.where(outside, kept.sums, 0.0), axis=0)
        whole = whole + self.reader.sums_at(kept.held, scales)
        # Of the places outside of the part, those that are not held back are in the kept sums.
        included = jnp.where(without // parts.length != part, kept.included[without], 0.0)
        return whole - self.reader.sums_at(without, included)

    def _local_scales(
        self, key: Array, state: GibbsState, sums: _Sums
    ) -> tuple[GibbsState, _Sums, Array]:
        """`lambda_d` given `lambda_d xi_d` in one part of the columns: a slice on `u = 1 / lambda^2`.

        Without the prior of tau, `p(u) = exp(-g u) / (1 + u)` with `g = (lambda xi)^2 / 2`
        (Polson, Scott and Windle, 2014).
        """
        kind, parts = state.direction.dtype, self.reader.parts
        key_move, key_accept = jax.random.split(key)
        tiny = jnp.finfo(kind).tiny
        before = parts.take(state.local_scales, sums.part)
        level, place = jax.random.uniform(key_move, (2, before.size), kind, tiny)
        rate = 0.5 * parts.take(state.direction, sums.part) ** 2
        bound = ((1.0 - level) + before**-2) / level
        # An exponential below the bound; a uniform where the rate is too small to tell.
        flat = rate * bound < jnp.finfo(kind).eps
        safe = jnp.where(flat, 1.0, rate)
        curved = -jnp.log1p(place * jnp.expm1(-safe * bound)) / safe
        u = jnp.maximum(jnp.where(flat, place * bound, curved), tiny)
        moved = parts.put(state.local_scales, sums.part, jax.lax.rsqrt(u))
        return self._accepted(key_accept, state, state.direction, moved, state.kept.fit, sums)

    def _accepted(
        self,
        key: Array,
        state: GibbsState,
        direction: Array,
        local_scales: Array,
        fit: Array,
        sums: _Sums,
    ) -> tuple[GibbsState, _Sums, Array]:
        """Moved columns of a part, if the Metropolis correction accepts them."""
        inside = self.reader.part_sums(self.reader.own_scales(local_scales, sums.part), sums.part)
        after = sums.others + inside
        accept = self._metropolis(key, state, sums.whole, local_scales, after)

        def chosen(new: Array, old: Array) -> Array:
            return jnp.where(accept, new, old)

        state = state._replace(
            direction=chosen(direction, state.direction),
            local_scales=chosen(local_scales, state.local_scales),
            kept=state.kept._replace(fit=chosen(fit, state.kept.fit)),
        )
        whole = chosen(after, sums.whole)
        return state, sums._replace(whole=whole), accept.astype(fit.dtype)

    def _columns(
        self, key: Array, state: GibbsState, sums: _Sums, number: Array
    ) -> tuple[GibbsState, Array, dict[str, Array]]:
        """New local scales for blocks of columns, then swaps of columns, without the weights.

        Also returns the prior's sums over all columns.
        """
        x, reader = self.data[0], self.reader
        parts = reader.parts
        key_renew, key_accept, key_over = jax.random.split(key, 3)
        tau, alpha = jnp.exp(state.log_tau), state.alpha

        def log_likelihood(fit: Array) -> Array:
            return self.model.log_likelihood(tau * fit + alpha, state.log_sigma, self.data)

        def taken(values: Array) -> Array:
            return parts.take(values, sums.part)

        before = Columns(taken(state.direction), taken(state.local_scales), state.kept.fit)
        order = jax.random.fold_in(jax.random.key(0), number)
        moved, renewed = renewed_columns(
            key_renew, order, before, taken(x), parts.own(sums.part), log_likelihood, _BLOCKS
        )
        direction = parts.put(state.direction, sums.part, moved.direction)
        scales = parts.put(state.local_scales, sums.part, moved.local_scales)
        state, sums, accept = self._accepted(key_accept, state, direction, scales, moved.fit, sums)
        figures, whole = {"renewed": renewed * accept}, sums.whole
        # With one column there is nothing to swap.
        if self._most.handovers and x.shape[1] > 1:
            given = state

            def others(places: Array) -> Array:
                scales = reader.own_scales(given.local_scales.at[places].set(0.0), sums.part)
                outside = self._sums_outside(given, sums.part, places)
                return outside + reader.part_sums(scales, sums.part)

            def log_density(local_scales: Array, sums: Array) -> Array:
                return self._log_prior(given, local_scales, sums)

            prior = PriorOfScales(log_density, reader.sums_at, others)
            before = Columns(state.direction, state.local_scales, state.kept.fit)
            moved, whole, traded, figures["swapped"] = propose_swaps(
                key_over,
                before,
                x,
                self.across,
                log_likelihood,
                prior,
                self._most.handovers,
                self._now(state)[0],
            )
            state = state._replace(
                direction=moved.direction,
                local_scales=moved.local_scales,
                kept=state.kept._replace(traded=traded, fit=moved.fit),
            )
        return state, whole, figures

    def _size(self, key: Array, state: GibbsState, sums: Array) -> GibbsState:
        """tau, and with it all coefficients, without the weights.

        For separable rows the size of the logits has a long tail, in which a step that keeps the
        weights can move only by a small fraction.
        """
        fit = state.kept.fit
        log_prior = self.model.log_prior(self.data[0], state.local_scales, sums, state.log_sigma)

        def log_density(log_tau: Array) -> Array:
            eta = jnp.exp(log_tau) * fit + state.alpha
            likelihood = self.model.log_likelihood(eta, state.log_sigma, self.data)
            return likelihood + log_prior(log_tau)

        return state._replace(log_tau=self._drawn(key, state, log_density, state.log_tau))

    def _tau_against_all(
        self, key: Array, state: GibbsState, sums: Array
    ) -> tuple[GibbsState, Array]:
        """Move tau and keep every `tau lambda`: with few columns this direction mixes slowly."""
        x, power = self.data[0], self.model.prior.sums_power
        log_scales = jnp.log(state.local_scales)

        def log_density(shift: Array) -> Array:
            moved, shrunk = log_scales - shift, jnp.exp(-power * shift) * sums
            log_prior = self.model.log_prior(x, jnp.exp(moved), shrunk, state.log_sigma)
            half_cauchys = -jnp.sum(jnp.logaddexp(moved, -moved))
            return log_prior(state.log_tau + shift) + half_cauchys

        shift = self._drawn(key, state, log_density, jnp.zeros((), x.dtype))
        factor = jnp.exp(-shift)
        state = state._replace(
            log_tau=state.log_tau + shift,
            local_scales=state.local_scales * factor,
            direction=state.direction * factor,
            kept=state.kept._replace(fit=state.kept.fit * factor),
        )
        return state, factor**power * sums
