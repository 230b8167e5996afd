"""Appendix A.3: the tail probability of the mixture ECP against rank and scale of the design."""

from typing import Any

import numpy as np

import predcp
from predcp import plot
from predcp.paper.figures._figure import Data, PaperFigure
from predcp.paper.figures._priors import mixture
from predcp.paper.figures._style import panel

ROWS = 20


def tight_frame(rank: int) -> np.ndarray:
    """Twenty rows of length one, of this rank, that use every direction alike: X^T X = (20 / rank) I.

    **Arguments**: `rank`, from 1 to 20.
    """
    # Sines and cosines; the constant for odd ranks, and at full rank the alternating column too.
    ends = [np.ones(ROWS)] if rank % 2 or rank == ROWS else []
    ends += [(-1.0) ** np.arange(ROWS)] if rank == ROWS else []
    columns = [column / np.sqrt(rank) for column in ends]
    for frequency in range(1, (rank - len(ends)) // 2 + 1):
        angle = 2.0 * np.pi * frequency * np.arange(ROWS) / ROWS
        columns += [np.sqrt(2.0 / rank) * wave(angle) for wave in (np.cos, np.sin)]
    return np.stack(columns, axis=1)


def data(points: int) -> Data:
    """P(tau > 1) at ranks 1 to 20, and at full rank as the design is multiplied.

    **Arguments**: `points` of the second curve.
    """
    ranks, scales = np.arange(1, ROWS + 1), np.geomspace(0.1, 3.0, points)
    pi = mixture(0.5)

    def tails(designs: np.ndarray) -> np.ndarray:
        # A batch of designs: one map for the whole curve.
        prior = predcp.ComplexityPrior(pi, predcp.LinearEvidence(designs, noise_scale=1.0))
        return np.asarray(predcp.tail_probability(prior, np.ones(len(designs))))

    # Columns of zeros change nothing and give all designs one shape.
    designs = [
        np.concatenate([tight_frame(rank), np.zeros((ROWS, ROWS - rank))], axis=1)
        for rank in range(1, ROWS + 1)
    ]
    return {
        "rank": ranks,
        "tail/rank": tails(np.stack(designs)),
        "scale": scales,
        "tail/scale": tails(scales[:, None, None] * designs[-1]),
    }


def draw(axes: Any, data: Data) -> None:
    """Dots against the rank, a line against the scale."""
    left, right = axes.ravel()
    colour = plot.colour(predcp.GammaExponential)
    left.plot(data["rank"], data["tail/rank"], "o-", color=colour, markersize=3.0, linewidth=0.8)
    right.plot(data["scale"], data["tail/scale"], color=colour)
    panel(left, "a", "rank, rows of length 1", "rank of $X$", r"$P(\tau > 1)$")
    panel(right, "b", "scale, full rank", r"$\alpha$ in $\alpha X$", r"$P(\tau > 1)$")
    left.set(xlim=(0.0, ROWS + 0.5), ylim=(0.0, None), xticks=[1, 5, 10, 15, 20])
    right.set(xscale="log", xlim=(0.1, 3.0), ylim=(0.0, 1.0))
    right.set_xticks([0.1, 0.3, 1.0, 3.0], ["0.1", "0.3", "1", "3"])
    right.minorticks_off()


def caption(data: Data) -> str:
    low, high = data["tail/rank"][0], data["tail/rank"][-1]
    return f"""\
**P(tau > 1) under the mixture ECP** (weight .5) of a regression with twenty rows, against the
rank of X (a) and against its scale at full rank (b).

*What to see.* With rows of length one the total size of X is the same at every rank. Redundant
rows all move together, which is easy to tell from the reference; spread over more directions the
same scale is harder to see, and the tail grows from {low:.4f} at rank 1 to {high:.4f} at rank 20.
Scale does far more: from {data["tail/scale"][0]:.2f} at alpha = .1 to
{data["tail/scale"][-1]:.2g} at 3.

*What we chose.* sigma_y = 1, and at each rank r rows that use all directions alike (`X^T X = (20
/ r) I`), so that the curve is exact: kappa at tau = 1 is `(20 - r log(1 + 20 / r)) / 2`. The
paper does not say how its designs were made.

*Where the paper is silent.* All of (a) is a matter of small probabilities: the joint divergence
of twenty rows is several nats at tau = 1 whatever the rank.
"""


FIGURE = PaperFigure(
    name="appendix-design",
    paper="Appendix A.3, subfigures e and f",
    title="P(tau > 1) against rank and scale of the design",
    panels=(1, 2),
    size=(6.6, 2.5),
    data=data,
    draw=draw,
    caption=caption,
    points=200,
)
