"""Monitors of classifiers of K classes, and of filters for one of them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import qwyc
from many_classes import class_ensemble, full_labels, rows_of
from qwyc.errors import ArtifactError, OptionError

FOUR = class_ensemble(4, classes=["a", "b", "c", "d"])
NEW = rows_of(6000, seed=2)
FULL = full_labels(FOUR, NEW)


def of_four(**options):
    return qwyc.optimize(FOUR, rows_of(6000), evaluation="quit", **options)


@pytest.fixture(scope="module")
def fast():
    return of_four(alpha=0.03, by_class={"b": 0.1})


@pytest.fixture(scope="module")
def only():
    return of_four(alpha=0.03, only="c")


def broken(classifier):
    """The same classifier, which promises much less than it does."""
    budget = qwyc.optimize(FOUR, alpha=0).certificate.budget
    promise = replace(budget, share=0.001)
    if classifier.only is not None:
        promise = replace(promise, target=classifier.certificate.budget.target)
    return replace(classifier, certificate=replace(classifier.certificate, budget=promise))


def test_decisions_are_the_classifiers_own(fast, only):
    for classifier in (fast, only):
        monitor = qwyc.Monitor(classifier, rate=0.2)
        np.testing.assert_array_equal(monitor.predict(NEW), classifier.predict(NEW))
        done, expected = monitor.decide(NEW), classifier.decide(NEW)
        np.testing.assert_array_equal(done.score, expected.score)
        assert [monitor.predict_one(row) for row in NEW[:50]] == expected.label[:50].tolist()
        assert monitor.rows_seen == 2 * len(NEW) + 50
        assert 0.15 < monitor.rows_checked / monitor.rows_seen < 0.25


def test_every_row_is_counted_where_all_are_checked(fast):
    monitor = qwyc.Monitor(fast, rate=1.0)
    done = monitor.decide(NEW)
    counts, differ = monitor.counts, done.label != FULL
    assert counts.by_class == tuple(int(np.sum(label == FULL)) for label in "abcd")
    assert counts.differences == tuple(int(np.sum(differ & (label == FULL))) for label in "abcd")
    assert monitor.disagreements == differ.sum()
    assert monitor.mean_models == pytest.approx(done.steps.mean())
    assert sum(monitor.exits.values()) == len(NEW)
    low, high = monitor.interval
    assert low < differ.mean() < high
    assert list(monitor.by_class) == ["a", "b", "c", "d"]
    low, high = monitor.by_class["b"]
    assert low <= differ[FULL == "b"].mean() <= high
    assert not monitor.alarm


def test_a_filter_counts_what_it_loses(only):
    monitor = qwyc.Monitor(only, rate=1.0)
    label = monitor.predict(NEW)
    missed = (FULL == "c") & (label != "c")
    assert monitor.disagreements == missed.sum() > 0
    assert monitor.counts.differences == (0, 0, missed.sum(), 0)
    assert (label != FULL).sum() > missed.sum()  # labels of rows that left do not count
    assert not monitor.alarm


def test_a_broken_promise_raises_the_alarm_whatever_the_batches(fast, only):
    for classifier in (broken(fast), broken(only)):
        states = []
        for size in (6000, 700, 64):
            monitor = qwyc.Monitor(classifier, rate=1.0)
            for begin in range(0, len(NEW), size):
                monitor.predict(NEW[begin : begin + size])
            assert monitor.alarm
            assert "more than 0.1% of the rows are decided differently" in monitor.alarms[0]
            states.append((monitor.alarms, monitor.counts, monitor.metrics()))
        assert states[0] == states[1] == states[2]


def test_the_alarm_of_a_class():
    limited = of_four(alpha=0.2, by_class={"b": 0.2})
    budget = limited.certificate.budget
    strict = replace(budget, shares=((1, 0.001),))
    monitor = qwyc.Monitor(
        replace(limited, certificate=replace(limited.certificate, budget=strict)), rate=1.0
    )
    monitor.predict(NEW)
    assert len(monitor.alarms) == 1
    assert "the full ensemble calls b" in monitor.alarms[0]
    assert "full decision b" in repr(monitor)
    assert 'class="b"' in monitor.metrics()


def test_a_proven_classifier_never_differs():
    monitor = qwyc.Monitor(qwyc.optimize(FOUR, alpha=0), rate=1.0)
    monitor.predict(NEW)
    assert monitor.disagreements == 0
    assert not monitor.alarm


def test_an_alarm_where_none_may_differ(fast):
    proven = qwyc.optimize(FOUR, alpha=0).certificate
    monitor = qwyc.Monitor(replace(fast, certificate=proven, choices=None), rate=1.0)
    differ = monitor.predict(NEW) != FULL
    (alarm,) = monitor.alarms
    assert f"raised after {int(np.argmax(differ)) + 1:,} checked rows" in alarm


def test_it_is_merged_saved_and_goes_on(fast, tmp_path):
    first, second, both = (qwyc.Monitor(fast, rate=1.0) for _ in range(3))
    first.predict(NEW[:3000])
    second.predict(NEW[3000:])
    both.predict(NEW)
    assert first.merge(second).counts == both.counts
    both.save(tmp_path / "m.json")
    for again in (
        qwyc.Monitor.load(tmp_path / "m.json", fast),
        pickle.loads(pickle.dumps(both)),
        qwyc.Monitor.load(tmp_path / "m.json"),
    ):
        assert again.counts == both.counts
        assert again.by_class == both.by_class
        assert again.metrics() == both.metrics()
    with pytest.raises(OptionError, match="a different policy"):
        qwyc.Monitor.load(tmp_path / "m.json", fast.full())
    text = (tmp_path / "m.json").read_text()
    for change in (('"labels": [\n   "a",', '"labels": ['), ('"among": 1', '"among": 4')):
        assert change[0] in text
        (tmp_path / "bad.json").write_text(text.replace(*change))
        with pytest.raises(ArtifactError, match="not a valid monitor file"):
            qwyc.Monitor.load(tmp_path / "bad.json")


def test_filters_for_other_classes_have_other_subjects(only):
    other = of_four(alpha=0.03, only="d")
    with pytest.raises(OptionError, match="policy"):
        qwyc.Monitor(only).merge(qwyc.Monitor(other))


def test_too_many_classes_are_refused():
    many = qwyc.optimize(class_ensemble(300, 2), alpha=0)
    with pytest.raises(OptionError, match="up to 256 classes; this one has 300"):
        qwyc.Monitor(many)
