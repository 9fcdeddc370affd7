"""The served example at its limit: it refuses what it cannot take, and loses nothing."""

import pytest
from benchmarks.served import overload, sound

pytestmark = pytest.mark.slow


def test_more_requests_than_it_takes():
    seen = overload(seconds=300, connections=32, at_once=4, pause=0.05, each=200)
    assert sound(seen), seen.answers
    assert seen.answers["200"] >= 200
    assert seen.answers["503"] >= 200  # it was at its limit


def test_requests_wait_where_there_is_room():
    seen = overload(seconds=2, connections=16, at_once=16)
    assert sound(seen), seen.answers
    assert set(seen.answers) == {"200"}
