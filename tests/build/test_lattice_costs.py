"""Costs of lattices: calibrators are shared, and the first lattice that needs one pays for it."""

from dataclasses import replace

import numpy as np
import pytest

import qwyc
import qwyc.lattice
from qwyc.report.inspection import describe, inspect

FEATURES, T, KEYPOINTS = 8, 24, 40
SHARED = "a calibrator counts where it is first needed"
FAST = {"alpha": 0.02, "evaluation": "quit", "progress": False}


def columns_of(t):
    first = 2 * t % FEATURES
    return [first, first + 1]


@pytest.fixture(scope="module")
def made():
    """Lattices over pairs of columns, six of each pair, and rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, FEATURES)).astype(np.float32)
    points = np.linspace(-3, 3, KEYPOINTS)
    calibrators = [qwyc.lattice.PiecewiseLinear(points, (points + 3) / 6) for _ in range(FEATURES)]
    members = []
    for t in range(T):
        columns = columns_of(t)
        slopes = rng.uniform(0.2, 1.0, size=2)
        corners = np.array([[a, b] for a in (-1, 1) for b in (-1, 1)]) @ slopes
        members.append(qwyc.lattice.Lattice(columns, corners + rng.normal(scale=0.3, size=4)))
    return qwyc.lattice.ensemble(members, calibrators=calibrators, features=FEATURES), X


def test_size_counts_vertices_keypoints_and_who_needs_which(made):
    ensemble, X = made
    costs = ensemble.costs(X, "size")
    np.testing.assert_array_equal(costs.own, 4.0)  # the vertices of a cell
    np.testing.assert_array_equal(costs.parts, KEYPOINTS)
    calibrator_of = {f: c for c, f in enumerate(ensemble.base_models.arrays.calibrator_feature)}
    for t in range(T):
        expected = {calibrator_of[column] for column in columns_of(t)}
        assert set(np.flatnonzero(costs.needs[t])) == expected


def test_a_calibrator_that_a_lattice_needs_twice_counts_once():
    same = qwyc.lattice.PiecewiseLinear([0, 1, 2], [0, 1, 0])
    twice = qwyc.lattice.Lattice([0, 0, 1], np.arange(8.0), interpolation="simplex")
    term = qwyc.lattice.Linear([1], [2.0])
    ensemble = qwyc.lattice.ensemble([twice, term], calibrators={0: same, 1: same}, features=2)
    costs = ensemble.costs(np.zeros((3, 2), dtype=np.float32), "size")
    assert costs.needs.sum(axis=1).tolist() == [2, 1]  # one for each column
    assert costs.own[0] > costs.own[1] == 1
    assert costs.along([0, 1])[0] == costs.own[0] + 6
    assert costs.along([1, 0]).tolist() == [costs.own[0] + 3, 4]


def test_measured_costs_are_microseconds_of_lattices_and_calibrators(made):
    ensemble, X = made
    costs = ensemble.costs(X[:500], "measured")
    assert costs.own.shape == (T,)
    assert (costs.own > 0).all()
    assert costs.parts.shape == (FEATURES,)
    np.testing.assert_array_equal(costs.needs, ensemble.costs(X, "size").needs)
    fast = qwyc.optimize(ensemble, X[:4000], costs="measured", **FAST)
    assert f"(microseconds, as measured; {SHARED})" in repr(fast)
    with pytest.raises(qwyc.OptionError, match="costs must be one of 'measured', 'size'"):
        ensemble.costs(X, "weight")
    with pytest.raises(qwyc.InputError, match="no rows"):
        ensemble.costs(X[:0], "size")


def columns_read(policy, steps):
    """Columns that rows need which take `steps` base models of a policy each, (N,)."""
    needed = [set()]
    for t in policy.order:
        needed.append(needed[-1] | set(columns_of(t)))
    return np.array([len(columns) for columns in needed])[steps]


@pytest.mark.parametrize("options", [{}, {"method": "joint"}, {"alpha": 0}], ids=str)
def test_decisions_cost_what_a_count_by_hand_says(made, options):
    ensemble, X = made
    fast = qwyc.optimize(ensemble, X[:4000], costs="size", **(FAST | options))
    steps = fast.decide(X[4000:]).steps
    assert 1 < steps.mean() < T
    by_hand = 4 * steps + KEYPOINTS * columns_read(fast.policy, steps)
    assert fast.policy.mean_cost(steps) == pytest.approx(by_hand.mean(), rel=1e-12)
    assert fast.certificate.full_cost == 4 * T + KEYPOINTS * FEATURES


def test_it_is_said_kept_and_carried_on(made, tmp_path):
    ensemble, X = made
    fast = qwyc.optimize(ensemble, X[:4000], costs="size", **FAST)
    unit = f"multiply-adds and comparisons; {SHARED}"
    fast.save(tmp_path / "f.qwyc")
    loaded = qwyc.load(tmp_path / "f.qwyc")
    for other in (fast, loaded, loaded.at(alpha=0.05), qwyc.recertify(loaded, X[4000:])):
        assert other.cost_kind == "size"
        assert f"({unit})" in repr(other)
        assert f"\n  costs      {unit}\n" in describe(other)
        assert inspect(other)["costs"] == {"kind": "size", "unit": unit}
        assert unit in other._repr_html_()
        np.testing.assert_array_equal(other.policy.costs, fast.policy.costs)
    plain = qwyc.optimize(ensemble, X[:4000], **FAST)
    assert "cost" not in repr(plain)
    assert replace(plain, cost_kind="given").cost_unit == "as given"
