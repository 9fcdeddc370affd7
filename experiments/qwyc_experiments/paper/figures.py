"""The pictures: trade-offs, histograms, and alpha asked for against what test rows see."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .curves import (
    BAYES_VOTES,
    BEST_VOTES,
    FAN_JOINT,
    FAN_STAR,
    JOINT_FAN,
    LEVEL,
    MARGIN,
    MARGIN_10,
    OURS,
    QWYC,
    SMALLER,
    Curve,
    Key,
    Outcome,
    Results,
    title,
)
from .experiments import EXPERIMENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that colour-blind readers can tell apart (Okabe and Ito), with a marker each.
BLACK, BLUE, SKY, ORANGE = "#000000", "#0072b2", "#56b4e9", "#e69f00"
RED, GREEN, PINK, GREY = "#d55e00", "#009e73", "#cc79a7", "#777777"
BY_ORDER = {
    "natural": (BLUE, "s"),
    "random": (ORANGE, "D"),
    "individual-mse": (RED, "^"),
    "greedy-mse": (GREEN, "v"),
    "accuracy": (GREY, "<"),
}
STYLE: dict[Key, tuple[str, str]] = {
    QWYC: (BLACK, "o"),
    OURS: (PINK, "P"),
    SMALLER: (GREY, "X"),
    FAN_JOINT: (SKY, "h"),
    JOINT_FAN: (SKY, "*"),
    MARGIN: (SKY, "<"),
    MARGIN_10: (SKY, ">"),
    BEST_VOTES: (SKY, "*"),
    BAYES_VOTES: (BLUE, "p"),
}
SHARES = (0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
TICKS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500)
IN_HISTOGRAMS = (QWYC, OURS, ("algorithm-2", "natural"), FAN_STAR, ("fan", "random"))


def differences(outcome: Outcome) -> bytes:
    """Differences against mean base models: one experiment, Algorithm 2 beside Fan's rule."""
    results = outcome.results
    figure = _figure(12, 5.6)
    left, right = figure.subplots(1, 2, sharey=True)
    both = [results.curves[key] for key in (OURS, QWYC)]
    small = [results.curves[SMALLER]] if SMALLER in results.curves else []
    rivals = [results.curves[key] for key in STYLE if key[0] in RIVALS and key in results.curves]
    answers = results.family("fan", ("joint", "joint-fan"))
    panels = {left: [*results.family("algorithm-2"), *small, *rivals], right: results.family("fan")}
    panels[right] += answers
    left.set_title("Algorithm 2 with fixed orders, and smaller ensembles")
    right.set_title("Fan's rule")
    for axes, curves in panels.items():
        for curve in [*curves, *both]:
            _draw(axes, curve, "differ")
        _differences_axis(axes, results.n_models)
        axes.set_xlabel("mean base models per test row (log scale)")
    left.set_ylabel("test rows decided unlike the full ensemble, %")
    figure.suptitle(_heading(outcome), fontweight="bold")
    _shared_legend(figure, (left, right), columns=5)
    return _png(figure)


RIVALS = ("margin", "margin-10", "best-votes", "bayes-votes")


def accuracy(outcomes: Mapping[str, Outcome]) -> bytes:
    """Test accuracy against mean base models: a panel per experiment, the main methods."""
    figure, grid = _grid(len(outcomes))
    for axes, outcome in zip(grid, outcomes.values(), strict=False):
        results = outcome.results
        full = 100 * results.full.accuracy
        axes.axhline(full, color=GREY, linewidth=1, linestyle=":")
        for key in (SMALLER, ("algorithm-2", "natural"), ("fan", "natural"), FAN_STAR, QWYC, OURS):
            if key in results.curves:
                _draw(axes, results.curves[key], "accuracy", hollow=key[0] == "fan")
        near = [
            100 * a
            for key in (QWYC, OURS)
            for a, d in zip(results.curves[key].accuracy, results.curves[key].differ, strict=True)
            if d < 0.03
        ]
        low = min([*near, full]) - 0.3
        axes.set_ylim(low, max([*near, full]) + 0.12 * (full - low) + 0.1)
        _models_axis(axes, results.n_models)
        axes.set_title(_short(outcome), fontsize=10, loc="left")
    _labels(grid, len(outcomes), "test accuracy, %", "mean base models per test row (log scale)")
    _shared_legend(figure, grid[: len(outcomes)])
    return _png(figure)


