"""Verifying and diagnosing on fresh rows."""

from dataclasses import replace

import numpy as np
import pytest
import xgboost
from scipy import stats

import qwyc
from qwyc.promise import compare
from qwyc_experiments.validity import column_models, world


@pytest.fixture(scope="module")
def fast():
    return qwyc.optimize(column_models(12), world(np.random.default_rng(0), 8_000), alpha=0.01)


@pytest.fixture(scope="module")
def fresh():
    return world(np.random.default_rng(1), 20_000)


def test_counts_and_bound_are_those_of_the_rows(fast, fresh):
    found = qwyc.verify(fast, fresh)
    full, label = fresh.sum(axis=1) >= 0, fast.predict(fresh)
    assert found.negative == np.sum((label == 0) & full)
    assert found.positive == np.sum((label == 1) & ~full)
    differ = found.negative + found.positive
    exact = stats.binomtest(differ, 20_000).proportion_ci(0.9, method="exact").high
    assert found.upper_bound == pytest.approx(exact)
    assert found.passed == (exact <= 0.01)
    assert str(found).startswith("PASS: " if found.passed else "FAIL: ")


def test_rows_of_another_kind_fail(fast):
    # Base models that contradict each other: the early ones mislead.
    shifted = world(np.random.default_rng(2), 20_000)
    shifted[:, fast.policy.order[:4]] *= -1
    found = qwyc.verify(fast, shifted)
    assert not found.passed
    assert str(found).startswith("FAIL: ")


def test_too_few_rows_cannot_pass_and_say_so(fast, fresh):
    found = qwyc.verify(fast, fresh[:100])
    assert not found.passed
    assert "at least 299 are needed" in str(found)


def test_another_alpha_and_confidence(fast, fresh):
    assert qwyc.verify(fast, fresh, alpha=0.05, confidence=0.999).passed
    assert not qwyc.verify(fast, fresh, alpha=0.001).passed
    by_kind = qwyc.verify(fast, fresh, alpha={"negative": 0.05, "positive": 0.05})
    assert by_kind.passed
    assert "5% negative" in str(by_kind)
    with pytest.raises(qwyc.OptionError, match="alpha is a share"):
        qwyc.verify(fast, fresh, alpha=5)
    with pytest.raises(qwyc.InputError, match="no rows"):
        qwyc.verify(fast, fresh[:0])


def test_a_proof_passes_only_without_a_single_difference(toy):
    X, y = toy
    fast = qwyc.optimize(xgboost.XGBClassifier(n_estimators=20).fit(X, y), alpha=0)
    assert qwyc.verify(fast, X).passed
    broken = replace(fast.policy, upper=np.full(20, -np.inf), lower=np.full(20, -np.inf))
    assert not qwyc.verify(replace(fast, policy=broken), X).passed


def test_diagnosis_by_step_and_slice(fast, fresh):
    sign = np.where(fresh[:, 0] > 0, "up", "down")
    found = qwyc.diagnose(fast, fresh, slices={"first": sign, "wild": np.abs(fresh[:, 1]) > 2})
    assert sum(s.rows for s in found.by_step) == 20_000
    assert sum(s.disagreements for s in found.by_step) == found.overall.disagreements
    assert [s.name for s in found.by_slice] == [
        *("first = down", "first = up", "wild = False", "wild = True")
    ]
    for share in (found.overall, *found.by_step, *found.by_slice):
        exact = stats.binomtest(share.disagreements, share.rows).proportion_ci(0.95, method="exact")
        assert share.low == pytest.approx(exact.low, abs=1e-9)
        assert share.high == pytest.approx(exact.high, abs=1e-9)
    assert found.fit_share is not None
    assert found.held_out_share == pytest.approx(fast.certificate.observed)
    text = str(found)
    for words in ("all rows", "by base models taken", "first = up", "For comparison"):
        assert words in text
    long = "a name that is longer than the column of names is wide"
    shown = str(qwyc.diagnose(fast, fresh, slices={long: sign}, confidence=0.9999))
    assert f"  {long} = down  " in shown
    assert "99.99% interval" in shown
    assert (
        len({line.index("%") for line in shown.splitlines()[1:] if "%" in line and " to " in line})
        == 1
    )
    with pytest.raises(qwyc.OptionError, match="'first' must have 20000 values"):
        qwyc.diagnose(fast, fresh, slices={"first": sign[:5]})


def test_a_row_of_a_later_block_is_named(monkeypatch):
    monkeypatch.setattr(compare, "BLOCK", 700)
    X = np.random.default_rng(0).normal(size=(3000, 3))
    fast = qwyc.optimize(xgboost.XGBClassifier(n_estimators=3).fit(X, X[:, 0] > 0), alpha=0)
    rows = X.astype(object)
    rows[2345, 1] = "text"
    with pytest.raises(qwyc.InputError, match="row 2,345 of column 1 is 'text'") as error:
        qwyc.verify(fast, rows)
    assert error.value.row == 2345
