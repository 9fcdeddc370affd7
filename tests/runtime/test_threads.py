"""How many threads are used where nobody says."""

import os

import pytest

from qwyc.errors import OptionError
from qwyc.runtime import threads


@pytest.mark.parametrize(
    ("text", "cores"),
    [("200000 100000\n", 2), ("150000 100000\n", 2), ("10000 100000\n", 1), ("max 100000\n", 4096)],
)
def test_a_quota_counts_in_cores(tmp_path, text, cores):
    (tmp_path / "cpu.max").write_text(text)
    assert threads.cores_of_quota(tmp_path / "cpu.max") == cores


def test_every_core_within_the_quota(tmp_path, monkeypatch):
    here = len(os.sched_getaffinity(0))
    monkeypatch.setattr(threads, "QUOTA", tmp_path / "none")
    assert threads.thread_count(None) == here
    (tmp_path / "one").write_text("100000 100000")
    monkeypatch.setattr(threads, "QUOTA", tmp_path / "one")
    assert threads.thread_count(None) == 1
    assert threads.thread_count(7) == 7
    with pytest.raises(OptionError, match="threads"):
        threads.thread_count(0)
