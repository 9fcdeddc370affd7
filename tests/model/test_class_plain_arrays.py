"""NumPy arrays of K classes in one native call: the same decisions as the long way, for any labels."""

from dataclasses import replace

import numpy as np
import pytest

import qwyc
from many_classes import class_ensemble, rows_of
from qwyc import _native
from qwyc.model.native import plain_arrays

CLASSES = {
    "int64": np.array([5, 3, 9, 7, 1, 0]),
    "int8": np.array([5, 3, 9, 7, 1, 0], dtype=np.int8),
    "bytes": np.array([5, 3, 9, 7, 1, 0], dtype="S3"),
    "text": np.array(["a", "bc", "def", "g", "h", "i"]),
    "objects": np.array(["a", "bc", "def", 4, None, 6.5], dtype=object),
}


def cascade(classes):
    ensemble = replace(class_ensemble(6, 30), classes=classes)
    policy = qwyc.fit_path(ensemble.scores(rows_of(3_000)), order="natural")[15]
    return ensemble, ensemble.runner(policy)


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_labels_of_any_type(classes):
    ensemble, runner = cascade(classes)
    plain = plain_arrays(runner, ensemble)
    assert type(plain) is _native.ClassPlainArrays
    rows = rows_of(700)
    expected = ensemble.decide(rows, runner)
    assert len({str(label) for label in expected.label}) > 3
    for array in (rows, rows.astype(np.float64), np.asfortranarray(rows)):
        for n in (1, 3, 700):
            found = plain.decide(array[:n], None)
            for name in ("label", "steps", "score", "complete"):
                of_plain, of_long = getattr(found, name), getattr(expected, name)[:n]
                assert of_plain.dtype == of_long.dtype
                np.testing.assert_array_equal(of_plain, of_long)
            np.testing.assert_array_equal(plain.predict(array[:n], 2), expected.label[:n])


def test_what_is_not_plain_goes_the_long_way():
    ensemble, runner = cascade(CLASSES["int64"])
    plain = plain_arrays(runner, ensemble)
    assert plain is not None
    rows = rows_of(20)
    others = (rows[:0], rows[:, 1:], rows[0], rows.tolist(), rows.astype(np.int64), rows[::-1])
    assert [plain.predict(other, None) for other in others] == [None] * len(others)
    assert plain.predict(rows, 0) is None
    assert plain.predict(rows, None) is not None
