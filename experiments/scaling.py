"""How the time to fit grows with base models T and rows N.

    python -m qwyc.experiments.scaling [--models 100 500] [--rows 10000 30000 100000] [--threads 2]

Scores are those of an XGBoost model on Covertype rows that it was not trained on. "joint" is Algorithm 1;
"path" is the default method's order and whole path; both on all of the rows (`optimize` fits its path on
20,000 at most). Memory is the process's peak so far beside what was said up front.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import xgboost
from rich.console import Console

import qwyc
from qwyc.capacity import memory_needed

from .frontier import covertype


def main() -> None:
    """Train once per T, fit at every N, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alpha", type=float, default=0.005)
    parser.add_argument("--only", choices=["joint", "path"], default=None)
    options = parser.parse_args()
    console = Console(width=110)
    X, y = covertype()
    rng = np.random.default_rng(0)
    for T in options.models:
        model = xgboost.XGBClassifier(
            n_estimators=T, max_depth=5, learning_rate=50 / T if T > 500 else 0.1
        )
        ensemble = qwyc.read_model(model.fit(X[:100_000], y[:100_000]))
        for N in options.rows:
            pool = np.arange(100_000, len(X))
            rows = X[rng.choice(pool, size=N, replace=len(pool) < N)]
            started = time.perf_counter()
            scores = ensemble.scores(rows, threads=options.threads)
            line = f"T {T:,}, N {N:,}: scores {time.perf_counter() - started:.1f} s"
            shared = {"threads": options.threads, "progress": False}
            if options.only != "path":
                started = time.perf_counter()
                policy = qwyc.fit_policy(scores, alpha=options.alpha, **shared)
                line += f", joint {time.perf_counter() - started:.1f} s"
                line += f" ({policy.apply(scores).steps.mean():.1f} base models per row)"
            if options.only != "joint":
                started = time.perf_counter()
                path = qwyc.fit_path(scores, **shared)
                line += f", path {time.perf_counter() - started:.1f} s ({len(path)} members)"
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            line += f"; peak {peak:.1f} GB, said {memory_needed(N, T) / 1e9:.1f} GB for the fit"
            console.print(line)


if __name__ == "__main__":
    main()
