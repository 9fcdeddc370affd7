"""Exported C decides every row as Python does, bit for bit: random ensembles of every family and rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from class_forests import SUMMATIONS, random_classes, random_policy
from exported import exported, odd_rows, with_random_policy
from forests import changed, ensemble_of, random_ensemble, random_rows, with_inputs
from lattices import lattice_rows, random_lattices
from qwyc.model.lattices.models import Interpolation
from qwyc.model.trees import Summation
from qwyc.target.ties import CODES, Ties

# Modes in which a compiler may fuse a product and a sum, unless the source forbids it.
LOOSE = ("-std=gnu99", "-O3", "-march=native", "-ffp-contract=fast", "-Wno-error")


def check(folder, ensemble, rows, *flag_sets, seed=0, quits="both"):
    fast = with_random_policy(ensemble, rows, seed, quits)
    files = exported(folder, fast)
    for flags in flag_sets or (("-O1",),):
        decide = files.compiled(*flags)
        decisions = files.check(decide, rows)
        files.check(decide, odd_rows(ensemble, 400, seed))
    return decisions


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("summation", list(Summation))
def test_trees_of_every_summation(tmp_path, summation, dtype):
    ensemble = random_ensemble(int(summation), summation=summation, dtype=dtype, n_trees=20)
    decisions = check(tmp_path, ensemble, random_rows(1, ensemble, 500))
    assert 0 < decisions.complete.mean() < 1


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
def test_trees_at_every_level_of_optimisation(tmp_path, level):
    ensemble = random_ensemble(7, n_trees=30, summation=Summation.FLOAT64, dtype="float64")
    check(tmp_path, ensemble, random_rows(2, ensemble, 500), (level,))


@pytest.mark.parametrize("quits", ["negative", "positive"])
def test_trees_that_quit_one_way(tmp_path, quits):
    ensemble = random_ensemble(3, n_trees=20)
    decisions = check(tmp_path, ensemble, random_rows(3, ensemble, 500), quits=quits)
    assert len(set(decisions.label[~decisions.complete].tolist())) == 1


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (random_ensemble, {"summation": Summation.SHARES}),
        (random_ensemble, {"summation": Summation.FLOAT32}),
        (random_classes, {"summation": Summation.FLOAT64}),
        (random_classes, {"vectors": True}),
        (random_lattices, {}),
    ],
)
def test_full_evaluation(tmp_path, make, options):
    ensemble = make(4, **options)
    rows = random_rows(4, ensemble, 300)
    files = exported(tmp_path, with_random_policy(ensemble, rows).full())
    assert files.check(files.compiled(), rows).complete.all()


@pytest.mark.parametrize(("less_equal", "truncates"), [(True, True), (False, False), (False, True)])
def test_comparisons_and_truncated_codes(tmp_path, less_equal, truncates):
    ensemble = changed(
        random_ensemble(5, n_trees=25, depth=6), less_equal=less_equal, truncates=truncates
    )
    check(tmp_path, ensemble, random_rows(5, ensemble, 500))


def test_one_tree_and_single_leaves(tmp_path):
    leaf = ensemble_of([None, None, None], n_features=1)
    check(tmp_path / "leaves", leaf, np.array([[0.0], [np.nan]], np.float32))
    one = ensemble_of([(0, 0.5, 1, [], None, None)], n_features=2)
    check(tmp_path / "one", one, random_rows(0, one, 50))


def test_deep_trees_need_wider_children(tmp_path):
    """More nodes than 16 bits count, and a path of 500 nodes."""
    wide, path = None, None
    for depth in range(15):
        wide = (depth % 3, float(depth) / 7, depth % 2, [], wide, wide)
    wide = (0, 0.25, 1, [], wide, (1, 0.5, 0, [], None, None))
    for i in range(500):
        path = (0, float(i), 1, [], None, path) if i % 2 else (0, -float(i), 0, [], path, None)
    ensemble = ensemble_of([path, wide, None])
    assert np.diff(ensemble.base_models.trees.node_begin).max() > 2**15
    check(tmp_path, ensemble, random_rows(1, ensemble, 200), ("-O0",))


def test_a_number_that_means_missing(tmp_path):
    ensemble = with_inputs(random_ensemble(8, dtype="float32"), missing=0.5)
    rows = random_rows(8, ensemble, 300)
    assert (rows == 0.5).any()
    check(tmp_path, ensemble, rows)


@pytest.mark.parametrize(
    "refuses",
    [
        {"accepts_missing": False},
        {"accepts_infinity": False},
        {"accepts_missing": False, "accepts_infinity": False},
        {"must_have": (1, 3)},
        {"must_have": (1, 3), "accepts_infinity": False},
        {"missing": -1.0, "accepts_missing": False},
    ],
)
def test_rows_that_are_refused(tmp_path, refuses):
    plain = random_ensemble(9, n_trees=8)
    ensemble = with_inputs(plain, **refuses)
    rows = random_rows(9, ensemble, 400)
    fast = replace(with_random_policy(plain, rows), ensemble=ensemble)
    files = exported(tmp_path, fast)
    decisions = files.check(files.compiled(), rows)
    assert 0 < decisions.not_decided < len(rows)


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("summation", SUMMATIONS)
def test_classes_of_every_summation(tmp_path, summation, vectors):
    ensemble = random_classes(3, summation=summation, vectors=vectors, gaps=not vectors)
    decisions = check(tmp_path, ensemble, random_rows(3, ensemble, 500))
    assert 0 < decisions.complete.mean() < 1


def test_classes_that_are_ruled_out(tmp_path):
    """Classifiers have no such policy yet; the engine does."""
    ensemble = random_classes(6, rounds=12)
    rows = random_rows(6, ensemble, 500)
    fast = with_random_policy(ensemble, rows)
    policy = random_policy(6, ensemble, rules_out=True)
    object.__setattr__(fast, "policy", policy)
    files = exported(tmp_path, fast)
    decisions = files.check(files.compiled(), rows)
    assert np.isneginf(decisions.score).any()


@pytest.mark.parametrize(("kind", "dtype"), sorted(CODES))
def test_ties_by_every_rule(tmp_path, kind, dtype):
    """Leaves of a few values, so that classes tie; small and large ones, so that probabilities do."""
    ties = Ties(kind, dtype, 0.7 if kind == "sigmoid" else 1.0)
    for size, flags in ((1.0, ("-O2",)), (2e-8, LOOSE), (30.0, LOOSE)):
        made = random_classes(5, rounds=6, summation=Summation.FLOAT32, dtype="float32")
        leaves = size * np.round(made.base_models.trees.leaf_value)
        trees = replace(made.base_models.trees, leaf_value=leaves.astype(np.float32).astype(float))
        start = np.full(4, np.float32(0.5), float)
        models = replace(made.base_models, trees=trees, ties=ties, start=start)
        ensemble = replace(made, base_models=models)
        rows = random_rows(5, ensemble, 600)
        full = np.sort(ensemble.score_full(rows), axis=1)
        assert (full[:, -1] == full[:, -2]).any()
        check(tmp_path / str(size), ensemble, rows, flags)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [None, *Interpolation])
def test_lattices_of_every_kind(tmp_path, kind, dtype):
    ensemble = random_lattices(11, kind=kind, dtype=dtype, most_inputs=6)
    rows = lattice_rows(11, ensemble, 400)
    check(tmp_path, ensemble, rows, ("-O2",), LOOSE)


def test_lattices_of_many_inputs(tmp_path):
    ensemble = random_lattices(12, most_inputs=12, most_size=2, n_features=9, n_models=5)
    assert np.diff(ensemble.base_models.arrays.input_begin).max() > 8
    check(tmp_path, ensemble, lattice_rows(12, ensemble, 200), ("-O2",))
