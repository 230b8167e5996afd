"""Fill the tables of docs/programs.md from benchmarks/results/programs.json.

python docs/make_programs.py
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE / "programs.md"
RESULTS = HERE.parent / "benchmarks" / "results" / "programs.json"


def sampled(row: dict[str, Any], prior: str) -> str:
    """The cells of one prior: R-hat, draws a chain, divergent steps."""
    if prior not in row:
        return "not run | | "
    found = row[prior]
    return f"{found['rhat']:.4f} | {found['draws']:,} | {found['divergent']}"


def programs(results: dict[str, Any]) -> str:
    """One row for each program."""
    lines = [
        "| program | scale | R-hat | draws | divergent | own prior: R-hat | draws | divergent | met |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in results["programs"].items():
        both = " | ".join(sampled(row, prior) for prior in ("complexity", "original"))
        met = {True: "yes", False: "no", None: ""}[row.get("met")]
        lines.append(f"| {name} | `{row['scale']}` | {both} | {met} |")
    return "\n".join(lines)


def calibrations(results: dict[str, Any]) -> str:
    """One row for each calibration."""
    lines = ["| program, rest | score | flatness, p | met |", "|---|---|---|---|"]
    for name, row in results["calibration"].items():
        if "score" in row:
            met = "yes" if row["met"] else "no"
            lines.append(f"| {name} | {row['score']:.2f} | {row['flatness_p']:.3f} | {met} |")
    return "\n".join(lines)


def filled(page: str, results: dict[str, Any]) -> str:
    """The page with its tables made anew."""
    for name, table in (("programs", programs(results)), ("calibration", calibrations(results))):
        page = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda m, t=table: f"{m[1]}{t}\n{m[2]}",
            page,
            flags=re.S,
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(), json.loads(RESULTS.read_text())))
