"""verify, diagnose, recertify, reports and pictures of classifiers of K classes."""

import matplotlib

matplotlib.use("Agg")

import warnings
from dataclasses import replace

import numpy as np
import pytest
import xgboost
from matplotlib import pyplot
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import qwyc
from many_classes import class_ensemble, full_labels, rows_of
from qwyc.check.benchmark import bench
from qwyc.report import inspection
from qwyc.target.ties import Ties

LABELS = ["ant", "bee", "cat", "dog"]
FOUR = class_ensemble(4, classes=LABELS)
SAMPLE, NEW = rows_of(6000), rows_of(20_000, seed=2)


@pytest.fixture(scope="module")
def fast():
    return qwyc.optimize(FOUR, SAMPLE, alpha=0.02, evaluation="quit")


def test_verify_passes_fails_or_is_undecided(fast):
    for alpha, outcome in ((0.05, "pass"), (0.001, "fail")):
        found = qwyc.verify(fast, NEW, alpha=alpha)
        assert found.outcome == outcome
        assert str(found).startswith(outcome.upper())
    differ = fast.predict(NEW) != full_labels(FOUR, NEW)
    assert found.disagreements == differ.sum()
    assert [loss.name for loss in found.classes] == LABELS
    assert f"dog: {found.classes[3].lost} of {found.classes[3].rows:,} lost" in str(found)
    facts = found.as_dict()
    assert sum(loss["lost"] for loss in facts["classes"]) == facts["rows"] * differ.mean()
    few = qwyc.verify(fast, NEW[:50])
    assert (few.outcome, few.rows) == ("undecided", 50)


def test_verify_tests_limits_by_class(fast):
    full = full_labels(FOUR, NEW)
    share = {label: np.mean(fast.predict(NEW)[full == label] != label) for label in LABELS}
    worst = max(share, key=share.get)
    good = {label: 2 * s + 0.01 for label, s in share.items()}
    assert qwyc.verify(fast, NEW, by_class=good).outcome == "pass"
    assert qwyc.verify(fast, NEW, by_class=good | {worst: share[worst] / 3}).outcome == "fail"
    found = qwyc.verify(fast, NEW, alpha=0.5, by_class={worst: 0.5})
    assert found.by_class == {worst: 0.5}


def test_a_model_of_other_classes_is_not_compared_with():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = (X[:, :3] + rng.normal(size=(4000, 3))).argmax(axis=1)
    names = np.array(["ant", "bee", "cat"])[y]
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X[:1000], names[:1000])
    fast = qwyc.optimize(model, X[1000:3000], alpha=0.1)
    assert qwyc.verify(fast, X[3000:], model=model).parity is not None
    for labels, named in ((y, "0, 1, 2"), (y > 0, "False, True"), (y % 2, "0, 1")):
        other = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X[:1000], labels[:1000])
        with pytest.raises(qwyc.ParityError) as caught:
            qwyc.verify(fast, X[3000:], model=other)
        said = (
            f"the classes of RandomForestClassifier are [{named}], and those of the classifier are "
        )
        assert str(caught.value).startswith(f"{said}['ant', 'bee', 'cat']. ")


def test_rows_of_the_sample_are_refused(fast):
    with pytest.raises(qwyc.InputError, match="made from"):
        qwyc.verify(fast, SAMPLE[:1000])
    with pytest.raises(qwyc.InputError, match="made from"):
        qwyc.recertify(fast, SAMPLE)


def test_diagnose_shows_which_classes_are_taken_for_each_other(fast):
    found = qwyc.diagnose(fast, NEW)
    full, early = full_labels(FOUR, NEW), fast.predict(NEW)
    assert sum(change.rows for change in found.changes) == (full != early).sum()
    for change in found.changes:
        assert change.full != change.early
        assert change.rows == np.sum((full == change.full) & (early == change.early))
    rows = [change.rows for change in found.changes]
    assert rows == sorted(rows, reverse=True)
    text = str(found)
    assert "rows by full decision (lines) and by early decision (columns)" in text
    table = text[text.index("rows by full decision") :].splitlines()
    assert table[1].split() == LABELS
    assert table[2].split()[:2] == ["ant", "-"]
    counts = {(c.full, c.early): c.rows for c in found.changes}
    assert table[5].split()[1:4] == [str(counts.get(("dog", x), 0)) for x in LABELS[:3]]
    assert [share.name for share in found.by_decision] == LABELS


