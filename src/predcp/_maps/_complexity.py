"""The abstract map from scales to divergences: value, derivative, inverse, supremum."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree
from numpyro.distributions import constraints
from numpyro.distributions.transforms import Transform

from predcp._numerics.inverse import Evaluate, invert, raise_without_root
from predcp._support.arrays import as_float, is_array
from predcp._support.compiled import compiled

_CHUNK_ELEMENTS = 2**21

Unit = Literal["variance", "standard deviation", "coefficient"]


class Complexity(Transform):
    """A strictly increasing map `kappa = D(tau)` of scales to divergences (Equation 2).

    A NumPyro transform and a pytree: the arrays in its attributes are its leaves, the rest is static
    structure, so that a map with new data or noise does not compile again.
    Everything is computed for `log tau`, which neither over- nor underflows.

    To write a map, subclass `ScalarComplexity` (one scale) or `VectorComplexity` (several); this
    class holds what the two share.
    """

    event_dim = 0  # 1 for a map of vectors of scales
    signed = False  # True for a map of the whole line, odd about 0
    bounded = False  # whether D has a finite supremum

    def tree_flatten(self) -> Any:
        fields = {name: value for name, value in vars(self).items() if name != "_inv"}
        leaves, structure = jax.tree.flatten(fields)
        data = tuple(leaf for leaf in leaves if is_array(leaf))
        static = tuple(None if is_array(leaf) else (leaf,) for leaf in leaves)
        return data, (structure, static)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, params: Any) -> Any:
        structure, static = aux_data
        data = iter(params)
        leaves = [next(data) if held is None else held[0] for held in static]
        restored = cls.__new__(cls)
        vars(restored).update(jax.tree.unflatten(structure, leaves))
        return restored

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if isinstance(stated := vars(cls).get("unit"), str):
            _require_known_unit(cls.__name__, stated)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "unit":
            _require_known_unit(type(self).__name__, value)
        super().__setattr__(name, value)

    if TYPE_CHECKING:
        unit: Unit | None
    else:

        @property
        def unit(self) -> Unit | None:
            """What `tau` is: a "variance" or a "standard deviation" (a signed map: a "coefficient").

            A subclass states it as a class attribute. If it is None (not known), summaries ask for
            it.
            """
            raise NotImplementedError(
                f'{type(self).__name__} must state the unit of its scale: unit = "variance" or '
                '"standard deviation"'
            )

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of a batch of independent maps in one object."""
        return ()

    @property
    def averaged_over(self) -> str | None:
        """What D is an average over (trials, rows); None if it is no average."""

    def caution(self) -> str | None:
        """A warning for `diagnose` although D increases, or None."""
        return None

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one argument: `()`, or `(L,)` for L scales."""
        return ()

    @property
    def domain(self) -> constraints.Constraint:
        if self.signed:
            return constraints.real
        if self.event_dim == 0:
            return constraints.positive
        return constraints.independent(constraints.positive, self.event_dim)

    codomain = domain  # type: ignore[assignment]

    @property
    def sign(self) -> int:
        return 1

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return jnp.broadcast_shapes(shape, self.batch_shape + self.event_shape)

    inverse_shape = forward_shape

    @compiled()
    def log_value_and_elasticity(
        self, log_tau: Float[Array, "..."]
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """`log D` and `log (d log D / d log tau)` at `log tau`, both of the broadcast shape.

        The elasticity stays of order one where D itself is far outside floating point. For a
        vector map, the elasticity of entry l is with respect to its own scale.
        """
        return self._value_and_elasticity(as_float(log_tau))

    def log_value_and_slope(
        self, log_tau: Float[Array, "..."]
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """`log D` and `log (d D / d log tau)` at `log tau`."""
        log_kappa, log_elasticity = self.log_value_and_elasticity(log_tau)
        return log_kappa, log_kappa + log_elasticity

    def _value_and_elasticity(self, log_tau: Array) -> tuple[Array, Array]:
        """`log_value_and_elasticity`, implemented by the subclass."""
        raise NotImplementedError

    @raise_without_root(lambda log_kappa: ~np.isnan(log_kappa))
    @compiled()
    def log_inverse(self, log_kappa: Float[Array, "..."]) -> Float[Array, "..."]:
        """The `log tau` with `D(tau) = kappa`; `inf` where kappa is not below the supremum.

        A search that does not converge raises a RuntimeError; inside a transformation such as
        `jax.jit`, which cannot raise, the result is NaN. The same holds for `icdf` and `sample`.
        """
        return self.log_inverse_of(log_kappa, lambda log_kappa, _: log_kappa)

    def log_inverse_of(
        self, inputs: PyTree[Array], log_kappa: Callable[[PyTree[Array], Array], Array]
    ) -> Float[Array, "..."]:
        """`log_inverse` at targets that may depend on the supremum (for truncated priors).

        **Arguments**
        - `inputs`: an array of the shape of the scales, or a pytree of such arrays.
        - `log_kappa`: a function from the inputs and the log suprema to the targets, entry by entry.
        """
        raise NotImplementedError

    @compiled()
    def log_supremum(self, log_tau: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log of the least upper bound of `D`; of entry l given the scales below it."""
        log_tau = as_float(log_tau)
        if not self.bounded:
            return jnp.full(self.forward_shape(log_tau.shape), jnp.inf, log_tau.dtype)
        return self._supremum_at(log_tau)

    def _supremum_at(self, log_tau: Array) -> Array:
        """`log_supremum`, implemented by the subclass of a bounded map."""
        raise NotImplementedError

    @property
    @compiled()
    def supremum(self) -> Float[Array, "..."]:
        """Least upper bound of `D` over all scales, of the batch shape (and event shape)."""
        if self.event_dim and self.bounded:
            return jnp.full(self.batch_shape + self.event_shape, jnp.inf)
        return jnp.exp(self.log_supremum(jnp.zeros(self.batch_shape + self.event_shape)))

    @compiled()
    def __call__(self, x: Any) -> Array:
        tau = as_float(x)
        log_kappa, _ = self.log_value_and_slope(jnp.log(jnp.abs(tau)))
        # log 0 is outside the range of the formulas, and D(0) = 0 by construction.
        kappa = jnp.where(tau == 0.0, 0.0, jnp.exp(log_kappa))
        return jnp.sign(tau) * kappa if self.signed else kappa

    @raise_without_root(lambda kappa: ~np.isnan(kappa))
    @compiled()
    def _inverse(self, y: Any) -> Array:
        kappa = as_float(y)
        tau = jnp.exp(self.log_inverse(jnp.log(jnp.abs(kappa))))
        return jnp.sign(kappa) * tau if self.signed else tau

    @compiled()
    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Array:
        log_tau = jnp.log(jnp.abs(as_float(x)))
        _, log_slope = self.log_value_and_slope(log_tau)
        log_det = log_slope - log_tau
        return log_det.sum(-1) if self.event_dim else log_det

    def eq(self, other: object, static: bool = False) -> Any:
        if type(self) is not type(other):
            return False
        mine, my_structure = jax.tree.flatten(self)
        theirs, their_structure = jax.tree.flatten(other)
        if my_structure != their_structure:
            return False
        if static:
            return all(a is b for a, b in zip(mine, theirs))
        return bool(all(np.array_equal(a, b) for a, b in zip(mine, theirs)))


