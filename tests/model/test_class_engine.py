"""The native engine for trees of K classes: every instruction set, layout of rows and size of batch decides
like the oracle, with the same bits."""

from dataclasses import replace

import numpy as np
import pytest

import oracle.class_trees
import oracle.leads
import qwyc
from class_forests import SUMMATIONS, random_classes, random_policy
from forests import random_rows
from many_classes import class_ensemble, rows_of
from qwyc import _native
from qwyc.errors import ModelError, OptionError
from qwyc.policy.fit.lead_problem import LeadProblem
from qwyc.policy.fit.ruling_out import fit_ruling_out, steps_with_tests

ISAS = _native.available_isas()
# More than 1,024 rows are put in order by the classes that are left, where a policy rules classes out.
ROWS = {False: 700, True: 2_100}


def assert_like_the_oracle(
    ensemble, policy, rows, sizes=(0, 1, 2, 5, 16, 17, 63, 64, 65, 130, 700, 2_100)
):
    leaves = oracle.class_trees.class_leaves(ensemble, rows)
    values, full = oracle.class_trees.class_scores(ensemble, leaves)
    scores = ensemble.scores(rows)
    np.testing.assert_array_equal(scores.values, values)
    np.testing.assert_array_equal(scores.full, full)
    label, steps, score = oracle.leads.apply_leads(
        values, scores.base, full, policy.order, policy.lead, policy.drop
    )
    quitters = [ensemble.runner(policy).quitter]
    if policy.drop is not None:  # where few rows are expected to quit, they become bytes first
        stay = np.ones(policy.n_models)
        quitters.append(ensemble.base_models.runner(policy, stay).quitter)
    forest = ensemble.base_models.native
    held = [rows, rows.astype(np.float64)]
    for isa in ISAS:
        for n in (size for size in sizes if size <= len(rows)):
            for array in (a[:n] for a in held):
                for some in (array, np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2]):
                    np.testing.assert_array_equal(forest.score_full(some, 1, isa), full[:n])
                    for quitter in quitters:
                        found = quitter.decide(some, 1, True, isa)
                        np.testing.assert_array_equal(found[0], label[:n])
                        np.testing.assert_array_equal(found[1], steps[:n])
                        np.testing.assert_array_equal(found[2], score[:n])
    one = ensemble.runner(policy).one_row(
        list(range(len(ensemble.classes))), print, ensemble.schema
    )
    assert [one(row) for row in rows[:100]] == label[:100].tolist()
    return steps


@pytest.mark.parametrize("rules_out", [False, True], ids=["", "ruling out"])
@pytest.mark.parametrize("vectors", [False, True], ids=["rounds", "vectors"])
@pytest.mark.parametrize("summation", SUMMATIONS, ids=str)
def test_every_summation(summation, vectors, rules_out):
    seed = int(summation) * 4 + 2 * vectors + rules_out
    ensemble = random_classes(seed, vectors=vectors, summation=summation)
    policy = random_policy(seed, ensemble, rules_out=rules_out)
    rows = random_rows(seed, ensemble, ROWS[rules_out])
    steps = assert_like_the_oracle(ensemble, policy, rows)
    assert len(np.unique(steps)) > 3


@pytest.mark.parametrize("rules_out", [False, True], ids=["", "ruling out"])
@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 9, "vectors": True},  # trees that are walked
        {"depth": 9},
        {"categories": False},  # one row is compared with whole trees
        {"categories": False, "vectors": True},
        {"categories": False, "gaps": True, "dtype": "float64"},
        {"depth": 9, "leaf_stop": 0.05, "rounds": 20, "categories": False},  # large, on masks
        {"depth": 9, "leaf_stop": 0.05, "rounds": 40, "categories": False, "vectors": True},
        {"depth": 6, "leaf_stop": 0.01, "rounds": 20},  # tables of 64 values
        {"depth": 6, "leaf_stop": 0.01, "rounds": 20, "categories": False},  # rows become bytes
        {"depth": 6, "leaf_stop": 0.0, "rounds": 30, "categories": False, "dtype": "float64"},
        {"gaps": True},
        {"n_classes": 2},
        {"n_classes": 150, "rounds": 3},
        {"n_classes": 150, "rounds": 3, "vectors": True},
        {"n_classes": 1000, "rounds": 2},
        {"rounds": 2},
        {"rounds": 60, "n_classes": 3},
    ],
    ids=str,
)
def test_every_shape(settings, rules_out):
    ensemble = random_classes(3, **settings)
    policy = random_policy(3, ensemble, rules_out=rules_out)
    rows = random_rows(3, ensemble, ROWS[rules_out])
    assert_like_the_oracle(ensemble, policy, rows, sizes=(1, 3, 16, 64, 200, len(rows)))


