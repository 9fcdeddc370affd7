"""The two public data sets of the paper, and stand-ins for the other two, as number matrices."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import InputError
from qwyc.datasets import load_adult

from . import standins
from .files import as_matrix, need, read_columns, text_values
from .standins import STAND_INS

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"  # next to a checkout
NOMAO = ("nomao_train.parquet", "nomao_test.parquet")
HOW_TO_GET = (
    "Put nomao_train.parquet and nomao_test.parquet (118 feature columns and `label`, 0 or 1) into a "
    "folder and name it in the environment variable QWYC_DATA, or run where openml.org can be reached."
)

SOURCES = {
    "adult": "UCI Adult",
    "nomao": "UCI Nomao",
    "rw1": "UCI Census-Income (KDD)",
    "rw2": "UCI Covertype, class 2 against the rest",
}


@dataclass(frozen=True, eq=False)
class Data:
    """Rows to train, validate and fit on, and rows that nothing has seen."""

    X: npt.NDArray[np.float32]  # (N, D) text as codes, missing as NaN
    y: npt.NDArray[np.int64]  # (N,) 0 or 1
    X_test: npt.NDArray[np.float32]  # (N_test, D)
    y_test: npt.NDArray[np.int64]  # (N_test,)
    types: tuple[str, ...]  # (D,) "c" for codes, "q" for numbers, as XGBoost writes it
    names: tuple[str, ...]  # (D,)
    validation: npt.NDArray[np.bool_]  # (N,) a fifth of the training rows, to choose settings on
    source: str = ""  # where the rows come from, in words

    def features(self, kept: list[int]) -> Data:
        """The same rows with some of the columns."""
        return replace(
            self,
            X=np.ascontiguousarray(self.X[:, kept]),
            X_test=np.ascontiguousarray(self.X_test[:, kept]),
            types=tuple(self.types[k] for k in kept),
            names=tuple(self.names[k] for k in kept),
        )


def load(name: str, rows: int | None, *, every: bool = False) -> Data:
    """ "adult", "nomao", "rw1" or "rw2"; with `rows`, a random part of that size of the training and test
    rows. `every` keeps all features of "rw1" and "rw2" instead of the strongest.

    With `rows`, all but "adult" are made-up rows where the files are not there; `source` says so."""
    source = SOURCES[name]
    if name in STAND_INS:
        folder, where = _data_folder()
        missing = [file for file in STAND_INS[name].files if not (folder / file).is_file()]
        if missing and rows is None:
            raise InputError(
                f"{where}there is no {' and no '.join(missing)}. {standins.how_to_get(name)}"
            )
        if missing:
            it = STAND_INS[name]
            found = standins.made_up(it.kept, it.positive, rows, missing=name == "rw1")
            source = f"made-up rows in place of {source}"
        else:
            found = standins.read(name, folder, every=every)
    elif name == "nomao" and rows is not None and _nomao_folder() is None:
        found = standins.made_up([f"V{k}" for k in range(1, 21)], 0.71, rows)
        source = f"made-up rows in place of {source}"
    else:
        found = adult() if name == "adult" else nomao()
    X, y, X_test, y_test, types, names = found
    rng = np.random.default_rng(0)
    if rows is not None:
        some = rng.permutation(len(X))[:rows]
        some_test = rng.permutation(len(X_test))[:rows]
        X, y, X_test, y_test = X[some], y[some], X_test[some_test], y_test[some_test]
    validation = np.zeros(len(X), dtype=bool)
    validation[rng.permutation(len(X))[: len(X) // 5]] = True
    if name in STAND_INS:
        X, X_test = standins.order_by_positives(X, y, X_test, types, ~validation)
        types = ["q"] * len(types)
    return Data(X, y, X_test, y_test, tuple(types), tuple(names), validation, source)


def _data_folder() -> tuple[Path, str]:
    """The folder in QWYC_DATA, else the one beside the checkout; and how an error names it."""
    named = os.environ.get("QWYC_DATA")
    return (Path(named), f"QWYC_DATA names {named}, where ") if named else (BESIDE, "")


def adult() -> tuple[Any, ...]:
    """UCI Adult with its predefined split."""
    train, test = load_adult("train"), load_adult("test")
    return (
        train.codes(),
        train.label,
        test.codes(like=train),
        test.label,
        train.feature_types,
        list(train.columns),
    )


def nomao() -> tuple[Any, ...]:
    """UCI Nomao: from the folder in QWYC_DATA, else beside the checkout, else from OpenML."""
    folder = _nomao_folder()
    return _nomao_openml() if folder is None else _nomao_files(folder)


def _nomao_folder() -> Path | None:
    """The folder with Nomao's files; None where QWYC_DATA is not set and none are beside the checkout."""
    named = os.environ.get("QWYC_DATA")
    if named:
        missing = [name for name in NOMAO if not (Path(named) / name).is_file()]
        if missing:
            raise InputError(
                f"QWYC_DATA names {named}, where there is no {' and no '.join(missing)}. {HOW_TO_GET}"
            )
        return Path(named)
    return BESIDE if all((BESIDE / name).is_file() for name in NOMAO) else None


def _nomao_files(folder: Path) -> tuple[Any, ...]:
    train, test = (read_columns(folder / name) for name in NOMAO)
    if set(train) != set(test) or "label" not in train:
        raise InputError(
            f"the Nomao files in {folder} must have the same columns, `label` among them"
        )
    names = [name for name in train if name != "label"]
    known = text_values(train)
    types = ["c" if name in known else "q" for name in names]
    y, y_test = (columns["label"].astype(np.int64) for columns in (train, test))
    return as_matrix(train, names, known), y, as_matrix(test, names, known), y_test, types, names


def _nomao_openml() -> tuple[Any, ...]:
    fetch = need("sklearn.datasets", "scikit-learn").fetch_openml
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of every retry; the error below says it once
            bunch = fetch(name="nomao", version=1, as_frame=False, parser="liac-arff")
    except Exception as error:  # of many kinds: no network, no such page, a damaged download
        raise InputError(f"cannot fetch Nomao from OpenML ({error}). {HOW_TO_GET}") from None
    X = np.asarray(bunch.data, dtype=np.float32)
    target = np.asarray(bunch.target).astype(str)
    y = (target == max(set(target.tolist()))).astype(np.int64)  # "1" and "2": the same place is "2"
    shuffled = np.random.default_rng(0).permutation(len(X))
    n_test = round(0.2 * len(X))
    train, test = shuffled[n_test:], shuffled[:n_test]
    names = [str(name) for name in bunch.feature_names]
    return X[train], y[train], X[test], y[test], ["q"] * X.shape[1], names
