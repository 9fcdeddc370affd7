"""Microseconds per row of data frames by their kind, quitting and in full, against the library that trained
the model, one thread.

    python -m benchmarks.frames
    python -m benchmarks.frames --against OTHER/.venv/bin/python

Everyone gets the same frame. What the library needs first, such as pandas' categories in place of text,
is counted. `--against` names the Python of another installation of qwyc, for example one of an older
commit. Each installation is measured in a process of its own, pinned to the same core; all take turns. All
answers must be equal between kinds of frames and between installations, and full decisions must be the
library's; otherwise the run fails."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from qwyc.check.benchmark import machine

from .. import peers
from ..batches.__main__ import Installation
from ..batches.page import AFTER, BEFORE, time_of
from ..contest import WrongAnswer
from ..peers import LeftOut
from . import worker
from .cases import LIBRARIES, Case, make, recipes
from .page import LIBRARY, Result, markdown

SIZES = (1, 8_192, 100_000)
QUICK_SIZES = (1, 300)
TURN_SECONDS = 0.02
LEAST_CALLS = 2  # in a turn, after one that is not counted
LEAST_TURNS = 3
PACKAGES = ("pandas", "polars", "pyarrow", "lightgbm", "xgboost-cpu", "catboost", "scikit-learn")


def check(case: Case, installations: dict[str, Installation], folder: Path) -> Result:
    """Open the case everywhere; compare all answers with each other and with the library."""
    pyarrow, _ = peers.library("pyarrow")
    parquet, _ = peers.library("pyarrow.parquet", "pyarrow")
    parquet.write_table(pyarrow.table(case.rows), folder / "rows.parquet")
    about = {"categories": case.categories, "library": case.recipe.library}
    (folder / "about.json").write_text(json.dumps(about))
    (folder / "model.pickle").write_bytes(pickle.dumps(case.model.model))
    found: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    n_models = 0
    for name, installation in installations.items():
        n_models = installation.ask(
            "open",
            file=str(case.file),
            rows=str(folder / "rows.parquet"),
            about=str(folder / "about.json"),
            model=str(folder / "model.pickle"),
        )["n_models"]
        to = folder / f"{name}.npz"
        refused |= installation.ask("answers", forms=case.recipe.forms, to=str(to))["refused"]
        with np.load(to) as saved:
            found[name] = dict(saved)
    differ = compare(case.recipe.title, found)
    library = LIBRARIES[case.recipe.library].partition(",")[0]
    return Result("", case.recipe.title, library, n_models, differ, refused)


def compare(title: str, found: dict[str, dict[str, Any]]) -> float:
    """Labels of each way must be alike, and the library's like full ones. Returns the share of rows that
    quitting decides differently."""
    answers = {
        (name, *key.split(" | ")): label for name in found for key, label in found[name].items()
    }
    if not answers:
        raise WrongAnswer(f"{title}: no kind of frame is taken")
    quitting = {key: label for key, label in answers.items() if key[2] == "quitting"}
    full = {key: label for key, label in answers.items() if key[2] != "quitting"}
    for group in (quitting, full):
        first, *others = group
        for key in others:
            n = int((group[key] != group[first]).sum())
            if n > 0:
                raise WrongAnswer(
                    f"{title}: {' '.join(key)} and {' '.join(first)} differ in {n:,} rows"
                )
    one, other = next(iter(quitting.values())), next(iter(full.values()))
    return float((one != other).mean())


def measure(
    installations: dict[str, Installation], form: str, size: int, seconds: float, clock: str
) -> dict[str, Any]:
    """Times of all installations and of the library, for one kind of frame, in turns."""
    turns = [(name, way) for way in ("quitting", "full") for name in installations]
    if form != worker.ARRAY:
        turns.append((AFTER, LIBRARY))
    spent: dict[tuple[str, str], list[float]] = {turn: [] for turn in turns}
    taken = 0
    least = LEAST_TURNS if seconds > TURN_SECONDS else 1
    while taken < least or min(sum(times) for times in spent.values()) < seconds:
        for name, way in turns:
            answer = installations[name].ask(
                "time", way=way, form=form, size=size, seconds=min(TURN_SECONDS, seconds), clock=clock,
                least=LEAST_CALLS,
            )  # fmt: skip
            spent[name, way] += answer["seconds"]
        turns = turns[1:] + turns[:1]  # so that none always follows the same one
        taken += 1
    return {f"{name} {way}": time_of(times, size) for (name, way), times in spent.items()}


def about(chosen: argparse.Namespace, installations: dict[str, Installation]) -> list[str]:
    """What the times depend on."""
    clock = "the processor time of the process" if chosen.cpu_time else "the wall clock"
    versions = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    return [
        f"Command: python -m benchmarks.frames {' '.join(sys.argv[1:])}".rstrip(),
        ", ".join(f"{name} {value}" for name, value in machine().items()),
        ", ".join(versions),
        *(
            f"{name}: qwyc {each.about['version']} in {each.about['where']}"
            for name, each in installations.items()
        ),
        f"One thread, core {chosen.core}. Microseconds per row, the median of calls by {clock}, the "
        "conversions that a library needs included. Held-out rows are repeated in random order where there "
        "are too few.",
    ]


def run(chosen: argparse.Namespace, installations: dict[str, Installation]) -> None:
    """All cases, one after the other; files are written after each."""
    known = recipes(chosen.quick)
    sizes: Sequence[int] = chosen.sizes or (QUICK_SIZES if chosen.quick else SIZES)
    seconds = 0.001 if chosen.quick else chosen.seconds
    words = about(chosen, installations)
    page = ["# Data frames", "", *(f"- {line}" for line in words), ""]
    print("\n".join(page), flush=True)
    results: list[Result] = []
    chosen.output.mkdir(parents=True, exist_ok=True)
    for name in chosen.only or known:
        try:
            case = make(known[name], max(sizes))
        except LeftOut as reason:
            page.append(f"{known[name].title}: left out: {reason}.\n")
            print(page[-1], flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            result = check(case, installations, Path(folder))
        result.name = name
        clock = "cpu" if chosen.cpu_time else "wall"
        forms = [form for form in case.recipe.forms if form not in result.refused]
        result.times = {f"{size:,}": {} for size in sizes}
        for form in forms:
            for size in sizes:
                result.times[f"{size:,}"][form] = measure(installations, form, size, seconds, clock)
        page += [markdown(result), f"Load after it: {machine().get('load', 'unknown')}.", ""]
        print("\n".join(page[-3:]), flush=True)
        results.append(result)
        (chosen.output / "report.md").write_text("\n".join(page))
        content = {"about": words, "results": [asdict(found) for found in results]}
        (chosen.output / "report.json").write_text(json.dumps(content, indent=1))
    print(f"Wrote report.md and report.json to {chosen.output}.")


def main() -> None:
    """Print tables as they come; write report.md and report.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    names = list(recipes(quick=False))
    parser.add_argument("--against", help="the Python of another installation of qwyc")
    parser.add_argument("--only", nargs="+", metavar="CASE", help=f"some of: {', '.join(names)}")
    parser.add_argument("--sizes", nargs="+", type=int, help="rows per call")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each way and kind of frame")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine")
    parser.add_argument("--core", type=int, default=None, help="default: the last one")
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    parser.add_argument(
        "--output", type=Path, default=Path("bench-results/frames"), help="a folder"
    )
    chosen = parser.parse_args()
    if chosen.core is None:
        chosen.core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    known = recipes(chosen.quick)
    unknown = [name for name in chosen.only or () if name not in known]
    if unknown:
        parser.error(f"no case is called {', '.join(unknown)}; there are {', '.join(known)}")
    if any(size < 1 for size in chosen.sizes or ()):
        parser.error("sizes are numbers of rows, at least 1")
    pythons = {BEFORE: chosen.against} if chosen.against else {}
    installations = {
        name: Installation(python, chosen.core, worker.__file__)
        for name, python in {**pythons, AFTER: sys.executable}.items()
    }
    try:
        run(chosen, installations)
    except WrongAnswer as error:
        print(f"WRONG ANSWER: {error}")
        sys.exit(1)
    finally:
        for installation in installations.values():
            installation.close()


if __name__ == "__main__":
    main()
