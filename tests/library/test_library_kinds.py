"""libqwyc against Python: decisions, steps and scores of files of every kind, bit for bit."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import qwyc
from class_forests import random_classes, random_policy
from exported import odd_rows, with_random_policy
from forests import random_ensemble, random_rows
from kinds import EXACT, KINDS
from lattices import lattice_rows, random_lattices
from library import CLASSIFIER, ROWS, LibraryError, Loaded
from qwyc.classifier import Classifier
from qwyc.files import classifier_file
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate

COLOURS = list("pqrstuvw")
GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"


def loaded(fast):
    return Loaded.of_bytes(classifier_file.to_bytes(fast))


def same_bits(ours, theirs):
    """All NaN is alike; otherwise every bit counts."""
    ours, theirs = (np.ascontiguousarray(a, dtype=np.float64) for a in (ours, theirs))
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    known = ~np.isnan(theirs)
    np.testing.assert_array_equal(ours[known].view(np.int64), theirs[known].view(np.int64))


def compare(found, expected, classes):
    """Labels by index, steps and scores of the library, and the decisions of Python."""
    label, steps, score = found
    position = {value: k for k, value in enumerate(classes.tolist())}
    np.testing.assert_array_equal(label, [position[v] for v in expected.label.tolist()])
    np.testing.assert_array_equal(steps, expected.steps)
    same_bits(score, expected.score.reshape(score.shape))


def check(fast, rows, saved=None):
    """Hold the library to Python on rows (N, n_features). `saved` is the classifier of the file, where it
    differs from the one that takes codes."""
    model, dtype = loaded(saved or fast), np.dtype(fast.ensemble.schema.dtype)
    rows = np.ascontiguousarray(rows, dtype=dtype)
    decided = fast.decide(rows, unseen="flag")
    kept = np.array([reason is None for reason in decided.reason])
    for row in rows[~kept][:5]:
        with pytest.raises(LibraryError) as error:
            model.decide_each(row[np.newaxis])
        assert error.value.status == ROWS
    if not kept.all():
        with pytest.raises(LibraryError, match=rf"row {int(np.argmin(kept))} has"):
            model.decide(rows)
        # By columns they are read in blocks.
        many = np.concatenate([np.resize(rows[kept], (9_000, rows.shape[1])), rows])
        with pytest.raises(LibraryError, match=rf"row {9_000 + int(np.argmin(kept))} has"):
            model.decide_columns([np.ascontiguousarray(column) for column in many.T])
    rows, classes = rows[kept], fast.ensemble.classes
    assert len(rows) > 20
    expected = fast.decide(rows)
    assert model.number("kind_of") == CLASSIFIER
    wide = np.zeros((len(rows), 2 * rows.shape[1] + 1), dtype)
    wide[:, 1::2] = rows
    layouts = (rows, np.asfortranarray(rows), wide[:, 1::2], rows[::-1][::-1])
    for layout in layouts:
        compare(model.decide(layout, threads=2), expected, classes)
    compare(model.decide_each(rows[:100]), fast.decide(rows[:100]), classes)
    columns = [np.ascontiguousarray(column) for column in rows.T]
    compare(model.decide_columns(columns, threads=2), expected, classes)
    other = rows.astype(np.float64 if dtype == np.float32 else np.float32)
    with np.errstate(over="ignore"):
        compare(model.decide(other), fast.decide(other.astype(dtype)), classes)
    label, full = model.decide_full(rows)
    same_bits(full, fast.score_full(rows).reshape(full.shape))
    whole = fast.full().decide(rows)
    np.testing.assert_array_equal(classes.take(label), whole.label)
    return model


def certified(ensemble, policy):
    budget = budget_of(0.0, target=policy.target)
    return Classifier(ensemble, policy, observed_certificate("in-sample", budget, policy, None))


@pytest.mark.parametrize("seed", range(16))
def test_random_trees(seed):
    ensemble = random_ensemble(seed, n_trees=12 + 20 * (seed % 3))
    rows = random_rows(seed, ensemble)
    quits = ("both", "negative", "positive")[seed % 3]
    fast = with_random_policy(ensemble, rows, seed, quits)
    check(fast, np.concatenate([rows, odd_rows(ensemble, 300, seed)]))


@pytest.mark.parametrize("seed", range(10))
def test_random_trees_of_many_classes(seed):
    ensemble = random_classes(seed, n_classes=2 + seed, vectors=seed % 3 == 2, gaps=seed % 3 == 1)
    rows = random_rows(seed, ensemble)
    policy = random_policy(seed, ensemble, rules_out=seed % 2 == 1)
    check(certified(ensemble, policy), np.concatenate([rows, odd_rows(ensemble, 200, seed)]))


@pytest.mark.parametrize("seed", range(4))
def test_a_filter_for_one_class(seed):
    ensemble = random_classes(seed)
    rows = random_rows(seed, ensemble)
    lead = random_policy(seed, ensemble)
    K, only = lead.n_classes, seed % lead.n_classes
    gap = np.where(np.isfinite(lead.lead[:, 0]), lead.lead[:, 0] - 0.2, np.inf)
    policy = FilterPolicy(lead.order, gap, lead.costs, only, K, ensemble.base_models.ties)
    check(certified(ensemble, policy), rows)


@pytest.mark.parametrize("seed", range(8))
def test_random_lattices(seed):
    ensemble = random_lattices(seed)
    rows = lattice_rows(seed, ensemble)
    check(with_random_policy(ensemble, rows, seed), rows)


def read(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qwyc.read_model(model)


def numbers(missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)).round(1)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300) / 2 > 0.2).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)).round(1), columns=list("ab"))
    colour = rng.choice(len(COLOURS), 300)
    frame["k"] = pd.Categorical(np.array(COLOURS)[colour], categories=COLOURS)
    return frame, (frame["a"] + 2 * (colour % 3 == 0) > 0.7).astype(int).to_numpy()


def check_trained(ensemble, given):
    """Rows hold codes here, whatever arrays hold in Python."""
    rows = np.ascontiguousarray(ensemble.rows(given)).astype(ensemble.schema.dtype)
    plain = replace(ensemble.schema, arrays_hold_values=False, by_name=False, categories={})
    fast = with_random_policy(replace(ensemble, schema=plain), rows)
    saved = replace(fast, ensemble=ensemble)
    return check(fast, np.concatenate([rows, odd_rows(ensemble, 200)]), saved)


TREES = [name for name in KINDS if not name.startswith("Pipeline")]
OF_CATEGORIES = [name for name in TREES if KINDS[name].cell("categories").outcome == EXACT]


@pytest.mark.parametrize("name", TREES)
def test_trained_models_of_numbers(name):
    kind = KINDS[name]
    X, y = numbers(0.15 if kind.cell("NaN").outcome == EXACT else 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind.fit(X, y, 10, False)
    check_trained(read(model), kind.rows(X))


@pytest.mark.parametrize("name", OF_CATEGORIES)
def test_trained_models_of_categories(name):
    kind = KINDS[name]
    frame, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind.fit_table(frame, y)
    check_trained(read(model), kind.table_rows(frame))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.qwyc")), ids=lambda path: path.stem)
def test_files_of_format_1(path):
    fast, model = qwyc.load(path), Loaded.of_file(path)
    ensemble, schema = fast.ensemble, fast.ensemble.schema
    assert model.number("n_features") == schema.n_features
    assert model.number("n_models") == ensemble.n_models
    names = [model.text("feature_name", j) for j in range(schema.n_features)]
    assert names == list(schema.names or [None] * schema.n_features)
    written = json.loads(path.with_suffix(".json").read_text())["certificate"]
    said = json.loads(model.text("certificate"))
    assert (said["alpha"], said["how"]) == (written["alpha"], written["how"])
    plain = replace(schema, arrays_hold_values=False, by_name=False, categories={})
    codes = replace(fast, ensemble=replace(ensemble, schema=plain))
    rows = odd_rows(ensemble, 300)
    kept = [reason is None for reason in codes.decide(rows, unseen="flag").reason]
    rows = rows[kept]
    compare(model.decide(rows), codes.decide(rows), ensemble.classes)
    same_bits(model.decide_full(rows)[1][:, 0], codes.score_full(rows))
