"""`optimize` for models that give each of K classes a score."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import qwyc
from many_classes import class_ensemble, full_labels, rows_of
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.trees import Summation
from qwyc.promise.evaluation import Speed
from qwyc.target.ties import Ties

FOUR = class_ensemble(4, classes=["a", "b", "c", "d"])
SAMPLE, NEW = rows_of(6000), rows_of(20_000, seed=2)


@pytest.fixture(scope="module")
def fast():
    return qwyc.optimize(FOUR, SAMPLE, alpha=0.02, evaluation="quit")


def disagreement(fast, rows):
    return fast.predict(rows) != full_labels(fast.ensemble, rows)


def test_rows_quit_and_alpha_holds_on_new_rows(fast):
    decisions = fast.decide(NEW)
    assert np.mean(decisions.label != full_labels(FOUR, NEW)) <= 0.02
    assert decisions.steps.mean() < 0.7 * FOUR.n_models
    assert decisions.score.shape == (len(NEW), 4)
    complete = decisions.complete
    assert 0 < complete.sum() < len(NEW)
    np.testing.assert_array_equal(decisions.score[complete], fast.score_full(NEW)[complete])
    assert set(decisions.label) == {"a", "b", "c", "d"}
    assert isinstance(fast.policy, qwyc.LeadPolicy)


def test_it_is_the_same_for_the_same_seed(fast):
    again = qwyc.optimize(FOUR, SAMPLE, alpha=0.02, evaluation="quit", threads=1)
    np.testing.assert_array_equal(again.policy.lead, fast.policy.lead)
    np.testing.assert_array_equal(again.policy.order, fast.policy.order)
    assert again.certificate == fast.certificate
    other = qwyc.optimize(FOUR, SAMPLE, alpha=0.02, evaluation="quit", seed=1)
    assert other.certificate != fast.certificate


def test_the_certificate_names_the_classes(fast):
    seen = fast.certificate
    assert [loss.name for loss in seen.classes] == ["a", "b", "c", "d"]
    assert sum(loss.rows for loss in seen.classes) == seen.rows == 3000
    assert sum(loss.lost for loss in seen.classes) == seen.disagreements
    assert "at most 2% of new rows are decided differently" in str(seen)
    assert "the largest of 4 scores" in repr(fast)
    facts = seen.as_dict()
    assert [loss["name"] for loss in facts["classes"]] == ["a", "b", "c", "d"]
    assert "full_positive" not in facts


@pytest.mark.parametrize("by_class", [None, {"b": 0.06}])
def test_promises_hold_as_often_as_stated(by_class):
    """Repeated draws of a sample from the same population."""
    ensemble = class_ensemble(3, 8, classes=["a", "b", "c"], seed=3)
    population = rows_of(30_000, seed=5)
    full = full_labels(ensemble, population)
    broken, quits, rng = 0, 0, np.random.default_rng(0)
    for seed in range(30):
        rows = population[rng.choice(len(population), 1200, replace=False)]
        fast = qwyc.optimize(
            ensemble,
            rows,
            alpha=0.04,
            by_class=by_class,
            confidence=0.8,
            seed=seed,
            evaluation="quit",
        )
        differ = fast.predict(population) != full
        shares = [differ.mean() / 0.04, differ[full == "b"].mean() / 0.06 if by_class else 0.0]
        broken += max(shares) > 1
        quits += fast.policy.quit != "never" and differ.any()
    assert broken <= 0.2 * 30 + 2 * np.sqrt(30 * 0.2 * 0.8)
    assert quits > 20  # it does not hold because nothing quits


def test_a_limit_on_a_class_is_kept(fast):
    limited = qwyc.optimize(FOUR, SAMPLE, alpha=0.05, by_class={"c": 0.02}, evaluation="quit")
    full = full_labels(FOUR, NEW)
    mine = full == "c"
    assert np.mean(limited.predict(NEW)[mine] != "c") <= 0.02
    assert limited.certificate.by_class == {"c": 0.02}
    assert limited.certificate.classes[2].upper_bound == 0.02
    # Classes have thresholds of their own where limits differ.
    assert not (limited.policy.lead == limited.policy.lead[:, :1]).all()
    assert (fast.policy.lead == fast.policy.lead[:, :1]).all()


def test_limits_on_all_classes_need_no_alpha():
    share = dict.fromkeys("abcd", 0.03)
    limited = qwyc.optimize(FOUR, SAMPLE, by_class=share, evaluation="quit")
    full = full_labels(FOUR, NEW)
    differ = limited.predict(NEW) != full
    assert max(differ[full == label].mean() for label in "abcd") <= 0.03
    assert "of each class, by the full ensemble, at most 3%" in str(limited.certificate)
    assert limited.certificate.alpha is None
    with pytest.raises(qwyc.OptionError, match="must name every class"):
        qwyc.optimize(FOUR, SAMPLE, by_class={"a": 0.03})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quit": "negative"}, 'quit must be "both"'),
        ({"threshold": 0.5}, "threshold is for two classes"),
        ({"threshold": qwyc.Probability(0.5)}, "threshold is for two classes"),
        ({"alpha": {"negative": 0.01, "positive": 0.01}}, "alpha by kind is for two classes"),
        ({"by_class": {"e": 0.01}}, "by_class names 'e'; the classes are"),
    ],
)
def test_what_means_nothing_for_many_classes_is_refused(options, message):
    with pytest.raises(qwyc.OptionError, match=message):
        qwyc.optimize(FOUR, SAMPLE, **{"alpha": 0.02} | options)


@pytest.mark.parametrize("ties", [Ties(), Ties("softmax", "float32"), Ties("softmax", "float64")])
@pytest.mark.parametrize("vectors", [False, True])
def test_zero_is_proven(ties, vectors):
    ensemble = class_ensemble(3, 30, vectors=vectors, ties=ties, lean=[3.0, 0.0, 0.0])
    fast = qwyc.optimize(ensemble, alpha=0, evaluation="quit")
    assert not disagreement(fast, NEW).any()
    assert fast.decide(NEW).steps.mean() < 29.5
    assert "Proven" in str(fast.certificate)
    assert qwyc.verify(fast, NEW).outcome == "pass"


def test_zero_is_refused_where_probabilities_of_a_sigmoid_are_compared():
    ensemble = class_ensemble(3, ties=Ties("sigmoid"))
    with pytest.raises(qwyc.OptionError, match="cannot be proven for this model"):
        qwyc.optimize(ensemble, alpha=0)
    fast = qwyc.optimize(ensemble, SAMPLE, alpha=0.02)
    assert disagreement(fast, NEW).mean() <= 0.02


def test_scores_that_tie_go_to_the_first_class():
    made = class_ensemble(3, 4)
    trees = replace(made.base_models.trees, leaf_value=np.zeros(3 * 4 * 8))
    models = replace(made.base_models, trees=trees, start=np.array([0.0, 1.0, 1.0]))
    fast = qwyc.optimize(
        replace(made, base_models=models), SAMPLE, alpha=0.02, repeats="independent"
    )
    assert set(fast.predict(NEW)) == {1}
    assert fast.decide(NEW).complete.all()  # nobody leads


def test_two_classes_with_two_scores_are_fitted_on_the_difference():
    ensemble = class_ensemble(2, classes=["no", "yes"])
    fast = qwyc.optimize(ensemble, SAMPLE, alpha=0.02, evaluation="quit")
    assert fast.policy.n_classes == 2
    assert not np.array_equal(fast.policy.lead[:, 0], fast.policy.lead[:, 1])
    assert disagreement(fast, NEW).mean() <= 0.02
    assert fast.decide(NEW).steps.mean() < 14
    # The method of two classes on the difference: its thresholds, on either side of 0.
    scores = ensemble.scores(SAMPLE)
    half = np.zeros(len(SAMPLE), bool)
    half[np.random.default_rng(0).permutation(len(SAMPLE))[:3000]] = True
    between = qwyc.fit_path(scores.values[half, :, 1] - scores.values[half, :, 0])
    np.testing.assert_array_equal(fast.choices.path.order, between.order)
    found = fast.choices.path.lead[1:-1, :-1]
    np.testing.assert_allclose(found[..., 0], np.maximum(-between.lower[1:-1, :-1], 0), rtol=1e-5)
    np.testing.assert_allclose(found[..., 1], np.maximum(between.upper[1:-1, :-1], 0), rtol=1e-5)
    limited = qwyc.optimize(ensemble, SAMPLE, by_class={"no": 0.03, "yes": 0.01})
    full = full_labels(ensemble, NEW)
    assert np.mean(limited.predict(NEW)[full == "yes"] != "yes") <= 0.01


@pytest.mark.parametrize("method", ["joint", "natural"])
def test_the_published_procedure_keeps_alpha_in_the_sample(method):
    fast = qwyc.optimize(FOUR, SAMPLE, alpha=0.02, method=method, evaluation="quit")
    assert disagreement(fast, SAMPLE).sum() == fast.certificate.disagreements <= 120
    assert fast.certificate.how == "in-sample"
    assert fast.certificate.mean_models < 19
    if method == "natural":
        np.testing.assert_array_equal(fast.policy.order, np.arange(20))


def test_groups_are_counted():
    groups = np.repeat(np.arange(3000), 2)
    rows = rows_of(6000, seed=7)
    fast = qwyc.optimize(FOUR, rows, alpha=0.03, groups=groups, evaluation="quit")
    assert fast.certificate.groups > 1000
    assert "Groups of rows were counted" in str(fast.certificate)
    assert disagreement(fast, NEW).mean() <= 0.03
    outcome = qwyc.verify(fast, NEW, groups=np.repeat(np.arange(5000), 4))
    assert outcome.outcome != "fail"


def test_copies_are_one_group():
    rows = np.repeat(rows_of(3000, seed=8), 2, axis=0)
    with pytest.warns(qwyc.QwycWarning, match="equal another row"):
        fast = qwyc.optimize(FOUR, rows, alpha=0.04, evaluation="quit")
    assert fast.certificate.groups


def test_rows_in_the_order_of_time():
    rows = rows_of(12_000, seed=9)
    fast = qwyc.optimize(FOUR, rows, alpha=0.03, order_by=np.arange(12_000), evaluation="quit")
    assert len(fast.certificate.windows) > 1
    assert all(len(window.by_class) == 4 for window in fast.certificate.windows)
    limited = qwyc.optimize(
        FOUR, rows, alpha=0.05, by_class={"d": 0.05}, order_by=np.arange(12_000)
    )
    assert limited.certificate.by_class == {"d": 0.05}


@pytest.mark.parametrize(
    "options",
    [
        {"costs": np.linspace(1, 3, 20)},
        {"costs": "size"},
        {"feature_costs": [5.0, 0, 0, 0, 0, 1.0]},
        {"max_rows": 3000},
        {"headroom": 20_000},
        {"repeats": "independent"},
    ],
)
def test_options_of_optimize(options):
    fast = qwyc.optimize(FOUR, SAMPLE, alpha=0.04, evaluation="quit", **options)
    assert disagreement(fast, NEW).mean() <= 0.04
    assert fast.certificate.mean_models < 20
    if "headroom" in options:
        assert qwyc.verify(fast, NEW).passed


def test_evaluations():
    never = qwyc.optimize(FOUR, SAMPLE, alpha=0.02, evaluation="full")
    assert never.policy.quit == "never"
    assert not disagreement(never, NEW).any()
    assert never.decide(NEW[:10]).complete.all()
    timed = qwyc.optimize(
        FOUR, SAMPLE, alpha=0.02, evaluation=lambda classifier, rows: Speed(1.0, 2.0, 10)
    )
    assert timed.policy.quit == "both"
    assert qwyc.optimize(FOUR, SAMPLE, alpha=0.02).evaluation.decided_by == "model"


def test_memory_is_counted_for_every_class(monkeypatch):
    monkeypatch.setattr("qwyc.runtime.memory.memory_available", lambda: 5_000_000)
    with pytest.raises(qwyc.CapacityError, match="max_rows="):
        qwyc.optimize(class_ensemble(12), SAMPLE, alpha=0.02)


def test_one_warning_names_the_worst_of_many_rare_classes():
    ensemble = class_ensemble(9, lean=[4.0] * 2 + [0.0] * 5 + [-50.0] * 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        qwyc.optimize(ensemble, SAMPLE, alpha=0.02, evaluation="quit")
    said = [str(warning.message) for warning in caught if warning.category is qwyc.QwycWarning]
    assert len(said) == 1
    assert "more than 5% may be decided differently: up to" in said[0]
    assert "none of 3,000 rows class 7, class 8, so nothing is known" in said[0]
    assert caught[-1].filename == __file__


def test_the_warning_about_rare_classes_states_the_share_that_they_exceed():
    ensemble = class_ensemble(9, lean=[4.0] * 2 + [0.0] * 7)
    with pytest.warns(qwyc.QwycWarning, match="classes, by the full decision") as caught:
        fast = qwyc.optimize(ensemble, SAMPLE, alpha=0.1, evaluation="quit")
    rare = sum(loss.upper_bound >= 0.2 for loss in fast.certificate.classes)
    assert 1 < rare < sum(loss.upper_bound >= 0.05 for loss in fast.certificate.classes)
    said = f"of {rare} classes, by the full decision, more than 20% may be decided differently"
    assert said in str(caught[0].message)


def test_training_rows_are_found_where_trees_count_them():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 6)).astype(np.float32)
    labels = (rows[:, 0] + rows[:, 1] + 0.5 * rng.normal(size=6000) > 0).astype(int)
    forest = RandomForestClassifier(
        100, max_leaf_nodes=12, bootstrap=False, max_features=2, random_state=0
    )
    forest.fit(rows[:2000], labels[:2000])
    ensemble = as_two_scores(qwyc.read_model(forest))
    with pytest.warns(qwyc.TrainingRowsWarning):
        fast = qwyc.optimize(ensemble, rows[:2000], alpha=0.03)
    assert "No promise" in str(fast.certificate)
    with warnings.catch_warnings():
        warnings.simplefilter("error", qwyc.TrainingRowsWarning)
        qwyc.optimize(ensemble, rows[2000:], alpha=0.03)


def as_two_scores(ensemble):
    """A forest of two classes as one whose leaves hold a share of each class."""
    models = ensemble.base_models
    share = models.trees.leaf_value
    return class_tree_ensemble(
        replace(models.trees, leaf_other=np.empty(0)),
        ensemble.schema,
        classes=ensemble.classes,
        source=ensemble.source,
        summation=Summation.FLOAT64,
        less_equal=models.less_equal,
        truncates=models.truncates,
        divisor=float(models.n_models),
        leaf_vector=np.column_stack([1 - share, share]),
        weighs=models.weighs,
    )
