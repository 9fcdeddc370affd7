"""Sparse rows, as text and one-hot columns give them, in CSR: against XGBoost and LightGBM themselves.

    python -m benchmarks.sparse [--quick | --tiny] [--cpu-time]

One thread. Every row has 40 words of 5,000, the frequent ones more often, with a weight each. XGBoost is
asked by `inplace_predict` on CSR, LightGBM by `predict` on CSR, qwyc by `score_full` and by `predict`,
which quits. Everybody's answers are checked first: full scores must be the library's own, bit for bit."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

import qwyc
from qwyc.check.benchmark import FULL, QUITTING, machine
from qwyc.runtime.timing import Contestant, Timing, interleave

from . import peers, report
from .cache import trained
from .contest import WrongAnswer

ALPHA = 0.005
WORDS_A_ROW = 40


@dataclass(frozen=True)
class Size:
    """How much is run."""

    columns: int
    trees: int
    training_rows: int
    sample_rows: int
    rows: int
    seconds: float


SIZES = {
    "full": Size(5_000, 300, 20_000, 40_000, 100_000, 8.0),
    "quick": Size(5_000, 100, 10_000, 20_000, 20_000, 1.0),
    "tiny": Size(300, 10, 800, 2_000, 2_000, 0.01),
}


def texts(n: int, columns: int, seed: int) -> tuple[Any, Any]:
    """Rows (n, columns) in CSR, float32, and their classes, which half of the words decide with noise."""
    scipy_sparse, _ = peers.library("scipy.sparse", "scipy")
    rng, word = np.random.default_rng(seed), np.random.default_rng(0)
    share = 1 / (np.arange(columns) + 10.0)
    column = rng.choice(columns, size=(n, WORDS_A_ROW), p=share / share.sum())
    value = (0.1 + rng.random(column.shape)).astype(np.float32)
    row = np.repeat(np.arange(n), WORDS_A_ROW)
    rows = scipy_sparse.csr_matrix((value.ravel(), (row, column.ravel())), shape=(n, columns))
    weight = word.normal(size=columns) * (word.random(columns) < 0.5)
    return rows, (rows @ weight + 0.5 * rng.normal(size=n) > 0).astype(int)


def train_xgboost(columns: int, trees: int, rows: int) -> Any:
    """A classifier of depth 6."""
    xgboost, _ = peers.library("xgboost", "xgboost-cpu")
    return xgboost.XGBClassifier(n_estimators=trees, max_depth=6, n_jobs=1).fit(
        *texts(rows, columns, 1)
    )


def train_lightgbm(columns: int, trees: int, rows: int) -> Any:
    """A classifier of 31 leaves a tree."""
    lightgbm, _ = peers.library("lightgbm")
    return lightgbm.LGBMClassifier(n_estimators=trees, n_jobs=1, verbose=-1).fit(
        *texts(rows, columns, 1)
    )


def xgboost_scores(model: Any) -> Callable[[Any], Any]:
    """XGBoost's own scores of CSR rows, on one thread."""
    booster = model.get_booster()
    booster.set_param({"nthread": 1})
    return partial(booster.inplace_predict, predict_type="margin", validate_features=False)


def lightgbm_scores(model: Any) -> Callable[[Any], Any]:
    """LightGBM's own scores of CSR rows, on one thread."""
    return partial(model.booster_.predict, raw_score=True, num_threads=1, validate_features=False)


LIBRARIES = {
    "XGBoost": (train_xgboost, xgboost_scores, ("xgboost", "xgboost-cpu")),
    "LightGBM": (train_lightgbm, lightgbm_scores, ("lightgbm",)),
}


@dataclass(frozen=True)
class Result:
    """What was found about one library."""

    library: str
    version: str
    used: int  # columns that trees look at
    timings: dict[str, Timing]
    mean_models: float
    differ: int  # early decisions unlike the model's own

    @property
    def rows(self) -> list[list[str]]:
        """Of the table."""
        own = self.timings[self.library].microseconds
        lines = []
        for name, timing in self.timings.items():
            version = self.version if name == self.library else qwyc.__version__
            differ = f"{self.differ:,} ({self.differ / timing.rows:.2%})"
            lines.append(
                [
                    f"{name} {version}",
                    f"{timing.microseconds:.2f}",
                    f"{own / timing.microseconds:.1f}",
                    differ if name == QUITTING else "0",
                ]
            )
        return lines


def contest(library: str, size: Size, clock: Callable[[], float]) -> Result:
    """The library's answers and ours, checked; then everyone timed in turn."""
    train, scores_of, packages = LIBRARIES[library]
    _, version = peers.library(*packages)
    model = trained(train, columns=size.columns, trees=size.trees, rows=size.training_rows).model
    own = scores_of(model)
    rows, _ = texts(size.rows, size.columns, 2)
    sample, _ = texts(size.sample_rows, size.columns, 3)
    fast = qwyc.optimize(model, sample, alpha=ALPHA, evaluation="quit", threads=1, progress=False)
    if not np.array_equal(np.asarray(fast.score_full(rows), np.float64), own(rows)):
        raise WrongAnswer(f"the full scores of {library} are not its own")
    decided = fast.decide(rows, threads=1)
    timings = interleave(
        {
            library: Contestant(own, [rows], size.rows),
            FULL: Contestant(partial(fast.score_full, threads=1), [rows], size.rows),
            QUITTING: Contestant(partial(fast.predict, threads=1), [rows], size.rows),
        },
        seconds=size.seconds,
        clock=clock,
    )
    used = len(np.unique(fast.ensemble.base_models.feature_needs()[1]))
    differ = int((decided.label != model.predict(rows)).sum())
    return Result(library, version, used, timings, float(decided.steps.mean()), differ)


def main() -> None:
    """Print a table for each library."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__)
    chosen_size = parser.add_mutually_exclusive_group()
    for name in ("quick", "tiny"):
        chosen_size.add_argument(f"--{name}", action="store_const", const=name, dest="size")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    size = SIZES[chosen.size or "full"]
    console = Console(width=120, highlight=False)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()))
    for library in LIBRARIES:
        result = contest(library, size, time.process_time if chosen.cpu_time else time.perf_counter)
        title = (
            f"\n{library}, {size.trees} trees; {size.rows:,} rows of {size.columns:,} columns in CSR, "
            f"{WORDS_A_ROW} entries a row; 1 thread"
        )
        header = ["", "µs per row", f"times as fast as {library}", "decisions that differ"]
        report.show(console, title, header, result.rows)
        console.print(
            f"Trees look at {result.used:,} columns. Quitting takes {result.mean_models:.1f} of "
            f"{size.trees} base models per row, alpha = {ALPHA:.1%}; decisions are compared with "
            f"{library}'s own on rows that neither the model nor the policy was fitted on."
        )


if __name__ == "__main__":
    main()
