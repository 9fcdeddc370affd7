"""The picture: batches above, single rows in the middle, how cost grows below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qwyc.check.benchmark import FULL, QUITTING, Line

from .contest import Result
from .growth import Point
from .sizes import Sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = ("xgboost", "lightgbm", "forest")
COLOURS = {QUITTING: "#1f5fa8", FULL: "#7aaede", "XGBoost": "#c4501b", "ONNX Runtime": "#8f8f8f"}
OTHER = "#8f8f8f"


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
    figure = Figure(figsize=(14, 3.7 * sum(heights)), layout="constrained")
    figure.get_layout_engine().set(hspace=0.08, wspace=0.04)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    large = max(sizes.batches)
    if shown:
        for part, batch in zip(parts, (large, 1), strict=False):
            panels = part.subplots(1, len(shown), squeeze=False)[0]
            for axes, result in zip(panels, shown, strict=True):
                dots(axes, [line for line in result.lines[1] if line.batch == batch], batch == 1)
                axes.set_title(result.title, fontsize=10, loc="left")
        _headed(parts[0], f"Batches of {large:,} rows, one thread: µs per row")
        _headed(
            parts[1],
            "One row from Python: µs a call, median (lines to the 95th and 99th percentile)",
        )
    if axes_of_growth:
        _headed(parts[-1], "How cost grows: µs per row in one batch, one thread, XGBoost models")
        panels = parts[-1].subplots(1, len(axes_of_growth), squeeze=False)[0]
        for axes, axis in zip(panels, axes_of_growth, strict=True):
            curves(axes, [p for p in points if p.axis == axis], axis)
        handles, labels = panels[0].get_legend_handles_labels()
        parts[-1].legend(
            handles, labels, loc="outside lower center", ncols=len(labels), frameon=False
        )
    figure.supxlabel(words, fontsize=8, color="#666666")
    figure.savefig(path, dpi=120)


def _headed(part: Any, words: str) -> None:
    part.suptitle(words, fontweight="bold", x=0.01, ha="left")


def _plain(value: float, _: int = 0) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def dots(axes: Axes, lines: Sequence[Line], single: bool) -> None:
    """Contestants from slow to fast on a log scale, the value beside each dot."""
    lines = sorted(lines, key=lambda line: -line.microseconds)
    for y, line in enumerate(lines):
        quitting = line.contestant == QUITTING
        colour = COLOURS[line.contestant] if line.contestant in (QUITTING, FULL) else OTHER
        end, label = line.microseconds, _plain(line.microseconds)
        axes.axhline(y, color="#eeeeee", linewidth=1, zorder=0)
        if single and line.p99 is not None and line.p95 is not None:
            axes.plot([line.microseconds, line.p99], [y, y], color=colour, linewidth=1.4, zorder=1)
            axes.plot([line.p95, line.p99], [y, y], "|", color=colour, markersize=8, zorder=1)
            end, label = line.p99, f"{label}, p99 {_plain(line.p99)}"
        axes.plot(line.microseconds, y, "o", color=colour, markersize=11 if quitting else 8)
        axes.annotate(
            label,
            (end, y),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            fontweight="bold" if quitting else "normal",
        )
    largest = max(line.p99 or line.microseconds if single else line.microseconds for line in lines)
    axes.set_xscale("log")
    axes.set_xlim(min(line.microseconds for line in lines) / 2, largest * (12 if single else 4))
    axes.xaxis.set_major_formatter(_plain)
    axes.set_yticks(range(len(lines)), [line.contestant for line in lines], fontsize=9)
    for label in axes.get_yticklabels():
        if label.get_text() == QUITTING:
            label.set_fontweight("bold")
    axes.set_ylim(-0.6, len(lines) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.minorticks_off()


def curves(axes: Axes, points: Sequence[Point], axis: str) -> None:
    """One line a contestant, its last value at its right end where there is space."""
    written: list[float] = []
    names = dict.fromkeys(p.contestant for p in points)
    for name in sorted(names, key=lambda name: name != QUITTING):
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
        if any(0.75 < mine[-1].microseconds / other < 1.33 for other in written):
            continue
        written.append(mine[-1].microseconds)
        axes.annotate(
            _plain(mine[-1].microseconds),
            (mine[-1].value, mine[-1].microseconds),
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=8,
        )
    values = sorted({p.value for p in points})
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="µs per row")
    axes.yaxis.set_major_formatter(_plain)
    axes.set_xticks(values, [f"{value:,}" for value in values])
    axes.minorticks_off()
    axes.margins(x=0.14)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
