"""An ensemble of lattices from qwyc.lattice to decisions: policies, promises, files, commands, workers."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import qwyc
from commands import one_line, run
from lattices import lattice_rows, random_lattices
from qwyc.distributed import shipping
from qwyc.lattice import Categorical, Lattice, Linear, PiecewiseLinear, ensemble
from qwyc.model.lattices.models import Interpolation

NAMES = ["age", "height", "weight", "colour", "score", "days"]


def make(interpolation="hypercube", dtype="float32", average=False):
    """40 lattices and a linear term on 6 columns; the table of a column with text is known."""
    rng = np.random.default_rng(0)
    keypoints = np.linspace(-2, 2, 10)
    shared = {
        name: PiecewiseLinear(keypoints, np.sort(rng.random(10)), missing_output=rng.random())
        for name in NAMES
        if name != "colour"
    }
    shared["colour"] = Categorical([0.1, 0.9, 0.5], other_output=0.4)
    members = [
        Lattice(rng.choice(NAMES, 3, replace=False), rng.normal(size=8), None, interpolation)
        for _ in range(40)
    ]
    members.append(Linear(["age", "days"], [1.5, -2], 0.25))
    return ensemble(
        members,
        calibrators=shared,
        features=NAMES,
        classes=["no", "yes"],
        dtype=dtype,
        average=average,
        categories={"colour": ["red", "green", "blue"]},
    )


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 6)), columns=NAMES)
    frame["colour"] = rng.choice(["red", "green", "blue", "pink"], n)
    return frame.mask(rng.random((n, 6)) < 0.03)


@pytest.fixture(scope="module")
def fitted():
    made = make()
    return qwyc.optimize(made, table(6000, 1), alpha=0.02, evaluation="quit", progress=False)


def test_it_quits_early_and_keeps_its_promise(fitted):
    fresh = table(5000, 2)
    decisions = fitted.decide(fresh)
    full = np.where(fitted.score_full(fresh) >= fitted.ensemble.threshold, "yes", "no")
    assert decisions.steps.mean() < 30
    assert np.mean(decisions.label != full) < 0.03
    assert (decisions.label[decisions.complete] == full[decisions.complete]).all()
    assert fitted.certificate.how == "held-out"
    assert qwyc.verify(fitted, fresh, alpha=0.03).passed
    assert repr(fitted).startswith(
        "qwyc.Classifier: 41 lattices and linear terms, 6 features\n  decision   yes (the positive class) "
    )
    assert "41 lattices and linear terms" in fitted._repr_html_()


@pytest.mark.parametrize("interpolation", ["hypercube", "simplex"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_filters_costs_and_averages(interpolation, dtype):
    made = make(interpolation, dtype, average=True)
    rows = table(4000, 3)
    for costs in ("size", "measured"):
        fast = qwyc.optimize(
            made, rows, alpha=0.02, quit="negative", costs=costs, evaluation="quit", progress=False
        )
        decisions = fast.decide(rows)
        early = ~decisions.complete
        assert early.any()
        assert (decisions.label[early] == "no").all()
    assert made.base_models.average


def test_other_orders_and_rules_take_the_scores():
    made, rows = make(), table(2000, 4)
    scores = made.scores(rows)
    for options in ({"order": "joint"}, {"order": "greedy-mse", "labels": scores.full > 0}):
        policy = qwyc.fit_policy(scores, alpha=0.02, **options)
        decided = made.decide(rows, made.runner(policy))
        np.testing.assert_array_equal(decided.steps, policy.apply(scores).steps)
    path = qwyc.fit_path(scores)
    assert len(path) > 1
    fan = qwyc.fit_fan_path(scores, [1.0], order="natural")[0]
    decided, known = qwyc.Cascade(made, fan).decide(rows), fan.apply(scores)
    np.testing.assert_array_equal(decided.label == made.classes[1], known.label == 1)
    np.testing.assert_array_equal(decided.steps, known.steps)
    assert 1 < known.steps.mean() < made.n_models
    with pytest.raises(qwyc.OptionError, match="lattices run with a Policy"):
        made.runner(path)


def test_alpha_can_be_chosen_later_and_certified_again(fitted):
    bolder = fitted.at(alpha=0.05)
    rows = table(3000, 5)
    assert bolder.decide(rows).steps.mean() < fitted.decide(rows).steps.mean()
    again = qwyc.recertify(fitted, rows, alpha=0.05)
    assert again.certificate.rows == 3000
    np.testing.assert_array_equal(again.ensemble.scores(rows).full, fitted.score_full(rows))


def test_one_row_in_any_form(fitted):
    frame = table(60, 6)
    expected = fitted.predict(frame).tolist()
    assert [fitted.predict_one(frame[i : i + 1]) for i in range(60)] == expected
    matrix = fitted.ensemble.matrix(frame)  # (60, 6) with codes
    assert fitted.predict(matrix).tolist() == expected
    assert [fitted.predict_one(row) for row in matrix] == expected
    assert [fitted.predict_one(row.tolist()) for row in matrix] == expected
    assert [fitted.predict_one(row[::-1].copy()[::-1]) for row in matrix] == expected


def test_workers_get_the_same(fitted):
    rows = table(500, 7)
    parcel = shipping.pack(fitted)
    assert isinstance(parcel.content, bytes)
    again = shipping.unpack(parcel.content)
    np.testing.assert_array_equal(again.decide(rows).score, fitted.decide(rows).score)


def test_the_commands_take_its_file(fitted, tmp_path):
    rows = table(900, 8)
    fitted.save(tmp_path / "m.qwyc")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    facts = json.loads(run("inspect", "m.qwyc", "--json", cwd=tmp_path).stdout)
    assert "lattices" in json.dumps(facts)
    page = run("inspect", "m.qwyc", cwd=tmp_path)
    assert page.returncode == 0
    assert b"41 lattices and linear terms" in page.stdout
    assert b"320 vertices" in page.stdout
    done = run("predict", "m.qwyc", "rows.csv", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = pd.read_csv(tmp_path / "out.csv")
    again = fitted.decide(pd.read_csv(tmp_path / "rows.csv"))
    assert out["label"].tolist() == again.label.tolist()
    np.testing.assert_array_equal(out["score"], again.score)
    checked = run("verify", "m.qwyc", "rows.csv", "--alpha", "0.06", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    timed = run("bench", "m.qwyc", "rows.csv", "--seconds", "0.01", "--json", cwd=tmp_path)
    assert timed.returncode == 0, timed.stderr
    assert json.loads(timed.stdout)["base_models"] == 41


def test_its_file_is_the_model_for_another_optimisation(fitted, tmp_path):
    fitted.save(tmp_path / "m.qwyc")
    table(3000, 8).to_csv(tmp_path / "rows.csv", index=False)
    options = ("--alpha", "0.1", "--quit", "negative", "--evaluation", "quit")
    done = run("optimize", "m.qwyc", "rows.csv", "-o", "n.qwyc", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = qwyc.load(tmp_path / "n.qwyc")
    assert again.ensemble.digest == fitted.ensemble.digest
    assert again.policy.quit == "negative"
    with pytest.raises(qwyc.ModelError, match=r"the model in it is qwyc.load\(path\).ensemble"):
        qwyc.read_model(tmp_path / "m.qwyc")


def test_there_is_no_model_file_to_compare_with(fitted, tmp_path):
    import lightgbm

    rows = table(300, 9)
    numbers = rows.drop(columns="colour")
    booster = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(numbers, rows.age > 0)
    booster.booster_.save_model(tmp_path / "other.txt")
    fitted.save(tmp_path / "m.qwyc")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for command in ("bench", "verify"):
        done = run(command, "m.qwyc", "rows.csv", "--model", "other.txt", cwd=tmp_path)
        assert any(
            words in one_line(done)
            for words in ("not made from a model file", "has no model to compare with")
        )


def test_rows_that_it_cannot_take_are_named(fitted, tmp_path):
    strict = PiecewiseLinear([0, 1], [0, 1])
    made = ensemble([Lattice(["a"], [-1, 1])], features=["a", "b"], calibrators={"a": strict})
    qwyc.optimize(made, alpha=0).save(tmp_path / "m.qwyc")
    (tmp_path / "rows.csv").write_text("a,b\n1,\n,2\n")
    done = run("predict", "m.qwyc", "rows.csv", cwd=tmp_path)
    assert "row 1 of column 'a', for which the model has no output" in one_line(done)
    assert "rows.csv" in one_line(done)


def test_columns_that_are_found_by_name_only(tmp_path):
    made = ensemble([Lattice(["b", "a"], [-2, -1, 1, 2]), Lattice(["a"], [0, 0.5])])
    assert made.schema.by_name
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.random((2500, 3)), columns=["a", "c", "b"])
    fast = qwyc.optimize(made, rows, alpha=0.05, progress=False)
    fast.save(tmp_path / "m.qwyc")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", "m.qwyc", "rows.csv", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = pd.read_csv(tmp_path / "out.csv")
    assert out["label"].tolist() == fast.predict(rows).tolist()
    timed = run("bench", "m.qwyc", "rows.csv", "--seconds", "0.01", cwd=tmp_path)
    assert timed.returncode == 0, timed.stderr
    others = pd.DataFrame(rng.random((2500, 3)), columns=["a", "c", "b"])
    assert qwyc.verify(qwyc.load(tmp_path / "m.qwyc"), others, alpha=0.1).passed


def test_an_estimator_is_needed_for_scikit_learn():
    with pytest.raises(qwyc.OptionError, match="estimator must be a classifier") as caught:
        qwyc.EarlyExitClassifier(make()).fit(table(100, 1), np.arange(100) % 2)
    assert len(str(caught.value)) < 700


# ---- alpha = 0 --------------------------------------------------------------------------------


def corner_rows(made):
    """Rows of keypoints, missing values and values outside, as many combinations as are few."""
    arrays = made.base_models.arrays
    values = [[0.0] for _ in range(made.schema.n_features)]
    for c in range(arrays.n_calibrators):
        points = arrays.point[slice(*arrays.point_begin[c : c + 2])].tolist()
        feature = int(arrays.calibrator_feature[c])
        values[feature] += [points[0], points[-1], points[0] - 1, points[-1] + 1, np.nan]
        if arrays.has_missing[c]:
            values[feature].append(float(arrays.missing_value[c]))
    kept = [list(dict.fromkeys(v))[:8] for v in values]
    rng, n = np.random.default_rng(0), 4000
    if np.prod([len(v) for v in kept]) <= n:
        return np.array(list(product(*kept)))
    return np.stack([rng.choice(v, n) for v in kept], axis=1)


@pytest.mark.parametrize("kind", [*Interpolation, None])
@pytest.mark.parametrize("seed", range(3))
def test_alpha_zero_holds_for_every_row(seed, kind):
    made = random_lattices(seed, n_models=15, n_features=4, kind=kind)
    rows = np.concatenate([corner_rows(made), lattice_rows(seed, made, n=2000)])
    rows = rows.astype(made.schema.dtype)
    middle = float(np.median(made.score_full(rows)))
    for threshold in (middle, float(made.score_full(rows)[0]), 1e9, -1e9):
        fast = qwyc.optimize(replace(made, threshold=threshold), alpha=0)
        decisions, full = fast.decide(rows), fast.score_full(rows) >= threshold
        np.testing.assert_array_equal(decisions.label == 1, full)
        if abs(threshold) == 1e9:
            assert decisions.steps.max() == 1


def test_alpha_zero_needs_fewer_base_models():
    members = [Lattice([t % 6], [-(0.7**t), 0.7**t]) for t in range(20)]
    made = ensemble(members, features=6)
    rows = np.random.default_rng(0).random((3000, 6)).astype(np.float32)
    fast = qwyc.optimize(made, alpha=0)
    decisions = fast.decide(rows)
    assert decisions.steps.mean() < 12
    np.testing.assert_array_equal(decisions.label == 1, fast.score_full(rows) >= 0)


def test_bounds_are_attained():
    rng = np.random.default_rng(0)
    for kind in ("hypercube", "simplex"):
        for weight in (1.0, -0.3):
            made = ensemble(
                [Lattice([0, 1, 2], rng.normal(size=(2, 3, 2)), interpolation=kind)],
                weights=[weight],
            )
            corners = np.array(list(product(range(2), range(3), range(2))), dtype=np.float32)
            bounds, values = made.base_models.bounds(), made.scores(corners).values
            assert (values.min(), values.max()) == (bounds.least[0], bounds.most[0])
    line = PiecewiseLinear([0, 1], [-1, 2], missing_output=5)
    linear = ensemble([Linear([0, 1], [2, -3], 0.5)], calibrators=[line, line])
    ends = np.array(list(product([0, 1, np.nan], repeat=2)), dtype=np.float32)
    bounds, values = linear.base_models.bounds(), linear.scores(ends).values
    assert (values.min(), values.max()) == (bounds.least[0], bounds.most[0])
    assert 0 < bounds.margin < 1e-12
