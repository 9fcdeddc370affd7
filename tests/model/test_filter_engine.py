"""The native engine under a filter for one class: every instruction set, layout of rows and size of batch
decides like the oracle, with the same bits."""

import numpy as np
import pytest

import oracle.class_trees
import oracle.filters
import oracle.leads
import qwyc
from class_forests import SUMMATIONS, random_classes
from forests import random_rows
from qwyc import _native
from qwyc.errors import OptionError

ISAS = _native.available_isas()


def filter_for(seed, ensemble, only, rows):
    """Thresholds at which some rows leave at most steps, and others never do."""
    rng, scores, R = np.random.default_rng(seed), ensemble.scores(rows), ensemble.n_models
    order = rng.permutation(R)
    sums = oracle.leads.running_sums(scores.values.astype(float), scores.base, order)
    ahead = np.delete(sums, only, axis=2).max(axis=2) - sums[:, :, only]  # (N, R)
    gap = np.quantile(ahead, 0.9, axis=0)
    gap[rng.random(R) > 0.8] = np.inf
    return qwyc.FilterPolicy(order, gap, np.ones(R), only, len(ensemble.classes))


def assert_like_the_oracle(ensemble, policy, rows, sizes):
    leaves = oracle.class_trees.class_leaves(ensemble, rows)
    values, full = oracle.class_trees.class_scores(ensemble, leaves)
    label, steps, score = oracle.filters.apply_filter(
        values, ensemble.base_models.base, full, policy.order, policy.gap, policy.only
    )
    runner = ensemble.runner(policy)
    for isa in ISAS:
        for n in sizes:
            for some in (rows[:n], np.asfortranarray(rows[:n].astype(np.float64))):
                found = runner.quitter.decide(some, 1, True, isa)
                np.testing.assert_array_equal(found[0], label[:n])
                np.testing.assert_array_equal(found[1], steps[:n])
                np.testing.assert_array_equal(found[2], score[:n])
    one = runner.one_row(list(range(len(ensemble.classes))), print, ensemble.schema)
    assert [one(row) for row in rows[:100]] == label[:100].tolist()
    return steps


@pytest.mark.parametrize("vectors", [False, True], ids=["rounds", "vectors"])
@pytest.mark.parametrize("summation", SUMMATIONS, ids=str)
def test_every_summation(summation, vectors):
    seed = int(summation) * 2 + vectors
    ensemble = random_classes(seed, vectors=vectors, summation=summation)
    rows = random_rows(seed, ensemble, 700)
    policy = filter_for(seed, ensemble, seed % 4, rows)
    steps = assert_like_the_oracle(ensemble, policy, rows, (0, 1, 2, 17, 63, 64, 65, 130, 700))
    assert len(np.unique(steps)) > 1  # some rows leave, and some stay


@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 9, "vectors": True},  # trees that are walked
        {"depth": 9},
        {"gaps": True},
        {"n_classes": 2},
        {"n_classes": 150, "rounds": 3},
        {"rounds": 2},
        {"rounds": 60, "n_classes": 3},
    ],
    ids=str,
)
def test_every_shape(settings):
    ensemble = random_classes(3, **settings)
    rows = random_rows(3, ensemble, 700)
    for only in (0, len(ensemble.classes) - 1):
        policy = filter_for(only, ensemble, only, rows)
        assert_like_the_oracle(ensemble, policy, rows, (1, 3, 64, 200, 700))


def test_a_cascade_runs_it():
    ensemble = random_classes(5)
    rows = random_rows(5, ensemble, 300)
    policy = filter_for(5, ensemble, 2, rows)
    cascade = qwyc.Cascade(ensemble, policy)
    done, expected = cascade.decide(rows), policy.apply(ensemble.scores(rows))
    np.testing.assert_array_equal(done.label, expected.label)
    np.testing.assert_array_equal(done.score, expected.score)
    assert repr(cascade).endswith("quits early")
    with pytest.raises(OptionError, match="the policy is for 4 classes"):
        random_classes(1, n_classes=3).runner(policy)
