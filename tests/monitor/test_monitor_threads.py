"""64 threads that decide, load and monitor at once; `make sanitize` runs it under ThreadSanitizer."""

import threading

import numpy as np

import qwyc
from monitored import bold, rows_for

THREADS = 64
CALLS = 6


def test_deciding_loading_and_monitoring_at_once(tmp_path):
    fast = bold()
    rows = rows_for(fast, n=400)
    fast.save(tmp_path / "fast.qwyc")
    expected = fast.predict(rows)
    monitor = qwyc.Monitor(fast, rate=0.5)
    wrong, seen = [], []

    def work(number):
        rng, decided = np.random.default_rng(number), 0
        for _ in range(CALLS):
            first = int(rng.integers(len(rows) - 40))
            part, label = rows[first : first + 40], expected[first : first + 40]
            kind = rng.integers(5)
            if kind == 0:
                found = monitor.predict(part)
                decided += len(part)
            elif kind == 1:
                found = [monitor.predict_one(row) for row in part]
                decided += len(part)
            elif kind == 2:
                found = qwyc.load(tmp_path / "fast.qwyc").predict(part)
            elif kind == 3:
                monitor.metrics()
                monitor.save(tmp_path / f"monitor-{number}.json")
                found = fast.predict(part)
            else:
                found = fast.predict(part, threads=2)
            if not np.array_equal(found, label):
                wrong.append((number, kind))
        seen.append(decided)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert len(seen) == THREADS  # no thread ended with an error
    assert monitor.rows_seen == sum(seen) > 0  # each row was counted once
    again = qwyc.Monitor.load(next(tmp_path.glob("monitor-*.json")), fast)
    assert 0 <= again.rows_seen <= monitor.rows_seen
