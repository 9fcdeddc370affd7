"""Labels that native code writes: of the dtype of the classes, whatever it is."""

import gc
import sys
from dataclasses import replace

import numpy as np
import pytest

from layouts import long_way, quitting

CLASSES = [
    np.array([False, True]),
    np.array([-1, 1], np.int8),
    np.array([2, 7], np.uint16),
    np.array([0, 1], np.int32),
    np.array([1, 0]),
    np.array([0.5, 1.5], np.float16),
    np.array(["no", "yes"]),
    np.array(["yes", "no", "perhaps"])[::2],
    np.array([b"negative", b"positive"]),
    np.array([1, 2], ">i4"),
    np.array(["no", 1], object),
    np.array([None, ("a", 2)], object),
    np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
    np.array([1j, 2]),
]


@pytest.mark.parametrize("classes", CLASSES, ids=lambda c: f"{c.dtype}-{c[0]!r}")
def test_labels_of_every_dtype(classes):
    fast, rows = quitting()
    fast = replace(fast, ensemble=replace(fast.ensemble, classes=classes))
    for n in (0, 1, 5, 300):
        expected = long_way(fast, rows[:n])
        label = fast.predict(rows[:n])
        assert type(label) is np.ndarray
        assert label.dtype == expected.label.dtype == classes.dtype
        assert label.tolist() == expected.label.tolist()
        assert fast.decide(rows[:n]).label.tolist() == expected.label.tolist()
    if classes.dtype == object:
        assert all(any(one is known for known in classes) for one in label)


def test_references_to_labels_are_counted():
    fast, rows = quitting()
    negative, positive = object(), object()
    classes = np.array([negative, positive], object)
    fast = replace(fast, ensemble=replace(fast.ensemble, classes=classes))
    fast.predict(rows)
    before = sys.getrefcount(negative), sys.getrefcount(positive)
    label = fast.predict(rows)
    found = [sum(one is known for one in label) for known in (negative, positive)]
    assert sum(found) == len(rows) > max(found)
    during = sys.getrefcount(negative), sys.getrefcount(positive)
    assert [b - a for a, b in zip(before, during, strict=True)] == found
    del label
    assert (sys.getrefcount(negative), sys.getrefcount(positive)) == before


def test_labels_are_kept_alive():
    fast, rows = quitting()
    classes = np.array([str(10**9 + i) for i in range(2)], object)  # nobody else holds these
    fast = replace(fast, ensemble=replace(fast.ensemble, classes=classes))
    expected = fast.predict(rows).tolist()
    classes[:] = None
    gc.collect()
    assert set(expected) == {"1000000000", "1000000001"}
    assert fast.predict(rows).tolist() == expected
