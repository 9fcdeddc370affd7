"""One pass over a path counts what its policies decide one by one."""

import numpy as np
import pytest
import xgboost

import qwyc
from oracle.policies import apply_policy
from qwyc import _native
from qwyc.policy.counts import sum_over_rows
from qwyc.policy.grouped import has_policy
from qwyc.policy.path import Path
from qwyc.policy.scores import ScoreMatrix


def make_path(rng, K, T, *, nested):
    width = np.abs(rng.normal(size=(K, T))) * 3
    if nested:
        width = -np.sort(-width, axis=0)
    lower, upper = -width, width * rng.uniform(0.5, 2, size=(K, T))
    lower[rng.random((K, T)) < 0.3] = -np.inf
    upper[rng.random((K, T)) < 0.3] = np.inf
    lower[0], upper[0] = -np.inf, np.inf
    order = rng.permutation(T).astype(np.int32)
    return Path(order, lower, upper, np.arange(K, dtype=float), 0.1, rng.uniform(1, 2, T))


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize(("K", "T"), [(1, 5), (2, 1), (7, 30), (70, 12)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_every_policy(nested, K, T, dtype):
    rng = np.random.default_rng(K * T + nested)
    path = make_path(rng, K, T, nested=nested)
    matrix = ScoreMatrix.from_array(
        rng.normal(size=(5000, T)).astype(dtype), base=0.2, threshold=0.1
    )
    for rows in (None, rng.permutation(5000)[:999], np.zeros(0, dtype=np.intp)):
        chosen = slice(None) if rows is None else rows
        full = path.target.decide(matrix.full)[chosen]
        seen = []
        sums = path.sums(
            matrix, rows=rows, threads=2, watch=lambda *one, seen=seen: seen.append(one)
        )
        for k in range(K):
            decisions = path[k].apply(matrix)
            want = sum_over_rows(path[k], decisions.label[chosen], full, decisions.steps[chosen])
            for name in ("differences", "exits", "stops", "steps"):
                np.testing.assert_array_equal(getattr(sums, name)[k], getattr(want, name)[0], name)
            np.testing.assert_allclose(sums.cost[k], want.cost[0], rtol=1e-12)
            np.testing.assert_array_equal(sums.by_class, want.by_class)
            assert seen[k][0] == k
            np.testing.assert_array_equal(seen[k][1], decisions.label[chosen])
            np.testing.assert_array_equal(seen[k][2], full)


def test_rows_that_are_not_there_are_refused():
    rng = np.random.default_rng(0)
    path = make_path(rng, 3, 4, nested=True)
    matrix = ScoreMatrix.from_array(rng.normal(size=(10, 4)))
    for rows in ([10], [-1]):
        with pytest.raises(ValueError, match="numbers of rows"):
            path.sums(matrix, rows=np.array(rows))


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_are_the_oracles_on_every_instruction_set(dtype, isa):
    rng = np.random.default_rng(3)
    path = make_path(rng, 66, 25, nested=False)
    matrix = ScoreMatrix.from_array(
        rng.normal(size=(1500, 25)).astype(dtype), base=0.2, threshold=0.1
    )
    rules = path.order, path.lower, path.upper, path.threshold
    by_model = np.ascontiguousarray(matrix.values.T)
    found = _native.count_path(by_model, matrix.base, matrix.full, *rules, None, True, 2, isa)
    check_counts(path, matrix, *found)


@pytest.mark.parametrize("isa", _native.available_isas())
def test_counts_of_any_number_of_policies(isa):
    """Kernels look at as few policies as there are, in steps of eight."""
    rng = np.random.default_rng(5)
    matrix = ScoreMatrix.from_array(rng.normal(size=(600, 12)), base=0.2, threshold=0.1)
    by_model = np.ascontiguousarray(matrix.values.T)
    for K in [k + more for k in range(8, 65, 8) for more in (-1, 0, 1)]:
        path = make_path(rng, K, 12, nested=True)
        rules = path.order, path.lower, path.upper, path.threshold
        found = _native.count_path(by_model, matrix.base, matrix.full, *rules, None, True, 1, isa)
        check_counts(path, matrix, *found)


@pytest.mark.parametrize("isa", _native.available_isas())
def test_trees_count_what_their_scores_say(adult_codes, isa):
    """Most rows of most policies are followed to the end here, through the slabs of later steps."""
    X, y, X_new, _ = adult_codes
    model = xgboost.XGBClassifier(n_estimators=90, max_depth=4).fit(X[:4000], y[:4000])
    ensemble = qwyc.read_model(model)
    path = qwyc.fit_path(ensemble.scores(X[4000:8000]))
    scores = ensemble.scores(X_new[:3001])
    rules = path.order, path.lower, path.upper, path.threshold
    for rows in (X_new[:3001], X_new[:3001].astype(np.float64)):
        full, *found = ensemble.base_models.native.count_path(rows, *rules, True, 2, isa)
        np.testing.assert_array_equal(full, scores.full)
        check_counts(path, scores, *found)
        assert not len(ensemble.base_models.native.count_path(rows, *rules, False, 2, isa)[3])


def check_counts(path, matrix, stops, differences, wrong):
    positive = matrix.full >= path.threshold
    for k in range(len(path)):
        decided, steps, _ = apply_policy(
            matrix.values,
            matrix.base,
            matrix.full,
            path.order,
            path.lower[k],
            path.upper[k],
            path.threshold,
        )
        np.testing.assert_array_equal(stops[k], np.bincount(steps - 1, minlength=len(path.order)))
        assert differences[k].tolist() == [(positive & ~decided).sum(), (~positive & decided).sum()]
        np.testing.assert_array_equal(has_policy(wrong, k), positive != decided)
