"""Features that cost something: the first base model that looks at one pays for it."""

from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import featured
import oracle
import qwyc
import qwyc.lattice
from featured import COSTS, FAST, NAMES, by_hand, needs_of
from qwyc.build import feature_costs as module
from qwyc.build.held_out import HeldOut
from qwyc.policy.fit import orders
from qwyc.report.inspection import inspect
from qwyc.runtime.arguments import allowed_disagreements


@pytest.fixture(scope="module")
def made():
    return featured.model_and_rows()


@pytest.fixture(scope="module")
def fast():
    return featured.classifier()


# ---- order and thresholds ---------------------------------------------------------------------


def test_step_costs_are_those_of_the_oracle(made, fast):
    own, shared = np.ones(60), (COSTS, needs_of(fast.ensemble))
    order = fast.policy.order
    np.testing.assert_array_equal(fast.policy.costs, oracle.costs_along(own, shared, order))
    np.testing.assert_array_equal(fast.choices.path.costs, fast.policy.costs)
    assert fast.policy.costs.sum() == 60 + COSTS[:5].sum()
    assert fast.certificate.full_cost == fast.policy.costs.sum()


def test_the_default_order_is_that_of_the_oracle(made, fast):
    """A tree's gain is divided by its cost and that of the features that it is the first to need."""
    shared = (COSTS, needs_of(fast.ensemble))
    scores = fast.ensemble.scores(made[1][2000:6000])
    split = HeldOut.of(scores.positive, fast.certificate.budget, 0.95, None, None, 0)
    fit = scores.take(split.fit)
    constants = (orders.WEIGHT_WIDTH, orders.RIDGE)
    expected = oracle.correlation_order(
        fit.values, fit.full, scores.threshold, np.ones(60), *constants, shared
    )
    np.testing.assert_array_equal(fast.policy.order, expected)


def test_thresholds_count_the_costs_along_the_order(made, fast):
    scores = fast.ensemble.scores(made[1][2000:6000])
    split = HeldOut.of(scores.positive, fast.certificate.budget, 0.95, None, None, 0)
    costs = oracle.costs_along(np.ones(60), (COSTS, needs_of(fast.ensemble)), fast.policy.order)
    path = qwyc.fit_path(
        scores.take(split.fit), order=fast.policy.order, costs=costs, progress=False
    )
    np.testing.assert_array_equal(path.lower, fast.choices.path.lower)
    np.testing.assert_array_equal(path.upper, fast.choices.path.upper)


def test_algorithm_1_counts_features(made):
    model, X = made
    fast = qwyc.optimize(model, X[2000:2600], **FAST, method="joint", feature_costs=COSTS)
    scores = fast.ensemble.scores(X[2000:2600])
    shared = (COSTS, needs_of(fast.ensemble))
    order, lower, upper = oracle.optimize_order(
        scores.values, scores.base, scores.positive, np.ones(60),
        allowed_disagreements(0.02, 600), "both", shared=shared,
    )  # fmt: skip
    np.testing.assert_array_equal(fast.policy.order, order)
    np.testing.assert_array_equal(fast.policy.lower, lower)
    np.testing.assert_array_equal(fast.policy.upper, upper)
    np.testing.assert_array_equal(fast.policy.costs, oracle.costs_along(np.ones(60), shared, order))
    plain = qwyc.optimize(model, X[2000:2600], **FAST, method="joint")
    assert not np.array_equal(plain.policy.order, order)


def test_a_proof_counts_features(made):
    model, _ = made
    fast = qwyc.optimize(model, alpha=0, feature_costs=COSTS)
    bounds, shared = fast.ensemble.base_models.bounds(), (COSTS, needs_of(fast.ensemble))
    expected = oracle.widest_first(bounds.most - bounds.least, np.ones(60), shared)
    np.testing.assert_array_equal(fast.policy.order, expected)
    assert fast.certificate.mean_features is None  # no rows


def test_features_that_cost_nothing_change_nothing(made):
    """Neither an order nor a bit of a threshold; and the default is that they cost nothing."""
    model, X = made
    plain = qwyc.optimize(model, X[2000:6000], **FAST)
    assert plain.feature_costs is None
    assert module.engine_feature_cost() == 0.0
    for nothing in (np.zeros(6), {}, {"age": 0}, {"unused": 50.0}):
        free = qwyc.optimize(model, X[2000:6000], **FAST, feature_costs=nothing)
        for name in ("order", "lower", "upper", "costs"):
            np.testing.assert_array_equal(getattr(free.policy, name), getattr(plain.policy, name))


