"""How many threads to use."""

from __future__ import annotations

import os

from qwyc.options import check_count

MOST_THREADS = 4096


def thread_count(threads: int | None) -> int:
    """The number of threads to run on: what was asked for, or every core this process may use."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    return check_count("threads", threads, most=MOST_THREADS)
