"""Labels alone: in batches of some sizes, the source's own sums take the place of running sums, which are
rounded in another way. Rows that are on a threshold, or next to it, are decided alike all the same."""

from dataclasses import replace

import numpy as np
import pytest

import oracle.leads
from class_forests import random_classes
from forests import random_rows
from qwyc import _native
from qwyc.model.trees import Summation
from qwyc.policy.lead_policy import LeadPolicy

ISAS = _native.available_isas()
SIZES = (2, 5, 16, 17, 33, 64, 65, 128, 129, 300, 512, 513, 1_000, 1_025, 2_100, 4_096, 4_500)


def on_rows(rng, scores, tests, *, rules_out=True, by_class=False):
    """A policy in the model's own order. After each test, the lead of some row and the distance of a
    class are exactly the thresholds."""
    N, R, K = scores.values.shape
    lead, drop = np.full((R, K), np.inf), np.full(R, np.inf)
    sums = np.array(np.broadcast_to(scores.base, (N, K)), dtype=float)
    alive = np.ones(N, dtype=bool)
    for r in range(max(tests) + 1):
        sums += scores.values[:, r]
        if r not in tests:
            continue
        leader, ahead = oracle.leads.leaders(sums)
        inside = np.sort(ahead[alive])[int(alive.sum() * 0.3) : int(alive.sum() * 0.9)]
        lead[r] = rng.choice(inside, K if by_class else 1)
        alive &= ~(ahead > lead[r, leader])
        if rules_out:
            behind = (sums.max(axis=1, keepdims=True) - sums)[alive]
            behind = np.sort(behind[np.isfinite(behind) & (behind > 0)])
            drop[r] = rng.choice(behind[len(behind) // 3 :])
            sums[sums.max(axis=1, keepdims=True) - sums > drop[r]] = -np.inf
    return LeadPolicy(np.arange(R), lead, np.ones(R), drop=drop if rules_out else None)


def assert_labels(ensemble, policy, rows, scores, isas=ISAS, sizes=SIZES):
    label, steps, _ = oracle.leads.apply_leads(
        scores.values, scores.base, scores.full, policy.order, policy.lead, policy.drop
    )
    quitter = ensemble.runner(policy).quitter
    for isa in isas:
        for n in (size for size in sizes if size <= len(rows)):
            found = quitter.decide(rows[:n], 1, False, isa)[0]
            np.testing.assert_array_equal(found, label[:n])
    return steps


@pytest.mark.parametrize("by_class", [False, True], ids=["", "by class"])
@pytest.mark.parametrize("rules_out", [False, True], ids=["", "ruling out"])
@pytest.mark.parametrize("summation", [Summation.FLOAT32, Summation.FLOAT64], ids=str)
def test_rows_on_thresholds(summation, rules_out, by_class):
    ensemble = random_classes(
        11, n_classes=5, rounds=40, summation=summation, divisor=1.0, categories=False
    )
    rows = random_rows(1, ensemble, 4_500)
    scores = ensemble.scores(rows)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        policy = on_rows(rng, scores, (1, 7, 19, 38), rules_out=rules_out, by_class=by_class)
        sizes = SIZES if seed == 0 else (200, 4_000)
        steps = assert_labels(ensemble, policy, rows, scores, sizes=sizes)
        assert len(np.unique(steps)) >= 4


@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 6, "leaf_stop": 0.0, "rounds": 30, "categories": False},  # tables of 64 values
        {"depth": 9, "leaf_stop": 0.05, "rounds": 20, "categories": False},  # large, on masks
        {"depth": 9, "rounds": 20},  # some are walked
        {"rounds": 30, "dtype": "float64"},
        {"rounds": 30, "dtype": "float32"},
        {"rounds": 12, "gaps": True},
        {"rounds": 12, "n_classes": 2},
        {"rounds": 4, "n_classes": 150},
    ],
    ids=str,
)
@pytest.mark.parametrize("summation", list(Summation)[:2], ids=str)
def test_every_shape(settings, summation):
    ensemble = random_classes(5, summation=summation, divisor=1.0, **settings)
    rows = random_rows(2, ensemble, 2_100)
    scores = ensemble.scores(rows)
    last = ensemble.n_models - 2
    for seed in range(3):
        policy = on_rows(np.random.default_rng(seed), scores, sorted({0, last // 2, last}))
        assert_labels(ensemble, policy, rows, scores, sizes=(40, 100, 700, 2_100))
        for other in (rows.astype(np.float64), np.asfortranarray(rows)):
            quitter = ensemble.runner(policy).quitter
            np.testing.assert_array_equal(
                quitter.decide(other[:700], 1, False)[0], quitter.decide(rows[:700], 1, False)[0]
            )


def test_thresholds_of_nothing():
    """Every row is next to a threshold of 0, so running sums decide."""
    ensemble = random_classes(3, rounds=20, summation=Summation.FLOAT32, categories=False)
    rows = random_rows(3, ensemble, 700)
    scores = ensemble.scores(rows)
    policy = on_rows(np.random.default_rng(0), scores, (3, 18))
    for lead in (np.zeros_like(policy.lead), np.where(policy.lead < np.inf, 1e-6, np.inf)):
        assert_labels(ensemble, replace(policy, lead=lead), rows, scores)


def test_leaves_that_are_tiny():
    """What base models add is rounded to floats, coarsely where these are denormal."""
    ensemble = random_classes(
        2, n_classes=5, rounds=40, summation=Summation.FLOAT64, divisor=1.0, categories=False
    )
    models = ensemble.base_models
    tiny = {"leaf_value": models.trees.leaf_value * 1e-42}
    models = replace(models, start=models.start * 1e-42, trees=replace(models.trees, **tiny))
    ensemble = replace(ensemble, base_models=models)
    rows = random_rows(3, ensemble, 700)
    scores = ensemble.scores(rows)
    for rules_out in (False, True):
        policy = on_rows(np.random.default_rng(0), scores, (7, 19, 38), rules_out=rules_out)
        assert_labels(ensemble, policy, rows, scores)


def test_rows_that_never_quit_have_full_scores():
    """Their leaves are remembered on the way, in batches of which scores are asked for."""
    ensemble = random_classes(9, rounds=40, summation=Summation.FLOAT32, categories=False)
    rows = random_rows(4, ensemble, 900)
    scores = ensemble.scores(rows)
    for seed in range(3):
        policy = on_rows(np.random.default_rng(seed), scores, (7, 19, 38))
        label, steps, score = oracle.leads.apply_leads(
            scores.values, scores.base, scores.full, policy.order, policy.lead, policy.drop
        )
        assert (steps == 40).mean() > 0.02
        quitter = ensemble.runner(policy).quitter
        for isa in ISAS:
            for n in (30, 64, 100, 300, 512, 900):
                found = quitter.decide(rows[:n], 1, True, isa)
                np.testing.assert_array_equal(found[0], label[:n])
                np.testing.assert_array_equal(found[1], steps[:n])
                np.testing.assert_array_equal(found[2], score[:n])
