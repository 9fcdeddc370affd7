"""Labels of groups as numbers, from any container and from parts."""

import numpy as np
import pytest

import qwyc
from qwyc.promise.group_labels import GroupLabels, group_numbers


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64])
def test_integers_are_numbered_in_the_order_in_which_they_appear(dtype):
    labels = np.random.default_rng(0).integers(0, 100, 1000).astype(dtype)
    np.testing.assert_array_equal(group_numbers(labels, 1000), group_numbers(labels.tolist(), 1000))
    assert group_numbers(labels, 1000)[0] == 0
    assert len(group_numbers(labels[:0], 0)) == 0
    for wrong in (labels, labels.reshape(10, 100)):
        with pytest.raises(qwyc.OptionError, match="groups must be"):
            group_numbers(wrong, 999)


def in_parts(labels, sizes):
    collected, begin = GroupLabels(), 0
    for size in sizes:
        part = labels[begin : begin + size]
        distinct = list(dict.fromkeys(part))
        collected.add(np.array([distinct.index(label) for label in part], dtype=int), distinct)
        begin += size
    assert begin == len(labels)
    return collected


def test_labels_that_come_in_parts_are_numbered_as_a_whole():
    labels = np.random.default_rng(1).choice(["a", "b", "c", "d e"], 50).tolist()
    expected = group_numbers(labels, 50)
    for sizes in ([50], [1, 49], [7] * 7 + [1], [0, 20, 0, 30]):
        found = group_numbers(in_parts(labels, sizes), 50)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_the_first_missing_label_is_named():
    labels = ["a"] * 20
    labels[13] = labels[17] = None
    for sizes in ([20], [10, 10], [13, 1, 6]):
        with pytest.raises(qwyc.InputError, match="row 13 has none: None"):
            group_numbers(in_parts(labels, sizes), 20)
