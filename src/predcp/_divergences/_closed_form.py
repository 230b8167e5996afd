"""Make a rule from a formula that is accurate away from equality only.

A divergence `f(d)` of the displacement `d` has `f(0) = f'(0) = 0`. Near equality the formula
cancels, but its second derivative does not, and

    f(d)      = int_0^1 (1 - s) f''(s d)[d, d] ds
    f'(d)[v]  = int_0^1         f''(s d)[d, v] ds,

which Gauss's rule computes to rounding error. Both are quadratic in the direction, so the size of
the displacement can stay a log.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._divergences._divergence import Coordinates, Rule
from predcp._numerics.special import Terms, capped_exp

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
_NODES, _WEIGHTS = 0.5 + 0.5 * _NODES, 0.5 * _WEIGHTS

Formula = Callable[[Coordinates, Coordinates], list[Terms]]


def _sum(terms: list[Terms]) -> Array:
    return reduce(jnp.add, [jnp.exp(weight) * coefficient for weight, coefficient in terms])


class Gate(NamedTuple):
    """A factor of a divergence, the probability that there is an observation to compare.

    **Arguments**: the coordinate it depends on; the log of the factor; the formula of the product,
    in which growing exponents of the two may cancel. Near equality the formula without the gate is
    used.
    """

    coordinate: str
    log_open: Callable[[Coordinates, Coordinates], Array]
    formula: Formula


def closed_form(
    formula: Formula,
    moving: tuple[str, ...],
    bounded: bool,
    near: float = 0.2,
    event_axes: int = 0,
    fixed: tuple[str, ...] = (),
    nodes: int = 1,
    gate: Gate | None = None,
    near_formula: Formula | None = None,
    length: Callable[[Coordinates, Coordinates], Array] | None = None,
) -> Rule:
    """The rule of a formula.

    **Arguments**
    - `formula`: from the reference's coordinates and the displacement to the terms of the divergence.
    - `moving`: the coordinates it depends on.
    - `bounded`: whether the divergence stays finite as the displacement grows.
    - `near`: the largest displacement of a coordinate at which the second derivative is used, well
        below the distance of the formula's nearest singularity.
    - `event_axes`: how many trailing axes of a coordinate belong to one observation; the terms have
        the other axes only.
    - `fixed`: coordinates that must not move.
    - `nodes`: how many intermediate numbers the formula needs per observation.
    - `gate`: a factor of the divergence that moves too.
    - `near_formula`: the formula whose second derivative is used, where that is another one.
    - `length`: from the reference's coordinates and a direction to its length, per observation, which
        stands for the largest coordinate where 1 may be far or near: a location counts in scales.
    """
    open_formula = formula if gate is None else gate.formula

    def total(reference: Coordinates, displacement: Coordinates) -> Array:
        """The divergence as a number, for displacements that are not large."""
        return _sum((near_formula or formula)(reference, displacement))

    def bent(reference, direction, size, velocity, weights):
        """Integral of the weighted second derivative along the displacement."""

        def at(fraction):
            def slope(point):
                return jax.jvp(lambda d: total(reference, d), (point,), (direction,))[1]

            point = {name: fraction * size[name] for name in moving}
            return jax.jvp(slope, (point,), (velocity,))[1]

        kind = jax.tree.leaves(direction)[0].dtype
        values = jax.vmap(at)(jnp.asarray(_NODES, kind))
        return jnp.tensordot(jnp.asarray(weights, kind), values, axes=1)

    def prepare(reference, direction, log_size):
        shapes = [jnp.shape(array) for array in [*reference.values(), *direction.values()]]
        points = jnp.broadcast_shapes(*(shape[: len(shape) - event_axes] for shape in shapes))
        kind = jnp.result_type(*direction.values())
        held = () if gate is None else (gate.coordinate,)

        def wide(name: str) -> Array:
            pair = direction[name], reference[name]
            events = (each.shape[each.ndim - event_axes :] for each in pair)
            shape = (*points, *jnp.broadcast_shapes(*events))
            return jnp.broadcast_to(direction[name], shape).astype(kind)

        direction = {name: wide(name) for name in (*moving, *held)}
        expanded = jnp.asarray(log_size, kind)
        expanded = expanded.reshape(expanded.shape + (1,) * event_axes)
        size = {name: array * capped_exp(expanded) for name, array in direction.items()}
        # How far the coordinates of one observation have moved, over its event axes.
        axes = tuple(range(-event_axes, 0))
        moves = [jnp.max(jnp.abs(size[name]), axis=axes) for name in moving]
        if length is not None:
            own = jax.lax.stop_gradient((reference, {name: direction[name] for name in moving}))
            moves = [length(*own) * capped_exp(jnp.asarray(log_size, kind))]
        is_near = jnp.stack(jnp.broadcast_arrays(*moves)).max(0) < near
        spread = is_near.reshape(is_near.shape + (1,) * event_axes)
        inner = {name: jnp.where(spread, size[name], 0.0) for name in moving}
        outer = {
            name: jnp.where(spread, near, array) if name in moving else array
            for name, array in size.items()
        }
        return direction, is_near, inner, outer

    def along(direction: Coordinates) -> Coordinates:
        return {name: direction[name] for name in moving}

    def value(reference, direction, log_size):
        direction, is_near, inner, outer = prepare(reference, direction, log_size)
        direction = along(direction)
        close = bent(reference, direction, inner, direction, _WEIGHTS * (1.0 - _NODES))
        log_open = 0.0 if gate is None else gate.log_open(reference, outer)
        return [
            (2.0 * log_size + log_open, jnp.where(is_near, close, 0.0)),
            *((weight, jnp.where(is_near, 0.0, c)) for weight, c in open_formula(reference, outer)),
        ]

    def slope(reference, direction, log_size, velocity):
        direction, is_near, inner, outer = prepare(reference, direction, log_size)
        velocity = {
            name: jnp.broadcast_to(velocity[name], array.shape).astype(array.dtype)
            for name, array in direction.items()
        }
        direction = along(direction)
        close = bent(reference, direction, inner, along(velocity), _WEIGHTS)
        terms, speeds = jax.jvp(lambda d: open_formula(reference, d), (outer,), (velocity,))
        # d (e^w c) = e^w (c' + c w'), weighted as the value is, so that the ratio of the two keeps
        # its digits.
        size = capped_exp(jnp.asarray(log_size, close.dtype))
        away = [
            (weight, size * jnp.where(is_near, 0.0, c_speed + c * w_speed))
            for (weight, c), (w_speed, c_speed) in zip(terms, speeds)
        ]
        if gate is None:
            return [(2.0 * log_size, jnp.where(is_near, close, 0.0)), *away]
        open_at = partial(gate.log_open, reference)
        log_open, opening = jax.jvp(open_at, (outer,), (velocity,))
        whole = bent(reference, direction, inner, direction, _WEIGHTS * (1.0 - _NODES))
        return [
            (2.0 * log_size + log_open, jnp.where(is_near, close, 0.0)),
            (3.0 * log_size + log_open, jnp.where(is_near, whole * opening, 0.0)),
            *away,
        ]

    return Rule(value, slope, bounded, fixed, nodes * len(_NODES))


# Where log B exceeds this, the distance is 1 to rounding; B goes on as a line, which stays finite.
_MOST_LOG_DISTANCE = 35.0


def hellinger_from(distance: Rule) -> Rule:
    """Squared Hellinger distance `1 - exp(-B)` from the rule of the Bhattacharyya distance B."""

    def whole(terms: list[Terms]) -> tuple[Array, Array]:
        """B, and the log of B beyond the largest that is followed."""
        top = reduce(jnp.maximum, [jnp.where(c == 0.0, -jnp.inf, weight) for weight, c in terms])
        top = jax.lax.stop_gradient(jnp.maximum(top, 0.0))
        # Sums of terms that cancel may be 0 to rounding.
        total = _sum([(jnp.where(c == 0.0, 0.0, weight - top), c) for weight, c in terms])
        large = (top > 0.0) & (total > 0.0)
        log_total = jnp.where(large, top + jnp.log(jnp.where(large, total, 1.0)), 0.0)
        beyond = jnp.maximum(log_total - _MOST_LOG_DISTANCE, 0.0)
        held = jnp.exp(jnp.minimum(log_total, _MOST_LOG_DISTANCE)) * (1.0 + beyond)
        return jnp.where(large, held, total), beyond

    def value(reference, direction, log_size):
        terms = distance.value(reference, direction, log_size)
        distant, _ = whole(terms)
        tiny = distant < jnp.finfo(distant.dtype).eps
        return [
            (jnp.zeros_like(distant), jnp.where(tiny, 0.0, -jnp.expm1(-distant))),
            *((weight, jnp.where(tiny, coefficient, 0.0)) for weight, coefficient in terms),
        ]

    def slope(reference, direction, log_size, velocity):
        distant, beyond = whole(distance.value(reference, direction, log_size))
        terms = distance.slope(reference, direction, log_size, velocity)
        return [(weight - distant - beyond, coefficient) for weight, coefficient in terms]

    return Rule(value, slope, True, distance.fixed, distance.nodes)
