"""Gibbs sampling of horseshoe-type regressions: the sampler for many columns and few rows."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from predcp.linear._chain_sampler import ChainSampler
from predcp.linear._column_moves import Partners
from predcp.linear._gibbs_model import GibbsModel, GibbsState
from predcp.linear._gibbs_sweep import Sweep
from predcp.linear._layout import Program
from predcp.linear._target import Target


@dataclass(frozen=True, kw_only=True)
class Gibbs(ChainSampler):
    """Sweeps over coefficients, local scales and tau, each drawn given the others.

    For linear and two-class logistic regression with half-Cauchy local scales and any prior of
    tau; `Nuts` takes every other model. A sweep costs about `N^2 D`; there are no derivatives, and
    nothing to tune or to diverge.

    **Arguments**
    - `handovers`: proposals a sweep that any column takes the place of one of the largest, by the
        likelihood of each such trade: the way between sets of columns that explain the same rows.
    - `exchanges`: proposals a sweep that two correlated columns trade their local scales, the
        coefficients integrated out.
    - `paths`: Hamiltonian paths a sweep through the logits of separable rows (logistic outcomes
        with at least as many columns as rows), which Polya-gamma weights would hold in place.
    - `warmup`: shorter than other samplers', since nothing is tuned: sweeps to forget the start.
    - the others as for `ChainSampler`.
    """

    warmup: int = 200
    exchanges: int = 0
    handovers: int = 1
    paths: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("exchanges", "handovers", "paths"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")

    def build(self, target: Target) -> Program:
        model = GibbsModel.of(target)

        def start(key: Array, *data: Any) -> tuple[GibbsState, Partners | None]:
            # One column has none to trade with.
            trading = self.exchanges > 0 and data[0].shape[1] > 1
            return model.start(key, data), Partners.of(data[0]) if trading else None

        def advance(carry: tuple[GibbsState, Partners | None], *data: Any):
            state, partners = carry
            handovers = self.handovers if data[0].shape[1] > 1 else 0
            across = data[0].T
            sweep = Sweep(model, data, across, partners, self.exchanges, handovers, self.paths)

            def one(state: GibbsState, _: None):
                state, figures = sweep(state)
                statistics = {
                    "n_steps": jnp.ones((), jnp.int32),
                    "lp": model.log_density(state, data),
                    **figures,
                }
                return state, (target.kept_sites(model.sites(state), *data), statistics)

            state, kept = jax.lax.scan(one, state, length=self.chunk)
            return (state, partners), kept

        return Program(start, advance)
