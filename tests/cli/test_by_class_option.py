"""The values of --by-class, for labels of any text."""

import pytest

from qwyc.cli.options import parse_by_class
from qwyc.errors import OptionError

LABELS = ["plain", "with,comma", "a=b", ",odd", "two, or, three"]


@pytest.mark.parametrize("label", LABELS)
def test_labels_may_hold_commas_and_equals_signs(label):
    assert parse_by_class([f"{label}=0.05"], LABELS) == {label: 0.05}
    both = {label: 0.05} | {"plain": 0.05}
    assert parse_by_class([f"{label}=0.05"] + ["plain=0.05"] * (len(both) - 1), LABELS) == both
    if label != "plain":
        assert parse_by_class([f"plain=0.05,{label}=0.05"], LABELS) == both


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("with", "must be a label and a share, such as 1=0.01; got 'with'"),
        ("plain=0.1,with", "got 'with'"),
        ("plain=0.1,", "got ''"),
        ("plain,plain=0.1", "names 'plain,plain'; the classes are plain, "),
        ("plain=x", "got 'plain=x'"),
    ],
)
def test_what_is_no_pair_is_named(text, said):
    with pytest.raises(OptionError) as caught:
        parse_by_class([text], LABELS)
    assert said in str(caught.value)
