"""What `qwyc inspect` says, and that it is so."""

import json
from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import qwyc
from qwyc.cli.app import app
from qwyc.promise.budget import budget_of
from qwyc.promise.evaluation import UNKNOWN, Evaluation, Speed
from qwyc.report.inspection import describe, inspect


@pytest.fixture(scope="module")
def fast():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4)).astype(np.float32)
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1)
    model.fit(X[:1000], X[:1000, 0] + X[:1000, 1] > 0)
    return qwyc.optimize(model, X[1000:], alpha=0.01, costs=np.ones(30), progress=False)


def test_facts_are_plain_values_and_agree_with_the_classifier(fast, tmp_path):
    fast.save(tmp_path / "m.qwyc")
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.qwyc"), "--json"])
    assert result.exit_code == 0
    facts = json.loads(result.stdout)
    assert facts == json.loads(json.dumps(inspect(fast)))
    assert facts["base_models"] == 30
    assert facts["features"] == 4
    assert facts["digest"] == fast.ensemble.digest
    assert facts["certificate"]["rows"] == fast.certificate.rows
    for at in facts["at_other_alphas"]:
        there = fast.at(alpha=at["alpha"])
        assert at["mean_models"] == there.certificate.mean_models
    alphas = [at["alpha"] for at in facts["at_other_alphas"]]
    assert 0.01 in alphas
    assert 0.0005 not in alphas  # too few rows


def test_other_alphas_are_without_the_limits_by_class(fast):
    limited = fast.at(alpha=0.01, by_class={True: 0.02})
    assert "  other alphas, at 95% confidence, on the rows held out:" in describe(fast)
    assert "  other alphas, without limits by class, at 95% confidence" in describe(limited)


def test_it_says_how_rows_are_evaluated_and_why(fast):
    assert "  evaluation rows quit early" in describe(fast)
    timed = replace(fast, speed=Speed(quit=1.0, full=2.5, rows=2048))
    said = "2.5 times as fast as qwyc in full (one thread, 2,048 rows, this machine)"
    assert f"rows quit early: {said}" in describe(timed)
    assert f"base models per row on held-out rows; {said}" in repr(timed)
    never = replace(fast, policy=fast.choices.path[0], evaluation=UNKNOWN)  # as from an old file
    assert "evaluated in full, since quitting early was measured to be slower" in describe(never)
    measured = replace(never, evaluation=Evaluation(False, "measurement"))
    assert "was measured to be slower when the classifier was optimised" in describe(measured)
    modelled = replace(never, evaluation=Evaluation(False, "model"))
    assert "since quitting early costs more than it saves by the cost model" in describe(modelled)
    assert "measured" not in describe(modelled)
    shown = describe(replace(modelled, speed=Speed(quit=1.0, full=0.5, rows=2048)))
    assert "cost model: quitting early would be slower here (1.00 µs a row against 0.50)" in shown
    shown = describe(replace(modelled, speed=Speed(quit=0.5, full=1.0, rows=2048)))
    assert "cost model: quitting early would be faster here (0.50 µs a row against 1.00)" in shown
    slower = replace(fast, speed=Speed(quit=1.0, full=0.5, rows=2048))
    assert "rows quit early: 0.5 times as fast as qwyc in full (one thread" in describe(slower)
    requested = replace(never, evaluation=Evaluation(False, "request"))
    assert "evaluated in full, as requested" in describe(requested)
    cautious = fast.at(alpha=0.002)
    spoilt = replace(fast.choices, evidence=_spoilt(fast.choices.evidence))
    strict = replace(
        never, certificate=replace(fast.certificate, budget=budget_of(0.002)), choices=spoilt
    )
    assert "no policy that quits early keeps the promise" in describe(strict)
    assert cautious.certificate.alpha == 0.002


def _spoilt(evidence):
    """Every member but the first has too many differences."""
    differences = evidence.counts.differences.copy()
    differences[1:] = evidence.counts.rows // 2
    return replace(evidence, counts=replace(evidence.counts, differences=differences))


def test_trees_that_are_walked_are_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    options = {"num_leaves": 3000, "min_child_samples": 1, "min_sum_hessian_in_leaf": 0}
    model = lightgbm.LGBMClassifier(n_estimators=3, max_bin=10_000, verbose=-1, **options)
    model.fit(X, rng.integers(0, 2, 9000))
    proven = qwyc.optimize(model, alpha=0)
    facts = inspect(proven)
    assert facts["trees"]["walked"] == 3
    assert facts["at_other_alphas"] == []
    assert "3 trees are walked node by node, because they have many leaves or" in describe(proven)
    assert "nothing was measured" in describe(proven)


def test_small_trees_over_too_many_categories_are_walked_too():
    rng = np.random.default_rng(0)
    city = np.r_[np.arange(600), rng.integers(0, 600, 5400)]
    X = pd.DataFrame({"city": pd.Categorical(city), "x": rng.normal(size=6000)})
    model = lightgbm.LGBMClassifier(
        n_estimators=40,
        num_leaves=16,
        max_bin=700,
        max_cat_threshold=512,
        min_data_per_group=1,
        cat_smooth=0,
        min_child_samples=1,
        verbose=-1,
    ).fit(X, rng.integers(0, 2, 6000))
    facts = inspect(qwyc.optimize(model, alpha=0))
    assert facts["trees"]["most_leaves"] == 16
    assert facts["trees"]["walked"] > 0


def test_a_wrong_file_is_one_line(tmp_path, capsys):
    (tmp_path / "x.qwyc").write_text("dear diary")
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "x.qwyc")])
    assert isinstance(result.exception, qwyc.QwycError)
