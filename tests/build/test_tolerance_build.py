"""optimize with a tolerance: probabilities and values that quit early, their files and their refusals."""

import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
import treelite
import xgboost
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)

import qwyc
from qwyc.errors import ArtifactError, InfeasibleError, OptionError, ParityError
from support.trained import QUIET

ROWS = 5000


def rows(seed=0, n=ROWS):
    return np.random.default_rng(seed).normal(size=(n, 5)).astype(np.float32)


def value(X):
    return 3 * X[:, 0] + np.abs(X[:, 1]) * X[:, 2] + X[:, 3] ** 2


def classes(X):
    return value(X) + np.random.default_rng(len(X)).normal(size=len(X)) > 1.5


TRAIN, SAMPLE, NEW = rows(1, 2000), rows(2), rows(3, 4000)


def trained(kind):
    y, c = value(TRAIN), classes(TRAIN).astype(int)
    return {
        "xgboost": lambda: xgboost.XGBClassifier(n_estimators=40, n_jobs=1).fit(TRAIN, c),
        "xgboost-values": lambda: xgboost.XGBRegressor(n_estimators=40, n_jobs=1).fit(TRAIN, y),
        "xgboost-poisson": lambda: xgboost.XGBRegressor(
            n_estimators=40, objective="count:poisson", n_jobs=1
        ).fit(TRAIN, np.round(np.exp(y / 6))),
        "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=40, **QUIET).fit(TRAIN, c),
        "lightgbm-values": lambda: lightgbm.LGBMRegressor(n_estimators=40, **QUIET).fit(TRAIN, y),
        "forest": lambda: RandomForestClassifier(40, max_depth=6, random_state=0).fit(TRAIN, c),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=40).fit(TRAIN, c),
        "hist-values": lambda: HistGradientBoostingRegressor(max_iter=40).fit(TRAIN, y),
    }[kind]()


def own_output(model, X):
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize(
    "kind",
    [
        "xgboost",
        "xgboost-values",
        "xgboost-poisson",
        "lightgbm",
        "lightgbm-values",
        "forest",
        "boosting",
        "hist-values",
    ],
)
def test_outputs_are_within_the_tolerance_and_exact_where_complete(kind, tmp_path):
    model = trained(kind)
    tolerance = (
        0.1 if hasattr(model, "predict_proba") else 0.3 * float(np.std(own_output(model, NEW)))
    )
    made = qwyc.optimize(model, SAMPLE, tolerance=tolerance, alpha=0.02, evaluation="quit")
    assert isinstance(made, qwyc.Approximation)
    assert made.tolerance == tolerance
    own, found = own_output(model, NEW), made.decide(NEW)
    assert 0 < found.complete.mean() < 0.99 or not found.complete.any()
    assert np.mean(found.steps) < 0.95 * made.ensemble.n_models
    np.testing.assert_array_equal(found.score[found.complete], own[found.complete])
    assert np.mean(np.abs(found.score - own) > tolerance) < 0.03
    if hasattr(model, "predict_proba"):
        both = made.predict_proba(NEW)
        assert both.dtype == model.predict_proba(NEW).dtype
        np.testing.assert_array_equal(both[:, 1], found.score.astype(both.dtype))
        np.testing.assert_array_equal(made.predict(NEW), found.label)
        sure = np.abs(own - 0.5) > tolerance
        assert np.mean(made.predict(NEW)[sure] != model.predict(NEW)[sure]) < 0.02
        assert made.predict_one(NEW[0]) == found.label[0]
        np.testing.assert_array_equal(made.full().predict(NEW), model.predict(NEW))
    else:
        assert made.predict(NEW).dtype == own.dtype
        np.testing.assert_array_equal(made.predict(NEW), found.label)
        assert made.predict_one(NEW[0].tolist()) == found.label[0]
        with pytest.raises(OptionError, match="not probabilities"):
            made.predict_proba(NEW)
    full = made.full().decide(NEW)
    assert full.complete.all()
    np.testing.assert_array_equal(full.score, own)
    made.save(tmp_path / "made.qwyc")
    again = qwyc.load(tmp_path / "made.qwyc")
    assert isinstance(again, qwyc.Approximation)
    np.testing.assert_array_equal(again.decide(NEW).score, found.score)
    assert str(again) == str(replaced_speed(made))
    again.save(tmp_path / "again.qwyc")
    assert (tmp_path / "again.qwyc").read_bytes() == (tmp_path / "made.qwyc").read_bytes()


