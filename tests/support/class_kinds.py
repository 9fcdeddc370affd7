"""How models of three classes are trained, for the parity matrix."""

from __future__ import annotations

import catboost
import lightgbm
import numpy as np
import xgboost

NAMES = np.array(["one", "three", "two"])


def three_classes(column, y):
    """Classes 0, 1 and 2 from labels 0 and 1."""
    return y + ((np.nan_to_num(column) > 0.3) & (y == 1))


def xgb(**options):
    def make(trees, **more):
        return xgboost.XGBClassifier(n_estimators=trees, max_depth=3, n_jobs=1, **options, **more)

    def fit(X, y, trees, leaf):
        return make(trees, gamma=1e9 if leaf else 0.0).fit(X, three_classes(X[:, 0], y))

    def fit_table(frame, y):
        model = make(10, enable_categorical=True, max_cat_to_onehot=2)
        return model.fit(frame, three_classes(frame["a"].to_numpy(), y))

    return fit, fit_table


def lgbm(**options):
    def make(trees, leaf=False):
        least = 10**6 if leaf else 3
        return lightgbm.LGBMClassifier(
            n_estimators=trees,
            num_leaves=5,
            min_child_samples=least,
            cat_smooth=1,
            verbose=-1,
            n_jobs=1,
            **options,
        )

    return (
        lambda X, y, trees, leaf: make(trees, leaf).fit(X, NAMES[three_classes(X[:, 0], y)]),
        lambda frame, y: make(10).fit(frame, NAMES[three_classes(frame["a"].to_numpy(), y)]),
    )


def cat(**options):
    def make(trees, **more):
        more |= {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
        return catboost.CatBoostClassifier(iterations=trees, **options, **more)

    def fit(X, y, trees, leaf):
        least = {"min_data_in_leaf": 10**6} if leaf else {}
        return make(trees, depth=3, **least).fit(X, NAMES[three_classes(X[:, 0], y)])

    def fit_table(frame, y):
        model = make(10, cat_features=["k"], one_hot_max_size=2)
        return model.fit(frame, NAMES[three_classes(frame["a"].to_numpy(), y)])

    return fit, fit_table


def trained():
    """The name of each kind, how it is trained on numbers, and how on a table with categories."""
    yield "XGBoost, three classes", *xgb()
    yield "XGBoost, three classes, one tree for all", *xgb(multi_strategy="multi_output_tree")
    yield "LightGBM, three classes", *lgbm()
    yield "LightGBM, three classes, one against all", *lgbm(objective="multiclassova")
    yield "CatBoost symmetric, three classes", *cat(loss_function="MultiClass")
    yield (
        "CatBoost depthwise, three classes, one against all",
        *cat(loss_function="MultiClassOneVsAll", grow_policy="Depthwise"),
    )
