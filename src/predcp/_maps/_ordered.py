"""Ordered components: each is compared with the model without it, given the components before it."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from predcp._divergences import (
    Divergence,
    Member,
    abstract_members,
    coordinates_of,
    kl,
    log_mean_and_elasticity,
)
from predcp._maps._complexity import (
    Unit,
    VectorComplexity,
    extrapolated,
    floating_range,
    require_unit,
)
from predcp._maps._displacement import Moved, displacement, in_units_of_largest, parameter_step
from predcp._maps._predictive import sampled
from predcp._numerics.homogeneity import power_of
from predcp._numerics.inverse import Evaluate
from predcp._numerics.normal_noise import normal_noise
from predcp._support.arrays import as_float, concrete
from predcp._support.check import known, require_callable
from predcp._support.compiled import compiled

_UNITS: dict[Fraction | None, Unit] = {
    Fraction(1, 2): "variance",
    Fraction(1): "standard deviation",
}


class OrderedComplexity(VectorComplexity):
    """`kappa_j = D_j(tau_j; tau_1..tau_(j-1))`: nested references, one component at a time.

    Component j is compared with the model that ends before it: the same earlier components at the
    same scales and noise, all later components at scale 0 in both.

    `D_j = mean_s mean_n KL[p(y_n | theta(tau_1..tau_j, 0, ...; xi_s)) || p(y_n | theta(tau_1..tau_(j-1),
    0, ...; xi_s))]`

    The Jacobian is lower triangular and the inverse a forward substitution, so the density of the
    vector of scales is exact. The order matters: put first what you would add to the model first.
    `DepthComplexity` is the special case of the layers of a network, in one scan.

    **Arguments**
    - `likelihood`: `likelihood(theta, x)` returns a NumPyro distribution (or a tuple, list or dict).
    - `parameters`: a list of L functions `component(tau_j, xi_j)`, whose results in a list are theta;
        or one function `parameters(tau, xi)` of the vector tau, shape (L,), that returns theta.
        Scale 0 must switch a component off; it is asked for at the smallest positive number.
    - `x`: inputs, passed on to the likelihood (any pytree, or None).
    - `noise`: xi with a leading axis of S draws: a list of L pytrees of arrays for a list of
        functions, any pytree for one function.
    - `components`: L, needed for one function.
    - `divergence`: `kl`, `reverse_kl`, `squared_hellinger`, `jensen_shannon` or your own.
    - `bounded`: whether the divergences have finite suprema; None for what the divergence says of the
        family of observations.
    - `unit`: "variance" or "standard deviation", what each tau is; None to find it from the functions.
    """

    unit: Unit | None = None

    def __init__(
        self,
        likelihood: Callable[[PyTree, Any], Any],
        parameters: Sequence[Callable[[Array, PyTree], PyTree]] | Callable[[Array, PyTree], PyTree],
        x: Any,
        noise: PyTree,
        components: int | None = None,
        divergence: Divergence = kl,
        bounded: bool | None = None,
        unit: Unit | None = None,
    ):
        self.likelihood = require_callable("likelihood", likelihood, "(theta, x)")
        if callable(parameters):
            if not isinstance(components, int) or components < 1:
                raise ValueError(
                    "components must be the number of scales of parameters(tau, xi), at least 1, got "
                    f"{components!r}"
                )
            self.parameters: Any = parameters
            self.components = components
        else:
            self.parameters = tuple(
                require_callable(f"parameters[{place}]", one, "(tau, xi)")
                for place, one in enumerate(parameters)
            )
            self.components = len(self.parameters)
            if not self.components or components not in (None, self.components):
                raise ValueError(
                    f"parameters has {self.components} functions, components is {components!r}: there "
                    "must be one function per component, at least one"
                )
            if not isinstance(noise, list | tuple) or len(noise) != self.components:
                raise ValueError(
                    f"noise must be a list of {self.components} pytrees, one per function of parameters"
                )
            noise = list(noise)
        self.x = x
        self.noise = jax.tree.map(as_float, noise)
        self._check_noise()
        if not isinstance(divergence, Divergence):
            raise ValueError(f"divergence must be one of predcp's, got {divergence!r}")
        self.divergence = divergence
        found = self._members()
        rules = [self.divergence.rule(member.family) for member in found]
        self.bounded = all(rule.bounded for rule in rules) if bounded is None else bounded
        # What the program is like is found once; rebuilt from new arrays it stays the same program.
        self.powers = tuple(self._find_power(entry) for entry in range(self.components))
        self.unit = self._find_unit() if unit is None else require_unit(unit)
        leaves = jax.tree.leaves([member.coordinates for member in found])
        numbers = max(1, sum(math.prod(leaf.shape) for leaf in leaves))
        self.cost = 8 * self.components * self._draws * numbers
        self._check_moves()

    def _check_noise(self) -> None:
        leaves = jax.tree.leaves(self.noise)
        counts = {leaf.shape[0] if leaf.ndim else None for leaf in leaves}
        if len(counts) != 1 or None in counts or 0 in counts:
            shapes = [leaf.shape for leaf in leaves]
            raise ValueError(
                f"noise must be arrays with the same leading axis of S >= 1 draws, got shapes {shapes}"
            )

    def _check_moves(self) -> None:
        """Every component must change some prediction, or its divergence is constant."""
        if not all(concrete(leaf) for leaf in jax.tree.leaves((self.noise, self.x))):
            return
        one = jnp.ones((), self._dtype)
        for entry in range(self.components):
            # Two scales: at one alone a model may pass through its reference.
            moved = [self._each_draw([one] * entry, tau) for tau in (None, one, 2.7 * one)]
            leaves = [[known(leaf) for leaf in jax.tree.leaves(each)] for each in moved]
            if any(leaf is None for each in leaves for leaf in each):
                return
            if all(
                np.array_equal(start, there)
                for each in leaves[1:]
                for start, there in zip(leaves[0], each)
            ):
                raise ValueError(
                    f"component {entry + 1} changes no prediction for any draw, so its complexity is "
                    "constant (is its part of x all zero, or its noise?)"
                )

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (self.components,)

    @property
    def _dtype(self) -> Any:
        return jnp.result_type(*jax.tree.leaves(self.noise))

    @property
    def _draws(self) -> int:
        return jax.tree.leaves(self.noise)[0].shape[0]

    @property
    def _first_noise(self) -> PyTree:
        return jax.tree.map(lambda leaf: leaf[0], self.noise)

    def _theta(self, tau: Sequence[Array], xi: PyTree) -> PyTree:
        if callable(self.parameters):
            return self.parameters(jnp.stack(tau), xi)
        return [component(*pair) for component, *pair in zip(self.parameters, tau, xi)]

    def _nested(self, before: Sequence[Array], own: Array | None, xi: PyTree) -> PyTree:
        """Parameters with one component at a scale (None: off), given those before; the rest is off."""
        # The smallest positive number, not 0, where the root of a variance has no derivative.
        off = jnp.asarray(jnp.finfo(self._dtype).tiny, self._dtype)
        rest = [off] * (self.components - len(before) - 1)
        return self._theta([*before, off if own is None else own, *rest], xi)

    def _coordinates(self, theta: PyTree) -> list[dict[str, Array]]:
        return coordinates_of(lambda moved: self.likelihood(moved, self.x), theta)

    def _each_draw(self, before: Sequence[Array], own: Array | None) -> list[dict[str, Array]]:
        """Coordinates of the nested model, each with a leading axis of draws."""
        return jax.vmap(lambda xi: self._coordinates(self._nested(before, own, xi)))(self.noise)

    def _members(self) -> list[Member]:
        """Families and shapes of the observations."""
        one = jnp.ones((), self._dtype)
        theta = jax.eval_shape(
            lambda xi: self._theta([one] * self.components, xi), self._first_noise
        )
        return abstract_members(lambda moved: self.likelihood(moved, self.x), theta)

    def _find_power(self, entry: int) -> Fraction | None:
        """The power of its own scale that predictions move as, None for no power."""

        def coordinates(tau, before, xi):
            return self._coordinates(self._nested(before, tau, xi))

        one = jnp.ones((), self._dtype)
        found = power_of(coordinates, one, [one] * entry, self._first_noise)
        return None if found is None else found[0]

    def _find_unit(self) -> Unit | None:
        if callable(self.parameters):
            return None
        one = jnp.ones((), self._dtype)
        found = [
            power_of(component, one, xi)
            for component, xi in zip(self.parameters, self._first_noise)
        ]
        units = {None if power is None else _UNITS.get(power[0]) for power in found}
        return units.pop() if len(units) == 1 else None

    def bind_entry(self, entry: int, below: Float[Array, " entry"]) -> Evaluate:
        return self._bind(entry, below)

    def _bind(self, entry: int, below: Array, keep: int = 0) -> Evaluate:
        """The map of one entry; with `keep=1`, of each draw by itself."""
        half_width = floating_range(self._dtype)
        scales = jnp.exp(jnp.clip(below, -half_width, half_width)).astype(self._dtype)
        before = [scales[place] for place in range(entry)]
        found, power = self._members(), self.powers[entry]
        reference = self._each_draw(before, None)
        if power is None:
            moved = self._moved_by_passes(before, reference)
        else:
            moved = self._moved_by_power(before, float(power))
            half_width /= max(1.0, float(power))

        def evaluate(log_tau):
            directions, log_size, speeds = moved(log_tau)
            sizes = [log_size] * len(found)
            return log_mean_and_elasticity(
                self.divergence, found, reference, directions, sizes, speeds, keep
            )

        return extrapolated(evaluate, half_width)

    def _moved_by_power(self, before: list[Array], power: float) -> Callable[[Array], Moved]:
        """Directions found once; only their size depends on the scale."""
        zero = jnp.zeros((), self._dtype)
        _, speeds = jax.jvp(
            lambda u: self._each_draw(before, jnp.exp(u)), (zero,), (jnp.ones_like(zero),)
        )
        directions = jax.tree.map(lambda array: array / power, speeds)
        return lambda log_tau: (directions, power * log_tau, speeds)

    def _moved_by_passes(self, before: list[Array], reference: PyTree) -> Callable[[Array], Moved]:
        """Forward passes at every scale."""
        origin = jax.vmap(lambda xi: self._nested(before, None, xi))(self.noise)

        def displaced(log_tau, xi, start, start_coordinates):
            theta, velocity, step = parameter_step(
                lambda u: self._nested(before, jnp.exp(u), xi), log_tau, start
            )
            return displacement(self._coordinates, theta, velocity, step, start, start_coordinates)

        def moved(log_tau: Array) -> Moved:
            each = jax.vmap(partial(displaced, log_tau))
            return in_units_of_largest(*each(self.noise, origin, reference))

        return moved

    def _entry_log_supremum(self, entry, below):
        if not self.bounded:
            return jnp.asarray(jnp.inf, self._dtype)
        limit = jnp.asarray(floating_range(self._dtype), self._dtype)
        return self.bind_entry(entry, below)(limit)[0]

    def simulate(self, tau: Float[Array, " components"], key: Array) -> PyTree:
        """Observations with every component at its scale, with fresh standard normal noise."""
        key_noise, key_data = jax.random.split(key)
        noise = normal_noise(key_noise, 1, self._first_noise)
        xi = jax.tree.map(lambda leaf: leaf[0], noise)
        theta = self._theta([tau[place] for place in range(self.components)], xi)
        return sampled(self.likelihood(theta, self.x), key_data)

    @compiled()
    def log_value_by_draw(
        self, log_tau: Float[Array, " components"]
    ) -> Float[Array, "draws components"]:
        """`log` of each divergence under each draw alone, for its Monte Carlo error."""
        values = [
            self._bind(entry, log_tau[:entry], keep=1)(log_tau[entry])[0]
            for entry in range(self.components)
        ]
        return jnp.stack(values, axis=-1)
