"""One row at a time: decided and refused as among others, whatever holds it."""

import array
import gc
import pickle
import re
import threading
import weakref

import numpy as np
import pandas as pd
import pytest

import qwyc
from forests import (
    classifier_of,
    random_ensemble,
    random_rows,
    with_inputs,
)
from qwyc.errors import InputError


def classifier(seed=0, n_features=5, **inputs):
    dtype = inputs.get("dtype")
    forest = random_ensemble(seed, n_trees=40, n_features=n_features, dtype=dtype)
    ensemble = with_inputs(forest, **inputs)
    rows = random_rows(seed, ensemble)
    if not ensemble.schema.accepts_missing:
        rows = np.nan_to_num(rows)
    policy = qwyc.fit_policy(ensemble.scores(rows), alpha=0.1)
    return classifier_of(ensemble, policy), rows


@pytest.mark.parametrize("seed", range(8))
def test_one_row_is_decided_as_among_others(seed):
    fast, rows = classifier(seed)
    expected = fast.predict(rows).tolist()
    assert [fast.predict_one(row) for row in rows] == expected
    assert [fast.predict_one(row) for row in rows.astype(np.float64)] == expected
    assert [fast.predict_one(row.tolist()) for row in rows] == expected
    assert [fast.predict_one(tuple(row.tolist())) for row in rows[:5]] == expected[:5]
    assert [fast.predict_one(row) for row in np.asfortranarray(rows)] == expected  # strided


def test_one_row_of_integers_of_another_shape_or_of_something_else():
    fast, rows = classifier()
    whole = np.arange(5)
    assert fast.predict_one(whole) == fast.predict(whole[np.newaxis]).tolist()[0]
    with pytest.raises(InputError, match="4 columns; the model was trained on 5"):
        fast.predict_one(rows[0, :4])
    with pytest.raises(InputError, match=r"ndarray of shape \(1, 5\)"):
        fast.predict_one(rows[:1])
    for other in ("12345", None, {"a": 1.0}, 5.0):
        with pytest.raises(InputError, match=f"got {type(other).__name__}"):
            fast.predict_one(other)
    frame = pd.DataFrame(rows[:2])
    assert fast.predict_one(frame[:1]) == fast.predict(rows[:1]).tolist()[0]
    with pytest.raises(InputError, match=r"got DataFrame of shape \(2, 5\)"):
        fast.predict_one(frame)
    with pytest.raises(InputError, match="must hold numbers"):
        fast.predict_one(["a", 1.0, 2.0, 3.0, 4.0])


def test_one_row_in_other_containers():
    fast, rows = classifier()
    row = rows[0].astype(np.float64)
    row[:] = [0.5, 1.0, 2.0, -1.0, 3.0]
    expected = fast.predict(row[np.newaxis]).tolist()[0]
    assert fast.predict_one(array.array("d", row)) == expected
    assert fast.predict_one(memoryview(row)) == expected
    assert fast.predict_one(range(5)) == fast.predict([list(range(5))]).tolist()[0]
    masked = np.ma.masked_array(rows, mask=np.arange(rows.size).reshape(rows.shape) % 3 == 0)
    assert [fast.predict_one(row) for row in masked] == fast.predict(masked).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_row_of_pythons_own_numbers(dtype):
    fast, _ = classifier(dtype=dtype)
    values = [0.5, -2, 2**24 + 1, 2**53, -(2**53) - 1, 10**400, True, None, np.float32(0.25), 1e300]
    for k in range(len(values)):
        row = [values[(k + j) % len(values)] for j in range(5)]
        try:
            expected = fast.predict([row]).tolist()[0]
        except InputError as error:  # 10**400 is no number for NumPy either
            with pytest.raises(InputError, match=re.escape(str(error))):
                fast.predict_one(row)
        else:
            assert [fast.predict_one(row), fast.predict_one(tuple(row))] == [expected, expected]


def test_one_row_backwards_and_of_many_columns():
    fast, rows = classifier(n_features=300)
    expected = fast.predict(rows).tolist()
    backwards = np.ascontiguousarray(rows[:, ::-1])
    assert [fast.predict_one(row[::-1]) for row in backwards] == expected
    assert [fast.predict_one(row.tolist()) for row in rows] == expected
    with pytest.raises(InputError, match="299 columns"):
        fast.predict_one(rows[0, :299].tolist())


def test_one_row_past_float32_is_refused_where_infinity_is():
    fast, _ = classifier(dtype="float32", accepts_missing=False, accepts_infinity=False)
    with pytest.raises(InputError, match="past float32"):
        fast.predict_one(np.array([1e300, 0, 0, 0, 0]))


def test_one_row_is_refused_as_many_are():
    fast, _ = classifier(accepts_missing=False, accepts_infinity=False)
    plain = np.zeros(5, "float32")
    assert fast.predict_one(plain) == fast.predict(plain[np.newaxis]).tolist()[0]
    for bad in (np.nan, np.inf):
        row = plain.copy()
        row[2] = bad
        for same in (row, row.tolist()):
            with pytest.raises(InputError, match="row 0 of column 2"):
                fast.predict_one(same)


def test_a_value_that_means_missing_means_it_in_one_row_too():
    fast, rows = classifier(missing=-1.0)
    rows = np.where(np.random.default_rng(0).random(rows.shape) < 0.3, -1.0, rows)
    assert [fast.predict_one(row) for row in rows] == fast.predict(rows).tolist()


def test_one_row_from_many_threads_and_after_pickling():
    fast, rows = classifier(3)
    expected = fast.predict(rows).tolist()
    again = pickle.loads(pickle.dumps(fast))
    assert [again.predict_one(row) for row in rows] == expected
    found = [None] * 4

    def work(k):
        found[k] = [fast.predict_one(row) for row in rows]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_a_list_that_another_thread_changes_is_decided_or_refused():
    """Without the GIL its entries may go away at any time; with it between two rows."""
    fast, rows = classifier(3)
    choices = [row.tolist() for row in rows[:8]]
    known = {fast.predict_one(row) for row in choices}
    shared, stop = list(choices[0]), threading.Event()
    found, errors = set(), []

    def change():
        k = 0
        while not stop.is_set():
            k += 1
            shared[:] = [value + 0.0 for value in choices[k % 8]]  # new floats each time
            shared.clear()
            shared.extend(choices[k % 8])

    def ask():
        for _ in range(3000):
            try:
                found.add(fast.predict_one(shared))
            except InputError as error:
                errors.append(str(error))

    changing = threading.Thread(target=change)
    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in (changing, *asking):
        thread.start()
    for thread in asking:
        thread.join()
    stop.set()
    changing.join()
    assert found <= set(fast.ensemble.classes.tolist())
    assert found & known or errors
    assert all("columns" in error or "values" in error for error in errors), errors[:3]


def test_a_classifier_is_freed_at_once_with_what_it_prepared():
    """Services turn the collector off; what replaces a classifier must not add up."""
    fast, rows = classifier()
    fast.predict_one(rows[0])
    fast.predict_one(rows[0].astype(object))
    gone, kept = weakref.ref(fast), weakref.ref(fast.ensemble)
    gc.disable()
    try:
        del fast
        assert gone() is None
        assert kept() is None
    finally:
        gc.enable()


def test_predict_one_outlives_its_classifier():
    fast, rows = classifier()
    expected, one = fast.predict(rows).tolist(), fast.predict_one
    del fast
    assert [one(row) for row in rows] == expected
    assert one(rows[0].astype(object)) == expected[0]
