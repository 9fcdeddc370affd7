"""Fingerprints of policies, certificates and decisions for ten kinds of model, 20,000 rows each.

    python -m benchmarks.frozen before.json          # with one version of qwyc
    python -m benchmarks.frozen after.json           # with another
    python -m benchmarks.frozen --compare before.json after.json

Two versions that decide alike give the same fingerprints, bit for bit. Only names that every version
has are used here; `_certificate` and `_path` know where a version keeps its numbers."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import qwyc
from qwyc.datasets import load_adult

TRAIN, SAMPLE = (
    12_561,
    20_000,
)  # of Adult's 32,561 training rows; decisions are made on its test rows
SINGLE_ROWS = 200
ONE_THREAD = {"n_jobs": 1, "random_state": 0}


def main() -> None:
    """Write fingerprints, or compare two files of them."""
    if sys.argv[1] == "--compare":
        before, after = (json.loads(Path(path).read_text()) for path in sys.argv[2:4])
        differ = sorted(k for k in {*before, *after} if before.get(k) != after.get(k))
        print(f"{len(before)} fingerprints before, {len(after)} after, {len(differ)} differ")
        print("\n".join(differ))
        sys.exit(bool(differ))
    warnings.simplefilter("ignore")
    found: dict[str, str] = {}
    for name, model, rows, new in models():
        for case, options in cases(name).items():
            for what, mark in fingerprints(model, rows, new, options):
                found[f"{name} / {case} / {what}"] = mark
        print(f"{name}: {len(found)} fingerprints so far", flush=True)
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1))


def models() -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, trained model, sample and new rows of each kind."""
    import catboost
    import lightgbm
    import sklearn.ensemble as trees
    import treelite
    import xgboost
    from skl2onnx import to_onnx

    train, test = load_adult("train"), load_adult("test")
    y, codes, new_codes = train.label, train.codes(), test.codes(like=train)
    frame, new_frame = _frame(train, train), _frame(test, train)
    filled, new_filled = np.nan_to_num(codes, nan=-1.0), np.nan_to_num(new_codes, nan=-1.0)
    fit: Callable[[Any, Any], Any] = lambda model, X: model.fit(X[:TRAIN], y[:TRAIN])  # noqa: E731
    last = slice(TRAIN, TRAIN + SAMPLE)

    booster = fit(xgboost.XGBClassifier(n_estimators=120, max_depth=5, n_jobs=1), codes)
    yield "xgboost", booster, codes[last], new_codes
    categorical = xgboost.XGBClassifier(
        n_estimators=80, max_depth=4, enable_categorical=True, n_jobs=1
    )
    yield "xgboost frame", fit(categorical, frame), frame[last], new_frame
    light = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, deterministic=True, **ONE_THREAD)
    yield "lightgbm frame", fit(light, frame), frame[last], new_frame
    text = [frame.columns.get_loc(c) for c in frame if frame[c].dtype == "category"]
    words, new_words = (
        f.assign(**{c: f[c].astype(object).fillna("?").astype(str) for c in f.columns[text]})
        for f in (frame, new_frame)
    )
    cat = catboost.CatBoostClassifier(
        iterations=80, depth=5, cat_features=text, max_ctr_complexity=1, verbose=0, thread_count=1,
        allow_writing_files=False, random_seed=0,
    )  # fmt: skip
    yield "catboost text", fit(cat, words), words[last], new_words
    forest = fit(trees.RandomForestClassifier(60, max_depth=9, **ONE_THREAD), filled)
    yield "random forest", forest, filled[last], new_filled
    extra = fit(trees.ExtraTreesClassifier(60, max_depth=11, **ONE_THREAD), filled)
    yield "extra trees", extra, filled[last], new_filled
    boosting = fit(trees.GradientBoostingClassifier(n_estimators=60, random_state=0), filled)
    yield "gradient boosting", boosting, filled[last], new_filled
    hist = fit(trees.HistGradientBoostingClassifier(max_iter=80, random_state=0), codes)
    yield "hist gradient boosting", hist, codes[last], new_codes
    wide = codes.astype(np.float64)
    yield "treelite", treelite.frontend.from_xgboost(booster.get_booster()), codes[last], new_codes
    onnx = to_onnx(boosting, filled[:1], options={id(boosting): {"zipmap": False}})
    yield "onnx", onnx, filled[last], new_filled
    parts = [
        lambda X, j=j: 0.1 * np.nan_to_num(X[:, j] - wide[:TRAIN, j].mean()) for j in range(12)
    ]
    yield "callables", parts, wide[last], new_codes.astype(np.float64)


