"""A table with an outcome."""

from pathlib import Path

import numpy as np

random = np.random.default_rng(0)
x = random.normal(size=(60, 3))
ill = (x[:, 0] + random.logistic(size=60) > 0).astype(int)
rows = [",".join(map(str, [*row, outcome])) for row, outcome in zip(x, ill)]
Path("patients.csv").write_text("\n".join(["a,b,c,ill", *rows]) + "\n")
