"""Mixed calls on several threads for some time: latencies by kind of call, and memory that stays flat.

    python -m benchmarks.soak [--minutes 10] [--threads 4] [--tiny]

Every answer is compared with the one from before the run. The threads share one classifier. Memory is the
resident size after a tenth of the time, when all caches are filled, and at the end; the run fails if it
grows by more than 16 MB, or if an answer changes. Other work on the machine lengthens the latencies."""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import machine

GROWTH = 16 << 20  # bytes
KEPT = 200_000  # latencies of one kind and thread
Call = tuple[str, Callable[[], Any], Any]  # its kind, what is called, and the right answer


def main() -> int:
    """Print a table; 1 where memory grows or an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--tiny", action="store_true", help="only see that it runs: 5 seconds")
    chosen = parser.parse_args()
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    seconds = 5.0 if chosen.tiny else 60 * chosen.minutes
    latencies, wrong, early, late = soak(seconds, chosen.threads)
    print(f"{chosen.threads} threads, {seconds:.0f} s")
    print(f"{'call':<16} {'calls':>10} {'median':>9} {'99%':>9} {'99.9%':>9} {'most':>9}  ms")
    for kind, seen in sorted(latencies.items()):
        points = [*np.percentile(seen, [50, 99, 99.9]), max(seen)]
        print(f"{kind:<16} {len(seen):>10,}", *(f"{1e3 * point:>9.3f}" for point in points))
    print(
        f"memory {early / 2**20:.1f} MB after a tenth of the time, {late / 2**20:.1f} MB at the end"
    )
    print(f"wrong answers: {len(wrong)}", *wrong[:5])
    return int(bool(wrong) or late - early > GROWTH)


def soak(seconds: float, threads: int) -> tuple[dict[str, list[float]], list[str], int, int]:
    """Seconds of each call by kind, wrong answers, and the memory early and late."""
    latencies: dict[str, list[float]] = defaultdict(list)
    wrong: list[str] = []
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder:
        calls = calls_on(Path(folder))
        end = time.monotonic() + seconds

        def work(number: int) -> None:
            rng, own = np.random.default_rng(number), defaultdict(list)
            while time.monotonic() < end:
                kind, call, expected = calls[rng.integers(len(calls))]
                start = time.perf_counter()
                found = call()
                if len(own[kind]) < KEPT:
                    own[kind].append(time.perf_counter() - start)
                if not np.array_equal(found, expected):
                    wrong.append(kind)
            with lock:
                for kind, seen in own.items():
                    latencies[kind] += seen

        workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        time.sleep(seconds / 10)
        early = resident()
        for worker in workers:
            worker.join()
    # The latencies themselves are the run's own.
    kept = 32 * sum(len(seen) for seen in latencies.values())
    gc.collect()
    return latencies, wrong, early, max(resident() - kept, 0)


def calls_on(folder: Path) -> list[Call]:
    """Calls of every kind on one classifier, with their answers."""
    import pandas as pd
    import xgboost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 20)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1).fit(X[:4000], y[:4000])
    fast = qwyc.optimize(model, X[4000:9000], alpha=0.02)
    rows = X[9000:]
    frame = pd.DataFrame(rows)
    path = folder / "fast.qwyc"
    fast.save(path)
    label = fast.predict(rows)

    def save_and_load() -> Any:
        own = folder / f"{threading.get_ident()}.qwyc"
        fast.save(own)
        return qwyc.load(own).predict(rows[:50])

    def refused() -> Any:
        try:
            fast.predict(rows[:5, :7])
        except qwyc.InputError:
            return True
        return False

    return [
        ("predict 1", lambda: fast.predict(rows[:1]), label[:1]),
        ("predict 100", lambda: fast.predict(rows[:100]), label[:100]),
        ("predict 3,000", lambda: fast.predict(rows), label),
        ("predict frame", lambda: fast.predict(frame), label),
        ("predict_one", lambda: fast.predict_one(rows[3]), label[3]),
        ("score_full", lambda: fast.score_full(rows[:500]), fast.score_full(rows[:500])),
        ("load", lambda: qwyc.load(path).predict(rows[:50]), label[:50]),
        ("save and load", save_and_load, label[:50]),
        ("refused rows", refused, True),
    ]


def resident() -> int:
    """The memory that this process holds, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main())
