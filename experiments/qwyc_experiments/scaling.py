"""How the time to fit grows with base models T and rows N.

    python -m qwyc_experiments.scaling [--models 100 500] [--rows 10000 30000 100000] [--threads 2]
        [--only joint path optimize]

Scores are those of an XGBoost model on Covertype rows that it was not trained on, drawn with repetition if
more are asked for than there are. "joint" is Algorithm 1; "path" the default order and whole path; both
on all of the rows. "optimize" is all of `optimize` with method "auto": scores, the proof of parity, a path
fitted on 20,000 rows at most, and the certificate on the others. CPU is that of both threads together.
Memory is the process's peak so far beside what was said up front.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import xgboost
from rich.console import Console

import qwyc

from .frontier import covertype
from .internals import memory_needed, memory_to_fit_path

WAYS = ["joint", "path", "optimize"]


class Clock:
    """Seconds since it was made, on the wall and of all threads."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return f"{wall:.1f} s (CPU {cpu:.1f} s)"


def main() -> None:
    """Train once per T, fit at every N, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alpha", type=float, default=0.005)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    console = Console(width=110)
    X, y = covertype()
    rng = np.random.default_rng(0)
    shared = {"threads": options.threads, "progress": False}
    for T in options.models:
        model = xgboost.XGBClassifier(
            n_estimators=T, max_depth=5, learning_rate=50 / T if T > 500 else 0.1
        )
        ensemble = qwyc.read_model(model.fit(X[:100_000], y[:100_000]))
        for N in options.rows:
            pool = np.arange(100_000, len(X))
            rows = X[rng.choice(pool, size=N, replace=len(pool) < N)]
            line = f"T {T:,}, N {N:,}"
            if "optimize" in options.only:
                clock = Clock()
                fast = qwyc.optimize(model, rows, alpha=options.alpha, **shared)
                line += (
                    f", optimize {clock} ({fast.certificate.mean_models:.1f} base models per row"
                )
                line += f", {memory_needed(N, T) / 1e9:.2f} GB said)"
                del fast
            if options.only != ["optimize"]:
                clock = Clock()
                scores = ensemble.scores(rows, threads=options.threads)
                line += f", scores {clock}"
            if "joint" in options.only:
                clock = Clock()
                policy = qwyc.fit_policy(scores, alpha=options.alpha, **shared)
                line += f", joint {clock}"
                line += f" ({policy.apply(scores).steps.mean():.1f} base models per row)"
            if "path" in options.only:
                clock = Clock()
                path = qwyc.fit_path(scores, **shared)
                line += (
                    f", path {clock} ({len(path)} members, {memory_to_fit_path(N, T) / 1e9:.2f} GB"
                )
                line += " said beside the scores)"
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            console.print(
                f"{line}; peak {peak:.2f} GB, the features {rows.nbytes / 1e9:.2f} GB of it"
            )


if __name__ == "__main__":
    main()
