"""EarlyExitClassifier as scikit-learn's own tools use it."""

import pickle

import joblib
import lightgbm
import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
import xgboost
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    learning_curve,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import qwyc
from qwyc import EarlyExitClassifier

# The checks use a few dozen rows. Only alpha=0 is promised from so few, since it is proven.
CHECKED = [
    EarlyExitClassifier(RandomForestClassifier(n_estimators=5), alpha=0),
    EarlyExitClassifier(GradientBoostingClassifier(n_estimators=5), alpha=0),
    EarlyExitClassifier(HistGradientBoostingClassifier(max_iter=5), alpha=0),
]
# Checks that are known to fail, with the reason. There are none.
EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(CHECKED, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learns_own_checks(estimator, check):
    assert estimator.alpha == 0
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6000, 5)), columns=list("abcde"))
    X["kind"] = rng.choice(["p", "q", "r"], 6000)
    y = np.where(X["a"] + X["b"] * X["c"] + (X["kind"] == "p") > 0.3, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def forest(rows):
    X, y = rows
    return RandomForestClassifier(30, max_depth=6, random_state=0).fit(
        X[list("abcde")][:2000], y[:2000]
    )


def test_a_fitted_estimator_is_kept_as_it_is(rows, forest):
    X = rows[0][list("abcde")]
    fast = EarlyExitClassifier(forest, alpha=0.01).fit(X[2000:5000])
    assert fast.estimator_ is forest
    assert fast.classes_.tolist() == ["no", "yes"]
    assert fast.n_features_in_ == 5
    assert fast.feature_names_in_.tolist() == list("abcde")
    assert fast.certificate_.rows + fast.certificate_.fit_rows == 3000
    assert fast.n_steps_ == fast.certificate_.mean_models <= 30
    new = X[5000:]
    same = qwyc.optimize(forest, X[2000:5000], alpha=0.01, progress=False)
    assert (fast.predict(new) == same.predict(new)).all()
    assert (fast.decide(new).steps == same.decide(new).steps).all()
    assert np.mean(fast.predict(new) != forest.predict(new)) < 0.03


def test_a_fitted_estimator_refuses_the_rows_that_it_was_trained_on(rows, forest):
    X, y = rows[0][list("abcde")], rows[1]
    for model in (forest, FrozenEstimator(forest)):
        with pytest.raises(qwyc.InputError, match="trained on") as refused:
            EarlyExitClassifier(model, alpha=0.05).fit(X[:2000], y[:2000])
        assert "pass rows that the model has not seen" in str(refused.value)
        assert "pass the estimator without fitting it" in str(refused.value)
    shuffled = np.random.default_rng(0).permutation(2000)
    with pytest.raises(qwyc.InputError, match="trained on"):
        EarlyExitClassifier(forest, alpha=0.05).fit(X.iloc[shuffled])
    proven = EarlyExitClassifier(forest, alpha=0).fit(X[:2000])  # true of every row
    assert proven.certificate_.how == "proven"


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_copies_of_training_rows_are_not_held_out(rows, kind):
    X = rows[0] if kind == "frame" else rows[0][list("abcde")].to_numpy()
    made = make_pipeline(
        ColumnTransformer([("k", OneHotEncoder(), ["kind"])], remainder="passthrough"),
        RandomForestClassifier(20, max_depth=6),
    )
    model = made if kind == "frame" else RandomForestClassifier(20, max_depth=6)
    five = pd.concat([X[:1000]] * 5) if kind == "frame" else np.tile(X[:1000], (5, 1))
    y = np.tile(rows[1][:1000], 5)
    with pytest.warns(qwyc.QwycWarning, match="the most frequent occurs 5 times"):
        fast = EarlyExitClassifier(model, alpha=0.1, holdout=0.4).fit(five, y)
    seen = fast.certificate_.rows + fast.certificate_.fit_rows
    assert seen == 2000
    assert seen == 5 * (fast.classifier_.origins.sample.hashes.size)  # all copies of 400 rows


def test_full_evaluation_is_the_estimators_own(rows, forest):
    X = rows[0][list("abcde")]
    fast = EarlyExitClassifier(forest, alpha=0.01).fit(X[2000:])
    full = forest.predict(X)
    assert (np.where(fast.decision_function(X) > 0, "yes", "no") == full).all()
    assert (fast.predict_proba(X) == forest.predict_proba(X)).all()
    proven = EarlyExitClassifier(forest, alpha=0).fit(X)
    assert (proven.predict(X) == full).all()


def test_a_frozen_estimator_survives_clones_and_needs_no_labels(rows, forest):
    X = rows[0][list("abcde")]
    meta = clone(EarlyExitClassifier(FrozenEstimator(forest), alpha=0.02))
    fast = meta.fit(X[2000:])
    assert (fast.predict_proba(X) == forest.predict_proba(X)).all()
    with pytest.raises(qwyc.ModelError, match="FrozenEstimator"):
        clone(EarlyExitClassifier(forest)).fit(X[2000:])


def test_an_unfitted_estimator_is_fitted_on_one_part_and_optimised_on_the_other(rows):
    X, y = rows[0][list("abcde")].to_numpy(), rows[1]
    seen = []

    class Forest(RandomForestClassifier):
        def fit(self, X, y, **params):
            seen.append((X, params))
            return super().fit(X, y, **params)

    meta = EarlyExitClassifier(Forest(20), alpha=0.02, holdout=0.4, n_jobs=-1)
    weight = np.arange(6000.0)
    fast = meta.fit(X, y, sample_weight=weight)
    fitted, params = seen[0]
    assert len(fitted) == len(params["sample_weight"]) == 3600
    assert (X[params["sample_weight"].astype(int)] == fitted).all()
    assert fast.certificate_.rows + fast.certificate_.fit_rows == 2400
    assert not hasattr(meta.estimator, "estimators_")
    again = clone(meta).fit(X, y, sample_weight=weight)
    assert (again.decide(X).score == fast.decide(X).score).all()


def test_groups_stay_together(rows):
    X, y = rows[0][list("abcde")].to_numpy(), rows[1]
    groups = np.arange(6000) // 10
    X = np.column_stack([X, groups])
    seen = []

    class Forest(RandomForestClassifier):
        def fit(self, X, y):
            seen.append(set(X[:, -1]))
            return super().fit(X, y)

    EarlyExitClassifier(Forest(5), alpha=0.02, holdout=0.5).fit(X, y, groups=groups)
    assert len(seen[0]) == 300


@pytest.mark.parametrize(
    "estimator",
    [
        xgboost.XGBClassifier(n_estimators=20),
        lightgbm.LGBMClassifier(n_estimators=20, verbose=-1),
        ExtraTreesClassifier(20),
        BaggingClassifier(n_estimators=10),
        BaggingClassifier(LogisticRegression(), n_estimators=5),
        AdaBoostClassifier(LogisticRegression(), n_estimators=5),
        VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
        StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], passthrough=True),
    ],
    ids=lambda e: type(e).__name__ + type(getattr(e, "estimator", None)).__name__,
)
def test_every_library(rows, estimator, tmp_path):
    X, y = rows[0][list("abcde")].to_numpy(), (rows[1] == "yes").astype(int)
    fast = EarlyExitClassifier(estimator, alpha=0.02).fit(X, y)
    assert np.mean(fast.predict(X) == y) > 0.7
    assert (fast.decision_function(X) > 0).tolist() == (fast.estimator_.predict(X) == 1).tolist()
    joblib.dump(fast, tmp_path / "fast.joblib")
    for revived in (pickle.loads(pickle.dumps(fast)), joblib.load(tmp_path / "fast.joblib")):
        assert (revived.predict(X) == fast.predict(X)).all()
        assert revived.certificate_ == fast.certificate_
    again = clone(fast).fit(X, y)
    assert (again.predict(X) == fast.predict(X)).mean() > 0.97


