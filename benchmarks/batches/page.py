"""The result as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

AFTER, BEFORE = "after", "before"
WAYS = ("quitting", "full")


@dataclass(frozen=True)
class Time:
    """Microseconds per row of one installation, one way and one number of rows per call."""

    median: float
    least: float
    blocks: int  # of calls that were timed


@dataclass
class Result:
    """What a case showed."""

    name: str
    title: str
    n_models: int
    mean_models: float  # base models per row when quitting
    differ: float  # share of rows that quitting decides differently from the full ensemble
    test_rows: int
    times: dict[str, dict[str, Time]] = field(
        default_factory=dict
    )  # by size, "before quitting" ...


def time_of(seconds: Sequence[float], rows: int) -> Time:
    """From the seconds of blocks of calls with so many rows."""
    each = np.array(seconds) / rows * 1e6
    return Time(float(np.median(each)), float(each.min()), len(each))


def size_name(size: int | str) -> str:
    """ "1,024", or "1, predict_one"."""
    return f"{size:,}" if isinstance(size, int) else f"1, {size}"


def markdown(result: Result) -> str:
    """A heading, a table of medians, and what the columns mean."""
    compared = any(name.startswith(BEFORE) for found in result.times.values() for name in found)
    titles = ["rows per call"]
    for way in WAYS:
        titles += [f"{way}, before", "after", "times as fast"] if compared else [way]
    titles.append("full / quitting")
    lines = [
        f"## {result.title}",
        "",
        f"{result.mean_models:.1f} of {result.n_models:,} base models per row when quitting; "
        f"{result.differ:.2%} of {result.test_rows:,} held-out rows are decided differently.",
        "",
        f"| {' | '.join(titles)} |",
        "| " + " | ".join(["---:"] * len(titles)) + " |",
    ]
    lines += [
        f"| {' | '.join(cells(size, times, compared))} |" for size, times in result.times.items()
    ]
    return "\n".join([*lines, ""])


def cells(size: str, times: Mapping[str, Time], compared: bool) -> list[str]:
    """One line of the table."""
    found = [size]
    for way in WAYS:
        after = times[f"{AFTER} {way}"]
        if compared:
            before = times[f"{BEFORE} {way}"]
            ratio = f"{before.median / after.median:.2f} ({before.least / after.least:.2f})"
            found += [f"{before.median:.3g}", f"{after.median:.3g}", ratio]
        else:
            found.append(f"{after.median:.3g}")
    quitting, full = (times[f"{AFTER} {way}"].median for way in WAYS)
    return [*found, f"{full / quitting:.2f}"]
