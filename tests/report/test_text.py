"""What `print` says of a classifier: classes by their labels, the promise, and what it rests on."""

import lightgbm
import numpy as np
import pytest

import qwyc
from qwyc.promise.evaluation import Evaluation

LATE, ON_TIME = "late", "on time"


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(9000, 4))


@pytest.fixture(scope="module")
def model(rows):
    label = np.where(rows[:1000, 0] + rows[:1000, 1] > 1.5, LATE, ON_TIME)
    return lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(rows[:1000], label)


@pytest.fixture(scope="module")
def fast(model, rows):
    return qwyc.optimize(model, rows[1000:6000], alpha=0.02, by_class={LATE: 0.05}, progress=False)


def test_classes_are_called_by_their_labels(fast, rows):
    seen = fast.certificate
    assert [loss.name for loss in seen.classes] == ["negative", "positive"]
    assert [str(loss).partition(":")[0] for loss in seen.classes] == [LATE, ON_TIME]
    assert "5% of the new rows that the full ensemble calls late" in seen.promise
    verified = str(qwyc.verify(fast, rows[6000:]))
    assert "requested: at most 2% of all rows and 5% of the rows called late. late: " in verified
    for text in (str(seen), verified):
        assert "negative" not in text
        assert "positive" not in text


def test_numbers_are_called_classes(rows):
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    model.fit(rows[:1000], (rows[:1000, 0] > 0).astype(int))
    fast = qwyc.optimize(model, rows[1000:6000], alpha=0.02, progress=False)
    assert [str(loss).partition(":")[0] for loss in fast.certificate.classes] == [
        "class 0",
        "class 1",
    ]


def test_labels_survive_a_file_and_another_alpha(fast, tmp_path):
    fast.save(tmp_path / "m.qwyc")
    again = qwyc.load(tmp_path / "m.qwyc")
    assert str(again.certificate) == str(fast.certificate)
    assert again.certificate == fast.certificate
    assert "late: " in str(again.at(0.03).certificate)


def test_the_promise_and_its_evidence_are_two_lines(fast):
    seen = fast.certificate
    lines = str(fast).splitlines()
    assert f"  agreement  {seen.promise}" in lines
    assert f"  evidence   {seen.basis}" in lines
    assert str(seen) == f"{seen.promise} {seen.basis}"
    assert seen.basis.startswith(f"Held out: {seen.disagreements:,} of {seen.rows:,} rows")


def test_a_proof_rests_on_no_rows(model):
    proven = qwyc.optimize(model, alpha=0, progress=False)
    assert proven.certificate.basis == ""
    assert "evidence" not in str(proven)


def test_the_threshold_is_a_probability_where_scores_have_one(fast, model):
    assert 0 < fast.policy.threshold < 1e-6  # where LightGBM rounds to 1/2
    assert "on time (the positive class) where probability >= 0.5, otherwise late" in str(fast)
    assert "on time where probability &gt;= 0.5, " in fast._repr_html_()
    lower = qwyc.optimize(model, alpha=0, threshold=qwyc.Score(-0.5), progress=False)
    assert "where probability >= 0.3775 (score >= -0.5), otherwise late" in str(lower)


def test_a_classifier_that_cannot_quit_says_why(fast, model, rows):
    from dataclasses import replace

    why = "no policy that quits early keeps the promise"
    assert why not in str(fast)
    assert why not in str(fast.full())  # as requested
    never = replace(fast.full(), evaluation=Evaluation(True, "default"))
    assert why in str(never)


def test_notebooks_show_the_text(fast, rows):
    """IPython walks the classes, and takes the first that has _repr_pretty_ or __repr__ of its own."""
    for shown in (fast.certificate, qwyc.verify(fast, rows[6000:])):
        first = next(c for c in type(shown).__mro__ if {"_repr_pretty_", "__repr__"} & set(vars(c)))
        assert "_repr_pretty_" in vars(first)