def replaced_speed(made):
    from dataclasses import replace

    return replace(made, speed=None)


@pytest.fixture(scope="module")
def values():
    model = trained("xgboost-values")
    return model, qwyc.optimize(model, SAMPLE, tolerance=1.0, alpha=0.01, evaluation="quit")


def test_the_certificate_says_what_is_promised(values):
    seen = values[1].certificate
    assert (seen.tolerance, seen.alpha, seen.confidence, seen.upper_bound) == (
        1.0,
        0.01,
        0.95,
        0.01,
    )
    assert seen.rows == 2500
    assert seen.observed == seen.disagreements / 2500 <= 0.01
    assert (
        "With 95% confidence, at most 1% of new rows get an output that is off by more than 1"
        in str(seen)
    )
    assert seen.as_dict()["tolerance"] == 1.0
    assert seen.as_dict()["off"] == seen.disagreements
    assert "qwyc.Approximation" in repr(values[1])
    assert "the value, within 1" in repr(values[1])


def test_other_alphas_come_from_the_path(values):
    made = values[1]
    bold, careful = made.at(alpha=0.05), made.at(alpha=0.002, confidence=0.9)
    assert bold.certificate.mean_models < made.certificate.mean_models
    assert careful.certificate.mean_models > made.certificate.mean_models
    assert bold.certificate.alpha == 0.05
    assert careful.certificate.confidence == 0.9
    assert made.full().at(alpha=0.05).decide(NEW[:50]).complete.all()
    with pytest.raises(InfeasibleError, match="certifying rows"):
        made.at(alpha=1e-4)


def test_it_is_the_same_every_time_in_tables_and_after_pickling(values):
    model, made = values
    again = qwyc.optimize(model, SAMPLE, tolerance=1.0, alpha=0.01, evaluation="quit", threads=1)
    found = made.predict(NEW)
    np.testing.assert_array_equal(again.predict(NEW), found)
    np.testing.assert_array_equal(made.predict(pd.DataFrame(NEW), threads=2), found)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made)).predict(NEW), found)


def test_verify_counts_outputs_that_are_off(values):
    model, made = values
    found = qwyc.verify(made, rows(4, 6000), alpha=0.03)
    output = made.decide(rows(4, 6000)).score
    off = np.sum(np.abs(output - model.predict(rows(4, 6000))) > 1.0)
    assert found.outcome == "pass"
    assert found.disagreements == off
    assert found.tolerance == 1.0
    assert "off by more than 1 from the full ensemble" in str(found)
    assert qwyc.verify(made, 3 * rows(5, 3000), alpha=1e-3).outcome in ("fail", "undecided")
    with pytest.raises(qwyc.InputError, match="made from"):
        qwyc.verify(made, SAMPLE)
    with pytest.raises(OptionError, match="by_class"):
        qwyc.verify(made, NEW, by_class={1: 0.1})
    with pytest.raises(OptionError, match="model of values"):
        qwyc.verify(made, NEW, model=model)


def test_groups_and_order_are_counted():
    model = trained("xgboost-values")
    groups = np.arange(ROWS) // 3
    made = qwyc.optimize(model, SAMPLE, tolerance=1.5, alpha=0.03, groups=groups, evaluation="quit")
    assert made.certificate.groups == ROWS // 6 + 1
    assert "groups" in str(made.certificate)
    made = qwyc.optimize(
        model, SAMPLE, tolerance=1.5, alpha=0.03, order_by=np.arange(ROWS), evaluation="quit"
    )
    assert len(made.certificate.windows) > 1
    assert "off" in str(made.certificate)


def test_full_evaluation_is_chosen_where_quitting_does_not_pay():
    model = trained("xgboost-values")
    made = qwyc.optimize(model, SAMPLE, tolerance=1e-3, alpha=0.01)
    assert made.policy.quit == "never"
    np.testing.assert_array_equal(made.predict(NEW), model.predict(NEW))
    assert "every row is evaluated in full" in repr(made)


def refused(model, match, **options):
    with pytest.raises(OptionError, match=match):
        qwyc.optimize(model, SAMPLE, **({"tolerance": 0.1, "alpha": 0.01} | options))