def columns(**options):
    return ColumnTransformer(
        [
            ("number", StandardScaler(), list("abcde")),
            ("kind", OneHotEncoder(sparse_output=False, **options), ["kind"]),
        ],
        verbose_feature_names_out=False,
    )


def test_at_the_end_of_a_pipeline_with_a_column_transformer(rows):
    X, y = rows
    pipeline = make_pipeline(columns(), EarlyExitClassifier(RandomForestClassifier(20), alpha=0.02))
    pipeline.set_output(transform="pandas").fit(X[:5000], y[:5000])
    assert pipeline[-1].feature_names_in_[-1] == "kind_r"
    assert pipeline.score(X[5000:], y[5000:]) > 0.85
    assert pipeline.decision_function(X[5000:]).shape == (1000,)


@pytest.mark.parametrize("frame", [lambda X: X, polars.from_pandas], ids=["pandas", "polars"])
def test_around_a_pipeline_which_then_has_not_seen_the_rows_aside(rows, frame):
    X, y = frame(rows[0]), rows[1]
    inner = make_pipeline(columns(handle_unknown="ignore"), RandomForestClassifier(20))
    fast = EarlyExitClassifier(inner, alpha=0.02).fit(X, y)
    assert fast.estimator_[0].n_features_in_ == 6
    assert (
        np.where(fast.decision_function(X) > 0, "yes", "no") == fast.estimator_.predict(X)
    ).all()
    assert (fast.predict_proba(X) == fast.estimator_.predict_proba(X)).all()


