"""The designs: real inputs, the scales that are scored, and what is true in a simulation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.scale_priors.sources import centred, codes, indicators, table

SCALES = ("none", "small", "middling", "large")
NORMAL_SCALES = (0.0, 0.1, 0.5, 2.0)
LINK_SCALES = (0.0, 0.1, 0.5, 1.5)


@dataclass(frozen=True)
class Design:
    """Rows of one data set and the model that is fitted to them.

    `y ~ family(x beta + sum_f z_f u_f)` with `u_f ~ normal(0, tau_f)`. The last scale is scored.
    """

    name: str
    family: str  # "normal", "poisson" or "binomial"
    method: str  # "gaussian", "counts" or "laplace"
    y: np.ndarray  # real outcomes, (N,)
    x: np.ndarray  # regressors with the intercept, (N, p)
    z: tuple[np.ndarray, ...]  # of each scale, (N, G_f)
    groups: np.ndarray  # the group of each row for the scored scale, (N,)
    beta: np.ndarray  # true coefficients, (p,)
    noise: np.ndarray  # true standard deviation of the outcome, (N,); 1 with a link
    noise_known: bool
    unit: float
    trials: np.ndarray  # of a binomial row; 1 otherwise, (N,)
    other_scale: float  # true value of the scales that are not scored
    new: tuple[bool, ...]  # which factors are new in a new group
    curve: bool = False  # effects are a curve at the rows, and new rows lie on it
    real: bool = True  # whether its real outcomes are used, and under which name
    real_name: str = ""
    per: Any = None  # divisor of the divergence for the variants with `per`, a number or "row"
    row_splits: str = ""  # how rows are held out: "", "rows" or "inputs"
    inputs: np.ndarray | None = None  # of "inputs": the value that rows share

    @property
    def scales(self) -> tuple[float, ...]:
        """True values of the scored scale, none to large."""
        chosen = NORMAL_SCALES if self.family == "normal" else LINK_SCALES
        return tuple(self.unit * value for value in chosen)

    @property
    def scored(self) -> np.ndarray:
        """From the effects of the scored scale to what is scored as effects, (E, G)."""
        return self.z[-1] if self.curve else np.eye(self.z[-1].shape[1])


def _normal(name: str, y: Any, x: Any, z: Any, groups: np.ndarray, **options: Any) -> Design:
    """Normal outcomes with unknown noise; noise and coefficients by least squares."""
    y, x = np.asarray(y, float), np.asarray(x, float)
    z = tuple(np.asarray(each, float) for each in z)
    full = np.column_stack([x, *z])
    left = y - full @ np.linalg.lstsq(full, y)[0]
    noise = float(np.sqrt(left @ left / (len(y) - np.linalg.matrix_rank(full))))
    settings = {"new": (True,) * len(z), "row_splits": "rows", "noise_known": False, **options}
    ones = np.ones(len(y))
    return Design(
        name,
        "normal",
        "gaussian",
        y,
        x,
        z,
        groups,
        beta=np.linalg.lstsq(x, y)[0],
        noise=noise * ones,
        unit=noise,
        trials=ones,
        other_scale=noise,
        **settings,
    )


def _dyestuff() -> Design:
    data = table("dyestuff.csv")
    ones = np.ones((len(data["Yield"]), 1))
    batches = data["Batch"]
    return _normal("dyestuff", data["Yield"], ones, [indicators(batches)], batches)


def _radon() -> Design:
    data = table("radon_mn.json")
    county = codes(data["county_idx"])
    floor, uranium = centred(data["floor_measure"]), centred(data["log_uppm"])
    x = np.column_stack([np.ones(len(county)), floor, uranium])
    return _normal("radon", data["log_radon"], x, [indicators(county)], county)


def _growth(name: str, y: np.ndarray, subject: np.ndarray, age: np.ndarray) -> Design:
    slope = centred(age, scaled=True)
    x = np.column_stack([np.ones(len(y)), slope])
    z = [indicators(subject), slope[:, None] * indicators(subject)]
    return _normal(name, y, x, z, subject, row_splits="inputs", inputs=age)


def _rats() -> Design:
    data = table("rats_data.json")
    return _growth("rats", data["y"], codes(data["rat"]), data["x"])


def _sleepstudy() -> Design:
    data = table("sleepstudy.csv")
    return _growth("sleepstudy", data["Reaction"], codes(data["Subject"]), data["Days"])


def _penicillin() -> Design:
    data = table("penicillin.csv")
    y, sample = data["diameter"], data["sample"]
    z = [indicators(data["plate"]), indicators(sample)]
    x = np.ones((len(y), 1))
    return _normal("penicillin", y, x, z, sample, new=(False, True), row_splits="")


def _mcycle() -> Design:
    data = table("mcycle_splines.json")
    x = np.column_stack([np.ones(len(data["Y"])), centred(data["Xs"][:, 0])])
    rows = np.arange(len(data["Y"]))
    return _normal("mcycle", data["Y"], x, [data["Zs_1_1"]], rows, new=(False,), curve=True)


def _schools(name: str, count: int, precise: bool = False) -> Design:
    data = table("eight_schools.json")
    errors = data["sigma"].astype(float)
    unit = float(np.median(errors))
    y, noise = data["y"][:count].astype(float), errors[:count] / (10.0 if precise else 1.0)
    ones, weights = np.ones(count), noise**-2
    return Design(
        name,
        "normal",
        "gaussian",
        y,
        ones[:, None],
        (np.eye(count),),
        np.arange(count),
        beta=np.array([weights @ y / weights.sum()]),
        noise=noise,
        noise_known=True,
        unit=unit,
        trials=ones,
        other_scale=0.0,
        new=(True,),
        real=not precise,
        per=float(np.mean((100.0 / noise) ** 2)),
    )


def _counts(name: str, family: str, y: Any, groups: Any, rate: float, trials: Any = None) -> Design:
    y = np.asarray(y, float)
    trials = np.ones(len(y)) if trials is None else np.asarray(trials, float)
    mean = np.log(rate) - (np.log1p(-rate) if family == "binomial" else 0.0)
    return Design(
        name,
        family,
        "counts",
        y,
        np.ones((len(y), 1)),
        (indicators(groups),),
        groups,
        beta=np.array([mean]),
        noise=np.ones(len(y)),
        noise_known=True,
        unit=1.0,
        trials=trials,
        other_scale=0.0,
        new=(True,),
        per=rate if family == "poisson" else "row",
    )


def _ticks(rate: float) -> Design:
    data = table("grouseticks.csv")
    brood = codes(data["BROOD"])
    made = _counts(f"ticks-{rate:g}", "poisson", data["TICKS"], brood, rate)
    return replace(made, real=rate == 1.0, real_name="ticks", row_splits="rows")


def _surgical(rate: float) -> Design:
    data = table("surgical_data.json")
    name, hospitals = f"surgical-{rate:g}", np.arange(len(data["n"]))
    made = _counts(name, "binomial", data["r"], hospitals, rate, data["n"])
    return replace(made, real=rate == 0.1, real_name="surgical")


def _election(name: str, rate: float | None = None) -> Design:
    data = table("election88.json")
    state = codes(data["state"])
    y, n = np.bincount(state, data["y"]), np.bincount(state)
    base = float(data["y"].mean()) if rate is None else rate
    made = _counts(name, "binomial", y, np.arange(len(n)), base, n)
    return replace(made, real=rate is None, row_splits="trials")


def _laplace(design: Design, beta: np.ndarray, **options: Any) -> Design:
    settings = {"real_name": "", "per": None, "method": "laplace", "row_splits": "rows", **options}
    return replace(design, beta=beta, **settings)


def _cbpp() -> Design:
    data = table("cbpp.csv")
    herd, size = codes(data["herd"]), data["size"]
    period = indicators(codes(data["period"]))
    x = np.column_stack([np.ones(len(herd)), *(centred(column) for column in period[:, 1:].T)])
    made = _counts("cbpp", "binomial", data["incidence"], herd, 0.1, size)
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-x @ beta))
        weight = size * p * (1.0 - p)
        beta = beta + np.linalg.solve((x.T * weight) @ x, x.T @ (data["incidence"] - size * p))
    return _laplace(made, beta, x=x)


def _birds() -> Design:
    data = table("GLMM_data.json")
    kept = np.isin(data["obssite"], np.unique(data["obssite"])[:30])
    y, site, year = data["obs"][kept], codes(data["obssite"][kept]), codes(data["obsyear"][kept])
    made = _counts("birds", "poisson", y, year, float(y.mean()))
    z = (indicators(site), indicators(year))
    return _laplace(made, made.beta, z=z, new=(False, True), other_scale=0.5)


def _gp() -> Design:
    data = table("gp_pois_regr.json")
    x, counts = data["x"].astype(float), data["k"]
    kernel = np.exp(-0.5 * ((x[:, None] - x) / 6.0) ** 2) + 1e-8 * np.eye(len(x))
    made = _counts("gp", "poisson", counts, np.arange(len(x)), float(counts.mean()))
    z = (np.linalg.cholesky(kernel),)
    return _laplace(made, made.beta, z=z, new=(False,), curve=True)


_BUILDERS: tuple[tuple[str, Callable[[], Design]], ...] = (
    ("dyestuff", _dyestuff),
    ("radon", _radon),
    ("rats", _rats),
    ("sleepstudy", _sleepstudy),
    ("penicillin", _penicillin),
    ("mcycle", _mcycle),
    *((f"schools-{n}", lambda n=n: _schools(f"schools-{n}", n)) for n in (3, 5, 8)),
    ("schools-8-precise", lambda: _schools("schools-8-precise", 8, precise=True)),
    *((f"ticks-{r:g}", lambda r=r: _ticks(r)) for r in (0.01, 0.1, 1.0, 10.0, 100.0)),
    *((f"surgical-{r:g}", lambda r=r: _surgical(r)) for r in (0.01, 0.1, 0.5)),
    ("election", lambda: _election("election")),
    ("election-rare", lambda: _election("election-rare", 0.01)),
    ("cbpp", _cbpp),
    ("birds", _birds),
    ("gp", _gp),
)
NAMES = tuple(name for name, _ in _BUILDERS)


def design(name: str) -> Design:
    """A design by its name."""
    return dict(_BUILDERS)[name]()
