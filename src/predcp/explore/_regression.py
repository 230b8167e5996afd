"""Linear and logistic regression: the design, and its linear predictors at unit scale."""

from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

import predcp
from predcp.explore._choices import Choices

_FEWEST_DRAWS, _MOST_DRAWS = 8, 256
_PAIRS = 2048


class Predictors(NamedTuple):
    """Linear predictors of a design with standard normal coefficients.

    **Arguments**: `values`, `x xi` of every row and draw; `spread`, the standard deviation of the rows
    along the direction in which they vary most.
    """

    values: Float[np.ndarray, " pairs"]
    spread: float


def draw_count(rows: int) -> int:
    """The number of noise draws: a power of two, larger for fewer rows."""
    wanted = 2 ** int(np.ceil(np.log2(max(1.0, _PAIRS / rows))))
    return min(_MOST_DRAWS, max(_FEWEST_DRAWS, wanted))


def normal_design(rows: int, columns: int) -> Float[np.ndarray, "rows columns"]:
    """Standard normal features, the same in every precision."""
    return np.random.default_rng(0).standard_normal((rows, columns))


@lru_cache(maxsize=32)
def _draws(columns: int) -> Float[np.ndarray, "draws columns"]:
    # The first draws of a Sobol sequence do not depend on their number: one program per width.
    drawn = predcp.normal_noise(jax.random.key(0), _MOST_DRAWS, (columns,), method="sobol")
    return np.asarray(drawn, float)


def predictors(choices: Choices) -> Predictors:
    """The linear predictors of the chosen design at unit scale."""
    if choices.design is not None:
        return _predictors_of(choices.design.x)
    return _of_normal_design(choices.rows, choices.columns)


@lru_cache(maxsize=64)
def _of_normal_design(rows: int, columns: int) -> Predictors:
    return _predictors_of(normal_design(rows, columns))


def _predictors_of(x: Float[np.ndarray, "rows columns"]) -> Predictors:
    xi = _draws(x.shape[1])[: draw_count(x.shape[0])]
    spread = np.linalg.norm(x, 2) / np.sqrt(x.shape[0])
    return Predictors((xi @ x.T).reshape(-1), float(spread))


def bounded(logistic: bool, divergence: str) -> bool:
    """Whether the divergence has a supremum, as the KL of a Bernoulli has and that of a normal has not."""
    return divergence in ("squared_hellinger", "jensen_shannon") or (
        logistic and divergence == "kl"
    )
