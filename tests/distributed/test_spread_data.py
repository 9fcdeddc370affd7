"""Data sets that lie in parts, through an engine made of pandas: what Spark, Ray and Dask share."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xgboost

import qwyc
from qwyc import distributed
from qwyc.distributed import shipping


class DataFrame:
    """Some pandas frames, which stand for partitions."""

    __module__ = "dask.made_up"

    def __init__(self, frame, n=3):
        self.parts = [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), n)]


def arrived(parcel):
    return shipping.unpack(parcel.content)


ENGINE = SimpleNamespace(
    CASE_MATTERS=True,
    empty=lambda data, columns: data.parts[0][columns][:0],
    columns=lambda data: list(data.parts[0].columns),
    count=lambda data: sum(map(len, data.parts)),
    decide=lambda data, parcel, work, classes: pd.concat(
        work.on_pandas(arrived(parcel), part) for part in data.parts
    ),
    total=lambda data, parcel, work, size: sum(
        (work.on_pandas(arrived(parcel), part) for part in data.parts), np.zeros(size)
    ),
    draw=lambda data, columns, share, seed: pd.concat(data.parts)[columns].sample(
        frac=share, random_state=seed
    ),
)


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(9000, 4)), columns=list("abcd")).assign(who=range(9000))
    y = X["a"] + X["b"] * X["c"] > 0
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=4).fit(
        X[list("abcd")][:3000], y[:3000]
    )
    fast = qwyc.optimize(model, X[list("abcd")][3000:6000], alpha=0.02, progress=False)
    return fast, X[6000:].reset_index(drop=True), model


@pytest.fixture(autouse=True)
def _engine(monkeypatch):
    monkeypatch.setattr(distributed, "engine_of", lambda data: ENGINE)


def test_decisions_are_those_in_memory(made):
    fast, rows, _ = made
    here = fast.decide(rows)
    there = distributed.decide(fast, DataFrame(rows), keep=["who"], prefix="q_")
    assert list(there) == ["who", "q_label", "q_steps", "q_score", "q_complete"]
    np.testing.assert_array_equal(there["q_label"], here.label)
    np.testing.assert_array_equal(there["q_steps"], here.steps)
    np.testing.assert_array_equal(there["q_score"], here.score)


def test_so_are_verifying_and_certifying(made):
    fast, rows, _ = made
    data = DataFrame(rows, n=7)
    assert qwyc.verify(fast, data) == qwyc.verify(fast, rows)
    there, here = qwyc.recertify(fast, data, alpha=0.01), qwyc.recertify(fast, rows, alpha=0.01)
    assert (
        there.certificate.recertified == "" != here.certificate.recertified
    )  # known in memory only
    assert replace(there.certificate, recertified=here.certificate.recertified) == here.certificate
    np.testing.assert_array_equal(
        there.choices.evidence.counts.differences, here.choices.evidence.counts.differences
    )
    for ask in (qwyc.verify, qwyc.recertify):
        with pytest.raises(qwyc.InputError, match="data set has no rows"):
            ask(fast, DataFrame(rows[:0]))
    with pytest.raises(qwyc.InputError, match="for rows in memory"):
        qwyc.diagnose(fast, data)


def test_a_sample_has_as_many_rows_as_asked(made):
    _, rows, _ = made
    data = DataFrame(rows)
    drawn = distributed.sample(data, 500, columns=["who", "a"], seed=1)
    assert list(drawn) == ["who", "a"]
    assert drawn["who"].nunique() == 500
    pd.testing.assert_frame_equal(
        drawn, distributed.sample(data, 500, columns=["who", "a"], seed=1)
    )
    assert len(distributed.sample(data, 10**6)) == len(rows)


def test_optimising_draws_the_models_own_columns(made):
    _, rows, model = made
    fast = qwyc.optimize(model, DataFrame(rows), alpha=0.02, max_rows=2000, progress=False)
    assert fast.certificate.rows + fast.certificate.fit_rows == 2000
    with pytest.raises(qwyc.OptionError, match="groups are labels of rows in memory"):
        qwyc.optimize(model, DataFrame(rows), alpha=0.02, groups=rows["who"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "who"}, "keep must be a list"),
        ({"keep": ["nobody"]}, "no column 'nobody'"),
        ({"keep": ["who", "who"]}, "names a column twice"),
        ({"columns": [["a"]]}, "columns must be a list of column names"),
        ({"prefix": 5}, "prefix must be text"),
        ({"columns": ["a", "b"]}, "has no columns 'c', 'd'"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(made, options, message):
    with pytest.raises(qwyc.QwycError, match=message):
        distributed.decide(made[0], DataFrame(made[1]), **options)


def test_only_classifiers_decide():
    data = DataFrame(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(qwyc.OptionError, match=r"file of one was expected; got dict: read a model"):
        distributed.decide({}, data)
    with pytest.raises(qwyc.ArtifactError, match=r"cannot read nowhere\.qwyc: No such file"):
        distributed.decide("nowhere.qwyc", data)
