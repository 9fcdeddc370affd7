"""The engine's kernels against the oracle: every instruction set, both ways to hold rows, and every
kind of tree that is laid out in a way of its own."""

import platform
import threading
from dataclasses import replace

import lightgbm
import numpy as np
import pytest

import oracle
import qwyc
from forests import (
    classifier_of,
    ensemble_of,
    random_ensemble,
    random_rows,
    random_tree,
)
from qwyc import _native
from qwyc.build.speed import measure
from qwyc.model.trees import NodeFlag
from qwyc.promise.evaluation import Evaluation, Speed

ISAS = _native.available_isas()


def assert_every_isa_is_right(ensemble, rows, *, alpha=0.1, quit="both"):
    """Full scores, scores by tree and early decisions, against the oracle."""
    as_read = rows.astype(ensemble.schema.dtype)
    leaves = oracle.tree_leaves(ensemble, as_read)
    values = oracle.score_matrix(ensemble, leaves)
    full = oracle.full_score(ensemble, leaves)
    policy = qwyc.fit_policy(ensemble.scores(rows), alpha=alpha, quit=quit)
    base = ensemble.base_models.start / ensemble.base_models.divisor
    expected = oracle.apply_policy(
        values, base, full, policy.order, policy.lower, policy.upper, policy.threshold
    )
    quitter = ensemble.runner(policy).quitter
    for isa in ISAS:
        for held in (rows.astype(np.float32), rows.astype(np.float64)):
            if held.astype(as_read.dtype).tobytes() != as_read.tobytes():
                continue  # float32 does not hold these numbers
            ours, ours_full = ensemble.base_models.native.score_matrix(held, 1, isa)
            np.testing.assert_array_equal(ours.T, values, err_msg=isa)
            np.testing.assert_array_equal(ours_full, full, err_msg=isa)
            np.testing.assert_array_equal(
                ensemble.base_models.native.score_full(held, 2, isa), full
            )
            for theirs, mine in zip(expected, quitter.decide(held, 2, isa), strict=True):
                np.testing.assert_array_equal(mine, theirs, err_msg=isa)


def test_there_is_a_portable_version_and_it_comes_last():
    assert ISAS[-1] == "portable"
    with pytest.raises(ValueError, match="does not run sse9"):
        random_ensemble(0).base_models.native.score_full(np.zeros((1, 5), "float32"), 1, "sse9")


@pytest.mark.parametrize("seed", range(24))
def test_random_forests_of_every_kind(seed):
    ensemble = random_ensemble(seed, n_trees=17, depth=7)
    rows = random_rows(seed, ensemble, n=700)
    assert_every_isa_is_right(ensemble, rows, quit=["both", "negative", "positive"][seed % 3])


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65, 127, 511, 512, 513, 1025])
def test_any_number_of_rows(n):
    ensemble = random_ensemble(5, n_trees=30)
    assert_every_isa_is_right(ensemble, random_rows(n, ensemble, n=n))


def test_no_rows():
    ensemble = random_ensemble(5)
    policy = qwyc.fit_policy(ensemble.scores(random_rows(5, ensemble)), alpha=0.1)
    nothing = np.empty((0, ensemble.schema.n_features), "float32")
    assert [len(part) for part in ensemble.runner(policy).decide(nothing, threads=2)] == [0, 0, 0]
    assert len(ensemble.score_full(nothing)) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_rows_with_segments_cut_to_what_the_first_ones_show(dtype):
    ensemble = random_ensemble(11, n_trees=60, dtype=dtype)
    rows = random_rows(3, ensemble, n=40_000)
    assert_every_isa_is_right(ensemble, rows, alpha=0.2)


def test_large_trees_are_walked_among_small_ones():
    rng = np.random.default_rng(0)
    roots = [random_tree(rng, 3, d, leaf_stop=0.02) for d in (3, 11, 4, 10, 11, 2, 12, 5)]
    for dtype in ("float32", "float64"):
        ensemble = ensemble_of(roots, dtype=dtype)
        assert np.diff(ensemble.base_models.trees.leaf_begin).max() > 256
        assert_every_isa_is_right(ensemble, random_rows(1, ensemble, n=900))


def oblivious(rng, n_features, depth, flags=0):
    """A complete tree that asks one question per level."""
    asked = [(int(rng.integers(n_features)), float(rng.normal())) for _ in range(depth)]

    def grow(level):
        if level == depth:
            return None
        return (*asked[level], flags, [], grow(level + 1), grow(level + 1))

    return grow(0)


