"""Models, policies and held-out rows, made once and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import qwyc

from .. import classes, peers
from ..cache import Trained, cached_file, folder, trained
from ..cases import (
    LEARNING_RATE,
    TRAINING_ROWS,
    adult,
    train_catboost,
    train_forest,
    train_lightgbm,
    train_xgboost,
)
from ..contest import enlarged
from ..peers import LeftOut

ALPHA = 0.005
MADE_UP = 16_000  # rows each for training, optimising and testing
COVERTYPE = (60_000, 40_000, 100_000)  # rows for training, optimising and testing


@dataclass(frozen=True, eq=False)
class Case:
    """A classifier in a file, rows that neither its model nor its policy has seen, and the decisions and
    scores of the library that trained the model."""

    name: str
    title: str
    file: Path  # .qwyc
    full_file: Path | None  # the same, never quitting, if an older version made both
    test_rows: int  # of which `rows` are drawn, each about as often as the others
    rows: Any  # (100,000, n_features) float32
    own: Any  # (100,000,) the library's decisions: 1 for positive, or positions of classes
    score: Any  # (100,000,) the library's scores before the link function, or (100,000, K)


@dataclass(frozen=True)
class Recipe:
    """How a case is made. `parts` gives rows to optimise on and rows to test on."""

    title: str
    model: Callable[[], Trained]
    parts: Callable[[], tuple[Any, Any]]
    score: Callable[[Any, Any], Any]  # of a model and rows
    repeats: str = "together"  # equal rows, as `qwyc.optimize` takes them


# ---- rows -----------------------------------------------------------------------------------------


def adult_parts(missing: float = np.nan) -> tuple[Any, Any]:
    """UCI Adult."""
    rows, _, test = adult(missing)
    return rows[TRAINING_ROWS:], test


def table(file: str, like: str | None = None) -> tuple[Any, Any]:
    """Rows (N, n_features) float32 and labels of a Parquet file in the folder that QWYC_DATA names. Text is
    replaced by its position among the sorted values of the file `like`, or of this file; none is NaN.
    Columns named "aux_..." are no features."""
    columns = read_table(file)
    known = columns if like is None else read_table(like)
    features = [name for name in columns if name != "label" and not name.startswith("aux_")]
    rows = np.empty((len(columns["label"]), len(features)), dtype=np.float32)
    for i, feature in enumerate(features):
        values = columns[feature]
        if values.dtype == object:
            texts = sorted({value for value in known[feature] if value is not None})
            codes = {value: code for code, value in enumerate(texts)}
            values = [codes.get(value, np.nan) for value in values]
        rows[:, i] = values
    return rows, columns["label"].astype(int)


def read_table(name: str) -> dict[str, Any]:
    """The columns of a Parquet file."""
    folder = os.environ.get("QWYC_DATA")
    path = Path(folder or "") / name
    if not folder or not path.is_file():
        raise LeftOut(
            f"there is no {name} in the folder that the environment variable QWYC_DATA names"
        )
    parquet, _ = peers.library("pyarrow.parquet", "pyarrow")
    found = parquet.read_table(path)
    return {column: found[column].to_numpy() for column in found.column_names}


def nomao() -> tuple[Any, Any, Any, Any]:
    """UCI Nomao, 118 features: rows and labels to train on, rows to optimise on, rows to test on."""
    rows, label = table("nomao_train.parquet")
    half = len(rows) // 2
    order = np.random.default_rng(0).permutation(len(rows))
    train, sample = order[:half], order[half:]
    test, _ = table("nomao_test.parquet", like="nomao_train.parquet")
    return rows[train], label[train], rows[sample], test


def covertype() -> tuple[Any, Any, Any, Any]:
    """UCI Covertype, 54 features, class 2 against the rest; parts as in `nomao`."""
    rows, label = table("covertype.parquet")
    order = np.random.default_rng(0).permutation(len(rows))
    train, sample, test = np.split(order[: sum(COVERTYPE)], np.cumsum(COVERTYPE)[:2])
    return rows[train], label[train], rows[sample], rows[test]


def census() -> tuple[Any, Any, Any, Any]:
    """UCI Census-Income (KDD), 40 features, 33 of them text; parts as in `nomao`."""
    rows, label = table("census_income_kdd_train.parquet")
    half = len(rows) // 2
    order = np.random.default_rng(0).permutation(len(rows))
    train, sample = order[:half], order[half:]
    test, _ = table("census_income_kdd_test.parquet", like="census_income_kdd_train.parquet")
    return rows[train], label[train], rows[sample], test


def made_up(features: int) -> tuple[Any, Any, Any, Any]:
    """Normal numbers and a label from a weighted sum, two products and some noise; a fifth of the rows is
    positive. Parts as in `nomao`."""
    rng = np.random.default_rng(features)
    rows = rng.normal(size=(3 * MADE_UP, features)).astype(np.float32)
    weight = rng.normal(size=features) / (1 + np.arange(features))
    signal = rows @ weight + rows[:, 0] * rows[:, 1] - rows[:, 2] * rows[:, 3]
    noisy = signal + 0.1 * signal.std() * rng.normal(size=len(rows))
    label = (noisy > np.quantile(noisy, 0.8)).astype(int)
    train, sample, test = np.split(rows, 3)
    return train, label[:MADE_UP], sample, test


DATA: dict[str, Callable[[], tuple[Any, Any, Any, Any]]] = {
    "nomao": nomao,
    "covertype": covertype,
    "census": census,
    **{f"made-up-{d}": lambda d=d: made_up(d) for d in (29, 300, 1_000)},  # type: ignore[misc]
}


def train_on(data: str, trees: int, depth: int) -> Any:
    """XGBoost on one of `DATA`."""
    xgboost, _ = peers.library("xgboost", "xgboost-cpu")
    rows, label, _, _ = DATA[data]()
    return xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, learning_rate=0.1).fit(
        rows, label
    )


def letters() -> tuple[Any, Any, Any, Any]:
    """16 made-up features and 26 classes, of which each has its place; parts as in `nomao`."""
    rng = np.random.default_rng(26)
    label = rng.integers(26, size=3 * MADE_UP)
    centre = rng.normal(size=(26, 16))
    rows = (centre[label] + 0.8 * rng.normal(size=(len(label), 16))).astype(np.float32)
    train, sample, test = np.split(rows, 3)
    return train, label[:MADE_UP], sample, test


def three_kinds() -> tuple[Any, Any, Any, Any]:
    """UCI Covertype, its two frequent classes and all others as a third."""
    train, label, sample, test = classes.parts(real=True)
    return train, np.minimum(label, 2), sample, test


CLASSES: dict[str, Callable[[], tuple[Any, Any, Any, Any]]] = {
    "covertype": lambda: classes.parts(real=True),
    "three": three_kinds,
    "letters": letters,
}


def train_boosted_classes(data: str, rounds: int, depth: int) -> Any:
    """XGBoost on one of `CLASSES`, a tree for each class in each round."""
    xgboost, _ = peers.library("xgboost", "xgboost-cpu")
    rows, label, _, _ = CLASSES[data]()
    return xgboost.XGBClassifier(
        n_estimators=rounds, max_depth=depth, learning_rate=classes.LEARNING_RATE, n_jobs=1
    ).fit(rows, label)


def train_lightgbm_classes(data: str, rounds: int, leaves: int) -> Any:
    """The same with LightGBM."""
    lightgbm, _ = peers.library("lightgbm")
    rows, label, _, _ = CLASSES[data]()
    return lightgbm.LGBMClassifier(
        n_estimators=rounds, num_leaves=leaves, learning_rate=0.1, n_jobs=1, verbose=-1
    ).fit(rows, label)


# ---- scores of the libraries ----------------------------------------------------------------------


def xgboost_score(model: Any, rows: Any) -> Any:
    return model.predict(rows, output_margin=True)


def lightgbm_score(model: Any, rows: Any) -> Any:
    return model.predict(rows, raw_score=True)


def catboost_score(model: Any, rows: Any) -> Any:
    return model.predict(rows, prediction_type="RawFormulaVal")


def forest_score(model: Any, rows: Any) -> Any:
    return model.predict_proba(rows)[:, 1]


# ---- the cases ------------------------------------------------------------------------------------


def recipes(quick: bool) -> dict[str, Recipe]:
    """The cases; those of a quick run have 20 trees."""

    def boosted(trees: int, depth: int = 5) -> Recipe:
        trees = 20 if quick else trees
        rate = min(LEARNING_RATE, 500 * LEARNING_RATE / trees)
        return Recipe(
            f"UCI Adult, XGBoost, {trees:,} trees of depth {depth}",
            lambda: trained(train_xgboost, trees=trees, depth=depth, learning_rate=rate),
            adult_parts,
            xgboost_score,
        )

    def on(data: str, title: str, repeats: str = "together") -> Recipe:
        trees = 20 if quick else 200
        return Recipe(
            f"{title}, XGBoost, {trees} trees of depth 5",
            lambda: trained(train_on, data=data, trees=trees, depth=5),
            lambda: DATA[data]()[2:],
            xgboost_score,
            repeats,
        )

    def of_classes(data: str, title: str, rounds: int, depth: int = 0, leaves: int = 0) -> Recipe:
        shape = f"depth {depth}" if depth else f"{leaves} leaves"
        library = "XGBoost" if depth else "LightGBM"
        return Recipe(
            f"{title}, {library}, {rounds} rounds of trees of {shape}",
            lambda: (
                trained(train_boosted_classes, data=data, rounds=rounds, depth=depth)
                if depth
                else trained(train_lightgbm_classes, data=data, rounds=rounds, leaves=leaves)
            ),
            lambda: CLASSES[data]()[2:],
            xgboost_score if depth else lightgbm_score,
        )

    if quick:
        return {"adult-xgboost": boosted(20), "made-up-29": on("made-up-29", "29 made-up features")}
    return {
        "adult-xgboost": boosted(200),
        "adult-lightgbm": Recipe(
            "UCI Adult, LightGBM, 300 trees of 31 leaves",
            lambda: trained(train_lightgbm, trees=300, leaves=31),
            adult_parts,
            lightgbm_score,
        ),
        "adult-xgboost-1000": boosted(1_000),
        "adult-xgboost-depth-8": boosted(300, 8),
        "adult-xgboost-depth-12": boosted(300, 12),
        "adult-xgboost-categories": Recipe(
            "UCI Adult with native categories, XGBoost, 500 trees of depth 5",
            lambda: trained(
                train_xgboost, trees=500, depth=5, learning_rate=LEARNING_RATE, native=True
            ),
            adult_parts,
            xgboost_score,
        ),
        "adult-lightgbm-categories": Recipe(
            "UCI Adult with native categories, LightGBM, 500 trees of 31 leaves",
            lambda: trained(train_lightgbm, trees=500, leaves=31, native=True),
            adult_parts,
            lightgbm_score,
        ),
        "adult-catboost": Recipe(
            "UCI Adult, CatBoost, 500 trees of depth 6",
            lambda: trained(train_catboost, trees=500, depth=6),
            adult_parts,
            catboost_score,
        ),
        "adult-forest": Recipe(
            "UCI Adult, random forest, 500 trees of depth 14",
            lambda: trained(train_forest, trees=500, depth=14),
            lambda: adult_parts(-1.0),
            forest_score,
        ),
        "nomao": on("nomao", "UCI Nomao, 118 features", "independent"),
        "covertype": on("covertype", "UCI Covertype, 54 features"),
        "census": on("census", "UCI Census-Income, 40 features", "independent"),
        "made-up-29": on("made-up-29", "29 made-up features"),
        "made-up-300": on("made-up-300", "300 made-up features"),
        "made-up-1000": on("made-up-1000", "1,000 made-up features"),
        **{
            f"classes-{name}": of_classes(data, title, rounds, **shape)
            for name, data, title, rounds, shape in (
                ("500", "covertype", "UCI Covertype, 7 classes", 500, {"depth": 6}),
                ("60", "covertype", "UCI Covertype, 7 classes", 60, {"depth": 6}),
                ("60-depth-8", "covertype", "UCI Covertype, 7 classes", 60, {"depth": 8}),
                ("60-leaves-31", "covertype", "UCI Covertype, 7 classes", 60, {"leaves": 31}),
                ("60-leaves-127", "covertype", "UCI Covertype, 7 classes", 60, {"leaves": 127}),
                ("3", "three", "UCI Covertype, 3 classes", 60, {"depth": 6}),
                ("26", "letters", "26 made-up classes", 60, {"depth": 6}),
            )
        },
    }


FULL = ".full"  # what the names of such files end in
# What an older version runs, whose classifiers both versions read.
OPTIMIZE = """
import pickle, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, qwyc
with open(sys.argv[1], "rb") as file:
    model = pickle.load(file)
