"""Exported C on trained models of every library that qwyc reads, with and without categories."""

from __future__ import annotations

import warnings
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pytest

import qwyc
from exported import MANY_ROWS, exported, odd_rows, with_random_policy
from kinds import EXACT, KINDS
from qwyc.errors import ModelError

COLOURS = list("pqrstuvw")


def numbers(seed, missing, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(1)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) / 2 > 0.2).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def table(seed, n=300):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)).round(1), columns=list("ab"))
    colour = rng.choice(len(COLOURS), n)
    frame["k"] = pd.Categorical(np.array(COLOURS)[colour], categories=COLOURS)
    return frame, (frame["a"] + 2 * (colour % 3 == 0) > 0.7).astype(int).to_numpy()


def read(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qwyc.read_model(model)


def files_of(folder, ensemble, given):
    """The C code takes rows as the ensemble makes them of what is given."""
    rows = np.ascontiguousarray(ensemble.rows(given)).astype(ensemble.schema.dtype)
    plain = replace(
        ensemble,
        schema=replace(ensemble.schema, arrays_hold_values=False, by_name=False, categories={}),
    )
    return exported(folder, with_random_policy(plain, rows[:300])), rows


def check(folder, ensemble, given):
    files, rows = files_of(folder, ensemble, given)
    decide = files.compiled("-O3")  # where compilers take most liberties
    files.check(decide, rows)
    files.check(decide, odd_rows(ensemble, 500))


def check_every_build(folder, ensemble, given):
    """Half of the rows are data, half are odd."""
    files, rows = files_of(folder, ensemble, given)
    odd = odd_rows(ensemble, MANY_ROWS - len(rows))
    files.check_every_build(np.concatenate([rows, odd]))


TREES = [name for name in KINDS if not name.startswith("Pipeline")]
WITH_CATEGORIES = [n for n in TREES if KINDS[n].cell("categories").outcome == EXACT]


def of_numbers(name, n):
    """A model, and n rows for it."""
    kind = KINDS[name]
    missing = 0.15 if kind.cell("NaN").outcome == EXACT else 0.0
    X, y = numbers(0, missing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind.fit(X, y, 10, False)
    return read(model), kind.rows(X if n == len(X) else numbers(1, missing, n)[0])


def of_categories(name, n):
    """A model, and n rows for it."""
    kind = KINDS[name]
    frame, y = table(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind.fit_table(frame, y)
    return read(model), kind.table_rows(frame if n == len(frame) else table(1, n)[0])


@pytest.mark.parametrize("name", TREES)
def test_models_of_numbers(tmp_path, name):
    check(tmp_path, *of_numbers(name, 300))


@pytest.mark.parametrize("name", WITH_CATEGORIES)
def test_models_of_categories(tmp_path, name):
    check(tmp_path, *of_categories(name, 300))


@pytest.mark.slow
@pytest.mark.parametrize("name", TREES)
def test_models_of_numbers_in_every_build(tmp_path, name):
    check_every_build(tmp_path, *of_numbers(name, MANY_ROWS // 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_CATEGORIES)
def test_models_of_categories_in_every_build(tmp_path, name):
    check_every_build(tmp_path, *of_categories(name, MANY_ROWS // 2))


def test_lightgbm_takes_zero_for_missing(tmp_path):
    X, y = numbers(1, 0.1)
    X[::3, 0] = 0.0
    model = lightgbm.LGBMClassifier(
        n_estimators=20, num_leaves=7, zero_as_missing=True, verbose=-1, n_jobs=1
    )
    ensemble = read(model.fit(X, y))
    assert (ensemble.base_models.trees.flags & 8).any()
    check(tmp_path, ensemble, X)


def test_pipelines_are_refused_until_their_steps_are_left_out(tmp_path):
    kind = KINDS["Pipeline (scaler, encoder)"]
    X, y = numbers(2, 0.0)
    ensemble = read(kind.fit(X, y, 10, False))
    rows = ensemble.rows(X)
    fast = with_random_policy(replace(ensemble, transform=None), rows)
    with pytest.raises(ModelError, match="without_transform"):
        replace(fast, ensemble=ensemble).export_c(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    assert fast.export_c(tmp_path / "model")[0].exists()
