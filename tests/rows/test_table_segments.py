"""Tables of many rows: later segments read only the columns that they need, for undecided rows."""

from __future__ import annotations

import itertools

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from sklearn.ensemble import RandomForestClassifier

import qwyc
from table_paths import converted

N = 40_000
TOWNS = ("Ulm", "a town with a long name", "Bonn", "Kiel", "Jena")


def columns(n, seed=0):
    """Columns of every kind: (N,) each, and labels that depend on most of them."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, len(TOWNS), n)
    x = {f"x{j}": rng.normal(size=n) for j in range(6)}
    x["single"] = rng.normal(size=n).astype(np.float32)
    x["count"] = rng.integers(-50, 50, n)
    x["small"] = rng.integers(0, 9, n).astype(np.int8)
    x["flag"] = rng.random(n) < 0.3
    x["gaps"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    score = x["x0"] + x["x1"] * x["x2"] + x["single"] + (town == 2) + x["count"] / 30 + x["flag"]
    score += np.nan_to_num(x["gaps"]) + 0.3 * x["x3"] + 0.2 * x["x4"] + 0.2 * x["small"]
    return x, town, (score + rng.normal(size=n) > 1).astype(int)


def frames(x, town):
    """The same rows in frames of several kinds."""
    text = np.array(TOWNS, object)[town]
    whole = pd.DataFrame({**x, "town": pd.Categorical(text, TOWNS)})
    table = pa.table({**x, "town": text.tolist()})
    nulls = pa.array(x["gaps"], from_pandas=True)
    table = table.set_column(table.column_names.index("gaps"), "gaps", nulls)
    cut = [0, 7, 1_000, 9_000, 9_001, len(text)]
    parts = [table[a:b] for a, b in itertools.pairwise(cut) if a < len(text)]
    coded = table.set_column(len(x), "town", table["town"].dictionary_encode())
    return {
        "pandas": whole,
        "pandas, separate": whole.copy().assign(
            **{name: value.copy() for name, value in x.items()}
        ),
        "pandas, text": whole.astype({"town": "str"}),
        "pandas, objects": whole.astype({"town": object}),
        "arrow": table,
        "arrow, chunks": pa.concat_tables(parts),
        "arrow, codes": coded,
        "polars": pl.from_arrow(table),
        "polars, chunks": pl.concat([pl.from_arrow(part) for part in parts], rechunk=False),
    }


@pytest.fixture(scope="module")
def with_text():
    """LightGBM with a category: values are float64."""
    x, town, label = columns(6_000)
    frame = frames(x, town)["pandas"]
    model = lightgbm.LGBMClassifier(n_estimators=120, num_leaves=15, verbose=-1, n_jobs=1)
    return qwyc.optimize(
        model.fit(frame[:3_000], label[:3_000]), frame[3_000:], alpha=0.02, evaluation="quit"
    )


def check(classifier, frame, threads=1):
    """A frame is decided as its converted rows are."""
    rows = converted(frame, classifier.ensemble.schema)
    expected = classifier.decide(np.ascontiguousarray(rows), threads=1)
    found = classifier.decide(frame, threads=threads)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(classifier.predict(frame, threads=threads), expected.label)


@pytest.mark.parametrize("n", [1, 20, 700, 9_500, N])
def test_every_kind_of_column(with_text, n):
    x, town, _ = columns(n, seed=n)
    for frame in frames(x, town).values():
        for threads in (1, 3):
            check(with_text, frame, threads)
            check(with_text.full(), frame, threads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["trees", "deep trees"])
def test_columns_of_floats_lie_apart(dtype, kind):
    x, _, label = columns(30_000, seed=1)
    numbers = {name: np.asarray(value, dtype) for name, value in x.items() if name != "gaps"}
    rows = np.column_stack(list(numbers.values()))
    if kind == "deep trees":
        model = RandomForestClassifier(n_estimators=12, min_samples_leaf=5, random_state=0)
        model.fit(rows[:6_000], label[:6_000])
    else:
        model = xgboost.XGBClassifier(n_estimators=80, max_depth=4, n_jobs=1)
        model.fit(rows[:6_000], label[:6_000])
    fast = qwyc.optimize(model, rows[6_000:14_000], alpha=0.05, evaluation="quit")
    numbers = {name: value[14_000:].copy() for name, value in numbers.items()}
    frames = [
        pd.DataFrame(numbers, copy=False),
        pd.DataFrame(rows[14_000:]),
        pa.table(numbers),
        pl.DataFrame(numbers),
        pl.DataFrame(numbers)[::2],
        pa.table(numbers)[5:17],
    ]
    for frame in frames:
        for threads in (1, 2):
            check(fast, frame, threads)


def test_fans_rule_and_a_policy_that_never_quits(with_text):
    x, town, _ = columns(9_000, seed=5)
    sample = with_text.ensemble.scores(frames(x, town)["pandas"])
    fan = qwyc.fit_fan_path(sample, [1.0], order="natural")[0]
    never = qwyc.fit_policy(sample, alpha=0.0, quit="negative")
    for policy in (fan, never):
        cascade = qwyc.Cascade(with_text.ensemble, policy)
        for n in (30, 9_000):
            x, town, _ = columns(n, seed=n + 1)
            for frame in frames(x, town).values():
                expected = cascade.decide(converted(frame, with_text.ensemble.schema))
                found = cascade.decide(frame)
                assert found.score.tobytes() == expected.score.tobytes()
                assert found.steps.tobytes() == expected.steps.tobytes()


def test_large_and_mixed_numbers_are_rounded_once():
    """An integer past 2**53 is rounded to float32 directly, although other columns are float64."""
    x, _, label = columns(4_000, seed=2)
    large = np.int64(2**60 + 2**36 + 1)
    rows = np.column_stack([x["x0"], x["x1"], x["x2"], np.where(label, float(large), 0)])
    model = xgboost.XGBClassifier(n_estimators=20, n_jobs=1).fit(rows[:2_000], label[:2_000])
    fast = qwyc.optimize(model, rows[2_000:], alpha=0.05, evaluation="quit")
    frame = pd.DataFrame({"0": x["x0"], "1": x["x1"], "2": x["x2"], "3": label * large})
    assert frame["3"].dtype == np.int64
    check(fast, frame)
    check(fast, pa.Table.from_pandas(frame, preserve_index=False))