def test_a_cost_of_the_engine_is_one_line(made, monkeypatch):
    model, X = made
    monkeypatch.setattr(module, "ENGINE_FEATURE_COST", 2.0)
    counted = qwyc.optimize(model, X[2000:6000], **FAST)
    given = qwyc.optimize(model, X[2000:6000], **FAST, feature_costs=np.full(6, 2.0))
    np.testing.assert_array_equal(counted.policy.order, given.policy.order)
    np.testing.assert_array_equal(counted.policy.lower, given.policy.lower)
    own = qwyc.optimize(model, X[2000:6000], **FAST, costs=np.ones(60))
    assert own.feature_costs is None  # costs were given
    seen = []
    timed = qwyc.optimize(
        model, X[2000:6000], alpha=0.02, progress=False, evaluation=lambda *a: seen.append(a)
    )
    assert len(seen) == 1  # nobody gave costs, so time decides whether rows quit
    assert timed.policy.quit == "both"


def test_orders_that_know_the_costs_cost_less_on_new_rows(made):
    model, X = made
    costs = np.array([1.0, 1.0, 1.0, 60.0, 60.0, 0.0])
    plain = qwyc.optimize(model, X[2000:6000], **FAST)
    aware = qwyc.optimize(model, X[2000:6000], **FAST, feature_costs=costs)
    new, total = X[6000:], []
    for classifier in (plain, aware):
        steps = classifier.decide(new).steps
        _, paid = by_hand(classifier.ensemble, classifier.policy.order, steps, costs)
        total.append(steps.mean() + paid.mean())
    assert total[1] < 0.9 * total[0]


def test_given_costs_count_instead_of_time(made):
    model, X = made

    def never(classifier, rows):
        raise AssertionError("nothing is to be timed")

    options = {"alpha": 0.02, "progress": False, "evaluation": never}
    fast = qwyc.optimize(model, X[2000:6000], **options, feature_costs={"score": 5})
    assert fast.evaluation.decided_by == "default"


def test_lattices_pay_for_calibrators_and_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 6)).astype(np.float32)
    points = np.linspace(-3, 3, 10)
    calibrators = [qwyc.lattice.PiecewiseLinear(points, (points + 3) / 6) for _ in range(6)]
    members = [
        qwyc.lattice.Lattice([t % 6, (t + 1 + t // 6) % 6], rng.normal([-1.0, 0.0, 0.0, 1.0]))
        for t in range(18)
    ]
    ensemble = qwyc.lattice.ensemble(members, calibrators=calibrators, features=6)
    fast = qwyc.optimize(ensemble, X, **FAST, costs="size", feature_costs=100 * COSTS)
    sizes = ensemble.costs(X, "size")
    needs = np.zeros((18, 6), dtype=bool)
    for t, member in enumerate(members):
        needs[t, list(member.features)] = True
    shared = (np.concatenate([sizes.parts, 100 * COSTS]), np.hstack([sizes.needs, needs]))
    expected = oracle.costs_along(sizes.own, shared, fast.policy.order)
    np.testing.assert_allclose(fast.policy.costs, expected, rtol=1e-14)
    assert fast.cost_kind == "size"
    plain = qwyc.optimize(ensemble, X, **FAST, costs="size")
    assert not np.array_equal(plain.policy.order, fast.policy.order)
    found = fast.decide_lazily(lambda columns, rows: X[np.ix_(rows, columns)], len(X))
    np.testing.assert_array_equal(found.score, fast.decide(X).score)


# ---- what is passed ---------------------------------------------------------------------------


def test_names_positions_and_arrays_are_the_same(made, fast):
    model, X = made
    by_name = dict(zip(NAMES, COSTS.tolist(), strict=True))
    for given in (
        by_name,
        {name: cost for name, cost in by_name.items() if cost},
        dict(enumerate(COSTS)),
        {np.int64(1): 4, "visits": 0.5, 3: 20, "region": np.float32(8), "unused": 3},
        COSTS.tolist(),
        pd.Series(COSTS),
    ):
        found = qwyc.optimize(model, X[2000:6000], **FAST, feature_costs=given)
        np.testing.assert_array_equal(found.policy.order, fast.policy.order)
        np.testing.assert_array_equal(found.feature_costs, COSTS)
        assert not found.feature_costs.flags.writeable


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"salary": 1}, "names 'salary', which the model was not trained on"),
        ({"Income ": 1}, "did you mean 'income'"),
        ({6: 1}, "feature 6; the model has features 0 to 5"),
        ({-1: 1}, "feature -1; the model has"),
        ({True: 1}, "by column name or position; got True"),
        ({1.5: 1}, "by column name or position"),
        ({"income": 1, 1: 2}, "feature 1 twice: 'income' and 1"),
        ({"income": -1}, "at least 0; that of 'income' is -1"),
        ({"income": np.nan}, "that of 'income' is nan"),
        ({"income": "much"}, "that of 'income' is 'much'"),
        ({"income": True}, "that of 'income' is True"),
        ([1, 2], r"must be 6 numbers.*{'age': 5.0}; got shape \(2,\)"),
        (np.ones((6, 1)), r"got shape \(6, 1\)"),
        (5, "6 numbers, one per feature, or a mapping.*; got 5"),
        ("income", "got 'income'"),
        (["a"] * 6, "one per feature"),
        ([1, 2, np.inf, 4, 5, 6], "that of 'visits' is inf"),
    ],
)
def test_what_is_wrong_is_said_before_rows_are_scored(made, given, message):
    with pytest.raises(qwyc.OptionError, match=message):
        qwyc.optimize(made[0], "no rows", alpha=0.02, feature_costs=given)