def test_a_path_that_rules_classes_out_needs_fewer_trees():
    """Each class that is out saves its trees."""
    ensemble, rows = class_ensemble(6, 40), rows_of(4_000)
    scores = ensemble.scores(rows)
    path = ruling_path(scores)
    assert path.drop is not None
    assert (
        np.flatnonzero(np.isfinite(path.drop[-1])).tolist()
        == steps_with_tests(40)
        == [1, 7, 19, 38]
    )
    ruled_out = []
    for k in range(1, len(path), 8):
        done = path[k].apply(scores)
        out = np.isneginf(done.score)
        assert not out[done.complete].any()
        ruled_out.append(out[~done.complete].mean())
        found = qwyc.Cascade(ensemble, path[k]).decide(rows)
        np.testing.assert_array_equal(found.label, done.label)
        np.testing.assert_array_equal(found.steps, done.steps)
        np.testing.assert_array_equal(found.score, done.score)
    assert max(ruled_out) > 0.2


@pytest.mark.parametrize("decimals", [None, 1], ids=["", "codes"])
@pytest.mark.parametrize(("n_classes", "n_rows"), [(6, 200), (6, 20_000), (40, 24_000)], ids=str)
def test_rows_in_the_order_of_their_classes_are_decided_like_the_oracle(
    n_classes, n_rows, decimals
):
    """Blocks of several slabs, where rows with the same classes left are put together. If features have few
    thresholds and few rows are expected to quit, rows become bytes first. With 40 classes, there are
    several blocks then."""
    ensemble = class_ensemble(n_classes, 40, decimals=decimals)
    if decimals is not None:
        assert len(np.unique(ensemble.base_models.trees.threshold)) <= 255
    scores = ensemble.scores(rows_of(4_000))
    policy = ruling_path(scores)[12]
    rows = rows_of(n_rows)
    rows[::3] = rows[::3].round(1)  # on thresholds
    rows[::7, 2] = np.nan
    rows[::11, 1] = np.inf
    known = ensemble.scores(rows)
    label, steps, score = oracle.leads.apply_leads(
        known.values, known.base, known.full, policy.order, policy.lead, policy.drop
    )
    assert len(np.unique(np.isneginf(score), axis=0)) > 3  # several sets of classes
    for isa in ISAS:
        for survival in (None, np.linspace(1, 0.1, 40), np.ones(40)):
            quitter = ensemble.base_models.runner(policy, survival).quitter
            found = quitter.decide(rows, 1, True, isa)
            np.testing.assert_array_equal(found[0], label)
            np.testing.assert_array_equal(found[1], steps)
            np.testing.assert_array_equal(found[2], score)
            np.testing.assert_array_equal(quitter.decide(rows, 1, False, isa)[0], label)


def test_rows_that_quit_sooner_are_expected_to_cost_less():
    ensemble = class_ensemble(6, 40)
    policy = ruling_path(ensemble.scores(rows_of(4_000)))[12]
    step = np.arange(40)
    costs = [
        ensemble.base_models.runner(policy, survival).quitter.expected_cost
        for survival in (1 / (1 + step), 1 / (1 + step / 6), np.linspace(1, 0.1, 40), np.ones(40))
    ]
    assert costs == sorted(costs)
    assert costs[0] > 0
    assert costs[0] < ensemble.base_models.expected_cost() < costs[-1]


@pytest.mark.parametrize(
    ("n_steps", "tests"), [(1, []), (2, [0]), (3, [0, 1]), (500, [24, 99, 249, 498])]
)
def test_steps_that_are_tested(n_steps, tests):
    assert steps_with_tests(n_steps) == tests


def ruling_path(scores):
    problem = LeadProblem.of(scores, None, 1)
    return fit_ruling_out(problem, np.arange(problem.n_models, dtype=np.int32))


def test_what_does_not_fit_is_refused():
    ensemble = random_classes(1, dtype="float32")
    models = ensemble.base_models
    policy = random_policy(1, ensemble)
    two = qwyc.Policy([0], [-1.0], [1.0], 0.0, [1.0])
    wild = replace(models.trees, leaf_value=np.full_like(models.trees.leaf_value, 1e300))
    with pytest.raises(OptionError, match="run with a LeadPolicy"):
        models.runner(two)
    with pytest.raises(OptionError, match="the policy is for 5 classes"):
        models.runner(replace(policy, lead=np.ones((ensemble.n_models, 5))))
    with pytest.raises(ModelError, match="two trees of one class"):
        replace(models, tree_class=np.zeros_like(models.tree_class))
    with pytest.raises(ModelError, match="class is not one of"):
        replace(models, tree_class=models.tree_class + 1)
    with pytest.raises(ModelError, match="do not divide the trees"):
        replace(models, step_begin=models.step_begin[:-1])
    with pytest.raises(ModelError, match="too large for float32"):
        _ = replace(models, trees=wild).native
    with pytest.raises(OptionError, match="drop must be"):
        replace(policy, drop=np.full(ensemble.n_models, np.nan))
