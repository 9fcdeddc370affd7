"""An older version of qwyc and this one, on tables with text and on files, in one run.

    python -m benchmarks.since --against OTHER/.venv/bin/python

The older version makes the classifier (UCI Adult with its text, XGBoost, 200 trees), and both decide the
same rows with it. Files are Adult's test rows, repeated, in Parquet; the column fnlwgt differs from copy to
copy, so that no row repeats. Versions take turns. Times are processor time, of commands with the start of
Python. Decisions must be equal; otherwise the run fails."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from qwyc.check.benchmark import machine
from qwyc.datasets import load_adult

from . import peers

BEFORE, AFTER = "before", "now"
COPIES = (20, 40, 80)  # of Adult's test rows: 0.33, 0.65 and 1.3 million rows

MAKE = """
import sys, warnings
warnings.simplefilter("ignore")
import pandas as pd, xgboost, qwyc
from qwyc.datasets import load_adult
train, test = (pd.DataFrame(load_adult(part).columns) for part in ("train", "test"))
text = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
known = {name: sorted({*train[name].dropna(), *test[name].dropna()}) for name in text}
kinds = {name: pd.CategoricalDtype(values) for name, values in known.items()}
rows, label = train.astype(kinds), load_adult("train").label
options = {"n_estimators": 200, "max_depth": 5, "learning_rate": 0.1, "n_jobs": 1}
model = xgboost.XGBClassifier(enable_categorical=True, **options)
model.fit(rows[:16000], label[:16000])
qwyc.optimize(model, rows[16000:], alpha=0.005, threads=1, progress=False).save(sys.argv[1])
"""

# Prints a JSON object of microseconds, by what was done.
MEMORY = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import pandas as pd, pyarrow as pa, qwyc
from pyarrow import parquet
fast = qwyc.load(sys.argv[1])
table = parquet.read_table(sys.argv[2]).drop_columns(["id"])
few = table.slice(0, 8192).combine_chunks()
frame = few.to_pandas()
text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
pool = {}
objects = frame.astype({name: object for name in text})
for name in text:
    objects[name] = pd.Series([pool.setdefault(x, x) for x in objects[name]], dtype=object)
kinds = {name: "category" for name in text}
many = table.slice(0, 200_000).combine_chunks()
def least(call, n, times):
    found = []
    for _ in range(times):
        started = time.process_time()
        call()
        found.append((time.process_time() - started) / n * 1e6)
    return min(found)
found = {}
sparse = few.slice(0, 3000)
at = sparse.column_names.index("workclass")
sparse = sparse.set_column(at, "workclass", pa.nulls(3000, sparse["workclass"].type))
try:
    found["all null"] = "decided" if len(fast.decide(sparse)) == 3000 else "?"
except Exception as error:
    found["all null"] = type(error).__name__
frames = {"Arrow": few, "pandas objects": objects, "pandas categories": frame.astype(kinds)}
for name, rows in frames.items():
    found[name] = least(lambda: fast.predict(rows, threads=1), 8192, 40)
one = frame.astype(kinds)[:1]
found["one row"] = least(lambda: fast.predict(one), 1, 200)
found["verify"] = least(lambda: qwyc.verify(fast, many, threads=1), len(many), 3)
found["recertify"] = least(lambda: qwyc.recertify(fast, many, alpha=0.01, threads=1), len(many), 3)
print(json.dumps(found))
"""

LINES = {
    "all null": "a text column that is all null in a batch of 3,000 rows",
    "Arrow": "8,192 rows of text, Arrow, µs per row",
    "pandas objects": "the same, pandas objects",
    "pandas categories": "the same, pandas categories",
    "one row": "a pandas frame of one row, µs",
    "verify": "`verify` of 200,000 rows in memory, µs per row",
    "recertify": "`recertify` of the same",
}
COMMANDS = ("predict", "verify", "recertify")


def write_files(folder: Path) -> list[Path]:
    """Adult's test rows, repeated, one file for each number of copies."""
    pyarrow, _ = peers.library("pyarrow")
    parquet, _ = peers.library("pyarrow.parquet", "pyarrow")
    columns, paths = load_adult("test").columns, []
    n = len(next(iter(columns.values())))
    for copies in COPIES:
        tiled = {name: np.tile(values, copies) for name, values in columns.items()}
        tiled["fnlwgt"] = tiled["fnlwgt"].astype(np.int64) + np.repeat(np.arange(copies), n)
        tiled["id"] = np.arange(n * copies)
        table = {name: pyarrow.array(values, from_pandas=True) for name, values in tiled.items()}
        paths.append(folder / f"{copies}.parquet")
        parquet.write_table(pyarrow.table(table), paths[-1])
    return paths


