"""Model files of a few kilobytes whose category codes would take gigabytes as tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oracle
import qwyc
from qwyc import _native
from trained import written

HIGHEST = 2**24 - 1  # the highest category code that a set may hold
# 128 tables of 2^24 bytes end at 2^31: the next one begins past what 32 bits count.
N_FEATURES = 64  # as many sets up to the highest code as a model may have


def stump(feature, codes, leaves):
    """A tree of one split by category: right where the row's code is one of `codes`."""
    return {
        "tree_param": {"num_nodes": "3", "size_leaf_vector": "1"},
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "split_indices": [feature, 0, 0],
        "split_conditions": [0.0, *leaves],
        "default_left": [feature % 2, 0, 0],
        "split_type": [1, 0, 0],
        "categories": codes,
        "categories_nodes": [0],
        "categories_segments": [0],
        "categories_sizes": [len(codes)],
    }


def document(trees, n_features):
    return {
        "version": [3, 0, 0],
        "learner": {
            "objective": {"name": "binary:logistic"},
            "learner_model_param": {"base_score": "5E-1", "num_feature": str(n_features)},
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "gbtree_model_param": {"num_trees": str(len(trees))},
                    "tree_info": [0] * len(trees),
                    "trees": trees,
                },
            },
        },
    }


def hostile(path):
    rng = np.random.default_rng(0)
    leaves = rng.normal(size=(N_FEATURES, 2)).round(3).tolist()
    trees = [stump(t, [HIGHEST], leaves[t]) for t in range(N_FEATURES)]
    return written(path, document(trees, N_FEATURES))


def rows():
    """Codes 0, the highest, one in between, too high, negative, and missing."""
    codes = [0, HIGHEST, 77, HIGHEST + 1, -1, np.nan]
    drawn = np.random.default_rng(1).choice(codes, size=(300, N_FEATURES))
    same = np.repeat(np.array(codes)[:, np.newaxis], N_FEATURES, axis=1)
    return np.concatenate([same, drawn]).astype(np.float32)


def check(path):
    """Every instruction set against the oracle; run in a process of its own, which may crash."""
    ensemble, X = qwyc.read_model(path), rows()
    leaves = oracle.tree_leaves(ensemble, X)
    values, full = oracle.score_matrix(ensemble, leaves), oracle.full_score(ensemble, leaves)
    policy = qwyc.fit_policy(ensemble.scores(X), alpha=0.1)
    base = ensemble.base_models.start / ensemble.base_models.divisor
    expected = oracle.apply_policy(
        values, base, full, policy.order, policy.lower, policy.upper, policy.threshold
    )
    quitter = ensemble.runner(policy).quitter
    for isa in _native.available_isas():
        for held in (X, X.astype(np.float64)):
            ours, ours_full = ensemble.base_models.native.score_matrix(held, 2, isa)
            np.testing.assert_array_equal(ours.T, values, err_msg=isa)
            np.testing.assert_array_equal(ours_full, full, err_msg=isa)
            for theirs, mine in zip(expected, quitter.decide(held, 2, isa), strict=True):
                np.testing.assert_array_equal(mine, theirs, err_msg=isa)
    return ensemble.base_models.native.n_walked


def test_tables_of_categories_do_not_outgrow_their_offsets_or_the_memory(tmp_path):
    path = hostile(tmp_path / "m.json")
    assert path.stat().st_size < 60_000
    # Not ru_maxrss: after exec it still counts what the parent held.
    code = (
        "import json, sys, test_many_categories as t; walked = t.check(sys.argv[1]);"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM:'));"
        "print(json.dumps([walked, int(peak.split()[1])]))"
    )
    here = Path(__file__).parent
    folders = [here, here.parent, here.parent / "support"]  # of this module and of what it imports
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
    )
    assert done.returncode == 0, done.stderr
    walked, peak = json.loads(done.stdout)
    # Four tables of 2^24 bytes are the 64 MB that all may take; the other trees are walked.
    assert walked == N_FEATURES - 4
    # The sets themselves are 64 times 2 MB, in Python and in the native core.
    assert peak < 1_000_000, f"{peak:,} kB"


@pytest.mark.parametrize("isa", _native.available_isas())
def test_small_tables_come_before_large_ones(tmp_path, isa):
    """A feature of few categories is not walked because others have many."""
    trees = [stump(t, [HIGHEST], [-1.0, 1.0]) for t in range(5)]
    trees.append(stump(5, [1, 40], [-0.5, 0.25]))
    ensemble = qwyc.read_model(written(tmp_path / "m.json", document(trees, 6)))
    assert (
        ensemble.base_models.native.n_walked == 2
    )  # three tables of 2^24 bytes fit beside the small one
    X = np.array([[0] * 6, [HIGHEST] * 6, [1] * 6, [40] * 6, [np.nan] * 6] * 20, dtype=np.float32)
    expected = oracle.full_score(ensemble, oracle.tree_leaves(ensemble, X))
    np.testing.assert_array_equal(ensemble.base_models.native.score_full(X, 1, isa), expected)
