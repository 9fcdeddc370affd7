"""The native forest against the oracle, on random trees with every kind of node."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oracle
import qwyc
from forests import changed, classifier_of, ensemble_of, flatten, random_ensemble, random_rows
from qwyc.model.trees import NodeFlag, Summation


@pytest.mark.parametrize("seed", range(60))
def test_scores_equal_the_oracle_to_the_last_bit(seed):
    ensemble = random_ensemble(seed)
    rows = random_rows(seed, ensemble)
    leaves = oracle.tree_leaves(ensemble, rows)
    scores = ensemble.scores(rows, threads=2)
    assert scores.values.dtype == np.float32
    np.testing.assert_array_equal(scores.values, oracle.score_matrix(ensemble, leaves))
    np.testing.assert_array_equal(scores.full, oracle.full_score(ensemble, leaves))
    np.testing.assert_array_equal(ensemble.score_full(rows), scores.full)


@pytest.mark.parametrize("scale", [0.3, 1e-4, 17.1])
def test_scaled_sums_equal_the_oracle(scale):
    ensemble = random_ensemble(1, summation=Summation.FLOAT64_LATE)
    ensemble = replace(ensemble, base_models=replace(ensemble.base_models, scale=scale))
    rows = random_rows(1, ensemble)
    leaves = oracle.tree_leaves(ensemble, rows)
    scores = ensemble.scores(rows)
    np.testing.assert_array_equal(scores.values, oracle.score_matrix(ensemble, leaves))
    np.testing.assert_array_equal(scores.full, oracle.full_score(ensemble, leaves))
    bounds = ensemble.base_models.bounds()
    running = scores.base + scores.values.astype(np.float64).cumsum(axis=1)  # (N, T)
    left = bounds.most.sum() - bounds.most.cumsum()  # (T,)
    assert (running + left + bounds.margin >= scores.full[:, np.newaxis]).all()
    policy = qwyc.fit_policy(scores, alpha=0.05)
    decisions = classifier_of(ensemble, policy).decide(rows)
    known = policy.apply(scores)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(known, name), getattr(decisions, name))


def test_a_scale_is_for_sums_whose_base_is_added_last():
    ensemble = random_ensemble(1, summation=Summation.FLOAT64)
    for other in (0.3, 0.0, -1.0, np.nan, np.inf):
        models = replace(ensemble.base_models, scale=other)
        with pytest.raises(qwyc.ModelError, match="scale must be positive"):
            _ = models.native


@pytest.mark.parametrize("seed", range(60))
def test_deciding_equals_the_oracle_to_the_last_bit(seed):
    ensemble = random_ensemble(seed)
    rows = random_rows(seed, ensemble)
    scores = ensemble.scores(rows)
    quit = ["both", "negative", "positive"][seed % 3]
    policy = qwyc.fit_policy(scores, alpha=0.05, quit=quit)
    fast = classifier_of(ensemble, policy)
    decisions = fast.decide(rows, threads=1 + seed % 3)
    positive, steps, score = oracle.apply_policy(
        scores.values,
        scores.base,
        scores.full,
        policy.order,
        policy.lower,
        policy.upper,
        policy.threshold,
    )
    np.testing.assert_array_equal(decisions.label, positive.astype(int))
    np.testing.assert_array_equal(decisions.steps, steps)
    np.testing.assert_array_equal(decisions.score, score)
    np.testing.assert_array_equal(decisions.complete, steps == ensemble.n_models)
    np.testing.assert_array_equal(decisions.score[decisions.complete], scores.full[steps == 12])
    known = policy.apply(scores)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(known, name), getattr(decisions, name))


def test_leaves_spell_the_path():
    # Tree t's leaves are 1, 2, 3, 4 times 10^t: a wrong sum names the tree and the turn.
    left, right = (0, -1.0, 0, [], None, None), (1, 1.0, 0, [], None, None)
    roots = [(0, 0.0, 0, [], left, right)] * 4
    leaves = [k * 10**t for t in range(4) for k in (1, 2, 3, 4)]
    ensemble = ensemble_of(roots, leaves, n_features=2, dtype="float64", less_equal=False, base=0.0)
    rows = [[-2.0, 0], [-1.0, 0], [0.0, 0.5], [0.0, 1.0]]
    assert ensemble.score_full(rows).tolist() == [1111, 2222, 3333, 4444]
    le = changed(ensemble, less_equal=True)
    assert le.score_full(rows).tolist() == [1111, 1111, 2222, 2222]


def test_many_threads_at_once_give_the_same_answers():
    ensemble = random_ensemble(3, n_trees=40)
    rows = random_rows(3, ensemble, n=3000)
    policy = qwyc.fit_policy(ensemble.scores(rows), alpha=0.01)
    fast = classifier_of(ensemble, policy)
    expected = fast.decide(rows, threads=1)
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda i: fast.decide(rows, threads=1 + i % 3), range(24)):
            np.testing.assert_array_equal(got.label, expected.label)
            np.testing.assert_array_equal(got.score, expected.score)


def test_no_rows():
    ensemble = random_ensemble(0)
    none = np.empty((0, 5), dtype=ensemble.schema.dtype)
    assert ensemble.scores(none).values.shape == (0, 12)
    assert ensemble.score_full(none).shape == (0,)


def broken(**changes):
    ensemble = random_ensemble(1, n_trees=3, depth=4, summation=Summation.FLOAT64)
    trees = ensemble.base_models.trees
    arrays = {k: getattr(trees, k).copy() for k in trees.__dataclass_fields__}
    for name, change in changes.items():
        arrays[name] = change(arrays[name])
    return changed(ensemble, trees=replace(trees, **arrays))


def at(index, value):
    def change(array):
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": at(0, 10**6)}, "child out of range"),
        ({"left": at(0, 0)}, "child out of range"),  # a loop
        ({"right": at(0, -(10**6))}, "child out of range"),
        ({"feature": at(0, 5)}, "feature out of range"),
        ({"feature": at(0, -1)}, "feature out of range"),
        ({"threshold": at(0, np.nan)}, "NaN"),
        ({"leaf_value": at(0, np.inf)}, "not finite"),
        ({"node_begin": at(1, 10**9)}, "node_begin"),
        ({"node_begin": at(0, 1)}, "does not start at 0"),
        ({"leaf_begin": at(-1, 2)}, "leaf_begin"),
        ({"category_begin": at(-1, 10**9)}, "category_begin"),
        ({"flags": lambda a: a[:-1]}, "differ in length"),
        ({"leaf_other": lambda a: np.zeros(3)}, "leaf_other"),
        ({"node_begin": lambda a: a[:1], "leaf_begin": lambda a: a[:1]}, "one entry more"),
    ],
)
def test_unsound_trees_are_refused(changes, message):
    with pytest.raises(qwyc.ModelError, match=message):
        _ = broken(**changes).base_models.native


def test_a_child_with_two_parents_is_refused():
    # Such a graph of n nodes has up to 2^n paths: laying them out would never end.
    roots = [(0, 0.0, 0, [], (0, 1.0, 0, [], None, None), (0, 2.0, 0, [], None, None))]
    trees = flatten(roots, lambda n: np.arange(n), lambda n: [], "float32")
    twice = changed(random_ensemble(1, summation=Summation.FLOAT64), trees=trees)
    _ = twice.base_models.native  # sound
    shared = replace(trees, right=np.array([1, -2, -4], dtype=np.int32))
    with pytest.raises(qwyc.ModelError, match="tree 0 has a child with two parents"):
        _ = changed(twice, trees=shared).base_models.native


def test_flags_match_the_native_ones():
    header = (Path(__file__).parents[2] / "native" / "core" / "forest.hpp").read_text()
    for name, flag in (
        ("kDefaultLeft", NodeFlag.DEFAULT_LEFT),
        ("kCategorical", NodeFlag.CATEGORICAL),
        ("kInSetLeft", NodeFlag.IN_SET_LEFT),
        ("kZeroIsMissing", NodeFlag.ZERO_IS_MISSING),
        ("kFloat32", Summation.FLOAT32),
        ("kFloat64", Summation.FLOAT64),
        ("kShares", Summation.SHARES),
        ("kFloat64Late", Summation.FLOAT64_LATE),
        ("kFloat32Late", Summation.FLOAT32_LATE),
    ):
        assert f"{name} = {int(flag)}," in header


def test_digest_tells_ensembles_apart():
    a = random_ensemble(5)
    assert a.digest == random_ensemble(5).digest
    assert a.digest != random_ensemble(6).digest
    assert a.digest != replace(a, threshold=0.25).digest
    assert a.digest != replace(a, classes=np.array(["no", "yes"])).digest
