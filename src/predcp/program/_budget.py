"""A budget over scales of a NumPyro program: one prior on the total that they may spend."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.tree_util import Partial
from jaxtyping import Array
from numpyro import handlers

from predcp._budget import Budget, BudgetPrior, Total
from predcp._divergences import Divergence, kl
from predcp._maps import SeparateComplexity
from predcp.program._complexity import ProgramComplexity, complexity_of
from predcp.program._increasing import require_increasing
from predcp.program._options import refuse_ambiguous_options
from predcp.program._run import Values
from predcp.program._structure import ProgramStructure
from predcp.program._swap import ScalePlan, Swap

# Draws of noise for the divergence of all components, and of other noise to check it with;
# samplers evaluate neither.
_TOGETHER_DRAWS, _CHECK_DRAWS = 64, 512
_SIZE, _SCALES = "size_of_all_components", "scales_of_all_components"


class BudgetSwap(Swap):
    """Runs the program in passes: the rest, then all scales of the budget at once."""

    def _scales(self, structure: ProgramStructure, observed: Any) -> list[ScalePlan]:
        """Each scale with all others of the budget switched off."""
        names = self.priors.names
        for name in names:
            require_one_scale(structure, name)
        off = {name: tuple(other for other in names if other != name) for name in names}
        sites = {name: structure.around(name, observed, off[name]) for name in names}
        # Sites that a scale moves are known only when all scales are.
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
            values = {name: known[name] for name in (*structure.params, *scale.given)}
            single = self._map(structure, scale.sites, values, scale.off)
            require_increasing(single)
            maps[scale.sites.scale] = single
        whole = None
        if self.total == "together":
            given = [name for scale in scales for name in scale.given]
            values = {name: known[name] for name in (*structure.params, *given)}
            if isinstance(self.rest, Mapping):
                fixed = set.intersection(*(set(scale.sites.rest) for scale in scales))
                values |= {name: each for name, each in self.rest.items() if name in fixed}
            args, kwargs = structure.arguments.restore()
            whole = _together(
                self.model,
                self.priors.names,
                args,
                kwargs,
                rest=values,
                observed=self._predicted(structure),
                **self.options,
            )
        separate = SeparateComplexity(maps, whole)
        prior = BudgetPrior(self.priors, separate, self.total).log_scale()
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


@refuse_ambiguous_options
def budget_of(
    model: Callable[..., Any],
    budget: Budget,
    /,
    *args: Any,
    total: Total = "sum",
    rest: str | Mapping[str, Any] = "prior",
    observed: Sequence[str] = (),
    noise_draws: int = 16,
    key: Array | None = None,
    method: str = "auto",
    divergence: Divergence = kl,
    per: Any = "trial",
    weights: Any = None,
    **kwargs: Any,
) -> BudgetPrior:
    """The prior of the scales of a NumPyro program under a budget, for `diagnose` and for draws.

    Each component is added to the program without the others. The divergence of all of them together
    comes from the program too, with other and more noise, so `diagnose` says how far it is from the budget.

    **Arguments**
    - `model`: a NumPyro program.
    - `budget`: shares and prior of the total, by name of the scale.
    - `args`, `kwargs`: arguments of the program, the data among them.
    - `total`: as in `BudgetPrior`.
    - `rest`, `observed`, `noise_draws`, `key`, `method`, `divergence`, `per`, `weights`: as in
        `complexity_of`.
    """
    if not isinstance(budget, Budget):
        raise ValueError(f"budget must be a Budget, got {type(budget).__name__}")
    structure = ProgramStructure(model, args, kwargs)
    for name in budget.names:
        require_one_scale(structure, name)
    key = jax.random.key(0) if key is None else key
    options: dict[str, Any] = {
        "rest": rest, "observed": observed, "method": method, "divergence": divergence, "per": per,
        "weights": weights,
    }  # fmt: skip

    def alone(name: str) -> ProgramComplexity:
        off = [other for other in budget.names if other != name]
        return complexity_of(
            model, name, *args, off=off, noise_draws=noise_draws, key=key, **options, **kwargs
        )

    def whole(count: int, key: Array) -> Callable[[Array], Array]:
        return _together(model, budget.names, args, kwargs, noise_draws=count, key=key, **options)

    maps = {name: alone(name) for name in budget.names}
    together = whole(max(noise_draws, _TOGETHER_DRAWS), key)
    check = whole(max(noise_draws, _CHECK_DRAWS), jax.random.fold_in(key, 1))
    return BudgetPrior(budget, SeparateComplexity(maps, together, check), total)


def _together(
    model: Callable[..., Any],
    names: Sequence[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    rest: str | Mapping[str, Any],
    **options: Any,
) -> Callable[[Array], Array]:
    """The divergence of the program with all components from the one without any, by their scales."""

    def scaled(*args: Any, **kwargs: Any) -> Any:
        size = numpyro.sample(_SIZE, dist.HalfNormal(1.0))
        each = dist.HalfNormal(1.0).expand([len(names)]).to_event(1)
        tau = jnp.asarray(numpyro.sample(_SCALES, each))
        values = {name: size * tau[place] for place, name in enumerate(names)}
        with handlers.block(hide=list(names)):
            return Values(model, values)(*args, **kwargs)

    given = {} if isinstance(rest, str) else dict(rest)
    known = {_SCALES: jnp.ones(len(names)), **given}
    return Partial(_at, complexity_of(scaled, _SIZE, *args, rest=known, **options, **kwargs))


def _at(whole: ProgramComplexity, tau: Array) -> Array:
    """The divergence of all components at their scales."""
    moved = whole.trusted(**vars(whole) | {"rest": {**whole.rest, _SCALES: tau}})
    return jnp.exp(moved.bind()(jnp.zeros((), tau.dtype))[0])
