"""What users do with samples that are not independent draws, and what they are told."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost

import qwyc
from qwyc.promise.ordered import order_of
from qwyc_experiments.validity import column_models, world

MODELS = column_models(12)
OPTIONS = {"alpha": 0.02, "evaluation": "quit", "progress": False}


def rows(n, seed):
    """Rows of five numbers and a line number, which decides nothing."""
    X = np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)
    X[:, 5] = np.arange(n)
    return X


@pytest.fixture(scope="module")
def model():
    X = rows(3000, 0)
    X[:, 5] = 0  # never split on
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.random.default_rng(1).normal(size=3000) > 0
    return xgboost.XGBClassifier(n_estimators=60, max_depth=4, n_jobs=1).fit(X, y)


@pytest.fixture(scope="module")
def fast(model):
    return qwyc.optimize(model, rows(6000, 2), **OPTIONS)


def trained_on():
    X = rows(3000, 0)
    X[:, 5] = 0
    return X


def test_training_rows_promise_nothing(model):
    with pytest.warns(qwyc.TrainingRowsWarning, match="the model was trained on"):
        made = qwyc.optimize(model, trained_on()[::-1], **OPTIONS)
    assert not made.certificate.holds
    assert str(made.certificate).startswith("No promise for new rows")
    assert "other alphas" not in qwyc.report.inspection.describe(made)
    assert "promises nothing" in repr(qwyc.Monitor(made))


def test_training_rows_verify_nothing(fast):
    with pytest.warns(qwyc.TrainingRowsWarning, match="cannot show"):
        found = qwyc.verify(fast, trained_on())
    assert found.outcome == "undecided"
    assert "trained on" in str(found)


def test_a_fitted_estimator_needs_other_rows(model):
    X = trained_on()
    with pytest.raises(qwyc.InputError, match="pass rows that the model has not seen"):
        qwyc.EarlyExitClassifier(model, alpha=0.02).fit(X, model.predict(X))
    assert qwyc.EarlyExitClassifier(model, alpha=0.02).fit(rows(4000, 3)).certificate_.holds


@pytest.mark.parametrize("line", [0, 10**6], ids=["same line numbers", "other line numbers"])
@pytest.mark.parametrize("part", ["all", "reversed", "without the first", "some"])
def test_the_sample_is_recognised(fast, part, line):
    sample = rows(6000, 2)
    sample[:, 5] += line
    chosen = {
        "all": sample,
        "reversed": sample[::-1],
        "without the first": sample[1:],
        "some": np.random.default_rng(0).permutation(sample)[:700],
    }[part]
    for check in (qwyc.verify, qwyc.recertify):
        with pytest.raises(qwyc.InputError, match="rows that the classifier was made from"):
            check(fast, chosen)


def test_copies_with_other_line_numbers_are_found_later_too(fast):
    copies = np.repeat(rows(700, 4), 5, axis=0)
    copies[:, 5] = np.arange(len(copies))
    with pytest.warns(qwyc.QwycWarning, match="Copies are not independent draws"):
        found = qwyc.verify(fast, copies)
    assert found.groups == 700
    with pytest.warns(qwyc.QwycWarning, match="Copies are not independent draws"):
        assert qwyc.recertify(fast, copies, alpha=0.05).certificate.groups == 700


def test_what_optimize_was_told_about_repeats_is_kept(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(9000, 4)).astype(np.float32)
    y = X.sum(axis=1) + rng.normal(size=9000) > 4
    discrete = xgboost.XGBClassifier(n_estimators=20, n_jobs=1).fit(X[:3000], y[:3000])
    with (
        pytest.warns(qwyc.QwycWarning, match="repeats='independent'"),
        pytest.raises(qwyc.InfeasibleError, match="repeats='independent'"),
    ):
        qwyc.optimize(discrete, X[3000:6000], **OPTIONS)
    made = qwyc.optimize(discrete, X[3000:6000], repeats="independent", **OPTIONS)
    made.save(tmp_path / "a.qwyc")
    for classifier in (made, qwyc.load(tmp_path / "a.qwyc")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = qwyc.verify(classifier, rng.permutation(X[6000:]))
        assert found.counts.groups is None


def test_the_first_verification_is_not_a_failure():
    outcomes = set()
    for seed in range(12):
        made = qwyc.optimize(MODELS, world(np.random.default_rng(seed), 6000), **OPTIONS)
        fresh = world(np.random.default_rng(100 + seed), 4000)
        found = qwyc.verify(made, fresh)
        outcomes.add(found.outcome)
        if found.observed <= 0.02:
            assert found.outcome != "fail"
        assert qwyc.verify(made, fresh[:30]).outcome != "pass"
    assert "fail" not in outcomes
    assert "pass" in outcomes


def test_a_large_group_counts_with_all_its_rows():
    X = world(np.random.default_rng(0), 6000)
    near = np.argsort(np.abs(X.sum(axis=1)))[:1500]  # where early decisions go wrong
    groups = np.arange(6000) + 1
    groups[near] = 0
    for seed in range(6):
        try:
            made = qwyc.optimize(MODELS, X, groups=groups, seed=seed, **OPTIONS)
        except qwyc.InfeasibleError as error:
            assert "the largest of the sample has 1,500 rows" in str(error)  # noqa: PT017 - either is right
        else:
            assert made.certificate.observed <= 0.02
            assert made.choices.evidence.counts.groups[0].cap(None) == 1500


def test_verify_never_passes_above_the_limit():
    made = qwyc.optimize(MODELS, world(np.random.default_rng(0), 6000), **OPTIONS)
    fresh = world(np.random.default_rng(1), 6000)
    wrong = np.flatnonzero(made.predict(fresh) != made.full().predict(fresh))
    many = np.concatenate([fresh, np.repeat(fresh[wrong[:1]], 3000, axis=0)])
    with pytest.warns(qwyc.QwycWarning, match="Copies"):
        assert qwyc.verify(made, many).outcome != "pass"


def test_rows_without_groups_are_warned_of_where_groups_were_certified():
    groups = np.repeat(np.arange(2000), 3)
    made = qwyc.optimize(MODELS, world(np.random.default_rng(0), 6000), groups=groups, **OPTIONS)
    with pytest.warns(qwyc.QwycWarning, match="pass groups"):
        qwyc.verify(made, world(np.random.default_rng(1), 6000))


def test_a_request_for_full_evaluation_stays():
    X = world(np.random.default_rng(0), 6000)
    slow = qwyc.optimize(MODELS, X, alpha=0.02, evaluation="full", progress=False)
    assert slow.at(alpha=0.05).policy.quit == "never"
    assert qwyc.recertify(slow, world(np.random.default_rng(1), 6000)).policy.quit == "never"
    assert "no decision differs" in str(slow.certificate)


def test_headroom_of_any_size_returns():
    X = world(np.random.default_rng(0), 6000)
    made = qwyc.optimize(MODELS, X, headroom=10**9, **OPTIONS)
    assert made.certificate.headroom == 10**9
    with pytest.raises(qwyc.InfeasibleError, match="with headroom for a verification on 160 rows"):
        qwyc.optimize(MODELS, X[:800], headroom=160, **OPTIONS)


def test_enough_rows_of_a_rare_class_are_held_out():
    X = world(np.random.default_rng(3), 1200, shift=-1.4)  # about 10% are positive
    positive = int((X.sum(axis=1) >= 0).sum())
    assert 59 * 1.2 < positive < 2 * 59 * 1.2
    made = qwyc.optimize(MODELS, X, by_class={1: 0.05}, progress=False)
    assert made.certificate.full_positive >= 59


MONTHS = ["Jan", "Feb", "Mar", "Apr"]


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(pd.Categorical(MONTHS, categories=MONTHS, ordered=True)),
        pd.Categorical(MONTHS, categories=MONTHS, ordered=True),
        pl.Series(MONTHS, dtype=pl.Enum(MONTHS)),
    ],
    ids=["pandas", "array", "Polars"],
)
def test_ordered_categories_have_their_own_order(values):
    order = order_of(values, 4)
    np.testing.assert_array_equal(order.rank, [0, 1, 2, 3])
    assert order.text(3) == "Apr"


def test_missing_values_among_text_are_noticed():
    with pytest.raises(qwyc.InputError, match="row 1 has none"):
        order_of(["a", float("nan"), "b"], 3)
    with pytest.raises(qwyc.OptionError, match="can be compared"):
        order_of([1, "late", 2], 3)
    X = world(np.random.default_rng(0), 300)
    for groups, error in ((["a", float("nan")] * 150, qwyc.InputError), ("id", qwyc.OptionError)):
        with pytest.raises(error, match="groups must be"):
            qwyc.optimize(MODELS, X, groups=groups, **OPTIONS)
