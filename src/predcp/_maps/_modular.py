"""Module-wise complexity for meta-learning: how far each module may leave what tasks share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import DictKey, GetAttrKey, Partial, SequenceKey
from jaxtyping import Array, Float, PyTree

from predcp._divergences import Divergence, kl
from predcp._maps._predictive import PredictiveComplexity
from predcp._maps._sampled import sampled
from predcp._maps._separate import SeparateComplexity
from predcp._numerics.normal_noise import normal_noise
from predcp._support.arrays import as_float
from predcp._support.check import require_callable
from predcp._support.compiled import compiled


def _module_name(path: tuple[Any, ...]) -> str:
    """The name of the top-level entry that a leaf belongs to."""
    first = path[0] if path else None
    match first:
        case DictKey():
            return str(first.key)
        case GetAttrKey():
            return first.name
        case SequenceKey():
            return str(first.idx)
    return str(first)


@dataclass(frozen=True)
class _OneModule:
    """The likelihood as a function of one module's leaves, the others given."""

    likelihood: Callable[[PyTree, Any], Any]
    structure: Any
    moving: tuple[bool, ...]

    def __call__(self, values: list[Array], theta: list[Array], x: Any) -> Any:
        own = iter(theta)
        whole = [next(own) if moves else value for value, moves in zip(values, self.moving)]
        return self.likelihood(jax.tree.unflatten(self.structure, whole), x)


def _with_step(values: list[Array], tau: Array, xi: list[Array]) -> list[Array]:
    """Parameters at a variance: `phi + sqrt(tau) xi`."""
    return [value + jnp.sqrt(tau) * step for value, step in zip(values, xi)]


class ModularComplexity(SeparateComplexity):
    """One divergence per module, each a function of that module's scale alone (appendix D).

    `D_m(tau_m) = E KL[p(y | theta_m ~ N(phi_m, tau_m I), rest at phi) || p(y | phi)]`, averaged over
    the inputs and the draws. The Jacobian is diagonal. `tau_m` is a **variance**; the
    entries of a scale vector follow `module_names`.

    **Arguments**
    - `likelihood`: `likelihood(theta, x)` returns a NumPyro distribution.
    - `parameters`: phi, a pytree whose top-level entries are the modules (a dict, an
        `eqx.Module`, a tuple).
    - `x`: inputs, passed on to the likelihood.
    - `noise`: standard normal noise, of the structure of `parameters` with a leading axis.
    - `modules`: names of the entries that have a scale; all of them when None.
    - `divergence`: as in `PredictiveComplexity`.
    """

    unit = "variance"

    def __init__(
        self,
        likelihood: Callable[[PyTree, Any], Any],
        parameters: PyTree,
        x: Any,
        noise: PyTree,
        modules: Sequence[str] | None = None,
        divergence: Divergence = kl,
    ):
        self.likelihood = require_callable("likelihood", likelihood, "(theta, x)")
        self.parameters = jax.tree.map(as_float, parameters)
        self.x = x
        self.noise = jax.tree.map(as_float, noise)
        self.divergence = divergence
        paths = jax.tree_util.tree_flatten_with_path(self.parameters)[0]
        names = list(dict.fromkeys(_module_name(path) for path, _ in paths))
        if not names or names == ["None"]:
            raise ValueError(
                "parameters must be a pytree with named top-level entries, the modules"
            )
        unknown = [name for name in modules or () if name not in names]
        if unknown:
            raise ValueError(f"modules {unknown} are not entries of parameters, which has {names}")
        self.module_names = tuple(names if modules is None else modules)
        self._check_noise()
        whole = [self._whole(name) for name in self.module_names]
        self.powers = {name: single.power for name, single in zip(self.module_names, whole)}
        self.bounded = whole[0].bounded
        self.cost = whole[0].cost

    def _check_noise(self) -> None:
        wanted = jax.tree.map(lambda leaf: leaf.shape, self.parameters)
        if jax.tree.structure(self.noise) != jax.tree.structure(self.parameters):
            raise ValueError(
                f"noise must have the structure of parameters, {jax.tree.structure(self.parameters)}"
                f", got {jax.tree.structure(self.noise)}"
            )
        for noise, value in zip(jax.tree.leaves(self.noise), jax.tree.leaves(self.parameters)):
            if noise.shape[1:] != value.shape or noise.ndim == 0:
                raise ValueError(
                    "noise must have the shapes of parameters behind a leading axis of draws: "
                    f"parameters have {wanted}, one array of noise has {noise.shape}"
                )

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (len(self.module_names),)

    def _parts(self, name: str) -> dict[str, Any]:
        """Likelihood, parameters, reference, inputs and draws of one module's map."""
        paths, structure = jax.tree_util.tree_flatten_with_path(self.parameters)
        moving = [_module_name(path) == name for path, _ in paths]
        values = [value for _, value in paths]
        mine = [value for value, moves in zip(values, moving) if moves]

        noise = jax.tree.leaves(self.noise)
        return {
            # Pytrees with functions that compare equal: the map of a module is compiled once.
            "likelihood": Partial(_OneModule(self.likelihood, structure, tuple(moving)), values),
            "parameters": Partial(_with_step, mine),
            "reference": mine,
            "x": self.x,
            "noise": [step for step, moves in zip(noise, moving) if moves],
            "divergence": self.divergence,
        }

    def _whole(self, name: str) -> PredictiveComplexity:
        return PredictiveComplexity(**self._parts(name))

    def component(self, entry: int) -> PredictiveComplexity:
        return self.module(self.module_names[entry])

    def module(self, name: str) -> PredictiveComplexity:
        """The map of one module's scale."""
        return PredictiveComplexity.trusted(
            **self._parts(name),
            power=self.powers[name],
            bounded=self.bounded,
            cost=self.cost,
            unit=self.unit,
        )

    def _moved(self, tau: Float[Array, " modules"], noise: PyTree) -> PyTree:
        """The parameters with every module at its scale."""
        paths, structure = jax.tree_util.tree_flatten_with_path(self.parameters)
        scales = dict(zip(self.module_names, jnp.sqrt(tau)))
        moved = [
            value + scales.get(_module_name(path), 0.0) * step
            for (path, value), step in zip(paths, jax.tree.leaves(noise))
        ]
        return jax.tree.unflatten(structure, moved)

    def together(self, tau: Float[Array, " modules"]) -> Float[Array, ""]:
        """Divergence of the model with every module at its scale from the model at phi."""
        whole = PredictiveComplexity.trusted(
            likelihood=self.likelihood,
            parameters=lambda size, xi: self._moved(size * tau, xi),
            reference=self.parameters,
            x=self.x,
            noise=self.noise,
            divergence=self.divergence,
            power=None,
        )
        return jnp.exp(whole.bind()(jnp.zeros((), whole._dtype))[0])

    def simulate(self, tau: Float[Array, " modules"], key: Array) -> PyTree:
        """Observations with every module at its scale, with fresh standard normal noise."""
        key_noise, key_data = jax.random.split(key)
        noise = normal_noise(key_noise, 1, self.parameters)
        theta = self._moved(tau, jax.tree.map(lambda leaf: leaf[0], noise))
        return sampled(self.likelihood(theta, self.x), key_data)

    @compiled()
    def log_value_by_draw(self, log_tau: Float[Array, " modules"]) -> Float[Array, "draws modules"]:
        """`log` of each divergence under each draw alone, for its Monte Carlo error."""
        return self._each_component(lambda single, u: single.log_value_by_draw(u), log_tau)
