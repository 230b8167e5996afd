"""What the present priors of a program say about its predictions."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from predcp._divergences import Divergence, kl
from predcp.program._complexity import program_map
from predcp.program._noise import at_step, make_noise, unwrapped
from predcp.program._noise import drawn as drawn_from
from predcp.program._options import refuse_ambiguous_options
from predcp.program._picture import draw_audit
from predcp.program._responses import RESPONSES, response_sizes
from predcp.program._run import is_number, run
from predcp.program._structure import ProgramStructure

QUANTILES = (0.05, 0.5, 0.95)
THRESHOLDS = (0.1, 1.0, 10.0)
# A prediction is saturated when it has moved this share of the way it can.
_SATURATED = 0.99
_BATCH = 64


@dataclass(frozen=True)
class ScaleAudit:
    """What the present prior of one scale says.

    - `scale`, `prior`: name of the site, and its distribution in words.
    - `tau`, `kappa`: quantiles of the scale and of the divergence at 5, 50 and 95%.
    - `beyond`: share of the prior beyond 0.1, 1 and 10 nats.
    - `supremum`: the largest divergence there can be (median over the rest), infinite if unbounded.
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
        parts = [
            f"{self.scale} ~ {self.prior}: at its median ({_number(self.tau[1])}) it moves a prediction by "
            f"{_number(self.kappa[1])} nats."
        ]
        for name, values in self.responses.items():
            if name == "r_squared" or RESPONSES[name].coordinate == "logits":
                continue
            parts.append(f"The {RESPONSES[name].words} has a median of {_number(values[1])}.")
        if "odds_ratio" in self.responses:
            middle, high = self.responses["odds_ratio"][1:]
            parts.append(
                f"The median odds ratio of two groups is {_number(middle)}, and {_number(high)} or more "
                "in one draw of twenty."
            )
        if np.isfinite(self.supremum) and self.saturated >= 0.005:
            parts.append(f"{_share(self.saturated)} of its draws saturate the predictions.")
        elif self.beyond["10"] >= 0.005:
            parts.append(
                f"{_share(self.beyond['10'])} of its draws move them by more than 10 nats."
            )
        return " ".join(parts)

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
    """The audits of a program's scales, and draws from its prior predictive distribution."""

    scales: tuple[ScaleAudit, ...]
    _predict: Callable[[], dict[str, np.ndarray]] = field(repr=False)

    @cached_property
    def prior_predictive(self) -> dict[str, np.ndarray]:
        """By predicted site, draws of the data from the prior; made when first asked for."""
        return self._predict()

    def __iter__(self):
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
        """One paragraph for each scale."""
        return "\n".join(each.words for each in self.scales)

    def to_json(self) -> str:
        """The audit as JSON, without draws."""
        return json.dumps([each.to_dict() for each in self.scales])

    def to_frame(self) -> Any:
        """A pandas table with one row for each scale."""
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
        return pd.DataFrame(rows).set_index("scale")

    def plot(self) -> Any:
        """A matplotlib figure: where each prior puts the predictions."""
        return draw_audit(self)

    def __str__(self) -> str:
        return f"{_table(self.scales)}\n\n{self.words}"


@refuse_ambiguous_options
def audit(
    model: Callable[..., Any],
    /,
    *args: Any,
    scales: Sequence[str] | None = None,
    observed: Sequence[str] = (),
    rest: Mapping[str, Any] | None = None,
    draws: int = 16,
    samples: int = 512,
    key: Array | None = None,
    divergence: Divergence = kl,
    per: Any = "trial",
    weights: Any = None,
    **kwargs: Any,
) -> Audit:
    """Say what the present prior of every scale of a program means for its predictions.

    Scales and the rest of the program are drawn together from its prior.

    **Arguments**
    - `model`, `args`, `kwargs`: a NumPyro program and its arguments, the data among them. Pass an
        argument that has the name of an option below by position.
    - `scales`: names of the scales; all positive sites that move a prediction when left out.
    - `observed`: sites to predict although the program has no data for them.
    - `rest`: values of other latent sites, which are then not drawn.
    - `draws`, `samples`: number of noise draws in each map, and of draws from the prior.
    - `divergence`, `per`, `weights`: as in `with_complexity`.
    """
    key = jax.random.key(0) if key is None else key
    structure = ProgramStructure(model, args, kwargs)
    names = list(structure.scales(observed)) if scales is None else list(scales)
    if not names:
        raise ValueError(
            "the program has no scale to audit: no positive latent site moves an observed one "
            f"(its latent sites are {structure.latent}); pass the data, or observed=[...]"
        )
    options = {
        "draws": draws,
        "key": key,
        "method": "sobol",
        "divergence": divergence,
        "per": per,
        "weights": weights,
    }
    values = dict(rest or {})
    drawn, words = _draw_prior(structure, names, values, samples, key)
    audited = [
        _audit_scale(structure, name, index, words[name], values, drawn, observed, options)
        for name in names
        for index in np.ndindex(structure.sites[name].shape)
    ]
    predict = partial(_draw_data, structure, values, drawn, observed, jax.random.fold_in(key, 3))
    return Audit(tuple(audited), predict)