def histograms(outcomes: Mapping[str, Outcome]) -> bytes:
    """Base models by test row, each method where its test differences are nearest to 0.5%."""
    rows = len(outcomes)
    figure = _figure(15, 2.5 * rows + 0.4)
    grid = figure.subplots(rows, len(IN_HISTOGRAMS), squeeze=False)
    for line, outcome in zip(grid, outcomes.values(), strict=True):
        for axes, key in zip(line, IN_HISTOGRAMS, strict=True):
            _histogram(axes, outcome.results, key)
        words = _short(outcome).replace(": ", ":\n").replace(", ", ",\n")  # as high as the panel
        line[0].set_ylabel(f"{words}\n\ntest rows (log scale)", fontsize=9)
        for axes in line[1:]:
            axes.sharey(line[0])
            axes.tick_params(labelleft=False)
    for axes, key in zip(grid[0], IN_HISTOGRAMS, strict=True):
        axes.set_title(title(key), fontsize=11)
    for axes in grid[-1]:
        axes.set_xlabel("base models used by a row")
    return _png(figure)


def _histogram(axes: Axes, results: Results, key: Key) -> None:
    T = results.n_models
    point = results.curves[key].nearest("differ", LEVEL)
    bins = np.arange(0, T + 1, max(1, T // 50)) + 0.5
    axes.hist(point.steps, bins=np.append(bins[bins < T], T + 0.5), color=_style(key)[0])
    axes.text(
        0.97,
        0.95,
        f"mean {point.test.models:.3g} of {T}\n{point.test.differ:.2%} differ\n"
        f"{np.mean(point.steps == T):.1%} use all",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=8,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )
    axes.set(yscale="log", xlim=(0.5 if T < 20 else 0, T + 1))
    if T < 20:
        axes.set_xticks(range(1, T + 1))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def optimism(outcomes: Mapping[str, Outcome]) -> bytes:
    """Alpha asked for, or differences on the fitted rows, against differences on the test rows."""
    figure, grid = _grid(len(outcomes))
    for axes, outcome in zip(grid, outcomes.values(), strict=False):
        curves = outcome.results.curves
        axes.plot([0, 10], [0, 10], color=GREY, linewidth=1, linestyle=":")
        for key, curve in curves.items():
            if key == SMALLER:  # it is fitted to labels, and asked for nothing
                continue
            asked = curve.knob if curve.key[0] in ("qwyc", "algorithm-2") else curve.fitted_differ
            colour, marker = _style(key)
            fan = key[0] == "fan"
            axes.plot(
                100 * asked,
                100 * curve.differ,
                color=colour,
                marker=marker,
                markersize=4,
                linewidth=2 if key in (QWYC, OURS) else 1,
                linestyle="--" if fan else "-",
                markerfacecolor="white" if fan else colour,
                label=curve.title,
                zorder=4 if key in (QWYC, OURS) else 3,
            )
        if outcome.promised:
            axes.plot(
                [100 * p.alpha for p in outcome.promised],
                [100 * p.differ for p in outcome.promised],
                color=RED,
                marker="*",
                markersize=10,
                linewidth=2.4,
                label="qwyc.optimize, certified on unseen rows",
                zorder=6,
            )
        for scale in (axes.set_xscale, axes.set_yscale):
            scale("symlog", linthresh=0.1, linscale=0.5)
        ticks = (0, 0.1, 0.25, 0.5, 1, 2, 4)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set(xlim=(-0.01, 5), ylim=(-0.01, 5))
        axes.set_title(_short(outcome), fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    _labels(
        grid,
        len(outcomes),
        "test rows that differ, %",
        "alpha asked for, or fitted rows that differ, %",
    )
    _shared_legend(figure, grid[: len(outcomes)])
    return _png(figure)


def rivals(outcomes: Mapping[str, Outcome]) -> bytes:
    """Differences against mean base models beside rules that exist for some kinds of ensemble only."""
    figure, grid = _grid(len(outcomes), columns=2, size=(6, 4.4))
    keys = (*(key for key in STYLE if key[0] in RIVALS), SMALLER, FAN_STAR, ("fan", "natural"))
    for axes, outcome in zip(grid, outcomes.values(), strict=False):
        results = outcome.results
        for key in (*keys, ("algorithm-2", "natural"), QWYC, OURS):
            if key in results.curves:
                _draw(axes, results.curves[key], "differ", hollow=key[0] == "fan")
        _differences_axis(axes, results.n_models)
        axes.set_title(_short(outcome), fontsize=10, loc="left")
    _labels(
        grid,
        len(outcomes),
        "test rows that differ, %",
        "mean base models per test row (log scale)",
        columns=2,
    )
    _shared_legend(figure, grid[: len(outcomes)])
    return _png(figure)


def _draw(axes: Axes, curve: Curve, what: str, *, hollow: bool = False) -> None:
    """One curve, with its deviation over seeds where it has seeds. `hollow` tells a curve from another of
    the same order in the same panel."""
    main = curve.key in (QWYC, OURS)
    colour, marker = _style(curve.key)
    seeds = curve.key[1] == "random"
    axes.errorbar(
        curve.models,
        100 * getattr(curve, what),
        xerr=curve.deviation("models") if seeds else None,
        yerr=100 * curve.deviation(what) if seeds else None,
        color=colour,
        marker=marker,
        markersize=6 if main else 4.5,
        linewidth=2.6 if main else 1.2,
        linestyle="--" if hollow or curve.key in (SMALLER, JOINT_FAN) else "-",
        markerfacecolor="white" if hollow else colour,
        elinewidth=1,
        capsize=2,
        zorder=5 if main else 3,
        label=f"{curve.title} (± deviation)" if seeds else curve.title,
    )


def _differences_axis(axes: Axes, n_models: int) -> None:
    axes.axhline(100 * LEVEL, color=GREY, linewidth=1, linestyle=":")
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.35)
    axes.set_ylim(0, 25)
    axes.set_yticks(SHARES, [f"{share:g}" for share in SHARES])
    _models_axis(axes, n_models)


def _models_axis(axes: Axes, n_models: int) -> None:
    axes.set_xscale("log")
    axes.set_xlim(0.9, 1.1 * n_models)
    axes.set_xticks(
        [tick for tick in TICKS if tick <= n_models and not (n_models > 5 and tick in (3, 4))]
    )
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _grid(
    count: int, columns: int = 3, size: tuple[float, float] = (4.6, 3.8)
) -> tuple[Figure, Sequence[Axes]]:
    """Panels in rows; those that are not needed are hidden."""
    columns = min(columns, count)
    rows = -(-count // columns)
    width = 7.0 if columns == 1 else size[0]
    figure = _figure(width * columns, size[1] * rows + 0.9)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, grid


def _labels(grid: Sequence[Any], count: int, y: str, x: str, columns: int = 3) -> None:
    columns = min(columns, count)
    for i, axes in enumerate(grid[:count]):
        if i % columns == 0:
            axes.set_ylabel(y)
        if i + columns >= count:
            axes.set_xlabel(x)


def _shared_legend(figure: Figure, grid: Iterable[Axes], columns: int = 0) -> None:
    """One legend below all panels."""
    found: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(),
        found.keys(),
        loc="outside lower center",
        ncols=columns or int(figure.get_figwidth() // 2.7),
        frameon=False,
        fontsize=9,
    )


def _heading(outcome: Outcome) -> str:
    results = outcome.results
    return (
        f"{EXPERIMENTS[results.name].title}: {results.n_test:,} test rows, T = {results.n_models}"
    )


def _short(outcome: Outcome) -> str:
    """The title in few words."""
    experiment = EXPERIMENTS[outcome.results.name]
    if experiment.number is None:
        return experiment.title
    number, name = f"Experiment {experiment.number}", experiment.title.split(", ", 1)[1]
    return f"{number}: {name.replace('stand-in for Real-world', 'stand-in RW')}"


def _style(key: Key) -> tuple[str, str]:
    return STYLE[key] if key in STYLE else BY_ORDER[key[1]]


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, dpi=100, format="png")
    return content.getvalue()
