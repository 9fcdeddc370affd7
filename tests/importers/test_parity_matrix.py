"""Every cell of the parity matrix: random models and rows, label for label and score for score."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinds
import qwyc
from kinds import CONDITIONS, EXACT, KINDS, MANY, NONE, REFUSED
from qwyc import importers
from sklearn_parity import around_thresholds

ONCE = ("5,000", "categories", "unseen")  # conditions that are not repeated with other seeds
COLOURS = list("pqrstuvw")


def numbers(rng, rows=120, missing=0.0):
    """(rows, 5) on a grid, one column constant; and labels that a few splits can learn."""
    X = rng.normal(size=(rows, 5)).round(int(rng.integers(0, 3)))
    X[:, 3] = rng.integers(0, 4, rows)
    X[:, 4] = 2.5
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows) / 2 > 0.2).astype(int)
    y[:4] = [0, 1, 0, 1]
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def table(rng, rows=240, colours=COLOURS):
    frame = pd.DataFrame(rng.normal(size=(rows, 2)).round(1), columns=list("ab"))
    colour = rng.choice(len(colours), rows)
    frame["k"] = pd.Categorical(np.array(colours)[colour], categories=colours)
    return frame, (frame["a"] + 2 * (colour % 3 == 0) > 0.7).astype(int).to_numpy()


def compare(model, rows):
    """Read the model, and hold all decisions and scores to its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = qwyc.read_model(model)
        score = ensemble.score_full(rows)
        answer = importers.open_model(model).predict_live(ensemble.sample(rows))
    labels = ensemble.classes[ensemble.target.decide(score).astype(int)]
    np.testing.assert_array_equal(labels, answer.labels)
    if answer.tolerance:
        np.testing.assert_allclose(score, answer.scores, rtol=answer.tolerance, atol=1e-12)
    else:
        np.testing.assert_array_equal(score, answer.scores)
    return ensemble


def fit(kind, X, y, trees=10, leaf=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.fit(X, y, trees, leaf)


def fit_table(kind, frame, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.fit_table(frame, y)


def run(kind, condition, seed):
    """One cell once; raises where the cell is refused."""
    rng = np.random.default_rng(seed)
    if condition in ("categories", "unseen"):
        frame, y = table(rng)
        model = fit_table(kind, frame, y)
        rows, _ = table(rng, colours=[*COLOURS, "new"] if condition == "unseen" else COLOURS)
        return compare(model, kind.table_rows(rows))
    missing = 0.15 if condition == "NaN" else 0.0
    exact = kind.cell(condition).outcome == EXACT  # otherwise the library would not train either
    X, y = numbers(rng, missing=missing if exact else 0.0)
    trees = {"one tree": 1, "5,000": MANY}.get(condition, 10)
    model = fit(kind, X, y, trees, condition == "leaf")
    new, _ = numbers(rng, rows=200, missing=missing)
    if condition == "inf":
        new[rng.random(new.shape) < 0.1] = rng.choice([np.inf, -np.inf])
    if condition in ("float32", "float64"):
        read = qwyc.read_model(model)
        if read.transform is None:  # otherwise thresholds are on what a pipeline makes of X
            new = np.concatenate([new, around_thresholds(read, X)])
        new = new.astype(condition) + (0 if condition == "float32" else 1e-9)
    if condition == "constant":
        new[:, 4] += rng.normal(size=len(new))  # trained on one value, then others
    ensemble = compare(model, kind.rows(new))
    if condition == "leaf":
        assert (np.diff(ensemble.base_models.trees.node_begin) == 0).any()
    if condition == "one tree":
        assert ensemble.n_models == 1
    if condition == "5,000":
        assert ensemble.n_models == MANY
    return ensemble


CELLS = [(kind, condition) for kind in KINDS for condition in CONDITIONS]


def cells(outcome):
    chosen = [(k, c) for k, c in CELLS if KINDS[k].cell(c).outcome == outcome]
    return pytest.mark.parametrize(("name", "condition"), chosen)


@cells(EXACT)
def test_what_is_read_is_exact(name, condition):
    kind = KINDS[name]
    if condition in ONCE:
        assert run(kind, condition, seed=1) is not None
        return

    @settings(max_examples=2, deadline=None, database=None, derandomize=True)
    @given(seed=st.integers(0, 2**32 - 1))
    def any_model(seed):
        assert run(kind, condition, seed) is not None

    any_model()


@cells(REFUSED)
def test_what_is_refused_is_refused_clearly(name, condition):
    """By qwyc, with an error of its own."""
    kind = KINDS[name]
    with pytest.raises((qwyc.InputError, qwyc.ModelError), match=kind.cell(condition).says):
        run(kind, condition, seed=0)


def test_the_page_has_the_table_that_the_tests_make():
    page = (kinds.ROOT / "docs" / "models.md").read_text()
    assert kinds.BEGIN + kinds.table() + kinds.END in page, "run `python tests/support/kinds.py`"


def test_every_cell_is_accounted_for():
    for name, condition in CELLS:
        _, outcome, why, says = KINDS[name].cell(condition)
        assert outcome in (EXACT, REFUSED, NONE)
        assert bool(why) == (outcome != EXACT)
        assert bool(says) == (outcome == REFUSED)
