"""Hamiltonian Monte Carlo: NUTS with the paper's settings, and a form for many chains at once."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array
from numpyro.infer.hmc import hmc

from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._exchange import exchanged
from predcp.linear._layout import Program
from predcp.linear._target import Target


@dataclass(frozen=True, kw_only=True)
class _Hamiltonian(ChainSampler):
    """What the two share; adapted as Stan adapts: step size and a diagonal mass matrix.

    **Arguments**
    - `target_acceptance`: of the adapted step size.
    - `exchanges`: proposals, after each step, to exchange the roles of two correlated columns.
    - the others as for `ChainSampler`.
    """

    target_acceptance: float = 0.8
    exchanges: int = 0

    _algorithm: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exchanges < 0:
            raise ValueError(f"exchanges must be at least 0, got {self.exchanges}")
        if not 0.0 < self.target_acceptance < 1.0:
            raise ValueError(
                f"target_acceptance must lie between 0 and 1, got {self.target_acceptance}"
            )

    def _settings(self) -> dict[str, Any]:
        """Of numpyro's kernel, beyond those shared."""
        return {}

    def _prepared(self, state: Any, key: Array) -> Any:
        """The state before a step."""
        return state

    def build(self, target: Target) -> Program:
        init, step = hmc(potential_fn_gen=target.potential, algo=self._algorithm)

        def start(key: Array, *data: Any):
            key_start, key_chain, key_moves = jax.random.split(key, 3)
            state = init(
                target.start(key_start),
                self.warmup,
                step_size=0.1,
                target_accept_prob=self.target_acceptance,
                model_args=data,
                rng_key=key_chain,
                **self._settings(),
            )
            return state, key_moves

        def advance(carry: Any, *data: Any):
            def one(carry, _):
                state, key = carry
                key, key_step, key_exchange = jax.random.split(key, 3)
                state = step(self._prepared(state, key_step), data)
                swapped = jnp.zeros(())
                if self.exchanges:
                    state, swapped = exchanged(target, state, key_exchange, self.exchanges, data)
                statistics = {
                    "diverging": state.diverging,
                    "n_steps": state.num_steps,
                    "acceptance_rate": state.accept_prob,
                    "energy": state.energy,
                    "lp": -state.potential_energy,
                    "step_size": state.adapt_state.step_size,
                    "exchanged": swapped,
                }
                return (state, key), (target.kept(state.z, *data), statistics)

            return jax.lax.scan(one, carry, length=self.chunk)

        # numpyro's kernel learns its settings from its initialiser: trace that one first.
        jax.eval_shape(start, jax.random.key(0), *target.first_problem)
        return Program(start, advance)


@dataclass(frozen=True, kw_only=True)
class Nuts(_Hamiltonian):
    """The no-U-turn sampler (Hoffman and Gelman, 2014).

    **Arguments**: `max_depth` of a tree, `2^max_depth - 1` gradients; the others as for `Hmc`.
    """

    max_depth: int = 10

    _algorithm = "NUTS"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, got {self.max_depth}")

    @property
    def _max_depth(self) -> int:
        return self.max_depth

    def _settings(self) -> dict[str, Any]:
        return {"max_tree_depth": self.max_depth}


@dataclass(frozen=True, kw_only=True)
class Hmc(_Hamiltonian):
    """Hamiltonian trajectories of random length: the sampler for many chains in one program.

    NUTS makes every chain of a program wait for the longest tree; here all take about
    `trajectory / step_size` gradients. In units of the posterior's standard deviations a quarter
    of a period, pi / 2, carries a normal to independence; the length is uniform between a half
    and three halves of that, so that no frequency is met twice.

    **Arguments**
    - `trajectory`: its mean length; `max_steps`: at most so many gradients, so that one chain
        with a small step does not keep the others waiting.
    - `exchanges`: proposals, after each step, to exchange the roles of two correlated columns.
    - the others as for `Nuts`.
    """

    trajectory: float = 0.5 * math.pi
    max_steps: int = 64
    exchanges: int = 10

    _algorithm = "HMC"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")
        if not self.trajectory > 0.0:
            raise ValueError(f"trajectory must be positive, got {self.trajectory}")

    def _settings(self) -> dict[str, Any]:
        return {"trajectory_length": self.trajectory}

    def _prepared(self, state: Any, key: Array) -> Any:
        length = self.trajectory * jax.random.uniform(key, (), minval=0.5, maxval=1.5)
        # Half a step less than the limit: its number of steps is rounded up.
        longest = (self.max_steps - 0.5) * state.adapt_state.step_size
        return state._replace(trajectory_length=jnp.minimum(length, longest))
