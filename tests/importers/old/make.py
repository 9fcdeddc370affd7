"""Train small models with whatever version of XGBoost or LightGBM is installed, and write them beside
the scores that it gives: python make.py xgboost FOLDER. Needs NumPy and the library, nothing else."""

import json
import sys
from pathlib import Path

import numpy as np


def make_rows():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 4)).round(1)
    X[:, 2] = rng.randint(0, 9, 400)
    X[rng.uniform(size=400) < 0.5, 3] = 0.0
    y = (X[:, 0] * X[:, 1] + (X[:, 2] % 3 == 0) + (X[:, 3] > 0) > 0.7).astype(int)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return X, y


def three_classes(X, y):
    return y + (np.nan_to_num(X[:, 0]) > 0.5)


def xgboost_models(X, y, folder):
    import xgboost

    common = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.4, "nthread": 1}
    variants = {
        "gbtree": {},
        "dart": {"booster": "dart", "rate_drop": 0.4},
        "base": {"base_score": 0.3},
        "hinge": {"objective": "binary:hinge"},
        "forest": {"num_parallel_tree": 3, "subsample": 0.6},
        "classes": {"objective": "multi:softprob", "num_class": 3},
    }
    if int(xgboost.__version__.split(".")[0]) >= 2:
        variants["vectors"] = {**variants["classes"], "multi_strategy": "multi_output_tree"}
    for name, options in variants.items():
        matrix = xgboost.DMatrix(X, three_classes(X, y) if "num_class" in options else y)
        booster = xgboost.train({**common, **options}, matrix, 4)
        scores = booster.predict(xgboost.DMatrix(X[:40]), output_margin=True)
        yield name, ".json", booster.save_model, scores, xgboost.__version__


def lightgbm_models(X, y, folder):
    import lightgbm

    common = {"objective": "binary", "num_leaves": 6, "verbose": -1, "num_threads": 1, "seed": 0}
    variants = {
        "gbdt": ({}, "auto"),
        "categories": ({"cat_smooth": 1, "min_data_per_group": 1}, [2]),
        "zero": ({"zero_as_missing": True}, "auto"),
        "nothing-missing": ({"use_missing": False}, "auto"),
        "rf": ({"boosting": "rf", "bagging_fraction": 0.6, "bagging_freq": 1}, "auto"),
        "dart": ({"boosting": "dart", "drop_rate": 0.4}, "auto"),
        "classes": ({"objective": "multiclass", "num_class": 3}, [2]),
        "apart": ({"objective": "multiclassova", "num_class": 3}, "auto"),
    }
    for name, (options, categorical) in variants.items():
        classes = three_classes(X, y) if "num_class" in options else y
        data = lightgbm.Dataset(X, classes, categorical_feature=categorical)
        booster = lightgbm.train({**common, **options}, data, 4)
        scores = booster.predict(X[:40], raw_score=True)
        if name == "rf":
            scores = scores / 4
        yield name, ".txt", booster.save_model, scores, lightgbm.__version__


def main(library, folder):
    X, y = make_rows()
    models = {"xgboost": xgboost_models, "lightgbm": lightgbm_models}[library]
    rows = [[None if np.isnan(v) else v for v in row] for row in X[:40].tolist()]
    for name, suffix, save, scores, version in models(X, y, folder):
        stem = f"{library}-{version}-{name}"
        save(str(folder / (stem + suffix)))
        facts = {"rows": rows, "scores": np.asarray(scores, dtype=np.float64).tolist()}
        (folder / (stem + ".expected")).write_text(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
