"""Base models per row at equal disagreement on new rows: this library against everything published.

    python -m qwyc_experiments.frontier [--seeds 2] [--trees 500] [--only NAME ...] [--output FILE.csv]
        [--again METHOD ...]

For every (data set, model) pair and seed: the model is trained on one part of the rows, policies are
fitted on a second (20,000 rows at most), and everything is measured on a third that neither has seen.
Each method is swept along its own knob, and its mean base models at 0.1, 0.25, 0.5 and 1% of test
decisions changed are read off by interpolation; a dash where it does not get there. All points are kept in
the output; `--again qwyc` makes only this library's curves anew, and what is missing.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import RandomForestClassifier

import qwyc
from qwyc.datasets import load_adult

from . import levels
from .levels import Points

FIT_ROWS = 20_000
ALPHAS = (0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02)
GAMMAS = (0.5, 0.8, 1.1, 1.4, 1.7, 2.0, 2.4, 2.8, 3.3, 4.0, 5.0, 7.0)


def data_folder() -> Path:
    """Where the data sets are that are not shipped."""
    return Path(
        os.environ.get("QWYC_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
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


def covertype_in_order() -> tuple[np.ndarray, np.ndarray]:
    """The same in the order of its file, which is by place."""
    return _parquet("covertype")


def covertype_kinds() -> tuple[np.ndarray, np.ndarray]:
    """UCI Covertype with all 7 classes, from 0, in the order of its file."""
    import pandas as pd

    frame = pd.read_parquet(data_folder() / "covertype.parquet")
    kind = frame.pop("aux_cover_type").to_numpy().astype(int)
    return frame.drop(columns="label").to_numpy(np.float32), kind - kind.min()


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


def our_curve(fit: Any, test: Any, quit: str) -> Points:
    """Every member of the path."""
    done = qwyc.fit_path(fit, quit=quit, progress=False).sums(test).counts()
    share = done.differences.sum(axis=1) / len(test.full)
    return list(zip(share.tolist(), done.mean_models.tolist(), strict=True))


def methods(fit: Any, test: Any, labels: np.ndarray, quit: str, seed: int) -> dict[str, Any]:
    """Name -> what makes that method's curve on the test rows."""

    def point(policy: Any) -> tuple[float, float]:
        decisions = policy.apply(test)
        return float(np.mean(decisions.label != test.positive)), float(decisions.steps.mean())

    def thresholds(**options: Any) -> Points:
        found = [
            qwyc.fit_policy(fit, alpha=a, quit=quit, progress=False, **options) for a in ALPHAS
        ]
        return [point(policy) for policy in found]

    def fan(**options: Any) -> Points:
        return [point(policy) for policy in qwyc.fit_fan_path(fit, GAMMAS, quit=quit, **options)]

    curves: dict[str, Any] = {"qwyc": lambda: our_curve(fit, test, quit), "QWYC*": thresholds}
    for fixed in levels.FIXED:
        options = {"order": fixed, "labels": labels, "seed": seed}
        curves[f"Algorithm 2, {fixed}"] = partial(thresholds, **options)
        curves[f"Fan, {fixed}"] = partial(fan, **options)
    curves["margin rule"] = lambda: margin_rule(test, quit)
    curves["smaller ensemble"] = lambda: smaller_ensembles(test)
    return curves


def margin_rule(test: Any, quit: str) -> Points:
    """LightGBM's pred_early_stop: natural order, quit where the running score is far from the
    threshold on either side, checked after every base model."""
    T = test.values.shape[1]
    points = []
    for margin in np.std(test.full) * np.geomspace(0.03, 6, 96):
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


def run_pair(pair: Pair, seed: int, skip: set[str]) -> dict[str, Points]:
    """The curve of every method that is not to be skipped."""
    load, make, quit, n_train = pair
    X, y = load(seed)
    model = make(seed).fit(X[:n_train], y[:n_train])
    ensemble = qwyc.read_model(model)
    n_fit = min(FIT_ROWS, (len(X) - n_train) // 2)
    fit = ensemble.scores(X[n_train : n_train + n_fit])
    test = ensemble.scores(X[n_train + n_fit :][:100_000])
    curves = methods(fit, test, y[n_train : n_train + n_fit], quit, seed)
    return {name: make() for name, make in curves.items() if name not in skip}


def main() -> None:
    """Run pairs and seeds, or read what was kept; print a Markdown table and the summary; draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--only", nargs="*", default=None, help="words in the names of pairs")
    parser.add_argument("--output", type=Path, default=Path("frontier.csv"))
    parser.add_argument("--again", nargs="*", default=None, help="methods to make anew")
    options = parser.parse_args()
    known = options.output.exists() and options.again is not None
    runs = levels.read(options.output) if known else {}
    for name, pair in pairs(options.trees).items():
        if options.only is not None and not any(word in name for word in options.only):
            continue
        for seed in range(options.seeds):
            started = time.perf_counter()
            kept = runs.setdefault(name, {}).get(seed, {})
            runs[name][seed] = kept | run_pair(pair, seed, set(kept) - set(options.again or []))
            print(f"{name}, seed {seed}: {time.perf_counter() - started:.0f} s", flush=True)
            levels.write(runs, options.output)
    print(levels.table(runs), levels.summary(runs), sep="\n\n")
    levels.draw(runs, options.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
