"""Policies over Python callables: only undecided rows are passed on, and scikit-learn ensembles of
anything decide as they themselves do."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import qwyc


def column_models(T=6):
    return [lambda X, t=t: np.asarray(X)[:, t] for t in range(T)]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(500, 1)) + rng.normal(size=(500, 6))


@pytest.mark.parametrize("rule", ["threshold", "fan"])
@pytest.mark.parametrize("quit", ["both", "negative"])
def test_a_cascade_decides_as_the_policy_does_on_the_scores(rows, rule, quit):
    policy = qwyc.fit_policy(rows[:300], alpha=0.02, rule=rule, order="natural", quit=quit)
    decisions, known = qwyc.Cascade(column_models(), policy).decide(rows), policy.apply(rows)
    np.testing.assert_array_equal(decisions.label, known.label)
    np.testing.assert_array_equal(decisions.steps, known.steps)
    np.testing.assert_array_equal(decisions.score, known.score)
    np.testing.assert_array_equal(decisions.complete, known.complete)


def test_only_undecided_rows_are_passed_on(rows):
    policy = qwyc.fit_policy(rows, alpha=0.02)
    seen = []

    def watched(t):
        def model(X):
            seen.append((t, len(X)))
            return X[:, t]

        return model

    decisions = qwyc.Cascade([watched(t) for t in range(6)], policy).decide(rows)
    assert [t for t, _ in seen] == policy.order.tolist()[: len(seen)]
    assert [n for _, n in seen] == [int((decisions.steps > r).sum()) for r in range(len(seen))]
    assert seen[-1][1] < 500


@pytest.mark.parametrize(
    "wrap",
    [
        pd.DataFrame,
        lambda a: pl.DataFrame(a, schema=list("abcdef")),
        lambda a: pa.table({n: a[:, i] for i, n in enumerate("abcdef")}),
        lambda a: a.tolist(),
    ],
)
def test_rows_of_any_kind(rows, wrap):
    policy = qwyc.fit_policy(rows, alpha=0.02)
    expected = qwyc.Cascade(column_models(), policy).predict(rows)
    np.testing.assert_array_equal(
        qwyc.Cascade(column_models(), policy).predict(wrap(rows)), expected
    )


def test_sparse_rows_and_classes_and_no_rows(rows):
    policy = qwyc.fit_policy(rows, alpha=0.02)
    models = [lambda X, t=t: X[:, [t]].toarray() for t in range(6)]
    cascade = qwyc.Cascade(models, policy, classes=["no", "yes"])
    labels = cascade.predict(scipy.sparse.csr_matrix(rows))
    expected = qwyc.Cascade(column_models(), policy).predict(rows)
    np.testing.assert_array_equal(labels == "yes", expected == 1)
    assert qwyc.Cascade(column_models(), policy).predict(rows[:0]).shape == (0,)


def test_base_moves_the_running_sum(rows):
    matrix = qwyc.ScoreMatrix.from_array(rows, base=0.7)
    policy = qwyc.fit_policy(matrix, alpha=0.01)
    got = qwyc.Cascade(column_models(), policy, base=0.7).decide(rows)
    np.testing.assert_array_equal(got.score, policy.apply(matrix).score)


def test_optimising_a_list_of_callables(rows):
    cascade = qwyc.optimize(column_models(), rows, alpha=0.01, method="joint")
    assert isinstance(cascade, qwyc.Classifier)
    assert np.mean(cascade.predict(rows) != (rows.sum(axis=1) >= 0)) <= 0.01
    assert cascade.certificate.observed <= 0.01
    np.testing.assert_allclose(cascade.score_full(rows), rows.sum(axis=1), rtol=1e-12)
    assert "6 Python callables" in repr(cascade)
    with pytest.raises(qwyc.ArtifactError, match="cannot be saved"):
        cascade.save("x.qwyc")
    again = qwyc.Cascade(column_models(), cascade.policy)
    np.testing.assert_array_equal(again.decide(rows).score, cascade.decide(rows).score)


def test_measured_costs_see_the_slow_one(rows):
    def slow(X):
        for _ in range(200):
            np.sort(np.asarray(X).ravel())
        return np.asarray(X)[:, 0]

    models = [slow, *column_models()[1:]]
    cascade = qwyc.optimize(models, rows, alpha=0.05, costs="measured", method="joint")
    assert cascade.policy.costs.argmax() == 0
    assert cascade.policy.order[0] != 0
    with pytest.raises(qwyc.OptionError, match="costs must be one of 'measured'"):
        qwyc.optimize(models, rows, alpha=0.05, costs="size")


ENSEMBLES = {
    "bagging of trees": BaggingClassifier(DecisionTreeClassifier(max_depth=4), 16, random_state=0),
    "bagging of full trees, ties": BaggingClassifier(n_estimators=10, random_state=0),
    "bagging on some columns": BaggingClassifier(
        GaussianNB(), 15, max_features=0.5, bootstrap_features=True, random_state=0
    ),
    "bagging of votes": BaggingClassifier(RidgeClassifier(), 10, max_samples=0.1, random_state=0),
    "bagging, some of one class": BaggingClassifier(
        KNeighborsClassifier(1), 15, max_samples=3, random_state=0
    ),
    "hard voting": VotingClassifier(
        [
            ("a", GaussianNB()),
            ("b", DecisionTreeClassifier(max_depth=2)),
            ("c", KNeighborsClassifier()),
            ("d", LogisticRegression()),
        ]
    ),
    "soft voting": VotingClassifier(
        [("a", GaussianNB()), ("b", DecisionTreeClassifier()), ("c", LogisticRegression())],
        voting="soft",
        weights=[1, 0.5, 2],
    ),
    "AdaBoost": AdaBoostClassifier(n_estimators=25, random_state=0),
    "stacking": StackingClassifier(
        [("a", GaussianNB()), ("b", DecisionTreeClassifier(max_depth=3)), ("c", RidgeClassifier())],
        cv=2,
    ),
    "stacking with the rows": StackingClassifier(
        [("a", GaussianNB()), ("b", DecisionTreeClassifier(max_depth=3))],
        final_estimator=RidgeClassifier(),
        passthrough=True,
        cv=2,
    ),
    "AdaBoost of naive Bayes": AdaBoostClassifier(GaussianNB(), n_estimators=10, random_state=0),
}


@pytest.mark.parametrize("name", ENSEMBLES)
@pytest.mark.parametrize("classes", [(0, 1), ("no", "yes")])
def test_scikit_learn_ensembles_of_anything(name, classes, toy):
    X, y = toy
    model = ENSEMBLES[name].fit(X, np.asarray(classes)[y])
    new = np.random.default_rng(1).normal(size=(2000, 6)).astype(np.float32)
    cascade = qwyc.optimize(model, X, alpha=0.02, method="joint")
    full = cascade.ensemble.scores(new)
    np.testing.assert_array_equal(
        cascade.ensemble.classes[full.positive.astype(int)], model.predict(new)
    )
    assert np.mean(cascade.predict(X) != model.predict(X)) <= 0.02
    decisions = cascade.decide(new)
    done = decisions.complete
    np.testing.assert_array_equal(decisions.label[done], model.predict(new)[done])
    np.testing.assert_array_equal(decisions.score[done], full.full[done])
    if name == "bagging, some of one class":
        assert {len(base.classes_) for base in model.estimators_} == {1, 2}


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([lambda X: np.ones(3)], r"base model 0 \(.*\) must give 500 scores"),
        ([lambda X: np.full(len(X), np.nan)], "not finite"),
        ([lambda X: ["a"] * len(X)], r"base model 0 \(.*<lambda>\) failed: ValueError: could not"),
    ],
)
def test_base_models_that_misbehave(rows, models, message):
    with pytest.raises(qwyc.InputError, match=message):
        qwyc.optimize(models, rows, alpha=0.01)


def test_what_a_base_model_raises_is_the_cause(rows):
    def broken(X):
        raise KeyError("price")

    with pytest.raises(
        qwyc.InputError, match=r"base model 1 \(.*broken\) failed: KeyError: 'price'"
    ) as e:
        qwyc.optimize([len_of, broken], rows, alpha=0.01)
    assert isinstance(e.value.__cause__, KeyError)

    class Price:
        def __call__(self, X):
            raise ZeroDivisionError

    with pytest.raises(
        qwyc.InputError, match=r"base model 0 \(.*Price\) failed: ZeroDivisionError"
    ):
        qwyc.optimize([Price()], rows, alpha=0.01)
    with pytest.raises(KeyboardInterrupt):  # nobody's failure
        qwyc.optimize([interrupted], rows, alpha=0.01)


def len_of(X):
    return np.ones(len(X))


def interrupted(X):
    raise KeyboardInterrupt


def test_what_does_not_fit(rows, toy):
    policy = qwyc.fit_policy(rows, alpha=0.02)
    with pytest.raises(qwyc.OptionError, match="6 base models; got 2"):
        qwyc.Cascade(column_models(2), policy)
    with pytest.raises(qwyc.OptionError, match="base model 1 cannot be called"):
        qwyc.Cascade([len, 3], policy)
    with pytest.raises(qwyc.OptionError, match="two labels"):
        qwyc.Cascade(column_models(), policy, classes=[1, 2, 3])
    with pytest.raises(qwyc.InputError, match="array, a table or a list"):
        qwyc.Cascade(column_models(), policy).predict(7)
    X, _ = toy
    with pytest.raises(qwyc.ModelError, match="not fitted"):
        qwyc.optimize(BaggingClassifier(), X, alpha=0.1)
    three = BaggingClassifier(GaussianNB()).fit(X, np.arange(600) % 3)
    with pytest.raises(qwyc.ModelError, match="3 classes"):
        qwyc.optimize(three, X, alpha=0.1)
    parts = [("a", GaussianNB()), ("b", DecisionTreeClassifier())]
    curved = StackingClassifier(parts, final_estimator=GaussianNB(), cv=2).fit(X, X[:, 0] > 0)
    with pytest.raises(qwyc.ModelError, match="final estimator is GaussianNB"):
        qwyc.optimize(curved, X, alpha=0.1)