class ScalarComplexity(Complexity):
    """A map of one scale: the class to subclass for a map of your own.

    State `unit` and write `bind`. Cdf, quantiles, draws, plots and diagnoses follow. Optional:
    `bounded = True` with `_single_log_supremum` for a map with a finite supremum, `guess` for a
    faster inverse, and `batch_shape` for a batch of maps in one object (all array attributes then
    carry the batch axes first; the other methods see one map of the batch).

    ```python
    class Quadratic(predcp.ScalarComplexity):
        unit = "standard deviation"

        def __init__(self, curvature):
            self.log_curvature = jnp.log(curvature)

        def bind(self):  # D(tau) = curvature * tau ** 2
            return lambda log_tau: (2.0 * log_tau + self.log_curvature, jnp.log(2.0))
    ```
    """

    def bind(self) -> Evaluate:
        """A function from one `log tau` to `log D` and `log (d log D / d log tau)`.

        Both are arrays of shape (). Compute what does not depend on the scale before returning the
        function: an inversion calls it several times.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define bind(self), which returns a function from log_tau to "
            "the pair (log D, log elasticity)"
        )

    cost = 1  # array elements that one evaluation touches, roughly

    def guess(self, log_kappa: Float[Array, " n"]) -> Float[Array, " n"]:
        """Where to start the search for the inverse (of an unbatched map)."""
        return jnp.zeros_like(log_kappa)

    def _single_log_supremum(self) -> Float[Array, ""]:
        """Log of the supremum of one (unbatched) map, for `bounded = True`."""
        return jnp.asarray(jnp.inf)

    @property
    def _chunk(self) -> int:
        return max(1, min(2**14, _CHUNK_ELEMENTS // max(1, self.cost)))

    def _each(self, function: Callable[["ScalarComplexity", Array], Any], values: Array) -> Any:
        """Apply `function(map, values of shape (n,))` to every map of the batch."""
        shape = jnp.broadcast_shapes(values.shape, self.batch_shape)
        batch_dims = len(self.batch_shape)
        sample = shape[: len(shape) - batch_dims]
        batch = shape[len(shape) - batch_dims :]
        maps = self
        if batch != self.batch_shape:
            maps = jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[batch_dims:]), self
            )
        flat = jnp.broadcast_to(values, shape).reshape((math.prod(sample), *batch))
        for _ in batch:
            function = jax.vmap(function)
        result = function(maps, jnp.moveaxis(flat, 0, -1))
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0).reshape(shape), result)

    def _value_and_elasticity(self, log_tau):
        def evaluate_all(single: "ScalarComplexity", values: Array):
            evaluate = _checked(single, "bind", single.bind())
            if values.shape[0] == 1:
                return jax.tree.map(lambda leaf: leaf[None], evaluate(values[0]))
            if values.shape[0] <= single._chunk:
                return jax.vmap(evaluate)(values)
            return lax.map(evaluate, values, batch_size=single._chunk)

        return self._each(evaluate_all, log_tau)

    def _supremum_at(self, log_tau):
        zeros = jnp.zeros(self.batch_shape, jnp.result_type(log_tau))
        bound = self._each(lambda single, _: single._single_log_supremum()[None], zeros)
        return jnp.broadcast_to(bound, jnp.broadcast_shapes(log_tau.shape, bound.shape))

    def log_inverse_of(self, inputs: Any, log_kappa: Any) -> Array:
        def invert_all(single: "ScalarComplexity", values: Array):
            bound = (
                single._single_log_supremum()
                if single.bounded
                else jnp.asarray(jnp.inf, values.dtype)
            )
            evaluate = _checked(single, "bind", single.bind())
            return invert(evaluate, values, single.guess(values), bound, single._chunk)

        bounds = self.log_supremum(jax.tree.leaves(inputs)[0])
        return self._each(invert_all, log_kappa(inputs, bounds))


class VectorComplexity(Complexity):
    """A map of several scales, each divergence a function of its own scale and of those below it.

    The class to subclass for a map of your own: state `unit`, `event_shape` (the number of scales,
    as `(L,)`) and write `bind_entry`; with `bounded = True` also `_entry_log_supremum`. The
    Jacobian is lower triangular, so that the inverse is a forward substitution.
    `DepthComplexity` visits its entries in one `lax.scan`, `ModularComplexity` one by one.
    """

    event_dim = 1

    def bind_entry(self, entry: int, below: Float[Array, " entry"]) -> Evaluate:
        """The map of one entry: from its own `log tau` to `log D` and its log elasticity.

        **Arguments**: which entry, and the log scales of the entries before it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define bind_entry(self, entry, below), which returns a "
            "function from log_tau to the pair (log D, log elasticity)"
        )

    def _entry_log_supremum(self, entry: int, below: Float[Array, " entry"]) -> Float[Array, ""]:
        """Log of the supremum of one entry given the log scales before it."""
        return jnp.asarray(jnp.inf)

    cost = 1  # array elements that one evaluation of all entries touches, roughly

    def _each_vector(self, function: Callable[[Any], Any], values: PyTree[Array]) -> Any:
        """Apply a function of one vector (or of a pytree of such) over leading axes."""
        shape = np.broadcast_shapes(*(leaf.shape for leaf in jax.tree.leaves(values)))
        shape = self.forward_shape(shape)
        values = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, shape), values)
        if len(shape) == 1:
            return function(values)
        count = math.prod(shape[:-1])
        flat = jax.tree.map(lambda leaf: leaf.reshape(count, shape[-1]), values)
        chunk = max(1, min(count, _CHUNK_ELEMENTS // max(1, self.cost)))
        results = (
            jax.vmap(function)(flat)
            if count <= chunk
            else lax.map(function, flat, batch_size=chunk)
        )
        return jax.tree.map(lambda leaf: leaf.reshape(shape[:-1] + leaf.shape[1:]), results)

    def _visit_entries(
        self,
        visit: Callable[[Evaluate, Callable[[], Array], Any], tuple[Array, Any]],
        values: PyTree[Array],
    ) -> Any:
        """Visit the entries in order, each with its own map given the scales before it.

        **Arguments**
        - `visit`: from the entry's map, a function that returns its log supremum, and the entry of
            `values` to the entry's `log tau` and a result.
        - `values`: a vector, or a pytree of vectors.

        Returns the results, stacked.
        """
        scales = jnp.zeros((0,), jax.tree.leaves(values)[0].dtype)
        results = []
        for entry in range(self.event_shape[0]):
            own = jax.tree.map(lambda leaf, e=entry: leaf[e], values)

            def supremum(entry=entry, below=scales):
                return self._entry_log_supremum(entry, below).astype(below.dtype)

            evaluate = _checked(self, "bind_entry", self.bind_entry(entry, scales))
            log_tau, result = visit(evaluate, supremum, own)
            scales = jnp.append(scales, log_tau)
            results.append(result)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)

    def _value_and_elasticity(self, log_tau):
        def visit(evaluate: Evaluate, _: Any, own: Array):
            return own, evaluate(own)

        return self._each_vector(partial(self._visit_entries, visit), log_tau)

    def _supremum_at(self, log_tau):
        def visit(_: Evaluate, supremum: Callable[[], Array], own: Array):
            return own, supremum()

        return self._each_vector(partial(self._visit_entries, visit), log_tau)

    def log_inverse_of(self, inputs: Any, log_kappa: Any) -> Array:
        def visit(evaluate: Evaluate, supremum: Callable[[], Array], own: Any):
            bound = supremum()
            target = log_kappa(own, bound)[None]
            root = invert(evaluate, target, jnp.zeros_like(target), bound)[0]
            return root, root

        return self._each_vector(partial(self._visit_entries, visit), inputs)


def _checked(complexity: Complexity, method: str, evaluate: Any) -> Evaluate:
    """The function that a map's own method returned, held to its contract: two single numbers."""
    wanted = (
        f"{type(complexity).__name__}.{method} must return a function from log_tau to the pair "
        "(log D, log elasticity of D)"
    )
    if not callable(evaluate):
        raise ValueError(f"{wanted}, got {type(evaluate).__name__}")

    def pair(log_tau: Array) -> tuple[Array, Array]:
        found = evaluate(log_tau)
        if not (isinstance(found, tuple) and len(found) == 2):
            got = f"{len(found)} values" if isinstance(found, tuple) else "one value"
            raise ValueError(
                f"{wanted}; that function returned {got}. For D = c tau^p the pair is "
                "(log(c) + p log_tau, log(p))"
            )
        value, elasticity = (
            as_float(each) if is_array(each) else jnp.asarray(each, log_tau.dtype) for each in found
        )
        if value.size != 1 or elasticity.size != 1:
            raise ValueError(
                f"{wanted}, each a single number for a single log_tau; got shapes {value.shape} "
                f"and {elasticity.shape}"
            )
        return value.reshape(()), elasticity.reshape(())

    return pair


def _require_known_unit(name: str, unit: Any) -> None:
    if unit is not None and unit not in get_args(Unit):
        raise ValueError(
            f'the unit of {name} must be "variance" or "standard deviation" (of a signed map: '
            f'"coefficient"), got {unit!r}'
        )


def require_unit(unit: Any) -> Unit:
    """The unit if it is a unit of a scale; raise an error otherwise."""
    if unit not in ("variance", "standard deviation"):
        raise ValueError(f'unit must be "variance" or "standard deviation", got {unit!r}')
    return unit
