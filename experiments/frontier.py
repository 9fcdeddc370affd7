"""Base models per row at equal disagreement on new rows: this library against everything published.

    python -m qwyc.experiments.frontier [--seeds 2] [--trees 500] [--only NAME ...] [--output FOLDER]

For every (data set, model) pair and seed: the model is trained on one part of the rows, policies are
fitted on a second (20,000 rows at most), and everything is measured on a third that neither has seen.
Each method is swept along its own knob, and its mean base models at 0.1, 0.25, 0.5 and 1% of test
decisions changed are read off by interpolation; "-" where it does not get there.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import qwyc
from qwyc.datasets import load_adult

LEVELS = (0.001, 0.0025, 0.005, 0.01)
FIT_ROWS = 20_000
ALPHAS = (0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02)
GAMMAS = (0.5, 0.8, 1.1, 1.4, 1.7, 2.0, 2.4, 2.8, 3.3, 4.0, 5.0, 7.0)


def data_folder() -> Path:
    """Where the data sets are that are not shipped."""
    return Path(
        os.environ.get("QWYC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    )


def _parquet(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features as float32, text as codes, and labels."""
    import pandas as pd

    frame = pd.read_parquet(data_folder() / f"{name}.parquet")
    label = frame.pop("label").to_numpy()
    frame = frame.drop(columns=[c for c in frame if c.startswith("aux_")])
    for column in frame:
        if frame[column].dtype.kind not in "iufb":
            frame[column] = frame[column].astype("category").cat.codes.replace(-1, np.nan)
    return frame.to_numpy(np.float32), label


def _joined(name: str) -> tuple[np.ndarray, np.ndarray]:
    parts = [_parquet(f"{name}_{part}") for part in ("train", "test")]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _shuffled(X: np.ndarray, y: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order], y[order]


