"""The draws of a NumPyro sampler as an ArviZ tree that can be power-scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpyro import handlers

from predcp._prior import ComplexityPrior, LogScalePrior
from predcp._support.extras import needs
from predcp.program._run import run

if TYPE_CHECKING:
    import xarray


def to_arviz(mcmc: Any, *args: Any, **kwargs: Any) -> xarray.DataTree:
    """Draws of `numpyro.infer.MCMC` as an ArviZ tree, with `log_likelihood` and `log_prior`.

    The log prior of a scale with a complexity prior is `log pi(kappa)`, up to a constant.
    `arviz_stats.psense` raises it to a power, which is the same as raising pi to that power.

    **Arguments**: `mcmc` after its run; `args`, `kwargs`, the arguments of the run.

    **Returns** groups `posterior`, `sample_stats`, `log_likelihood` (point by point) and `log_prior` (one
    variable per site); a scale sampled as `log_NAME` is named NAME.
    """
    with needs("experiments"):
        import arviz_base
    draws = {
        name: jnp.asarray(value) for name, value in mcmc.get_samples(group_by_chain=True).items()
    }
    model = mcmc.sampler.model

    def one(values: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        trace = run(handlers.substitute(model, values), args, kwargs, {})
        sites = {name: site for name, site in trace.items() if site["type"] == "sample"}
        observed = {name: site for name, site in sites.items() if site["is_observed"]}
        likelihood = {name: _log_density(site) for name, site in observed.items()}
        prior = {
            name.removeprefix("log_") if isinstance(site["fn"], LogScalePrior) else name: jnp.sum(
                _log_prior(site)
            )
            for name, site in sites.items()
            if name not in observed
        }
        return likelihood, prior

    shape = next(iter(draws.values())).shape[:2]
    flat = jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:]), draws)
    found = jax.jit(lambda values: jax.lax.map(one, values))(flat)
    likelihood, prior = jax.tree.map(
        lambda each: np.asarray(each).reshape(*shape, *each.shape[1:]), found
    )
    groups = {"posterior": {name: np.asarray(value) for name, value in draws.items()}}
    statistics = mcmc.get_extra_fields(group_by_chain=True)
    groups["sample_stats"] = {name: np.asarray(value) for name, value in statistics.items()}
    groups |= {"log_likelihood": likelihood, "log_prior": prior}
    return arviz_base.from_dict({name: group for name, group in groups.items() if group})


def _log_density(site: dict[str, Any]) -> Array:
    scale = site.get("scale")
    density = site["fn"].log_prob(site["value"])
    return density if scale is None else scale * density


def _log_prior(site: dict[str, Any]) -> Array:
    """The log density of a latent site; of a scale, that of its divergence."""
    fn, value = site["fn"], site["value"]
    if not isinstance(fn, ComplexityPrior | LogScalePrior):
        return _log_density(site)
    return fn.divergence_log_prob(value)