@pytest.mark.parametrize("flags", [0, NodeFlag.DEFAULT_LEFT])
def test_oblivious_trees(flags):
    rng = np.random.default_rng(1)
    roots = [oblivious(rng, 3, depth, int(flags)) for depth in (1, 2, 3, 6, 8, 6, 4)]
    almost = oblivious(rng, 3, 3)
    feature, threshold, flag, codes, left, right = almost
    roots.append((feature, threshold, flag, codes, left, (*right[:1], 9.0, *right[2:])))
    assert_every_isa_is_right(ensemble_of(roots), random_rows(2, ensemble_of(roots), n=600))


def test_more_thresholds_than_a_byte_counts():
    rng = np.random.default_rng(2)

    def stump():
        left = int(rng.integers(2)) * int(NodeFlag.DEFAULT_LEFT)
        return (int(rng.integers(2)), float(rng.normal()), left, [], None, None)

    ensemble = ensemble_of([stump() for _ in range(1500)], n_features=2, dtype="float64")
    rows = np.concatenate(
        [rng.normal(size=(500, 2)), ensemble.base_models.trees.threshold.reshape(-1, 2)]
    )
    rows[::17, 0], rows[::23, 1] = np.nan, np.inf
    assert_every_isa_is_right(ensemble, rows)


@pytest.mark.parametrize("spread", [1e-30, 1.0, 1e30])
def test_thresholds_in_clusters_and_far_apart(spread):
    # No grid of equal cells serves these: ranks are found by halving.
    cuts = [*np.geomspace(1e-6, 1.0, 60) * spread, -spread, -spread * 7]
    roots = [(0, float(np.float32(c)), 0, [], None, None) for c in cuts]
    ensemble = ensemble_of(roots, n_features=1)
    at = ensemble.base_models.trees.threshold
    rows = np.concatenate([at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, -at)])
    assert_every_isa_is_right(ensemble, rows[:, np.newaxis])


@pytest.mark.parametrize("less_equal", [False, True])
def test_infinite_thresholds(less_equal):
    ends = [np.inf, -np.inf, np.finfo("float32").max, np.finfo("float32").min, 0.0]
    roots = [
        (0, float(t), flags, [], (1, float(t), flags, [], None, None), None)
        for t in ends
        for flags in (0, int(NodeFlag.DEFAULT_LEFT))
    ]
    ensemble = ensemble_of(roots, n_features=2, less_equal=less_equal)
    odd = np.array([*ends, np.nan, 1.0, -1.0, -0.0], dtype=np.float32)
    rows = np.stack(np.meshgrid(odd, odd), axis=-1).reshape(-1, 2)
    assert_every_isa_is_right(ensemble, rows)


@pytest.mark.parametrize("n_codes", [40, 300, 2000])
def test_categories_fit_a_byte_or_are_walked(n_codes):
    rng = np.random.default_rng(3)

    def split():
        codes = np.flatnonzero(rng.random(n_codes) < 0.5).tolist()
        flags = NodeFlag.CATEGORICAL | int(rng.integers(2)) * NodeFlag.IN_SET_LEFT
        flags |= int(rng.integers(2)) * NodeFlag.DEFAULT_LEFT
        below = (1, float(rng.normal()), 0, [], None, None)
        return (0, 0.0, int(flags), codes, below, None)

    ensemble = ensemble_of([split() for _ in range(12)], n_features=2, truncates=True)
    rows = np.stack(
        [
            rng.integers(-3, n_codes + 50, 3000) + 0.25 * rng.integers(0, 3, 3000),
            rng.normal(size=3000),
        ],
        axis=1,
    ).astype(np.float32)
    rows[::11, 0] = np.nan
    assert_every_isa_is_right(ensemble, rows)


@pytest.mark.parametrize("value", [-0.5, 0.0, 3.0, 2.0**24 + 7, np.nan])
@pytest.mark.parametrize("codes", [[], [0], [3], [40]])
def test_categories_that_are_in_no_set(codes, value):
    flags = int(NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT)
    roots = [(0, 0.0, flags, codes, None, None), (1, 0.0, flags, [1], None, None)]
    for dtype in ("float32", "float64"):
        ensemble = ensemble_of(roots, n_features=2, dtype=dtype, truncates=True)
        assert_every_isa_is_right(ensemble, np.full((70, 2), value))


def test_many_categories_are_laid_out_in_no_time():
    # Only the codes in a set are looked at, not all below the highest one.
    rng = np.random.default_rng(0)
    flags = int(NodeFlag.CATEGORICAL | NodeFlag.IN_SET_LEFT)
    few = [sorted(rng.choice(9, 4, replace=False).tolist()) for _ in range(60)]
    roots = [(0, 0.0, flags, [*codes, 2**20], None, None) for codes in few]
    ensemble = ensemble_of(roots, n_features=1)
    rows = np.array([[0.0], [3.0], [2.0**20], [2.0**20 + 1], [8.0], [9.0], [1e6], [5.0]])
    assert_every_isa_is_right(ensemble, rows)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets a register of x86")
