"""The store: one file with what the page needs, made from the results of a run."""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from studies.scale_priors.designs import NAMES, SCALES
from studies.scale_priors.posterior import SCORES

STORE = Path(__file__).parents[2] / "results" / "scale-priors.parquet"
# Scores of each simulation that paired differences need.
PRIMARY = ("effect_error", "new_score", "scale_error")
# What was run again, and how far it moved, where the store says where it was made.
AGAIN = "run again"
# Digits of a single score that are kept: one part in 16,000.
_BITS = 13


def _rounded(values: np.ndarray) -> np.ndarray:
    """Single precision with fewer digits, which compresses better."""
    mantissa, exponent = np.frexp(values.astype(float))
    return np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS).astype(np.float32)


def simulated_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and prior: means, their errors, and the primary scores of the simulations."""
    rows = []
    for (design, scale, prior), cell in frame.groupby(["design", "scale", "prior"], sort=False):
        # No prior has a result where the table failed.
        cell = cell.dropna(subset="effect_error").sort_values("simulation")
        row: dict[str, Any] = {"part": "simulated", "design": design, "scale": scale}
        row |= {"prior": prior, "count": len(cell), "seconds": float(cell["seconds"].iloc[0])}
        for name in SCORES:
            values = cell[name].to_numpy()
            row[name] = float(values.mean())
            row[f"{name}_error"] = float(values.std(ddof=1) / np.sqrt(len(values)))
        row |= {f"{name}_each": _rounded(cell[name].to_numpy()) for name in PRIMARY}
        rows.append(row)
    return pd.DataFrame(rows)


def real_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per design, kind of split and prior."""
    rows = []
    for (design, kind, prior), found in frame.groupby(["design", "kind", "prior"], sort=False):
        found = found.sort_values("split")
        row = {"part": "real", "design": design, "kind": kind, "prior": prior}
        row |= {"count": len(found), "held_rows": float(found["rows"].mean())}
        rows.append(row | {"score_each": found["score"].to_numpy(np.float32)})
    return pd.DataFrame(rows)


def _latest(folders: Sequence[Path], part: str) -> pd.DataFrame | None:
    """Rows of a part; those of a design come from the last folder that has it."""
    found: pd.DataFrame | None = None
    for folder in folders:
        file = folder / f"{part}.parquet"
        if not file.exists():
            continue
        frame = pd.read_parquet(file).drop(columns="task")
        if found is not None:
            kept = found[~found["design"].isin(set(frame["design"]))]
            frame = pd.concat([kept, frame], ignore_index=True)
        found = frame
    return found


def build(folders: Sequence[Path], path: Path = STORE) -> None:
    """Write the store from the results of one or several runs."""
    from studies.scale_priors.drift import drift_rows

    parts = []
    for name, rows in (("simulated", simulated_rows), ("real", real_rows), ("nuts", None)):
        frame = _latest(folders, name)
        if frame is None:
            print(f"no results of {name}: the page will say so")
            continue
        parts.append(rows(frame) if rows else frame.assign(part=name))
    parts.append(drift_rows().assign(part="drift"))
    _write(pd.concat(parts, ignore_index=True), [_made(folder) for folder in folders], path)


def replace_cells(folder: Path, path: Path = STORE) -> None:
    """Put simulated cells of a later run in the place of those that the store has."""
    kept, made = stored(path)
    frame = pd.read_parquet(folder / "simulated.parquet").drop(columns="task")
    rows = simulated_rows(frame)
    fresh = set(zip(rows["design"], rows["scale"], strict=True))
    places = zip(kept["part"], kept["design"], kept["scale"], strict=True)
    old = [part == "simulated" and (design, scale) in fresh for part, design, scale in places]
    if sum(old) != len(rows):
        raise ValueError(
            f"{path.name} has {sum(old)} rows of the {len(fresh)} cells of {folder}, which has "
            f"{len(rows)}: these are not the same cells"
        )
    both = pd.concat([kept[~np.asarray(old)], rows], ignore_index=True)
    moved = _moved(kept[np.asarray(old)], rows)
    _write(both, [made, {**_made(folder), AGAIN: moved}], path)
    stored.cache_clear()


def _moved(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Designs that were run again, and how far their mean effect errors moved at most, in units."""
    keys = ["design", "scale", "prior"]
    gaps = after.set_index(keys)["effect_error"] - before.set_index(keys)["effect_error"]
    most = gaps.abs().groupby("design", sort=False).max()
    return ", then ".join(f"{design} ({gap:.4f})" for design, gap in most.items())


def _made(folder: Path) -> dict[str, str]:
    return json.loads((folder / "made.json").read_text())


def _write(rows: pd.DataFrame, runs: Sequence[dict[str, str]], path: Path) -> None:
    """Rows and where they were made."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    joint = {
        key: dict.fromkeys(
            value for run in runs if key in run for value in run[key].split(", then ")
        )
        for key in dict.fromkeys(key for run in runs for key in run)
    }
    made = json.dumps({key: ", then ".join(values) for key, values in joint.items()})
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"made": made.encode()})
    pq.write_table(table, path, compression="zstd", compression_level=19)
    print(f"{path.name}: {path.stat().st_size / 2**20:.2f} MiB")


@lru_cache(maxsize=1)
def stored(path: Path = STORE) -> tuple[pd.DataFrame, dict[str, str]]:
    """All rows, and where they were made."""
    table = pq.read_table(path)
    made = json.loads(table.schema.metadata[b"made"])
    return table.to_pandas(), made


def part(name: str) -> pd.DataFrame:
    """Rows of one part."""
    frame = stored()[0]
    return frame[frame["part"] == name].dropna(axis=1, how="all")


@lru_cache(maxsize=1)
def cells() -> list[tuple[str, str]]:
    """Design and true scale of the simulated cells that were run, in the order of the protocol."""
    frame = part("simulated")
    found = set(zip(frame["design"], frame["scale"]))
    return [(d, s) for d in NAMES for s in SCALES if (d, s) in found]


@lru_cache(maxsize=1)
def simulated() -> pd.DataFrame:
    """Simulated cells by design, scale and prior."""
    return part("simulated").set_index(["design", "scale", "prior"]).sort_index()
