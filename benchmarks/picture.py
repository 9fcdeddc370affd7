"""The picture: batches above, single rows in the middle, how cost grows below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qwyc.bench import FULL, QUITTING, Line

from .contest import Result
from .growth import Point
from .sizes import Sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = ("xgboost", "lightgbm", "forest")
COLOURS = {QUITTING: "#1f5fa8", FULL: "#7aaede", "XGBoost": "#c4501b", "ONNX Runtime": "#8a8a8a"}
OTHER = "#b9b9b9"


def draw(
    results: Mapping[str, Result], points: Sequence[Point], sizes: Sizes, words: str, path: Path
) -> None:
    """Three panels a row: models, the same models row by row, axes of growth."""
    from matplotlib.figure import Figure

    shown = [results[name] for name in SHOWN if name in results]
    axes_of_growth = [axis for axis in sizes.growth if any(p.axis == axis for p in points)]
    heights = [1.0, 1.0] * bool(shown) + [1.25] * bool(axes_of_growth)
    if not heights:
        return
    figure = Figure(figsize=(14, 3.6 * sum(heights)), layout="constrained")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    large = max(sizes.batches)
    if shown:
        for part, batch in zip(parts, (large, 1), strict=False):
            panels = part.subplots(1, len(shown), squeeze=False)[0]
            for axes, result in zip(panels, shown, strict=True):
                lines = [line for line in result.lines[1] if line.batch == batch]
                bars(axes, lines, single=batch == 1)
                axes.set_title(result.title if batch != 1 else "", fontsize=11)
        parts[0].suptitle(
            f"Batches of {large:,} rows, one thread: µs per row (log scale)", fontweight="bold"
        )
        parts[1].suptitle(
            "One row from Python: µs a call at the median; whiskers to the 95th and 99th percentile",
            fontweight="bold",
        )
    if axes_of_growth:
        part = parts[-1]
        part.suptitle(
            "How cost grows: µs per row, one thread, XGBoost models (log scales)", fontweight="bold"
        )
        panels = part.subplots(1, len(axes_of_growth), squeeze=False)[0]
        for axes, axis in zip(panels, axes_of_growth, strict=True):
            curves(axes, [p for p in points if p.axis == axis], axis)
        panels[0].set_ylabel("µs per row")
    figure.supxlabel(words, fontsize=8, color="#666666")
    figure.savefig(path, dpi=120)


def bars(axes: Axes, lines: Sequence[Line], single: bool) -> None:
    """Contestants from slow to fast, the value beside each bar."""
    lines = sorted(lines, key=lambda line: -line.microseconds)
    values = [line.microseconds for line in lines]
    names = [line.contestant for line in lines]
    low = min(values) / 3
    for y, line in enumerate(lines):
        colour = COLOURS[line.contestant] if line.contestant in (QUITTING, FULL) else OTHER
        axes.barh(y, line.microseconds - low, left=low, color=colour, height=0.66)
        end = line.microseconds
        if single and line.p99 is not None and line.p95 is not None:
            axes.plot([line.microseconds, line.p99], [y, y], color="#444444", linewidth=1)
            axes.plot([line.p95, line.p99], [y, y], "|", color="#444444", markersize=7)
            end = line.p99
        axes.annotate(
            f"{line.microseconds:,.0f}" if line.microseconds >= 100 else f"{line.microseconds:.3g}",
            (end, y),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            fontweight="bold" if line.contestant == QUITTING else "normal",
        )
    largest = max([*values, *[line.p99 or 0 for line in lines if single]])
    axes.set_xscale("log")
    axes.set_xlim(low, largest * 4)
    axes.set_yticks(range(len(lines)), names, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.minorticks_off()


def curves(axes: Axes, points: Sequence[Point], axis: str) -> None:
    """One line a contestant, named at its right end."""
    for name in dict.fromkeys(p.contestant for p in points):
        mine = sorted((p for p in points if p.contestant == name), key=lambda p: p.value)
        colour = COLOURS.get(name, OTHER)
        axes.plot(
            [p.value for p in mine],
            [p.microseconds for p in mine],
            color=colour,
            marker="o",
            markersize=4,
            linewidth=2.4 if name == QUITTING else 1.5,
            label=name,
        )
        axes.annotate(
            f"{mine[-1].microseconds:.3g}",
            (mine[-1].value, mine[-1].microseconds),
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=8,
        )
    values = sorted({p.value for p in points})
    axes.set(xscale="log", yscale="log", xlabel=axis)
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.minorticks_off()
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    if axis == "trees":
        axes.legend(frameon=False, fontsize=9)