def test_a_thread_that_takes_denormals_for_zero_gets_the_same_answers():
    # A threshold of 0 in "x <= 0" is a cut at the smallest number above 0.
    roots = [(0, 0.0, 0, [], None, None), (0, 1e-40, 0, [], None, None)]
    ensemble = ensemble_of(roots, n_features=1)
    rows = np.array([[0.0], [-0.0], [1e-45], [2e-40], [-1e-40]] * 4, dtype=np.float32)
    policy = qwyc.fit_policy(ensemble.scores(rows), alpha=0.0).without_quitting()
    fast = classifier_of(ensemble, policy)
    expected = fast.score_full(rows)
    one = [fast.predict_one(row) for row in rows]
    code = (
        "import ctypes, mmap\n"
        "page = mmap.mmap(-1, 4096, prot=7)\n"
        # stmxcsr [rdi]; or dword [rdi], 0x8040; ldmxcsr [rdi]; ret
        "page.write(bytes.fromhex('0fae1f810f408000000fae17c3'))\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "word = ctypes.c_uint32()\n"
        "ctypes.CFUNCTYPE(None, ctypes.c_void_p)(at)(ctypes.addressof(word))\n"
    )
    found = {}

    def work():
        exec(code, {})
        found["zero"] = bool(np.float32(1e-45) * np.float32(1) == 0)
        again = replace(
            ensemble, base_models=replace(ensemble.base_models)
        )  # laid out anew, in this mode
        found["full"] = again.score_full(rows, threads=1)
        found["one"] = [fast.predict_one(row) for row in rows]

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found["zero"], "the register was not set"
    np.testing.assert_array_equal(found["full"], expected)
    assert found["one"] == one


def test_a_policy_that_never_quits_gives_full_scores():
    ensemble = random_ensemble(8)
    rows = random_rows(8, ensemble)
    policy = qwyc.fit_policy(ensemble.scores(rows), alpha=0.1).without_quitting()
    assert policy.quit == "never"
    positive, steps, score = ensemble.runner(policy).decide(ensemble.rows(rows), threads=1)
    np.testing.assert_array_equal(score, ensemble.score_full(rows))
    np.testing.assert_array_equal(positive, score >= ensemble.threshold)
    assert (steps == ensemble.n_models).all()


# ---- whether quitting pays --------------------------------------------------------------------


def test_full_evaluation_is_chosen_where_it_is_clearly_faster():
    assert Speed(quit=1.0, full=1.1, rows=10).quitting_pays
    assert Speed(quit=1.0, full=0.9, rows=10).quitting_pays  # too close to call
    assert not Speed(quit=1.0, full=0.5, rows=10).quitting_pays


@pytest.mark.parametrize("method", ["auto", "natural"])
@pytest.mark.parametrize("pays", [True, False])
def test_what_is_measured_to_be_faster_is_used(pays, method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)).astype(np.float32)
    model = lightgbm.LGBMClassifier(n_estimators=40, verbose=-1, n_jobs=1)
    model.fit(X[:1000], X[:1000, 0] + X[:1000, 1] > 0)
    measured = Speed(quit=1.0, full=5.0 if pays else 0.5, rows=2000)
    fast = qwyc.optimize(
        model, X[1000:], alpha=0.02, method=method, evaluation=lambda *_: measured, progress=False
    )
    assert fast.evaluation == Evaluation(pays, "measurement")
    decisions = fast.decide(X)
    assert (decisions.steps.mean() < 40) == pays
    assert (fast.policy.quit == "both") == pays
    if pays:
        assert "5.0 times as fast as qwyc in full (one thread, 2,000 rows" in repr(fast)
    else:
        assert decisions.complete.all()
        np.testing.assert_array_equal(decisions.label, model.predict(X))
        assert fast.certificate.negative == fast.certificate.positive == 0
        assert "quitting early would be slower here (1.00 µs a row against 0.50)" in repr(fast)
    given = qwyc.optimize(
        model, X[1000:], alpha=0.02, method=method, costs=np.ones(40), progress=False
    )
    assert given.policy.quit == "both"  # the user's costs count, not time
    assert given.evaluation == Evaluation(True, "default")
    # A promise and its evidence take a line each; without a promise there is one line.
    assert len(repr(fast).splitlines()) == (5 if method == "auto" else 4)


def test_speed_is_measured_on_enough_rows_or_not_at_all():
    ensemble = random_ensemble(4, n_trees=40)
    rows = random_rows(4, ensemble, n=2048)
    policy = qwyc.fit_policy(ensemble.scores(rows), alpha=0.1)
    classifier = classifier_of(ensemble, policy)
    assert measure(classifier, rows[:2047]) is None
    speed = measure(classifier, rows)
    assert speed.quit > 0
    assert speed.full > 0
    assert speed.rows == 2048
