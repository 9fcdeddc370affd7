"""Models that were trained on data frames, their policies, and held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc.datasets import load_adult

from .. import peers
from ..batches.cases import read_table
from ..cache import Trained, cached_file, trained
from ..contest import enlarged
from .worker import ARRAY, FLOAT_FORMS, TEXT_FORMS, with_categories

ALPHA = 0.005
UNKNOWN = "?"  # in place of a missing text, which not all libraries take
PARTS = {"adult": (16_000, 16_561), "floats": (16_000, 16_561), "census": (60_000, 60_000)}
TITLES = {
    "adult": "UCI Adult, 8 of 14 columns are text",
    "floats": "UCI Adult, all columns float64",
    "census": "UCI Census-Income, 33 of 40 columns are text",
}
LIBRARIES = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "sklearn": "scikit-learn, OrdinalEncoder and HistGradientBoosting",
}


@dataclass(frozen=True)
class Data:
    """Columns of numbers and text, (N,) each; which of them are text; and labels."""

    train: dict[str, Any]
    label: Any
    test: dict[str, Any]
    categories: dict[str, list[str]]

    def part(self, begin: int, end: int) -> Any:
        """Some training rows as a pandas frame with categories."""
        pandas, _ = peers.library("pandas")
        frame = pandas.DataFrame({name: values[begin:end] for name, values in self.train.items()})
        return with_categories(frame, self.categories)


@cache
def data(name: str) -> Data:
    """One of `TITLES`."""
    if name == "census":
        train = read_table("census_income_kdd_train.parquet")
        test = read_table("census_income_kdd_test.parquet")
        order = np.random.default_rng(0).permutation(len(train["label"]))
        train = {column: values[order] for column, values in train.items()}
        label = train.pop("label").astype(int)
        del test["label"]
        return with_text(train, label, test)
    adult, held_out = load_adult("train"), load_adult("test")
    if name == "floats":
        names = list(adult.columns)
        both = [adult.codes(), held_out.codes(like=adult)]
        train, test = (
            {column: rows[:, i].astype(float) for i, column in enumerate(names)} for rows in both
        )
        return Data(train, adult.label, test, {})
    return with_text(dict(adult.columns), adult.label, dict(held_out.columns))


def with_text(train: dict[str, Any], label: Any, test: dict[str, Any]) -> Data:
    """Missing text is a text of its own, and so is one that the training rows do not have."""
    categories = {}
    for name, values in train.items():
        if values.dtype == object:
            known = np.array([x if isinstance(x, str) else UNKNOWN for x in values], object)
            categories[name] = sorted({*known, UNKNOWN})
            seen = set(categories[name])
            train[name] = known
            test[name] = np.array([x if x in seen else UNKNOWN for x in test[name]], object)
    return Data(train, label, test, categories)


def train_on_frame(library: str, name: str, trees: int) -> Any:
    """A model of one of `LIBRARIES`, on one thread."""
    source = data(name)
    n, text = PARTS[name][0], list(source.categories)
    frame, label = source.part(0, n), source.label[:n]
    if library == "lightgbm":
        lightgbm, _ = peers.library("lightgbm")
        model = lightgbm.LGBMClassifier(
            n_estimators=trees, learning_rate=0.05, num_threads=1, verbose=-1
        )
    elif library == "xgboost":
        xgboost, _ = peers.library("xgboost", "xgboost-cpu")
        model = xgboost.XGBClassifier(
            n_estimators=trees, max_depth=5, learning_rate=0.1, enable_categorical=True, n_jobs=1
        )
    elif library == "catboost":
        catboost, _ = peers.library("catboost")
        model = catboost.CatBoostClassifier(
            iterations=trees, depth=6, learning_rate=0.1, cat_features=text, one_hot_max_size=1_000,
            max_ctr_complexity=0, thread_count=1, verbose=False, allow_writing_files=False,
        )  # fmt: skip
    else:
        from sklearn.compose import make_column_transformer
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OrdinalEncoder

        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        columns = make_column_transformer((encoder, text), remainder="passthrough")
        model = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=trees))
        frame = frame.astype(dict.fromkeys(text, object))
    return model.fit(frame, label)


@dataclass(frozen=True)
class Recipe:
    """How a case is made."""

    data: str
    library: str
    trees: int

    @property
    def title(self) -> str:
        return f"{TITLES[self.data]}; {LIBRARIES[self.library]}, {self.trees} trees"

    @property
    def forms(self) -> tuple[str, ...]:
        """Kinds of frames. Arrays of text are for models that take codes."""
        if self.data == "floats":
            return FLOAT_FORMS
        takes_codes = self.library in ("lightgbm", "xgboost")
        return TEXT_FORMS if takes_codes else tuple(form for form in TEXT_FORMS if form != ARRAY)


@dataclass(frozen=True, eq=False)
class Case:
    """A classifier in a file, the model that it was made from, and rows that neither has seen."""

    recipe: Recipe
    file: Path  # .qwyc
    model: Trained
    rows: dict[str, Any]  # columns, (N,) each
    categories: dict[str, list[str]]


def recipes(quick: bool) -> dict[str, Recipe]:
    """The cases; those of a quick run have 20 trees and need no other data."""
    trees = 20 if quick else 200
    pairs = [("floats", "xgboost"), *(("adult", library) for library in LIBRARIES)]
    if not quick:
        pairs += [("census", library) for library in LIBRARIES]
    return {f"{name}-{library}": Recipe(name, library, trees) for name, library in pairs}


def make(recipe: Recipe, n_rows: int) -> Case:
    """Train, optimise and draw rows, or take what an earlier run has kept."""
    source = data(recipe.data)
    model = trained(
        train_on_frame, library=recipe.library, name=recipe.data, trees=recipe.trees
    )  # fmt: skip
    n_train, n_sample = PARTS[recipe.data]

    def write(path: Path) -> None:
        sample = source.part(n_train, n_train + n_sample)
        if recipe.library == "sklearn":
            sample = sample.astype(dict.fromkeys(source.categories, object))
        options: dict[str, Any] = {"threads": 1, "progress": False, "evaluation": "quit"}
        # Census-Income has few distinct rows: people who are alike in all columns, each drawn for itself.
        repeats = "independent" if recipe.data == "census" else "together"
        fast = qwyc.optimize(model.model, sample, alpha=ALPHA, repeats=repeats, **options)
        if recipe.library == "sklearn":
            fast = fast.without_transform()  # files hold no code
        fast.save(path)

    file = cached_file(f"frames-{model.key}.qwyc", write)
    drawn = enlarged(np.arange(len(next(iter(source.test.values())))), n_rows)
    rows = {name: values[drawn] for name, values in source.test.items()}
    return Case(recipe, file, model, rows, source.categories)
