"""Lattices as base models: the native core against the oracle, bit for bit, in every instruction set."""

import copy
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import qwyc
from forests import classifier_of
from lattices import lattice_rows, random_lattices
from oracle import lattices
from qwyc import _native
from qwyc.lattice import Lattice
from qwyc.lattice import ensemble as make_ensemble
from qwyc.model.base_models import BaseModels, Runner
from qwyc.model.lattices.models import Interpolation, LatticeModels

ISAS = _native.available_isas()


def assert_every_isa_is_right(ensemble, rows, *, alpha=0.1, quit="both"):
    """Scores, full scores, bounds and early decisions, against the oracle."""
    models, native = ensemble.base_models, ensemble.base_models.native
    as_read = rows.astype(ensemble.schema.dtype)
    values = lattices.lattice_scores(models, as_read)  # (N, T)
    full = lattices.lattice_full_score(models, values)
    base = lattices.base(models)
    assert native.base == models.base == base
    assert native.total == lattices.total(models)
    for ours, theirs in zip(native.bounds(), lattices.bounds(models), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    policy = qwyc.fit_policy(ensemble.scores(rows), alpha=alpha, quit=quit)
    expected = oracle.apply_policy(
        values, base, full, policy.order, policy.lower, policy.upper, policy.threshold
    )
    quitter = ensemble.runner(policy).quitter
    for isa in ISAS:
        for held in (rows.astype(np.float32), rows.astype(np.float64)):
            if held.astype(as_read.dtype).tobytes() != as_read.tobytes():
                continue  # float32 does not hold these numbers
            ours, ours_full = native.score_matrix(held, 1, isa)
            assert ours.dtype == ensemble.schema.dtype
            np.testing.assert_array_equal(ours.T, values, err_msg=isa)
            np.testing.assert_array_equal(ours_full, full, err_msg=isa)
            np.testing.assert_array_equal(native.score_full(held, 2, isa), full, err_msg=isa)
            for theirs, mine in zip(expected, quitter.decide(held, 2, isa), strict=True):
                np.testing.assert_array_equal(mine, theirs, err_msg=isa)


@pytest.mark.parametrize("kind", [*Interpolation, None])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(4))
def test_random_ensembles(seed, dtype, kind):
    ensemble = random_lattices(seed, dtype=dtype, kind=kind)
    assert_every_isa_is_right(ensemble, lattice_rows(seed, ensemble, n=70))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 150),
    n_models=st.integers(1, 20),
    most_inputs=st.integers(1, 8),
    most_size=st.integers(2, 5),
    quit=st.sampled_from(["both", "negative", "positive"]),
)
def test_ensembles_of_any_shape(seed, n, n_models, most_inputs, most_size, quit):
    inputs = min(most_inputs, 5) if most_size > 3 else most_inputs
    ensemble = random_lattices(
        seed, n_models=n_models, most_inputs=inputs, most_size=most_size, dtype="float32"
    )
    assert_every_isa_is_right(ensemble, lattice_rows(seed, ensemble, n=n), quit=quit)


@pytest.mark.parametrize("kind", [Interpolation.HYPERCUBE, Interpolation.SIMPLEX])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 9, 13])
def test_lattices_of_many_inputs(d, kind):
    ensemble = random_lattices(
        d, n_models=3, n_features=6, most_inputs=1, most_size=2, dtype="float32", kind=kind
    )
    rng, arrays = np.random.default_rng(d), ensemble.base_models.arrays
    begins = np.arange(4, dtype=np.int64)
    wide = replace(
        arrays,
        input_begin=begins * d,
        input=rng.integers(0, arrays.n_calibrators, 3 * d).astype(np.int32),
        size=np.full(3 * d, 2, np.int32),
        vertex_begin=begins * 2**d,
        vertex=rng.normal(size=3 * 2**d).astype(np.float32),
    )
    ensemble = replace(ensemble, base_models=replace(ensemble.base_models, arrays=wide))
    assert_every_isa_is_right(ensemble, lattice_rows(d, ensemble, n=40))


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_exact_in_any_order(seed):
    ensemble = random_lattices(seed, n_models=60)
    rows = lattice_rows(seed, ensemble, n=200)
    scores, base = ensemble.scores(rows), ensemble.base_models.base
    values, rng = scores.values.astype(np.float64), np.random.default_rng(seed)
    for _ in range(3):
        order = rng.permutation(60)
        running = base + np.cumsum(values[:, order], axis=1)
        np.testing.assert_array_equal(running[:, -1], scores.full)
    decisions = classifier_of(ensemble, qwyc.fit_policy(scores, alpha=0.0)).decide(rows)
    complete = decisions.complete
    np.testing.assert_array_equal(decisions.score[complete], scores.full[complete])


def test_one_row_is_decided_like_many():
    for seed in range(6):
        ensemble = random_lattices(seed)
        rows = lattice_rows(seed, ensemble, n=120)
        fast = classifier_of(ensemble, qwyc.fit_policy(ensemble.scores(rows), alpha=0.1))
        expected = fast.predict(rows).tolist()
        assert [fast.predict_one(row) for row in rows] == expected
        assert [fast.predict_one(row.astype(np.float64)) for row in rows] == expected
        assert [fast.predict_one(row.tolist()) for row in rows] == expected
        assert [fast.predict_one(tuple(row.tolist())) for row in rows] == expected
        with pytest.raises(qwyc.InputError):
            fast.predict_one(rows[0][:-1])


