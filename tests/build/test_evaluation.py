"""Whether quitting pays follows from a cost model: no clock has a say in it, and the same inputs give the
same bytes."""

from dataclasses import replace
from itertools import accumulate, chain, cycle
from types import SimpleNamespace

import lightgbm
import numpy as np
import pytest

import qwyc
from forests import random_ensemble, random_rows
from lattices import lattice_rows, random_lattices
from qwyc.build import speed
from qwyc.build.speed import expected
from qwyc.classifier import Classifier
from qwyc.policy.rounds import survival
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate
from qwyc.promise.evaluation import Evaluation, Expected
from qwyc.report.inspection import inspect, why

QUIET = {"alpha": 0.02, "progress": False}


def rows_of(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)).astype(np.float32)


def trained(trees, **options):
    X = rows_of(2000, seed=1)
    model = lightgbm.LGBMClassifier(n_estimators=trees, verbose=-1, n_jobs=1, **options)
    return model.fit(X, X[:, 0] + X[:, 1] > 0)


def bytes_of(classifier, path):
    classifier.save(path)
    return path.read_bytes()


def clock(seconds):
    """Stands for the module `time`: what is timed takes these seconds in turn."""
    at = accumulate(chain.from_iterable((0.0, took) for took in cycle(seconds)))
    return SimpleNamespace(perf_counter=lambda: next(at))


def linear(t):
    return lambda X: X[:, t]


# ---- trees: the native cost model ---------------------------------------------------------------


def test_two_runs_give_the_same_bytes(tmp_path):
    model, X = trained(40), rows_of(5000)
    made = [qwyc.optimize(model, X, **QUIET) for _ in range(2)]
    assert made[0].evaluation == made[1].evaluation == Evaluation(True, "model")
    assert bytes_of(made[0], tmp_path / "0.qwyc") == bytes_of(made[1], tmp_path / "1.qwyc")
    assert qwyc.load(tmp_path / "0.qwyc").evaluation == made[0].evaluation


@pytest.mark.parametrize(("trees", "quits"), [(40, True), (2, False)])
def test_the_clock_has_no_say(trees, quits, tmp_path, monkeypatch):
    model, X = trained(trees, num_leaves=3), rows_of(5000)
    made = {}
    for name, seconds in {"quitting is slow": (5000.0, 5.0), "full is slow": (5.0, 5000.0)}.items():
        with monkeypatch.context() as patched:
            patched.setattr(speed, "time", clock(seconds))
            made[name] = qwyc.optimize(model, X, **QUIET)
        quit, full = (1e6 * took / 5000 for took in seconds)
        assert made[name].speed.quit == pytest.approx(quit)  # the clock was looked at
        assert made[name].speed.full == pytest.approx(full)
        assert made[name].evaluation == Evaluation(quits, "model")
        assert (made[name].policy.quit == "never") != quits
    files = [bytes_of(fast, tmp_path / "m.qwyc") for fast in made.values()]
    assert files[0] == files[1]
    said = {name: repr(fast) for name, fast in made.items()}
    if quits:
        assert "1000.0 times as fast as qwyc in full (one thread, 5,000" in said["full is slow"]
        assert "0.0 times as fast as qwyc in full (one thread, 5,000" in said["quitting is slow"]
    else:
        assert "quitting early would be faster here" in said["full is slow"]
        assert "quitting early would be slower here" in said["quitting is slow"]


def test_measured_still_asks_the_clock(monkeypatch):
    model, X = trained(40), rows_of(5000)
    monkeypatch.setattr(speed, "time", clock((5000.0, 5.0)))
    fast = qwyc.optimize(model, X, evaluation="measured", **QUIET)
    assert fast.evaluation == Evaluation(False, "measurement")
    assert "was measured to be slower" in why(fast)


def test_two_tiny_trees_are_evaluated_in_full():
    model, X = trained(2, num_leaves=3), rows_of(5000)
    bold = qwyc.optimize(model, X, evaluation="quit", **QUIET)
    assert bold.policy.quit != "never"  # there is a policy to set aside
    fast = qwyc.optimize(model, X, **QUIET)
    assert fast.evaluation == Evaluation(False, "model")
    decisions = fast.decide(X)
    assert (decisions.steps == 2).all()
    np.testing.assert_array_equal(decisions.label, model.predict(X))
    assert fast.certificate.disagreements == 0
    assert "costs more than it saves by the cost model" in why(fast)
    assert "measured" not in why(fast)
    assert inspect(fast)["evaluation_decided_by"] == "model"


def test_few_rows_are_enough_for_the_model_and_not_for_a_time():
    fast = qwyc.optimize(trained(40), rows_of(1000), **QUIET)
    assert fast.evaluation == Evaluation(True, "model")
    assert fast.speed is None
    assert "times as fast" not in repr(fast)
    assert why(fast) == "rows quit early"


@pytest.mark.parametrize(
    ("options", "evaluation"),
    [
        ({"costs": "size"}, Evaluation(True, "model")),
        ({"costs": np.ones(40)}, Evaluation(True, "default")),
        ({"feature_costs": np.ones(4)}, Evaluation(True, "default")),
        ({"evaluation": "quit"}, Evaluation(True, "request")),
        ({"evaluation": "full"}, Evaluation(False, "request")),
    ],
)
def test_given_costs_and_requests_come_first(options, evaluation):
    assert qwyc.optimize(trained(40), rows_of(3000), **QUIET, **options).evaluation == evaluation


