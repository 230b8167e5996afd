"""Data of the programs: the published file where there is one, simulated with its design elsewhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from predcp.data import data_directory

# Files that were asked for and are not there.
MISSING: set[str] = set()


def _path(name: str) -> Path | None:
    path = data_directory() / "hierarchical" / name
    if path.is_file():
        return path
    MISSING.add(name)
    return None


def _published(name: str) -> dict[str, Any] | None:
    """Arrays of a JSON file, None where it is missing."""
    path = _path(name)
    if path is None:
        return None
    found = json.loads(path.read_text("utf-8"))
    return {key: np.asarray(value) for key, value in found.items()}


def _table(name: str) -> Any:
    path = _path(name)
    return None if path is None else pd.read_csv(path)


def _random() -> np.random.Generator:
    return np.random.default_rng(7)


def _codes(column: Any) -> np.ndarray:
    return np.unique(np.asarray(column), return_inverse=True)[1]


def eight_schools() -> tuple[np.ndarray, np.ndarray]:
    """Effects and standard errors of Rubin (1981), which are printed everywhere."""
    return (
        np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
        np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
    )


def radon() -> tuple[np.ndarray, ...]:
    """County, floor, county's uranium and log radon of Minnesota houses (919 in 85 counties)."""
    found = _published("radon_mn.json")
    if found is None:
        random = _random()
        county = np.concatenate([np.arange(85), random.integers(0, 85, 834)])
        floor = random.binomial(1, 0.17, 919).astype(float)
        uranium = random.normal(0.0, 0.4, 85)
        effect = 1.5 + 0.7 * uranium + random.normal(0.0, 0.15, 85)
        return county, floor, uranium, effect[county] - 0.7 * floor + random.normal(0, 0.75, 919)
    county = found["county_idx"] - 1
    uranium = np.zeros(85)
    uranium[county] = found["log_uppm"]
    return county, found["floor_measure"].astype(float), uranium, found["log_radon"]


def rats() -> tuple[np.ndarray, ...]:
    """Rat, age less 22 days and weight: 30 rats at five ages (Gelfand et al. 1990)."""
    found = _published("rats_data.json")
    if found is None:
        random = _random()
        rat, age = np.repeat(np.arange(30), 5), np.tile([8.0, 15.0, 22.0, 29.0, 36.0], 30) - 22.0
        start, growth = random.normal(242.0, 14.0, 30), random.normal(6.2, 0.5, 30)
        return rat, age, start[rat] + growth[rat] * age + random.normal(0.0, 6.0, 150)
    return found["rat"] - 1, found["x"] - found["xbar"], found["y"].astype(float)


def surgical() -> tuple[np.ndarray, np.ndarray]:
    """Operations and deaths in 12 hospitals (BUGS)."""
    found = _published("surgical_data.json")
    if found is None:
        n = np.array([47, 148, 119, 810, 211, 196, 148, 215, 207, 97, 256, 360])
        logits = -2.5 + 0.4 * _random().normal(size=12)
        return n, _random().binomial(n, 1.0 / (1.0 + np.exp(-logits)))
    return found["n"], found["r"]


def cbpp() -> tuple[np.ndarray, ...]:
    """Herd, period, size and incidence of a cattle disease: 56 rows, 15 herds (lme4)."""
    table = _table("cbpp.csv")
    if table is None:
        random = _random()
        herd = np.sort(np.concatenate([np.arange(15), random.integers(0, 15, 41)]))
        period, size = random.integers(0, 4, 56), random.integers(5, 30, 56)
        logits = -1.4 - 0.5 * period + 0.65 * random.normal(size=15)[herd]
        return herd, period, size, random.binomial(size, 1.0 / (1.0 + np.exp(-logits)))
    return (
        _codes(table["herd"]),
        _codes(table["period"]),
        table["size"].to_numpy(int),
        table["incidence"].to_numpy(int),
    )