def test_it_has_what_the_interface_asks_for():
    ensemble = random_lattices(0)
    models = ensemble.base_models
    policy = qwyc.fit_policy(ensemble.scores(lattice_rows(0, ensemble)), alpha=0.1)
    for protocol, thing in ((BaseModels, models), (Runner, models.runner(policy))):
        wanted = [name for name in vars(protocol) if not name.startswith("_")]
        assert wanted
        assert not [name for name in wanted if not hasattr(thing, name)]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Interpolation.HYPERCUBE, "7 lattices"),
        (Interpolation.SIMPLEX, "7 lattices"),
        (Interpolation.LINEAR, "7 calibrated features"),
    ],
)
def test_it_says_what_it_is(kind, words):
    models = random_lattices(0, n_models=7, kind=kind).base_models
    assert models.description == words
    facts, text = models.layout()
    assert facts[kind.name.lower()] == 7
    assert facts["calibrators"] == models.arrays.n_calibrators
    tables = 0 if kind == Interpolation.LINEAR else len(models.arrays.vertex)
    assert facts["vertices"] == tables
    assert f"{tables:,} vertices" in text


def test_mixed_ensembles_say_so():
    models = random_lattices(1, n_models=30).base_models
    assert models.description == "30 lattices and linear terms"
    assert models.score_bytes == np.dtype(models.arrays.dtype).itemsize


def test_long_work_is_done_in_parts(monkeypatch):
    ensemble = random_lattices(3)
    rows = lattice_rows(3, ensemble, n=500)
    whole, done = ensemble.scores(rows), []
    policy = qwyc.fit_policy(whole, alpha=0.1)
    decided = ensemble.runner(policy).decide(rows)
    monkeypatch.setattr("qwyc.model.native.BLOCK", 12 * 64)
    parts = ensemble.scores(rows, report=done.append)
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.full, whole.full)
    assert done == [*range(12 * 64, 12 * 500, 12 * 64), 12 * 500]
    np.testing.assert_array_equal(ensemble.score_full(rows), whole.full)
    for n in (0, 1, 64, 65, 500):
        for again, before in zip(ensemble.runner(policy).decide(rows[:n]), decided, strict=True):
            np.testing.assert_array_equal(again, before[:n])


def test_parts_are_smaller_where_lattices_are_larger():
    small = random_lattices(0, n_models=3, most_inputs=2, most_size=2).base_models
    assert small.rows_at_once == 2**24 // 3
    large = [Lattice(list(range(13)), np.zeros(2**13)) for _ in range(500)]
    assert make_ensemble(large).base_models.rows_at_once == 2**24 // (500 * 2**13 // 256)


def test_no_rows_at_all():
    ensemble = random_lattices(0)
    none = np.empty((0, 5), ensemble.schema.dtype)
    assert ensemble.score_full(none).shape == (0,)
    assert ensemble.scores(none).values.shape == (0, 12)


def test_copies_are_the_same():
    ensemble = random_lattices(5)
    rows = lattice_rows(5, ensemble)
    for again in (pickle.loads(pickle.dumps(ensemble)), copy.deepcopy(ensemble)):
        assert again.digest == ensemble.digest
        np.testing.assert_array_equal(again.score_full(rows), ensemble.score_full(rows))


def entry(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


UNSOUND = {
    "calibrator_kind": [entry(0, 2), lambda a: a[:-1]],
    "calibrator_feature": [entry(0, -1), entry(0, 5)],
    "point_begin": [entry(1, 2**60), entry(0, 1), entry(-1, 0), lambda a: a[:-1]],
    "point": [entry(0, np.nan), lambda a: a[:-1], lambda a: a[::-1].copy()],
    "output": [entry(0, np.inf), lambda a: a[:-1]],
    "has_missing": [entry(0, 2), lambda a: a[:0]],
    "missing_value": [lambda a: a[:-1]],
    "missing_output": [entry(0, np.nan), lambda a: a[:-1]],
    "other_output": [entry(0, np.inf), lambda a: a[:-1]],
    "interpolation": [entry(0, 3), lambda a: a[:0]],
    "weight": [entry(0, np.nan), entry(0, 1e308), lambda a: a[:-1]],
    "input_begin": [entry(1, 2**60), entry(1, 0), entry(1, -1)],
    "input": [entry(0, -1), entry(0, 10**6), lambda a: a[:-1]],
    "size": [entry(0, 1), entry(0, 2**30), entry(0, -2), lambda a: a[:-1]],
    "vertex_begin": [entry(1, 2**60), entry(1, 0)],
    "vertex": [entry(0, np.nan), entry(0, np.inf), lambda a: a[:-1]],
}


def test_every_array_has_an_unsound_one():
    assert set(UNSOUND) == set(LatticeModels.tensors(random_lattices(0).base_models))


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name in UNSOUND for change in UNSOUND[name]]
)
def test_arrays_that_are_not_sound_are_refused(name, change):
    models = random_lattices(2, dtype="float64", kind=Interpolation.HYPERCUBE).base_models
    arrays = replace(models.arrays, **{name: change(getattr(models.arrays, name))})
    with pytest.raises(qwyc.ModelError, match="the model's lattices are not valid"):
        _ = replace(models, arrays=arrays).native


def test_a_base_that_is_not_finite_is_refused():
    models = random_lattices(2).base_models
    for start in (np.nan, np.inf):
        with pytest.raises(qwyc.ModelError, match=re.escape("not valid")):
            _ = replace(models, start=start).native


def test_costs_count_what_a_base_model_needs():
    ensemble = random_lattices(4, dtype="float32")
    rows = lattice_rows(4, ensemble)
    for how in ("size", "measured"):
        costs = ensemble.costs(rows, how)
        own = getattr(costs, "own", costs)
        assert own.shape == (12,)
        assert (own > 0).all()
    with pytest.raises(qwyc.OptionError, match="costs must be one of"):
        ensemble.costs(rows, "weight")
    with pytest.raises(qwyc.InputError, match="no rows"):
        ensemble.costs(rows[:0], "size")
