"""alpha=0 where sums of base models may overflow: refused, because no bound holds there."""

from dataclasses import replace

import numpy as np
import pytest
import xgboost

import qwyc
from forests import changed, ensemble_of, random_ensemble, random_rows
from qwyc.model.base_models import Bounds
from qwyc.model.trees import Summation
from qwyc.policy.costs import Costs
from qwyc.promise.proof import provable_policy
from trained import written, xgboost_document

LARGEST = float(np.finfo(np.float32).max)
STUMP = (0, 0.5, 1, [], None, None)
NARROW = [Summation.FLOAT32, Summation.FLOAT32_LATE]
WIDE = [Summation.FLOAT64, Summation.FLOAT64_LATE]


def stumps(leaf, n_trees, summation, base=0.0):
    """Trees that each add +leaf or -leaf, so that the sum of all leaves is 0."""
    made = ensemble_of([STUMP] * n_trees, [leaf, -leaf] * n_trees, n_features=1)
    return changed(made, summation=summation, base=base)


@pytest.mark.parametrize("summation", NARROW)
@pytest.mark.parametrize(
    ("leaf", "n_trees", "base"),
    [
        (3e38, 2, 0.0),  # two leaves are more than float32 holds
        (LARGEST, 1, 0.0),  # only rounding is left
        (1e38, 3, 1e38),  # the base counts
        (LARGEST / 100, 100, 0.0),
    ],
)
def test_sums_that_may_leave_float32_are_refused(summation, leaf, n_trees, base):
    ensemble = stumps(leaf, n_trees, summation, base)
    with pytest.raises(qwyc.OptionError, match=r"alpha=0 .*may overflow.*small alpha above 0"):
        qwyc.optimize(ensemble, alpha=0)
    with pytest.raises(qwyc.OptionError, match="may overflow"):
        qwyc.optimize(ensemble, np.zeros((10, 1), np.float32), alpha=0)


def test_such_a_sum_does_overflow_in_one_order():
    """Why it is refused: in float32 the partial sum is infinite, and a running sum in float64 is not."""
    ensemble = ensemble_of([STUMP] * 3, [3e38, 0.0] * 2 + [-3e38, 0.0], n_features=1)
    ensemble = changed(ensemble, summation=Summation.FLOAT32, base=-1e30)
    assert ensemble.score_full(np.zeros((1, 1), np.float32)).tolist() == [np.inf]


@pytest.mark.parametrize("summation", NARROW)
def test_sums_that_stay_within_float32_are_not_refused(summation):
    ensemble = stumps(LARGEST / 4, 3, summation)
    fast = qwyc.optimize(ensemble, alpha=0)
    rows = np.array([[0.0], [1.0]], np.float32)
    assert fast.predict(rows).tolist() == [1, 0]


@pytest.mark.parametrize("summation", WIDE)
def test_float64_sums_hold_what_float32_sums_do_not(summation):
    fast = qwyc.optimize(stumps(LARGEST, 50, summation), alpha=0)
    assert fast.predict(np.array([[0.0], [1.0]], np.float32)).tolist() == [1, 0]


@pytest.mark.parametrize("summation", WIDE)
def test_sums_that_may_leave_float64_are_refused(summation):
    largest = float(np.finfo(np.float64).max)
    with pytest.raises(qwyc.OptionError, match="may overflow"):
        qwyc.optimize(stumps(1.0, 2, summation, base=largest), alpha=0)


def test_shares_that_may_overflow_are_refused():
    ensemble = random_ensemble(3, summation=Summation.SHARES)
    qwyc.optimize(ensemble, alpha=0)
    trees = ensemble.base_models.trees
    huge = changed(ensemble, trees=replace(trees, leaf_other=np.full_like(trees.leaf_other, 1e308)))
    with pytest.raises(qwyc.OptionError, match="may overflow"):
        qwyc.optimize(huge, alpha=0)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("where", ["least", "most", "margin"])
def test_bounds_that_are_not_numbers_are_refused(odd, where):
    sound = {"least": np.array([-1.0, -1.0]), "most": np.array([1.0, 1.0]), "margin": 1e-9}
    bounds = Bounds(**(sound | {where: odd if where == "margin" else np.array([0.0, odd])}))
    with pytest.raises(qwyc.OptionError, match="may overflow"):
        provable_policy(bounds, threshold=0.0, costs=Costs.of(None, 2), quit="both")


@pytest.mark.parametrize("summation", list(Summation))
def test_the_margin_of_usual_models_is_finite(summation):
    for seed in range(20):
        ensemble = random_ensemble(seed, summation=summation)
        assert np.isfinite(ensemble.base_models.rounding_margin())
        fast = qwyc.optimize(ensemble, alpha=0)
        rows = random_rows(seed, ensemble)
        full = ensemble.score_full(rows) >= ensemble.threshold
        np.testing.assert_array_equal(fast.predict(rows), full.astype(int))


def test_a_model_of_xgboost_with_leaves_near_the_end_of_float32(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = xgboost.XGBClassifier(n_estimators=4, max_depth=1).fit(X, X[:, 0] > 0)
    document = xgboost_document(model)
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        leaves = [i for i, left in enumerate(tree["left_children"]) if left == -1]
        for i, leaf in enumerate(leaves):
            tree["split_conditions"][leaf] = 3e38 if i % 2 else -3e38
    with pytest.raises(qwyc.OptionError, match="may overflow"):
        qwyc.optimize(written(tmp_path / "huge.json", document), alpha=0)
