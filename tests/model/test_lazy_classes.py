"""decide_lazily for K classes: the decisions of decide, with features that are fetched when needed."""

import itertools

import numpy as np
import pytest

import qwyc
from class_forests import random_classes, random_policy
from forests import random_rows
from many_classes import class_ensemble, rows_of
from qwyc.model import lazy
from qwyc.policy.rounds import Round


def same(lazily, whole):
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(lazily, name), getattr(whole, name))


@pytest.mark.parametrize("options", [{}, {"only": "b"}], ids=["all classes", "a filter"])
def test_decisions_are_those_of_whole_rows(options):
    ensemble = class_ensemble(3, 12, classes=["a", "b", "c"], vectors=True)
    sample, new = rows_of(4000), rows_of(1500, seed=2)
    costs = [50.0, 1.0, 1.0, 50.0, 1.0, 1.0]
    fast = qwyc.optimize(
        ensemble, sample, alpha=0.05, feature_costs=costs, evaluation="quit", **options
    )
    calls = []

    def fetch(columns, rows):
        calls.append((columns, rows))
        return new[np.ix_(rows, columns)]

    for round_cost in (0, None, 1e9):
        calls.clear()
        found = fast.decide_lazily(fetch, len(new), round_cost=round_cost)
        same(found, fast.decide(new))
        assert found.rounds == len(calls)
        assert found.fetched.sum() == sum(len(columns) * len(rows) for columns, rows in calls)
        seen = {(int(row), c) for columns, rows in calls for row in rows for c in columns}
        assert len(seen) == found.fetched.sum()  # no value twice
    assert found.rounds == 1
    assert fast.decide_lazily(fetch, len(new), round_cost=0).mean_fetched < 6
    assert fast.decide_lazily(fetch, 0).score.shape == (0, 3)


@pytest.mark.parametrize("seed", range(6))
def test_every_way_to_cut_steps_into_rounds(seed):
    """Rows that tie at a cut go on, and are told by the steps that they took."""
    ensemble = random_classes(seed, vectors=seed % 2 == 1, dtype="float32")
    rows = random_rows(seed, ensemble, 300)
    lead = random_policy(seed, ensemble)
    gap = np.where(np.isinf(lead.lead[:, 0]), np.inf, lead.lead[:, 0])
    policy = lead
    if seed >= 3:
        policy = qwyc.FilterPolicy(lead.order, gap, lead.costs, seed % 4, 4)
    whole, runner = policy.apply(ensemble.scores(rows)), ensemble.runner(policy)
    every = np.arange(5)
    for cuts in ([1], [2, 5], [1, 2, 3, 4, 5, 6, 7, 8]):
        ends = [0, *cuts, ensemble.n_models]
        rounds = [
            Round(begin, end, every if begin == 0 else every[:0])
            for begin, end in itertools.pairwise(ends)
        ]
        made = lazy.LazyRunner.of(ensemble, policy, rounds, runner)
        found = made.decide(lambda columns, at: rows[np.ix_(at, columns)], len(rows), 1)
        same(found, whole)
