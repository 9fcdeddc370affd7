"""What a run found: tables on the terminal, a page in Markdown, and all figures in CSV files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from qwyc.check.benchmark import Line

from .contest import Result
from .growth import Point
from .headline import Figure
from .sizes import Sizes

Rows = list[list[str]]


def headline_rows(figures: Sequence[Figure]) -> tuple[list[str], Rows]:
    """The figures and what they are meant to be."""
    said = {True: "met", False: "missed", None: ""}
    header = ["figure (one thread)", "target", "found", "", "from"]
    return header, [[f.what, f.target, f.found, said[f.met], f.remark] for f in figures]


def case_rows(result: Result, threads: int, batches: Sequence[int]) -> tuple[list[str], Rows]:
    """Contestants by microseconds per row with each batch size, and how far single rows scatter."""
    header = ["", *[f"batch {b:,}" for b in batches], "p95", "p99", "decisions that differ"]
    names = list(dict.fromkeys(line.contestant for line in result.lines[threads]))
    rows = []
    for name in names:
        lines = [result.line(name, batch, threads) for batch in batches]
        one = result.line(name, 1, threads)
        differ = result.differ[name]
        share = f" ({differ / result.test_rows:.2%})" if differ else ""
        label = f"{name} {result.versions[name]}"
        rows.append(
            [
                label + (f" ({result.notes[name]})" if result.notes[name] else ""),
                *[_time(line) for line in lines],
                _number(one.p95 if one else None),
                _number(one.p99 if one else None),
                f"{differ:,}{share}",
            ]
        )
    return header, rows


def case_words(result: Result) -> list[str]:
    """What the table of a case does not say."""
    words = []
    if result.mean_models == result.mean_models:
        words.append(
            f"Quitting takes {result.mean_models:.1f} base models per row. Decisions are compared "
            f"with {result.library}'s on {result.test_rows:,} test rows."
        )
    words += [f"Left out: {name}: {why}." for name, why in result.left_out.items()]
    return words


def growth_rows(points: Sequence[Point], axis: str) -> tuple[list[str], Rows]:
    """Microseconds per row by the value of an axis."""
    found = [p for p in points if p.axis == axis]
    names = list(dict.fromkeys(p.contestant for p in found))
    rows = []
    for value in sorted({p.value for p in found}):
        here = {p.contestant: p for p in found if p.value == value}
        some = next(iter(here.values()))
        rows.append(
            [
                f"{value:,}",
                *[_number(here[n].microseconds if n in here else None) for n in names],
                f"{some.mean_models:.1f}",
                f"{some.disagreement:.2%}",
            ]
        )
    return [axis, *names, "base models when quitting", "differ"], rows


def show(console: Console, title: str, header: Sequence[str], rows: Rows) -> None:
    """A table on the terminal."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if not i else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def page(
    about: Sequence[str],
    figures: Sequence[Figure],
    results: Mapping[str, Result],
    points: Sequence[Point],
    sizes: Sizes,
) -> str:
    """Everything, as Markdown."""
    parts = ["# Benchmarks", "\n".join(f"- {words}" for words in about)]
    parts += ["![the same in pictures](bench.png)", "## Against the targets"]
    parts.append(_markdown(*headline_rows(figures)))
    for result in results.values():
        parts.append(f"## {result.title}")
        for threads in result.lines:
            parts.append(
                f"µs per row, {threads} thread{'s' if threads > 1 else ''}; p95 and p99 of a"
            )
            parts[-1] += " call with one row, µs."
            parts.append(_markdown(*case_rows(result, threads, sizes.batches)))
        parts.append("\n".join(case_words(result)))
    if points:
        parts.append("## How cost grows")
        parts.append("µs per row in one batch, one thread, XGBoost models.")
        parts += [_markdown(*growth_rows(points, axis)) for axis in sizes.growth]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_csv(
    folder: Path, figures: Sequence[Figure], results: Mapping[str, Result], points: Sequence[Point]
) -> None:
    """cases.csv, growth.csv and headline.csv."""
    cases = [
        {"case": result.name, "threads": threads}
        | asdict(line)
        | {
            "version": result.versions[line.contestant],
            "note": result.notes[line.contestant],
            "differ": result.differ[line.contestant],
            "test_rows": result.test_rows,
            "mean_models": result.mean_models,
        }
        for result in results.values()
        for threads, lines in result.lines.items()
        for line in lines
    ]
    _table(folder / "cases.csv", cases)
    _table(folder / "growth.csv", [asdict(point) for point in points])
    _table(folder / "headline.csv", [asdict(figure) for figure in figures])


def _table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _markdown(header: Sequence[str], rows: Rows) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _time(line: Line | None) -> str:
    return _number(line.microseconds if line else None)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
