"""The models and the rows: UCI Adult, with a part for training, one for optimising, one for testing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from qwyc.datasets import load_adult

from . import peers
from .cache import Trained, trained
from .peers import Peer
from .sizes import Sizes

TRAINING_ROWS = 16_000  # of 32,561; the others are for optimising
LEARNING_RATE = 0.05

Prepare = Callable[[Trained, int], Peer]


@dataclass(frozen=True)
class Case:
    """A model, rows that it has not seen and who evaluates it."""

    name: str
    title: str
    trained: Trained
    sample: Any  # (16,561, n_features) for optimising
    test: Any  # (16,281, n_features) unseen by model and policy
    own: Any  # (16,281,) the model's own decisions, True for positive
    library: str  # whose model it is, as named among the peers
    contestants: Sequence[Prepare]


@cache
def adult(missing: float = np.nan) -> tuple[Any, Any, Any]:
    """Rows (32,561, 14) float32 with text as codes, labels, and test rows (16,281, 14)."""
    train, test = load_adult("train"), load_adult("test")
    rows, test_rows = train.codes(), test.codes(like=train)
    return np.nan_to_num(rows, nan=missing), train.label, np.nan_to_num(test_rows, nan=missing)


def categorical() -> list[int]:
    """Which columns are categories."""
    kinds = load_adult("train").feature_types
    return [i for i, kind in enumerate(kinds) if kind == "c"]


def training_part() -> tuple[Any, Any]:
    """The rows that models are trained on, and their labels."""
    rows, label, _ = adult()
    return rows[:TRAINING_ROWS], label[:TRAINING_ROWS]


# ---- training; what a model is called in the cache is made from these names and settings ----------


def train_xgboost(trees: int, depth: int, learning_rate: float, native: bool = False) -> Any:
    """XGBoost; `native` categories are what ONNX, Treelite and TL2cgen do not all read."""
    xgboost, _ = peers.library("xgboost", "xgboost-cpu")
    kinds = load_adult("train").feature_types if native else None
    model = xgboost.XGBClassifier(
        n_estimators=trees,
        max_depth=depth,
        learning_rate=learning_rate,
        enable_categorical=native,
        feature_types=kinds,
    )
    return model.fit(*training_part())


def train_lightgbm(trees: int, leaves: int, native: bool = False) -> Any:
    """LightGBM."""
    lightgbm, _ = peers.library("lightgbm")
    model = lightgbm.LGBMClassifier(
        n_estimators=trees,
        num_leaves=leaves,
        learning_rate=LEARNING_RATE,
        num_threads=1,  # more would spin on a busy machine
        verbose=-1,
    )
    return model.fit(*training_part(), categorical_feature=categorical() if native else "auto")


def train_catboost(trees: int, depth: int) -> Any:
    """CatBoost, all columns as numbers."""
    catboost, _ = peers.library("catboost")
    model = catboost.CatBoostClassifier(
        iterations=trees,
        depth=depth,
        learning_rate=LEARNING_RATE,
        verbose=False,
        allow_writing_files=False,
        random_seed=0,
    )
    return model.fit(*training_part())


def train_ydf(trees: int, depth: int) -> bytes:
    """YDF's gradient boosted trees, all columns as numbers; as bytes, since it does not like pickles."""
    ydf, _ = peers.library("ydf")
    rows, label = training_part()
    learner = ydf.GradientBoostedTreesLearner(
        label="label",
        num_trees=trees,
        max_depth=depth,
        shrinkage=LEARNING_RATE,
        early_stopping="NONE",
        validation_ratio=0.0,
    )
    columns = {f"f{i}": rows[:, i] for i in range(rows.shape[1])}
    return learner.train(columns | {"label": label}, verbose=0).serialize()


