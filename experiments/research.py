"""Variants of the default method against it, chosen on some rows and reported on others.

    python -m qwyc.experiments.research STUDY ... [--half select|report] [--seeds 2] [--cache FOLDER]

Every data set is cut in two for good. A variant is chosen on "select" rows and its figure read on "report"
rows: other rows, and a model trained on other rows, so nothing is chosen on rows that are reported. In
each half and for each seed the model is trained on one part, the policies are fitted on a second (10,000
rows at most) and measured on a third. Each line is a variant's mean cost over the default's at 0.1, 0.25,
0.5 and 1% of test decisions changed: the geometric mean over pairs and seeds; below 1 is better.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc
from qwyc import orders, stopping

from .frontier import LEVELS, Pair, Points, at_level, pairs

HALVES = ("select", "report")
TREES, FIT_ROWS, TEST_ROWS = 300, 10_000, 30_000


@dataclass(frozen=True, eq=False)
class Case:
    """One model's scores on rows to fit on and rows to measure on."""

    fit: qwyc.ScoreMatrix
    test: qwyc.ScoreMatrix
    quit: str
    costs: np.ndarray  # (T,)


def case_of(name: str, pair: Pair, half: str, seed: int, cache: Path) -> Case:
    """Train, score, and keep the scores."""
    load, make, quit, n_train = pair
    file = cache / f"{name} {half} {seed}.npz"
    if not file.exists():
        X, y = load(0)
        rows = np.arange(HALVES.index(half), len(X), 2)
        rows = rows[np.random.default_rng(1000 + seed).permutation(len(rows))]
        n_train = min(n_train // 2, 40_000)
        ensemble = qwyc.read_model(make(seed).fit(X[rows[:n_train]], y[rows[:n_train]]))
        rest = X[rows[n_train:]]
        n_fit = min(FIT_ROWS, len(rest) // 2)
        fit, test = ensemble.scores(rest[:n_fit]), ensemble.scores(rest[n_fit:][:TEST_ROWS])
        about = {"base": fit.base, "threshold": fit.threshold, "average": fit.average}
        arrays = {"fit": fit.values, "fit_full": fit.full, "test": test.values}
        np.savez(file, **arrays, test_full=test.full, **about)
    kept = np.load(file)

    def matrix(part: str) -> qwyc.ScoreMatrix:
        values = np.asfortranarray(kept[part])
        base, threshold = float(kept["base"]), float(kept["threshold"])
        return qwyc.ScoreMatrix(
            values, base, threshold, kept[f"{part}_full"], bool(kept["average"])
        )

    fit = matrix("fit")
    return Case(fit, matrix("test"), quit, np.ones(fit.values.shape[1]))


def first_rows(case: Case, n: int) -> Case:
    """The same with fewer rows to fit on."""
    return replace(case, fit=case.fit.take(np.arange(min(n, len(case.fit.full)))))


def first_models(case: Case, n: int) -> Case:
    """The same with the first base models only, as if training had stopped there."""
    T = case.fit.values.shape[1]

    def cut(matrix: qwyc.ScoreMatrix) -> qwyc.ScoreMatrix:
        scale = T / n if matrix.average else 1.0
        values = np.asfortranarray(matrix.values[:, :n].astype(np.float64) * scale)
        full = matrix.base + values.sum(axis=1)
        return replace(matrix, values=values, full=full)

    return replace(case, fit=cut(case.fit), test=cut(case.test), costs=case.costs[:n])


def with_costs(case: Case, spread: float) -> Case:
    """The same with base models of unequal cost, log-normal with this deviation."""
    costs = np.exp(spread * np.random.default_rng(7).normal(size=len(case.costs)))
    return replace(case, costs=costs / costs.mean())


@contextmanager
def using(module: Any, **constants: Any) -> Iterator[None]:
    """A module with other constants, for a while."""
    before = {name: getattr(module, name) for name in constants}
    try:
        vars(module).update(constants)
        yield
    finally:
        vars(module).update(before)


def order_of(case: Case, **constants: float) -> np.ndarray:
    """The default order with other constants."""
    with using(orders, **constants):
        return orders.correlation(case.fit, case.fit.threshold, case.costs, 2)


def path_of(case: Case, order: np.ndarray | None = None, **constants: Any) -> stopping.Path:
    """The default path with other constants, along the default order or another."""
    if order is None:
        order = order_of(case)
    about = {"threshold": case.fit.threshold, "costs": case.costs, "quit": case.quit}
    with using(stopping, **constants):
        return stopping.fit_path(case.fit, order, **about)


def points_of(path: stopping.Path, matrix: qwyc.ScoreMatrix) -> Points:
    """Disagreement and mean cost of every member."""
    done = path.flips(matrix)
    share = done.counts.sum(axis=1) / len(matrix.full)
    return list(zip(share.tolist(), done.mean_cost.tolist(), strict=True))


def covariances(case: Case, width: float = 0.4) -> np.ndarray:
    """(T, T) weighted covariances of the base models, as the default order has them."""
    matrix = case.fit
    distance = np.abs(matrix.full - matrix.threshold)
    weight = np.exp(-(distance - distance.min()) / (width * np.std(matrix.full)))
    weight /= weight.sum()
    scaled = np.sqrt(weight)[:, None] * (matrix.values - weight @ matrix.values)
    return scaled.T @ scaled


def backward_order(case: Case) -> np.ndarray:
    """Base models taken away one by one, each time the one that leaves the best correlation."""
    C = covariances(case)
    T = len(C)
    with_full, own = C.sum(axis=1), (1 + orders.RIDGE) * np.diag(C)
    left = np.ones(T, dtype=bool)
    with_partial = with_full - np.diag(C) + own
    partial_full, partial = with_full.sum(), with_full.sum() + orders.RIDGE * np.trace(C)
    order = np.empty(T, dtype=np.int32)
    for r in range(T - 1, -1, -1):
        covariance = partial_full - with_full
        variance = partial - 2 * with_partial + own
        sound = left & (covariance > 0) & (variance > 0)
        worth = np.where(sound, covariance**2 / np.where(sound, variance, 1.0), -1.0)
        k = int(np.argmax(np.where(left, worth, -2.0)))
        order[r], left[k] = k, False
        partial_full, partial = covariance[k], variance[k]
        with_partial -= C[k]
    return order


def by_cost(case: Case, power: float) -> np.ndarray:
    """The default order with the gain divided by a power of the cost."""
    return orders.correlation(case.fit, case.fit.threshold, case.costs**power, 2)


def by_ratio(case: Case) -> np.ndarray:
    """Greedy by the criterion itself, not its gain, over all that the base models so far cost."""
    C = covariances(case)
    T = len(C)
    with_full, own = C.sum(axis=1), (1 + orders.RIDGE) * np.diag(C)
    with_partial, left = np.zeros(T), np.ones(T, dtype=bool)
    partial_full = partial = spent = 0.0
    order = np.empty(T, dtype=np.int32)
    for r in range(T):
        covariance, variance = partial_full + with_full, partial + 2 * with_partial + own
        sound = left & (covariance > 0) & (variance > 0)
        share = np.where(sound, covariance**2 / np.where(sound, variance, 1.0), 0.0) / C.sum()
        worth = -np.log(np.maximum(1 - share, 1e-12)) / (spent + case.costs)
        k = int(np.argmax(np.where(left, np.where(sound, worth, -1.0), -2.0)))
        order[r], left[k] = k, False
        partial_full, partial, spent = covariance[k], variance[k], spent + case.costs[k]
        with_partial += C[k]
    return order


def portfolio(case: Case, candidates: list[Callable[[Case], np.ndarray]]) -> stopping.Path:
    """The order whose path is cheapest at 0.25 and 0.5% on a third of the fitting rows, refitted on all."""
    n = len(case.fit.full)
    rows = np.random.default_rng(0).permutation(n)
    inner = replace(case, fit=case.fit.take(np.sort(rows[n // 3 :])))
    held = case.fit.take(np.sort(rows[: n // 3]))

    def cost(make: Callable[[Case], np.ndarray]) -> float:
        points = points_of(path_of(inner, make(inner)), held)
        return float(sum(np.log(at_level(points, level)) for level in (0.0025, 0.005)))

    return path_of(case, min(candidates, key=cost)(case))


def smoothed(path: stopping.Path, width: int) -> stopping.Path:
    """Thresholds averaged over neighbouring steps, those that are infinite left out."""

    def mean(rows: np.ndarray) -> np.ndarray:
        out = rows.copy()
        for k, row in enumerate(rows):
            finite = np.isfinite(row)
            ones = np.ones(2 * width + 1)
            total = np.convolve(np.where(finite, row, 0.0), ones, mode="same")
            count = np.convolve(finite.astype(float), ones, mode="same")
            out[k] = np.where(finite, total / np.maximum(count, 1), row)
        return out

    lower = mean(path.lower)
    return replace(path, lower=lower, upper=np.maximum(lower, mean(path.upper)))


def bagged(case: Case, times: int) -> stopping.Path:
    """Thresholds averaged over paths that are fitted on different four fifths of the rows."""
    order, n = order_of(case), len(case.fit.full)
    paths = []
    for seed in range(times):
        rows = np.sort(np.random.default_rng(seed).permutation(n)[: n * 4 // 5])
        with using(stopping, BOLDEST=0.03):
            paths.append(path_of(replace(case, fit=case.fit.take(rows)), order))
    K = min(map(len, paths))

    def middle(name: str) -> np.ndarray:
        return np.median([getattr(path, name)[:K] for path in paths], axis=0)

    return replace(paths[0], lower=middle("lower"), upper=middle("upper"), price=paths[0].price[:K])


Variant = Callable[[Case], stopping.Path]


def study(name: str) -> tuple[Callable[[Case], Case], dict[str, Variant]]:
    """What a study does to every case, and its variants; "default" comes first."""

    def same(case: Case) -> Case:
        return case

    default: dict[str, Variant] = {"default": path_of}

    def constants(**by_name: Any) -> Variant:
        return lambda case: path_of(case, **by_name)

    def order(**by_name: Any) -> Variant:
        return lambda case: path_of(case, order_of(case, **by_name))

    smoothing = {
        "48 bins of 40": constants(MOST_BINS=48, ROWS_PER_BIN=40),
        "48 bins of 20": constants(MOST_BINS=48),
        "200 bins of 10": constants(MOST_BINS=200, ROWS_PER_BIN=10),
        "96 bins of 10": constants(ROWS_PER_BIN=10),
        "pooled weighs 15": constants(PSEUDO_ROWS=15.0),
        "pooled weighs 150": constants(PSEUDO_ROWS=150.0),
    }
    share = {
        f"outlook {s:.0%} of the price": constants(OUTLOOK_SHARE=s)
        for s in (0.0, 0.25, 0.75, 0.9, 1.0)
    }
    several = [
        order_of,
        lambda case: order_of(case, WEIGHT_WIDTH=0.2),
        lambda case: order_of(case, WEIGHT_WIDTH=0.8),
        backward_order,
    ]
    studies: dict[str, tuple[Callable[[Case], Case], dict[str, Variant]]] = {
        "order": (
            same,
            {f"width {w}": order(WEIGHT_WIDTH=w) for w in (0.15, 0.25, 0.6, 1.0)}
            | {f"ridge {r}": order(RIDGE=r) for r in (0.0, 0.1, 0.6, 1.5)}
            | {"backward": lambda case: path_of(case, backward_order(case))},
        ),
        "portfolio": (same, {"4 orders, inner hold-out": lambda case: portfolio(case, several)}),
        "price": (same, share),
        "smoothing": (same, smoothing),
        "sweeps": (
            same,
            {"2 first sweeps": constants(FIRST_SWEEPS=2), "2 a price": constants(SWEEPS=2)},
        ),
        "thresholds": (
            same,
            {
                "mean of 3 steps": lambda case: smoothed(path_of(case), 1),
                "mean of 7 steps": lambda case: smoothed(path_of(case), 3),
                "median of 5 fits": lambda case: bagged(case, 5),
            },
        ),
    }
    for spread in (0.5, 1.0):
        studies[f"costs-{spread}"] = (
            lambda case, spread=spread: with_costs(case, spread),
            {
                f"gain over cost^{power}": lambda case, power=power: path_of(
                    case, by_cost(case, power)
                )
                for power in (0.0, 0.5, 0.75, 1.5)
            }
            | {"log of what is left over cost": lambda case: path_of(case, by_ratio(case))},
        )
    for n in (1000, 3000):
        studies[f"rows-{n}"] = (lambda case, n=n: first_rows(case, n), smoothing | share)
    for n in (10, 20, 50):
        few = {"backward": lambda case: path_of(case, backward_order(case))}
        few["ridge 0"] = order(RIDGE=0.0)
        few["width 0.25"] = order(WEIGHT_WIDTH=0.25)
        few["width 1.0"] = order(WEIGHT_WIDTH=1.0)
        studies[f"models-{n}"] = (lambda case, n=n: first_models(case, n), few | share)
    change, variants = studies[name]
    return change, default | variants


def main() -> None:
    """Run studies on one half; print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="+")
    parser.add_argument("--half", choices=HALVES, default="select")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=None, help="words in the names of pairs")
    parser.add_argument("--variants", nargs="*", default=None)
    parser.add_argument("--each", action="store_true", help="a line for every pair as well")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    console = Console(width=110)
    chosen = {
        name: pair
        for name, pair in pairs(TREES).items()
        if options.only is None or any(word in name for word in options.only)
    }
    for name in options.studies:
        change, variants = study(name)
        if options.variants is not None:
            variants = {
                v: make for v, make in variants.items() if v in ["default", *options.variants]
            }
        costs: dict[str, list[list[float]]] = {variant: [] for variant in variants}
        for pair in chosen:
            for seed in range(options.seeds):
                case = change(case_of(pair, chosen[pair], options.half, seed, options.cache))
                for variant, make in variants.items():
                    points = points_of(make(case), case.test)
                    costs[variant].append([at_level(points, level) for level in LEVELS])
        show(console, f"{name}, {options.half} rows", costs, list(chosen) if options.each else [])


def show(
    console: Console, title: str, costs: dict[str, list[list[float]]], each: list[str]
) -> None:
    """Ratios to the default at every level; their mean over levels and how often a run is cheaper."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for column in (
        "cost over the default's",
        *[f"{level:.2%}" for level in LEVELS],
        "all",
        "cheaper",
    ):
        table.add_column(column, justify="left" if column.startswith("cost") else "right")
    base = np.log(np.array(costs["default"]))  # (runs, levels)
    for variant, found in costs.items():
        ratio = np.log(np.array(found)) - base
        mean = np.exp([*np.nanmean(ratio, axis=0), np.nanmean(ratio)])
        won = f"{np.sum(ratio < 0)} of {ratio.size}"
        if variant == "default":
            models = np.exp(np.nanmean(base, axis=0))
            table.add_row("default, base models", *[f"{m:.1f}" for m in models], "", "")
            continue
        table.add_row(variant, *[f"{m:.3f}" for m in mean], won)
        for name, part in zip(each, np.split(ratio, max(len(each), 1)), strict=False):
            by_level = np.exp(np.nanmean(part, axis=0))
            table.add_row(f"  {name}", *[f"{m:.3f}" for m in by_level], "", "")
    console.print(table)


if __name__ == "__main__":
    main()