def _draw_prior(
    structure: ProgramStructure,
    names: Sequence[str],
    values: Mapping[str, Any],
    samples: int,
    key: Array,
) -> tuple[dict[str, Array], dict[str, str]]:
    """Draws of all latent sites, and the priors of some of them in words."""
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

        args, kwargs = shape.restore(arrays)
        return run(structure.model, args, kwargs, values, value, key)

    def one(arrays: tuple[Any, ...], noise: dict[str, Array], key: Array) -> dict[str, Array]:
        trace = traced(arrays, noise, key)
        return {name: trace[name]["value"] for name in structure.latent}

    @jax.jit
    def everything(arrays: tuple[Any, ...], noise: dict[str, Array], key: Array) -> Any:
        numbers = {}
        for name, message in traced(arrays, {}, key).items():
            if name in names:
                fn = unwrapped(message["fn"])
                families[name] = type(fn).__name__
                # A prior with other sites in it has no numbers of its own.
                fixed = fn.get_args().values() if structure.has_fixed_prior(name) else ()
                numbers[name] = [jnp.asarray(value) for value in fixed if is_number(value)]
        keys = jax.random.split(key, samples)
        return jax.vmap(partial(one, arrays))(noise, keys), numbers

    noise = make_noise(jax.random.fold_in(key, 4), samples, shapes, "sobol", dtypes)
    drawn, numbers = everything(arrays, noise, key)
    return drawn, {name: _prior_words(families[name], numbers[name]) for name in names}


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


def _audit_scale(
    structure: ProgramStructure,
    name: str,
    index: tuple[int, ...],
    prior: str,
    values: Mapping[str, Any],
    drawn: dict[str, Array],
    observed: Sequence[str],
    options: dict[str, Any],
) -> ScaleAudit:
    sites = structure.around(name, observed)
    dtype = structure.sites[name].dtype

    def one(draw: tuple[Array, dict[str, Array]]) -> Any:
        tau, rest = draw
        given = {**rest, **{n: v for n, v in values.items() if n in sites.rest}}
        others = None if not index else tau.at[index].set(0.0)
        complexity = program_map(
            structure, sites, given, index=index or None, others=others, **options
        )
        log_tau = jnp.log(tau[index] if index else tau)
        log_kappa, _ = complexity.log_value_and_elasticity(log_tau)
        supremum = complexity.log_supremum(log_tau)
        return log_kappa, supremum, response_sizes(complexity, log_tau)

    rest = {n: drawn[n] for n in sites.rest}
    log_kappa, log_supremum, responses = jax.jit(
        lambda draw: jax.lax.map(one, draw, batch_size=_BATCH)
    )((drawn[name].astype(dtype), rest))
    tau = np.asarray(drawn[name], np.float64)[(slice(None), *index)]
    log_kappa, log_supremum = (
        np.asarray(log_kappa, np.float64),
        np.asarray(log_supremum, np.float64),
    )
    with np.errstate(over="ignore"):
        kappa = np.exp(log_kappa)
    label = name if not index else f"{name}[{','.join(map(str, index))}]"
    return ScaleAudit(
        scale=label,
        prior=prior,
        tau=_quantiles(tau),
        kappa=_quantiles(kappa),
        beyond={f"{u:g}": float(np.mean(log_kappa > np.log(u))) for u in THRESHOLDS},
        supremum=float(np.exp(np.median(log_supremum))),
        saturated=float(np.mean(log_kappa >= np.log(_SATURATED) + log_supremum)),
        responses={n: _quantiles(np.asarray(v, np.float64)) for n, v in responses.items()},
        moved=sites.moved,
        rest=sites.rest,
        predicted=sites.predicted,
        draws={
            "tau": tau,
            "log_kappa": log_kappa,
            **{n: np.asarray(v, np.float64) for n, v in responses.items()},
        },
    )


def _quantiles(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in np.quantile(values, QUANTILES, method="nearest"))


def _prior_words(family: str, numbers: Sequence[Array]) -> str:
    """A distribution with its numbers, where it has one of each."""
    known = [np.asarray(each) for each in numbers]
    if not known or any(np.unique(each).size > 1 for each in known):
        return family
    return f"{family}({', '.join(f'{each.flat[0]:g}' for each in known)})"


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "more than can be written"
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.3g}" if abs(value) < 1e3 else f"{value:,.0f}"
    return f"{value:.1e}"


def _share(share: float) -> str:
    if share > 0.995:
        return "All"
    if share > 0.95:
        return f"{share:.0%}"
    words = {1: "One in ten", 2: "Two in ten", 3: "Three in ten", 4: "Four in ten", 5: "Half"}
    words |= {6: "Six in ten", 7: "Seven in ten", 8: "Eight in ten", 9: "Nine in ten"}
    tenths = round(10 * share)
    return words.get(tenths, f"{share:.1%}")


def _table(scales: Sequence[ScaleAudit]) -> str:
    """A plain-text table, one row for each scale."""
    header = [
        "scale",
        "prior",
        "tau 50%",
        "nats 5%",
        "50%",
        "95%",
        "> 0.1",
        "> 1",
        "> 10",
        "saturated",
    ]
    rows = [
        [
            each.scale,
            each.prior,
            _number(each.tau[1]),
            *(_number(value) for value in each.kappa),
            *(f"{each.beyond[f'{u:g}']:.0%}" for u in THRESHOLDS),
            f"{each.saturated:.0%}" if np.isfinite(each.supremum) else "-",
        ]
        for each in scales
    ]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
