"""Audit: the consequences of a program's present priors for its predictions."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array

from predcp._divergences import Divergence, kl
from predcp._support.extras import needs
from predcp.program._complexity import ProgramComplexity, program_map
from predcp.program._increasing import GRID, require_increasing_values
from predcp.program._limits import require_limit
from predcp.program._noise import at_step, make_noise, unwrapped
from predcp.program._noise import drawn as drawn_from
from predcp.program._options import refuse_ambiguous_options
from predcp.program._picture import draw_audit
from predcp.program._responses import RESPONSES, response_sizes
from predcp.program._run import is_number, run
from predcp.program._structure import ProgramStructure, ScaleStructure, as_names
from predcp.program._swap import SWAPPED, prior_in_words
from predcp.program._wording import THRESHOLDS, in_words, table_of

QUANTILES = (0.05, 0.5, 0.95)
# A prediction is saturated when its divergence is this share of the supremum.
_SATURATED = 0.99
# Draws of the prior at a time: at most this many, and few if there are many predictions.
_BATCH, _LARGEST = 64, 8_000_000
# One draw of a scale and of the rest, or many with a leading axis.
Draw = tuple[Array, dict[str, Array]]
# Distributions that are known by the one they are made of.
_PARTS_OF = {
    "truncated": (
        dist.LeftTruncatedDistribution,
        dist.RightTruncatedDistribution,
        dist.TwoSidedTruncatedDistribution,
    ),
    "folded": (dist.FoldedDistribution,),
}


@dataclass(frozen=True)
class ScaleAudit:
    """Audit of the present prior of one scale.

    - `scale`, `prior`: name of the site, and its distribution in words.
    - `tau`, `kappa`: quantiles of the scale and of the divergence at 5, 50 and 95%.
    - `beyond`: share of the prior beyond 0.1, 1 and 10 nats.
    - `supremum`: the largest possible divergence (median over the rest), infinite if unbounded.
    - `saturated`: share of the prior at 99% of the supremum or more.
    - `responses`: quantiles of the effect in units of the response, by name.
    - `moved`, `rest`, `predicted`: the sites around the scale.
    """

    scale: str
    prior: str
    tau: tuple[float, ...]
    kappa: tuple[float, ...]
    beyond: dict[str, float]
    supremum: float
    saturated: float
    responses: dict[str, tuple[float, ...]]
    moved: tuple[str, ...]
    rest: tuple[str, ...]
    predicted: tuple[str, ...]
    draws: dict[str, np.ndarray] = field(repr=False, default_factory=dict)

    @property
    def words(self) -> str:
        """The audit in a few sentences."""
        return in_words(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "scale": self.scale,
            "prior": self.prior,
            "quantiles": list(QUANTILES),
            "tau": list(self.tau),
            "kappa": list(self.kappa),
            "beyond": dict(self.beyond),
            "supremum": self.supremum if np.isfinite(self.supremum) else None,
            "saturated": self.saturated,
            "responses": {name: list(values) for name, values in self.responses.items()},
            "moved": list(self.moved),
            "rest": list(self.rest),
            "predicted": list(self.predicted),
        }


@dataclass(frozen=True)
class Audit:
    """The audits of a program's scales, and draws from its prior predictive distribution.

    - `scales`: one audit for each scale.
    - `skipped`: by name of a positive site that is no scale, the reason.
    """

    scales: tuple[ScaleAudit, ...]
    _predict: Callable[[], dict[str, np.ndarray]] = field(repr=False)
    skipped: dict[str, str] = field(default_factory=dict)

    @cached_property
    def prior_predictive(self) -> dict[str, np.ndarray]:
        """Draws of the data from the prior, by predicted site; made at the first access."""
        return self._predict()

    def __iter__(self) -> Iterator[ScaleAudit]:
        return iter(self.scales)

    def __getitem__(self, name: str) -> ScaleAudit:
        for each in self.scales:
            if each.scale == name:
                return each
        raise KeyError(
            f"no scale {name!r} was audited, only {[each.scale for each in self.scales]}"
        )

    @property
    def words(self) -> str:
        """One paragraph for each scale, and one for each site that was skipped."""
        return "\n".join([*(each.words for each in self.scales), *self.remarks])

    @property
    def remarks(self) -> list[str]:
        """For each site that was skipped, the reason in words."""
        return [f"{name} was skipped: {reason}." for name, reason in self.skipped.items()]

    def to_json(self) -> str:
        """The audit as JSON, without draws; a site that was skipped has the reason alone."""
        reasons = [{"scale": name, "skipped": reason} for name, reason in self.skipped.items()]
        return json.dumps([*(each.to_dict() for each in self.scales), *reasons])

    def to_frame(self) -> Any:
        """A pandas table with one row for each scale; `attrs["skipped"]` has the sites without one."""
        with needs("experiments"):
            import pandas as pd

        rows = []
        for each in self.scales:
            row = {"scale": each.scale, "prior": each.prior}
            row |= {f"tau {q:.0%}": value for q, value in zip(QUANTILES, each.tau)}
            row |= {f"nats {q:.0%}": value for q, value in zip(QUANTILES, each.kappa)}
            row |= {f"P(> {name} nats)": value for name, value in each.beyond.items()}
            row["saturated"] = each.saturated
            row |= {f"{name} 50%": values[1] for name, values in each.responses.items()}
            rows.append(row)
        frame = pd.DataFrame(rows).set_index("scale")
        frame.attrs["skipped"] = dict(self.skipped)
        return frame

    def plot(self) -> Any:
        """A matplotlib figure: where each prior puts the predictions."""
        return draw_audit(self)

    def __str__(self) -> str:
        return f"{table_of(self.scales)}\n\n{self.words}"


@refuse_ambiguous_options
def audit(
    model: Callable[..., Any],
    /,
    *args: Any,
    scales: Sequence[str] | None = None,
    observed: Sequence[str] = (),
    rest: Mapping[str, Any] | None = None,
    noise_draws: int = 16,
    samples: int = 512,
    key: Array | None = None,
    divergence: Divergence = kl,
    per: Any = "trial",
    weights: Any = None,
    reference: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Audit:
    """Report what the present prior of every scale of a program implies for its predictions.

    Scales and the rest of the program are drawn together from its prior. A positive site that is no scale
    of an effect is skipped, with the reason, unless `scales` names it.

    **Arguments**
    - `model`, `args`, `kwargs`: a NumPyro program, perhaps one that `with_complexity` made, and its
        arguments, the data among them. Pass an argument that has the name of an option below by position.
    - `scales`: names of the scales; by default all positive sites that move a prediction.
    - `observed`: sites to predict although the program has no data for them.
    - `rest`: values of other latent sites, used instead of draws.
    - `noise_draws`, `samples`: number of noise draws in each map, and of draws from the prior.
    - `divergence`, `per`, `weights`, `reference`: as in `with_complexity`.
    """
    key = jax.random.key(0) if key is None else key
    # Complexity priors change how scales are drawn, and nothing in the sites around them.
    swap = getattr(model, SWAPPED, None)
    structure = ProgramStructure(model if swap is None else swap.model, args, kwargs)
    observed = as_names(observed)
    names, skipped = structure.scales(observed)
    if scales is not None:
        names, skipped = list(as_names(scales)), {}
    if not names and skipped:
        raise ValueError(f"the program has no scale to audit: {'; '.join(skipped.values())}")
    if not names:
        raise ValueError(
            "the program has no scale to audit: no positive latent site moves an observed one through "
            f"another (its latent sites are {structure.latent}); pass the data, or observed=[...]; "
            "sample a scale itself, since one that is computed, such as exp(log_tau), is not seen; "
            "name the scale of effects that are integrated out with scales=[...]"
        )
    options = {
        "noise_draws": noise_draws,
        "key": key,
        "method": "auto",
        "divergence": divergence,
        "per": per,
        "weights": weights,
        "reference": reference,
    }
    values = dict(rest or {})
    structure.require_among("rest", values, [*structure.latent, *structure.params])
    for name in names:
        if structure.require_latent(name).improper:
            raise ValueError(
                f"the prior of scale {name!r} is improper, so it says nothing that can be audited: give "
                f"it a proper prior, or audit others with scales=[...] and rest={{{name!r}: ...}}"
            )
    structure.require_proper([name for name in structure.latent if name not in values])
    drawn, words = _draw_prior(structure, model, names, values, samples, key)
    words |= {} if swap is None else {n: prior_in_words(swap.priors, n) for n in swap.names}
    audited: list[ScaleAudit] = []
    for name in names:
        try:
            audited += _audit_site(structure, name, words[name], values, drawn, observed, options)
        except ValueError as error:
            if scales is not None:
                raise
            skipped[name] = str(error)
    if not audited:
        raise ValueError(f"the program has no scale to audit: {'; '.join(skipped.values())}")
    predict = partial(_draw_data, structure, values, drawn, observed, jax.random.fold_in(key, 3))
    return Audit(tuple(audited), predict, skipped)


def _draw_prior(
    structure: ProgramStructure,
    model: Callable[..., Any],
    names: Sequence[str],
    values: Mapping[str, Any],
    samples: int,
    key: Array,
) -> tuple[dict[str, Array], dict[str, str]]:
    """Draws of all latent sites, and the priors of the scales in words."""
    arrays, shape = structure.arguments
    families: dict[str, str] = {}
    # Quantiles of Sobol points are more even than random draws, and compile faster.
    shapes: dict[str, tuple[int, ...] | None] = {
        name: structure.sites[name].noise for name in structure.latent
    }
    dtypes = {name: structure.sites[name].dtype for name in structure.latent}
    shapes = {name: noise for name, noise in shapes.items() if noise is not None}

    def traced(arrays: tuple[Any, ...], noise: dict[str, Array], key: Array) -> Any:
        def value(name: str, fn: Any, step: Array | None) -> Any:
            return drawn_from(fn, at_step(noise[name], step)) if name in noise else None

        # A statement of a complexity prior needs the data themselves, not a trace of them.
        swapped = model is not structure.model
        args, kwargs = structure.arguments.restore() if swapped else shape.restore(arrays)
        return run(model, args, kwargs, values, value, key)

    def one(arrays: tuple[Any, ...], noise: dict[str, Array], key: Array) -> dict[str, Array]:
        trace = traced(arrays, noise, key)
        return {name: trace[name]["value"] for name in structure.latent}

    @jax.jit
    def everything(arrays: tuple[Any, ...], noise: dict[str, Array], key: Array) -> Any:
        numbers = {}
        for name, message in traced(arrays, {}, key).items():
            if name in names and message["type"] == "sample":
                families[name], fn = _family(unwrapped(message["fn"]))
                # A prior with other sites in it has no numbers of its own.
                fixed = fn.get_args().values() if structure.has_fixed_prior(name) else ()
                numbers[name] = [jnp.asarray(value) for value in fixed if is_number(value)]
        keys = jax.random.split(key, samples)
        return jax.vmap(partial(one, arrays))(noise, keys), numbers

    noise = make_noise(jax.random.fold_in(key, 4), samples, shapes, "sobol", dtypes)
    drawn, numbers = everything(arrays, noise, key)
    return drawn, {name: _prior_words(families[name], numbers[name]) for name in families}


def _draw_data(
    structure: ProgramStructure,
    values: Mapping[str, Any],
    drawn: Mapping[str, Array],
    observed: Sequence[str],
    key: Array,
) -> dict[str, np.ndarray]:
    """Draws of the observed sites, one for each draw of the latent ones."""
    arrays, shape = structure.arguments
    predicted = [s.name for s in structure.sites.values() if s.observed and not s.factor]

    @jax.jit
    @partial(jax.vmap, in_axes=(None, 0, 0))
    def one(arrays: tuple[Any, ...], latent: dict[str, Array], key: Array) -> dict[str, Array]:
        args, kwargs = shape.restore(arrays)
        trace = run(structure.model, args, kwargs, {**latent, **values})
        return {
            name: trace[name]["fn"].sample(jax.random.fold_in(key, place))
            for place, name in enumerate(predicted)
        }

    count = len(next(iter(drawn.values())))
    data = one(arrays, dict(drawn), jax.random.split(key, count)) if predicted else {}
    data |= {name: drawn[name] for name in observed if name in drawn}
    return {name: np.asarray(each) for name, each in data.items()}


def _audit_site(
    structure: ProgramStructure,
    name: str,
    prior: str,
    values: Mapping[str, Any],
    drawn: dict[str, Array],
    observed: Sequence[str],
    options: dict[str, Any],
) -> Iterator[ScaleAudit]:
    """The audit of each scale of a site."""
    sites = structure.around(name, observed)
    dtype, shape = structure.sites[name].dtype, structure.sites[name].shape
    values_at_once = sum(math.prod(structure.sites[n].shape) for n in sites.predicted)
    batch = max(1, min(_BATCH, _LARGEST // (options["noise_draws"] * max(1, values_at_once))))

    def map_of(index: tuple[Array, ...], draw: Draw) -> ProgramComplexity:
        tau, rest = draw
        given = {**rest, **{n: v for n, v in values.items() if n in sites.rest}}
        others = None if not index else tau.at[index].set(0.0)
        return program_map(structure, sites, given, index=index or None, others=others, **options)

    def one(index: tuple[Array, ...], draw: Draw) -> Any:
        complexity = map_of(index, draw)
        log_tau = jnp.log(draw[0][index] if index else draw[0])
        log_kappa, _ = complexity.log_value_and_elasticity(log_tau)
        supremum = complexity.log_supremum(log_tau)
        return log_kappa, supremum, response_sizes(complexity, log_tau)

    # The entries of a site share two compiled programs.
    @jax.jit
    def near_zero(index: tuple[Array, ...], first: Draw) -> Any:
        return map_of(index, first).steps_and_moves()

    @jax.jit
    def every(index: tuple[Array, ...], first: Draw, draws: Draw) -> Any:
        # The map of the first draw is also checked at other scales; a batch that is not full would be
        # compiled by itself.
        count = len(draws[0])
        at = jnp.exp(np.pad(GRID, (0, -(count + GRID.size) % batch), mode="edge"))
        more = jax.tree.map(lambda each: jnp.broadcast_to(each, (at.size, *each.shape)), first)
        more = more[0].at[(..., *index)].set(at.astype(dtype)), more[1]
        both = jax.tree.map(lambda *each: jnp.concatenate(each), draws, more)
        found = jax.lax.map(partial(one, index), both, batch_size=batch)
        checks = found[0][count : count + GRID.size]
        return jax.tree.map(lambda each: each[:count], found), checks

    draws = drawn[name].astype(dtype), {n: drawn[n] for n in sites.rest}
    first = jax.tree.map(lambda each: each[0], draws)
    given = set(options["reference"] or {})
    for index in np.ndindex(shape):
        place = tuple(jnp.asarray(i) for i in index)
        require_limit(name, given, near_zero(place, first))
        found, checks = every(place, first, draws)
        require_increasing_values(name, np.array(checks))
        yield _scale_audit(sites, index, prior, np.asarray(drawn[name], np.float64), found)


def _scale_audit(
    sites: ScaleStructure, index: tuple[int, ...], prior: str, scales: np.ndarray, found: Any
) -> ScaleAudit:
    """The audit of one scale from its log divergences, suprema and effects, one for each draw."""
    log_kappa, log_supremum = (np.asarray(each, np.float64) for each in found[:2])
    responses, name = found[2], sites.scale
    tau = scales[(slice(None), *index)]
    with np.errstate(over="ignore"):
        kappa = np.exp(log_kappa)
    # A scale may move the noise alone: then it has no size in units of the noise.
    seen = {n: np.asarray(v, np.float64) for n, v in responses.items()}
    seen = {
        n: v for n, v in seen.items() if np.any(v != RESPONSES[n].from_displacement(jnp.zeros(())))
    }
    label = name if not index else f"{name}[{','.join(map(str, index))}]"
    return ScaleAudit(
        scale=label,
        prior=prior,
        tau=_quantiles(tau),
        kappa=_quantiles(kappa),
        beyond={f"{u:g}": float(np.mean(log_kappa > np.log(u))) for u in THRESHOLDS},
        supremum=float(np.exp(np.median(log_supremum))),
        saturated=float(np.mean(log_kappa >= np.log(_SATURATED) + log_supremum)),
        responses={n: _quantiles(sizes) for n, sizes in seen.items()},
        moved=sites.moved,
        rest=sites.rest,
        predicted=sites.predicted,
        draws={
            "tau": tau,
            "log_kappa": log_kappa,
            **seen,
        },
    )


def _quantiles(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in np.quantile(values, QUANTILES, method="nearest"))


def _family(distribution: Any) -> tuple[str, Any]:
    """Name of a family, and the distribution that has its numbers."""
    for word, wrapper in _PARTS_OF.items():
        if isinstance(distribution, wrapper):
            return f"{word} {type(distribution.base_dist).__name__}", distribution.base_dist
    return type(distribution).__name__, distribution


def _prior_words(family: str, numbers: Sequence[Array]) -> str:
    """A distribution with its parameters, if each is a single number."""
    known = [np.asarray(each) for each in numbers]
    if not known or any(np.unique(each).size > 1 for each in known):
        return family
    return f"{family}({', '.join(f'{each.flat[0]:g}' for each in known)})"
