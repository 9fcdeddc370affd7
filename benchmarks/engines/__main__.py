"""Processor time per row in Spark, Ray and Dask, answers checked: `make bench-engines`."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc import distributed
from qwyc.check.benchmark import machine

from .clusters import ENGINES, WORKERS
from .cpu_time import cpu_times, seconds_between
from .page import CHECKS, COUNTED, WRITTEN, Data, Engine, Run, Took, write
from .rows import CASES, Case

Way = Callable[[], None]  # runs a job, and raises SystemExit where its answer is wrong


def measure(name: str, cases: list[Case], rounds: int, scratch: Path) -> Engine:
    """One engine: what starting takes, then everyone in turn."""
    started = time.perf_counter()
    cluster = ENGINES[name]()
    start = time.perf_counter() - started
    first, found = 0.0, {}
    try:
        for case in cases:
            data = cluster.read(case.folder)
            ways = ways_of(cluster, data, case, scratch)
            took: dict[str, list[Took]] = {way: [] for way in ways}
            for turn in range(rounds + 1):  # the first is for warming up
                for way, run in ways.items():
                    before, started = cpu_times(), time.perf_counter()
                    run()
                    wall = time.perf_counter() - started
                    if turn:
                        took[way].append(Took(wall, seconds_between(before, cpu_times())))
                    first = first or wall
            found[case.title] = {way: Took.median(each) for way, each in took.items()}
        data, fast = cluster.read(cases[0].folder), cases[0].fast
        key = distributed.pack(fast).key
        loaded = [each for each in cluster.arrivals(data) if each[1] == key]
    finally:
        cluster.stop()
    return Engine(
        title=f"{cluster.title} {importlib.metadata.version(cluster.package)}",
        start=start,
        first=first - found[cases[0].title]["nothing"].wall,
        took=found,
        processes=len({each[0] for each in loaded}),
        loads=len(loaded),
        loading=float(np.median([each[2] for each in loaded])),
    )


def ways_of(cluster: Any, data: Any, case: Case, scratch: Path) -> dict[str, Way]:
    """What is measured, by name."""
    fast, features = case.fast, case.features
    never = qwyc.Classifier(fast.ensemble, fast.policy.without_quitting(), fast.certificate)

    def counting(name: str, make: Callable[[], Any]) -> Way:
        def run() -> None:
            _check(case, name, cluster.sums(make()), case.expected[name])

        return run

    def decided(classifier: Any, keep: list[str]) -> Any:
        return distributed.decide(classifier, data, columns=features, keep=keep)

    def to_files() -> None:
        folder = scratch / "decided"
        shutil.rmtree(folder, ignore_errors=True)
        cluster.write(decided(fast, ["id"]), folder)

    # A model without names takes all columns of a data set.
    own_columns = cluster.select(data, features)

    def verify() -> None:
        _check(case, "verify", qwyc.verify(fast, own_columns, alpha=0.5).counts.rows, case.rows)

    def recertify() -> None:
        again = qwyc.recertify(fast, own_columns, alpha=0.05)
        _check(case, "recertify", again.certificate.rows, case.rows)

    makers = {
        "nothing": lambda: cluster.mapped(data, features, case.nothing),
        "XGBoost": lambda: cluster.mapped(data, features, case.own),
        "qwyc, full": lambda: decided(never, []),
        "qwyc, quitting": lambda: decided(fast, []),
    }
    ways = {name: counting(name, make) for name, make in makers.items()}
    return {**ways, WRITTEN: to_files, "verify": verify, "recertify": recertify}


def _check(case: Case, name: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise SystemExit(f"{case.title}, {name}: {found}, expected {expected}")


def without_engine(case: Case, rounds: int) -> dict[str, Took]:
    """The same files in one process on one thread: Parquet to Arrow to labels."""
    import pyarrow.parquet

    ways: dict[str, Callable[[Any], Any]] = {
        "nothing": lambda table: table.num_rows,
        "XGBoost": lambda table: case.own(table)["label"],
        "qwyc, full": lambda table: case.fast.full().predict(table, threads=1),
        "qwyc, quitting": lambda table: case.fast.predict(table, threads=1),
    }
    took: dict[str, list[Took]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, call in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            for path in sorted(case.folder.glob("*.parquet")):
                call(pyarrow.parquet.read_table(path, columns=case.features, use_threads=False))
            took[way].append(Took(time.perf_counter() - wall, time.process_time() - cpu))
    return {way: Took.median(each) for way, each in took.items()}


def written_bytes(case: Case, folder: Path) -> float:
    """Bytes per row of a key and the four columns, as Parquet."""
    import pyarrow
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(case.folder / "0.parquet")
    decisions = case.fast.decide(rows.select(case.features))
    names = ("label", "steps", "score", "complete")
    table = pyarrow.table({"id": rows["id"], **{name: getattr(decisions, name) for name in names}})
    pyarrow.parquet.write_table(table, folder / "decided.parquet")
    return (folder / "decided.parquet").stat().st_size / len(table)


def main() -> None:
    """Measure, check, and write a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=tuple(ENGINES), default=tuple(ENGINES))
    parser.add_argument("--output", type=Path, default=Path("bench-results"), help="a folder")
    parser.add_argument("--document", type=Path, help="a page whose measured part is replaced")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        scratch, cases = Path(name), []
        for title, make in CASES.items():
            (scratch / title).mkdir()
            cases.append(make(chosen.rows, scratch / title))
        data = [
            Data(
                title=case.title,
                features=len(case.features),
                disk_bytes=case.disk_bytes,
                arrow_bytes=case.arrow_bytes,
                written_bytes=written_bytes(case, scratch),
                parcel_bytes=len(distributed.pack(case.fast).content),
                mean_models=float(case.fast.certificate.mean_models),
                differ=case.differ,
                alone=without_engine(case, chosen.rounds),
            )
            for case in cases
        ]
        run = Run(
            machine=machine(),
            rows=chosen.rows,
            rounds=chosen.rounds,
            workers=WORKERS,
            data=data,
            engines=[measure(name, cases, chosen.rounds, scratch) for name in chosen.only],
        )
    assert {*COUNTED, WRITTEN, *CHECKS} == set(run.engines[0].took[cases[0].title])
    write(run, chosen.output, chosen.document)


if __name__ == "__main__":
    main()
