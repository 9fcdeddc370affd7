"""NumPy arrays of floats, which one native call decides: as the long way does, whatever their layout."""

import copy
import gc
import pickle
import threading
import warnings
import weakref
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import qwyc
from forests import random_ensemble, random_rows, with_inputs
from lattices import random_lattices
from layouts import KINDS, LAYOUTS, finite, long_way, of_lattices, quitting
from qwyc.classifier import Classifier
from qwyc.errors import InputError, OptionError
from qwyc.model import native
from qwyc.policy.decisions import Decisions

SIZES = [0, 1, 2, 4, 5, 8, 63, 300]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def assert_same(decisions, expected):
    assert type(decisions) is Decisions
    assert list(vars(decisions)) == list(vars(expected)) == list(Decisions.__dataclass_fields__)
    assert decisions.reason is expected.reason is None  # only unseen="flag" gives reasons
    for name in ("label", "steps", "score", "complete"):
        one, other = getattr(decisions, name), getattr(expected, name)
        assert type(one) is type(other) is np.ndarray
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
        assert one.flags.carray  # writeable, aligned, in C order


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_layout_and_size(kind, dtype, layout):
    arrange, _ = LAYOUTS[layout]
    for seed in range(2):  # models of either dtype
        fast, rows = KINDS[kind](seed, dtype=["float32", "float64"][seed])
        rows = rows.astype(dtype)
        for n in SIZES:
            if n == 0 and layout == "list":
                continue  # without columns
            some = np.ascontiguousarray(rows[:n])
            X, expected = arrange(some), long_way(fast, some)
            for threads in (None, 1, 3):
                assert_same(fast.decide(X, threads=threads), expected)
                assert fast.predict(X, threads=threads).tobytes() == expected.label.tobytes()
            full = fast.score_full(X)
            assert full.tobytes() == fast.score_full(some).tobytes()
            if layout not in ("list",):
                np.testing.assert_array_equal(np.asarray(X), some)  # X is as it was


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_many_blocks(layout):
    arrange, _ = LAYOUTS[layout]
    fast, rows = quitting(3, n_features=67)
    rows = np.tile(rows, (40, 1))[:9001]
    X, expected = arrange(rows), long_way(fast, rows)
    for threads in (1, 2, 5):
        assert_same(fast.decide(X, threads=threads), expected)
        assert (
            fast.score_full(X, threads=threads).tobytes()
            == fast.score_full(rows, threads=1).tobytes()
        )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["trees", "finite"])
def test_which_arrays_are_read_where_they_lie(kind, layout):
    arrange, is_read = LAYOUTS[layout]
    fast, rows = KINDS[kind]()
    X = arrange(rows.astype(fast.ensemble.schema.dtype))
    seen = fast.ensemble.rows_to_decide(X)
    assert np.may_share_memory(seen, X) == is_read
    assert fast.ensemble.rows(X).flags.c_contiguous


def test_pandas_frames_are_read_where_they_lie():
    pd = pytest.importorskip("pandas")
    fast, rows = quitting(1)
    frame = pd.DataFrame({str(j): column for j, column in enumerate(rows.T)}).copy()
    assert not fast.ensemble.rows_to_decide(frame).flags.c_contiguous
    assert_same(fast.decide(frame), long_way(fast, rows))


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "int8", "int64", "uint16", "bool", "O"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_dtypes(kind, dtype):
    fast, rows = KINDS[kind]()
    whole = np.nan_to_num(rows, posinf=3, neginf=-3).clip(-3, 70)
    X = whole.astype(dtype)
    converted = X.astype(np.float64).astype(fast.ensemble.schema.dtype)
    for n in SIZES:
        assert_same(fast.decide(X[:n]), long_way(fast, converted[:n]))
        assert_same(fast.decide(np.asfortranarray(X)[:n]), long_way(fast, converted[:n]))


def message(call):
    """The kind and the text of the error that a call raises."""
    with pytest.raises((InputError, OptionError)) as caught:
        call()
    return type(caught.value), str(caught.value)


BAD_ROWS = [
    np.zeros(5),
    np.zeros((2, 4)),
    np.zeros((2, 6)),
    np.zeros((1, 1, 5)),
    np.zeros((2, 5), complex),
    np.array(3.0),
    np.array([["a"] * 5]),
    None,
    "rows",
]


@pytest.mark.parametrize("X", BAD_ROWS, ids=repr)
def test_rows_that_do_not_fit_are_refused_as_ever(X):
    fast, _ = quitting()
    expected = message(lambda: long_way(fast, X))
    assert message(lambda: fast.predict(X)) == expected
    assert message(lambda: fast.decide(X)) == expected


@pytest.mark.parametrize("threads", [0, -1, 4097, 10**30, 2.0, True, "2", [1]])
def test_threads_that_are_no_number_are_refused_as_ever(threads):
    fast, rows = quitting()
    for n in (1, 300):
        expected = message(lambda n=n: long_way(fast, rows[:n], threads))
        assert "threads" in expected[1]
        assert message(lambda n=n: fast.predict(rows[:n], threads=threads)) == expected
        assert message(lambda n=n: fast.decide(rows[:n], threads=threads)) == expected


def test_threads_of_numpy_and_the_most_there_may_be():
    fast, rows = quitting()
    for threads in (np.int64(2), 4096):
        assert_same(fast.decide(rows, threads=threads), long_way(fast, rows))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("layout", ["C", "Fortran", "part of wider rows"])
