"""Sparse rows, as text and one-hot columns give them, in CSR: against XGBoost, LightGBM and the libraries
that run their models. A part of `make bench`, or

    python -m benchmarks.sparse [--quick | --tiny] [--cpu-time]

One thread. Every row has 40 words of 5,000, the frequent ones more often, with a weight each. XGBoost is
asked by `inplace_predict` on CSR, LightGBM by `predict` on CSR, qwyc by `score_full` and by `predict`,
which quits. Treelite and TL2cgen get CSR too (TL2cgen in its own form, made beforehand). ONNX Runtime has
no sparse rows: it gets dense blocks, and making them is timed, since somebody has to. Everybody's answers
are checked first: full scores of qwyc must be the library's own, bit for bit; who decides many rows
differently does not evaluate the same model and is left out."""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

import qwyc
from qwyc.check.benchmark import FULL, QUITTING, machine
from qwyc.runtime.timing import Contestant, Timing, interleave

from . import peers, report
from .cache import Trained, trained
from .contest import WrongAnswer
from .peers import LeftOut, Peer

NAME = "sparse"
ALPHA = 0.005
WORDS_A_ROW = 40
MANY = 0.001  # of the decisions
DENSE_ROWS = 1000  # at a time


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


# ---- the libraries that evaluate others' models -----------------------------------------------


def tl2cgen(model: Trained, threads: int) -> Peer:
    """TL2cgen, whose own form of CSR is made beforehand."""
    module, _ = peers.library("tl2cgen")
    dtype = np.dtype(peers.as_treelite(model.model).input_type)

    def form(rows: Any) -> Any:
        rows = rows.astype(dtype)  # a copy, whose indices get the types that it takes
        rows.indices, rows.indptr = rows.indices.astype(np.uintc), rows.indptr.astype(np.uintp)
        return module.DMatrix(rows)

    return replace(peers.tl2cgen(model, threads), form=form)


def onnx_runtime(model: Trained, threads: int) -> Peer:
    """ONNX Runtime on blocks of dense rows, which are made while the clock runs. What is absent is missing
    for XGBoost and zero for LightGBM."""
    dense = peers.onnx_runtime(model, threads)
    assert dense.batch is not None
    one_block = dense.batch
    absent = np.nan if hasattr(model.model, "get_booster") else 0.0

    def predict(rows: Any) -> Any:
        labels = []
        for start in range(0, rows.shape[0], DENSE_ROWS):
            some = rows[start : start + DENSE_ROWS]
            block = np.full(some.shape, absent, np.float32)
            block[np.repeat(np.arange(some.shape[0]), np.diff(some.indptr)), some.indices] = (
                some.data
            )
            labels.append(one_block(block))
        return np.concatenate(labels)

    return replace(dense, batch=predict)


def treelite(model: Trained, threads: int) -> Peer:
    """Treelite's GTIL, which takes CSR as it is."""
    dtype = np.dtype(peers.as_treelite(model.model).input_type)
    return replace(peers.treelite(model, threads), form=lambda rows: rows.astype(dtype))


OTHERS = (treelite, tl2cgen, onnx_runtime)


@dataclass(frozen=True)
class Result:
    """What was found about one library."""

    library: str
    versions: dict[str, str]  # by contestant, as the next two
    timings: dict[str, Timing]
    differ: dict[str, int]  # decisions unlike the model's own
    used: int  # columns that trees look at
    mean_models: float
    left_out: dict[str, str]  # and why

    @property
    def rows(self) -> list[list[str]]:
        """Of the table."""
        own = self.timings[self.library].microseconds
        lines = []
        for name, timing in self.timings.items():
            differ = self.differ[name]
            lines.append(
                [
                    f"{name} {self.versions[name]}",
                    f"{timing.microseconds:.3g}",
                    f"{own / timing.microseconds:.2g}",
                    f"{differ:,} ({differ / timing.rows:.2%})" if differ else "0",
                ]
            )
        return lines


