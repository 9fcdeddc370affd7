"""Copies in a sample: they count together, in optimize, verify, recertify and on the command line."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xgboost

import qwyc
from commands import run


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def model():
    X, y = draw(3000, 0)
    X[:, 5] = 0  # a column that no tree looks at
    return xgboost.XGBClassifier(n_estimators=40, max_depth=4, n_jobs=1).fit(X, y)


SAMPLE, _ = draw(2000, 1)
OTHERS, _ = draw(20_000, 2)
OPTIONS = {"alpha": 0.05, "evaluation": "quit", "progress": False}


@pytest.mark.parametrize("copies", [5, 20])
def test_copies_count_together(model, copies):
    rows = np.random.default_rng(3).permutation(np.tile(SAMPLE, (copies, 1)))
    with pytest.warns(qwyc.QwycWarning) as caught:
        fast = qwyc.optimize(model, rows, **OPTIONS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert f"the most frequent occurs {copies} times" in str(caught[0].message)
    assert fast.certificate.groups * copies == fast.certificate.rows
    assert fast.certificate.fit_rows % copies == 0  # no row has copies on both sides


def test_rows_that_differ_in_an_unused_column_count_together(model):
    rows = np.repeat(SAMPLE, 5, axis=0)
    rows[:, 5] = np.arange(len(rows))
    with pytest.warns(qwyc.QwycWarning, match="are the same as another row to every base model"):
        fast = qwyc.optimize(model, rows, **OPTIONS)
    assert 0 < fast.certificate.groups * 5 <= fast.certificate.rows


def test_draws_that_happen_to_be_equal_may_count_as_independent(model):
    rows = np.tile(SAMPLE, (5, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = qwyc.optimize(model, rows, repeats="independent", **OPTIONS)
    assert fast.certificate.groups == 0
    with pytest.raises(qwyc.OptionError, match="repeats"):
        qwyc.optimize(model, rows, repeats="once", **OPTIONS)


def test_groups_that_are_given_are_the_units(model, recwarn):
    groups = np.arange(len(SAMPLE)) // 2
    fast = qwyc.optimize(
        model, np.tile(SAMPLE, (2, 1)), groups=np.concatenate([groups, groups]), **OPTIONS
    )
    assert fast.certificate.groups * 4 == fast.certificate.rows
    assert not [w for w in recwarn if "Copies" in str(w.message)]


def test_copies_in_the_order_of_time_are_not_promised_about(model):
    rows, when = np.tile(SAMPLE, (3, 1)), np.arange(3 * len(SAMPLE))
    with pytest.warns(qwyc.QwycWarning, match="leave the copies out"):
        fast = qwyc.optimize(model, rows, order_by=when, **OPTIONS)
    assert "6,000 of 6,000 rows are copies" in str(fast.certificate)
    assert not fast.certificate.holds
    independent = qwyc.optimize(model, rows, order_by=when, repeats="independent", **OPTIONS)
    assert independent.certificate.holds


def test_other_samples_are_left_alone(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = qwyc.optimize(model, np.concatenate([SAMPLE, SAMPLE[:40]]), **OPTIONS)
    assert fast.certificate.groups == 0
    assert fast.certificate.rows + fast.certificate.fit_rows == 2040


@pytest.fixture(scope="module")
def fast(model):
    return qwyc.optimize(model, SAMPLE, **OPTIONS)


def test_verification_counts_copies_together(fast):
    once = qwyc.verify(fast, OTHERS)
    with pytest.warns(qwyc.QwycWarning, match="equal rows are one group") as caught:
        five = qwyc.verify(fast, np.tile(OTHERS, (5, 1)))
    assert [str(w.message)[:7] for w in caught] == ["100,000"]
    assert caught[0].filename == __file__
    assert (five.outcome, five.groups, five.observed) == ("pass", len(OTHERS), once.observed)
    assert five.upper_bound >= 0.99 * once.upper_bound
    assert qwyc.verify(fast, np.tile(OTHERS, (5, 1)), repeats="independent").rows == 100_000


def test_recertification_counts_copies_together(fast):
    with pytest.warns(qwyc.QwycWarning, match="equal rows are one group"):
        five = qwyc.recertify(fast, pd.DataFrame(np.tile(OTHERS, (5, 1))))
    assert five.certificate.groups == len(OTHERS)
    assert five.certificate.rows == 5 * len(OTHERS)
    assert (
        qwyc.recertify(fast, np.tile(OTHERS, (2, 1)), repeats="independent").certificate.rows
        == 40_000
    )


def test_callables_on_arrays_and_on_anything():
    models = [lambda X: np.asarray(X)[:, 0], lambda X: np.asarray(X)[:, 1]]
    fast = qwyc.optimize(models, SAMPLE, **OPTIONS)
    with pytest.raises(qwyc.InputError, match="pass other rows"):
        qwyc.verify(fast, SAMPLE[::-1])
    lists = qwyc.optimize(models, SAMPLE.tolist(), **OPTIONS)
    assert lists.origins.sample is None
    assert qwyc.verify(lists, OTHERS.tolist()).rows == len(OTHERS)


def test_on_the_command_line(model, tmp_path):
    model.save_model(tmp_path / "model.json")
    frame = pd.DataFrame(np.tile(SAMPLE, (3, 1)))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    made = ("optimize", "model.json", "rows.csv", "-o", "m.qwyc", "--alpha", "0.05")
    done = run(*made, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"6,000 of 6,000 rows equal another row" in done.stderr
    assert b"equal another row" not in run(*made, "--repeats", "independent", cwd=tmp_path).stderr
    for command in (("verify",), ("recertify", "-o", "n.qwyc")):
        done = run(command[0], "m.qwyc", "rows.csv", *command[1:], cwd=tmp_path)
        assert done.returncode == 2
        assert b"100.0% of these rows are among the 6,000 rows" in done.stderr
