"""What a run over the engines found, as a page in Markdown and as numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

TRILLION, DAY = 1e12, 86_400


@dataclass(frozen=True)
class Engine:
    """One engine's figures."""

    title: str
    start: float  # seconds until it takes jobs
    first: float  # seconds that the first job takes longer than later ones
    seconds: Mapping[str, float]  # median of a pass over all rows, by contestant
    processes: int  # that decided rows with qwyc
    loads: int  # of the classifier, in all of them
    loading: float  # seconds, median


@dataclass(frozen=True)
class Run:
    """All of it."""

    machine: Mapping[str, str]
    rows: int
    rounds: int
    workers: int
    features: int
    disk_bytes: float  # per row, Parquet
    parcel_bytes: int  # what travels to each worker
    mean_models: float
    differ: float
    alone: Mapping[str, float]  # seconds without an engine, one process
    engines: list[Engine]


def cores(microseconds: float) -> float:
    """Cores that are busy all day with a trillion rows of so much each."""
    return TRILLION / DAY * microseconds / 1e6


def table(header: list[str], rows: list[list[str]]) -> str:
    """In Markdown."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def page(run: Run) -> str:
    """The measured part, in words and tables."""
    ways = ["nothing", "XGBoost", "qwyc, full", "qwyc, quitting"]
    speed, cost, ship = [], [], []
    for engine in run.engines:
        took = engine.seconds
        ratio = took["XGBoost"] / took["qwyc, quitting"]
        rates = [f"{run.rows / took[way]:,.0f}" for way in ways]
        speed.append([engine.title, *rates, f"{ratio:.1f}x"])
        each = {way: run.workers * took[way] / run.rows * 1e6 for way in ways}  # core-microseconds
        work = [f"{each[way]:.2f}" for way in ways]
        needed = [f"{cores(each[way]):,.0f}" for way in ("nothing", "XGBoost", "qwyc, quitting")]
        cost.append([engine.title, *work, *needed])
        ship.append(
            [
                engine.title,
                f"{engine.start:.1f}",
                f"{engine.first:.1f}",
                str(engine.processes),
                str(engine.loads),
                f"{1e3 * engine.loading:.1f}",
            ]
        )
    alone = {way: seconds / run.rows * 1e6 for way, seconds in run.alone.items()}
    cost.append(
        [
            "no engine, one process",
            f"{alone['nothing']:.2f}",
            f"{alone['XGBoost']:.2f}",
            "",
            f"{alone['qwyc, quitting']:.2f}",
            *(f"{cores(alone[way]):,.0f}" for way in ("nothing", "XGBoost", "qwyc, quitting")),
        ]
    )
    facts = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    return f"""\
- Command: make bench-engines (python -m benchmarks.engines)
- {facts}
- {run.rows:,} rows of {run.features} float32 columns (UCI Adult's test rows, repeated), Parquet,
  {run.disk_bytes:.1f} bytes a row on disk, {4 * run.features} in Arrow; XGBoost, 500 trees of depth 5;
  {run.mean_models:.1f} trees a row with qwyc, {run.differ:.2%} of the test decisions differ.
- Two workers of one core. Everyone reads the same files and counts rows and positive labels, which are
  checked. Contestants take turns, {run.rounds} rounds after one to warm up; medians.

Rows per second on two cores:

{table(["", *ways, "quitting against XGBoost"], speed)}

Core-microseconds a row, and the cores that a trillion rows a day keep busy:

{table(["", *ways, "cores: nothing", "cores: XGBoost", "cores: qwyc"], cost)}

What starting takes, in seconds; and how often the classifier ({run.parcel_bytes / 1e6:.2f} MB) was loaded
by the processes that decided rows, in all rounds:

{table(["", "start", "first job", "processes", "loads", "ms a load"], ship)}
"""


def write(run: Run, folder: Path) -> None:
    """Write the page and the numbers, and print the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "engines.json").write_text(json.dumps(asdict(run), indent=1))
    (folder / "engines.md").write_text(page(run))
    print(page(run))
