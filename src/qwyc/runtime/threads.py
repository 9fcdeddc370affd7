"""How many threads to use."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from qwyc.runtime.arguments import check_count

MOST_THREADS = 4096
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds in a period, and the period


def thread_count(threads: int | None) -> int:
    """The number of threads to run on: what the caller gives, or every core this process may use."""
    if threads is None:
        may_use = (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        )
        return min(may_use or 1, cores_of_quota(QUOTA))
    return check_count("threads", threads, most=MOST_THREADS)


@cache
def cores_of_quota(path: Path) -> int:
    """Cores that a container's quota is worth, rounded up; MOST_THREADS where there is none."""
    try:
        quota, period = path.read_text().split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
        return MOST_THREADS