def cases(name: str) -> dict[str, dict[str, Any]]:
    """What each model is optimised for. Given costs, no clock has a say in the result."""
    found: dict[str, dict[str, Any]] = {
        "auto": {"alpha": 0.005},
        "by kind": {"alpha": {"negative": 0.002, "positive": 0.01}, "seed": 3},
        "filter": {"alpha": 0.01, "confidence": 0.9, "quit": "negative"},
        "joint": {"alpha": 0.005, "method": "joint", "max_rows": 4000},
        "natural": {"alpha": 0.01, "method": "natural", "quit": "positive"},
        "groups": {"alpha": 0.02, "groups": np.arange(SAMPLE) // 3},
    }
    if name != "callables":
        found["proven"] = {"alpha": 0}
    return found


def fingerprints(
    model: Any, rows: Any, new: Any, options: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Everything that must not change, each as a digest."""
    costs = 1 + np.arange(qwyc_models(model)) % 3  # given, so that time plays no part
    fast = qwyc.optimize(model, rows, costs=costs, progress=False, threads=2, **options)
    policy, seen = fast.policy, fast.certificate
    yield "policy", _mark(policy.order, policy.lower, policy.upper, policy.threshold, policy.costs)
    yield "certificate", _mark(*_certificate(seen))
    decisions = fast.decide(new)
    yield "decisions", _marks(decisions)
    yield "full scores", _mark(fast.score_full(new))
    checked = qwyc.verify(fast, new, alpha=0.02, confidence=0.95)
    yield "verify", _mark(*(getattr(checked, k) for k in ("passed", *COUNTS)))
    if fast.choices is not None:
        yield "path", _mark(*_path(fast))
        other = fast.at(alpha=0.03)
        yield "at", _mark(other.policy.lower, other.policy.upper, *_certificate(other.certificate))
        again = qwyc.recertify(fast, new)
        yield "recertify", _mark(again.policy.lower, *_certificate(again.certificate))
    single = new.iloc if hasattr(new, "iloc") else new
    one = [
        fast.predict_one(single[i : i + 1] if single is not new else new[i])
        for i in range(SINGLE_ROWS)
    ]
    yield "one row", _mark(np.array(one, dtype=str))
    if isinstance(model, list):
        return
    with tempfile.TemporaryDirectory() as folder:
        fast.save(Path(folder) / "f.qwyc")
        loaded = qwyc.load(Path(folder) / "f.qwyc")
        yield "file", _marks(loaded.decide(new)) + _mark(*_certificate(loaded.certificate))


COUNTS = ("rows", "full_positive", "negative", "positive", "upper_bound", "mean_models")


def qwyc_models(model: Any) -> int:
    """Number of base models."""
    return len(model) if isinstance(model, list) else qwyc.read_model(model).n_models


def _certificate(seen: Any) -> list[Any]:
    names = (
        *COUNTS,
        "confidence",
        "mean_cost",
        "full_cost",
        "how",
        "fit_rows",
        "seed",
        "sample",
        "groups",
    )
    return [json.dumps(seen.alpha, sort_keys=True), *(getattr(seen, name) for name in names)]


def _path(fast: Any) -> list[Any]:
    path, evidence = fast.choices.path, fast.choices.evidence
    penalty = path.penalty if hasattr(path, "penalty") else path.price
    if hasattr(evidence, "flips"):
        counted = (evidence.flips, evidence.fit_flips, evidence.mean_models, evidence.mean_cost)
    else:
        held = evidence.counts
        counted = (held.differences, evidence.fit_differences, held.mean_models, held.mean_cost)
    return [path.order, path.lower, path.upper, penalty, *counted]


def _marks(decisions: Any) -> str:
    return _mark(decisions.label.astype(str), decisions.steps, decisions.score, decisions.complete)


def _mark(*values: Any) -> str:
    digest = hashlib.sha256()
    for value in values:
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes() if array.dtype.kind != "O" else repr(value).encode())
    return digest.hexdigest()[:20]


def _frame(table: Any, like: Any) -> pd.DataFrame:
    frame = pd.DataFrame(table.columns)
    for name in frame.columns:
        if table.columns[name].dtype == object:
            known = sorted({v for v in like.columns[name] if v is not None})
            frame[name] = pd.Categorical(frame[name], categories=known)
    return frame


if __name__ == "__main__":
    main()
