"""A posterior to explore: a NumPyro program with its data, in unconstrained coordinates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from numpyro.infer.initialization import init_to_uniform
from numpyro.infer.util import ModelInfo, initialize_model

Position = dict[str, Array]
Potential = Callable[[Position], Array]


@dataclass(frozen=True)
class Target:
    """One posterior, or several of one shape.

    **Arguments**
    - `model`: `model(*data, **options)`, a NumPyro program.
    - `data`: arrays; with `problems` set, each has a leading axis of so many data sets.
    - `options`: what is the same for all and not an array.
    - `keep`: `keep(sites, *data)` returns what to store of a draw, all sites if None.
    """

    model: Callable[..., None]
    data: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    problems: int | None = None
    keep: Callable[..., PyTree] | None = None

    @property
    def first_problem(self) -> tuple[Any, ...]:
        """The data of the first problem, or of the only one."""
        if self.problems is None:
            return self.data
        return jax.tree.map(lambda array: array[0], self.data)

    @cached_property
    def _info(self) -> ModelInfo:
        return initialize_model(
            jax.random.key(0),
            self.model,
            model_args=self.first_problem,
            model_kwargs=dict(self.options),
            dynamic_args=True,
            init_strategy=init_to_uniform(radius=1),
        )

    @property
    def prototype(self) -> Position:
        """A position, for its structure and shapes."""
        return self._info.param_info.z

    @property
    def dimension(self) -> int:
        """Number of unconstrained coordinates."""
        return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(self.prototype))

    def potential(self, *data: Any) -> Potential:
        """Minus the log of the joint density of a problem, in unconstrained coordinates."""
        return self._info.potential_fn(*data, **self.options)

    def sites(self, position: Position, *data: Any) -> dict[str, Array]:
        """Every latent site of the model at a position, deterministic ones included."""
        return self._info.postprocess_fn(*data, **self.options)(position)

    def kept(self, position: Position, *data: Any) -> PyTree:
        """What is stored of a draw."""
        return self.kept_sites(self.sites(position, *data), *data)

    def kept_sites(self, sites: dict[str, Array], *data: Any) -> PyTree:
        """What is stored of a draw, from its sites."""
        return sites if self.keep is None else self.keep(sites, *data)

    def start(self, key: Array, radius: float = 1.0) -> Position:
        """Uniform in a box around 0."""
        keys = jax.random.split(key, len(self.prototype))
        return {
            name: jax.random.uniform(k, leaf.shape, leaf.dtype, -radius, radius)
            for k, (name, leaf) in zip(keys, sorted(self.prototype.items()))
        }

    @property
    def identity(self) -> tuple[Any, ...]:
        """What decides the compiled program: everything but the numbers in the data."""
        shapes = tuple((np.shape(a), jnp.result_type(a).name) for a in jax.tree.leaves(self.data))
        options = tuple(sorted(self.options.items()))
        precision = jnp.result_type(float).name
        return self.model, options, self.problems, self.keep, shapes, precision