def contest(library: str, size: Size, clock: Callable[[], float]) -> Result:
    """The library's answers and everybody's, checked; then all are timed in turn."""
    train, scores_of, packages = LIBRARIES[library]
    _, version = peers.library(*packages)
    model = trained(train, columns=size.columns, trees=size.trees, rows=size.training_rows)
    own = scores_of(model.model)
    rows, _ = texts(size.rows, size.columns, 2)
    sample, _ = texts(size.sample_rows, size.columns, 3)
    fast = qwyc.optimize(
        model.model, sample, alpha=ALPHA, evaluation="quit", threads=1, progress=False
    )
    if not np.array_equal(np.asarray(fast.score_full(rows), np.float64), own(rows)):
        raise WrongAnswer(f"the full scores of {library} are not its own")
    decided, positive = fast.decide(rows, threads=1), own(rows) > 0
    contestants = {library: Contestant(own, [rows], size.rows)}
    versions, differ, left_out = {library: version}, {library: 0}, {}
    for prepare in OTHERS:
        try:
            peer = prepare(model, 1)
        except LeftOut as reason:
            left_out[prepare.__name__] = str(reason)
            continue
        assert peer.batch is not None
        form = peer.form(rows)
        unlike = int((peer.positive(peer.batch(form)) != positive).sum())
        if unlike > MANY * size.rows:
            left_out[peer.name] = f"it decides {unlike:,} of {size.rows:,} rows differently"
            continue
        versions[peer.name], differ[peer.name] = peer.version, unlike
        contestants[peer.name] = Contestant(peer.batch, [form], size.rows)
    contestants[FULL] = Contestant(partial(fast.score_full, threads=1), [rows], size.rows)
    contestants[QUITTING] = Contestant(partial(fast.predict, threads=1), [rows], size.rows)
    versions |= {FULL: qwyc.__version__, QUITTING: qwyc.__version__}
    differ |= {FULL: 0, QUITTING: int((decided.label != positive).sum())}
    timings = interleave(contestants, seconds=size.seconds, clock=clock)
    used = len(np.unique(fast.ensemble.base_models.feature_needs()[1]))
    steps = float(decided.steps.mean())
    return Result(library, versions, timings, differ, used, steps, left_out)


def run_all(console: Console, size: Size, clock: Callable[[], float]) -> str:
    """Print a table for each library, and give all of it in Markdown."""
    page = []
    for library in LIBRARIES:
        with console.status(f"{NAME}: {library} ..."):
            result = contest(library, size, clock)
        title = (
            f"{library}, {size.trees} trees; {size.rows:,} rows of {size.columns:,} columns in CSR, "
            f"{WORDS_A_ROW} entries a row; 1 thread"
        )
        header = ["", "µs per row", f"times as fast as {library}", "decisions that differ"]
        report.show(console, f"\n{title}", header, result.rows)
        words = [
            f"Trees look at {result.used:,} columns. Quitting takes {result.mean_models:.1f} of "
            f"{size.trees} base models per row, alpha = {ALPHA:.1%}; decisions are compared with "
            f"{library}'s own on rows that neither the model nor the policy was fitted on.",
            *[f"Left out: {who}: {why}." for who, why in result.left_out.items()],
        ]
        console.print("\n".join(words))
        lines = [header, ["---"] * len(header), *result.rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        page.append("\n\n".join([f"{title}:", table, *words]))
    return "\n\n".join(page) + "\n"


def main() -> None:
    """Print a table for each library."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__)
    chosen_size = parser.add_mutually_exclusive_group()
    for name in ("quick", "tiny"):
        chosen_size.add_argument(f"--{name}", action="store_const", const=name, dest="size")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.filterwarnings("ignore")  # the libraries' about each other
    console = Console(width=120, highlight=False)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()))
    clock = time.process_time if chosen.cpu_time else time.perf_counter
    run_all(console, SIZES[chosen.size or "full"], clock)


if __name__ == "__main__":
    main()
