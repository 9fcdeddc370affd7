"""The option `unseen` of `decide` and `predict`."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc
from forests import classifier_of
from qwyc.policy.columns import arrow_columns, column_names

JOBS = ("clerk", "cook", "pilot")
ROWS = 4000


def make_rows(seed, rows=ROWS):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "job": pd.Categorical(rng.choice(JOBS, rows), categories=list(JOBS)),
            "pay": rng.normal(size=rows),
        }
    )
    label = (frame["age"] / 30 + frame["pay"] + (frame["job"] == "cook") > 2.2).to_numpy()
    return frame, label.astype(int)


@pytest.fixture(scope="module")
def fast():
    X, y = make_rows(0)
    model = xgb.XGBClassifier(n_estimators=40, max_depth=3, enable_categorical=True, n_jobs=1)
    return qwyc.optimize(model.fit(X, y), make_rows(1)[0], alpha=0.02)


def odd_rows():
    """Six rows; those at 1, 3 and 4 have odd values."""
    return pd.DataFrame(
        {
            "age": pd.Series([30.0, 40.0, None, "old", 50.0, 20.0], dtype=object),
            "job": ["cook", "astronaut", "pilot", "clerk", "juggler", None],
            "pay": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        }
    )


GOOD, ODD = [0, 2, 5], [1, 3, 4]


def test_error_is_the_default_and_names_row_and_column(fast):
    for call in (fast.decide, fast.predict):
        for options in ({}, {"unseen": "error"}):
            with pytest.raises(qwyc.InputError, match=r"row 1 of column 'job'") as caught:
                call(odd_rows().drop(index=3).reset_index(drop=True), **options)
            assert (caught.value.row, caught.value.column) == (1, "job")


def test_flag(fast):
    found = fast.decide(odd_rows(), unseen="flag")
    assert list(found.reason) == [
        None,
        "column 'job': 'astronaut' is not a category that the model knows",
        None,
        "column 'age': 'old' is not a number",
        "column 'job': 'juggler' is not a category that the model knows",
        None,
    ]
    alone = fast.decide(odd_rows().iloc[GOOD].reset_index(drop=True))
    assert found.label.dtype == object
    assert found.label[GOOD].tolist() == alone.label.tolist()
    assert found.steps[GOOD].tolist() == alone.steps.tolist()
    assert found.score[GOOD].tobytes() == alone.score.tobytes()
    assert found.complete[GOOD].tolist() == alone.complete.tolist()
    assert found.label[ODD].tolist() == [None] * 3
    assert found.steps[ODD].tolist() == [0] * 3
    assert np.isnan(found.score[ODD]).all()
    assert not found.complete[ODD].any()
    assert len(found) == 6
    assert found.not_decided == 3
    assert repr(found).endswith(", 3 not decided)")
    assert "6 rows" in repr(found)
    assert pickle.loads(pickle.dumps(found)).reason.tolist() == found.reason.tolist()


def test_flag_where_nothing_is_odd(fast):
    X = make_rows(2)[0]
    plain = fast.decide(X)
    assert plain.reason is None
    assert plain.decided.all()
    for rows in (X, pl.from_pandas(X), pa.Table.from_pandas(X)):
        found = fast.decide(rows, unseen="flag")
        assert found.label.dtype == object
        assert found.label.tolist() == plain.label.tolist()
        assert found.score.tobytes() == plain.score.tobytes()
        assert (found.steps == plain.steps).all()
        assert found.reason.tolist() == [None] * len(X)
        assert repr(found) == repr(plain)


def test_flag_where_all_is_odd(fast):
    X = odd_rows().iloc[ODD]
    found = fast.decide(X, unseen="flag")
    assert found.not_decided == 3
    assert repr(found) == "Decisions(3 rows, none decided)"
    assert len(fast.decide(X.iloc[:0], unseen="flag")) == 0


def test_missing(fast):
    found = fast.decide(odd_rows(), unseen="missing")
    replaced = odd_rows()
    replaced.loc[[1, 4], "job"] = None
    replaced.loc[3, "age"] = None
    expected = fast.decide(replaced)
    assert found.reason is None
    assert found.label.dtype == expected.label.dtype
    assert found.label.tolist() == expected.label.tolist()
    assert found.score.tobytes() == expected.score.tobytes()
    assert fast.predict(odd_rows(), unseen="missing").tolist() == expected.label.tolist()
    one = odd_rows().iloc[[1]]
    with pytest.raises(qwyc.InputError):
        fast.predict_one(one)
    assert fast.decide(one, unseen="missing").label.tolist() == [expected.label[1]]


def test_arrow_columns(fast):
    classes = fast.ensemble.classes
    assert column_names(reason=False) == ("label", "steps", "score", "complete")
    names = column_names(reason=True)
    found = fast.decide(odd_rows(), unseen="flag")
    table = pa.table(dict(zip(names, arrow_columns(found, classes), strict=True)))
    plain = pa.table(arrow_columns(fast.decide(make_rows(2)[0]), classes), names[:4])
    assert table.schema.types[:4] == plain.schema.types
    assert table.schema.types[4] == pa.string()
    for name in names[:4]:
        assert table[name].is_null(nan_is_null=False).to_pylist() == [i in ODD for i in range(6)]
    assert table["reason"].to_pylist() == list(found.reason)
    assert table["score"].take(pa.array(GOOD)).to_pylist() == found.score[GOOD].tolist()
    clean = arrow_columns(fast.decide(make_rows(2)[0], unseen="flag"), classes)
    assert [column.null_count for column in clean] == [0, 0, 0, 0, ROWS]
    assert [column.type for column in clean] == table.schema.types


@pytest.mark.parametrize("classes", [["no", "yes"], [False, True], np.array([1, 2], np.uint8)])
def test_labels_of_every_type(fast, classes):
    named = classifier_of(replace(fast.ensemble, classes=np.asarray(classes)), fast.policy)
    found = named.decide(odd_rows(), unseen="flag")
    alone = named.decide(odd_rows().iloc[GOOD].reset_index(drop=True))
    assert found.label[GOOD].tolist() == alone.label.tolist()
    label = arrow_columns(found, named.ensemble.classes)[0]
    assert label.type == arrow_columns(alone, named.ensemble.classes)[0].type
    assert label.null_count == 3


def test_predict_refuses_flag(fast):
    with pytest.raises(qwyc.OptionError, match=r"decide\(X, unseen='flag'\)"):
        fast.predict(odd_rows(), unseen="flag")


@pytest.mark.parametrize("value", ["ignore", "", None, True, 3])
def test_other_values_of_the_option_are_refused(fast, value):
    for call in (fast.decide, fast.predict):
        with pytest.raises(
            qwyc.OptionError, match="unseen must be one of 'error', 'missing', 'flag'"
        ):
            call(odd_rows(), unseen=value)


@pytest.mark.parametrize("option", ["missing", "flag"])
def test_wrong_columns_stay_errors(fast, option):
    with pytest.raises(qwyc.InputError, match="has no column 'pay'"):
        fast.decide(odd_rows()[["age", "job"]], unseen=option)


def test_a_library_that_takes_unknown_categories_is_not_changed():
    X, y = make_rows(0)
    fast = qwyc.optimize(
        LGBMClassifier(n_estimators=20, verbose=-1).fit(X, y), make_rows(1)[0], alpha=0.02
    )
    rows = odd_rows().drop(index=3)
    found, plain = fast.decide(rows, unseen="flag"), fast.decide(rows)
    assert found.not_decided == 0
    assert found.score.tobytes() == plain.score.tobytes()


@pytest.mark.parametrize("option", ["missing", "flag"])
def test_code_of_others_is_refused(option):
    X, y = make_rows(0)
    numbers = X[["age", "pay"]]
    model = make_pipeline(StandardScaler(), xgb.XGBClassifier(n_estimators=10, n_jobs=1))
    piped = qwyc.optimize(model.fit(numbers, y), make_rows(1)[0][["age", "pay"]], alpha=0.05)
    with pytest.raises(
        qwyc.OptionError, match=r"unseen='\w+' needs rows that qwyc converts itself"
    ):
        piped.decide(numbers, unseen=option)
    assert len(piped.decide(numbers, unseen="error")) == ROWS
    cascade = LogisticRegression().fit(numbers, y)
    called = qwyc.optimize(
        [lambda X, m=cascade: m.decision_function(X) / 2 for _ in range(2)],
        make_rows(1)[0][["age", "pay"]],
        alpha=0.05,
    )
    with pytest.raises(qwyc.OptionError, match="a base model reads them"):
        called.decide(numbers, unseen=option)