def grouseticks() -> tuple[np.ndarray, ...]:
    """Brood, location, year, centred height and ticks of 403 grouse chicks (Elston et al. 2001)."""
    table = _table("grouseticks.csv")
    if table is None:
        random = _random()
        brood = np.sort(np.concatenate([np.arange(118), random.integers(0, 118, 285)]))
        location, year = random.integers(0, 63, 118)[brood], random.integers(0, 3, 118)[brood]
        height = random.normal(0.0, 36.0, 118)[brood]
        rate = 0.4 + 0.4 * year - 0.02 * height + 0.75 * random.normal(size=118)[brood]
        return brood, location, year, height, random.poisson(np.exp(rate))
    return (
        _codes(table["BROOD"]),
        _codes(table["LOCATION"]),
        _codes(table["YEAR"]),
        table["cHEIGHT"].to_numpy(float),
        table["TICKS"].to_numpy(int),
    )


def dyestuff2() -> tuple[np.ndarray, np.ndarray]:
    """Batch and yield of Box and Tiao's simulated data: five from each of six batches."""
    table = _table("dyestuff2.csv")
    if table is None:
        return np.repeat(np.arange(6), 5), 5.7 + 3.7 * _random().normal(size=30)
    return _codes(table["Batch"]), table["Yield"].to_numpy(float)


def penicillin() -> tuple[np.ndarray, ...]:
    """Plate, sample and diameter: 24 plates crossed with six samples (lme4)."""
    table = _table("penicillin.csv")
    if table is None:
        random = _random()
        plate, sample = np.repeat(np.arange(24), 6), np.tile(np.arange(6), 24)
        mean = 23.0 + 0.85 * random.normal(size=24)[plate] + 1.9 * random.normal(size=6)[sample]
        return plate, sample, mean + 0.55 * random.normal(size=144)
    return _codes(table["plate"]), _codes(table["sample"]), table["diameter"].to_numpy(float)


def sleepstudy() -> tuple[np.ndarray, ...]:
    """Subject, days without sleep and reaction time: 18 subjects, ten days (lme4)."""
    table = _table("sleepstudy.csv")
    if table is None:
        random = _random()
        subject, days = np.repeat(np.arange(18), 10), np.tile(np.arange(10.0), 18)
        start, slope = 250.0 + 25.0 * random.normal(size=18), 10.0 + 6.0 * random.normal(size=18)
        return (
            subject,
            days,
            start[subject] + slope[subject] * days + 25.0 * random.normal(size=180),
        )
    return (
        _codes(table["Subject"]),
        table["Days"].to_numpy(float),
        table["Reaction"].to_numpy(float),
    )


def election88(rows: int = 300) -> dict[str, np.ndarray]:
    """Some respondents of the polls of 1988 (Gelman and Hill 2007)."""
    random = _random()
    found = _published("election88.json")
    if found is None:
        age, edu = random.integers(0, 4, rows), random.integers(0, 4, rows)
        state = np.concatenate([np.arange(51), random.integers(0, 51, rows - 51)])
        black, female = random.binomial(1, 0.08, rows), random.binomial(1, 0.57, rows)
        logits = 0.4 - 1.7 * black - 0.1 * female + 0.4 * random.normal(size=51)[state]
        return {
            "age": age, "edu": edu, "age_edu": 4 * age + edu, "state": state,
            "region": (np.arange(51) % 5)[state], "v_prev": random.normal(0.5, 0.06, 51)[state],
            "black": black, "female": female,
            "y": random.binomial(1, 1.0 / (1.0 + np.exp(-logits))),
        }  # fmt: skip
    kept = random.choice(len(found["y"]), rows, replace=False)
    columns = {name: found[name][kept] - 1 for name in ("age", "edu", "age_edu", "state")}
    columns["region"] = found["region_full"][kept] - 1
    columns["v_prev"] = found["v_prev_full"][kept]
    return columns | {name: found[name][kept] for name in ("black", "female", "y")}


def mcycle() -> tuple[np.ndarray, ...]:
    """Linear part, spline basis and head acceleration in 133 motorcycle tests."""
    found = _published("mcycle_splines.json")
    if found is None:
        random = _random()
        time = np.linspace(-1.0, 1.0, 133)
        basis = np.maximum(0.0, time[:, None] - np.linspace(-0.9, 0.9, 8)) ** 3
        return time, basis, 50.0 * np.sin(4.0 * time) + 20.0 * random.normal(size=133)
    return found["Xs"][:, 0], found["Zs_1_1"], found["Y"].astype(float)


def counts_on_a_line() -> tuple[np.ndarray, np.ndarray]:
    """Eleven positions and counts (posteriordb, gp_pois_regr)."""
    found = _published("gp_pois_regr.json")
    if found is None:
        x = np.linspace(-10.0, 10.0, 11)
        return x, _random().poisson(np.exp(2.0 + np.sin(x / 3.0)))
    return found["x"].astype(float), found["k"]


