"""How much memory optimising takes, known before it starts."""

from __future__ import annotations

import os
from pathlib import Path

from qwyc.errors import CapacityError


def memory_needed(n_rows: int, n_models: int, *, score_bytes: int = 4) -> int:
    """Bytes that scoring and fitting hold at most: the score matrix (float32 for trees), a copy of at most
    half of it, and about 100 bytes a row."""
    return n_rows * n_models * score_bytes * 3 // 2 + 100 * n_rows


def memory_to_fit_path(n_rows: int, n_models: int) -> int:
    """Bytes that fitting a path takes at most beside the score matrix: running sums at every 16th step,
    and 450 bytes a row (native/fit/stopping.cpp)."""
    return n_rows * (8 * -(-n_models // 16) + 450)


def memory_available() -> int | None:
    """Bytes that this process may still take; None where the system does not say."""
    limits = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit.isdigit():
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            limits.append(int(limit) - used)
    except (OSError, ValueError):
        pass
    if not limits and hasattr(os, "sysconf"):
        try:
            limits.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (OSError, ValueError):
            return None
    return min(limits) if limits else None


def check_capacity(n_rows: int, n_models: int, *, score_bytes: int = 4) -> None:
    """Raise, before any work is done, where optimising would not fit into memory."""
    needed = memory_needed(n_rows, n_models, score_bytes=score_bytes)
    available = memory_available()
    if available is None or needed <= 0.9 * available:
        return
    fits = int(n_rows * 0.8 * available / needed)
    raise CapacityError(
        f"optimising {n_models:,} base models on {n_rows:,} rows needs {needed / 1e9:.1f} GB of memory; "
        f"{available / 1e9:.1f} GB are available. Pass max_rows={fits} to draw that "
        "many rows at random (by seed), or fewer rows yourself."
    )


def check_path_capacity(n_rows: int, n_models: int, *, needed: int | None = None) -> None:
    """Raise, before any work is done, where fitting a path would not fit into memory. `needed` are the
    bytes that it takes, where they are not those of two classes."""
    if needed is None:
        needed = memory_to_fit_path(n_rows, n_models)
    available = memory_available()
    if available is None or needed <= 0.9 * available:
        return
    raise CapacityError(
        f"fitting a path of {n_models:,} base models on {n_rows:,} rows needs {needed / 1e9:.1f} GB of "
        f"memory beside the scores; {available / 1e9:.1f} GB are available. Fit on "
        f"{int(n_rows * 0.8 * available / needed):,} rows: more than 20,000 hardly help."
    )
