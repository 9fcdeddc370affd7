"""Public rows in place of the paper's Real-world 1 and 2, whose data were never published.

Both have the sizes of the paper's table of data sets. "rw1" is UCI Census-Income (KDD): few positives, and
a predefined split that the rows are drawn from. "rw2" is UCI Covertype, class 2 against the rest: about as
many positives as negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import InputError

from .files import as_matrix, read_columns, text_values

Matrix = npt.NDArray[np.float32]  # (N, D)
Labels = npt.NDArray[np.int64]  # (N,)
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class StandIn:
    """A data set and how many rows are drawn from it."""

    title: str
    files: tuple[str, ...]  # training and test rows, or one file of both
    columns: int  # features in the files
    kept: tuple[str, ...]  # features that are used
    training_rows: int
    test_rows: int
    positive: float  # share of positive labels of made-up rows
    where: str


# The 16 of 40 features with the largest total gain in an XGBoost model of 100 trees of depth 5, trained on
# the training rows without the validation rows. `python -m qwyc_experiments.paper.strongest` computes them.
CENSUS_FEATURES = (
    "age",
    "class_of_worker",
    "industry_code",
    "occupation_code",
    "education",
    "wage_per_hour",
    "marital_status",
    "major_occupation_code",
    "sex",
    "capital_gains",
    "capital_losses",
    "dividends_from_stocks",
    "tax_filer_status",
    "household_and_family_stat",
    "num_persons_worked_for_employer",
    "weeks_worked_in_year",
)
# The ten numbers, the four wilderness areas and the 16 of 40 soil types with the largest total gain in such
# a model.
COVERTYPE_FEATURES = (
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
    "Wilderness_Area1",
    "Wilderness_Area2",
    "Wilderness_Area3",
    "Wilderness_Area4",
    *(f"Soil_Type{k}" for k in (2, 4, 10, 12, 20, 21, 22, 23, 24, 27, 29, 31, 32, 33, 38, 39)),
)

STAND_INS = {
    "rw1": StandIn(
        "Census-Income (KDD)",
        ("census_income_kdd_train.parquet", "census_income_kdd_test.parquet"),
        40,
        CENSUS_FEATURES,
        183_755,
        45_940,
        0.06,
        'UCI "Census-Income (KDD)"',
    ),
    "rw2": StandIn(
        "Covertype, class 2 against the rest",
        ("covertype.parquet",),
        54,
        COVERTYPE_FEATURES,
        83_817,
        20_955,
        0.49,
        'UCI "Covertype"; label 1 is cover type 2',
    ),
}


def how_to_get(name: str) -> str:
    it = STAND_INS[name]
    return (
        f"Put {' and '.join(it.files)} ({it.columns} feature columns and `label`, 0 or 1; from {it.where}) "
        "into a folder and name it in the environment variable QWYC_DATA."
    )


def read(name: str, folder: Path, *, every: bool = False) -> tuple[Any, ...]:
    """Rows drawn with seed 0: X, y, X_test, y_test, types ("c" for text as codes) and names.

    `every` keeps all features instead of the strongest."""
    it = STAND_INS[name]
    tables = [read_columns(folder / file) for file in it.files]
    for file, table in zip(it.files, tables, strict=True):
        wanted = ["label", *it.kept]
        missing = [column for column in wanted if column not in table]
        if missing:
            raise InputError(
                f"{folder / file} has no column {', '.join(missing)}. {how_to_get(name)}"
            )
    names = list(it.kept)
    if every:
        names = [n for n in tables[0] if n != "label" and not n.startswith("aux_")]
    known = {k: v for k, v in text_values(tables[0]).items() if k in names}
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(len(table["label"])) for table in tables]
    n, n_test = it.training_rows, it.test_rows
    if len(tables) == 1:
        train, test = drawn[0][:n], drawn[0][n : n + n_test]
    else:
        train, test = drawn[0][:n], drawn[1][:n_test]
    if len(train) < n or len(test) < n_test:
        found = " and ".join(f"{len(table['label']):,}" for table in tables)
        raise InputError(
            f"{it.title} needs {n:,} training and {n_test:,} test rows; "
            f"{' and '.join(it.files)} in {folder} have {found}"
        )
    X, X_test = (as_matrix(table, names, known) for table in (tables[0], tables[-1]))
    y, y_test = (table["label"].astype(np.int64) for table in (tables[0], tables[-1]))
    types = ["c" if name in known else "q" for name in names]
    return X[train], y[train], X_test[test], y_test[test], types, names


def order_by_positives(
    X: Matrix, y: Labels, X_test: Matrix, types: Sequence[str], used: Mask
) -> tuple[Matrix, Matrix]:
    """Codes of text in rising order of the share of positives among the `used` rows.

    A calibrator of a lattice then starts as a rising line, like that of a number, and may have a keypoint
    at every code. Only `used` rows (N,) count, so that neither validation nor test rows leak into the
    order. A value that these rows do not have is missing: NaN."""
    X, X_test = X.copy(), X_test.copy()
    for column in (i for i, kind in enumerate(types) if kind == "c"):
        codes, label = X[used, column], y[used]
        present = np.unique(codes[~np.isnan(codes)])
        share = [label[codes == code].mean() for code in present]
        ranked = present[np.argsort(share, kind="stable")]
        place = {float(code): float(rank) for rank, code in enumerate(ranked)}
        for rows in (X, X_test):
            rows[:, column] = [place.get(float(code), np.nan) for code in rows[:, column]]
    return X, X_test


def made_up(
    names: Sequence[str], positive: float, rows: int, *, missing: bool = False
) -> tuple[Any, ...]:
    """Rows with these features from a seeded generator, for quick runs without the files.

    A third of the columns are whole numbers, one is missing now and then; the label is a noisy sum of waves
    and products of pairs."""
    rng = np.random.default_rng(0)
    D = len(names)
    X = rng.normal(size=(2 * rows, D))
    waves = np.sin(X * rng.uniform(0.5, 2, D) + rng.uniform(0, 6, D))
    score = waves @ rng.normal(size=D)
    for _ in range(D):
        i, j = rng.choice(D, 2, replace=False)
        score += 2 * rng.normal() * waves[:, i] * waves[:, j]
    noisy = score / score.std() + 0.3 * rng.logistic(size=len(X))
    y = (noisy > np.quantile(noisy, 1 - positive)).astype(np.int64)
    X[:, ::3] = np.floor(3 * X[:, ::3])
    if missing:
        X[rng.random(len(X)) < 0.03, 1] = np.nan
    X = X.astype(np.float32)
    return X[:rows], y[:rows], X[rows:], y[rows:], ["q"] * D, list(names)
