"""What the present priors of a program say about its predictions."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from predcp._divergences import Divergence, kl
from predcp.program._complexity import program_map
from predcp.program._noise import unwrapped
from predcp.program._picture import draw_audit
from predcp.program._responses import RESPONSES, response_sizes
from predcp.program._run import run
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
    prior_predictive: dict[str, np.ndarray] = field(repr=False)

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


def audit(
    model: Callable[..., Any],
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
    - `model`, `args`, `kwargs`: a NumPyro program and its arguments, the data among them.
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
    drawn, predictive = _prior(structure, values, samples, key, observed)
    audited = []
    for name in names:
        for index in np.ndindex(structure.sites[name].shape):
            audited.append(_audit_scale(structure, name, index, values, drawn, observed, options))
    return Audit(tuple(audited), predictive)


def _prior(
    structure: ProgramStructure,
    values: Mapping[str, Any],
    samples: int,
    key: Array,
    observed: Sequence[str],
) -> tuple[dict[str, Array], dict[str, np.ndarray]]:
    """Draws of all latent sites, and of the observed ones given them."""
    args, kwargs = structure.arguments.restore()
    predicted = [s.name for s in structure.sites.values() if s.observed and not s.factor]

    def one(key: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        key_latent, key_data = jax.random.split(key)
        trace = run(structure.model, args, kwargs, values, None, key_latent)
        data = {
            name: trace[name]["fn"].sample(jax.random.fold_in(key_data, place))
            for place, name in enumerate(predicted)
        }
        data |= {name: trace[name]["value"] for name in observed}
        return {name: trace[name]["value"] for name in structure.latent}, data

    latent, data = jax.jit(jax.vmap(one))(jax.random.split(key, samples))
    return latent, {name: np.asarray(values) for name, values in data.items()}


def _audit_scale(
    structure: ProgramStructure,
    name: str,
    index: tuple[int, ...],
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
        prior=_prior_words(structure, name),
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


def _prior_words(structure: ProgramStructure, name: str) -> str:
    """The distribution of a site with its numbers, where they are known."""
    args, kwargs = structure.arguments.restore()
    trace = run(structure.model, args, kwargs, {})
    fn = unwrapped(trace[name]["fn"])
    parameters = [
        np.asarray(value)
        for value in fn.get_args().values()
        if value is not None and not isinstance(value, Tracer)
    ]
    if any(value.dtype.kind not in "fiub" or np.unique(value).size > 1 for value in parameters):
        return type(fn).__name__
    return f"{type(fn).__name__}({', '.join(f'{value.flat[0]:g}' for value in parameters)})"


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
