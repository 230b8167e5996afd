"""The same program with the prior of a scale replaced by a complexity prior."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jaxtyping import Array
from numpyro import handlers
from numpyro.distributions import Distribution

from predcp._budget import Budget, Total
from predcp._divergence_priors import DivergencePrior, GivenPrior, LogCauchy
from predcp._divergences import Divergence, kl
from predcp._prior import ComplexityPrior
from predcp._support.arrays import concrete
from predcp._support.check import require_whole
from predcp.program._complexity import ProgramComplexity, program_map
from predcp.program._increasing import require_increasing
from predcp.program._limits import as_limits
from predcp.program._run import Values, is_traced, run
from predcp.program._statements import Tail, pi_of
from predcp.program._structure import ProgramStructure, ScaleStructure, as_names

# Draws of the rest over which a statement holds on average.
_REST_DRAWS = 64
# Attribute of a swapped program, which holds its `Swap`.
SWAPPED = "_complexity_priors"
# Messages without a draw: each pass of the program may show them.
_SHOWN = ("plate", "param", "mutable", "control_flow", "prng_key")


class _Showing(handlers.block):
    """Show some latent sites of a program to the handlers around it, and hide the others.

    A handler outside may send messages of its own while it processes a site, such as the Jacobian of
    a constrained site whose value a sampler has transformed. They belong to the site and are passed on.
    """

    def __init__(self, names: set[str]):
        super().__init__(
            hide_fn=lambda msg: msg["type"] not in _SHOWN and msg.get("name") not in names
        )
        self._outside: Any = None

    def process_message(self, msg: Any) -> None:
        if self._outside is not None:
            return
        super().process_message(msg)
        if not msg.get("stop"):
            self._outside = msg

    def postprocess_message(self, msg: Any) -> None:
        if msg is self._outside:
            self._outside = None


def with_complexity(
    model: Callable[..., Any],
    priors: Mapping[str, Any] | Budget,
    *,
    rest: str | Mapping[str, Any] = "given",
    observed: Sequence[str] = (),
    noise_draws: int = 16,
    key: Array | None = None,
    method: str = "auto",
    divergence: Divergence = kl,
    per: Any = "trial",
    weights: Any = None,
    total: Total = "sum",
    reference: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """The same program, with complexity priors in place of the priors of some scales.

    The result is an ordinary NumPyro program with the same arguments, for `MCMC`, `SVI`,
    `Predictive`, `log_density` and the rest. With a heavy-tailed pi the sampled site is `log_NAME`, and
    the scale is recorded under its own name.

    Several scales form a proper joint prior: each is compared with the program without it, given
    the scales before it (in the order of `priors`), with those after it switched off.

    **Arguments**
    - `model`: a NumPyro program.
    - `priors`: by name of the scale, a prior on its divergence (`predcp.LogCauchy(scale=1.0)`), or a
        statement in your own units (`predcp.tail(rate_ratio=2.0, probability=0.05)`). Or a
        `predcp.Budget`, one prior on the total of its scales, which are sampled as `log_scales`.
    - `rest`: `"given"` conditions on the other latent sites of the same draw, as in the paper;
        `"prior"` averages over them; a mapping fixes the sites it names and averages over the others.
    - `observed`: sites to predict although the program has no data for them.
    - `noise_draws`, `key`, `method`: number, random key and kind of the noise, as in `complexity_of`.
    - `divergence`: `kl` or another one.
    - `per`, `weights`: the unit of the average over points and their weights, as in
        `PredictiveComplexity`: a binomial row counts as its trials unless `per="row"`.
    - `reference`: values at scale 0 of sites that have none of their own, as in `complexity_of`.
    - `total`: for a budget, as in `BudgetPrior`: `"together"` puts pi on the divergence of all components.
    """
    if total not in ("sum", "together") or (total == "together" and not isinstance(priors, Budget)):
        raise ValueError(f'total must be "sum", or "together" of a Budget, got {total!r}')
    if not callable(model):
        raise ValueError(f"model must be a NumPyro program, got {type(model).__name__}")
    if not isinstance(priors, Budget) and (not isinstance(priors, Mapping) or not priors):
        raise ValueError(
            "priors must map names of scales to priors on a divergence or statements, or be a Budget"
        )
    for name, prior in ({} if isinstance(priors, Budget) else priors).items():
        if not isinstance(prior, Tail | Distribution):
            raise ValueError(
                f"the prior of {name!r} must be a sentence, such as predcp.tail(rate_ratio=2.0), or a "
                f"prior on the divergence, such as predcp.Exponential(mean=0.2); got {prior!r}"
            )
    if hasattr(model, SWAPPED):
        raise ValueError(
            "model already has complexity priors: name all scales in one call, "
            "with_complexity(model, {'first': ..., 'second': ...}), so that each is given those before it"
        )
    if isinstance(rest, str) and rest not in ("given", "prior"):
        raise ValueError(f'rest must be "given", "prior" or a mapping of values, got {rest!r}')
    options = {
        "noise_draws": require_whole("noise_draws", noise_draws),
        "key": jax.random.key(0) if key is None else key,
        "method": method,
        "divergence": divergence,
        "per": per,
        "weights": weights,
        "reference": reference,
    }
    if isinstance(priors, Budget):
        from predcp.program._budget import BudgetSwap

        swap: Swap = BudgetSwap(model, priors, rest, as_names(observed), options)
        swap.total = total
    else:
        swap = Swap(model, dict(priors), rest, as_names(observed), options)

    @wraps(model)
    def program(*args: Any, **kwargs: Any) -> Any:
        return swap(args, kwargs)

    setattr(program, SWAPPED, swap)
    return program


class ScalePlan(NamedTuple):
    """One scale of the plan: its sites, the sites needed before it, the scales it switches off."""

    sites: ScaleStructure
    given: tuple[str, ...]
    off: tuple[str, ...]
    pis: dict[tuple[int, ...], DivergencePrior]  # by entry of the site; one entry () for one scale


class Swap:
    """Runs the program in passes: the rest, then each scale and the sites it moves."""

    def __init__(
        self,
        model: Callable[..., Any],
        priors: Any,
        rest: str | Mapping[str, Any],
        observed: tuple[str, ...],
        options: dict[str, Any],
    ):
        self.model, self.priors, self.rest = model, priors, rest
        self.observed, self.options = observed, options
        self.total: Total = "sum"
        self._solved: dict[Any, dict[str, Any]] = {}
        self._tables: dict[Any, ComplexityPrior] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scales that have complexity priors."""
        return tuple(self.priors.names if isinstance(self.priors, Budget) else self.priors)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        structure = ProgramStructure(self.model, args, kwargs)
        if isinstance(self.rest, Mapping):
            structure.require_among("rest", self.rest, structure.latent)
        observed = self._predicted(structure)
        scales = self._scales(structure, observed)
        later = {
            name
            for scale in scales
            for name in (scale.sites.scale, *scale.sites.moved, *scale.sites.idle)
        }
        # Parameters have the values of this call, also in the maps.
        known = self._parameters(structure, args, kwargs)
        first = [name for name in structure.latent if name not in later and name not in observed]
        conditional = any(scale.given for scale in scales)
        if conditional:
            known |= self._show(structure, args, kwargs, first, known)

        def show(names: Sequence[str], known: Mapping[str, Any]) -> dict[str, Any]:
            return self._show(structure, args, kwargs, names, known) if conditional else {}

        known = self._sample_scales(structure, scales, known, show)
        with handlers.block(hide=list(known)):
            return Values(self.model, known)(*args, **kwargs)

    def _sample_scales(
        self,
        structure: ProgramStructure,
        scales: list[ScalePlan],
        known: dict[str, Any],
        show: Callable[..., Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Each scale in turn, and the sites it moves if later scales depend on them."""
        for scale in scales:
            known[scale.sites.scale] = self._sample(structure, scale, known)
            if scale is not scales[-1]:
                moved = [name for name in scale.sites.moved if name not in known]
                known |= show(moved, known)
        return known

    def _show(
        self,
        structure: ProgramStructure,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        names: Sequence[str],
        known: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Run the program for these latent sites alone; they do not depend on what is unknown."""
        shown = set(names)
        unknown = {
            site.name: jnp.ones(site.shape, site.dtype)
            for site in structure.sites.values()
            if not site.observed and site.name not in shown and site.name not in known
        }
        with _Showing(shown), handlers.trace() as trace:
            Values(self.model, {**unknown, **known})(*args, **kwargs)
        wanted = shown | {name for name, message in trace.items() if message["type"] == "plate"}
        return {name: trace[name]["value"] for name in wanted if name in trace}

    def _parameters(
        self, structure: ProgramStructure, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """The present values of the program's parameters (`numpyro.param`)."""
        if not structure.params:
            return {}
        unknown = {
            name: jnp.ones(structure.sites[name].shape, structure.sites[name].dtype)
            for name in structure.latent
        }
        with _Showing(set()), handlers.trace() as trace:
            Values(self.model, unknown)(*args, **kwargs)
        return {name: trace[name]["value"] for name in structure.params}

    def _predicted(self, structure: ProgramStructure) -> tuple[str, ...]:
        """Sites to predict without data: those named, or all leaves of a program run forwards."""
        has_data = any(site.observed and not site.factor for site in structure.sites.values())
        return self.observed if self.observed or has_data else structure.leaves()

    def _scales(self, structure: ProgramStructure, observed: Sequence[str]) -> list[ScalePlan]:
        names = list(self.priors)
        plan: list[Any] = []
        # The noise of a later component is not known yet; switched off, it moves nothing.
        later: set[str] = set()
        for place, name in reversed([*enumerate(names)]):
            conditional = self.rest == "given"
            others = names[place + 1 :] if conditional else [n for n in names if n != name]
            sites = structure.around(name, observed, others)
            dead = structure.downstream(others, observed) | later
            given = [n for n in sites.rest if n not in others and n not in dead]
            plan.insert(0, (name, sites, tuple(given) if conditional else (), tuple(others)))
            later |= {*sites.moved, *sites.idle}
        pis = self._pis(structure, plan)
        return [ScalePlan(sites, given, others, pis[name]) for name, sites, given, others in plan]

    def _pis(self, structure: ProgramStructure, plan: list[Any]) -> dict[str, Any]:
        """For each scale and entry, the given pi or the pi that satisfies its statement."""
        entries = {name: list(np.ndindex(structure.sites[name].shape)) for name in self.priors}
        if not any(isinstance(prior, Tail) for prior in self.priors.values()):
            return {
                name: dict.fromkeys(entries[name], pi_of(prior, _no_map, {}))
                for name, prior in self.priors.items()
            }
        arrays = structure.arguments.arrays
        if not all(concrete(leaf) for leaf in jax.tree.leaves(arrays)):
            raise ValueError(
                "a statement in your own units needs the data themselves, and they are being "
                "traced: let the compiled function close over them instead of taking them as arguments, "
                "or give a prior on the divergence, such as predcp.Exponential(mean=0.2)"
            )
        key = _data_key(structure)
        if key not in self._solved:
            with jax.ensure_compile_time_eval():
                self._solved[key] = {
                    name: {
                        index: self._solve(structure, sites, given, others, index)
                        for index in entries[name]
                    }
                    for name, sites, given, others in plan
                }
        return self._solved[key]

    def _solve(
        self,
        structure: ProgramStructure,
        sites: ScaleStructure,
        given: Sequence[str],
        off: Sequence[str],
        index: tuple[int, ...],
    ) -> DivergencePrior:
        def build(values: Mapping[str, Any]) -> ProgramComplexity:
            return self._map(structure, sites, values, off, index)

        options = self.options
        rest = rest_draws(structure, given, off, options["key"], options["reference"])
        return pi_of(self.priors[sites.scale], build, rest)

    def _map(
        self,
        structure: ProgramStructure,
        sites: ScaleStructure,
        values: Mapping[str, Any],
        off: Sequence[str],
        index: tuple[int, ...] = (),
        others: Any = None,
    ) -> ProgramComplexity:
        given = dict(values)
        if isinstance(self.rest, Mapping):
            given |= {name: value for name, value in self.rest.items() if name in sites.rest}
        return program_map(
            structure, sites, given, off=off, index=index or None, others=others, **self.options
        )

    def _sample(
        self, structure: ProgramStructure, scale: ScalePlan, known: Mapping[str, Any]
    ) -> Array:
        values = {name: known[name] for name in (*structure.params, *scale.given)}
        name = scale.sites.scale
        shape = structure.sites[name].shape
        if not shape:
            complexity = self._map(structure, scale.sites, values, scale.off)
            prior = self._prior(structure, name, (), ComplexityPrior(scale.pis[()], complexity))
            return _sample_scale(structure, name, name, prior)
        # Entries in order: each given those before it, those after it switched off.
        scales = jnp.zeros(shape, structure.sites[name].dtype)
        for index, pi in scale.pis.items():
            complexity = self._map(structure, scale.sites, values, scale.off, index, scales)
            label = f"{name}_{'_'.join(map(str, index))}"
            prior = self._prior(structure, name, index, ComplexityPrior(pi, complexity))
            tau = _sample_scale(structure, name, label, prior)
            scales = scales.at[index].set(tau)
        return jnp.asarray(numpyro.deterministic(name, scales))

    def _prior(
        self,
        structure: ProgramStructure,
        name: str,
        index: tuple[int, ...],
        prior: ComplexityPrior,
    ) -> ComplexityPrior:
        """The prior, through a table where its map is the same in every draw."""
        require_increasing(prior.complexity)
        # Constants are traced where a program is compiled, to be run many times.
        often = is_traced(jnp.zeros(())) and not structure.params
        if not often or not all(concrete(leaf) for leaf in jax.tree.leaves(prior)):
            return prior
        key = (_data_key(structure), name, index)
        if key not in self._tables:
            with jax.ensure_compile_time_eval():
                try:
                    self._tables[key] = prior.tabulated()
                except (RuntimeError, ValueError):
                    # No table is accurate enough for this map: evaluate the map itself.
                    self._tables[key] = prior
        return self._tables[key]


def _data_key(structure: ProgramStructure) -> Any:
    """Key that identifies a set of arguments."""
    arrays, shape = structure.arguments
    return shape, tuple(np.asarray(array).tobytes() for array in arrays)


def _sample_scale(
    structure: ProgramStructure, name: str, label: str, prior: ComplexityPrior
) -> Array:
    """Sample one scale; with a heavy tail, sample its logarithm."""
    by_logarithm = isinstance(prior.pi, LogCauchy | GivenPrior)
    site = f"log_{label}" if by_logarithm else label
    if site != name and (site in structure.sites or site in structure.computed):
        raise ValueError(
            f"{name!r} is sampled as {site!r}, and the program has a site of that name: rename it"
        )
    if not by_logarithm:
        return jnp.asarray(numpyro.sample(site, prior))
    tau = jnp.exp(jnp.asarray(numpyro.sample(site, prior.log_scale())))
    return jnp.asarray(numpyro.deterministic(name, tau)) if label == name else tau


def prior_in_words(priors: Mapping[str, Any] | Budget, name: str) -> str:
    """What was stated for one scale."""
    if isinstance(priors, Budget):
        return "a share of a budget"
    stated = priors[name]
    return str(stated) if isinstance(stated, Tail) else f"{type(stated).__name__} on the divergence"


def _no_map(values: Any) -> ProgramComplexity:
    raise AssertionError("a prior on a divergence needs no map")


def rest_draws(
    structure: ProgramStructure,
    names: Sequence[str],
    off: Sequence[str],
    key: Array,
    reference: Mapping[str, Any] | None = None,
) -> dict[str, Array]:
    """Draws of some latent sites from their own prior, with other scales switched off."""
    if not names:
        return {}
    structure.require_proper(names)
    args, kwargs = structure.arguments.restore()
    zeros = {name: jnp.zeros(structure.sites[name].shape) for name in off}
    dead = structure.downstream(off)
    limits = tuple(each for each in as_limits(reference) if each[0] in dead)

    def one(key: Array) -> dict[str, Array]:
        trace = run(structure.model, args, kwargs, zeros, None, key, limits)
        return {name: trace[name]["value"] for name in names}

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.fold_in(key, 2), _REST_DRAWS))
