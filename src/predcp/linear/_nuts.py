"""NUTS with the paper's settings."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.infer.hmc import hmc

from predcp.linear._draws import Draws, unpack
from predcp.linear._layout import Layout, Program, Progress, run
from predcp.linear._target import Target


@dataclass(frozen=True)
class Nuts:
    """The no-U-turn sampler (Hoffman and Gelman, 2014), adapted as Stan adapts it.

    **Arguments**
    - `chains`, `warmup`, `draws`: each chain takes `warmup + draws` steps and keeps the latter.
    - `layout`: see `predcp.linear.Layout`; `chunk`: steps between two reports of progress.
    """

    chains: int = 4
    warmup: int = 1000
    draws: int = 1000
    target_acceptance: float = 0.8
    max_depth: int = 10
    seed: int = 0
    layout: Layout = "auto"
    chunk: int = 100

    def __post_init__(self) -> None:
        for name in ("chains", "warmup", "draws", "max_depth", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0.0 < self.target_acceptance < 1.0:
            raise ValueError(
                f"target_acceptance must lie between 0 and 1, got {self.target_acceptance}"
            )

    def sample(self, target: Target, progress: Progress | None = None) -> list[Draws]:
        """Draws of every problem of the target, in order."""
        calls = -(-(self.warmup + self.draws) // self.chunk)
        # Neither the seed nor the layout changes the program of one chain.
        name = replace(self, seed=0, layout="auto", chains=1)
        sampled = run(
            self._program, name, target, self.chains, calls, self.seed, self.layout, progress
        )
        return unpack(sampled, self.warmup, self.draws, self.max_depth)

    def _program(self, target: Target) -> Program:
        init, step = hmc(potential_fn_gen=target.potential, algo="NUTS")

        def start(key: Any, *data: Any):
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

        def advance(state: Any, *data: Any):
            def one(state, _):
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

            return jax.lax.scan(one, state, length=self.chunk)

        # numpyro's kernel learns its settings from its initialiser: trace that one first.
        jax.eval_shape(start, jax.random.key(0), *_one_problem(target))
        return Program(start, advance)


def _one_problem(target: Target) -> tuple[Any, ...]:
    if target.problems is None:
        return target.data
    return jax.tree.map(lambda array: jnp.asarray(array)[0], target.data)
