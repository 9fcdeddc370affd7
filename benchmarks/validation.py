"""What Arrow's full validation of every batch costs: python -m benchmarks.validation [--rows 200000].

Processor time per row of `RecordBatch.validate(full=True)`, of decoding the same rows, and of all of `qwyc
predict` to a file, for a table with text and a table of numbers. Processor time, so that other work on the
machine does not count as much; each is the least of several runs."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import machine
from qwyc.datasets import load_adult

BATCH = 65_536  # rows of a batch, as `qwyc predict` reads them


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    chosen = parser.parse_args()
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    print(f"{'µs per row':<22} {'validate':>10} {'decode':>10} {'qwyc predict':>13}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (table, model) in tables(chosen.rows, Path(folder)).items():
            for kind in ("parquet", "arrow"):
                path = Path(folder) / f"rows.{kind}"
                write(table, path, kind)
                batches = decoded(path, kind)
                validate = least(lambda rows=batches: [b.validate(full=True) for b in rows])
                decode = least(lambda path=path, kind=kind: decoded(path, kind))
                whole = predict_seconds(model, path, Path(folder))
                per_row = [1e6 * seconds / table.num_rows for seconds in (validate, decode, whole)]
                print(
                    f"{name + ', ' + kind:<22} {per_row[0]:>10.4f} {per_row[1]:>10.4f} {per_row[2]:>13.3f}"
                )


def tables(n: int, folder: Path) -> dict[str, tuple[Any, Path]]:
    """Tables of n rows, by name, with the file of a classifier for each."""
    import pyarrow as pa
    import xgboost

    adult = load_adult("test").columns
    some = np.resize(np.arange(len(adult["age"])), n)
    text = pa.table(
        {name: pa.array(np.asarray(column, object)[some]) for name, column in adult.items()}
    )
    numbers = np.random.default_rng(0).normal(size=(n, 30)).astype(np.float32)
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1)
    model.fit(numbers[:3000], numbers[:3000, 0] + numbers[:3000, 1] > 0)
    fast = qwyc.optimize(model, numbers[3000:8000], alpha=0.02, progress=False)
    path = folder / "numbers.qwyc"
    fast.save(path)
    golden = Path(__file__).parents[1] / "tests" / "golden" / "0.1.0" / "xgboost-categories.qwyc"
    columns = {f"f{j}": pa.array(numbers[:, j]) for j in range(30)}
    return {"Adult with text": (text, golden), "30 numbers": (pa.table(columns), path)}


def write(table: Any, path: Path, kind: str) -> None:
    """Write a table to a file."""
    from pyarrow import ipc, parquet

    if kind == "parquet":
        parquet.write_table(table, path)
        return
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH)


def decoded(path: Path, kind: str) -> list[Any]:
    """The batches of a file."""
    from pyarrow import ipc, parquet

    if kind == "parquet":
        return list(parquet.ParquetFile(path).iter_batches(BATCH, use_threads=False))
    with path.open("rb") as file:
        reader = ipc.open_file(file)
        return [reader.get_batch(i) for i in range(reader.num_record_batches)]


def least(call: Callable[[], Any], runs: int = 5) -> float:
    """Seconds of this process's processor time."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def predict_seconds(model: Path, rows: Path, folder: Path, runs: int = 2) -> float:
    """The processor time of `qwyc predict` in a process of its own, without that of one row."""

    def spent(*arguments: object) -> float:
        before = getrusage(RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "qwyc", "predict", *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True)
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    import pyarrow.parquet

    one = folder / "one.parquet"
    first = decoded(rows, rows.suffix[1:])[0].slice(0, 1)
    pyarrow.parquet.write_table(pyarrow.Table.from_batches([first]), one)
    out = folder / "out.csv"
    alone = min(spent(model, one, "-o", out) for _ in range(runs))
    return min(spent(model, rows, "-o", out) for _ in range(runs)) - alone


if __name__ == "__main__":
    main()