def series(length: int = 30) -> np.ndarray:
    """Start of a series with short memory (posteriordb, arK)."""
    found = _published("arK.json")
    if found is None:
        noise, y = _random().normal(size=length), np.zeros(length)
        for t in range(length):
            y[t] = 0.6 * y[t - 1] + 0.4 * noise[t]
        return y
    return found["y"][:length].astype(float)


def lattice(side: int = 5) -> tuple[np.ndarray, ...]:
    """Eigenvectors of the precision of neighbours on a grid, scales of them, exposure and counts."""
    random, n = _random(), side * side
    row, column = np.divmod(np.arange(n), side)
    near = np.abs(row[:, None] - row) + np.abs(column[:, None] - column) == 1
    values, vectors = np.linalg.eigh(np.diag(near.sum(1)) - near.astype(float))
    # The first eigenvalue is zero: the constant, which the intercept has.
    covariance = vectors[:, 1:] / values[1:] @ vectors[:, 1:].T
    scale = np.sqrt(np.exp(np.mean(np.log(np.diag(covariance)))))
    exposure = random.gamma(4.0, 3.0, n)
    field = vectors[:, 1:] @ (random.normal(size=n - 1) / np.sqrt(values[1:]))
    return (
        vectors[:, 1:], 1.0 / np.sqrt(values[1:]) / scale, exposure,
        random.poisson(exposure * np.exp(0.5 * field / scale)),
    )  # fmt: skip


def mesquite() -> tuple[np.ndarray, np.ndarray]:
    """Standardised log measurements of 46 bushes, and log weight (Gelman and Hill 2007)."""
    found = _published("mesquite.json")
    if found is None:
        random = _random()
        x = random.normal(size=(46, 6))
        return x, x @ np.array([0.4, 0.4, 0.3, 0.1, 0.1, -0.6]) + 0.3 * random.normal(size=46)
    names = ("diam1", "diam2", "canopy_height", "total_height", "density")
    x = np.column_stack([*(np.log(found[name]) for name in names), found["group"]])
    y = np.log(found["weight"])
    return (x - x.mean(0)) / x.std(0), y - y.mean()


def items(persons: int = 40) -> tuple[np.ndarray, ...]:
    """Item, person and answer: the first persons of a test of mathematics with 14 items (FIMS)."""
    found = _published("fims_Aus_Jpn_irt.json")
    if found is None:
        random = _random()
        item, person = np.tile(np.arange(14), persons), np.repeat(np.arange(persons), 14)
        logits = random.normal(size=persons)[person] - random.normal(size=14)[item]
        return item, person, random.binomial(1, 1.0 / (1.0 + np.exp(-logits)))
    kept = found["jj"] <= persons
    return found["ii"][kept] - 1, found["jj"][kept] - 1, found["y"][kept]


def attitudes(persons: int = 30) -> tuple[np.ndarray, ...]:
    """Item, person and answer in four ordered classes: attitudes to science, seven items."""
    found = _published("science_irt.json")
    if found is None:
        random = _random()
        item, person = np.tile(np.arange(7), persons), np.repeat(np.arange(persons), 7)
        latent = random.normal(size=persons)[person] + random.logistic(size=7 * persons)
        return item, person, np.digitize(latent, [-2.0, 0.0, 2.0])
    kept = found["jj"] <= persons
    return found["ii"][kept] - 1, found["jj"][kept] - 1, found["y"][kept]


def crossed() -> tuple[np.ndarray, ...]:
    """Row, column and 0 or 1: 12 rows crossed with 10 columns, as in the mating of salamanders."""
    random = _random()
    row, column = np.repeat(np.arange(12), 10), np.tile(np.arange(10), 12)
    logits = 0.3 + random.normal(size=12)[row] + 0.7 * random.normal(size=10)[column]
    return row, column, random.binomial(1, 1.0 / (1.0 + np.exp(-logits)))


def wave() -> tuple[np.ndarray, np.ndarray]:
    """Twenty points of a noisy sine, for a network."""
    x = np.linspace(-2.0, 2.0, 20)[:, None]
    return x, np.sin(2.0 * x[:, 0]) + 0.1 * _random().normal(size=20)