def test_numbers_that_are_refused(value, layout):
    fast, rows = finite(dtype="float32")
    for n, row in ((1, 0), (4, 3), (5, 4), (300, 299)):
        X = rows[:n].astype(np.float64)
        X[row, 4] = value
        X = LAYOUTS[layout][0](X)
        expected = message(lambda X=X: long_way(fast, X))
        assert f"row {row}" in expected[1]
        assert message(lambda X=X: fast.predict(X)) == expected
        assert message(lambda X=X: fast.decide(X)) == expected


def test_missing_values_that_only_one_column_must_not_have():
    fast, rows = quitting()
    fast = replace(fast, ensemble=with_inputs(fast.ensemble, must_have=(2,)))
    rows = rows.copy()
    rows[:, 2] = 1.0
    assert np.isnan(rows).any()
    assert_same(fast.decide(rows), long_way(fast, rows))
    rows[3, 2] = np.nan
    assert message(lambda: fast.predict(rows)) == message(lambda: long_way(fast, rows))


def test_numbers_that_stand_for_something_else():
    fast, rows = quitting()
    rows = rows.copy()
    rows[::3, 1] = 0.5
    coded = replace(fast, ensemble=with_inputs(fast.ensemble, missing=0.5))
    expected = fast.predict(np.where(rows == 0.5, np.nan, rows))
    assert coded.predict(rows).tolist() == expected.tolist()
    assert coded.predict(np.asfortranarray(rows)).tolist() == expected.tolist()
    assert coded._plain_arrays is None


def test_a_subclass_that_decides_itself():
    fast, rows = quitting()

    class Contrary(Classifier):
        def decide(self, X, *, threads=None):
            decisions = super().decide(X, threads=threads)
            return replace(decisions, label=1 - decisions.label)

    contrary = Contrary(fast.ensemble, fast.policy, fast.certificate)
    assert contrary.predict(rows).tolist() == (1 - fast.predict(rows)).tolist()

    class Plain(Classifier):
        pass

    assert Plain(fast.ensemble, fast.policy, fast.certificate).predict(rows).tolist() == (
        fast.predict(rows).tolist()
    )


def test_a_transform_is_applied():
    fast, rows = quitting()
    piped = replace(fast, ensemble=replace(fast.ensemble, transform=lambda X: -X))
    assert piped.predict(rows).tolist() == fast.predict(-rows).tolist()


def test_decisions_are_frozen_and_can_be_sent():
    fast, rows = quitting()
    decisions = fast.decide(rows[:3])
    with pytest.raises(FrozenInstanceError):
        decisions.label = None
    assert_same(pickle.loads(pickle.dumps(decisions)), decisions)
    assert repr(decisions) == repr(long_way(fast, rows[:3]))
    assert fast.decide(rows[:3]).label is not decisions.label


def test_a_classifier_can_be_copied_and_sent_after_use():
    fast, rows = quitting()
    expected = fast.predict(rows).tolist()
    for other in (pickle.loads(pickle.dumps(fast)), copy.copy(fast), copy.deepcopy(fast)):
        assert other.predict(rows).tolist() == expected


def test_a_classifier_that_is_no_longer_used_goes():
    fast, rows = quitting()
    fast = replace(fast, ensemble=replace(fast.ensemble, classes=np.array([0, "a"], object)))
    assert fast.predict(rows[:1]).shape == (1,)
    gone = weakref.ref(fast), weakref.ref(fast.ensemble)
    del fast
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_many_threads_at_once():
    fast, rows = quitting()
    expected, wrong = fast.predict(rows).tolist(), []

    def call(begin):
        for i in range(begin, 300, 3):
            for n in (1, 3, 7):
                if fast.predict(rows[i : i + n]).tolist() != expected[i : i + n]:
                    wrong.append((i, n))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_lattices_that_take_long_are_done_in_parts(monkeypatch):
    monkeypatch.setattr(native, "BLOCK", 15 * 64)
    fast, rows = of_lattices(1)
    assert fast.runner.rows_at_once <= 64
    for X in (rows, np.asfortranarray(rows)):
        expected = fast.policy.apply(fast.ensemble.scores(rows))
        assert fast.decide(X).steps.tolist() == expected.steps.tolist()
        assert fast.predict(X).tolist() == expected.label.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [random_ensemble, random_lattices])
def test_fans_rule_in_a_cascade(make, layout):
    ensemble = make(5)
    rows = random_rows(5, ensemble)
    scores = ensemble.scores(rows)
    cascade = qwyc.Cascade(ensemble, qwyc.fit_policy(scores, rule="fan", gamma=0.7, order="random"))
    for n in SIZES[1:]:
        some = np.ascontiguousarray(rows[:n])
        X, expected = LAYOUTS[layout][0](some), ensemble.decide(some, cascade._runner)
        assert_same(cascade.decide(X), expected)
        assert cascade.predict(X).tolist() == expected.label.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_monitor_checks_rows_of_every_layout(layout):
    fast, rows = quitting(2)
    here, there = qwyc.Monitor(fast, rate=0.5), qwyc.Monitor(fast, rate=0.5)
    X = LAYOUTS[layout][0](rows)
    for n in (1, 5, 250):
        assert_same(here.decide(X[:n]), long_way(fast, rows[:n]))
        there.decide(rows[:n])
    assert here.rows_checked == there.rows_checked > 50
    assert here.counts == there.counts
