"""Curves of base models against disagreement: kept in a file, read off at levels, tabled and drawn."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

LEVELS = (0.001, 0.0025, 0.005, 0.01)

Points = list[tuple[float, float]]  # test disagreement, mean base models
Runs = dict[str, dict[int, dict[str, Points]]]  # pair -> seed -> method -> curve

# Column of the table -> the methods of which the best counts, at each level anew.
FIXED = ("natural", "random", "individual-mse", "greedy-mse")
COLUMNS = {
    "qwyc": ["qwyc"],
    "QWYC*": ["QWYC*"],
    "best Algorithm 2": [f"Algorithm 2, {order}" for order in FIXED],
    "best Fan": [f"Fan, {order}" for order in FIXED],
    "margin rule": ["margin rule"],
    "smaller ensemble": ["smaller ensemble"],
}


def at_level(points: Points, level: float) -> float:
    """Mean base models with at most `level` disagreement, in a line between neighbouring points in log
    base models; NaN where no point is within the level."""
    ordered = sorted(points, key=lambda p: -p[1])  # from many base models to few
    best = np.nan
    for (d0, m0), (d1, m1) in zip(ordered, [*ordered[1:], ordered[-1]], strict=True):
        if d0 <= level:
            best = np.nanmin([best, m0])
            if d1 > level:
                share = (level - d0) / (d1 - d0)
                best = min(best, float(np.exp((1 - share) * np.log(m0) + share * np.log(m1))))
    return float(best)


def write(runs: Runs, path: Path) -> None:
    """Every point of every curve."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["pair", "seed", "method", "disagreement", "base models"])
        for pair, by_seed in runs.items():
            for seed, curves in by_seed.items():
                for method, points in curves.items():
                    out.writerows([pair, seed, method, *point] for point in points)


def read(path: Path) -> Runs:
    """What `write` wrote."""
    runs: Runs = {}
    with path.open(newline="") as file:
        for pair, seed, method, share, models in list(csv.reader(file))[1:]:
            curves = runs.setdefault(pair, {}).setdefault(int(seed), {})
            curves.setdefault(method, []).append((float(share), float(models)))
    return runs


def best_of(curves: dict[str, Points], methods: list[str]) -> np.ndarray:
    """(levels,) the fewest base models of some methods; NaN where none gets there."""
    found = np.array([[at_level(curves[m], level) for level in LEVELS] for m in methods])
    return np.fmin.reduce(found)


def ratio(curves: dict[str, Points], level: int = 2) -> float:
    """qwyc's base models over the best published method's, at 0.5% unless told."""
    published = [method for method in curves if method != "qwyc"]
    return float(best_of(curves, ["qwyc"])[level] / best_of(curves, published)[level])


def table(runs: Runs) -> str:
    """A Markdown table: a line per pair, means over seeds at every level, a dash where one fails."""
    lines = [f"| pair | seeds | {' | '.join(COLUMNS)} | of the best published at 0.5% |"]
    lines.append(f"|---|---:|{'---|' * len(COLUMNS)}---:|")
    for pair, by_seed in runs.items():
        cells = [pair, str(len(by_seed))]
        for methods in COLUMNS.values():
            mean = np.mean([best_of(curves, methods) for curves in by_seed.values()], axis=0)
            cells.append(" / ".join(_shown(m) for m in mean))
        ratios = [ratio(curves) for curves in by_seed.values()]
        cells.append(f"{np.exp(np.mean(np.log(ratios))):.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(models: float) -> str:
    return "–" if np.isnan(models) else f"{models:.0f}" if models >= 99.95 else f"{models:.1f}"


def summary(runs: Runs) -> str:
    """Geometric means of the ratios at every level, filters apart."""
    lines = []
    for kind in ("both", "filter"):
        some = [
            curves
            for pair, by_seed in runs.items()
            if ("filter" in pair) == (kind == "filter")
            for curves in by_seed.values()
        ]
        for i, level in enumerate(LEVELS):
            ratios = np.array([ratio(curves, i) for curves in some])
            if len(ratios):
                mean = np.exp(np.mean(np.log(ratios)))
                lines.append(
                    f"quit={kind}, {level:.2%}: {mean:.2f} of the best published method's base models "
                    f"(geometric mean of {len(ratios)} runs, {ratios.min():.2f} to {ratios.max():.2f})"
                )
    return "\n".join(lines)


def draw(runs: Runs, path: Path) -> None:
    """Base models against disagreement: a panel per pair, the first seed's curves, both axes in logs."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    rows = -(-len(runs) // 3)
    figure = Figure(figsize=(11, 3.3 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for axes, (name, by_seed) in zip(panels, runs.items(), strict=False):
        for method, points in by_seed[min(by_seed)].items():
            label, style = _style(method)
            inside = [p for p in sorted(points, key=lambda p: p[1]) if 1e-4 < p[0] < 0.05]
            if inside:
                share, models = np.array(inside).T
                (line,) = axes.plot(100 * share, models, **style)
                handles.setdefault(label, line)
        full = max(models for _, models in by_seed[min(by_seed)]["smaller ensemble"])
        axes.axhline(full, color="#222222", linewidth=0.8, linestyle=(0, (1, 2)))
        axes.text(2.9, full * 1.06, f"all {full:.0f}", fontsize=8, ha="right", color="#222222")
        axes.set_title(name, fontsize=10, loc="left")
        axes.set(xscale="log", yscale="log", xlim=(0.03, 3), ylim=(1, 900))
        axes.xaxis.set_major_locator(FixedLocator([0.03, 0.1, 0.25, 0.5, 1, 3]))
        axes.xaxis.set_major_formatter(FixedFormatter(["0.03", "0.1", "0.25", "0.5", "1", "3"]))
        axes.yaxis.set_major_locator(FixedLocator([1, 3, 10, 30, 100, 300]))
        axes.yaxis.set_major_formatter(FixedFormatter(["1", "3", "10", "30", "100", "300"]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(color="#eeeeee", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(runs) :]:
        axes.set_visible(False)
    for axes in panels[::3]:
        axes.set_ylabel("mean base models per row", fontsize=9)
    for axes in panels[: len(runs)][-3:]:
        axes.set_xlabel("test decisions that differ, %", fontsize=9)
    wanted = [label for label in LABELS if label in handles]
    figure.legend(
        [handles[label] for label in wanted],
        wanted,
        loc="outside upper center",
        ncols=len(wanted),
        frameon=False,
        fontsize=9,
    )
    figure.savefig(path, dpi=100)


LABELS = (
    "qwyc",
    "QWYC* (Algorithm 1)",
    "Algorithm 2, four fixed orders",
    "Fan et al., four fixed orders",
    "margin rule",
    "smaller ensemble",
)


def _style(method: str) -> tuple[str, dict[str, Any]]:
    if method == "qwyc":
        return LABELS[0], {"color": "#1f5fa8", "linewidth": 2.4, "zorder": 4}
    if method == "QWYC*":
        return LABELS[1], {"color": "#c4501b", "linewidth": 1.8, "zorder": 3}
    if method.startswith("Algorithm 2"):
        return LABELS[2], {"color": "#d9a05b", "linewidth": 0.9}
    if method.startswith("Fan"):
        return LABELS[3], {"color": "#7aa67a", "linewidth": 0.9}
    if method == "margin rule":
        return LABELS[4], {"color": "#777777", "linewidth": 1.2, "linestyle": "--"}
    return LABELS[5], {"color": "#bbbbbb", "linewidth": 1.2, "linestyle": ":"}
