"""More than two classes: limits on all rows and on each class, and filters for one class.

The population is a pool of Covertype rows, all of them new to the model; the two rarest of its seven
classes are left out, so that samples have enough rows of each. Each repetition draws its sample from the
pool and is measured on all of it. A limit by class is broken if any of the classes loses more."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xgboost
from rich.console import Console

import qwyc

from ..frontier import covertype_kinds
from . import broken, print_table

LEFT_OUT = (3, 4)
TRAIN_ROWS, POOL_ROWS, ROWS, ROUNDS = 30_000, 100_000, 8_000, 25
ALPHAS, CONFIDENCES = (0.005, 0.01), (0.9, 0.95)
SHARE = 0.05  # of each class
ONLY = 2  # about 6% of the rows
REPETITIONS = 100


def population() -> tuple[np.ndarray, qwyc.Ensemble, qwyc.ScoreMatrix]:
    """The pool, a model that has not seen it, and its scores of all rows."""
    X, kind = covertype_kinds()
    kept = ~np.isin(kind, LEFT_OUT)
    X, y = X[kept], np.unique(kind[kept], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(X))[: TRAIN_ROWS + POOL_ROWS]
    train, pool = order[:TRAIN_ROWS], X[order[TRAIN_ROWS:]]
    model = xgboost.XGBClassifier(n_estimators=ROUNDS, max_depth=4, learning_rate=0.3, n_jobs=1)
    ensemble = qwyc.read_model(model.fit(X[train], y[train]))
    return pool, ensemble, ensemble.scores(pool)


def shares_lost(policy: Any, truth: qwyc.ScoreMatrix) -> tuple[float, float, float]:
    """The share of all rows that is decided differently, the largest share of a class, and base models."""
    done, target = policy.apply(truth), policy.target
    full = target.decide(truth.full)
    differ, rows = target.count_differences(done.label, full), target.count_classes(full)
    return float(differ.sum() / len(full)), float((differ / rows).max()), float(done.steps.mean())


def limits(console: Console, scale: float) -> None:
    """How often the truth is beyond a limit."""
    pool, ensemble, truth = population()
    classes = ensemble.classes.tolist()
    by_class = dict.fromkeys(classes, SHARE)
    found: dict[tuple[str, float], list[tuple[float, ...]]] = {}
    limit: dict[str, tuple[int, float]] = {}  # which of the shares is limited, and how much

    def measure(name: str, kind: int, most: float, fast: qwyc.Classifier, **asked: Any) -> None:
        limit[name] = kind, most
        for confidence in CONFIDENCES:
            policy = fast.at(confidence=confidence, **asked).policy
            found.setdefault((name, confidence), []).append(shares_lost(policy, truth))

    for seed in range(max(round(REPETITIONS * scale), 1)):
        X = pool[np.random.default_rng(seed).choice(len(pool), ROWS, replace=False)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", qwyc.QwycWarning)  # of rare classes
            options: dict[str, Any] = {"seed": seed, "progress": False, "evaluation": "quit"}
            plain = qwyc.optimize(ensemble, X, alpha=ALPHAS[-1], **options)
            for alpha in ALPHAS:
                measure(f"alpha = {alpha:.1%}", 0, alpha, plain, alpha=alpha)
            each = qwyc.optimize(ensemble, X, by_class=by_class, **options)
            measure(f"{SHARE:.0%} of each class", 1, SHARE, each, by_class=by_class)
            own = {classes[ONLY]: SHARE}
            only = qwyc.optimize(ensemble, X, only=classes[ONLY], by_class=own, **options)
            measure(f"filter, {SHARE:.0%} of its class", 1, SHARE, only, by_class=own)
            measure("filter, alpha = 0.5%", 0, ALPHAS[0], only, alpha=ALPHAS[0])
    rows = []
    for (name, confidence), seen in found.items():
        shares = np.array(seen)
        kind, most = limit[name]
        rows.append(
            [
                name,
                f"{confidence:.0%}",
                broken(shares[:, kind], most),
                f"{1 - confidence:.0%}",
                f"{shares[:, 0].mean():.3%}",
                f"{shares[:, 1].mean():.2%}",
                f"{shares[:, 2].mean():.1f}",
            ]
        )
    columns = [
        "limit",
        "confidence",
        "broken",
        "allowed",
        "all rows that differ",
        "of a class, the worst",
        f"base models of {ROUNDS}",
    ]
    full = truth.target.count_classes(truth.target.decide(truth.full)) / len(pool)
    title = (
        f"{len(classes)} classes ({', '.join(f'{share:.1%}' for share in full)} of the rows): {ROWS:,} "
        f"rows a time, measured on {len(pool):,}; the filter is for the third"
    )
    print_table(console, title, columns, rows)