def covertype(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """UCI Covertype, class 2 against the rest, in random order."""
    return _shuffled(*_parquet("covertype"), seed)


def adult(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """UCI Adult, both parts together, in random order."""
    train, test = load_adult("train"), load_adult("test")
    X = np.concatenate([train.codes(), test.codes(like=train)])
    return _shuffled(X, np.concatenate([train.label, test.label]), seed)


Pair = tuple[Callable[[int], tuple[np.ndarray, np.ndarray]], Callable[[int], Any], str, int]


def pairs(trees: int) -> dict[str, Pair]:
    """Name -> data, model, quit, training rows."""
    xgb = {"n_estimators": trees, "max_depth": 5, "n_jobs": 2}
    lgb = {"n_estimators": trees, "verbose": -1, "n_jobs": 2}
    few = max(20, trees * 3 // 5)
    return {
        "Adult, XGBoost, lr 0.05": (
            adult,
            lambda s: xgboost.XGBClassifier(**xgb, learning_rate=0.05),
            "both",
            16_000,
        ),
        "Adult, XGBoost, lr 0.03": (
            adult,
            lambda s: xgboost.XGBClassifier(**xgb, learning_rate=0.03),
            "both",
            16_000,
        ),
        "Adult, LightGBM": (
            adult,
            lambda s: lightgbm.LGBMClassifier(**lgb | {"n_estimators": few}, learning_rate=0.05),
            "both",
            16_000,
        ),
        "Adult, random forest": (
            adult,
            lambda s: RandomForestClassifier(few, max_depth=14, n_jobs=2, random_state=s),
            "both",
            16_000,
        ),
        "Nomao, LightGBM": (
            lambda s: _shuffled(*_joined("nomao"), s),
            lambda s: lightgbm.LGBMClassifier(**lgb, learning_rate=0.05),
            "both",
            12_000,
        ),
        "Nomao, XGBoost": (
            lambda s: _shuffled(*_joined("nomao"), s),
            lambda s: xgboost.XGBClassifier(**xgb, learning_rate=0.05),
            "both",
            12_000,
        ),
        "Covertype, XGBoost": (
            covertype,
            lambda s: xgboost.XGBClassifier(**xgb, learning_rate=0.1),
            "both",
            100_000,
        ),
        "Covertype, random forest": (
            covertype,
            lambda s: RandomForestClassifier(few, max_depth=14, n_jobs=2, random_state=s),
            "both",
            50_000,
        ),
        "Census-KDD, XGBoost, filter": (
            lambda s: _shuffled(*_joined("census_income_kdd"), s),
            lambda s: xgboost.XGBClassifier(**xgb, learning_rate=0.05),
            "negative",
            100_000,
        ),
    }


Points = list[tuple[float, float]]  # test disagreement, mean base models


def methods(fit: Any, test: Any, labels: np.ndarray, quit: str, seed: int) -> dict[str, Points]:
    """Every method's curve on the test rows."""

    def point(policy: Any) -> tuple[float, float]:
        decisions = policy.apply(test)
        return float(np.mean(decisions.label != test.positive)), float(decisions.steps.mean())

    curves: dict[str, Points] = {}
    path = qwyc.fit_path(fit, quit=quit, progress=False)
    curves["qwyc"] = [point(path[k]) for k in range(len(path))]
    curves["QWYC*"] = [
        point(qwyc.fit_policy(fit, alpha=a, quit=quit, progress=False)) for a in ALPHAS
    ]
    for fixed in ("natural", "random", "individual-mse", "greedy-mse"):
        options = {"order": fixed, "quit": quit, "labels": labels, "seed": seed}
        curves[f"Algorithm 2, {fixed}"] = [
            point(qwyc.fit_policy(fit, alpha=a, progress=False, **options)) for a in ALPHAS
        ]
        curves[f"Fan, {fixed}"] = [
            point(policy) for policy in qwyc.fit_fan_path(fit, GAMMAS, **options)
        ]
    curves["margin rule"] = margin_rule(test, quit)
    curves["smaller ensemble"] = smaller_ensembles(test)
    return curves


def margin_rule(test: Any, quit: str) -> Points:
    """LightGBM's pred_early_stop: natural order, quit where the running score is far from the
    threshold on either side, checked after every base model."""
    T = test.values.shape[1]
    points = []
    for margin in np.std(test.full) * np.geomspace(0.05, 6, 24):
        lower, upper = np.full(T, test.threshold - margin), np.full(T, test.threshold + margin)
        lower[-1], upper[-1] = -np.inf, np.inf
        if quit == "negative":
            upper[:] = np.inf
        policy = qwyc.Policy(np.arange(T), lower, upper, test.threshold, np.ones(T))
        decisions = policy.apply(test)
        points.append((np.mean(decisions.label != test.positive), decisions.steps.mean()))
    return points


def smaller_ensembles(test: Any) -> Points:
    """The first k base models alone, always evaluated in full: what training with k rounds gives."""
    T = test.values.shape[1]
    running = np.full(len(test.full), test.base)
    points = []
    for k in range(1, T + 1):
        running += test.values[:, k - 1]
        score = running * (T / k) if test.average else running
        points.append((float(np.mean((score >= test.threshold) != test.positive)), float(k)))
    return points


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


def run_pair(pair: Pair, seed: int) -> dict[str, Points]:
    """Every method's curve."""
    load, make, quit, n_train = pair
    X, y = load(seed)
    model = make(seed).fit(X[:n_train], y[:n_train])
    ensemble = qwyc.read_model(model)
    n_fit = min(FIT_ROWS, (len(X) - n_train) // 2)
    fit = ensemble.scores(X[n_train : n_train + n_fit])
    test = ensemble.scores(X[n_train + n_fit :][:100_000])
    return methods(fit, test, y[n_train : n_train + n_fit], quit, seed)


def draw(curves: dict[str, dict[str, Points]], path: Path) -> None:
    """Mean base models against disagreement, a panel per pair, best published methods in grey."""
    from matplotlib.figure import Figure

    rows = -(-len(curves) // 3)
    figure = Figure(figsize=(12, 3.6 * rows), layout="constrained")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for axes, (name, by_method) in zip(panels, curves.items(), strict=False):
        for method, points in by_method.items():
            share, models = np.array(sorted(points, key=lambda p: p[1])).T
            shown = (share > 2e-4) & (share < 0.03)
            style = {"color": "#b8b8b8", "linewidth": 0.9, "zorder": 1}
            if method == "qwyc":
                style = {"color": "#1f5fa8", "linewidth": 2.4, "zorder": 3, "label": "qwyc"}
            elif method == "QWYC*":
                style = {
                    "color": "#c4501b",
                    "linewidth": 1.8,
                    "zorder": 2,
                    "label": "QWYC* (the paper)",
                }
            elif method == "margin rule":
                style |= {"linestyle": "--", "color": "#777777", "label": "margin rule"}
            elif method == "Fan, natural":
                style |= {"label": "Fan and Algorithm 2, fixed orders"}
            if method != "smaller ensemble":
                axes.plot(100 * share[shown], models[shown], **style)
        axes.set(title=name, xscale="log", yscale="log")
        axes.set_xticks([0.03, 0.1, 0.25, 0.5, 1, 2], ["0.03", "0.1", "0.25", "0.5", "1", "2"])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    for axes in panels[::3]:
        axes.set_ylabel("mean base models per row")
    for axes in panels[: len(curves)][-3:]:
        axes.set_xlabel("test decisions that differ, %")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run pairs and seeds; print a table per pair and the summary; write a CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--output", type=Path, default=Path("frontier.csv"))
    options = parser.parse_args()
    console = Console(width=110)
    rows: list[list[Any]] = []
    ratios: dict[str, list[float]] = {}
    curves: dict[str, dict[str, Points]] = {}
    for name, pair in pairs(options.trees).items():
        if options.only is not None and not any(word in name for word in options.only):
            continue
        started = time.perf_counter()
        found = [run_pair(pair, seed) for seed in range(options.seeds)]
        curves[name] = found[0]
        runs = [
            {
                method: [at_level(points, level) for level in LEVELS]
                for method, points in run.items()
            }
            for run in found
        ]
        table = Table(title=name, box=box.SIMPLE_HEAD, title_justify="left")
        table.add_column("mean base models at test disagreement")
        for level in LEVELS:
            table.add_column(f"{level:.2%}", justify="right")
        for method in runs[0]:
            mean = np.mean([run[method] for run in runs], axis=0)  # NaN where one seed fails
            table.add_row(method, *["-" if np.isnan(m) else f"{m:.1f}" for m in mean])
            rows += [
                [name, method, seed, level, run[method][i]]
                for seed, run in enumerate(runs)
                for i, level in enumerate(LEVELS)
            ]
        console.print(table)
        for run in runs:
            published = [v[2] for m, v in run.items() if m != "qwyc"]
            ratio = run["qwyc"][2] / np.nanmin(published)
            ratios.setdefault("filter" if pair[2] == "negative" else "both", []).append(ratio)
        console.print(f"  {time.perf_counter() - started:.0f} s\n")
    for kind, values in ratios.items():
        console.print(
            f"At 0.5%, qwyc needs {np.exp(np.mean(np.log(values))):.2f} of the best published method's "
            f"base models (geometric mean of {len(values)}, quit={kind}; {min(values):.2f} to "
            f"{max(values):.2f})."
        )
    with options.output.open("w", newline="") as file:
        csv.writer(file).writerows([["pair", "method", "seed", "level", "base models"], *rows])
    draw(curves, options.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