def test_grid_search_over_alpha(rows, forest):
    X, y = rows[0][list("abcde")], rows[1]

    def steps(estimator, X, y):
        return -estimator.decide(X).steps.mean()

    search = GridSearchCV(
        EarlyExitClassifier(FrozenEstimator(forest)),
        {"alpha": [0.004, 0.05]},
        scoring={"accuracy": "accuracy", "steps": steps},
        refit="steps",
        cv=3,
        error_score="raise",
    ).fit(X[2000:], y[2000:])
    assert search.best_params_ == {"alpha": 0.05}
    assert search.best_estimator_.certificate_.alpha == 0.05
    assert (search.cv_results_["mean_test_accuracy"] > 0.8).all()


def test_a_search_inside_is_taken_by_its_best_estimator(rows):
    X, y = rows[0][list("abcde")], rows[1]
    search = GridSearchCV(RandomForestClassifier(10, random_state=0), {"max_depth": [2, 5]}, cv=2)
    fast = EarlyExitClassifier(search, alpha=0.02).fit(X, y)
    assert (
        np.where(fast.decision_function(X) > 0, "yes", "no") == fast.estimator_.predict(X)
    ).all()


def test_metadata_is_routed(rows):
    X, y = rows[0][list("abcde")].to_numpy(), rows[1]
    with sklearn.config_context(enable_metadata_routing=True):
        forest = RandomForestClassifier(5).set_fit_request(sample_weight=True)
        meta = EarlyExitClassifier(forest, alpha=0.02).set_fit_request(groups=True)
        pipeline = make_pipeline(MinMaxScaler(), meta)
        groups, ones = np.arange(6000) // 3, np.ones(6000)
        plain = pipeline.fit(X, y, groups=groups, sample_weight=ones).predict(X)
        weighted = pipeline.fit(X, y, groups=groups, sample_weight=1 + 9 * (y == "no")).predict(X)
        assert np.mean(weighted == "no") > np.mean(plain == "no")
        with pytest.raises(TypeError, match="unexpected"):
            meta.fit(X, y, colour=ones)


def test_cross_validation_and_html(rows):
    X, y = rows[0][list("abcde")], rows[1]
    meta = EarlyExitClassifier(RandomForestClassifier(10), alpha=0.02)
    assert np.mean(cross_val_predict(meta, X, y, cv=2) == y) > 0.85
    html = meta._repr_html_()
    assert "EarlyExitClassifier" in html
    assert "RandomForestClassifier" in html


