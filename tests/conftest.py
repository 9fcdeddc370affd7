"""Shared fixtures: UCI Adult as the trainers take it, data of random numbers, small models."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before the trainers load: their threads spin on busy cores

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import settings

from qwyc.datasets import load_adult
from trained import QUIET, make_data

# The same examples in every run, so that a run says what the next one will. HYPOTHESIS_PROFILE=default
# draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def to_frame(table, like=None):
    """A pandas frame with category columns; `like` gives the categories."""
    frame = pd.DataFrame(table.columns)
    for name in frame.columns:
        if table.columns[name].dtype == object:
            known = sorted({v for v in (like or table).columns[name] if v is not None})
            frame[name] = pd.Categorical(frame[name], categories=known)
    return frame


@pytest.fixture(scope="session")
def adult():
    """(frame, labels, test frame, test labels) with missing values and categories."""
    train, test = load_adult("train"), load_adult("test")
    return to_frame(train), train.label, to_frame(test, like=train), test.label


@pytest.fixture(scope="session")
def adult_codes():
    """The same as float32 matrices: categories as codes, missing as NaN."""
    train, test = load_adult("train"), load_adult("test")
    return train.codes(), train.label, test.codes(like=train), test.label


@pytest.fixture
def toy():
    """600 rows, 6 columns, labels that a few trees can learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)).astype(np.float32)
    return X, ((X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=600)) > 0).astype(int)


@pytest.fixture(scope="module")
def data():
    """(600, 6) with missing values and category codes, and labels."""
    return make_data()


@pytest.fixture(scope="module")
def small_xgboost(data):
    return xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(*data)


@pytest.fixture(scope="module")
def small_lightgbm(data):
    model = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=7, **QUIET)
    return model.fit(*data, categorical_feature=[2, 3])
