"""The target of a sampler: a NumPyro program with its data, in unconstrained coordinates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy

Position = dict[str, Array]
Potential = Callable[[Position], Array]


@dataclass(frozen=True)
class Target:
    """One posterior, or several of one shape.

    **Arguments**
    - `model`: `model(*data, **options)`, a NumPyro program.
    - `data`: arrays; with `problems` set, each has a leading axis of data sets.
    - `options`: values that are the same for all problems and not arrays.
    - `keep`: `keep(sites, *data)` returns the values to store per draw; all sites if None.
    - `family`: of outcomes of a linear predictor, where `data` are the design, the outcomes and,
        perhaps, their weights; None for anything else.
    """

    model: Callable[..., None]
    data: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    problems: int | None = None
    keep: Callable[..., PyTree] | None = None
    family: Literal["bernoulli", "normal"] | None = None

    @property
    def first_problem(self) -> tuple[Any, ...]:
        """The data of the first problem, or of the only one."""
        if self.problems is None:
            return self.data
        return jax.tree.map(lambda array: array[0], self.data)

    @cached_property
    def prototype(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes and types of a position, without running (and compiling) the model."""

        def begun(*data: Any) -> Position:
            key, options = jax.random.key(0), dict(self.options)
            info = initialize_model(key, self.model, model_args=data, model_kwargs=options)
            return info.param_info.z

        return jax.eval_shape(begun, *self.first_problem)

    @property
    def dimension(self) -> int:
        """Number of unconstrained coordinates."""
        return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(self.prototype))

    def potential(self, *data: Any) -> Potential:
        """Minus the log of the joint density of a problem, in unconstrained coordinates."""
        options = dict(self.options)
        return cast("Potential", partial(potential_energy, self.model, data, options))

    def sites(self, position: Position, *data: Any) -> dict[str, Array]:
        """Every latent site of the model at a position, deterministic ones included."""
        options = dict(self.options)
        return constrain_fn(self.model, data, options, position, return_deterministic=True)

    def kept(self, position: Position, *data: Any) -> PyTree:
        """Sites that are stored for each draw."""
        return self.kept_sites(self.sites(position, *data), *data)

    def kept_sites(self, sites: dict[str, Array], *data: Any) -> PyTree:
        """Stored values of a draw, from all its sites."""
        return sites if self.keep is None else self.keep(sites, *data)

    def start(self, key: Array, radius: float = 1.0) -> Position:
        """Starting point, uniform in a box around 0."""
        keys = jax.random.split(key, len(self.prototype))
        return {
            name: jax.random.uniform(k, leaf.shape, leaf.dtype, -radius, radius)
            for k, (name, leaf) in zip(keys, sorted(self.prototype.items()))
        }

    @property
    def identity(self) -> tuple[Any, ...]:
        """Everything that determines the compiled program: all but the values of the data."""
        shapes = tuple((np.shape(a), jnp.result_type(a).name) for a in jax.tree.leaves(self.data))
        options = tuple(sorted(self.options.items()))
        precision = jnp.result_type(float).name
        return self.model, options, self.problems, self.keep, shapes, precision
