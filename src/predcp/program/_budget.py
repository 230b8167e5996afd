"""A budget over scales of a NumPyro program: one prior on what they may all spend."""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro import handlers

from predcp._budget import Budget, BudgetPrior, Total
from predcp._maps import SeparateComplexity
from predcp.program._complexity import complexity_of, require_increasing
from predcp.program._run import Values
from predcp.program._structure import ProgramStructure
from predcp.program._swap import ScalePlan, Swap

# Draws of the noise for the divergence of all components: no sampler waits for it.
_TOGETHER_DRAWS = 64
_SIZE = "size_of_all_components"


class BudgetSwap(Swap):
    """Runs the program in passes: the rest, then all scales of the budget at once."""

    def _scales(self, structure: ProgramStructure, observed: Any) -> list[ScalePlan]:
        """Each scale with all others of the budget switched off."""
        names = self.priors.names
        for name in names:
            require_one_scale(structure, name)
        off = {name: tuple(other for other in names if other != name) for name in names}
        sites = {name: structure.around(name, observed, off[name]) for name in names}
        # What any of the scales moves is not known before all of them are.
        later = {*names, *(site for own in sites.values() for site in (*own.moved, *own.idle))}
        conditional = self.rest == "given"
        return [
            ScalePlan(
                own,
                tuple(site for site in own.rest if site not in later) if conditional else (),
                off[name],
                {},
            )
            for name, own in sites.items()
        ]

    def _sample_scales(
        self,
        structure: ProgramStructure,
        scales: list[ScalePlan],
        known: dict[str, Any],
        show: Callable[..., Mapping[str, Any]],
    ) -> dict[str, Any]:
        maps = {}
        for scale in scales:
            values = {name: known[name] for name in scale.given}
            single = self._map(structure, scale.sites, values, scale.off)
            require_increasing(single)
            maps[scale.sites.scale] = single
        prior = BudgetPrior(self.priors, SeparateComplexity(maps)).log_scale()
        log_tau = jnp.asarray(numpyro.sample("log_scales", prior))
        return known | {
            name: numpyro.deterministic(name, jnp.exp(log_tau[place]))
            for place, name in enumerate(self.priors.names)
        }


def require_one_scale(structure: ProgramStructure, name: str) -> None:
    """Refuse a component that is not one scale of the program."""
    if name not in structure.sites:
        raise ValueError(
            f"the budget names {name!r}, which is not a site of the program: {list(structure.latent)}"
        )
    if structure.sites[name].shape:
        raise ValueError(
            f"the budget names {name!r}, a site of shape {structure.sites[name].shape}: a component must "
            "be one scale"
        )


def budget_of(
    model: Callable[..., Any],
    budget: Budget,
    *args: Any,
    total: Total = "sum",
    rest: str | Mapping[str, Any] = "prior",
    draws: int = 16,
    **kwargs: Any,
) -> BudgetPrior:
    """The prior of the scales of a NumPyro program under a budget, for `diagnose` and for draws.

    Each component is added to the program without the others. The divergence of all of them together
    comes from the program too, so `diagnose` says how far the components are from adding up.

    **Arguments**
    - `model`: a NumPyro program.
    - `budget`: shares and prior of the total, by name of the scale.
    - `args`, `kwargs`: arguments of the program, the data among them.
    - `total`: as in `BudgetPrior`.
    - `rest`, `draws`: as in `complexity_of`.
    """
    if not isinstance(budget, Budget):
        raise ValueError(f"budget must be a Budget, got {type(budget).__name__}")
    structure = ProgramStructure(model, args, kwargs)
    for name in budget.names:
        require_one_scale(structure, name)

    def off(name: str) -> list[str]:
        return [other for other in budget.names if other != name]

    maps = {
        name: complexity_of(model, name, *args, rest=rest, off=off(name), draws=draws, **kwargs)
        for name in budget.names
    }

    def scaled(tau: Array, *args: Any, **kwargs: Any) -> Any:
        size = numpyro.sample(_SIZE, dist.HalfNormal(1.0))
        values = {name: size * tau[place] for place, name in enumerate(budget.names)}
        with handlers.block(hide=list(budget.names)):
            return Values(model, values)(*args, **kwargs)

    def together(tau: Array) -> Array:
        whole = complexity_of(
            scaled, _SIZE, tau, *args, rest=rest, draws=max(draws, _TOGETHER_DRAWS), **kwargs
        )
        return jnp.exp(whole.log_value_and_elasticity(jnp.zeros(()))[0])

    return BudgetPrior(budget, SeparateComplexity(maps, together), total)
