"""Seven classes: UCI Covertype with XGBoost, against XGBoost itself. A part of `make bench`, or

    python -m benchmarks.classes [--quick | --tiny] [--cpu-time]

One thread. Covertype is read from covertype.parquet in the folder that the environment variable QWYC_DATA
names; without it this part is left out."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import qwyc
from qwyc.check.benchmark import FULL, QUITTING, machine

from . import peers, report
from .cache import trained
from .contest import ALPHA, CHECKED_SINGLY, Result, WrongAnswer, enlarged, timed
from .peers import LeftOut, Peer
from .sizes import SIZES, Sizes

NAME = "classes"
DEPTH, LEARNING_RATE = 6, 0.1
TRAINING_ROWS, SAMPLE_ROWS, TEST_ROWS = 30_000, 40_000, 30_000
SMALL = (64, 512, 2_048)  # batches in which few rows have the same classes left
MADE_UP_ROWS = 6_000  # a third each, where it is only to be seen that it runs
FILE = "covertype.parquet"


@cache
def covertype() -> tuple[Any, Any]:
    """Rows (581012, 54) float32 in random order, and their classes from 0 to 6."""
    folder = os.environ.get("QWYC_DATA")
    path = Path(folder or ".") / FILE
    if folder is None or not path.is_file():
        raise LeftOut(f"QWYC_DATA must name a folder with {FILE}")
    pandas, _ = peers.library("pandas")
    table = pandas.read_parquet(path)
    others = [name for name in table if name.startswith("aux") or name in ("label", "split")]
    rows = table.drop(columns=others).to_numpy().astype(np.float32)
    label = table["aux_cover_type"].to_numpy()
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[order], (label - label.min())[order]


@cache
def made_up() -> tuple[Any, Any]:
    """Rows (6000, 12) float32 of 7 classes."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(MADE_UP_ROWS, 12)).astype(np.float32)
    return rows, (rows[:, :7] + 0.5 * rng.normal(size=(MADE_UP_ROWS, 7))).argmax(axis=1)


def parts(real: bool) -> tuple[Any, Any, Any, Any]:
    """Rows and classes to train on, rows to optimise with, and rows to test."""
    rows, label = covertype() if real else made_up()
    first, second, third = (
        np.cumsum([TRAINING_ROWS, SAMPLE_ROWS, TEST_ROWS])
        if real
        else MADE_UP_ROWS * np.arange(1, 4) // 3
    )
    return rows[:first], label[:first], rows[first:second], rows[second:third]


def train_rounds(rounds: int, depth: int, learning_rate: float, real: bool) -> Any:
    """XGBoost, a tree for each class in each round."""
    xgboost, _ = peers.library("xgboost", "xgboost-cpu")
    rows, label, _, _ = parts(real)
    return xgboost.XGBClassifier(
        n_estimators=rounds, max_depth=depth, learning_rate=learning_rate, n_jobs=1
    ).fit(rows, label)


def classes(sizes: Sizes) -> Result:
    """Everyone's answers checked, then everyone timed in turn, in large batches and one row at a time."""
    real = sizes.name != "tiny"
    _, _, sample, test = parts(real)
    model = trained(
        train_rounds, rounds=sizes.trees, depth=DEPTH, learning_rate=LEARNING_RATE, real=real
    )
    fast = qwyc.optimize(model.model, sample, alpha=ALPHA, progress=False, threads=1)
    own = model.model.predict(test)
    title = (
        f"{'UCI Covertype' if real else 'Made-up rows'}, 7 classes; XGBoost, {sizes.trees} rounds of 7 "
        f"trees, depth {DEPTH}"
    )
    result = Result(NAME, title, "XGBoost", test_rows=len(test))
    result.mean_models = float(fast.decide(test).steps.mean())
    contestants = [replace(peers.xgboost(model, 1), positive=_largest), *_ours(fast)]
    for peer in contestants:
        result.versions[peer.name], result.notes[peer.name] = peer.version, peer.note
        result.differ[peer.name] = _check(peer, test, own)
    rows = enlarged(test, sizes.rows)
    result.lines[1] = [
        each for size in batches_of(sizes) for each in timed(contestants, rows, size, 1, sizes)
    ]
    return result


def batches_of(sizes: Sizes) -> tuple[int, ...]:
    """Rows per call."""
    return tuple(sorted({*sizes.batches, *(size for size in SMALL if size < sizes.rows)}))


def _ours(fast: Any) -> list[Peer]:
    full, version = fast.full(), qwyc.__version__
    return [
        Peer(
            FULL, version, lambda rows: fast.score_full(rows, threads=1), full.predict_one, _largest
        ),
        Peer(
            QUITTING,
            version,
            lambda rows: fast.predict(rows, threads=1),
            fast.predict_one,
            _largest,
        ),
    ]


def _largest(output: Any) -> Any:
    """Scores (N, K), or labels, as labels (N,)."""
    output = np.asarray(output)
    return output.argmax(axis=1) if output.ndim == 2 else np.atleast_1d(output)


def _check(peer: Peer, test: Any, own: Any) -> int:
    """How many test decisions are unlike the model's own. XGBoost's and those of full evaluation must be
    alike, and a row must get by itself what it gets in a batch."""
    assert peer.batch is not None
    assert peer.single is not None
    decisions = peer.positive(peer.batch(test))
    differ = int((decisions != own).sum())
    if differ and peer.name != QUITTING:
        raise WrongAnswer(f"{NAME}: {peer.name} decides {differ} test rows unlike the model")
    single = [peer.positive(peer.single(row))[0] for row in test[:CHECKED_SINGLY]]
    if not np.array_equal(single, decisions[:CHECKED_SINGLY]):
        raise WrongAnswer(f"{NAME}: {peer.name} decides rows one by one unlike in a batch")
    return differ


def ratio(result: Result, batch: int) -> str:
    """How much faster quitting is than full evaluation."""
    full, quitting = result.line(FULL, batch), result.line(QUITTING, batch)
    if full is None or quitting is None:
        return ""
    times = full.microseconds / quitting.microseconds
    return f"Quitting is {times:.2f} times as fast as full evaluation, batches of {batch:,}."


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classes", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    for name in ("quick", "tiny"):
        size.add_argument(f"--{name}", action="store_const", const=name, dest="size")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    sizes = replace(SIZES[chosen.size or "full"], cpu_time=chosen.cpu_time)
    console = Console(width=120, highlight=False)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()))
    result = classes(sizes)
    show(console, result, sizes)


def show(console: Console, result: Result, sizes: Sizes) -> None:
    """The table of a run."""
    batches = batches_of(sizes)
    title = f"\n{result.title}; 1 thread; µs per row"
    report.show(console, title, *report.case_rows(result, 1, batches))
    console.print("\n".join(report.case_words(result)))
    console.print(ratio(result, max(sizes.batches)))


if __name__ == "__main__":
    main()
