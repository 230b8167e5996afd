"""Ordered components: each is compared with the model without it, given the components before it."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from predcp._divergences import Divergence, kl
from predcp._maps._complexity import Unit, VectorComplexity, require_unit
from predcp._maps._predictive import PredictiveComplexity
from predcp._maps._sampled import sampled
from predcp._maps._separate import SeparateComplexity
from predcp._numerics.homogeneity import power_of
from predcp._numerics.inverse import Evaluate
from predcp._numerics.normal_noise import normal_noise
from predcp._numerics.power_law import floating_range
from predcp._support.arrays import as_float
from predcp._support.check import require_callable
from predcp._support.compiled import compiled

_Component = Callable[[Array, PyTree], PyTree]
# From the power of its scale with which a component moves to the unit of the scale.
_UNITS: dict[float, Unit] = {0.5: "variance", 1.0: "standard deviation"}


class OrderedComplexity(VectorComplexity):
    """`kappa_j = D_j(tau_j; tau_1..tau_(j-1))`: nested references, one component at a time.

    Component j is compared with the model that ends before it, `theta_j(tau)` with
    `theta_(j-1)(tau)`: the components before are the same in both (scales and noise), those after are
    at scale 0 in both.

    `D_j = mean_s mean_n KL[p(y_n | theta_j(tau; xi_s)) || p(y_n | theta_(j-1)(tau; xi_s))]`

    The Jacobian is lower triangular and the inverse a forward substitution, so the density of the
    vector of scales is exact. The order matters: put first what you would add to the model first.
    `DepthComplexity` is the special case of the layers of a network, in one scan.

    **Arguments**
    - `likelihood`: `likelihood(theta, x)` returns a NumPyro distribution (or a tuple, list or dict).
    - `parameters`: a list of L functions `component(tau_j, xi_j)`, whose results in a list are theta;
        or one function `parameters(tau, xi)` of the vector tau, shape (L,), that returns theta.
        Scale 0 must switch a component off; it is evaluated at the smallest positive number.
    - `x`: inputs, passed on to the likelihood (any pytree, or None).
    - `noise`: xi with a leading axis of S draws: a list of L pytrees of arrays for a list of
        functions, any pytree for one function.
    - `components`: L, needed for one function.
    - `divergence`, `bounded`, `per`, `weights`: as in `PredictiveComplexity`.
    - `unit`: "variance" or "standard deviation", the unit of each tau; None to find it from a list
        of functions.
    """

    unit: Unit | None = None

    def __init__(
        self,
        likelihood: Callable[[PyTree, Any], Any],
        parameters: Sequence[_Component] | _Component,
        x: Any,
        noise: PyTree,
        components: int | None = None,
        divergence: Divergence = kl,
        bounded: bool | None = None,
        unit: Unit | None = None,
        per: Any = "trial",
        weights: Any = None,
    ):
        self.likelihood = require_callable("likelihood", likelihood, "(theta, x)")
        self.x, self.divergence = x, divergence
        self.per, self.weights = per, weights
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
        self.noise = jax.tree.map(as_float, list(noise) if isinstance(noise, tuple) else noise)
        made = [self._checked(entry, bounded) for entry in range(self.components)]
        # Found once: a map rebuilt from new arrays has the same program.
        self.powers = tuple(single.power for single in made)
        self.bounded, self.per, self.weights = made[0].bounded, made[0].per, made[0].weights
        self.cost = self.components * made[0].cost
        moves = zip(*(single.moves or () for single in made))
        self.observed = {
            "most_trials": made[0].most_trials,
            "moves": tuple(frozenset().union(*each) for each in moves) or None,
        }
        self.unit = self._find_unit() if unit is None else require_unit(unit)

    def _checked(self, entry: int, bounded: bool | None) -> PredictiveComplexity:
        """The map of one component with all scales before it at 1, checked."""
        ones = jnp.zeros(entry, jnp.result_type(*jax.tree.leaves(self.noise)))
        try:
            return PredictiveComplexity(**self._parts(entry, ones), bounded=bounded)
        except ValueError as error:
            raise ValueError(f"component {entry + 1}: {error}") from error

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (self.components,)

    def _parts(self, entry: int, below: Float[Array, " entry"]) -> dict[str, Any]:
        """Likelihood, parameters, reference, inputs and noise of one component's map."""
        dtype = jnp.result_type(*jax.tree.leaves(self.noise))
        half_width = floating_range(dtype)
        scales = jnp.exp(jnp.clip(below, -half_width, half_width)).astype(dtype)
        before = [scales[place] for place in range(entry)]
        # The smallest positive number, not 0, where the root of a variance has no derivative.
        off = jnp.asarray(jnp.finfo(dtype).tiny, dtype)
        after = [off] * (self.components - entry - 1)

        def parameters(tau: Array, xi: PyTree) -> PyTree:
            return self._theta([*before, tau, *after], xi)

        return {
            "likelihood": self.likelihood,
            "parameters": parameters,
            "reference": lambda xi: parameters(off, xi),
            "x": self.x,
            "noise": self.noise,
            "divergence": self.divergence,
            "per": self.per,
            "weights": self.weights,
        }

    def _theta(self, tau: Sequence[Array], xi: PyTree) -> PyTree:
        if callable(self.parameters):
            return self.parameters(jnp.stack(tau), xi)
        return [component(*pair) for component, *pair in zip(self.parameters, tau, xi)]

    def _find_unit(self) -> Unit | None:
        if callable(self.parameters):
            return None
        first = jax.tree.map(lambda leaf: leaf[0], self.noise)
        units = set()
        for component, xi in zip(self.parameters, first):
            found = power_of(component, jnp.ones(()), xi)
            units.add(None if found is None else _UNITS.get(float(found[0])))
        return units.pop() if len(units) == 1 else None

    def component(self, entry: int, below: Float[Array, " entry"]) -> PredictiveComplexity:
        """The map of one component's scale.

        **Arguments**: which component, from 0, and the log scales of those before it.
        """
        return PredictiveComplexity.trusted(
            **self._parts(entry, below),
            power=self.powers[entry],
            bounded=self.bounded,
            cost=self.cost,
            unit=self.unit,
            **self.observed,
        )

    def bind_entry(self, entry: int, below: Float[Array, " entry"]) -> Evaluate:
        return self.component(entry, below).bind()

    def _entry_log_supremum(self, entry: int, below: Float[Array, " entry"]) -> Float[Array, ""]:
        single = self.component(entry, below)
        return single.log_supremum(jnp.zeros((), jnp.result_type(*jax.tree.leaves(self.noise))))

    def separate(self) -> SeparateComplexity:
        """The maps of the components, each added to the reference alone (for a budget)."""
        dtype = jnp.result_type(*jax.tree.leaves(self.noise))
        off = [jnp.full(entry, -floating_range(dtype), dtype) for entry in range(self.components)]
        maps = [self.component(entry, below) for entry, below in enumerate(off)]
        return SeparateComplexity(maps, Partial(OrderedComplexity.together, self))

    def together(self, tau: Float[Array, " components"]) -> Float[Array, ""]:
        """Divergence of the model with all components from the model without any."""
        parts = self._parts(0, jnp.zeros(0))
        scales = [tau[place] for place in range(self.components)]

        def parameters(size: Array, xi: PyTree) -> PyTree:
            return self._theta([size * scale for scale in scales], xi)

        whole = PredictiveComplexity.trusted(
            **parts | {"parameters": parameters, **self.observed}, power=None
        )
        return jnp.exp(whole.bind()(jnp.zeros((), whole._dtype))[0])

    def simulate(self, tau: Float[Array, " components"], key: Array) -> PyTree:
        """Observations with every component at its scale, with fresh standard normal noise."""
        key_noise, key_data = jax.random.split(key)
        like = jax.tree.map(lambda leaf: leaf[0], self.noise)
        xi = jax.tree.map(lambda leaf: leaf[0], normal_noise(key_noise, 1, like))
        theta = self._theta([tau[place] for place in range(self.components)], xi)
        return sampled(self.likelihood(theta, self.x), key_data)

    @compiled()
    def log_value_by_draw(
        self, log_tau: Float[Array, " components"]
    ) -> Float[Array, "draws components"]:
        """`log` of each divergence under each draw alone, for its Monte Carlo error."""
        values = [
            self.component(entry, log_tau[:entry]).bind(keep=1)(log_tau[entry])[0]
            for entry in range(self.components)
        ]
        return jnp.stack(values, axis=-1)