def test_a_proof_without_rows_is_not_compared():
    model = trained(40)
    assert qwyc.optimize(model, alpha=0).evaluation == Evaluation(True, "default")
    assert qwyc.optimize(model, rows_of(500), alpha=0).evaluation.decided_by == "model"


def test_costs_are_those_of_the_native_cost_model():
    ensemble = random_ensemble(3, n_trees=40)
    rows = random_rows(3, ensemble, n=3000)
    fast = qwyc.optimize(ensemble, rows, evaluation="quit", alpha=0.1, progress=False)
    reaching = survival(fast.certificate.counts, 40)
    runner = ensemble.runner(fast.policy, reaching)
    costs = Expected(runner.expected_cost(), ensemble.base_models.expected_cost())
    assert expected(fast) == costs
    assert min(costs.quit, costs.full) > 0
    longer = ensemble.runner(fast.policy, np.ones(40))
    assert longer.expected_cost() > costs.quit  # rows that stay cost more
    never = ensemble.runner(fast.policy.without_quitting(), np.ones(40))
    assert never.expected_cost() == costs.full


def test_fans_rule_has_no_cost_model():
    ensemble = random_ensemble(3, n_trees=12)
    scores = ensemble.scores(random_rows(3, ensemble))
    policy = qwyc.fit_fan_path(scores, [1.0], order="natural", progress=False)[0]
    assert ensemble.runner(policy).expected_cost() is None


# ---- families without a cost model --------------------------------------------------------------


def families():
    trees, lattices = random_ensemble(5, n_trees=12), random_lattices(5, n_models=12)
    callables = qwyc.read_model([linear(t) for t in range(12)])
    X = np.random.default_rng(0).normal(size=(300, 12))
    return {
        "trees": (trees, random_rows(5, trees)),
        "lattices": (lattices, lattice_rows(5, lattices)),
        "callables": (callables, X),
    }


@pytest.mark.parametrize("family", ["trees", "lattices", "callables"])
def test_a_policy_that_saves_nothing_does_not_pay(family):
    ensemble, rows = families()[family]
    scores = ensemble.scores(rows)
    far = np.full(ensemble.n_models, 1e30)
    policy = replace(qwyc.fit_policy(scores, alpha=0.1, progress=False), lower=-far, upper=far)
    certificate = observed_certificate("in-sample", budget_of(0.1), policy, scores)
    useless = Classifier(ensemble, policy, certificate)
    assert policy.quit == "both"
    assert certificate.mean_models == ensemble.n_models
    assert not expected(useless).quitting_pays
    never = replace(useless, policy=policy.without_quitting())
    assert expected(never).quit == expected(never).full  # nothing is set aside


def test_what_callables_save_is_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 12)) * np.linspace(3, 0.1, 12)
    models = [linear(t) for t in range(12)]
    fast = qwyc.optimize(models, X, **QUIET)
    assert fast.evaluation == Evaluation(True, "model")
    assert fast.speed is None  # Python functions are not timed
    seen = fast.certificate
    assert expected(fast) == Expected(1.05 * seen.mean_cost, 12.0)
    assert seen.mean_cost == seen.mean_models < 11


@pytest.mark.parametrize(("alpha", "quits"), [(0.05, True), (0.002, False)])
def test_bookkeeping_outweighs_a_small_saving(alpha, quits):
    X = np.random.default_rng(0).normal(size=(4000, 2))
    models, options = [linear(0), linear(1)], {"alpha": alpha, "quit": "positive"}
    bold = qwyc.optimize(models, X, evaluation="quit", progress=False, **options)
    fast = qwyc.optimize(models, X, progress=False, **options)
    saved = 1 - bold.certificate.mean_cost / 2
    assert bold.policy.quit == "positive"
    assert saved > 0
    assert (saved > 1 - 1 / 1.05) == quits
    assert fast.evaluation == Evaluation(quits, "model")
    assert fast.certificate.mean_models == (bold.certificate.mean_models if quits else 2)


@pytest.mark.parametrize("kind", ["none", "size"])
def test_what_lattices_save_is_counted(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    points = np.linspace(-3, 3, 10)
    calibrators = [qwyc.lattice.PiecewiseLinear(points, (points + 3) / 6) for _ in range(6)]
    members = [
        qwyc.lattice.Lattice([t % 6, (t + 1 + t // 6) % 6], rng.normal([-1.0, 0.0, 0.0, 1.0]))
        for t in range(18)
    ]
    ensemble = qwyc.lattice.ensemble(members, calibrators=calibrators, features=6)
    options = {"quit": "both", "costs": None if kind == "none" else kind, **QUIET}
    made = [qwyc.optimize(ensemble, X, **options) for _ in range(2)]
    fast, seen = made[0], made[0].certificate
    assert fast.evaluation == Evaluation(True, "model")
    assert expected(fast) == Expected(1.05 * seen.mean_cost, seen.full_cost)
    assert fast.speed is not None  # for show
    assert bytes_of(fast, tmp_path / "0.qwyc") == bytes_of(made[1], tmp_path / "1.qwyc")