def test_what_it_does_not_go_with_is_refused():
    model = trained("xgboost")
    refused(model, "by_class", by_class={1: 0.01})
    refused(model, "quit='negative'", quit="negative")
    refused(model, "threshold", threshold=0.3)
    refused(model, "only", only=1)
    refused(model, "method='joint'", method="joint")
    refused(model, "feature_costs", feature_costs=np.ones(5))
    refused(model, "alpha must be above 0", alpha=0)
    refused(model, "one number", alpha={"negative": 0.1, "positive": 0.1})
    refused(model, "tolerance must be", tolerance=0)
    refused(model, "tolerance must be", tolerance=-1.0)
    three = xgboost.XGBClassifier(n_estimators=5).fit(TRAIN, np.arange(len(TRAIN)) % 3)
    refused(three, "3 classes")
    targets = xgboost.XGBRegressor(n_estimators=5).fit(TRAIN, TRAIN[:, :2])
    refused(targets, "several targets")
    forest = IsolationForest(n_estimators=10).fit(TRAIN)
    refused(forest, "anomaly scores")
    refused(treelite.sklearn.import_model(forest), "anomaly scores")


def test_a_model_that_was_not_read_exactly_is_refused():
    model = trained("lightgbm-values")

    class Other(lightgbm.LGBMRegressor):
        def predict(self, X, **options):
            return super().predict(X, **options) + 1e-3

    model.__class__ = Other
    with pytest.raises(ParityError, match="row 0 of X"):
        qwyc.optimize(model, SAMPLE[:3000], tolerance=1.0, alpha=0.01)


def test_what_takes_classifiers_only_says_so(values, tmp_path):
    made = values[1]
    for call in (
        lambda: qwyc.Monitor(made),
        lambda: qwyc.recertify(made, NEW, alpha=0.01),
        lambda: qwyc.diagnose(made, NEW),
        lambda: qwyc.distributed.decide(made, NEW),
    ):
        with pytest.raises(OptionError, match="Approximation"):
            call()
    for name in ("report", "export_c", "decide_lazily"):
        with pytest.raises(AttributeError, match=f"{name} is a method of qwyc.Classifier"):
            getattr(made, name)
    with pytest.raises(AttributeError, match="no attribute"):
        made.colour  # noqa: B018


def test_damaged_estimates_are_refused(values, tmp_path):
    from qwyc.files import container

    values[1].save(tmp_path / "made.qwyc")
    found = container.unpack((tmp_path / "made.qwyc").read_bytes(), (1, 2))
    tensors = {name: np.array(array) for name, array in found.tensors.items()}
    for change in (
        {"estimates.knots": tensors["estimates.knots"][::-1].copy()},
        {"estimates.begin": tensors["estimates.begin"] + 1},
        {"estimates.slope": tensors["estimates.slope"] * np.nan},
        {"estimates.begin": np.zeros_like(tensors["estimates.begin"])},
    ):
        damaged = container.Container(found.format, found.body, tensors | change)
        (tmp_path / "bad.qwyc").write_bytes(container.pack(damaged))
        with pytest.raises(ArtifactError):
            qwyc.load(tmp_path / "bad.qwyc")
    first = {name: tensors[name].copy() for name in ("path.lower", "path.upper")}
    first["path.lower"][0, 2] = np.inf  # the policy that never quits
    damaged = container.Container(found.format, found.body, tensors | first)
    (tmp_path / "bad.qwyc").write_bytes(container.pack(damaged))
    with pytest.raises(ArtifactError, match="first policy of the path quits"):
        qwyc.load(tmp_path / "bad.qwyc")
    certificate = found.body["certificate"]
    counts = certificate["counts"] | {"exits": [n for n in certificate["counts"]["exits"] if n]}
    assert len(counts["exits"]) < len(certificate["counts"]["exits"])
    exits = found.body | {"certificate": certificate | {"counts": counts}}
    (tmp_path / "bad.qwyc").write_bytes(
        container.pack(container.Container(found.format, exits, tensors))
    )
    with pytest.raises(ArtifactError, match="counts of where rows stopped"):
        qwyc.load(tmp_path / "bad.qwyc")
    changes = (
        {"tolerance": 0.0},
        {"tolerance": "x"},
        {"kind": "two-classes"},
        {"threshold": 1e308},
    )
    for target in changes:
        body = found.body | {"target": found.body["target"] | target}
        (tmp_path / "bad.qwyc").write_bytes(
            container.pack(container.Container(found.format, body, tensors))
        )
        with pytest.raises(ArtifactError):
            qwyc.load(tmp_path / "bad.qwyc")
