"""The predictive complexity of any model whose observations have a known divergence."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Self

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PyTree

from predcp._divergences import (
    Divergence,
    Member,
    abstract_members,
    coordinates_of,
    kl,
    log_mean_and_elasticity,
    members,
    trials_up_to,
)
from predcp._maps._complexity import ScalarComplexity, Unit, require_unit
from predcp._maps._predictive_checks import check_moves, check_origin
from predcp._maps._row_nodes import (
    RowNodes,
    RowSizes,
    directions_at_nodes,
    for_each_node,
    halved,
    row_nodes,
    row_sizes,
)
from predcp._maps._sampled import sampled
from predcp._numerics.dependence import Origin, dependencies
from predcp._numerics.displacement import displacement, in_units, parameter_step
from predcp._numerics.homogeneity import power_and_moving, power_of
from predcp._numerics.inverse import Evaluate
from predcp._numerics.normal_noise import normal_noise
from predcp._numerics.power_law import extrapolated, floating_range
from predcp._support.arrays import as_float, concrete, is_floating, is_number
from predcp._support.check import (
    require_broadcast,
    require_callable,
    require_positive,
    require_weights,
    require_whole,
)
from predcp._support.compiled import compiled

# Directions of the coordinates, log of their common size, velocities in units of that size.
_Moved = tuple[PyTree, Array, PyTree]


class PredictiveComplexity(ScalarComplexity):
    """Expected divergence of a model's predictions from the reference's (Equations 8 and 9).

    `D(tau) = mean_s mean_n KL[p(y_n | theta(tau, xi_s)) || p(y_n | theta_0)]`: summed over the event
    dimensions of the observations, averaged over their batch dimensions and over the draws. The
    average is per trial, so that six rows of `Binomial(20)` and 120 rows of `Bernoulli` with the
    same data give the same D.

    The draws are part of the object, so that the density is deterministic and differentiable.

    A model whose predictions move from the reference as a power of tau (a linear predictor, a
    ReLU branch without bias) is recognised from its program and costs one forward pass per map
    instead of one per evaluation.

    **Arguments**
    - `likelihood`: `likelihood(theta, x)` returns a NumPyro distribution (or a tuple, list or dict).
    - `parameters`: `parameters(tau, xi)` returns theta, non-centred, equal to `reference` at tau = 0.
        This function gives tau its meaning: a variance in `sqrt(tau) * xi`, a standard
        deviation in `tau * xi`; see `unit`.
    - `reference`: theta_0, a pytree of the structure of theta, or a function `reference(xi)` of one
        draw's noise if each draw has its own reference.
    - `x`: inputs, passed on to the likelihood (any pytree, or None).
    - `noise`: xi, an array or pytree of arrays with a leading axis of S draws.
    - `divergence`: `kl`, `reverse_kl`, `squared_hellinger`, `jensen_shannon` or your own.
    - `homogeneous`: the power of tau with which predictions move; None to find it; False to use
        the general path.
    - `bounded`: whether D has a finite supremum; None to take it from the divergence and the family
        (a softmax is bounded, a location is not). Use True for a model that saturates by itself.
    - `unit`: "variance" or "standard deviation", the unit of tau; None to find it from how
        `parameters` moves with tau. If it is not found, summaries ask for it.
    - `per`: the unit of the average over points, `sum_n w_n D_n / sum_n w_n u_n`. `"trial"`: u_n is the
        total count of a binomial or multinomial point, 1 for other families. `"row"`: 1. An array that
        broadcasts to the batch shape: u_n itself, for instance the exposures of Poisson counts.
    - `weights`: w_n, non-negative, an array that broadcasts to the batch shape; 1 when None.
    """

    unit: Unit | None = None
    # A map made by `trusted` has these unless it is given others.
    per: Any = "trial"
    weights: Array | None = None
    moving: tuple[bool, ...] | None = None
    fixed_reference: tuple[bool, ...] | None = None
    # For each factor of the observations, the coordinates that move; the largest total count.
    moves: tuple[frozenset[str] | None, ...] | None = None
    most_trials: int | None = None
    # Set by `by_quadrature`.
    nodes: RowNodes | None = None
    sizes: RowSizes | None = None

    def __init__(
        self,
        likelihood: Callable[[PyTree, Any], Any],
        parameters: Callable[[Array, PyTree], PyTree],
        reference: PyTree,
        x: Any,
        noise: PyTree,
        divergence: Divergence = kl,
        homogeneous: float | bool | None = None,
        bounded: bool | None = None,
        unit: Unit | None = None,
        per: Any = "trial",
        weights: Any = None,
    ):
        self.likelihood = require_callable("likelihood", likelihood, "(theta, x)")
        self.parameters = require_callable("parameters", parameters, "(tau, xi)")
        self.reference = reference if callable(reference) else jax.tree.map(as_float, reference)
        self.x = jax.tree.map(lambda leaf: jnp.asarray(leaf) if is_number(leaf) else leaf, x)
        self.noise = jax.tree.map(self._as_noise, noise)
        if not isinstance(divergence, Divergence):
            raise ValueError(f"divergence must be one of predcp's, got {divergence!r}")
        self.divergence = divergence
        # Found once: a map rebuilt from new arrays has the same program.
        checked = self.check()
        if None in (checked or ()):
            self._check_program()
        self.most_trials = self._find_most_trials()
        found = self._abstract_members()
        moving = checked or [None] * len(found)
        self.moves = self._find_moves(found, moving)
        found = self._abstract_members()
        rules = [self.divergence.rule(member.family, member.moving) for member in found]
        if bounded is None:
            bounded = all(rule.bounded_if(names) for rule, names in zip(rules, moving))
        self.bounded = bounded
        self.power = self._find_power(homogeneous)
        self.fixed_reference = self._find_fixed_reference()
        self.unit = self._find_unit(unit)
        self.per = per if isinstance(per, str) else require_positive("per", per)
        if isinstance(per, str) and per not in ("trial", "row"):
            raise ValueError(f"per must be 'trial', 'row' or an array of units, got {per!r}")
        self.weights = None if weights is None else require_weights("weights", weights)
        for name, array in (("per", self.per), ("weights", self.weights)):
            for member in found if hasattr(array, "shape") else ():
                require_broadcast(name, array, member.batch_shape)
        leaves = jax.tree.leaves([member.coordinates for member in found])
        nodes = max(rule.nodes_if(names) for rule, names in zip(rules, moving))
        self.cost = 8 * nodes * self._count * max(1, sum(math.prod(leaf.shape) for leaf in leaves))

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """The map made from fields that were checked before, at no cost."""
        made = cls.__new__(cls)
        vars(made).update(fields)
        return made

    def check(self) -> Sequence[set[str] | None] | None:
        """Refuse a model that cannot give a prior, with the reason.

        Returns the coordinates that move, a set for each factor, None where they are traced.
        """
        leaves = jax.tree.leaves(self.noise)
        if not leaves:
            raise ValueError("noise must hold at least one array with a leading axis of draws")
        counts = {leaf.shape[0] if leaf.ndim else None for leaf in leaves}
        if len(counts) != 1 or None in counts or 0 in counts:
            shapes = [leaf.shape for leaf in leaves]
            raise ValueError(
                f"noise must share a leading axis of S >= 1 draws, got shapes {shapes}"
            )
        one = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.noise
        )
        tau = jax.ShapeDtypeStruct((), self._dtype)
        theta = jax.eval_shape(self.parameters, tau, one)
        wanted = jax.tree.map(lambda leaf: tuple(leaf.shape), jax.eval_shape(self._first_origin))
        got = jax.tree.map(lambda leaf: tuple(leaf.shape), theta)
        if wanted != got:
            raise ValueError(
                "reference must have the structure and shapes of parameters(tau, xi): "
                f"reference has {wanted}, parameters gives {got}"
            )
        check_origin(self)
        return check_moves(self)

    def _members(self, origin: PyTree) -> list[Member]:
        """The factors of the observations at one theta."""
        with trials_up_to(self.most_trials):
            found = members(self.likelihood(origin, self.x))
        moves = self.moves or [None] * len(found)
        return [member._replace(moving=names) for member, names in zip(found, moves)]

    def _abstract_members(self) -> list[Member]:
        """The same with the shapes of their coordinates only."""
        origin = jax.eval_shape(self._first_origin)
        with trials_up_to(self.most_trials):
            found = abstract_members(self.likelihood, origin, self.x)
        moves = self.moves or [None] * len(found)
        return [member._replace(moving=names) for member, names in zip(found, moves)]

    def _find_most_trials(self) -> int | None:
        """The largest total count, where counts are summed: sums need a known number of terms."""
        counting = any("total_count" in each.coordinates for each in self._abstract_members())
        if not counting or not all(map(concrete, jax.tree.leaves(self))):
            return None
        with jax.ensure_compile_time_eval():
            found = self._members(self._first_origin())
            counts = [each.coordinates.get("total_count", jnp.zeros(())) for each in found]
            return max(int(jnp.max(count, initial=1)) for count in counts)

    def _find_moves(self, found: list[Member], checked: Sequence[set[str] | None]) -> Any:
        """For each factor, the coordinates that move: found from numbers, or else from the program."""
        if not any(self.divergence.rule(member.family).freed for member in found):
            return None
        if None not in checked:
            return tuple(frozenset(names or ()) for names in checked)
        return self._moves_of_program()

    def _moves_of_program(self) -> tuple[frozenset[str], ...]:
        """For each factor, the coordinates that depend on the scale."""
        inputs = {"tau": jnp.ones((), self._dtype), "xi": jax.tree.map(lambda a: a[0], self.noise)}
        origins = dependencies(lambda tau, xi: self._coordinates(self.parameters(tau, xi)), inputs)
        return tuple(
            frozenset(name for name, origin in each.items() if "tau" in origin.labels)
            for each in origins
        )

    def _check_program(self) -> None:
        """Refuse what the program itself tells where its numbers are traced."""
        found = self._abstract_members()
        fixed = any(self.divergence.rule(member.family).fixed for member in found)
        for member, names in zip(found, self._moves_of_program() if fixed else ()):
            for name in names.intersection(self.divergence.rule(member.family, names).fixed):
                raise ValueError(
                    f"divergence {self.divergence.name!r} between {member.family.__name__} observations "
                    f"needs the same {name} in model and reference, but here it depends on the scale"
                )

    @property
    def averaged_over(self) -> str:
        """What D is an average over: trials, rows, or units of the user's own."""
        units = {"trial": "trials", "row": "rows"}
        words = units[self.per] if isinstance(self.per, str) else "units that were given"
        return words if self.weights is None else f"{words}, weighted"

    def by_quadrature(self, nodes: int = 16, required: bool = True) -> Self:
        """The same map with each row's predictor integrated by quadrature in place of draws.

        Predictors must move as a power of tau, be linear in the noise, which is taken as standard
        normal, and be one number for each row. Otherwise an error says what is missing.

        **Arguments**: `nodes`, Gauss-Hermite nodes of each row, an even number (twice as many at equal log
        distances if D is bounded; at most 64); `required=False` to get the draws and no error.
        """
        found = row_nodes(self, require_whole("nodes", nodes))
        if isinstance(found, str):
            if not required:
                return self
            raise ValueError(f"rows cannot be integrated by quadrature: {found}; keep the draws")
        places, sizes = found
        cost = self.cost * places.per_row * places.draws // self._count
        return self.trusted(**vars(self) | {"nodes": places, "sizes": sizes, "cost": max(1, cost)})

    def _split_noise(self, xi: PyTree) -> tuple[PyTree, PyTree]:
        """The part of the noise that is standard normal, and the rest of it."""
        return xi, ()

    def _join_noise(self, normal: PyTree, other: PyTree) -> PyTree:
        """The noise of the two parts."""
        return normal

    def _given(self) -> PyTree:
        """Values that the map holds and that may change from one evaluation to the next."""
        return ()

    def _with_given(self, given: PyTree) -> Self:
        """The map with other values of those."""
        return self

    @staticmethod
    def _as_noise(leaf: Any) -> Array:
        return as_float(leaf)

    @property
    def _dtype(self) -> Any:
        return jnp.result_type(*jax.tree.leaves(self.noise))

    @property
    def _count(self) -> int:
        return jax.tree.leaves(self.noise)[0].shape[0]

    def _coordinates(self, theta: PyTree) -> list[dict[str, Array]]:
        with trials_up_to(self.most_trials):
            found = coordinates_of(lambda moved: self.likelihood(moved, self.x), theta)
        # NumPyro makes arrays of Python numbers, in double precision if that is enabled.
        leaves = [leaf for leaf in jax.tree.leaves((theta, self.x)) if is_floating(leaf)]
        kind = jnp.result_type(*leaves) if leaves else self._dtype
        return jax.tree.map(lambda array: array.astype(kind), found)

    def _find_unit(self, unit: Unit | None) -> Unit | None:
        """The unit of tau: parameters move as its root (a variance) or as tau itself."""
        if unit is not None:
            return require_unit(unit)
        one = jax.tree.map(lambda leaf: leaf[0], self.noise)
        found = power_of(self.parameters, jnp.ones((), self._dtype), one)
        units: dict[Fraction, Unit] = {
            Fraction(1, 2): "variance",
            Fraction(1): "standard deviation",
        }
        return None if found is None else units.get(found[0])

    def _find_power(self, homogeneous: float | bool | None) -> tuple[Fraction, bool] | None:
        """The power of tau that predictions move as, and whether they start from zero."""
        if homogeneous is False:
            return None
        if homogeneous is not None and homogeneous is not True:
            return Fraction(float(homogeneous)).limit_denominator(1000), False
        one = jax.tree.map(lambda leaf: leaf[0], self.noise)
        found = power_and_moving(
            lambda tau, xi: self._coordinates(self.parameters(tau, xi)),
            jnp.ones((), self._dtype),
            one,
        )
        if found is None and homogeneous is True:
            raise ValueError(
                "homogeneous=True, but the predictions were not seen to move as a power of tau; "
                "give the power itself to declare it, or leave homogeneous out"
            )
        if found is None:
            return None
        power, self.moving = found
        return power

    def _find_fixed_reference(self) -> tuple[bool, ...] | None:
        """By array of the reference's coordinates, whether all draws share it."""
        if not callable(self.reference):
            return None
        one = jax.tree.map(lambda leaf: leaf[0], self.noise)
        inputs = {"zero": jnp.zeros((), self._dtype), "xi": one}
        origins = dependencies(
            lambda zero, xi: self._coordinates(self._origin_at(zero, xi)), inputs, ["zero"]
        )
        leaves = jax.tree.leaves(origins, is_leaf=lambda leaf: isinstance(leaf, Origin))
        return tuple(not origin.labels for origin in leaves)

    def _directions(self, power: Fraction, pure: bool) -> list[dict[str, Array]]:
        """Displacement of the coordinates at tau = 1, each with a leading axis of draws."""

        def unit(xi):
            def at(log_tau):
                return self._coordinates(self.parameters(jnp.exp(log_tau), xi))

            zero = jnp.zeros((), self._dtype)
            if pure:
                # Arrays that do not move have the value of the reference: their difference is exactly 0.
                return at(zero)
            _, speed = jax.jvp(at, (zero,), (jnp.ones_like(zero),))
            return jax.tree.map(lambda array: array / float(power), speed)

        directions = jax.vmap(unit)(self.noise)
        if pure:
            start = self._reference()
            directions = jax.tree.map(lambda moved, start: moved - start, directions, start)
        if self.moving is None:
            return directions
        # Arrays that never move need no axis of points. Their zeros cost nothing, and are known while
        # the program is traced.
        leaves, structure = jax.tree.flatten(directions)
        with jax.ensure_compile_time_eval():
            still = [jnp.zeros((len(leaf), *[1] * (leaf.ndim - 1)), leaf.dtype) for leaf in leaves]
        kept = (leaf if m else zero for leaf, zero, m in zip(leaves, still, self.moving))
        return jax.tree.unflatten(structure, kept)

    def _arrays(self) -> PyTree:
        """The noise, and the reference where it is given by arrays."""
        return self.noise if callable(self.reference) else (self.noise, self.reference)

    def _origin(self, xi: PyTree) -> PyTree:
        """theta_0 of one draw."""
        return self.reference(xi) if callable(self.reference) else self.reference

    def _origin_at(self, zero: Array, xi: PyTree) -> PyTree:
        """theta_0 with the scale 0 as an argument, so that a traced program shows where it is."""
        return self._origin(xi)

    def _first_origin(self) -> PyTree:
        return self._origin(jax.tree.map(lambda leaf: leaf[0], self.noise))

    def _reference(self, shared: bool = True) -> list[dict[str, Array]]:
        """The reference's coordinates, with a leading axis of draws where they may differ."""
        if not callable(self.reference):
            return self._coordinates(self.reference)
        each = jax.vmap(lambda xi: self._coordinates(self._origin(xi)))(self.noise)
        if not shared or self.fixed_reference is None:
            return each
        leaves, structure = jax.tree.flatten(each)
        first = jax.tree.leaves(self._coordinates(self._first_origin()))
        chosen = [one if f else all_ for one, all_, f in zip(first, leaves, self.fixed_reference)]
        return jax.tree.unflatten(structure, chosen)

    def bind(self, keep: int = 0) -> Evaluate:
        """The map of one `log tau`; with `keep=1`, of each draw by itself."""
        found = self._members(self._first_origin())
        # Passes go draw by draw, each with its own reference.
        reference = self._reference(shared=self.power is not None)
        half_width = floating_range(self._dtype)
        log_shares = None
        if self.power is None:
            moved = self._moved_by_passes(reference)
        elif self.nodes is not None:
            moved, reference, log_shares = self._moved_at_nodes(self.nodes, reference)
            half_width /= max(1.0, float(self.power[0]))
        else:
            moved = self._moved_by_power(*self.power)
            half_width /= max(1.0, float(self.power[0]))
        if any(self.divergence.rule(each.family, each.moving).coarse for each in found):
            # Farther out, the nodes of a quadrature cannot be distinguished from their centre.
            half_width = min(half_width, -0.4 * math.log(float(jnp.finfo(self._dtype).eps)))

        def evaluate(log_tau):
            directions, log_size, speeds = moved(log_tau)
            sizes = [log_size] * len(found)
            moves = reference, directions, sizes, speeds
            return log_mean_and_elasticity(
                self.divergence, found, *moves, keep, self.per, self.weights, log_shares
            )

        return extrapolated(evaluate, half_width, self.bounded)

    def _moved_by_power(self, power: Fraction, pure: bool) -> Callable[[Array], _Moved]:
        """Directions that are computed once; only their size depends on the scale."""
        directions = self._directions(power, pure)
        velocities = jax.tree.map(lambda array: float(power) * array, directions)
        return lambda log_tau: (directions, float(power) * log_tau, velocities)

    def _moved_at_nodes(
        self, nodes: RowNodes, reference: PyTree
    ) -> tuple[Callable[[Array], _Moved], PyTree, Array]:
        """The same at the nodes of each row; the reference at these, and the logs of their weights."""
        assert self.power is not None and self.moving is not None
        sizes = row_sizes(self, nodes.by_draw) if self.sizes is None else self.sizes
        like = self._coordinates(self._first_origin())
        found, log_shares = directions_at_nodes(nodes, sizes, like, self.moving)
        power = float(self.power[0])
        velocities = jax.tree.map(lambda array: power * array, found)
        reference = for_each_node(nodes, reference, like)
        return lambda log_tau: (found, power * log_tau, velocities), reference, log_shares

    def _moved_by_passes(self, reference: PyTree) -> Callable[[Array], _Moved]:
        """Forward passes at every scale."""

        def moved(log_tau: Array) -> _Moved:
            axis = 0 if callable(self.reference) else None
            each = jax.vmap(lambda xi, start: self._displaced(log_tau, xi, start), (0, axis))
            return in_units(*each(self.noise, reference))

        return moved

    def _displaced(self, log_tau: Array, xi: PyTree, reference: PyTree) -> tuple[PyTree, PyTree]:
        origin = self._origin(xi)
        theta, velocity, step = parameter_step(
            lambda u: self.parameters(jnp.exp(u), xi), log_tau, origin
        )
        return displacement(self._coordinates, theta, velocity, step, origin, reference)

    def _single_log_supremum(self) -> Float[Array, ""]:
        limit = jnp.asarray(floating_range(self._dtype), self._dtype)
        return self.bind()(limit)[0]

    def simulate(self, tau: Float[Array, ""], key: Array) -> PyTree:
        """Observations of the model at one scale, with fresh standard normal noise."""
        key_noise, key_data = jax.random.split(key)
        like = jax.tree.map(lambda leaf: leaf[0], self.noise)
        noise = jax.tree.map(lambda leaf: leaf[0], normal_noise(key_noise, 1, like))
        return sampled(self.likelihood(self.parameters(tau, noise), self.x), key_data)

    @compiled()
    def quadrature_error(self, log_tau: Float[Array, ""]) -> Float[Array, ""]:
        """Relative change of D when quadratures take half their nodes; NaN where there is none."""
        found = self._abstract_members()
        by_rule = any(self.divergence.rule(each.family, each.moving).coarse for each in found)
        if not by_rule and self.nodes is None:
            return jnp.asarray(jnp.nan)
        fewer = {"divergence": self.divergence.coarsened(), "nodes": halved(self.nodes)}
        coarse = self.trusted(**vars(self) | fewer)
        return jnp.abs(jnp.expm1(coarse.bind()(log_tau)[0] - self.bind()(log_tau)[0]))

    @compiled()
    def log_value_by_draw(self, log_tau: Float[Array, ""]) -> Float[Array, " draws"]:
        """`log` of the divergence under each draw alone, for its Monte Carlo error."""
        log_kappa, _ = self.bind(keep=1)(log_tau)
        if self.nodes is None:
            return log_kappa
        by_draw = log_kappa.reshape(self.nodes.draws, self.nodes.per_row)
        return logsumexp(by_draw, axis=-1) + math.log(self.nodes.draws)
