"""What a run over the engines found, as a page in Markdown and as numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

TRILLION, DAY = 1e12, 86_400
COUNTED = ("nothing", "XGBoost", "qwyc, full", "qwyc, quitting")
WRITTEN = "qwyc, to files"
CHECKS = ("verify", "recertify")
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"


@dataclass(frozen=True)
class Took:
    """A pass over all rows."""

    wall: float  # seconds
    cpu: float  # seconds of processor time, of all processes

    @classmethod
    def median(cls, passes: Sequence[Took]) -> Took:
        """Of each by itself."""
        return cls(median(one.wall for one in passes), median(one.cpu for one in passes))


@dataclass(frozen=True)
class Engine:
    """One engine's figures."""

    title: str
    start: float  # seconds until it takes jobs
    first: float  # seconds that the first job takes longer than later ones
    took: Mapping[str, Mapping[str, Took]]  # by data set and way
    processes: int  # that decided rows with qwyc
    loads: int  # of the classifier, in all of them
    loading: float  # seconds, median


@dataclass(frozen=True)
class Data:
    """One data set and its classifier."""

    title: str
    features: int
    disk_bytes: float  # per row, Parquet
    arrow_bytes: float  # per row, of the features
    written_bytes: float  # per row, Parquet: a key and the four columns
    parcel_bytes: int  # what travels to each worker
    mean_models: float
    differ: float
    alone: Mapping[str, Took]  # without an engine, one process


@dataclass(frozen=True)
class Run:
    """All of it."""

    machine: Mapping[str, str]
    rows: int
    rounds: int
    workers: int
    data: list[Data]
    engines: list[Engine]


def cores(microseconds: float) -> float:
    """Cores that are busy all day with a trillion rows of so much each."""
    return TRILLION / DAY * microseconds / 1e6


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def page(run: Run) -> str:
    """The measured part, in words and tables."""
    facts = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    first = run.data[0]
    ship = [
        [
            engine.title,
            f"{engine.start:.1f}",
            f"{engine.first:.1f}",
            str(engine.processes),
            str(engine.loads),
            f"{1e3 * engine.loading:.1f}",
        ]
        for engine in run.engines
    ]
    return f"""\
- Command: make bench-engines (python -m benchmarks.engines --document docs/scale.md)
- {facts}
- {run.rows:,} rows (UCI Adult's test rows, repeated) in Parquet files; XGBoost, 500 trees of depth 5.
- {run.workers} workers of one core. Everyone reads the same files and counts rows and positive labels,
  which are checked. Contestants take turns, {run.rounds} rounds after one to warm up; medians.
- Processor time is user and system time of all processes of the engine, from /proc.

{"".join(_section(run, data) for data in run.data)}### Starting

Seconds, and how often the classifier ({first.parcel_bytes / 1e6:.2f} MB) was loaded by the processes that
decided rows, in all rounds:

{table(["", "start", "first job", "processes", "loads", "ms a load"], ship)}
"""


def _section(run: Run, data: Data) -> str:
    each = {e.title: _microseconds(run, e.took[data.title]) for e in run.engines}
    each["no engine, one process"] = _microseconds(run, data.alone)
    ways = (*COUNTED, WRITTEN, *CHECKS)
    cost = [[title, *(_number(took.get(way)) for way in ways)] for title, took in each.items()]
    need = [
        [title, *(f"{cores(took[way]):,.0f}" for way in COUNTED)] for title, took in each.items()
    ]
    speed = []
    for engine in run.engines:
        took = engine.took[data.title]
        rates = [f"{run.rows / took[way].wall:,.0f}" for way in COUNTED]
        ratio = took["XGBoost"].cpu / took["qwyc, quitting"].cpu
        busy = took["qwyc, quitting"].cpu / took["qwyc, quitting"].wall
        speed.append([engine.title, *rates, f"{ratio:.1f}x", f"{busy:.1f}"])
    back, kept = 21, 29  # label, steps, score, complete; and a key
    return f"""\
### {data.title.capitalize()}

{data.features} columns, {data.disk_bytes:.1f} bytes a row on disk and {data.arrow_bytes:.0f} in Arrow;
{data.mean_models:.1f} trees a row with qwyc, {data.differ:.2%} of the test decisions differ. To Python go
{data.arrow_bytes:.0f} bytes a row, and {back} come back; with a key, {kept} are written, which are
{data.written_bytes:.1f} in Parquet.

Microseconds of processor time a row:

{table(["", *ways], cost)}

The cores that a trillion rows a day keep busy:

{table(["", *COUNTED], need)}

Rows per second by the clock, processor time of XGBoost against qwyc, and how many cores were busy:

{table(["", *COUNTED, "quitting against XGBoost", "cores busy"], speed)}

"""


def _microseconds(run: Run, took: Mapping[str, Took]) -> dict[str, float]:
    return {way: one.cpu / run.rows * 1e6 for way, one in took.items()}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def write(run: Run, folder: Path, document: Path | None) -> None:
    """Write the page and the numbers, print the page, and put it into a document between its marks."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "engines.json").write_text(json.dumps(asdict(run), indent=1))
    (folder / "engines.md").write_text(page(run))
    print(page(run))
    if document is not None:
        before, _, rest = document.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        document.write_text(f"{before}{BEGIN}\n{page(run)}\n{END}{after}")
