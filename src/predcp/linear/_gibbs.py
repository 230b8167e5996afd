"""Gibbs sampling of horseshoe-type regressions: the sampler for many columns and few rows."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._gibbs_model import GibbsModel, GibbsState
from predcp.linear._gibbs_sweep import Sweep
from predcp.linear._layout import Program, repeated
from predcp.linear._target import Target

# Points that a GPU evaluates in hardly more time than one.
_LATTICE = 32


@dataclass(frozen=True, kw_only=True)
class Gibbs(ChainSampler):
    """Gibbs sweeps over coefficients, local scales and tau, each drawn given the others.

    For linear and two-class logistic regression with half-Cauchy local scales and any prior of
    tau; use `Nuts` for every other model. A sweep costs about `N D min(N, D)`. There are no
    derivatives, nothing to tune, and no divergent steps.

    **Arguments**
    - `handovers`: proposed swaps per sweep of one of the largest columns with any other column: moves
        between sets of columns that explain the same rows.
    - `paths`: Hamiltonian paths per sweep through the logits of separable rows (logistic outcomes
        with at least as many columns as rows), where Polya-gamma weights would mix slowly.
    - `lattice`: number of points that tau and sigma choose from, all evaluated at once; 0 for slice
        sampling, which evaluates one after the other. None is 32 on a GPU and 0 on a CPU.
    - `warmup`: sweeps to forget the start; shorter than for `Nuts`, since nothing is tuned.
    - the others as for `ChainSampler`.
    """

    warmup: int = 200
    handovers: int = 1
    paths: int = 1
    lattice: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("handovers", "paths"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        # From one point there is nothing to choose.
        if self.lattice is not None and (self.lattice < 0 or self.lattice == 1):
            raise ValueError(f"lattice must be None, 0 or at least 2, got {self.lattice}")

    def build(self, target: Target) -> Program:
        model = GibbsModel.of(target)
        lattice = self.lattice
        if lattice is None:
            lattice = 0 if jax.default_backend() == "cpu" else _LATTICE

        def start(key: Array, *data: Any) -> GibbsState:
            return model.start(key, data)

        def advance(state: GibbsState, steps: Array, *data: Any):
            # With one column there is nothing to hand over to.
            handovers = self.handovers if data[0].shape[1] > 1 else 0
            sweep = Sweep.of(model, data, handovers, self.paths, lattice)

            def one(state: GibbsState):
                state, figures = sweep(state)
                statistics = {
                    "n_steps": jnp.ones((), jnp.int32),
                    "lp": model.log_density(state, data),
                    **figures,
                }
                return state, (target.kept_sites(model.sites(state), *data), statistics)

            return repeated(one, state, steps, self.chunk)

        return Program(start, advance)
