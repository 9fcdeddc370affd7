"""The study of feature costs: what it counts is what rows need, and its rules are what they say."""

import numpy as np
import pytest

import qwyc
from qwyc_experiments import feature_costs as study
from qwyc_experiments.brute_force import general_instance


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    fit, test = (
        qwyc.ScoreMatrix.from_array(general_instance(rng, 1500, 12), threshold=0.2)
        for _ in range(2)
    )
    return study.Case(fit, test, "both", rng.random((12, 7)) < 0.3)


def test_points_are_counted_by_hand(case):
    costs = case.costs(study.DEAR)
    assert set(costs.parts) == {0.0, 30.0}
    path = qwyc.fit_path(case.fit, costs=costs, progress=False)
    points = study.points_of(case, path, costs)
    k = len(path) // 2
    done = path[k].apply(case.test)
    needed = [case.needs[path.order[:n]].any(axis=0) for n in done.steps]
    assert points.features[k] == pytest.approx(np.mean([seen.sum() for seen in needed]))
    assert points.paid[k] == pytest.approx(np.mean([costs.parts[seen].sum() for seen in needed]))
    assert points.models[k] == done.steps.mean()
    by_path = path.sums(case.test).counts().mean_cost
    np.testing.assert_allclose(points.models + points.paid, by_path)


def test_what_is_read_at_a_level_adds_up(case):
    points = study.points_of(case, qwyc.fit_path(case.fit, progress=False), case.costs("2"))
    cost, models, features = points.at_level()
    assert cost == pytest.approx(models + 2 * features)
    assert cost < points.models[0] + points.paid[0]


def test_rules_count_features_as_they_say(case):
    plain = qwyc.fit_path(case.fit, progress=False).order
    found = {rule: study.order_by(case, rule, case.costs("5")) for rule in study.RULES}
    np.testing.assert_array_equal(found["thresholds"], plain)
    marginal = qwyc.fit_path(case.fit, costs=case.costs("5"), progress=False).order
    np.testing.assert_array_equal(found["marginal"], marginal)
    np.testing.assert_array_equal(
        found["half"], study.order_by(case, "marginal", case.costs("2.5"))
    )
    for order in found.values():
        assert sorted(order) == list(range(12))


def test_a_run_compares_with_the_default(case):
    found = study.run(case, ["1", study.DEAR], ["marginal", "thresholds"])
    assert len(found) == 6
    assert found["marginal", "1"][0] < 1.2 * found["default", "1"][0]
