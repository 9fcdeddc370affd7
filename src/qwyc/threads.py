"""How many threads to use."""

from __future__ import annotations

import os

from qwyc.errors import OptionError


def thread_count(threads: int | None) -> int:
    """The number of threads to run on: what was asked for, or every core this process may use."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise OptionError(f"threads must be a whole number of at least 1, or None; got {threads!r}")
    return threads
