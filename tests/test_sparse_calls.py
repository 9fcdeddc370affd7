"""Sparse rows in every call that takes rows: what it gives is what it gives for the dense rows."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
import scipy.sparse
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import qwyc
from qwyc.errors import InputError, RowsError
from sparse_matrices import dense_of, matrix, target

WIDTH = 80


@pytest.fixture(scope="module")
def rows():
    return matrix(9000, WIDTH, seed=5)


@pytest.fixture(scope="module", params=["xgboost", "lightgbm", "classes"])
def case(request, rows):
    """A model, a classifier made from sparse rows, and what absent entries mean."""
    X = matrix(900, WIDTH, seed=4)
    if request.param == "xgboost":
        model = xgboost.XGBClassifier(n_estimators=30, max_depth=4, n_jobs=1).fit(X, target(X))
    else:
        K, rounds = (3, 10) if request.param == "classes" else (2, 30)
        model = lightgbm.LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1)
        model.fit(X, target(X, K))
    fast = qwyc.optimize(model, rows[:4000], alpha=0.1, evaluation="quit")
    return model, fast, np.nan if request.param == "xgboost" else 0.0


def test_a_classifier_from_sparse_rows_is_the_one_from_dense_rows(case, rows):
    model, fast, absent = case
    dense = dense_of(rows[:4000], absent)
    other = qwyc.optimize(model, dense, alpha=0.1, evaluation="quit")
    assert other.certificate.counts == fast.certificate.counts
    np.testing.assert_array_equal(other.policy.order, fast.policy.order)
    np.testing.assert_array_equal(other.origins.sample.hashes, fast.origins.sample.hashes)
    for costs in ("size", "measured"):
        qwyc.optimize(model, rows[:2000], alpha=0.2, costs=costs)
    some, of_dense = (fast.ensemble.costs(X, "size") for X in (rows[:4000], dense))
    np.testing.assert_allclose(some, of_dense, rtol=1e-12)


def test_verify_recertify_and_diagnose(case, rows):
    _, fast, absent = case
    fresh = rows[4000:]
    dense = dense_of(fresh, absent)
    for call in (qwyc.verify, qwyc.diagnose):
        assert str(call(fast, fresh)) == str(call(fast, dense))
    again, other = qwyc.recertify(fast, fresh), qwyc.recertify(fast, dense)
    assert again.certificate == other.certificate
    for known in (rows[:4000], dense_of(rows[:4000], absent)):
        with pytest.raises(InputError, match="made from"):  # recognised in either form
            qwyc.verify(fast, known)
    decided = fast.decide(fresh, unseen="flag")
    np.testing.assert_array_equal(decided.label, fast.predict(dense))


def test_a_monitor_picks_the_same_rows(case, rows):
    _, fast, absent = case
    sparse, plain = (qwyc.Monitor(fast, rate=0.3, seed=1) for _ in range(2))
    for i in range(0, 6000, 1500):
        part = rows[i : i + 1500]
        np.testing.assert_array_equal(sparse.predict(part), plain.predict(dense_of(part, absent)))
    assert sparse.predict_one(rows[0]) == plain.predict_one(dense_of(rows[0], absent)[0])
    assert sparse.rows_seen == plain.rows_seen == 6001
    assert sparse.counts == plain.counts
    assert sparse.rows_checked > 1500


def test_a_report(case, rows, tmp_path):
    _, fast, _ = case
    fast.report(tmp_path / "report.html", rows[4000:6000], speed=False)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_estimator(rows):
    y = target(rows)
    forest = RandomForestClassifier(12, max_depth=6, random_state=0)
    for estimator in (xgboost.XGBClassifier(n_estimators=12, n_jobs=1), forest):
        fast = qwyc.EarlyExitClassifier(estimator, alpha=0.1).fit(rows[:5000], y[:5000])
        fresh = rows[5000:]
        own = fast.estimator_.predict(fresh)
        assert np.mean(fast.predict(fresh) != own) < 0.12
        np.testing.assert_array_equal(fast.classifier_.full().predict(fresh), own)
        np.testing.assert_array_equal(
            fast.predict_proba(fresh), fast.estimator_.predict_proba(fresh)
        )
    hist = qwyc.EarlyExitClassifier(HistGradientBoostingClassifier(max_iter=3), alpha=0.1)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        hist.fit(rows, y)


def test_blocks_of_many_rows(case):
    """Columns of a form that is not CSR are converted once, and blocks follow each other."""
    _, fast, absent = case
    many = matrix(20_000, WIDTH, seed=9, density=0.05)
    want = fast.decide(dense_of(many, absent))
    for X in (many, many.tocsc()):
        for threads in (1, 4):
            found = fast.decide(X, threads=threads)
            np.testing.assert_array_equal(found.label, want.label)
            np.testing.assert_array_equal(found.score, want.score)


def test_wide_text(rows):
    """Of 50,000 columns, base models look at a few."""
    rng = np.random.default_rng(0)
    base = matrix(1500, 40, seed=3)
    wide = scipy.sparse.hstack(
        [scipy.sparse.csr_matrix((1500, 30_000)), base, scipy.sparse.csr_matrix((1500, 19_960))]
    ).tocsr()
    model = lightgbm.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(wide, target(base))
    read = qwyc.read_model(model)
    assert len(read.base_models.used.slots) <= 40
    some = wide[rng.permutation(1500)]
    np.testing.assert_array_equal(read.score_full(some), model.predict(some, raw_score=True))
    constant = lightgbm.LGBMClassifier(n_estimators=1, n_jobs=1, verbose=-1, min_split_gain=1e9)
    constant.fit(wide, target(base))  # looks at no column
    own = constant.predict(some, raw_score=True)
    np.testing.assert_array_equal(qwyc.read_model(constant).score_full(some), own)
    with pytest.raises(RowsError, match=r"49,?999"):
        read.predict(some[:, 1:])
