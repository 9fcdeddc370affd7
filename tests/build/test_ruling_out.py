"""`optimize` rules classes out where base models have a tree for each class: certificates count what that
changes, and files keep it."""

import numpy as np
import pytest

import qwyc
from many_classes import class_ensemble, full_labels, rows_of
from qwyc.classifier import from_certified
from qwyc.errors import ArtifactError
from qwyc.files import classifier_file, container
from qwyc.policy.fit.ruling_out import steps_with_tests

SIX = class_ensemble(6, 40, classes=list("abcdef"))
SAMPLE, NEW = rows_of(8000), rows_of(20_000, seed=2)


@pytest.fixture(scope="module")
def fast():
    return qwyc.optimize(SIX, SAMPLE, alpha=0.02, evaluation="quit")


def test_classes_are_ruled_out_and_alpha_holds(fast):
    assert np.flatnonzero(np.isfinite(fast.policy.drop)).tolist() == steps_with_tests(40)
    decisions = fast.decide(NEW)
    out = np.isneginf(decisions.score)
    assert out[~decisions.complete].mean() > 0.3  # trees that were not evaluated
    np.testing.assert_array_equal(
        decisions.score[decisions.complete], fast.score_full(NEW)[decisions.complete]
    )
    assert 0 < np.mean(decisions.label != full_labels(SIX, NEW)) <= 0.02
    assert [fast.predict_one(row) for row in NEW[:200]] == decisions.label[:200].tolist()


def test_the_certificate_counts_with_classes_ruled_out(fast):
    """The evidence of each policy is what `apply` does, which rules classes out."""
    path, counts = fast.choices.path, fast.choices.evidence.counts
    assert path.drop is not None
    k = path.index_of(fast.policy)
    assert counts.differences[k].sum() == fast.certificate.disagreements > 0
    again = qwyc.verify(fast, NEW)
    assert again.outcome == "pass"
    held_out = len(SAMPLE) - fast.choices.evidence.fit_rows
    assert counts.rows == held_out == fast.certificate.rows


def test_files_keep_it(fast):
    content = classifier_file.to_bytes(fast)
    again = from_certified(classifier_file.from_bytes(content))
    np.testing.assert_array_equal(again.policy.drop, fast.policy.drop)
    np.testing.assert_array_equal(again.choices.path.drop, fast.choices.path.drop)
    np.testing.assert_array_equal(again.decide(NEW).score, fast.decide(NEW).score)
    assert classifier_file.to_bytes(again) == content
    full = from_certified(classifier_file.from_bytes(classifier_file.to_bytes(fast.full())))
    assert full.decide(NEW).complete.all()
    bold = fast.at(alpha=0.1)
    np.testing.assert_array_equal(bold.policy.drop, again.at(alpha=0.1).policy.drop)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("policy.drop", lambda drop: drop[:-1], "drop must be"),
        ("policy.drop", lambda drop: -drop, "drop must be"),
        ("policy.drop", lambda drop: drop.astype(np.float32), "tensor policy.drop is float32"),
        ("path.drop", lambda drop: drop[:-1], "differ in length"),
        ("path.drop", lambda drop: np.full_like(drop, np.nan), "drop must be"),
    ],
)
def test_damaged_files_are_refused(fast, name, change, message):
    found = container.unpack(classifier_file.to_bytes(fast), (classifier_file.FORMAT,))
    tensors = dict(found.tensors) | {name: np.ascontiguousarray(change(found.tensors[name]))}
    content = container.pack(container.Container(found.format, found.body, tensors))
    with pytest.raises(ArtifactError, match=message):
        classifier_file.from_bytes(content)


@pytest.mark.parametrize(
    "options", [{"costs": np.arange(1.0, 41)}, {"feature_costs": np.ones(6)}, {"method": "natural"}]
)
def test_nothing_is_ruled_out_where_steps_count(options):
    fast = qwyc.optimize(SIX, SAMPLE, alpha=0.02, evaluation="quit", **options)
    assert not np.isfinite(fast.policy.drop).any()
    assert np.isfinite(fast.policy.lead).any()


def test_trees_of_vectors_rule_nothing_out():
    ensemble = class_ensemble(4, vectors=True)
    fast = qwyc.optimize(ensemble, SAMPLE, alpha=0.02, evaluation="quit")
    assert not np.isfinite(fast.policy.drop).any()


def test_limits_by_class_hold_too():
    fast = qwyc.optimize(SIX, SAMPLE, by_class=dict.fromkeys("abcdef", 0.05), evaluation="quit")
    full, decided = full_labels(SIX, NEW), fast.predict(NEW)
    for label in "abcdef":
        assert np.mean(decided[full == label] != label) <= 0.05
    assert fast.decide(NEW).steps.mean() < 40
