"""`optimize(..., only=label)`: a filter for one class, from the model to its file."""

import pickle
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import qwyc
from many_classes import class_ensemble, full_labels, rows_of
from qwyc.classifier import from_certified
from qwyc.errors import ArtifactError, InputError, OptionError
from qwyc.files import classifier_file, container
from qwyc.target.ties import Ties

FOUR = class_ensemble(4, classes=["a", "b", "c", "d"], ties=Ties("softmax", "float32"))
SAMPLE, NEW = rows_of(6000), rows_of(20_000, seed=2)
FULL = full_labels(FOUR, NEW)


@pytest.fixture(scope="module")
def fast():
    return qwyc.optimize(FOUR, SAMPLE, only="b", alpha=0.01, evaluation="quit")


def lost(fast, rows=NEW, full=FULL, own="b"):
    return (full == own) & (fast.predict(rows) != own)


def test_rows_of_other_classes_leave_and_the_others_have_full_scores(fast):
    done, whole = fast.decide(NEW), fast.score_full(NEW)
    assert lost(fast).mean() <= 0.01
    assert not ((done.label == "b") & (FULL != "b")).any()  # none is gained
    assert done.steps.mean() < 0.9 * FOUR.n_models
    complete = done.complete
    np.testing.assert_array_equal(done.score[complete], whole[complete])
    np.testing.assert_array_equal(done.label[complete], FULL[complete])
    assert not (done.label[~complete] == "b").any()
    assert len(set(done.label[~complete])) > 1
    best = np.argmax(np.where(np.arange(4) == 1, -np.inf, done.score), axis=1)
    np.testing.assert_array_equal(done.label[~complete], FOUR.classes[best[~complete]])
    assert [fast.predict_one(row) for row in NEW[:200]] == done.label[:200].tolist()


def test_the_certificate_is_about_the_class_alone(fast):
    seen = fast.certificate
    (loss,) = seen.classes
    assert loss.name == "b"
    assert loss.lost == seen.disagreements <= loss.rows < seen.rows == 3000
    assert "at most 1% of new rows leave early although the full ensemble calls them b" in str(seen)
    assert "whether the largest of 4 scores is that of b" in repr(fast)
    assert "that of b" in fast._repr_html_()
    assert seen.quit == "negative"
    assert seen.can_lose(1)
    assert not seen.can_lose(0)


def test_a_limit_on_the_class():
    limited = qwyc.optimize(FOUR, SAMPLE, only="b", by_class={"b": 0.03}, evaluation="quit")
    assert lost(limited)[FULL == "b"].mean() <= 0.03
    assert limited.certificate.by_class == {"b": 0.03}
    assert limited.certificate.alpha is None
    bolder = limited.at(alpha=0.05)
    assert bolder.decide(NEW).steps.mean() < limited.decide(NEW).steps.mean()
    assert isinstance(bolder.policy, qwyc.FilterPolicy)
    again = qwyc.recertify(limited, rows_of(5000, seed=9), by_class={"b": 0.05})
    assert again.certificate.by_class == {"b": 0.05}
    assert again.only == 1


