"""Fan's rule in the native engines: trees and lattices decide as the rule does on their scores."""

from dataclasses import replace

import numpy as np
import pytest

import oracle
import qwyc
from forests import classifier_of, ensemble_of, random_ensemble, random_rows, random_tree
from lattices import lattice_rows, random_lattices
from qwyc import _native
from qwyc.model.trees import NodeFlag, Summation

ISAS = _native.available_isas()
QUITS = ("both", "negative", "positive")


def assert_every_isa_is_right(ensemble, rows, *, quit="both", gamma=0.7, bin_width=None):
    """Decisions on all rows of a rule fitted on the first ones, against the rule on their scores. Returns
    the steps, (N,)."""
    scores = ensemble.scores(rows)
    sample = scores.take(
        np.arange(max(1, len(rows) // 3))
    )  # so some bins of other rows are unknown
    policy = qwyc.fit_policy(
        sample,
        rule="fan",
        order="random",
        seed=1,
        gamma=gamma,
        quit=quit,
        bin_width=bin_width,
        threshold=float(np.median(scores.full)),
    )
    known = policy.apply(scores)
    quitter = ensemble.runner(policy).quitter
    as_read = rows.astype(ensemble.schema.dtype)
    for held in (rows.astype(np.float32), rows.astype(np.float64)):
        if held.astype(as_read.dtype).tobytes() != as_read.tobytes():
            continue  # float32 does not hold these numbers
        for isa in ISAS:
            for threads in (1, 4):
                label, steps, score = quitter.decide(held, threads, isa)
                np.testing.assert_array_equal(label, known.label, err_msg=isa)
                np.testing.assert_array_equal(steps, known.steps, err_msg=isa)
                np.testing.assert_array_equal(score, known.score, err_msg=isa)
    return known.steps


def options_of(seed):
    return {
        "quit": QUITS[seed % 3],
        "gamma": [0.0, 0.5, 2.0, np.inf][seed % 4],
        "bin_width": [None, 0.05, 1.0, 1e-7, 1e6][seed % 5],
    }


@pytest.mark.parametrize("seed", range(24))
def test_random_forests_of_every_kind(seed):
    ensemble = random_ensemble(seed, n_trees=17, depth=7)
    assert_every_isa_is_right(ensemble, random_rows(seed, ensemble, n=700), **options_of(seed))


@pytest.mark.parametrize("seed", range(24))
def test_random_lattices(seed):
    ensemble = random_lattices(seed, n_models=15, mean=bool(seed % 2))
    assert_every_isa_is_right(ensemble, lattice_rows(seed, ensemble, n=700), **options_of(seed))


@pytest.mark.parametrize("n", [1, 2, 6, 7, 8, 9, 63, 64, 65, 127, 511, 512, 513, 1025])
def test_any_number_of_rows(n):
    trees = random_ensemble(5, n_trees=30)
    assert_every_isa_is_right(trees, random_rows(n, trees, n=n), bin_width=0.5)
    lattices = random_lattices(5, n_models=30)
    assert_every_isa_is_right(lattices, lattice_rows(n, lattices, n=n), bin_width=0.5)


def test_no_rows():
    for ensemble, rows in (
        (random_ensemble(5), random_rows(5, random_ensemble(5))),
        (random_lattices(5), lattice_rows(5, random_lattices(5))),
    ):
        policy = qwyc.fit_fan_path(ensemble.scores(rows), [1.0], order="natural")[0]
        assert len(qwyc.Cascade(ensemble, policy).decide(rows[:0]).label) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_rows_with_segments_cut_to_what_the_first_ones_show(dtype):
    ensemble = random_ensemble(11, n_trees=60, dtype=dtype, summation=Summation.FLOAT64)
    steps = assert_every_isa_is_right(ensemble, random_rows(3, ensemble, n=40_000))
    assert 1 < steps.mean() < 50
    assert len(np.unique(steps)) > 20


def test_many_rows_of_lattices():
    ensemble = random_lattices(4, n_models=40)
    steps = assert_every_isa_is_right(ensemble, lattice_rows(3, ensemble, n=9000))
    assert 1 < steps.mean() < 35
    assert len(np.unique(steps)) > 10


def test_large_trees_are_walked_among_small_ones():
    rng = np.random.default_rng(0)
    roots = [random_tree(rng, 3, d, leaf_stop=0.02) for d in (3, 11, 4, 10, 11, 2, 12, 5)]
    for dtype in ("float32", "float64"):
        ensemble = ensemble_of(roots, dtype=dtype)
        assert ensemble.base_models.native.n_walked >= 3
        assert_every_isa_is_right(ensemble, random_rows(1, ensemble, n=900), bin_width=0.2)


@pytest.mark.parametrize("n_codes", [40, 2000])
def test_categories_fit_a_byte_or_are_walked(n_codes):
    rng = np.random.default_rng(3)

    def split():
        codes = np.flatnonzero(rng.random(n_codes) < 0.5).tolist()
        flags = NodeFlag.CATEGORICAL | int(rng.integers(2)) * NodeFlag.IN_SET_LEFT
        below = (1, float(rng.normal()), 0, [], None, None)
        return (0, 0.0, int(flags), codes, below, None)

    ensemble = ensemble_of([split() for _ in range(12)], n_features=2, truncates=True)
    rows = np.stack([rng.integers(-3, n_codes + 50, 3000), rng.normal(size=3000)], axis=1)
    rows[::11, 0] = np.nan
    assert_every_isa_is_right(ensemble, rows.astype(np.float32), bin_width=0.1)


@pytest.mark.parametrize("kind", ["boosting", "forest", "lattices"])
def test_a_cascade_decides_as_the_oracle(kind):
    summation = Summation.SHARES if kind == "forest" else Summation.FLOAT32
    if kind == "lattices":
        ensemble = random_lattices(2, mean=True)
        rows, new = lattice_rows(0, ensemble, n=400), lattice_rows(1, ensemble, n=200)
    else:
        ensemble = random_ensemble(2, summation=summation)
        rows, new = random_rows(0, ensemble, n=400), random_rows(1, ensemble, n=200)
    assert ensemble.base_models.average == (kind != "boosting")
    sample, scores = ensemble.scores(rows), ensemble.scores(new)
    width = 0.2 * float(np.std(sample.full))
    middle = float(np.median(sample.full))
    policy = qwyc.fit_policy(
        sample, rule="fan", order="natural", gamma=2.0, bin_width=width, threshold=middle
    )
    positive, steps = oracle.fit_and_apply_fan(
        sample.values,
        sample.base,
        sample.full,
        scores.values,
        scores.full,
        policy.order,
        middle,
        2.0,
        width,
    )
    decided = qwyc.Cascade(ensemble, policy).decide(new)
    np.testing.assert_array_equal(decided.label, positive.astype(int))
    np.testing.assert_array_equal(decided.steps, steps)
    np.testing.assert_array_equal(decided.complete, steps == ensemble.n_models)
    assert 0 < decided.complete.sum() < 200


@pytest.mark.parametrize("make", [(random_ensemble, random_rows), (random_lattices, lattice_rows)])
def test_a_row_of_an_unknown_bin_is_never_tested_again(make):
    ensemble = make[0](3)
    rows = make[1](3, ensemble, n=300)
    scores = ensemble.scores(rows)
    fitted = qwyc.fit_fan_path(scores, [0.0], order="natural")[0]
    place = np.floor((scores.base + scores.values[:, 0]) / fitted.bin_width)
    values, count = np.unique(place, return_counts=True)
    unknown = (
        place == values[count.argmax()]
    )  # the rows of the bin that is left out at the first step
    keep = np.arange(len(fitted.bin)) != count.argmax()
    policy = replace(
        fitted,
        bin_begin=np.concatenate([[0], fitted.bin_begin[1:] - 1]),
        **{name: getattr(fitted, name)[keep] for name in ("bin", "mean", "deviation")},
    )
    later = fitted.apply(scores).steps[unknown]  # where they would quit if the bin were known
    assert (later < ensemble.n_models).any()
    decided = qwyc.Cascade(ensemble, policy).decide(rows)
    assert decided.complete[unknown].all()
    np.testing.assert_array_equal(decided.score[unknown], scores.full[unknown])
    np.testing.assert_array_equal(decided.steps[~unknown], fitted.apply(scores).steps[~unknown])


def test_a_model_of_one_tree_has_no_step_to_quit_at():
    ensemble = random_ensemble(1, n_trees=1)
    rows = random_rows(1, ensemble, n=100)
    policy = qwyc.fit_fan_path(ensemble.scores(rows), [0.0], order="natural")[0]
    decided = qwyc.Cascade(ensemble, policy).decide(rows)
    assert decided.complete.all()
    np.testing.assert_array_equal(decided.score, ensemble.score_full(rows))


def test_other_ways_in_are_refused():
    ensemble = random_ensemble(0)
    scores = ensemble.scores(random_rows(0, ensemble))
    policy = qwyc.fit_fan_path(scores, [1.0], order="natural")[0]
    with pytest.raises(qwyc.OptionError, match=r"got a FanPolicy: run it with qwyc\.Cascade"):
        classifier_of(ensemble, policy)
    with pytest.raises(TypeError):
        _native.OneRow(ensemble.runner(policy).quitter, 0, 1, len, np.ndarray, False, 2**24)
    assert ensemble.runner(policy).one_row([0, 1], len, ensemble.schema) is None
    with pytest.raises(
        qwyc.OptionError, match=r"trees run with a Policy.*or a FanPolicy; got a str"
    ):
        ensemble.runner("natural")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": np.zeros(12, "int32")}, "every base model once"),
        ({"bin_width": 0.0}, "bin_width be positive"),
        ({"bin_begin": np.zeros(12, "int64")}, "one entry more than there are steps"),
        ({"bin_begin": np.arange(13)}, "equal lengths"),
        ({"bin_begin": np.array([1] * 12 + [2])}, "start at 0"),
        ({"bin_begin": np.array([0, 2, 1] + [2] * 10)}, "never fall"),
        ({"upper": np.zeros(1)}, "equal lengths"),
    ],
)
def test_unsound_bins_are_refused(changes, message):
    arguments = {
        "order": np.arange(12, dtype=np.int32),
        "bin_begin": np.array([0] + [2] * 12),
        "bin": np.array([-1, 0]),
        "lower": np.zeros(2),
        "upper": np.ones(2),
        "bin_width": 1.0,
        "threshold": 0.0,
    }
    native = random_ensemble(0).base_models.native
    assert _native.FanQuitter(native, **arguments) is not None
    with pytest.raises(ValueError, match=message):
        _native.FanQuitter(native, **(arguments | changes))
