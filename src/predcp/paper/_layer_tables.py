"""Layers of stored residual networks: a table, and the depth experiment's picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from predcp.experiments import Store, mean_and_error
from predcp.resnet.programs import ALIVE

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

# Shades that the colour-blind can tell apart.
_COLOURS = {
    "fixed-0.1": "#56B4E9",
    "fixed-1": "#0072B2",
    "inverse-gamma": "#AA4499",
    "predcp": "#D55E00",
}
_OTHER_COLOUR = "#555555"
_APART = 1.05
_FIGURES = ("acting_scale", "kappa", "kl", "mean_size", "effect")


def layer_table(store: Store) -> pandas.DataFrame:
    """Medians over splits of the layer figures. Rows: data set, inference, prior and layer.

    `alive` is the share of splits in which the layer is alive.

    **Arguments**: `store` of an experiment with residual networks, such as `table2`.
    """
    import pandas

    rows = []
    for record in store.records().finished:
        cell, figures = record.cell, record.convergence
        layers = int(str(cell.settings.get("layers", 1)))
        for layer in range(1, layers + 1):
            if f"layer{layer}_effect" not in figures:
                continue
            effect = figures[f"layer{layer}_effect"]
            row = {"data": cell.data, "inference": cell.inference, "prior": cell.prior}
            row |= {"layers": layers, "layer": layer}
            row |= {name: figures[f"layer{layer}_{name}"] for name in _FIGURES}
            rows.append(row | {"alive": float(effect is not None and effect > ALIVE)})
    if not rows:
        raise LookupError(f"{store.folder} holds no residual networks; run `predcp run table2`")
    keys = ["data", "inference", "prior", "layers", "layer"]
    grouped = pandas.DataFrame(rows).groupby(keys, sort=True)
    medians = grouped[list(_FIGURES)].median()
    return medians.assign(alive=grouped["alive"].mean()).reset_index()


def depth_table(store: Store) -> pandas.DataFrame:
    """Means over splits with standard errors. Rows: data set, prior and depth.

    **Arguments**: `store` of an experiment whose cells set `layers`, such as `depth`.
    """
    import pandas

    groups: dict[tuple[str, str, int], list[tuple[float, float, float]]] = {}
    for record in store.records().finished:
        cell = record.cell
        if "layers" not in cell.settings:
            continue
        scores = {metric: value for part, metric, value in record.metrics if part == "test"}
        live = record.convergence["live_layers"]
        figures = (scores["rmse"], scores["log_likelihood"], np.nan if live is None else live)
        key = (cell.data, cell.prior, int(str(cell.settings["layers"])))
        groups.setdefault(key, []).append(figures)
    if not groups:
        raise LookupError(f"{store.folder} holds no cells with a depth; run `predcp run depth`")
    rows = []
    for (data, prior, layers), values in sorted(groups.items()):
        row = {"data": data, "prior": prior, "layers": layers, "splits": len(values)}
        for name, column in zip(("rmse", "log_likelihood", "live_layers"), zip(*values)):
            row[name], error = mean_and_error(column)
            row[f"{name}_error"] = np.nan if error is None else error
        rows.append(row)
    return pandas.DataFrame(rows)


def depth_picture(store: Store) -> Figure:
    """Test error (above) and live layers (below) against depth, one column per data set."""
    import matplotlib.pyplot as plt

    table = depth_table(store)
    names = list(dict.fromkeys(table["data"]))
    priors = list(dict.fromkeys(table["prior"]))
    depths = sorted(set(table["layers"]))
    figure, axes = plt.subplots(
        2, len(names), figsize=(3.2 * len(names), 5.4), sharex=True, squeeze=False
    )
    for column, data in zip(axes.T, names):
        for place, prior in enumerate(priors):
            rows = table[(table["data"] == data) & (table["prior"] == prior)]
            # Beside each other, or one prior's errors hide another's.
            across = rows["layers"] * _APART ** (place - 0.5 * (len(priors) - 1))
            for ax, name in zip(column, ("rmse", "live_layers")):
                ax.errorbar(
                    across,
                    rows[name],
                    rows[f"{name}_error"],
                    marker="o",
                    markersize=4,
                    linewidth=1.2,
                    color=_COLOURS.get(str(prior), _OTHER_COLOUR),
                    label=str(prior),
                    capsize=2,
                )
        column[0].set(title=data)
        column[1].set(xlabel="residual layers", xscale="log", xticks=depths, ylim=(-0.1, None))
        column[1].set_xticklabels([str(layers) for layers in depths])
        column[1].minorticks_off()
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("test RMSE")
    axes[1][0].set_ylabel("active layers")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=len(priors), loc="upper center", frameon=False)
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.95))
    return figure
