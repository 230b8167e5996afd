"""The no-U-turn sampler, with the paper's settings."""

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array
from numpyro.infer.hmc import hmc

from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._layout import Program, repeated
from predcp.linear._target import Target


@dataclass(frozen=True, kw_only=True)
class Nuts(ChainSampler):
    """The no-U-turn sampler (Hoffman and Gelman, 2014), for every model.

    The step size and a diagonal mass matrix are adapted during the warm-up, as in Stan.

    **Arguments**
    - `target_acceptance`: acceptance rate that the step size is adapted to.
    - `max_depth`: of a tree; at most `2^max_depth - 1` gradients per step.
    - the others as for `ChainSampler`.
    """

    target_acceptance: float = 0.8
    max_depth: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.target_acceptance < 1.0:
            raise ValueError(
                f"target_acceptance must lie between 0 and 1, got {self.target_acceptance}"
            )
        if self.max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, got {self.max_depth}")

    @property
    def _max_depth(self) -> int:
        return self.max_depth

    def build(self, target: Target) -> Program:
        init, step = hmc(potential_fn_gen=target.potential, algo="NUTS")

        def start(key: Array, *data: Any):
            key_start, key_chain = jax.random.split(key)
            return init(
                target.start(key_start),
                self.warmup,
                step_size=0.1,
                target_accept_prob=self.target_acceptance,
                max_tree_depth=self.max_depth,
                model_args=data,
                rng_key=key_chain,
            )

        def advance(state: Any, steps: Array, *data: Any):
            def one(state):
                state = step(state, data)
                statistics = {
                    "diverging": state.diverging,
                    "n_steps": state.num_steps,
                    "acceptance_rate": state.accept_prob,
                    "energy": state.energy,
                    "lp": -state.potential_energy,
                    "step_size": state.adapt_state.step_size,
                }
                return state, (target.kept(state.z, *data), statistics)

            return repeated(one, state, steps, self.chunk)

        # NumPyro's kernel gets its settings from its initialiser: trace that first.
        jax.eval_shape(start, jax.random.key(0), *target.first_problem)
        return Program(start, advance)
