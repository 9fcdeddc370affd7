"""The mutations of `make fuzz` against every reader, for a moment; `make test-all` runs `make fuzz`."""

import pytest

from fuzz.__main__ import case, fuzz
from fuzz.targets import TARGETS


def test_a_case_can_be_made_again():
    assert case("xgboost-json", 3, 7) == case("xgboost-json", 3, 7)
    assert len({case("xgboost-json", 3, number) for number in range(20)}) > 10


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_files_are_refused_or_taken(target):
    count, taken, findings = fuzz(target, seed=1, seconds=1.5)
    assert findings == []
    assert count > 20
    assert taken < count  # some mutations are noticed
