"""verify and recertify on rows with values that the model refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost as xgb

import qwyc
from qwyc.check.verify import verify_rows
from qwyc.policy.counts import Sums
from qwyc.promise import compare
from qwyc.promise.compare import sums_of_path, sums_of_policy
from qwyc.promise.group_labels import GroupLabels
from qwyc.rows.blocks import RowStream
from qwyc.rows.selection import part

JOBS = ("clerk", "cook", "pilot")


def make_rows(seed, rows=6000):
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


def make_odd(seed, rows=6000, odd=40):
    """Rows of which some have an unknown job; and which these are."""
    frame = make_rows(seed, rows)[0].astype({"job": object})
    wrong = np.zeros(rows, bool)
    wrong[np.random.default_rng(seed).permutation(rows)[:odd]] = True
    frame.loc[wrong, "job"] = "astronaut"
    return frame, wrong


@pytest.fixture(scope="module")
def model():
    made = xgb.XGBClassifier(n_estimators=30, max_depth=3, enable_categorical=True, n_jobs=1)
    return made.fit(*make_rows(0))


@pytest.fixture(scope="module")
def live(model):
    return qwyc.optimize(model, make_rows(1)[0], alpha=0.02)


@pytest.fixture(scope="module")
def fast(live, tmp_path_factory):
    """The same from a file, which takes streams."""
    path = tmp_path_factory.mktemp("unseen") / "m.qwyc"
    live.save(path)
    return qwyc.load(path)


class Stream(RowStream):
    """Rows of a table as a stream."""

    def __init__(self, X, labels=None):
        self.X, self.labels = X, labels

    def blocks(self, size):
        for i in range(0, len(self.X), size):
            if self.labels is not None:
                self.labels.add(np.arange(size), [str(k // 3) for k in range(i, i + size)])
            yield part(self.X, i, i + size)

    def named(self, error, rows_before):
        return error.about("stream", rows_before=rows_before)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(compare, "BLOCK", 500)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_verify_leaves_rows_out_and_says_so(live, fast, make, small_blocks):
    X, wrong = make_odd(2)
    for classifier in (live, fast):
        with pytest.raises(qwyc.InputError, match=r"column 'job'"):
            qwyc.verify(classifier, make(X))
        found = qwyc.verify(classifier, make(X), unseen="flag")
        alone = qwyc.verify(classifier, make(X[~wrong].reset_index(drop=True)))
        assert found.left_out == 40
        assert found.rows == 6000 - 40
        assert found.counts.by_class == alone.counts.by_class
        assert found.counts.differences == alone.counts.differences
        assert found.counts.stops == alone.counts.stops
        assert found.outcome == alone.outcome
        assert found.as_dict() == alone.as_dict() | {"left_out": 40}
        note = "Left out, and not part of this result: 40 rows with a value that the model refuses."
        assert note in str(found)
        assert alone.left_out == 0
        assert "eft out" not in str(alone)


def test_verify_a_stream_as_in_memory(fast, small_blocks):
    X, wrong = make_odd(3, odd=700)
    table = pa.Table.from_pandas(X)
    wrong_block = table.slice(0, 500).set_column(1, "job", pa.array(["astronaut"] * 500))
    table = pa.concat_tables([wrong_block, table.slice(500)])  # a block without any row left
    for option in ("flag", "missing"):
        streamed, seen = verify_rows(fast, Stream(table), unseen=option)
        inside, _ = verify_rows(fast, table, unseen=option)
        assert streamed.as_dict() == inside.as_dict()
        assert seen.left_out == streamed.left_out == (500 + wrong[500:].sum()) * (option == "flag")
        labels = GroupLabels()
        grouped, _ = verify_rows(fast, Stream(table, labels), groups=labels, unseen=option)
        numbers = np.arange(6000) // 3
        expected, _ = verify_rows(fast, table, groups=numbers, unseen=option)
        assert grouped.as_dict() == expected.as_dict()
        assert grouped.groups > 0
    with pytest.raises(qwyc.InputError, match=r"stream: row 0 of column 'job'"):
        verify_rows(fast, Stream(table))


def test_verify_with_missing_values(fast):
    X, wrong = make_odd(4)
    found = qwyc.verify(fast, X, unseen="missing")
    replaced = X.copy()
    replaced.loc[wrong, "job"] = None
    assert found.as_dict() == qwyc.verify(fast, replaced).as_dict()
    assert found.left_out == 0


def test_verify_with_the_model_itself(live, model):
    X = make_odd(5)[0]
    X = X.astype({"job": pd.CategoricalDtype([*JOBS, "astronaut"])})
    found = qwyc.verify(live, X, model=model, unseen="flag")
    assert found.left_out == 40
    assert found.parity.startswith("All 5,960 full decisions and scores equal")
    with pytest.raises(qwyc.OptionError, match="leave model out, or use unseen='flag'"):
        qwyc.verify(live, X, model=model, unseen="missing")


def test_recertify_leaves_rows_out_and_says_so(live, fast, tmp_path, small_blocks):
    X, wrong = make_odd(6)
    left = X[~wrong].reset_index(drop=True)
    for classifier in (live, fast):
        with pytest.raises(qwyc.InputError, match=r"column 'job'"):
            qwyc.recertify(classifier, X)
        found = qwyc.recertify(classifier, X, unseen="flag")
        alone = qwyc.recertify(classifier, left)
        assert found.certificate.left_out == 40
        assert found.certificate.as_dict() == alone.certificate.as_dict() | {"left_out": 40}
        assert "40 rows with refused values left out" in repr(found)
        assert "left out" not in repr(alone)
        found.save(tmp_path / "found.qwyc")
        loaded = qwyc.load(tmp_path / "found.qwyc")
        assert loaded.certificate == found.certificate
        assert loaded.at(alpha=0.05).certificate.left_out == 40
        assert loaded.full().certificate.left_out == 40
        assert qwyc.recertify(loaded, make_rows(7)[0]).certificate.left_out == 0
    groups = np.arange(6000) // 4
    by_group = qwyc.recertify(fast, X, groups=groups, unseen="flag")
    expected = qwyc.recertify(fast, left, groups=groups[~wrong])
    assert by_group.certificate.as_dict() == expected.certificate.as_dict() | {"left_out": 40}


def test_all_rows_left_out(fast):
    X = make_odd(8, rows=50, odd=50)[0]
    with pytest.raises(qwyc.InputError, match="in each of the 50 rows, so none is left to verify"):
        qwyc.verify(fast, X, unseen="flag")
    with pytest.raises(qwyc.InputError, match="none is left to certify"):
        qwyc.recertify(fast, X, unseen="flag")


def test_sums_of_parts_add_up(fast):
    """What engines do: each batch by itself, also one without any row left."""
    X, wrong = make_odd(9, odd=300)
    X.loc[:99, "job"] = "astronaut"
    bounds = [(0, 100), (100, 2500), (2500, 6000)]
    policy, n_models = fast.policy, fast.policy.n_models
    paths = len(fast.needed_choices().path)
    for K, sums in ((1, sums_of_policy), (paths, lambda *a, **k: sums_of_path(*a, **k)[0])):
        parts = [sums(fast, X[i:j], threads=1, unseen="flag").vector() for i, j in bounds]
        whole = sums(fast, X, threads=1, unseen="flag")
        assert all(len(vector) == Sums.size(policy.target, n_models, K) for vector in parts)
        total = Sums.from_vector(np.sum(parts, axis=0), policy.target, n_models)
        assert total.left_out == whole.left_out == 100 + wrong[100:].sum()
        assert total.rows == whole.rows == 6000 - total.left_out
        assert total.differences.tolist() == whole.differences.tolist()
        assert total.exits.tolist() == whole.exits.tolist()


@pytest.mark.parametrize("run", [qwyc.verify, qwyc.recertify])
def test_wrong_options_are_refused(run, fast):
    with pytest.raises(qwyc.OptionError, match="unseen must be one of"):
        run(fast, make_rows(2)[0], unseen="ignore")
    rows = np.random.default_rng(0).random((3000, 2))
    called = qwyc.optimize([lambda X: X[:, 0] - 0.5, lambda X: X[:, 1] / 10], rows, alpha=0.05)
    with pytest.raises(qwyc.OptionError, match="a base model reads them"):
        run(called, rows, unseen="flag")
