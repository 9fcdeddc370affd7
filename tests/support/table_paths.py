"""Frames decided where they lie, against the same frames converted column by column first."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import qwyc
from forests import classifier_of, random_ensemble, random_rows
from qwyc.classifier import Classifier
from qwyc.errors import InputError
from qwyc.rows import matrix
from qwyc.rows.frames import as_frame, frame_to_matrix
from qwyc.rows.schema import Schema


def converted(X: Any, schema: Schema) -> Any:
    """The matrix of a frame, (N, n_features), without the native reader of tables."""
    with np.errstate(all="ignore"):
        rows = frame_to_matrix(as_frame(X), schema)
        rows[rows == rows.dtype.type(schema.missing)] = np.nan
    matrix.check_special_values(rows, schema)
    return rows


@cache
def _fitted(n_features: int, dtype: str, n_trees: int) -> Any:
    ensemble = random_ensemble(3, n_trees=n_trees, n_features=n_features, dtype=dtype, depth=4)
    policy = qwyc.fit_policy(ensemble.scores(random_rows(3, ensemble)), alpha=0.1)
    return ensemble, policy


def decider(schema: Schema, n_trees: int = 40) -> Classifier:
    """A small classifier whose rows look like this."""
    ensemble, policy = _fitted(schema.n_features, schema.dtype, n_trees)
    return classifier_of(replace(ensemble, schema=schema), policy)


def answer(run: Any) -> Any:
    """Decisions as bytes, or the text of the error that is raised instead."""
    try:
        decided, steps, score = run()
    except InputError as error:
        return str(error)
    return [np.asarray(a).tobytes() for a in (decided.astype(np.int64), steps, score)]


def check_paths(X: Any, schema: Schema, *, threads: int = 1, n_trees: int = 40) -> Any:
    """Both ways give the same labels, steps and score bits, or the same error; returns these."""
    schema = replace(schema)  # the schemas of test modules keep nothing for frames
    fast = decider(schema, n_trees)
    expected = answer(lambda: fast.runner.decide(converted(X, schema), threads=threads))

    def decide() -> Any:
        found = fast.decide(X, threads=threads)
        return found.label, found.steps, found.score

    for _ in range(2):  # the second time with what was kept from the first
        assert answer(decide) == expected
    if not isinstance(expected, str):
        rows = converted(X, schema)
        for c_order in (True, False):
            found = matrix.to_matrix(X, schema, c_order=c_order)
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(found.astype(schema.dtype), rows)
    return expected
