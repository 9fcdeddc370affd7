"""Data to train small models on, small models, and files, whole and damaged."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import xgboost

COLOURS = ("red", "green", "blue", "yellow", "a b", "")
SIZES = (40, 7, 100, -3)
QUIET = {"verbose": -1, "n_jobs": 1}  # of LightGBM


def make_data(seed=0, rows=600, missing=0.1):
    """(rows, 6): two columns of numbers on a grid, two of category codes, one with many zeros, one
    constant; and labels, (rows,) of 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6)).round(1)
    X[:, 2] = rng.integers(0, 40, rows)
    X[:, 3] = rng.integers(0, 5, rows) * 7
    X[rng.random(rows) < 0.5, 4] = 0.0
    X[:, 5] = 3.0
    signal = X[:, 0] * X[:, 1] + 1.5 * (X[:, 2] % 3 == 0) + (X[:, 3] == 7) + (X[:, 4] > 0)
    y = (signal + rng.normal(size=rows) / 2 > 1).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def make_frame(seed=0, rows=700, colours=COLOURS):
    """A pandas frame with categories of text (some missing), of one value and of integers, and
    labels, (rows,) of 0 and 1."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(len(colours), rows)
    size = rng.choice(SIZES, rows)
    a = rng.normal(size=rows).round(1)
    signal = a + 1.5 * np.isin(colour, [1, 2, 4]) - (size == 7) + rng.normal(size=rows) / 2
    colour_column = pd.Series(np.array(colours, dtype=object)[colour])
    colour_column[rng.random(rows) < 0.1] = None
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(rows) < 0.1, np.nan, a),
            "the colour": pd.Categorical(colour_column, categories=list(colours)),
            "flag": rng.random(rows) < 0.5,
            "constant": pd.Categorical(["only"] * rows),
            "size": pd.Categorical(size, categories=list(SIZES)),
            "count": rng.integers(-5, 90, rows).astype(np.int16),
        }
    )
    return frame, (signal > 0.4).astype(int)


def xgboost_document(model):
    """What a model's JSON file holds."""
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    return json.loads(bytes(booster.save_raw("json")))


def named_model(rows, trees):
    """An XGBoost model of four named columns, trained on the first 1,000 rows of a frame, and the frame."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(rows, 4)), columns=list("abcd"))
    some = X[:1000]
    return xgboost.XGBClassifier(n_estimators=trees).fit(some, some["a"] + some["b"] > 0), X


def written(path, content):
    """The path of a file that holds a text, or a document as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode())
    return path


def permuted(frame):
    """The same values with other category codes."""
    return frame.assign(
        **{
            "the colour": frame["the colour"].cat.set_categories(
                frame["the colour"].cat.categories[::-1]
            ),
            "size": frame["size"].cat.set_categories([*SIZES[2:], *SIZES[:2]]),
        }
    )


def as_text(frame):
    """The same values without categorical columns."""
    colours = frame["the colour"].astype(object)
    return frame.assign(
        **{
            "the colour": colours.where(colours.notna(), None),
            "constant": frame["constant"].astype(object),
            "size": frame["size"].astype(int),
        }
    )


def as_float32(X):
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def damaged(content, rng, end=None, cut=150, changed=350):
    """Copies of a file that are cut off, and copies with one to three bytes changed."""
    for length in rng.integers(0, len(content), cut):
        yield content[:length]
    for _ in range(changed):
        copy = bytearray(content)
        for at in rng.integers(0, end or len(content), rng.integers(1, 4)):
            copy[at] = rng.integers(0, 256) if rng.random() < 0.5 else copy[at] ^ 1
        yield bytes(copy)


def read_or_refuse(importer, path, content):
    """ "read" or "refused"; whatever can be read must be sound."""
    from qwyc.errors import ModelError

    path.write_bytes(content)
    try:
        ensemble = importer.read_file(path)
    except ModelError as error:
        return "refused" if str(path) in str(error) else f"does not name the file: {error}"
    if ensemble.schema.n_features < 1000:  # a damaged number may ask for many
        rows = np.zeros((3, ensemble.schema.n_features), dtype=ensemble.schema.dtype)
        if np.isnan(ensemble.base_models.score_full(rows, threads=1)).any():
            return "has a score that is NaN"
    return "read"