def test_models_without_names_have_positions(made):
    _, X = made
    rows = X.to_numpy()
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=2, n_jobs=1)
    model.fit(rows[:2000], rows[:2000, 0] > 0)
    with pytest.raises(qwyc.OptionError, match="does not know its columns by name: use positions"):
        qwyc.optimize(model, rows, alpha=0.02, feature_costs={"age": 1})
    fast = qwyc.optimize(model, rows[2000:], **FAST, feature_costs={0: 1})
    assert inspect(fast)["feature_use"]["features"][0]["feature"] == 0


def test_names_that_lightgbm_stores_otherwise(made):
    _, X = made
    spaced = X.rename(columns={"income": "the income"})
    model = lightgbm.LGBMClassifier(n_estimators=20, num_leaves=4, verbose=-1, n_jobs=1)
    model.fit(spaced[:2000], X["income"][:2000] + X["age"][:2000] > 0)
    fast = qwyc.optimize(model, spaced[2000:], **FAST, feature_costs={"the income": 7})
    assert fast.feature_costs.tolist() == [0, 7, 0, 0, 0, 0]


def test_code_does_not_say_what_it_looks_at(made):
    _, X = made
    rows = X.to_numpy()
    with pytest.raises(qwyc.OptionError, match=r"2 Python callables do not: pass costs=qwyc.Costs"):
        qwyc.optimize(
            [lambda X: X[:, 0], lambda X: X[:, 1]], rows, alpha=0.02, feature_costs=np.ones(6)
        )
    pipeline = make_pipeline(StandardScaler(), xgboost.XGBClassifier(n_estimators=5, n_jobs=1))
    pipeline.fit(rows[:2000], rows[:2000, 0] > 0)
    with pytest.raises(qwyc.OptionError, match=r"optimise its last step, pipeline\[-1\]"):
        qwyc.optimize(pipeline, rows, alpha=0.02, feature_costs=np.ones(6))


def test_a_classifier_refuses_costs_of_other_features(fast):
    with pytest.raises(qwyc.OptionError, match="6 numbers, one per feature"):
        replace(fast, feature_costs=np.ones(4))


def test_the_estimator_takes_them(made, fast):
    model, X = made
    meta = qwyc.EarlyExitClassifier(
        model, alpha=0.02, evaluation="quit", feature_costs={"score": 9.0}
    )
    meta.fit(X[2000:6000])
    assert meta.classifier_.feature_costs.tolist() == [0, 0, 0, 9, 0, 0]
    assert meta.get_params()["feature_costs"] == {"score": 9.0}
