"""Several maps of one scale each: every component is compared with the reference by itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from predcp._maps._complexity import ScalarComplexity, Unit, VectorComplexity


class SeparateComplexity(VectorComplexity):
    """`kappa_j = D_j(tau_j)`: each divergence is a function of its own scale alone.

    The Jacobian is diagonal. This is the map of a budget (`BudgetPrior`): component j is added to
    the reference alone, without the others. `OrderedComplexity.separate()` makes one from a model;
    `ModularComplexity` is the special case of the modules of a network.

    **Arguments**
    - `maps`: maps of one scale, in a sequence or by name.
    - `together`: a function from the vector of scales, shape (L,), to the divergence of the model with
        all components from the reference; with it, `diagnose` measures how far the divergences
        are from adding up.
    - `check`: the same with other and more noise, which `diagnose` then measures with.
    """

    unit: Unit | None = None
    # Each entry depends on its own scale alone, so it has its own supremum.
    separate_entries = True

    def __init__(
        self,
        maps: Sequence[ScalarComplexity] | Mapping[str, ScalarComplexity],
        together: Callable[[Array], Any] | None = None,
        check: Callable[[Array], Any] | None = None,
    ):
        self.names = tuple(maps) if isinstance(maps, Mapping) else None
        self.maps = tuple(maps.values() if isinstance(maps, Mapping) else maps)
        for place, single in enumerate(self.maps):
            if not isinstance(single, ScalarComplexity) or single.signed or single.batch_shape:
                name = place if self.names is None else repr(self.names[place])
                raise ValueError(
                    f"maps[{name}] must be a map of one positive scale without batch axes, got "
                    f"{type(single).__name__}"
                )
        if not self.maps:
            raise ValueError("maps must hold at least one map")
        if together is not None:
            self.together = together
        if check is not None:
            self.check = check
        self.bounded = any(single.bounded for single in self.maps)
        self.cost = sum(single.cost for single in self.maps)
        units: set[Unit | None] = {single.unit for single in self.maps}
        self.unit = units.pop() if len(units) == 1 else None

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (len(self.maps),)

    def component(self, entry: int) -> ScalarComplexity:
        """The map of one component's scale."""
        return self.maps[entry]

    def _each_component(
        self, function: Callable[[Any, Any], Any], values: PyTree[Array]
    ) -> PyTree[Array]:
        values = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, self.forward_shape(leaf.shape)), values
        )
        results = [
            function(
                self.component(entry), jax.tree.map(lambda leaf, e=entry: leaf[..., e], values)
            )
            for entry in range(self.event_shape[0])
        ]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=-1), *results)

    def _value_and_elasticity(self, log_tau):
        return self._each_component(lambda single, u: single.log_value_and_elasticity(u), log_tau)

    def log_inverse_of(self, inputs: Any, log_kappa: Any) -> Float[Array, "..."]:
        return self._each_component(lambda single, q: single.log_inverse_of(q, log_kappa), inputs)

    def _supremum_at(self, log_tau):
        return self._each_component(lambda single, u: single.log_supremum(u), log_tau)

    @property
    def supremum(self) -> Float[Array, " components"]:
        return jnp.exp(self.log_supremum(jnp.zeros(self.event_shape)))
