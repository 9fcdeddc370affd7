"""Every kind of model that qwyc reads, and what of each is read exactly: the parity matrix.

`python tests/support/kinds.py` writes the table into docs/models.md;
tests/importers/test_parity_matrix.py runs every cell of it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import catboost
import lightgbm
import numpy as np
import pandas as pd
import treelite
import xgboost
import ydf
from skl2onnx import to_onnx
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import class_kinds
from onnx_graphs import classifier

ydf.verbose(0)
ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- matrix: begin -->\n", "<!-- matrix: end -->\n"
MANY = 5000
CONDITIONS = {
    "NaN": "missing values in training and in new rows",
    "inf": "infinities in new rows",
    "categories": "category columns",
    "unseen": "categories that training did not have",
    "float32": "rows of float32, on thresholds and beside them",
    "float64": "rows of float64, with more digits than float32 has",
    "constant": "columns with one value",
    "leaf": "trees that are a single leaf",
    "one tree": "a model of one tree",
    "5,000": "5,000 trees",
}
EXACT, REFUSED, NONE = "exact", "refused", "–"


def boosted_leaf(leaf):
    return {"gamma": 1e9} if leaf else {}


def as_they_are(rows):
    return rows


class Cell(NamedTuple):
    """What is expected where it is not EXACT."""

    condition: str
    outcome: str  # REFUSED or NONE
    why: str
    says: str = ""  # what the error has in it


@dataclass(frozen=True)
class Kind:
    """How to train one kind of model. `fit(X, y, trees, leaf)` trains on numbers, with single leaves
    where `leaf`; `fit_table(frame, y)` on a table with the category column "k". `rows(X)` and
    `table_rows(frame)` make new ones of it as the library takes them."""

    name: str
    fit: Callable
    fit_table: Callable | None = None
    cells: tuple[Cell, ...] = ()
    rows: Callable = as_they_are
    table_rows: Callable = as_they_are

    def cell(self, condition):
        """What is expected, and why where it is not read."""
        for cell in self.cells:
            if cell.condition == condition:
                return cell
        if condition in ("categories", "unseen") and self.fit_table is None:
            return Cell(condition, NONE, "the library takes numbers only")
        return Cell(condition, EXACT, "")


# ---- how each is trained ---------------------------------------------------------------------


def xgb(**options):
    def fit(X, y, trees, leaf):
        model = xgboost.XGBClassifier(
            n_estimators=trees, max_depth=3, **options, **boosted_leaf(leaf)
        )
        return model.fit(X, y)

    return fit


def dart(X, y, trees, leaf):
    """Training looks at all trees before each new one: more than ten are ten, many times over."""
    model = xgb(booster="dart", rate_drop=0.2)(X, y, min(trees, 10), leaf)
    times = trees // 10
    if times > 1:
        document = json.loads(model.get_booster().save_raw("json"))
        booster = document["learner"]["gradient_booster"]
        forest = booster["gbtree"]["model"]
        booster["weight_drop"] *= times
        forest["tree_info"] *= times
        forest["trees"] = [{**tree, "id": i} for i, tree in enumerate(forest["trees"] * times)]
        forest["iteration_indptr"] = list(range(trees + 1))
        forest["gbtree_model_param"]["num_trees"] = str(trees)
        model.load_model(bytearray(json.dumps(document).encode()))
    return model


def xgb_table(**options):
    def fit(frame, y):
        model = xgboost.XGBClassifier(
            n_estimators=10, max_depth=3, enable_categorical=True, max_cat_to_onehot=2, **options
        )
        return model.fit(frame, y)

    return fit


def lgbm_model(trees=10, leaf=False, **options):
    options["min_child_samples"] = 10**6 if leaf else 3
    return lightgbm.LGBMClassifier(
        n_estimators=trees, num_leaves=5, verbose=-1, cat_smooth=1, n_jobs=1, **options
    )


def lgbm(**options):
    return (
        lambda X, y, trees, leaf: lgbm_model(trees, leaf, **options).fit(X, y),
        lambda frame, y: lgbm_model(**options).fit(frame, y),
    )


def cat(**options):
    def make(trees, leaf, **more):
        options_ = {**options, **({"min_data_in_leaf": 10**6} if leaf else {}), **more}
        return catboost.CatBoostClassifier(
            iterations=trees, verbose=0, allow_writing_files=False, thread_count=1, **options_
        )

    return lambda X, y, trees, leaf: make(trees, leaf, depth=3).fit(X, y), lambda frame, y: make(
        10, False, cat_features=["k"], one_hot_max_size=2
    ).fit(frame, y)


def repeated(model, times):
    """A fitted scikit-learn ensemble with its trees that many times: quicker than training them."""
    if hasattr(model, "_predictors"):
        model._predictors = model._predictors * times
        return model
    if isinstance(model.estimators_, np.ndarray):
        model.estimators_ = np.tile(model.estimators_, (times, 1))
        model.n_estimators_ = len(model.estimators_)
        return model
    model.estimators_ = model.estimators_ * times
    model.n_estimators = len(model.estimators_)
    if hasattr(model, "estimators_features_"):
        model.estimators_features_ = model.estimators_features_ * times
    if hasattr(model, "estimator_weights_"):
        model.estimator_weights_ = np.tile(model.estimator_weights_[:10], times)
    return model


def sklearn(make):
    def fit(X, y, trees, leaf):
        model = make(min(trees, 10), leaf).fit(X, y)
        return repeated(model, trees // 10) if trees > 10 else model

    return fit


def stub(leaf, **options):
    return DecisionTreeClassifier(min_samples_split=10**6 if leaf else 2, random_state=0, **options)


def forest(kind):
    return sklearn(
        lambda trees, leaf: kind(trees, min_samples_split=10**6 if leaf else 2, random_state=0)
    )


def hist(trees, leaf):
    return HistGradientBoostingClassifier(
        max_iter=trees, min_samples_leaf=10**6 if leaf else 5, early_stopping=False
    )


def named(X):
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])


def as_text(frame):
    return frame.assign(k=frame["k"].astype(str))


def ydf_kind(name, learner, **options):
    """YDF goes by name, and takes categories as text."""

    def labelled(frame, y):
        return frame.assign(label=np.where(y, "yes", "no"))

    def fit(X, y, trees, leaf):
        options_ = {"num_trees": trees, "max_depth": 4, **options}
        if leaf:
            options_["min_examples"] = 10**6
        return learner(label="label", **options_).train(labelled(named(X), y))

    def fit_table(frame, y):
        features = [*"ab", ("k", ydf.Semantic.CATEGORICAL)]
        model = learner(label="label", num_trees=10, features=features, **options)
        return model.train(labelled(as_text(frame), y))

    return Kind(name, fit, fit_table, rows=named, table_rows=as_text)


def treelite_fit(X, y, trees, leaf):
    return treelite.frontend.from_xgboost(xgb()(X, y, trees, leaf).get_booster())


def treelite_table(frame, y):
    kinds = ["q", "q", "c"]
    matrix = xgboost.DMatrix(codes(frame), y, feature_types=kinds, enable_categorical=True)
    options = {"objective": "binary:logistic", "max_cat_to_onehot": 1}
    return treelite.frontend.from_xgboost(xgboost.train(options, matrix, 10))


def codes(frame):
    return np.column_stack([frame["a"], frame["b"], frame["k"].cat.codes]).astype(np.float64)


def onnx_fit(X, y, trees, leaf):
    rows = np.nan_to_num(X).astype(np.float32)
    model = sklearn(
        lambda n, leaf: GradientBoostingClassifier(
            n_estimators=n, max_depth=2, min_samples_split=10**6 if leaf else 2
        )
    )(rows, y, trees, leaf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_onnx(model, rows[:1], options={"zipmap": False})


def onnx_table(frame, y):
    return classifier(0, modes=("BRANCH_EQ",))  # how converters write a category


def pipeline_fit(X, y, trees, leaf):
    return make_pipeline(StandardScaler(), lgbm_model(trees, leaf)).fit(X, y)


def pipeline_table(frame, y):
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["k"]), remainder="passthrough"
    )
    return make_pipeline(encode, lgbm_model()).fit(frame, y)


NO_NAN = Cell("NaN", REFUSED, "the library refuses missing values", "missing value")
NO_INF = Cell("inf", REFUSED, "the library refuses infinities", "infinit")
NO_UNSEEN = Cell(
    "unseen",
    REFUSED,
    "as XGBoost means to do; its versions 3.1 and 3.2 may take a neighbour instead",
    "'k'",
)
NO_CATEGORIES = "XGBoost grows no such trees on categories"
OF_CLASSES = {
    "XGBoost, three classes": (NO_UNSEEN,),
    "XGBoost, three classes, one tree for all": tuple(
        Cell(condition, NONE, NO_CATEGORIES) for condition in ("categories", "unseen")
    ),
    "CatBoost symmetric, three classes": (Cell("leaf", NONE, "CatBoost makes none"),),
}
KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "XGBoost gbtree",
            xgb(),
            xgb_table(),
            (NO_UNSEEN,),
        ),
        Kind(
            "XGBoost dart",
            dart,
            xgb_table(booster="dart", rate_drop=0.2),
            (NO_UNSEEN,),
        ),
        Kind("LightGBM gbdt", *lgbm()),
        Kind("LightGBM rf", *lgbm(boosting_type="rf", subsample=0.5, subsample_freq=1)),
        Kind(
            "CatBoost symmetric",
            *cat(),
            (Cell("leaf", NONE, "CatBoost makes none"),),
        ),
        Kind("CatBoost depthwise", *cat(grow_policy="Depthwise")),
        Kind("random forest", forest(RandomForestClassifier), None, (NO_INF,)),
        Kind("extra trees", forest(ExtraTreesClassifier), None, (NO_INF,)),
        Kind(
            "gradient boosting",
            sklearn(
                lambda trees, leaf: GradientBoostingClassifier(
                    n_estimators=trees, min_samples_split=10**6 if leaf else 2
                )
            ),
            None,
            (NO_NAN, NO_INF),
        ),
        Kind(
            "hist gradient boosting",
            sklearn(hist),
            lambda frame, y: hist(10, False).fit(frame, y),
        ),
        Kind(
            "bagging of trees",
            sklearn(lambda trees, leaf: BaggingClassifier(stub(leaf), trees, random_state=0)),
            None,
            (NO_INF,),
        ),
        Kind(
            "AdaBoost of trees",
            sklearn(
                lambda trees, leaf: AdaBoostClassifier(
                    stub(leaf, max_depth=2), n_estimators=trees, random_state=0
                )
            ),
            None,
            (NO_NAN, NO_INF),
        ),
        ydf_kind("YDF boosted trees", ydf.GradientBoostedTreesLearner, validation_ratio=0.0),
        ydf_kind("YDF random forest", ydf.RandomForestLearner),
        Kind("Treelite", treelite_fit, treelite_table, table_rows=codes),
        Kind(
            "ONNX",
            onnx_fit,
            onnx_table,
            tuple(
                Cell(condition, REFUSED, "splits by == are refused", "'=='")
                for condition in ("categories", "unseen")
            ),
        ),
        Kind(
            "Pipeline (scaler, encoder)",
            pipeline_fit,
            pipeline_table,
            (Cell("inf", REFUSED, "StandardScaler refuses infinities", "infinit"),),
        ),
        *(Kind(*how, OF_CLASSES.get(how[0], ())) for how in class_kinds.trained()),
    )
}


# ---- the table -------------------------------------------------------------------------------


@cache
def table():
    """The matrix as Markdown, with a note for every cell that is not exact."""
    notes, lines = [], []
    lines.append("| model | " + " | ".join(CONDITIONS) + " |")
    lines.append("|---" * (len(CONDITIONS) + 1) + "|")
    for kind in KINDS.values():
        shown = []
        for condition in CONDITIONS:
            _, outcome, why, _ = kind.cell(condition)
            if outcome == EXACT:
                shown.append("✓")
                continue
            if why not in notes:
                notes.append(why)
            mark = "✗" if outcome == REFUSED else NONE
            shown.append(f"{mark} {notes.index(why) + 1}")
        lines.append(f"| {kind.name} | " + " | ".join(shown) + " |")
    lines.append("")
    lines += [f"{i}. {note}" for i, note in enumerate(notes, 1)]
    meaning = [f"- **{name}**: {text}" for name, text in CONDITIONS.items()]
    return "\n".join([*lines, "", *meaning]) + "\n"


def write(path=ROOT / "docs" / "models.md"):
    """Put the table into the page."""
    text = path.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(before + BEGIN + table() + END + after)


if __name__ == "__main__":
    write()
