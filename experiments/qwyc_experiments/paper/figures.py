"""The pictures: trade-offs and histograms, as in the paper."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from .curves import FAN_STAR, LEVEL, ORDERS, QWYC, SMALLER, Curve, Key, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Panels = list[tuple[Axes, list[Curve]]]

# colours that colour-blind readers can tell apart (Okabe and Ito), with a marker each
STYLE = {
    "joint": ("#000000", "o"),
    "natural": ("#0072b2", "s"),
    "random": ("#e69f00", "D"),
    "individual-mse": ("#d55e00", "^"),
    "greedy-mse": ("#009e73", "v"),
    "smaller": ("#cc79a7", "X"),
}
LABELS = {
    **ORDERS,
    "joint": "QWYC*",
    "random": "random order (± deviation)",
    "individual-mse": "individual MSE (right: Fan*)",
}
SHARES = (0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
IN_HISTOGRAMS = (
    QWYC,
    ("algorithm-2", "natural"),
    ("algorithm-2", "random"),
    FAN_STAR,
    ("fan", "natural"),
    ("fan", "random"),
)


def accuracy(results: Results, title: str) -> bytes:
    """Test accuracy against mean base models."""
    figure, panels = _panels(results, title)
    full = results.full.accuracy
    for axes, curves in panels:
        axes.axhline(100 * full, color="#666666", linewidth=1, linestyle=":")
        for curve in curves:
            _draw(axes, curve, "accuracy")
        axes.annotate(
            f"full ensemble, {results.n_models} trees: {full:.2%}",
            (0.01, 100 * full),
            xycoords=("axes fraction", "data"),
            xytext=(2, 4),
            textcoords="offset points",
            color="#666666",
            fontsize=9,
        )
        axes.set_ylim(100 * full - 3, 100 * full + 0.3)
    panels[0][0].set_ylabel("test accuracy, %")
    return _png(_with_legend(figure, panels))


def differences(results: Results, title: str) -> bytes:
    """Classification differences to the full ensemble against mean base models."""
    figure, panels = _panels(results, title)
    for axes, curves in panels:
        axes.axhline(100 * LEVEL, color="#666666", linewidth=1, linestyle=":")
        for curve in curves:
            _draw(axes, curve, "differ")
        axes.set_yscale("symlog", linthresh=0.1, linscale=0.35)
        axes.set_ylim(0, 25)
        axes.set_yticks(SHARES, [f"{share:g}" for share in SHARES])
        axes.minorticks_off()
    panels[0][0].set_ylabel("test rows decided unlike the full ensemble, %")
    return _png(_with_legend(figure, panels))


def histograms(results: Results, title: str) -> bytes:
    """Base models by test row, each method where its test differences are nearest to 0.5%."""
    from matplotlib.figure import Figure

    T = results.n_models
    figure = Figure(figsize=(11, 5.8), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True, sharey=True)
    bins = np.arange(0, T + 1, max(1, T // 50)) + 0.5
    for axes, key in zip(grid.flat, IN_HISTOGRAMS, strict=True):
        curve = results.curves[key]
        point = curve.nearest("differ", LEVEL)
        colour = STYLE[key[1]][0]
        axes.hist(point.steps, bins=np.append(bins[bins < T], T + 0.5), color=colour)
        axes.set_title(curve.title, fontsize=11, fontweight="bold" if key == QWYC else "normal")
        axes.text(
            0.97,
            0.93,
            f"mean {point.test.models:.1f} of {T}\n{point.test.differ:.2%} differ\n"
            f"{np.mean(point.steps == T):.1%} take all",
            transform=axes.transAxes,
            ha="right",
            va="top",
            fontsize=9,
        )
        axes.set(yscale="log", xlim=(0, T + 1))
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[1]:
        axes.set_xlabel("base models used by a row")
    for axes in grid[:, 0]:
        axes.set_ylabel("test rows (log scale)")
    figure.suptitle(
        f"{title}: {results.n_test:,} test rows, each method near {LEVEL:.1%} differences",
        fontweight="bold",
    )
    return _png(figure)


def _panels(results: Results, title: str) -> tuple[Figure, Panels]:
    """QWYC* beside Algorithm 2 on the left, beside Fan's rule and smaller ensembles on the right."""
    from matplotlib.figure import Figure

    T = results.n_models
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    best = results.curves[QWYC]
    panels = [
        (left, [best, *results.family("algorithm-2")]),
        (right, [best, *results.family("fan"), results.curves[SMALLER]]),
    ]
    left.set_title("against Algorithm 2 with fixed orders")
    right.set_title("against Fan's rule and smaller ensembles")
    for axes, _ in panels:
        axes.set_xscale("log")
        axes.set_xlim(0.9, 1.05 * T)
        axes.set_xticks([tick for tick in TICKS if tick <= T])
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.minorticks_off()
        axes.set_xlabel("mean base models per row (log scale)")
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{title}: {results.n_test:,} test rows, XGBoost with {T} trees", fontweight="bold"
    )
    return figure, panels


def _draw(axes: Axes, curve: Curve, what: str) -> None:
    """One curve, with its deviation over seeds where it has seeds."""
    prominent = curve.key == QWYC
    colour, marker = _style(curve.key)
    axes.errorbar(
        curve.models,
        100 * getattr(curve, what),
        xerr=curve.deviation("models") if curve.key[1] == "random" else None,
        yerr=100 * curve.deviation(what) if curve.key[1] == "random" else None,
        color=colour,
        marker=marker,
        markersize=7 if prominent else 5,
        linewidth=2.8 if prominent else 1.3,
        linestyle="--" if curve.key == SMALLER else "-",
        elinewidth=1,
        capsize=2,
        zorder=5 if prominent else 3,
        label=LABELS.get(curve.key[1], "") if curve.key != SMALLER else curve.title,
    )


def _with_legend(figure: Figure, panels: Panels) -> Figure:
    """One legend for both panels, below them: orders have the same colour in each."""
    handles, labels = panels[1][0].get_legend_handles_labels()  # the panel with all of them
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def _style(key: Key) -> tuple[str, str]:
    return STYLE["smaller" if key == SMALLER else key[1]]


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, dpi=130, format="png")
    return content.getvalue()
