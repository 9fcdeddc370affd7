"""A run: the parts one after the other, printed as they come, everything written at the end."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from qwyc.check.benchmark import machine
from qwyc.runtime.timing import clock_microseconds

from . import classes, report, sparse, values
from .cases import CASES
from .contest import Result, WrongAnswer, contest
from .growth import Point, growth
from .headline import Figure, headline
from .peers import LeftOut
from .picture import draw
from .sizes import SIZES, Sizes


def run(chosen: argparse.Namespace, cores: int) -> None:
    """What the command line chose, on one thread and on all cores."""
    sizes = replace(SIZES[chosen.size or "full"], cpu_time=chosen.cpu_time)
    parts = chosen.only or [*CASES, classes.NAME, values.NAME, sparse.NAME, "growth"]
    thread_counts = (1,) if chosen.one_thread or cores == 1 else (1, cores)
    warnings.filterwarnings("ignore")  # the libraries' about each other
    console = Console(width=120, highlight=False)
    started = time.perf_counter()
    about = [
        f"Command: python -m benchmarks {' '.join(sys.argv[1:])}".rstrip(),
        ", ".join(f"{name} {value}" for name, value in machine().items()),
        f"UCI Adult: {sizes.rows:,} rows drawn from 16,281 test rows that neither model nor policy "
        "has seen. Contestants take turns; medians. Rows are float32 in the form that each takes "
        "fastest, converted beforehand; a single row comes as a NumPy vector.",
        "Batches on one thread by the process's own time, since the machine is busy; all else by the "
        "wall clock."
        if sizes.cpu_time
        else "All times by the wall clock.",
        f"The clock adds {clock_microseconds():.2f} µs to a call.",
    ]
    for words in about:
        console.print(words)
    found = Found(about, sizes, chosen.output)
    try:
        for name in [part for part in CASES if part in parts]:
            with console.status(f"{name} ..."):
                try:
                    result = contest(CASES[name](sizes), sizes, thread_counts)
                except LeftOut as reason:
                    found.left_out[name] = str(reason)
                    console.print(f"\n{name}: left out: {reason}")
                    continue
            found.results[name] = result
            for threads in thread_counts:
                title = f"\n{result.title}; {threads} thread(s); µs per row"
                report.show(console, title, *report.case_rows(result, threads, sizes.batches))
            console.print("\n".join(report.case_words(result)))
            found.write()
        if classes.NAME in parts:
            with console.status(f"{classes.NAME} ..."):
                try:
                    found.results[classes.NAME] = classes.classes(sizes)
                except LeftOut as reason:
                    found.left_out[classes.NAME] = str(reason)
                    console.print(f"\n{classes.NAME}: left out: {reason}")
            if classes.NAME in found.results:
                classes.show(console, found.results[classes.NAME], sizes)
                found.write()
        if values.NAME in parts:
            tables = values.page(values.run_all(console, sizes))
            chosen.output.mkdir(parents=True, exist_ok=True)
            (chosen.output / "values.md").write_text(tables)
        if sparse.NAME in parts:
            clock = time.process_time if sizes.cpu_time else time.perf_counter
            tables = sparse.run_all(console, sparse.SIZES[sizes.name], clock)
            chosen.output.mkdir(parents=True, exist_ok=True)
            (chosen.output / "sparse.md").write_text(tables)
        if "growth" in parts:
            with console.status("growth ...") as status:
                for points in growth(sizes, lambda words: status.update(f"growth: {words} ...")):
                    found.points += points
                    found.write()
            for axis in sizes.growth:
                title = f"\nHow cost grows with {axis}; one thread; µs per row"
                report.show(console, title, *report.growth_rows(found.points, axis))
    except WrongAnswer as error:
        console.print(f"WRONG ANSWER: {error}")
        sys.exit(1)
    title = "\nAgainst the targets"
    if sizes.name != "full":
        title += f" (they are for the full size; this is {sizes.name})"
    report.show(console, title, *report.headline_rows(found.figures()))
    took = f"Took {time.perf_counter() - started:.0f} s; load at the end {machine().get('load')}."
    about.append(took)
    console.print(took)
    found.write()
    console.print(f"Wrote report.md, bench.png and the CSV files to {chosen.output}.")


@dataclass
class Found:
    """What a run has found so far; written after every part, since a run may be stopped."""

    about: list[str]
    sizes: Sizes
    folder: Path
    results: dict[str, Result] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # whole cases
    points: list[Point] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        """The headline."""
        return headline(self.results, self.sizes, self.left_out)

    def write(self) -> None:
        """The page, the picture and the CSV files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        report.write_csv(self.folder, self.figures(), self.results, self.points)
        about = [*self.about, *[f"Left out: {name}: {why}." for name, why in self.left_out.items()]]
        page = report.page(about, self.figures(), self.results, self.points, self.sizes)
        (self.folder / "report.md").write_text(page)
        draw(self.results, self.points, self.sizes, self.about[1], self.folder / "bench.png")