options = {"alpha": float(sys.argv[3]), "threads": 1, "progress": False}
for evaluation, to in zip(("full", "quit"), sys.argv[4:], strict=True):
    qwyc.optimize(model, np.load(sys.argv[2]), evaluation=evaluation, **options).save(to)
"""


def make(name: str, recipe: Recipe, n_rows: int, older: str | None = None) -> Case:
    """Train, optimise and draw rows, or take what an earlier run has kept. `older`: the Python of an older
    version of qwyc, which then makes the classifier."""
    sample, test = recipe.parts()
    model = recipe.model()

    def write(path: Path) -> None:
        fast = qwyc.optimize(
            model.model,
            sample,
            alpha=ALPHA,
            repeats=recipe.repeats,
            evaluation="quit",
            threads=1,
            progress=False,
        )
        fast.save(path)

    def write_older(path: Path) -> None:
        rows = path.with_suffix(".npy")
        np.save(rows, sample)
        known = folder() / f"{model.key}.pickle"
        given = [known, rows, ALPHA, path.with_suffix(FULL), path]
        subprocess.run([str(older), "-c", OPTIMIZE, *map(str, given)], check=True)
        rows.unlink()

    if older is None:
        file = cached_file(f"batches-{name}-{model.key}.qwyc", write)
    else:
        by = hashlib.sha256(older.encode()).hexdigest()[:8]
        file = cached_file(f"batches-{name}-{model.key}-by-{by}.qwyc", write_older)
    own, score = model.model.predict(test).astype(int), recipe.score(model.model, test)
    drawn = enlarged(np.arange(len(test)), n_rows)
    rows = np.ascontiguousarray(test[drawn], dtype=np.float32)
    full_file = None if older is None else file.with_suffix(FULL)
    return Case(name, recipe.title, file, full_file, len(test), rows, own[drawn], score[drawn])