# Runs a command and prints its exit code, processor time and peak memory in KB. In a small process of
# its own: the peak of a command is at least the memory of the process that starts it.
START = """
import os, subprocess, sys
null = subprocess.DEVNULL
process = subprocess.Popen(sys.argv[1:], stdout=null, stderr=null)
_, status, used = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def run_command(python: str, given: list[str], folder: Path) -> tuple[float, float]:
    """Processor time in seconds and peak memory in MB of a command."""
    command = [python, "-W", "ignore", "-m", "qwyc", *given]
    started = subprocess.run(
        [sys.executable, "-I", "-S", "-c", START, *command],
        cwd=folder, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    code, seconds, peak = started.stdout.split()
    if int(code) not in (0, 1, 3):  # verify may print FAIL or UNDECIDED
        raise SystemExit(f"{' '.join(given)} ended with {code}")
    return float(seconds), int(peak) / 1024


def arguments(command: str, file: Path, name: str) -> list[str]:
    """What follows `qwyc`."""
    given = [command, "m.qwyc", str(file), "--threads", "1"]
    if command == "predict":
        given += ["-o", f"{name}.parquet", "--keep", "id"]
    if command == "recertify":
        given += ["-o", f"{name}.qwyc", "--alpha", "0.01"]
    return given


def compare(folder: Path) -> int:
    """How many rows were decided; the run ends where versions differ."""
    parquet, _ = peers.library("pyarrow.parquet", "pyarrow")
    one, other = (parquet.read_table(folder / f"{name}.parquet") for name in (BEFORE, AFTER))
    for column in ("id", "label", "steps", "score", "complete"):
        if not one[column].equals(other[column].cast(one[column].type)):
            raise SystemExit(f"WRONG ANSWER: the column {column} differs")
    return int(one.num_rows)


def measure(pythons: dict[str, str], rounds: int, folder: Path) -> list[str]:
    """The lines of the table."""
    files = write_files(folder)
    subprocess.run([pythons[BEFORE], "-c", MAKE, str(folder / "m.qwyc")], check=True)
    memory: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
    cpu: dict[tuple[str, str], list[float]] = {}
    peak: dict[tuple[str, str], list[str]] = {}
    for _ in range(rounds):
        for name, python in pythons.items():
            given = [python, "-c", MEMORY, str(folder / "m.qwyc"), str(files[0])]
            done = subprocess.run(given, check=True, stdout=subprocess.PIPE, text=True)
            memory[name].append(json.loads(done.stdout))
            for command in COMMANDS:
                seconds, _ = run_command(python, arguments(command, files[-1], name), folder)
                cpu.setdefault((command, name), []).append(seconds)
    rows = compare(folder)
    for name, python in pythons.items():
        for command in COMMANDS:
            peaks = [
                run_command(python, arguments(command, file, name), folder)[1] for file in files
            ]
            peak[command, name] = [f"{one:,.0f}" for one in peaks]
    lines = [f"| | {' | '.join(pythons)} |", "|---" + "|---:" * len(pythons) + "|"]
    for key, title in LINES.items():
        cells = []
        for name in pythons:
            found = [each[key] for each in memory[name]]
            cells.append(found[0] if isinstance(found[0], str) else f"{min(found):.3g}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    for command in COMMANDS:
        times = [statistics.median(cpu[command, name]) for name in pythons]
        cells = [f"{one:.2f}" for one in times]
        lines.append(f"| `qwyc {command}`, {rows:,} rows, s | {' | '.join(cells)} |")
        cells = [", ".join(peak[command, name]) for name in pythons]
        lines.append(f"| its memory, MB, for {len(files)} sizes | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.since", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--against", required=True, help="the Python of an older version of qwyc")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    pythons = {BEFORE: chosen.against, AFTER: sys.executable}
    print(", ".join(f"{name} {value}" for name, value in machine().items()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        # Modules are compiled once, as where a package is installed.
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        print("\n".join(measure(pythons, chosen.rounds, Path(folder))))


if __name__ == "__main__":
    main()
