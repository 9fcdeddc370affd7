"""A process that measures one installation of qwyc: `PYTHON worker.py CORE`.

It runs under the Python of that installation, so it uses NumPy, the standard library and names of qwyc that
older versions have too. Requests come as lines of JSON on the standard input, and answers leave as lines of
JSON on the standard output. Between requests the process waits and takes no processor time."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import qwyc

BLOCK_ROWS = 2_048  # a block of calls covers at least so many rows, and always the same ones
CHECKED_ROWS = 4_096  # compared with the answers of one large batch, at every size
ONE = "predict_one"
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


class Bench:
    """The open case: its classifier and its rows."""

    def __init__(self) -> None:
        self.ways: dict[str, Any] = {}
        self.rows: Any = None  # (N, n_features) in the layout that was asked for
        self.blocks: dict[int | str, list[Any]] = {}

    def open(
        self, file: str, full_file: str | None, rows: str, layout: str, dtype: str
    ) -> dict[str, Any]:
        """Read a `.qwyc` file and rows. `full_file`: the same classifier, never quitting, for versions that
        cannot make it from the first."""
        fast = qwyc.load(file)
        self.ways = {
            "quitting": fast,
            "full": fast.full() if full_file is None else qwyc.load(full_file),
        }
        order: Any = "F" if layout == "columns" else "C"
        self.rows = np.array(np.load(rows), dtype=dtype, order=order)
        self.blocks = {}
        return {"n_models": int(fast.policy.n_models)}

    def answers(self, sizes: list[int | str], to: str) -> dict[str, Any]:
        """Write what both ways answer for all rows in one batch. Batches of every size, and single rows,
        must get the same: the sizes where they do not are returned."""
        found, wrong = {}, []
        for way, classifier in self.ways.items():
            whole = classifier.decide(self.rows, threads=1)
            for name in ("label", "steps", "score", "complete"):
                found[f"{way} {name}"] = np.asarray(getattr(whole, name))
            for size in sizes:
                if not self._same(classifier, whole, size):
                    wrong.append(f"{way}, {size} rows per call")
        np.savez(to, **found)
        return {"wrong": wrong}

    def _same(self, classifier: Any, whole: Any, size: int | str) -> bool:
        n = min(CHECKED_ROWS, len(self.rows))
        if size == ONE:
            labels = [classifier.predict_one(row) for row in self.rows[:n]]
            return bool(np.array_equal(labels, whole.label[:n]))
        step = int(size)
        for begin in range(0, max(n, step), step):
            part = classifier.decide(self.rows[begin : begin + step], threads=1)
            same = slice(begin, begin + step)
            for name in ("label", "steps", "score", "complete"):
                if not np.array_equal(getattr(part, name), getattr(whole, name)[same]):
                    return False
        return True

    def time(
        self, way: str, size: int | str, seconds: float, clock: str, least: int
    ) -> dict[str, Any]:
        """Seconds of blocks of calls: as many blocks as fit into `seconds`, and at least `least`. Before
        them comes one that is not counted: it finds the caches full of another process's data."""
        call, parts = self._call(way, size), self._block(size)
        now = CLOCKS[clock]
        spent: list[float] = []
        gc.disable()
        _run(call, parts)
        end = time.perf_counter() + seconds
        while len(spent) < least or time.perf_counter() < end:
            started = now()
            _run(call, parts)
            spent.append(now() - started)
        gc.enable()
        return {"seconds": spent, "rows": len(parts) * (1 if size == ONE else int(size))}

    def _call(self, way: str, size: int | str) -> Callable[[Any], Any]:
        classifier = self.ways[way]
        if size == ONE:
            one: Callable[[Any], Any] = classifier.predict_one
            return one
        return lambda part: classifier.predict(part, threads=1)

    def _block(self, size: int | str) -> list[Any]:
        """The inputs of one block of calls."""
        if size not in self.blocks:
            if size == ONE:
                self.blocks[size] = list(self.rows[:BLOCK_ROWS])
            else:
                step = int(size)
                n = min(max(1, BLOCK_ROWS // step), max(1, len(self.rows) // step))
                self.blocks[size] = [self.rows[i * step : (i + 1) * step] for i in range(n)]
        return self.blocks[size]


def _run(call: Callable[[Any], Any], parts: list[Any]) -> None:
    for part in parts:
        call(part)


def main() -> None:
    """Answer requests until the input ends."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(sys.argv[1])})
    bench = Bench()
    about = {"version": qwyc.__version__, "where": os.path.dirname(qwyc.__file__)}
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(bench, request.pop("do"))(**request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