def train_forest(trees: int, depth: int) -> Any:
    """scikit-learn's random forest, missing values as -1."""
    ensemble, _ = peers.library("sklearn.ensemble", "scikit-learn")
    rows, label, _ = adult(missing=-1.0)
    model = ensemble.RandomForestClassifier(trees, max_depth=depth, n_jobs=-1, random_state=0)
    return model.fit(rows[:TRAINING_ROWS], label[:TRAINING_ROWS])


# ---- the cases ------------------------------------------------------------------------------------


def _case(
    name: str, title: str, model: Trained, contestants: Sequence[Prepare], missing: float = np.nan
) -> Case:
    rows, _, test = adult(missing)
    owner = contestants[0](model, 1)
    assert owner.batch is not None
    own = owner.positive(owner.batch(owner.form(test)))
    return Case(name, title, model, rows[TRAINING_ROWS:], test, own, owner.name, contestants)


def xgboost_case(sizes: Sizes) -> Case:
    """The model that everyone can read."""
    model = trained(train_xgboost, trees=sizes.trees, depth=5, learning_rate=LEARNING_RATE)
    contestants = (peers.xgboost, peers.treelite, peers.tl2cgen, peers.onnx_runtime)
    return _case("xgboost", f"XGBoost, {sizes.trees} trees of depth 5", model, contestants)


def lightgbm_case(sizes: Sizes) -> Case:
    """LightGBM; `pred_early_stop` joins once it is known what it has to be matched with."""
    model = trained(train_lightgbm, trees=sizes.trees, leaves=31)
    contestants = (
        peers.lightgbm,
        peers.lightgbm_c,
        peers.treelite,
        peers.tl2cgen,
        peers.onnx_runtime,
    )
    return _case("lightgbm", f"LightGBM, {sizes.trees} trees of 31 leaves", model, contestants)


def catboost_case(sizes: Sizes) -> Case:
    """CatBoost's own model."""
    model = trained(train_catboost, trees=sizes.trees, depth=6)
    return _case("catboost", f"CatBoost, {sizes.trees} trees of depth 6", model, (peers.catboost,))


def ydf_case(sizes: Sizes) -> Case:
    """YDF's own model."""
    ydf, _ = peers.library("ydf")
    content = trained(train_ydf, trees=sizes.trees, depth=6)
    model = Trained(content.key, ydf.deserialize_model(content.model))
    return _case("ydf", f"YDF, {sizes.trees} trees of depth 6", model, (peers.ydf,))


def forest_case(sizes: Sizes) -> Case:
    """A random forest: deep trees, hundreds of thousands of nodes."""
    model = trained(train_forest, trees=sizes.trees, depth=sizes.forest_depth)
    contestants = (peers.sklearn, peers.treelite, peers.tl2cgen, peers.onnx_runtime)
    title = f"Random forest, {sizes.trees} trees of depth {sizes.forest_depth}"
    return _case("forest", title, model, contestants, missing=-1.0)


def xgboost_categories_case(sizes: Sizes) -> Case:
    """XGBoost with native categories."""
    model = trained(
        train_xgboost, trees=sizes.trees, depth=5, learning_rate=LEARNING_RATE, native=True
    )
    title = f"XGBoost with native categories, {sizes.trees} trees of depth 5"
    return _case("xgboost-categories", title, model, (peers.xgboost, peers.treelite))


def lightgbm_categories_case(sizes: Sizes) -> Case:
    """LightGBM with native categories."""
    model = trained(train_lightgbm, trees=sizes.trees, leaves=31, native=True)
    title = f"LightGBM with native categories, {sizes.trees} trees of 31 leaves"
    return _case("lightgbm-categories", title, model, (peers.lightgbm, peers.treelite))


CASES: dict[str, Callable[[Sizes], Case]] = {
    "xgboost": xgboost_case,
    "lightgbm": lightgbm_case,
    "forest": forest_case,
    "catboost": catboost_case,
    "ydf": ydf_case,
    "xgboost-categories": xgboost_categories_case,
    "lightgbm-categories": lightgbm_categories_case,
}
