"""Samples that are not what they should be: repeated rows, and rows that the model was trained on; and the
first verification after `optimize`."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import xgboost
from rich.console import Console
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import qwyc

from . import N_MODELS, broken, column_models, print_table, world

ALPHA = 0.02


def repeated(console: Console, scale: float) -> None:
    """Every row of the sample several times: with and without being told, and as `groups`."""
    truth = qwyc.ScoreMatrix.from_array(world(np.random.default_rng(10**6), 200_000))
    models, rows = column_models(N_MODELS), []
    for times in (1, 5, 20):
        ways = {"as it is": {}, "groups=": {}, 'repeats="independent"': {"repeats": "independent"}}
        for name, options in ways.items():
            shares, warned, refused = [], 0, 0
            for seed in range(round(200 * scale)):
                distinct = world(np.random.default_rng(seed), 3_000)
                X = np.repeat(distinct, times, axis=0)
                if name == "groups=":
                    options = {"groups": np.repeat(np.arange(len(distinct)), times)}
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    try:
                        fast = qwyc.optimize(
                            models, X, alpha=ALPHA, seed=seed, progress=False, **options
                        )
                    except qwyc.InfeasibleError:
                        refused += 1
                        continue
                warned += any("repeat" in str(w.message) for w in caught)
                label = fast.policy.apply(truth).label
                shares.append(float(np.mean(label != truth.positive)))
            n = len(shares) + refused
            delivered = np.array(shares) if shares else np.array([np.nan])
            rows.append(
                [
                    f"every row {times} times" if times > 1 else "every row once",
                    name,
                    f"{warned} of {n}",
                    f"{refused} of {n}",
                    broken(delivered, ALPHA),
                    f"{np.nanmean(delivered):.2%}",
                ]
            )
    columns = ["sample", "call", "warned", "refused", "broken", "delivered, mean"]
    print_table(console, f"3,000 distinct rows, alpha = {ALPHA:.0%} at 95%", columns, rows)


def trained_on(console: Console, scale: float) -> None:
    """The rows that the model was trained on, and others."""
    kinds = {
        "random forest": lambda seed: RandomForestClassifier(100, n_jobs=2, random_state=seed),
        "XGBoost, depth 6": lambda seed: xgboost.XGBClassifier(
            n_estimators=100, max_depth=6, n_jobs=2, random_state=seed
        ),
    }
    rows = []
    for name, make in kinds.items():
        seen = {"the rows it was trained on": [], "other rows": []}
        for seed in range(round(40 * scale)):
            X, y = make_classification(
                30_000, 20, n_informative=10, flip_y=0.1, random_state=seed, shuffle=True
            )
            X = X.astype(np.float32)
            model = make(seed).fit(X[:6000], y[:6000])
            for what, sample in zip(seen, (X[:6000], X[6000:12_000]), strict=True):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    fast = qwyc.optimize(
                        model, sample, alpha=0.01, seed=seed, progress=False, evaluation="quit"
                    )
                new = X[12_000:]
                differ = np.mean(fast.predict(new) != fast.full().predict(new))
                told = any(issubclass(w.category, qwyc.TrainingRowsWarning) for w in caught)
                seen[what].append((told, fast.certificate.holds, differ))
        for what, each in seen.items():
            told, holds, differ = np.array(each, dtype=float).T
            promised = differ[holds == 1]
            rows.append(
                [
                    name,
                    what,
                    f"{told.sum():.0f} of {len(told)}",
                    f"{holds.sum():.0f} of {len(told)}",
                    broken(promised, 0.01) if len(promised) else "nothing promised",
                    f"{differ.mean():.2%}",
                ]
            )
    columns = ["model", "sample", "warned", "promised", "broken", "differ on new rows"]
    print_table(console, "Rows that the model was trained on, alpha = 1% at 95%", columns, rows)


def first_verification(console: Console, scale: float) -> None:
    """optimize, then verify on fresh rows, with and without room."""
    truth, models = world(np.random.default_rng(10**6), 1_000_000), column_models(N_MODELS)
    rows = []
    for fresh in (2_000, 10_000):
        for headroom in (0, fresh):
            outcomes, steps = Counter(), []
            for seed in range(round(200 * scale)):
                X = world(np.random.default_rng(seed), 12_000)
                fast = qwyc.optimize(
                    models, X, alpha=0.01, headroom=headroom, seed=seed, progress=False
                )
                start = (seed * fresh) % (len(truth) - fresh)
                found = qwyc.verify(fast, truth[start : start + fresh])
                outcomes[found.outcome] += 1
                steps.append(fast.certificate.mean_models)
            n = sum(outcomes.values())
            rows.append(
                [
                    f"{fresh:,} fresh rows, headroom={headroom}",
                    *(f"{outcomes[o]} of {n}" for o in ("pass", "undecided", "fail")),
                    f"{np.mean(steps):.2f}",
                ]
            )
    columns = ["verification", "pass", "undecided", "fail", "base models per row"]
    print_table(console, "The first verification: 12,000 rows, alpha = 1% at 95%", columns, rows)
