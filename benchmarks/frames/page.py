"""The result as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..batches.page import AFTER, BEFORE, Time
from .worker import ARRAY

LIBRARY = "library"


@dataclass
class Result:
    """What a case showed."""

    name: str
    title: str
    library: str
    n_models: int
    differ: float  # share of rows that quitting decides differently from the full ensemble
    refused: dict[str, str]  # kinds of frames that the model does not take, and why
    # By rows per call, kind of frame, and "before quitting", "after full", "after library" ...
    times: dict[str, dict[str, dict[str, Time]]] = field(default_factory=dict)


def markdown(result: Result) -> str:
    """A heading, and a table of medians for each number of rows per call."""
    lines = [
        f"## {result.title}",
        "",
        f"{result.differ:.2%} of the rows are decided differently from all {result.n_models} base models.",
        "",
    ]
    for size, forms in result.times.items():
        compared = any(name.startswith(BEFORE) for times in forms.values() for name in times)
        titles = [f"{size} rows per call", "quitting"]
        if any(form == ARRAY for form in forms):
            titles.append("times the array's")
        titles += ["before", "times as fast"] if compared else []
        titles += ["full", result.library, f"{result.library} / quitting"]
        lines += [f"| {' | '.join(titles)} |", "|---" + "|---:" * (len(titles) - 1) + "|"]
        base = forms.get(ARRAY, {}).get(f"{AFTER} quitting")
        lines += [f"| {' | '.join(cells(form, times, base))} |" for form, times in forms.items()]
        lines.append("")
    lines += [f"{form} left out: {reason}" for form, reason in result.refused.items()]
    return "\n".join(lines)


def cells(form: str, times: Mapping[str, Time], base: Time | None) -> list[str]:
    """One line of a table."""
    quitting = times[f"{AFTER} quitting"].median
    found = [form, f"{quitting:.3g}"]
    if base is not None:
        found.append(f"{quitting / base.median:.2f}")
    before = times.get(f"{BEFORE} quitting")
    if before is not None:
        found += [f"{before.median:.3g}", f"{before.median / quitting:.2f}"]
    library = times.get(f"{AFTER} {LIBRARY}")
    found.append(f"{times[f'{AFTER} full'].median:.3g}")
    if library is None:
        return [*found, "", ""]
    return [*found, f"{library.median:.3g}", f"{library.median / quitting:.1f}"]