@pytest.mark.parametrize(
    "options",
    [
        {"groups": np.arange(6000) // 2},
        {"order_by": np.arange(6000)},
        {"headroom": 4000},
        {"costs": np.linspace(1, 2, 20)},
        {"max_rows": 5000},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_options_go_with_it(options):
    made = qwyc.optimize(FOUR, SAMPLE, only="b", alpha=0.04, evaluation="quit", **options)
    assert made.only == 1
    assert 0 < lost(made).mean() <= 0.04
    again = from_certified(classifier_file.from_bytes(classifier_file.to_bytes(made)))
    assert again.certificate == made.certificate
    np.testing.assert_array_equal(again.predict(NEW), made.predict(NEW))


def test_it_is_the_same_for_the_same_seed(fast):
    again = qwyc.optimize(FOUR, SAMPLE, only="b", alpha=0.01, evaluation="quit", threads=1)
    assert classifier_file.to_bytes(again) == classifier_file.to_bytes(fast)


def test_alpha_0_is_proven_without_rows():
    proven = qwyc.optimize(FOUR, only="c", alpha=0)
    done = proven.decide(NEW)
    np.testing.assert_array_equal(done.label == "c", FULL == "c")
    assert done.steps.mean() < FOUR.n_models
    assert qwyc.verify(proven, NEW).outcome == "pass"


def test_the_published_algorithm_2():
    fitted = qwyc.optimize(FOUR, SAMPLE, only="a", alpha=0.02, method="natural", evaluation="quit")
    own = full_labels(FOUR, SAMPLE)
    assert lost(fitted, SAMPLE, own, "a").mean() <= 0.02
    assert fitted.policy.order.tolist() == list(range(FOUR.n_models))
    with pytest.raises(OptionError, match="method='joint' is not for a filter"):
        qwyc.optimize(FOUR, SAMPLE, only="a", alpha=0.02, method="joint")


def test_promises_hold_as_often_as_stated():
    """Repeated draws of a sample from the same population."""
    ensemble = class_ensemble(3, 8, classes=["a", "b", "c"], seed=3)
    population = rows_of(30_000, seed=5)
    full = full_labels(ensemble, population)
    broken, quits, rng = 0, 0, np.random.default_rng(0)
    for seed in range(30):
        rows = population[rng.choice(len(population), 1500, replace=False)]
        fast = qwyc.optimize(
            ensemble,
            rows,
            only="b",
            alpha=0.03,
            by_class={"b": 0.08},
            confidence=0.8,
            seed=seed,
            evaluation="quit",
        )
        missed = lost(fast, population, full)
        broken += max(missed.mean() / 0.03, missed[full == "b"].mean() / 0.08) > 1
        quits += missed.any()
    assert broken <= 0.2 * 30 + 2 * np.sqrt(30 * 0.2 * 0.8)
    assert quits > 15  # it does not hold because nothing leaves


def test_verify_and_diagnose_count_what_is_lost(fast):
    missed = int(lost(fast).sum())
    verified = qwyc.verify(fast, NEW)
    assert verified.disagreements == missed
    assert verified.outcome in ("pass", "undecided")
    assert f"b: {missed:,} of {np.sum(FULL == 'b'):,} lost" in str(verified)
    found = qwyc.diagnose(fast, NEW)
    assert [share.name for share in found.by_decision] == ["b", "other classes"]
    assert [share.disagreements for share in found.by_decision] == [missed, 0]
    assert sum(change.rows for change in found.changes) == missed
    assert {change.full for change in found.changes} == {"b"}
    assert "most frequent changes" in str(found)
    limited = qwyc.verify(fast, NEW, by_class={"b": 0.5})
    assert limited.outcome == "pass"


def test_full_never_lets_a_row_leave(fast):
    full = fast.full()
    assert full.decide(NEW).complete.all()
    assert full.only == 1
    np.testing.assert_array_equal(full.predict(NEW), FULL)


# ---- files ------------------------------------------------------------------------------------


def test_it_goes_through_a_file_and_pickle(fast, tmp_path):
    fast.save(tmp_path / "b.qwyc")
    for again in (qwyc.load(tmp_path / "b.qwyc"), pickle.loads(pickle.dumps(fast))):
        first, second = fast.decide(NEW[:500]), again.decide(NEW[:500])
        for name in ("label", "steps", "score", "complete"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert again.certificate == fast.certificate
        assert again.only == 1
        bolder = fast.at(alpha=0.03), again.at(alpha=0.03)
        assert bolder[0].certificate == bolder[1].certificate


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda body: body["target"].update(only=4), "only is class 4"),
        (lambda body: body["target"].update(only=-1), "count|number|least"),
        (lambda body: body["target"].pop("only"), "'only' is missing"),
        (lambda body: body["target"].update(kind="many-classes"), "missing or unknown"),
        (lambda body: body["certificate"].update(by_class={"0": 0.1}), "limits on others"),
    ],
)
def test_damaged_files_are_refused(fast, change, match):
    found = container.unpack(classifier_file.to_bytes(fast), (2,))
    change(found.body)
    with pytest.raises(ArtifactError, match=match):
        from_certified(classifier_file.from_bytes(container.pack(found)))


# ---- trained models ---------------------------------------------------------------------------


def test_trained_models():
    X, y = make_classification(
        9_000, 10, n_informative=6, n_classes=3, n_clusters_per_class=1, random_state=1
    )
    names = np.array(["x", "y", "z"])
    booster = xgboost.XGBClassifier(n_estimators=25, max_depth=3, n_jobs=1).fit(X[:2000], y[:2000])
    forest = RandomForestClassifier(40, max_depth=6, random_state=0, n_jobs=1)
    forest.fit(X[:2000], names[y[:2000]])
    for model, own in ((booster, 1), (forest, "y")):
        fast = qwyc.optimize(model, X[2000:5000], only=own, alpha=0.02, evaluation="quit")
        done, said = fast.decide(X[5000:]), model.predict(X[5000:])
        assert not ((done.label == own) & (said != own)).any()
        assert np.mean((done.label != own) & (said == own)) < 0.02
        assert done.steps.mean() < 0.8 * fast.policy.n_models


def test_two_classes():
    """With a score each, a filter for either; with one score, `quit` is the filter."""
    X, y = make_classification(6_000, 8, n_informative=5, random_state=1)
    forest = RandomForestClassifier(30, max_depth=5, random_state=0, n_jobs=1)
    with pytest.raises(OptionError, match="quit='negative' is the filter for 1"):
        qwyc.optimize(forest.fit(X[:2000], y[:2000]), X[2000:], only=1, alpha=0.02)
    two = lightgbm.LGBMClassifier(
        objective="multiclass", num_class=2, n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1
    ).fit(X[:2000], y[:2000])
    fast = qwyc.optimize(two, X[2000:], only=0, alpha=0.02, evaluation="quit")
    assert fast.only == 0
    done, said = fast.decide(X[2000:]), two.predict(X[2000:])
    np.testing.assert_array_equal(done.label[done.label == 0], said[done.label == 0])
    assert np.mean((done.label != 0) & (said == 0)) < 0.02
    assert not done.complete.all()


def test_as_an_estimator():
    X, y = make_classification(
        8_000, 10, n_informative=6, n_classes=3, n_clusters_per_class=1, random_state=1
    )
    model = qwyc.EarlyExitClassifier(
        xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1),
        only=2,
        alpha=0.02,
        holdout=0.5,
        evaluation="quit",
    )
    model.fit(X, y)
    assert model.classifier_.only == 2
    own = model.estimator_.predict(X) == 2
    assert np.mean(own & (model.predict(X) != 2)) < 0.02
    assert model.decision_function(X[:5]).shape == (5, 3)


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"only": "e"}, r"only names 'e'; the classes are \['a', 'b', 'c', 'd'\]"),
        ({"only": "a", "by_class": {"b": 0.1}}, "by_class names 'a' or nothing"),
        ({"only": "a", "quit": "negative"}, "quit must be"),
        ({"only": "a", "threshold": 0.5}, "threshold is for two classes"),
        ({"only": "a", "alpha": {"negative": 0.1, "positive": 0.1}}, "alpha by kind"),
    ],
)
def test_options_that_mean_nothing(options, match):
    with pytest.raises(OptionError, match=match):
        qwyc.optimize(FOUR, SAMPLE, **({"alpha": 0.05} | options))


def test_limits_on_other_classes_are_refused_later_too(fast):
    for call in (
        lambda: fast.at(by_class={"a": 0.1}),
        lambda: qwyc.verify(fast, NEW, by_class={"a": 0.1}),
        lambda: qwyc.recertify(fast, NEW, by_class={"a": 0.1}),
    ):
        with pytest.raises(OptionError, match="with only='b', no row of another class"):
            call()
    with pytest.raises(InputError, match="made from"):
        qwyc.recertify(fast, SAMPLE)


def test_a_policy_of_other_classes_does_not_fit(fast):
    three = class_ensemble(3)
    with pytest.raises(OptionError, match="the policy is for 4 classes"):
        qwyc.Classifier(three, fast.policy, fast.certificate)
    with pytest.raises(OptionError, match="decide ties differently"):
        qwyc.Classifier(FOUR, replace(fast.policy, ties=Ties()), fast.certificate)
