"""Microseconds per row by rows per call, quitting and in full, one thread.

    python -m benchmarks.batches
    python -m benchmarks.batches --against OTHER/.venv/bin/python

`--against` names the Python of another installation of qwyc, for example one of an older commit. Each
installation is measured in a process of its own. The processes are pinned to the same core and take turns
at every size. All answers must be equal, bit for bit, between the installations and between all sizes, and
full decisions must be those of the library that trained the model; otherwise the run fails."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from qwyc.check.benchmark import machine

from ..contest import WrongAnswer
from ..peers import LeftOut
from . import worker
from .cases import Case, make, recipes
from .page import AFTER, BEFORE, WAYS, Result, markdown, size_name, time_of

SIZES: tuple[int | str, ...] = (
    1, worker.ONE, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 8_192, 100_000,
)  # fmt: skip
QUICK_SIZES: tuple[int | str, ...] = (1, worker.ONE, 16, 2_000)
TURN_SECONDS = 0.02
LEAST_BLOCKS = 2  # of calls in a turn, after one that is not counted
LEAST_TURNS = 3
CLOSE = 1e-4  # scores of the libraries, which add in float32 or in another order


class Installation:
    """The process of one installation."""

    def __init__(self, python: str, core: int, script: str = worker.__file__) -> None:
        self.process = subprocess.Popen(
            [python, script, str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),  # so that the package is imported as it is installed
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self.about = self._answer()

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send one request and wait for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.process.args} has ended; see its error above")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def check(
    case: Case,
    installations: dict[str, Installation],
    sizes: Sequence[int | str],
    chosen: argparse.Namespace,
    folder: Path,
) -> Result:
    """Open the case everywhere; compare all answers with each other and with the library."""
    np.save(folder / "rows.npy", case.rows)
    found: dict[str, dict[str, Any]] = {}
    n_models = 0
    for name, installation in installations.items():
        n_models = installation.ask(
            "open",
            file=str(case.file),
            full_file=None if case.full_file is None else str(case.full_file),
            rows=str(folder / "rows.npy"),
            layout=chosen.layout,
            dtype=chosen.dtype,
        )["n_models"]
        answered = installation.ask("answers", sizes=sizes, to=str(folder / f"{name}.npz"))
        if answered["wrong"]:
            raise WrongAnswer(
                f"{case.name}, {name}: unlike one batch of all rows: {'; '.join(answered['wrong'])}"
            )
        with np.load(folder / f"{name}.npz") as saved:
            found[name] = dict(saved)
    ours = found[AFTER]
    for name, theirs in found.items():
        unlike = [what for what in ours if not np.array_equal(ours[what], theirs[what])]
        if unlike:
            raise WrongAnswer(f"{case.name}: {AFTER} and {name} differ in {', '.join(unlike)}")
    check_library(case, ours)
    differ = ours["quitting label"] != ours["full label"]
    steps = float(ours["quitting steps"].mean())
    return Result(
        case.name,
        case.title,
        n_models,
        steps,
        float(differ.mean()),
        min(case.test_rows, len(case.rows)),
    )


def check_library(case: Case, ours: dict[str, Any]) -> None:
    """Full decisions and scores must be the library's, and so must decisions that took all base models."""
    label = ours["full label"].astype(int)
    if not np.array_equal(label, case.own):
        n = int((label != case.own).sum())
        raise WrongAnswer(f"{case.name}: {n:,} full decisions are unlike the library's")
    if not np.allclose(ours["full score"], case.score, rtol=CLOSE, atol=CLOSE):
        raise WrongAnswer(f"{case.name}: full scores are unlike the library's")
    complete = ours["quitting complete"]
    for what in ("label", "score"):
        if not np.array_equal(ours[f"quitting {what}"][complete], ours[f"full {what}"][complete]):
            raise WrongAnswer(
                f"{case.name}: rows that took all base models have another {what} than in full"
            )


def measure(
    installations: dict[str, Installation], size: int | str, seconds: float, clock: str
) -> dict[str, Any]:
    """Times of all installations, both ways, with so many rows per call, in turns."""
    turns = [(name, way) for way in WAYS for name in installations]
    spent: dict[tuple[str, str], list[float]] = {turn: [] for turn in turns}
    rows, taken = 1, 0
    while taken < LEAST_TURNS or min(sum(times) for times in spent.values()) < seconds:
        for name, way in turns:
            answer = installations[name].ask(
                "time", way=way, size=size, seconds=min(TURN_SECONDS, seconds), clock=clock,
                least=LEAST_BLOCKS,
            )  # fmt: skip
            spent[name, way] += answer["seconds"]
            rows = answer["rows"]
        turns = turns[1:] + turns[:1]  # so that none always follows the same one
        taken += 1
    return {f"{name} {way}": time_of(times, rows) for (name, way), times in spent.items()}


