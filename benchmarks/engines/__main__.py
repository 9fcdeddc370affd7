"""Rows per second in Spark, Ray and Dask on two cores, answers checked: `make bench-engines`."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc import distributed
from qwyc.check.benchmark import machine

from .clusters import ENGINES, WORKERS
from .contestants import Nothing, Sums, XGBoost
from .page import Engine, Run, write

TREES, DEPTH, LEARNING_RATE = 500, 5, 0.05
FILES = 8
NAMES = ("nothing", "XGBoost", "qwyc, full", "qwyc, quitting")


@dataclass(frozen=True)
class Case:
    """The model, its classifier, rows in files, and what the answers must add up to."""

    fast: Any
    content: bytes  # of the model's own file
    folder: Path
    features: list[str]
    expected: dict[str, Sums]
    differ: float  # share of held-out decisions that quitting changes


def make_case(rows: int, folder: Path) -> Case:
    """UCI Adult's 500 trees, and its test rows repeated in random order, as Parquet files."""
    import pyarrow
    import pyarrow.parquet

    from ..cache import trained
    from ..cases import TRAINING_ROWS, adult, train_xgboost
    from ..contest import ASKED, CONFIDENCE, enlarged

    model = trained(train_xgboost, trees=TREES, depth=DEPTH, learning_rate=LEARNING_RATE).model
    train, _, test = adult()
    fast = qwyc.optimize(
        model, train[TRAINING_ROWS:], alpha=ASKED, confidence=CONFIDENCE, progress=False
    )
    many = enlarged(test, rows)
    features = [f"f{i}" for i in range(many.shape[1])]
    for i, part in enumerate(np.array_split(many, FILES)):
        table = pyarrow.table(
            {"id": np.arange(len(part)), **dict(zip(features, part.T, strict=True))}
        )
        pyarrow.parquet.write_table(table, folder / f"{i}.parquet")
    own, early = model.predict(many), fast.predict(many)
    expected = {
        "nothing": Sums(rows, 0),
        "XGBoost": Sums(rows, int(own.sum())),
        "qwyc, full": Sums(rows, int(own.sum())),
        "qwyc, quitting": Sums(rows, int(early.sum())),
    }
    differ = float(np.mean(model.predict(test) != fast.predict(test)))
    content = bytes(model.get_booster().save_raw("ubj"))
    return Case(fast, content, folder, features, expected, differ)


def measure(name: str, case: Case, rounds: int) -> Engine:
    """One engine: what starting takes, then everyone in turn."""
    started = time.perf_counter()
    cluster = ENGINES[name]()
    start = time.perf_counter() - started
    fast = case.fast
    never = qwyc.Classifier(fast.ensemble, fast.policy.without_quitting(), fast.certificate)
    try:
        data = cluster.read(case.folder)
        ways = {
            "nothing": lambda: cluster.mapped(data, case.features, Nothing()),
            "XGBoost": lambda: cluster.mapped(data, case.features, XGBoost(case.content)),
            "qwyc, full": lambda: decided(never, data, case),
            "qwyc, quitting": lambda: decided(fast, data, case),
        }
        seconds: dict[str, list[float]] = {way: [] for way in NAMES}
        first = 0.0
        for turn in range(rounds + 1):  # the first is for warming up
            for way, make in ways.items():
                started = time.perf_counter()
                found = cluster.sums(make())
                took = time.perf_counter() - started
                if found != case.expected[way]:
                    raise SystemExit(f"{name}, {way}: {found}, expected {case.expected[way]}")
                if turn:
                    seconds[way].append(took)
                elif not first:
                    first = took
        key = distributed.pack(fast).key
        loaded = [each for each in cluster.arrivals(data) if each[1] == key]
    finally:
        cluster.stop()
    medians = {way: float(np.median(took)) for way, took in seconds.items()}
    return Engine(
        title=f"{cluster.title} {importlib.metadata.version(cluster.package)}",
        start=start,
        first=first - medians["nothing"],
        seconds=medians,
        processes=len({each[0] for each in loaded}),
        loads=len(loaded),
        loading=float(np.median([each[2] for each in loaded])),
    )


def decided(classifier: Any, data: Any, case: Case) -> Any:
    """The data set with decisions, and no other column kept."""
    return distributed.decide(classifier, data, columns=case.features, keep=[])


def without_engine(case: Case, rounds: int) -> dict[str, float]:
    """Seconds for the same files in one process on one thread: Parquet to Arrow to labels."""
    import pyarrow.parquet

    work = XGBoost(case.content)
    ways = {
        "nothing": lambda table: table.num_rows,
        "XGBoost": lambda table: work(table)["label"],
        "qwyc, quitting": lambda table: case.fast.predict(table, threads=1),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, call in ways.items():
            started = time.perf_counter()
            for path in sorted(case.folder.glob("*.parquet")):
                call(pyarrow.parquet.read_table(path, columns=case.features, use_threads=False))
            seconds[way].append(time.perf_counter() - started)
    return {way: float(np.median(took)) for way, took in seconds.items()}


def main() -> None:
    """Measure, check, and write a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=tuple(ENGINES), default=tuple(ENGINES))
    parser.add_argument("--output", type=Path, default=Path("bench-results"), help="a folder")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(chosen.rows, Path(folder))
        on_disk = sum(path.stat().st_size for path in case.folder.glob("*.parquet"))
        run = Run(
            machine=machine(),
            rows=chosen.rows,
            rounds=chosen.rounds,
            workers=WORKERS,
            features=len(case.features),
            disk_bytes=on_disk / chosen.rows,
            parcel_bytes=len(distributed.pack(case.fast).content),
            mean_models=float(case.fast.certificate.mean_models),
            differ=case.differ,
            alone=without_engine(case, chosen.rounds),
            engines=[measure(name, case, chosen.rounds) for name in chosen.only],
        )
    write(run, chosen.output)


if __name__ == "__main__":
    main()
