"""The small form of exported C: integers decide as floating-point numbers do, or the model is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import xgboost

import qwyc
from class_forests import random_classes
from exported import exported, odd_rows, with_random_policy
from forests import changed, ensemble_of, random_ensemble, random_rows
from qwyc.errors import ModelError, OptionError
from qwyc.files.export_c.small import program
from qwyc.model.trees import NodeFlag, Summation
from trained import make_frame

PLAIN = ~np.uint8(NodeFlag.CATEGORICAL | NodeFlag.ZERO_IS_MISSING | NodeFlag.IN_SET_LEFT)


def plain_ensemble(seed, summation=Summation.FLOAT32, sizes=(1.0,), n_trees=40, **changes):
    """Trees of numbers of float32 whose leaves are of very different sizes."""
    rng = np.random.default_rng(seed)
    made = random_ensemble(seed, n_trees=n_trees, summation=summation, dtype="float32")
    trees = made.base_models.trees
    leaves = rng.normal(size=len(trees.leaf_value)) * rng.choice(sizes, len(trees.leaf_value))
    trees = replace(
        trees,
        flags=trees.flags & PLAIN,
        leaf_value=leaves.astype(np.float32).astype(float),
        leaf_other=np.empty(0),
    )
    return changed(made, **{"trees": trees, "divisor": 1.0, **changes})


def check(folder, ensemble, rows=None, quits="both"):
    rows = random_rows(1, ensemble, 600) if rows is None else rows
    files = exported(folder, with_random_policy(ensemble, rows, quits=quits), small=True)
    decide = files.compiled("-O2")
    files.check(decide, rows)
    files.check(decide, odd_rows(ensemble, 600))
    return files


@pytest.mark.parametrize("sizes", [(1.0,), (1.0, 1e-3), (1.0, 1e-6)])
@pytest.mark.parametrize(
    "summation",
    [Summation.FLOAT32, Summation.FLOAT32_LATE, Summation.FLOAT64, Summation.FLOAT64_LATE],
)
def test_sums_are_rounded_as_floats_are(tmp_path, summation, sizes):
    ensemble = plain_ensemble(int(summation), summation, sizes)
    text = (check(tmp_path, ensemble).folder / "model.c").read_text()
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    assert not re.search("double|[^l]eaf_value|[+*/-] x", code)
    bits = int(re.search(r"integers of (\d+)", " ".join(text.split(" * "))).group(1))
    assert (bits > 53) == (1e-6 in sizes)  # sums that float64 rounds too
    assert ("rounded(int64_t" in text) == (bits > 53)


@pytest.mark.parametrize("quits", ["negative", "positive"])
def test_one_way(tmp_path, quits):
    check(tmp_path, plain_ensemble(5), quits=quits)


def test_sums_that_lie_halfway_between_floats(tmp_path):
    """Leaves of few bits, so that sums often lie exactly between two floats."""
    rng = np.random.default_rng(0)
    ensemble = plain_ensemble(6, n_trees=30, base=float(2**22 + 1))
    trees = ensemble.base_models.trees
    leaves = rng.integers(-64, 65, len(trees.leaf_value)) / 4.0
    ensemble = changed(ensemble, trees=replace(trees, leaf_value=leaves), threshold=2.0**22)
    check(tmp_path, ensemble)


def test_many_thresholds_and_features(tmp_path):
    """Ranks and features of 16 bits."""
    rng = np.random.default_rng(1)
    roots = [
        (int(f), float(t), int(f) % 2, [], None, None)
        for f, t in zip(rng.integers(0, 200, 3000), rng.normal(size=3000), strict=True)
    ]
    roots += [(0, float(t), 1, [], None, None) for t in rng.normal(size=400)]
    leaves = rng.normal(size=2 * len(roots)).astype(np.float32).astype(float)
    ensemble = ensemble_of(roots, leaves, n_features=200, summation=Summation.FLOAT32)
    check(tmp_path, ensemble, rng.normal(size=(200, 200)).astype(np.float32))


def tree_of_both(rng, depth, n_numerical):
    """A tree with numbers in the first columns and categories in the others."""
    if depth == 0 or rng.random() < 0.1:
        return None
    feature, flags, codes = int(rng.integers(5)), int(rng.integers(2)), []
    if feature >= n_numerical:
        flags |= NodeFlag.CATEGORICAL | int(rng.integers(2)) * NodeFlag.IN_SET_LEFT
        codes = sorted(rng.choice(70, size=rng.integers(0, 9), replace=False).tolist())
    children = [tree_of_both(rng, depth - 1, n_numerical) for _ in range(2)]
    return (feature, float(np.round(rng.normal(), 1)), int(flags), codes, *children)


@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize("n_numerical", [0, 3])
def test_categories(tmp_path, n_numerical, truncates):
    rng = np.random.default_rng(3)
    roots = [tree_of_both(rng, 5, n_numerical) for _ in range(40)]
    ensemble = ensemble_of(roots, n_features=5, truncates=truncates)
    trees = ensemble.base_models.trees
    leaves = trees.leaf_value.astype(np.float32).astype(float)
    trees = replace(trees, leaf_value=leaves)
    check(tmp_path, changed(ensemble, trees=trees, summation=Summation.FLOAT32))


def test_a_trained_model_with_categories(tmp_path):
    frame, y = make_frame(rows=3000)
    model = xgboost.XGBClassifier(
        n_estimators=40, max_depth=4, enable_categorical=True, max_cat_to_onehot=2, n_jobs=1
    )
    model.fit(frame[:1000], y[:1000])
    fast = qwyc.optimize(model, frame[1000:], alpha=0.03, progress=False)
    assert (fast.ensemble.base_models.trees.flags & NodeFlag.CATEGORICAL).any()
    files = exported(tmp_path, fast, small=True)
    files.check(files.compiled("-O2"), fast.ensemble.matrix(frame))


def test_a_trained_model_is_smaller(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 8)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0.3
    model = xgboost.XGBClassifier(n_estimators=60, max_depth=4, n_jobs=1).fit(X[:500], y[:500])
    fast = qwyc.optimize(model, X[500:], alpha=0.02, progress=False)
    small, usual = (exported(tmp_path / str(s), fast, small=s) for s in (True, False))
    sizes = [
        int((files.folder / "model.h").read_text().split("TABLE_BYTES ")[1].split()[0])
        for files in (small, usual)
    ]
    assert sizes[0] < 0.7 * sizes[1]
    small.check(small.compiled("-O2"), X)


def refused(ensemble, match):
    rows = random_rows(1, ensemble, 100)
    fast = with_random_policy(ensemble, rows)
    with pytest.raises(ModelError, match=match):
        program(fast.ensemble.base_models, fast.policy)


def test_what_integers_cannot_decide_is_refused():
    refused(random_ensemble(1, dtype="float64"), "float64")
    refused(random_ensemble(1, dtype="float32", summation=Summation.SHARES), "mean")
    refused(plain_ensemble(1, sizes=(1.0, 1e-15)), "sums take 8")
    wide = plain_ensemble(2, Summation.FLOAT64)
    trees = wide.base_models.trees
    refused(changed(wide, trees=replace(trees, leaf_value=trees.leaf_value / 3)), "leaves hold")
    refused(plain_ensemble(3, Summation.FLOAT32_LATE, base=0.1), "its base is")
    flags = trees.flags | np.uint8(NodeFlag.ZERO_IS_MISSING)
    refused(changed(wide, trees=replace(trees, flags=flags)), "zero for missing")
    both = ensemble_of([(0, 0.5, 0, [], (0, 0.0, 2, [1], None, None), None)], [0.0, 1.0, 2.0])
    refused(both, "column 0 is compared with numbers and with categories")
    refused(ensemble_of([None, None], [1.0, 2.0]), "split")


def test_other_families_are_refused(tmp_path):
    ensemble = random_classes(1)
    fast = with_random_policy(ensemble, random_rows(1, ensemble, 100))
    with pytest.raises(OptionError, match="trees of two classes"):
        fast.export_c(tmp_path / "model", small=True)
    assert not list(tmp_path.iterdir())