def about(chosen: argparse.Namespace, installations: dict[str, Installation]) -> list[str]:
    """What the times depend on."""
    clock = "the processor time of the process" if chosen.cpu_time else "the wall clock"
    return [
        f"Command: python -m benchmarks.batches {' '.join(sys.argv[1:])}".rstrip(),
        ", ".join(f"{name} {value}" for name, value in machine().items()),
        *(
            f"{name}: qwyc {each.about['version']} in {each.about['where']}"
            for name, each in installations.items()
        ),
        f"One thread, core {chosen.core}. Rows are {chosen.dtype}, each {chosen.layout[:-1]} in one piece. "
        "Held-out rows are repeated in random order where there are fewer than 100,000.",
        f"Microseconds per row, the median of blocks of calls by {clock}; a block covers the same "
        f"{worker.BLOCK_ROWS:,} rows (or one call) each time. Ratios are those of medians, and in brackets "
        "those of minima.",
    ]


def main() -> None:
    """Print tables as they come; write report.md and report.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    names = list(recipes(quick=False))
    parser.add_argument("--against", help="the Python of another installation of qwyc")
    parser.add_argument(
        "--older-makes", action="store_true",
        help="that installation makes the classifiers: an older version does not read this one's files",
    )  # fmt: skip
    parser.add_argument("--only", nargs="+", metavar="CASE", help=f"some of: {', '.join(names)}")
    parser.add_argument("--sizes", nargs="+", type=size, help=f'rows per call, or "{worker.ONE}"')
    parser.add_argument("--layout", choices=("rows", "columns"), default="rows")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each way at each size")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine")
    parser.add_argument("--core", type=int, default=None, help="default: the last one")
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    parser.add_argument(
        "--output", type=Path, default=Path("bench-results/batches"), help="a folder"
    )
    chosen = parser.parse_args()
    if chosen.core is None:
        chosen.core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    known = recipes(chosen.quick)
    unknown = [name for name in chosen.only or () if name not in known]
    if unknown:
        parser.error(f"no case is called {', '.join(unknown)}; there are {', '.join(known)}")
    pythons = {BEFORE: chosen.against} if chosen.against else {}
    installations = {
        name: Installation(python, chosen.core)
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


def run(chosen: argparse.Namespace, installations: dict[str, Installation]) -> None:
    """All cases, one after the other; files are written after each."""
    known = recipes(chosen.quick)
    sizes = chosen.sizes or (QUICK_SIZES if chosen.quick else SIZES)
    n_rows = max([*(each for each in sizes if isinstance(each, int)), worker.BLOCK_ROWS])
    seconds = 0.001 if chosen.quick else chosen.seconds
    words = about(chosen, installations)
    page = ["# Rows per call", "", *(f"- {line}" for line in words), ""]
    print("\n".join(page), flush=True)
    results: list[Result] = []
    chosen.output.mkdir(parents=True, exist_ok=True)
    for name in chosen.only or known:
        try:
            case = make(name, known[name], n_rows, chosen.against if chosen.older_makes else None)
        except LeftOut as reason:
            page.append(f"{known[name].title}: left out: {reason}.\n")
            print(page[-1], flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            result = check(case, installations, sizes, chosen, Path(folder))
        del case
        for each in sizes:
            clock = "cpu" if chosen.cpu_time else "wall"
            result.times[size_name(each)] = measure(installations, each, seconds, clock)
        page += [markdown(result), f"Load after it: {machine().get('load', 'unknown')}.", ""]
        print("\n".join(page[-3:]), flush=True)
        results.append(result)
        (chosen.output / "report.md").write_text("\n".join(page))
        content = {"about": words, "results": [asdict(found) for found in results]}
        (chosen.output / "report.json").write_text(json.dumps(content, indent=1))
    print(f"Wrote report.md and report.json to {chosen.output}.")


def size(text: str) -> int | str:
    """A number of rows, or `predict_one`."""
    return text if text == worker.ONE else int(text)


if __name__ == "__main__":
    main()