def test_diagnose_lists_the_largest_changes_of_many_classes():
    ensemble = class_ensemble(30, 12, seed=4)
    fast = qwyc.optimize(ensemble, SAMPLE, alpha=0.1, evaluation="quit")
    found = qwyc.diagnose(fast, NEW[:5000], slices={"half": np.arange(5000) // 2500})
    text = str(found)
    first = found.changes[0]
    assert f"  {first.full} to {first.early}: {first.rows}" in text
    assert "more pairs" in text
    assert "and 18 more classes" in text
    assert len(text.splitlines()) < 60
    assert len(found.by_decision) == 30
    assert "of each of the other 27 classes, no larger share" in str(fast.certificate)


def test_two_classes_have_no_table_of_changes():
    ensemble = class_ensemble(2)
    fast = qwyc.optimize(ensemble, SAMPLE, alpha=0.02, evaluation="quit")
    found = qwyc.diagnose(fast, NEW)
    assert found.changes == []
    assert "columns" not in str(found)


def test_recertify_chooses_again(fast):
    bold = qwyc.recertify(fast, NEW, alpha=0.05)
    assert bold.certificate.rows == 20_000
    assert bold.certificate.mean_models < fast.certificate.mean_models
    fresh = rows_of(10_000, seed=11)
    assert np.mean(bold.predict(fresh) != full_labels(FOUR, fresh)) <= 0.05
    limited = qwyc.recertify(fast, NEW, by_class=dict.fromkeys(LABELS, 0.03))
    differ = limited.predict(fresh) != full_labels(FOUR, fresh)
    assert max(differ[full_labels(FOUR, fresh) == label].mean() for label in LABELS) <= 0.03
    with pytest.raises(qwyc.OptionError, match="must name every class"):
        qwyc.recertify(fast, NEW, by_class={"ant": 0.03})
    grouped = qwyc.recertify(fast, NEW, alpha=0.05, groups=np.repeat(np.arange(10_000), 2))
    assert grouped.certificate.groups == 10_000


def test_more_classes_than_a_byte_holds():
    ensemble = class_ensemble(300, 4, seed=5)
    fast = qwyc.optimize(ensemble, SAMPLE, alpha=0.2, evaluation="quit")
    found = qwyc.verify(fast, NEW[:3000], groups=np.arange(3000) // 2)
    full, early = full_labels(ensemble, NEW[:3000]), fast.predict(NEW[:3000])
    assert full.max() > 255
    assert found.disagreements == np.sum(full != early)
    assert qwyc.recertify(fast, NEW[:3000], alpha=0.3).certificate.rows == 3000


def test_other_operating_points(fast):
    bolder = fast.at(alpha=0.05)
    assert bolder.certificate.mean_models < fast.certificate.mean_models
    never = fast.full()
    assert never.policy.quit == "never"
    np.testing.assert_array_equal(never.predict(NEW), full_labels(FOUR, NEW))
    assert [loss.upper_bound for loss in never.certificate.classes] == [0] * 4
    with pytest.raises(qwyc.OptionError, match="must name every class"):
        fast.at(by_class={"ant": 0.1})
    limited = fast.at(by_class=dict.fromkeys(LABELS, 0.05))
    assert limited.certificate.by_class == dict.fromkeys(LABELS, 0.05)
    proven = qwyc.optimize(FOUR, alpha=0)
    assert proven.full().certificate.how == "proven"


def test_one_row_is_decided_like_many(fast):
    assert [fast.predict_one(row) for row in NEW[:20]] == fast.predict(NEW[:20]).tolist()
    assert fast.predict_one(NEW[0].tolist()) == fast.predict(NEW[:1])[0]


def test_values_that_the_model_refuses():
    names = tuple("uvwxyz")
    fast = qwyc.optimize(class_ensemble(4, classes=LABELS, names=names), SAMPLE, alpha=0.02)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(NEW[:6], columns=list(names)).astype(object)
    frame.loc[2, "v"] = "no number"
    decided = fast.decide(frame, unseen="flag")
    assert decided.label[2] is None
    assert "no number" in decided.reason[2]
    assert np.isnan(decided.score[2]).all()
    others = [0, 1, 3, 4, 5]
    assert decided.label[others].tolist() == fast.predict(NEW[others]).tolist()
    assert fast.decide(frame, unseen="missing").score.shape == (6, 4)


def test_an_error_about_scores_shows_the_one_that_is_furthest_off():
    """Scores that are all shifted decide alike."""
    X, y = make_classification(4000, 8, n_informative=6, n_classes=4, random_state=0)
    models = [
        xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1, base_score=base)
        for base in (0.5, 0.75)
    ]
    first, second = (model.fit(X[:1000], y[:1000]) for model in models)
    fast = qwyc.optimize(first, alpha=0)
    with pytest.raises(qwyc.ParityError, match="0 of them in their decision") as raised:
        qwyc.verify(fast, X[1000:], model=second)
    assert str(raised.value).count("(score ") == 2  # of one class, by the model and as it was read
    assert "scores" not in str(raised.value).split(";")[0]


def test_a_filter_is_drawn():
    only = qwyc.optimize(class_ensemble(3), SAMPLE, only=1, alpha=0.05, evaluation="quit")
    ax = qwyc.plot.thresholds(only)
    assert "best other class over 1" in ax.get_ylabel()
    drawn = ax.lines[0].get_ydata()
    known = np.isfinite(only.policy.gap)
    np.testing.assert_array_equal(drawn[known], only.policy.gap[known])
    assert "No row leaves" in qwyc.plot.thresholds(only.full()).get_title()
    pyplot.close("all")


def test_it_is_described(fast):
    facts = inspection.inspect(fast)
    assert facts["classes"] == LABELS
    assert facts["threshold"] is None
    assert len(facts["certificate"]["classes"]) == 4
    text = inspection.describe(fast)
    assert (
        "the largest of 4 scores, one for each class; quits early for the class that leads" in text
    )
    assert "other alphas" in text
    html = fast._repr_html_()
    assert "the largest of 4 scores" in html
    assert "<polygon" in html
    assert "never early" in fast.full()._repr_html_()


def test_pictures(fast):
    try:
        ax = qwyc.plot.thresholds(fast)
        assert ax.get_ylabel() == "lead over the second class"
        np.testing.assert_array_equal(
            np.nan_to_num(ax.lines[0].get_ydata(), nan=np.inf), fast.policy.lead[:, 0]
        )
        own = qwyc.optimize(FOUR, SAMPLE, alpha=0.05, by_class={"cat": 0.03}, evaluation="quit")
        assert len(qwyc.plot.thresholds(own).lines) == 2
        assert qwyc.plot.thresholds(fast.full()).get_title() == "No row quits early"
        assert len(qwyc.plot.tradeoff(fast).lines) == 2
        assert qwyc.plot.survival(fast, NEW).lines[0].get_ydata()[-1] == 0
        bars = qwyc.plot.histogram(fast, NEW).patches
        assert sum(bar.get_height() for bar in bars) == len(NEW)
    finally:
        pyplot.close("all")


def counting(ensemble, rows):
    """The same ensemble; leaves keep twice the curvature of a softmax that these rows have in them, as
    XGBoost does."""
    models = ensemble.base_models
    trees, K = models.trees, models.n_scores
    number = replace(trees, leaf_value=np.arange(trees.leaf_begin[-1], dtype=np.float64))
    leaf = replace(models.structure, trees=number).scores(rows)[0].astype(int)  # (N, T)
    values = ensemble.scores(rows).values
    weight = np.zeros(trees.leaf_begin[-1])
    for t in range(leaf.shape[1]):
        sums = models.start + values[:, : t // K].sum(axis=1, dtype=np.float64)
        share = (np.exp(sums) / np.exp(sums).sum(axis=1, keepdims=True))[:, models.tree_class[t]]
        np.add.at(weight, leaf[:, t], 2 * share * (1 - share))
    known = replace(trees, leaf_weight=weight)
    return replace(ensemble, base_models=replace(models, trees=known, weighs="curvature"))


def test_training_rows_of_boosting_are_found():
    made = class_ensemble(3, 12, ties=Ties("softmax", "float32"), lean=[0.5, 0.0, -0.2])
    rows = rows_of(9000, seed=21)
    ensemble = counting(made, rows[:3000])
    with pytest.warns(qwyc.TrainingRowsWarning):
        fast = qwyc.optimize(ensemble, rows[:3000], alpha=0.05)
    assert "No promise" in str(fast.certificate)
    for new in (rows[3000:6000], rows[6000:]):
        with warnings.catch_warnings():
            warnings.simplefilter("error", qwyc.TrainingRowsWarning)
            fast = qwyc.optimize(ensemble, new, alpha=0.05)
        with pytest.warns(qwyc.TrainingRowsWarning, match="cannot show that the promise holds"):
            assert qwyc.verify(fast, rows[:3000]).doubts


def test_bench(fast):
    found = bench(fast, NEW[:500], seconds=0.01, sizes=(1, 256))
    assert found.disagreements == np.sum(fast.predict(NEW[:500]) != full_labels(FOUR, NEW[:500]))
    assert found.base_models == 20
    assert {line.batch for line in found.lines} == {1, 256}
