"""Write the golden files: python make.py FOLDER, with the version of qwyc that the files are to be of.

Rows are the first of UCI Adult's test rows, which every version ships, so only what was decided is kept."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import qwyc
from qwyc.datasets import load_adult

TRAIN = slice(0, 6000)
SAMPLE = slice(6000, 14000)
ROWS = 300
CERTIFICATE = (
    "alpha confidence rows full_positive negative positive upper_bound mean_models "
    "mean_cost full_cost how fit_rows seed sample groups"
)


def adult(kind):
    """Training and test rows as a model of that kind takes them, and labels."""
    train, test = load_adult("train"), load_adult("test")
    if kind == "codes":
        return train.codes(), test.codes(like=train), train.label
    if kind == "filled":
        return (
            np.nan_to_num(train.codes(), nan=-1.0),
            np.nan_to_num(test.codes(like=train), nan=-1.0),
            train.label,
        )
    frames = []
    for table in (train, test):
        frame = pd.DataFrame(table.columns)
        for name, column in table.columns.items():
            if column.dtype != object:
                continue
            known = sorted({v for v in train.columns[name] if v is not None})
            frame[name] = pd.Categorical(frame[name], categories=known)
            if kind == "text":
                frame[name] = frame[name].astype(object).fillna("?").astype(str)
        frames.append(frame)
    return *frames, train.label


def models():
    """Name, the rows that it takes, the model, and what it is optimised for."""
    import catboost
    import lightgbm
    import sklearn.ensemble as trees
    import treelite
    import xgboost
    from skl2onnx import to_onnx

    one = {"n_jobs": 1, "random_state": 0}
    yield (
        "xgboost", "codes", xgboost.XGBClassifier(n_estimators=30, max_depth=4, n_jobs=1),
        {"alpha": 0.01},
    )  # fmt: skip
    yield (
        "xgboost-categories", "frame",
        xgboost.XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1),
        {"alpha": {"negative": 0.01, "positive": 0.02}},
    )  # fmt: skip
    yield (
        "lightgbm-categories", "frame",
        lightgbm.LGBMClassifier(n_estimators=25, num_leaves=15, verbose=-1, **one),
        {"alpha": 0.02, "groups": np.arange(8000) // 2},
    )  # fmt: skip
    yield (
        "catboost-text", "text",
        catboost.CatBoostClassifier(
            iterations=20, depth=4, cat_features=[1, 3, 5, 6, 7, 8, 9, 13], max_ctr_complexity=1,
            verbose=0, thread_count=1, allow_writing_files=False, random_seed=0,
        ),
        {"alpha": 0.01, "quit": "negative"},
    )  # fmt: skip
    yield (
        "random-forest", "filled", trees.RandomForestClassifier(20, max_depth=7, **one),
        {"alpha": 0.02, "costs": 1.0 + np.arange(20) % 3},
    )  # fmt: skip
    yield (
        "extra-trees-proven", "filled", trees.ExtraTreesClassifier(20, max_depth=7, **one),
        {"alpha": 0},
    )  # fmt: skip
    yield (
        "gradient-boosting-paper", "filled",
        trees.GradientBoostingClassifier(n_estimators=20, random_state=0),
        {"alpha": 0.01, "method": "joint"},
    )  # fmt: skip
    yield (
        "hist-gradient-boosting", "codes",
        trees.HistGradientBoostingClassifier(max_iter=25, max_leaf_nodes=15, random_state=0),
        {"alpha": 0.01, "threshold": qwyc.Probability(0.3), "confidence": 0.9},
    )  # fmt: skip
    booster = xgboost.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1)
    X, _, y = adult("codes")
    booster.fit(X[TRAIN], y[TRAIN])
    yield (
        "treelite",
        "codes",
        treelite.frontend.from_xgboost(booster.get_booster()),
        {"alpha": 0.01},
    )
    X, _, y = adult("filled")
    boosting = trees.GradientBoostingClassifier(n_estimators=15, random_state=0)
    boosting.fit(X[TRAIN], y[TRAIN])
    onnx = to_onnx(boosting, X[:1], options={id(boosting): {"zipmap": False}})
    yield "onnx", "filled", onnx, {"alpha": 0.01}


def main(folder):
    """Train, optimise, save, and note what is decided."""
    for name, kind, model, options in models():
        X, new, y = adult(kind)
        if hasattr(model, "fit"):
            model.fit(X[TRAIN], y[TRAIN])
        fast = qwyc.optimize(model, X[SAMPLE], progress=False, **options)
        fast.save(folder / f"{name}.qwyc")
        fast = qwyc.load(folder / f"{name}.qwyc")
        decisions, seen = fast.decide(new[:ROWS]), fast.certificate
        facts = {
            "qwyc": qwyc.__version__,
            "rows": kind,
            "label": decisions.label.tolist(),
            "steps": decisions.steps.tolist(),
            "score": [value.hex() for value in decisions.score.tolist()],
            "full": [value.hex() for value in fast.score_full(new[:ROWS]).tolist()],
            "certificate": {name: getattr(seen, name) for name in CERTIFICATE.split()},
            "at": None if fast.choices is None else fast.at(alpha=0.05).policy.lower.tolist()[:-1],
        }
        (folder / f"{name}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
