"""examples/serving/app.py under more requests than it takes: none is lost, and none is answered wrongly.

    python -m benchmarks.served [--seconds 20] [--connections 64] [--at-once 8] [--pause 0]

A server of one process runs beside clients that send the next request as soon as the last one is answered,
and after a pause if it was refused. Every answer must be the right label, or 503 if the server refuses the
request; anything else is counted as lost. At the end, the server must have counted as many rows as clients
got labels."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import qwyc
from qwyc.check.benchmark import machine

APP = Path(__file__).parents[1] / "examples" / "serving"
JSON = {"Content-Type": "application/json"}
SECONDS_TO_START = 60
SECONDS_TO_ANSWER = 30


@dataclass
class Seen:
    """What the clients saw. `answers` counts statuses, and "wrong" and "lost"."""

    answers: Counter[str] = field(default_factory=Counter)
    latencies: dict[str, list[float]] = field(default_factory=lambda: {"200": [], "503": []})
    counted: int = 0  # rows, by the server
    seconds: float = 0.0


def main() -> int:
    """Print a table; 1 where an answer is wrong or lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0, help="seconds after a refusal")
    chosen = parser.parse_args()
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    seen = overload(chosen.seconds, chosen.connections, chosen.at_once, chosen.pause)
    print(
        f"{chosen.connections} connections, {chosen.at_once} requests at once, pause {chosen.pause} s"
    )
    for status, name in (("200", "answered"), ("503", "refused")):
        times = np.array(seen.latencies[status] or [np.nan]) * 1e3
        print(
            f"{name:<9} {seen.answers[status]:>9,} {seen.answers[status] / seen.seconds:>9,.0f} a second, "
            f"median {np.median(times):.1f} ms, 99% {np.percentile(times, 99):.1f} ms"
        )
    print(f"wrong {seen.answers['wrong']}, lost {seen.answers['lost']}, counted {seen.counted:,}")
    return int(not sound(seen))


def sound(seen: Seen) -> bool:
    """Whether every request was answered rightly or refused, and each answer was counted once."""
    others = set(seen.answers) - {"200", "503"}
    return not others and seen.counted == seen.answers["200"]


def overload(
    seconds: float, connections: int, at_once: int, pause: float = 0.0, each: float = np.inf
) -> Seen:
    """Start the server and load it from threads, each with a connection of its own, for so many seconds,
    or until `each` requests were decided and as many refused."""
    with tempfile.TemporaryDirectory() as folder:
        requests = _requests(Path(folder))
        with _server(Path(folder), at_once) as port:
            seen, lock, so_far = Seen(), threading.Lock(), Counter[str]()
            start = time.monotonic()

            def goes_on(status: str) -> bool:
                with lock:
                    so_far[status] += 1
                    enough = min(so_far["200"], so_far["503"]) >= each
                return not enough and time.monotonic() < start + seconds

            def work(number: int) -> None:
                own = _sent(port, requests, number, goes_on, pause)
                with lock:
                    seen.answers += own.answers
                    for status, times in own.latencies.items():
                        seen.latencies[status] += times

            workers = [threading.Thread(target=work, args=(i,)) for i in range(connections)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            seen.seconds = time.monotonic() - start
            seen.counted = _counted(port)
    return seen


def _requests(folder: Path) -> list[tuple[bytes, object]]:
    """Save a classifier as model.qwyc; bodies of requests and the label of each."""
    import pandas as pd
    import xgboost

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(9000, 10)), columns=list("abcdefghij"))
    y = (X["a"] + X["b"] * X["c"] + rng.normal(size=len(X)) > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1).fit(X[:4000], y[:4000])
    fast = qwyc.optimize(model, X[4000:8000], alpha=0.02, evaluation="quit", progress=False)
    fast.save(folder / "model.qwyc")
    rows = X[8000:]
    bodies = [json.dumps(row).encode() for row in rows.to_dict(orient="records")]
    return list(zip(bodies, fast.predict(rows).tolist(), strict=True))


@contextmanager
def _server(folder: Path, at_once: int) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--app-dir", str(APP), "--port", str(port), "--log-level", "warning"]
    environment = {"QWYC_FILE": str(folder / "model.qwyc"), "QWYC_AT_ONCE": str(at_once)}
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "app:app", *options], env=os.environ | environment
    )
    try:
        end = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                _counted(port)
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > end:
                    raise SystemExit("the server does not start; see its messages above") from None
                time.sleep(0.1)
        yield port
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()


def _counted(port: int) -> int:
    """The rows that the server's monitor has seen."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_TO_ANSWER)
    connection.request("GET", "/metrics")
    found = re.search(r"^qwyc_rows_total (\d+)", connection.getresponse().read().decode(), re.M)
    connection.close()
    assert found is not None
    return int(found[1])


def _sent(
    port: int,
    requests: list[tuple[bytes, object]],
    number: int,
    goes_on: Callable[[str], bool],
    pause: float,
) -> Seen:
    """What one client saw."""
    rng, seen = np.random.default_rng(number), Seen()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_TO_ANSWER)
    status = ""
    while goes_on(status):
        body, label = requests[rng.integers(len(requests))]
        start = time.perf_counter()
        try:
            connection.request("POST", "/predict", body, JSON)
            answer = connection.getresponse()
            status, content = str(answer.status), json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            status = "lost"
            seen.answers[status] += 1
            connection.close()
            continue
        if status == "200" and content != {"label": label}:
            status = "wrong"
        seen.answers[status] += 1
        if status in seen.latencies:
            seen.latencies[status].append(time.perf_counter() - start)
        if status == "503" and pause:
            time.sleep(pause * rng.uniform(0.5, 1.5))
    connection.close()
    return seen


if __name__ == "__main__":
    sys.exit(main())
