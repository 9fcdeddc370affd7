"""Processor time of this process and of all processes under it, as Linux counts it in /proc."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

Times = Mapping[tuple[int, int], int]  # (process, when it was started) -> clock ticks


def cpu_times() -> Times:
    """User and system time so far of this process and of every process under it."""
    parents: dict[int, int] = {}
    ticks: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # What follows the name, which may hold spaces: state, parent, ...; see proc(5).
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        ticks[pid] = int(fields[19]), int(fields[11]) + int(fields[12])
    root = os.getpid()
    return {
        (pid, started): used
        for pid, (started, used) in ticks.items()
        if _is_under(pid, root, parents)
    }


def seconds_between(before: Times, after: Times) -> float:
    """Processor time between two looks. A process that ended in between is left out: engines keep their
    workers for the next job."""
    used = sum(ticks - before.get(process, 0) for process, ticks in after.items())
    return used / os.sysconf("SC_CLK_TCK")


def _is_under(pid: int, root: int, parents: Mapping[int, int]) -> bool:
    while pid > 1 and pid != root:
        pid = parents.get(pid, 0)
    return pid == root
