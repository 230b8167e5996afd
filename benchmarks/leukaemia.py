"""A public table with 12,625 columns: `python -m benchmarks.leukaemia ALL.rda leukaemia.parquet`.

Gene expression of acute lymphoblastic leukaemia (Chiaretti et al., 2004, Blood 103, 2771): 79 samples of
B cells with the fusion gene BCR/ABL (37) or without a known change (42), 12,625 probe sets. No setting of a
sampler was chosen on it. `ALL.rda` is in the package ALL of Bioconductor, which Debian has as r-bioc-all
(version 1.40.0, licence Artistic-2.0; unpack it by `dpkg -x`). Its hash is checked. Reading it needs
`pip install rdata`. Any command of predcp then takes the table:

    predcp compare leukaemia.parquet --target fusion
    python -m benchmarks.unseen leukaemia.parquet --target fusion
"""

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SHA256 = "ed394602065429adb06d2701924c91ee565921bfb4b0e85f80192767fcad51ae"
PROBES, SAMPLES = 12_625, 128
KEPT = ("BCR/ABL", "NEG")


def objects(root: Any) -> Iterator[Any]:
    """Every R object below one, as rdata's parser has them."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if not hasattr(one, "info") or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        value = one.value
        parts = list(value) if isinstance(value, list | tuple) else [value]
        if hasattr(value, "frame"):
            parts = [getattr(value, name) for name in ("frame", "enclosure", "hash_table")]
        waiting += [*parts, one.attributes, one.referenced_object]


def attribute(one: Any, name: str) -> Any:
    """An attribute of an R object; None if it has none of this name."""
    pair = one.attributes
    while pair is not None and hasattr(pair, "tag") and pair.tag is not None:
        tag = pair.tag if pair.tag.referenced_object is None else pair.tag.referenced_object
        if tag.value.value == name.encode():
            return pair.value[0]
        pair = pair.value[1]
    return None


def texts(one: Any) -> list[str]:
    """The texts of a vector, or those of a factor."""
    levels = attribute(one, "levels")
    if levels is None:
        return ["" if part.value is None else part.value.decode() for part in one.value]
    return ["" if number < 1 else texts(levels)[number - 1] for number in one.value]


def read(path: Path) -> tuple[np.ndarray, list[str], dict[str, list[str]]]:
    """Expressions `(samples, probes)`, names of the probes, and the two columns that are needed."""
    import rdata  # pyright: ignore[reportMissingImports]

    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{path} is not the ALL.rda of version 1.40.0")
    expressions, names, columns = None, None, {}
    for one in objects(rdata.parser.parse_file(path).object):
        labels = attribute(one, "names")
        if labels is not None and "mol.biol" in texts(labels):
            # Descriptions of the columns have the same names.
            for name, column in zip(texts(labels), one.value):
                if name in ("BT", "mol.biol") and len(column.value) == SAMPLES:
                    columns[name] = texts(column)
        if isinstance(one.value, np.ndarray) and one.value.size == PROBES * SAMPLES:
            expressions = np.asarray(one.value).reshape(SAMPLES, PROBES)
            dimensions = attribute(one, "dimnames")
            names = texts(dimensions.value[0])
    if expressions is None or names is None or len(columns) < 2:
        raise SystemExit(f"{path} holds no expressions, or no description of the samples")
    return expressions, names, columns


def main() -> None:
    """Write the table."""
    import pandas

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    expressions, names, columns = read(options.source)
    cells = np.array([name.startswith("B") for name in columns["BT"]])
    fusion = np.array(columns["mol.biol"])
    rows = cells & np.isin(fusion, KEPT)
    table = pandas.DataFrame(expressions[rows].astype(np.float32), columns=names)
    table.insert(0, "fusion", fusion[rows])
    table.to_parquet(options.output)
    counts = {kind: int(np.sum(fusion[rows] == kind)) for kind in KEPT}
    print(f"{options.output}: {table.shape[0]} rows, {table.shape[1] - 1} columns, {counts}")


if __name__ == "__main__":
    main()