def test_filters_and_thresholds_pass_through(rows, forest):
    X = rows[0][list("abcde")]
    meta = EarlyExitClassifier(
        forest, alpha=0.02, quit="negative", threshold=qwyc.Probability(0.7), costs=[1.0] * 30
    )
    fast = meta.fit(X[2000:])
    decisions = fast.decide(X)
    assert decisions.complete[decisions.label == "yes"].all()
    assert ((fast.decision_function(X) > 0) == (forest.predict_proba(X)[:, 1] >= 0.7)).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": 0.0001}, qwyc.InfeasibleError, r"holdout=0.25 of 6,000 rows leaves 1,500"),
        ({"alpha": 0.0012}, qwyc.InfeasibleError, r"leaves 1,500. holdout=2695 would be enough."),
        ({"holdout": 1.5}, qwyc.OptionError, "a share such as 0.25"),
        ({"holdout": 6000}, qwyc.OptionError, "leaves nothing"),
        ({"quit": "never"}, qwyc.OptionError, "quit must be one of"),
    ],
)
def test_wrong_options(rows, options, error, message):
    meta = EarlyExitClassifier(RandomForestClassifier(2), **{"alpha": 0.05, **options})
    with pytest.raises(error, match=message):
        meta.fit(rows[0][list("abcde")], rows[1])


@pytest.mark.parametrize("estimator", [None, "forest", RandomForestClassifier, 3])
def test_what_is_no_estimator(rows, estimator):
    with pytest.raises(qwyc.OptionError, match=r"such as RandomForestClassifier\(\)"):
        EarlyExitClassifier(estimator).fit(rows[0], rows[1])


@pytest.mark.parametrize("estimator", [xgboost.XGBRegressor(), RandomForestRegressor()])
def test_regressors_are_refused_whatever_the_rows(rows, estimator):
    with pytest.raises(qwyc.OptionError, match="Regressor is a regressor"):
        EarlyExitClassifier(estimator).fit(rows[0][:50], np.arange(50.0))


def test_weights_for_every_row(rows):
    X, y = rows[0][list("abcde")], rows[1]
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[6000, 5\]"):
        EarlyExitClassifier(RandomForestClassifier(5)).fit(X, y, sample_weight=np.ones(5))


@pytest.mark.parametrize(
    "around",
    [
        lambda fast: CalibratedClassifierCV(fast, cv=2),
        lambda fast: VotingClassifier([("a", fast), ("b", LogisticRegression())], voting="soft"),
        lambda fast: StackingClassifier([("a", fast), ("b", LogisticRegression())], cv=2),
        lambda fast: BaggingClassifier(fast, n_estimators=2),
        lambda fast: TunedThresholdClassifierCV(fast, cv=2),
        lambda fast: GridSearchCV(make_pipeline(StandardScaler(), fast), {}, cv=2),
    ],
    ids=["calibrated", "voting", "stacking", "bagging", "threshold", "search"],
)
def test_inside_other_meta_estimators(rows, around):
    X, y = rows[0][list("abcde")], rows[1]
    fast = EarlyExitClassifier(HistGradientBoostingClassifier(max_iter=15), alpha=0.05, holdout=0.3)
    assert around(fast).fit(X, y).score(X, y) > 0.8


def test_learning_curves(rows):
    X, y = rows[0][list("abcde")], rows[1]
    fast = EarlyExitClassifier(HistGradientBoostingClassifier(max_iter=15), alpha=0.05)
    _, _, scores = learning_curve(fast, X, y, cv=2, train_sizes=[0.5, 1.0], error_score="raise")
    assert (scores > 0.8).all()


def test_not_fitted_yet(forest, rows):
    meta = EarlyExitClassifier(forest)
    with pytest.raises(NotFittedError):
        meta.predict(rows[0])
    assert not hasattr(meta, "certificate_")
    assert not hasattr(meta, "n_steps_")
    assert hasattr(meta, "predict_proba")
