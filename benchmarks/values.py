"""Full evaluation of models that give values, against the libraries that train and run them. A part of
`make bench`, or

    python -m benchmarks.values [--quick | --tiny] [--cpu-time] [--one-row] [--only CASE ...] [--page FILE]

One thread; a large batch and one row, or with --one-row the latter only. Features and targets are made up:
only their shape matters here. The values of qwyc must be the library's own, bit for bit. How far those of
the others are from it is part of the table."""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import qwyc
from qwyc.check.benchmark import FULL, Line, machine
from qwyc.check.benchmark import line as line_of
from qwyc.runtime.timing import Contestant, batches, interleave

from . import peers, report
from .cache import Trained, cached_file, trained
from .contest import CHECKED_SINGLY, WrongAnswer
from .peers import LeftOut, Peer, library
from .sizes import SIZES, Sizes

NAME = "values"
TRAINING_ROWS = 20_000
FAR = 1e-3  # of the spread of values
MANY = 0.01  # of the rows: who is far away on more does not evaluate the same model


def flat(output: Any) -> Any:
    """Values of rows, (N,), from what a contestant gives."""
    return np.asarray(output, dtype=np.float64).reshape(-1)


def made_up(features: int, rows: int, seed: int) -> tuple[Any, Any]:
    """Rows (rows, features) float32, and a target that depends on a fifth of the columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    k = max(4, features // 5)
    weights = np.random.default_rng(1).normal(size=k)
    y = X[:, :k] @ weights + np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] * X[:, 3]
    return X, y + rng.normal(size=rows) / 2


# ---- training ---------------------------------------------------------------------------------------


def train_regressor(trees: int, depth: int, features: int, rows: int) -> Any:
    """XGBoost, squared error."""
    xgboost, _ = library("xgboost", "xgboost-cpu")
    model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, learning_rate=0.05, n_jobs=1)
    return model.fit(*made_up(features, rows, 0))


def train_ranker(trees: int, leaves: int, features: int, rows: int) -> Any:
    """LightGBM, lambdarank, in queries of 100 rows with grades from 0 to 4."""
    lightgbm, _ = library("lightgbm")
    X, y = made_up(features, rows, 0)
    grade = np.digitize(y, np.quantile(y, [0.5, 0.8, 0.95, 0.99]))
    model = lightgbm.LGBMRanker(
        n_estimators=trees, num_leaves=leaves, learning_rate=0.05, num_threads=1, verbose=-1
    )
    return model.fit(X, grade, group=np.full(rows // 100, 100))


def train_isolation(trees: int, features: int, rows: int) -> Any:
    """scikit-learn's isolation forest, 256 rows for each tree, as by default."""
    ensemble, _ = library("sklearn.ensemble", "scikit-learn")
    model = ensemble.IsolationForest(n_estimators=trees, random_state=0, n_jobs=1)
    return model.fit(made_up(features, rows, 0)[0])


# ---- who takes part -----------------------------------------------------------------------------------


def of_values(prepare: Callable[[Trained, int], Peer]) -> Callable[[Trained], Peer]:
    """A contestant of the other parts, whose output is a value."""

    def prepared(model: Trained) -> Peer:
        return replace(prepare(model, 1), positive=flat)

    prepared.__name__ = prepare.__name__
    return prepared


def sklearn_scores(model: Trained) -> Peer:
    """`score_samples` of an isolation forest."""
    _, version = library("sklearn", "scikit-learn")
    score = model.model.score_samples
    return Peer("scikit-learn", version, score, lambda row: score(row[None]), flat)


def onnx_values(model: Trained) -> Peer:
    """ONNX Runtime on the model converted by onnxmltools or skl2onnx. Of an isolation forest, it gives
    `decision_function`, which is `score_samples` less an offset."""
    runtime, version = library("onnxruntime")
    is_forest = hasattr(model.model, "score_samples")
    content = cached_file(f"{model.key}.values.onnx", lambda path: _to_onnx(model.model, path))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session = runtime.InferenceSession(str(content), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    wanted = [session.get_outputs()[-1].name]
    offset = float(model.model.offset_) if is_forest else 0.0
    return Peer(
        "ONNX Runtime",
        version,
        lambda rows: session.run(wanted, {name: rows})[0],
        lambda row: session.run(wanted, {name: row[None]})[0],
        lambda output: flat(output) + offset,
    )


def _to_onnx(model: Any, path: Path) -> None:
    if not hasattr(model, "score_samples"):
        peers._to_onnx(model, path)
        return
    skl2onnx, _ = library("skl2onnx")
    example = np.zeros((1, int(model.n_features_in_)), np.float32)
    try:
        opsets = {"": 17, "ai.onnx.ml": 3}
        converted = skl2onnx.to_onnx(model, example, target_opset=opsets)
    except Exception as error:
        raise LeftOut(f"the converter cannot read the model: {error}") from None
    path.write_bytes(converted.SerializeToString())


def treelite_anomaly(model: Trained) -> Peer:
    """Treelite's GTIL, whose output for an isolation forest is -`score_samples`."""
    return replace(peers.treelite(model, 1), positive=lambda output: -flat(output))


def tl2cgen_anomaly(model: Trained) -> Peer:
    """TL2cgen, likewise."""
    return replace(peers.tl2cgen(model, 1), positive=lambda output: -flat(output))


def ours(model: Trained) -> Peer:
    """qwyc: `predict` and `predict_one`, or `score_samples` of an isolation forest."""
    read = qwyc.read_model(model.model)
    if hasattr(model.model, "score_samples"):
        score = read.score_samples
        one = lambda row: score(row[None], threads=1)  # noqa: E731
        return Peer(FULL, qwyc.__version__, lambda rows: score(rows, threads=1), one, flat)
    return Peer(
        FULL, qwyc.__version__, lambda rows: read.predict(rows, threads=1), read.predict_one, flat
    )


# ---- cases ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A model, how many features its rows have, and who evaluates it; the library itself is the first."""

    title: str
    trained: Trained
    features: int
    contestants: Sequence[Callable[[Trained], Peer]]


OTHERS = (of_values(peers.treelite), of_values(peers.tl2cgen), onnx_values)


def regressor(sizes: Sizes) -> Case:
    """XGBoost, 20 features."""
    rows = TRAINING_ROWS if sizes.name != "tiny" else 500
    model = trained(train_regressor, trees=sizes.trees, depth=6, features=20, rows=rows)
    title = f"Regression: XGBoost, {sizes.trees} trees of depth 6, 20 features"
    return Case(title, model, 20, (of_values(peers.xgboost), *OTHERS))


def ranker(sizes: Sizes) -> Case:
    """LightGBM, 136 features, as many as MSLR-WEB30K has."""
    rows = TRAINING_ROWS if sizes.name != "tiny" else 500
    model = trained(train_ranker, trees=sizes.trees, leaves=64, features=136, rows=rows)
    title = f"Ranking: LightGBM lambdarank, {sizes.trees} trees of 64 leaves, 136 features"
    lightgbm = (of_values(peers.lightgbm), of_values(peers.lightgbm_c))
    return Case(title, model, 136, (*lightgbm, *OTHERS))


def isolation(sizes: Sizes, trees: int) -> Case:
    """scikit-learn's isolation forest, 20 features."""
    trees = trees if sizes.name != "tiny" else trees // 10
    model = trained(train_isolation, trees=trees, features=20, rows=2000)
    title = f"Anomalies: scikit-learn IsolationForest, {trees} trees, 20 features"
    others = (treelite_anomaly, tl2cgen_anomaly, onnx_values)
    return Case(title, model, 20, (sklearn_scores, *others))


CASES: dict[str, Callable[[Sizes], Case]] = {
    "regressor": regressor,
    "ranker": ranker,
    "isolation-100": lambda sizes: isolation(sizes, 100),
    "isolation-500": lambda sizes: isolation(sizes, 500),
}


@dataclass
class Found:
    """What one case showed."""

    title: str
    lines: list[Line] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)  # by contestant, as the next
    differ: dict[str, float] = field(default_factory=dict)  # the largest difference of a value
    left_out: dict[str, str] = field(default_factory=dict)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Contestants by microseconds per row."""
        sizes = sorted({line.batch for line in self.lines})
        header = ["", *[f"batch {b:,}" for b in sizes], "p95 of one row", "largest difference"]
        rows = []
        for name in dict.fromkeys(line.contestant for line in self.lines):
            mine = {line.batch: line for line in self.lines if line.contestant == name}
            times = [f"{mine[b].microseconds:.3g}" if b in mine else "" for b in sizes]
            p95 = mine[1].p95 if 1 in mine else None
            differ = self.differ[name]
            same = "none" if differ == 0 else f"{differ:.1g}"
            label = f"{name} {self.versions[name]}"
            rows.append([label, *times, "" if p95 is None else f"{p95:.3g}", same])
        return header, rows


def run_case(case: Case, sizes: Sizes) -> Found:
    """Check and time everyone on a case."""
    rows, _ = made_up(case.features, sizes.rows, 2)
    found, taking_part = Found(case.title), []
    own = None
    for prepare in (*case.contestants, ours):
        try:
            peer = prepare(case.trained)
        except LeftOut as reason:
            found.left_out[prepare.__name__] = str(reason)
            continue
        if own is None:
            assert peer.batch is not None
            own = peer.positive(peer.batch(peer.form(rows)))
        differences = check(peer, rows, own)
        differ = float(differences.max())
        if peer.name == FULL and differ:
            raise WrongAnswer(f"{case.title}: qwyc's values differ from the library's by {differ}")
        far = float((differences > FAR * np.std(own)).mean())
        if far > MANY:
            found.left_out[peer.name] = (
                f"its values of {far:.0%} of the rows differ, by up to {differ:.2g}"
            )
            continue
        found.versions[peer.name], found.differ[peer.name] = peer.version, differ
        taking_part.append(peer)
    for size in sorted({max(sizes.batches), 1}, reverse=True):
        found.lines += timed(taking_part, rows, size, sizes)
    return found


def timed(taking_part: Sequence[Peer], rows: Any, size: int, sizes: Sizes) -> list[Line]:
    """Everyone in turn with batches of one size. On a busy machine, single rows are timed by processor time
    too: a call of milliseconds would be interrupted more often than one of microseconds."""
    contestants = {}
    for peer in taking_part:
        if size == 1 and peer.single is not None:
            contestants[peer.name] = Contestant(peer.single, list(rows[:1000]))
        elif size > 1 and peer.batch is not None:
            parts = [peer.form(part) for part in batches(rows, size)]
            contestants[peer.name] = Contestant(peer.batch, parts, size)
    timings = interleave(
        contestants,
        seconds=sizes.small_seconds if size == 1 else sizes.seconds,
        clock=time.process_time if sizes.cpu_time else time.perf_counter,
    )
    return [line_of(name, size, timing) for name, timing in timings.items()]


def check(peer: Peer, rows: Any, own: Any) -> Any:
    """How far a contestant's values are from the model's own, (N,): in a batch, and the first rows one by
    one too."""
    found = own
    if peer.batch is not None:
        found = peer.positive(peer.batch(peer.form(rows)))
    differences = np.abs(found - own)
    if peer.single is not None:
        single = [float(peer.positive(peer.single(row))[0]) for row in rows[:CHECKED_SINGLY]]
        alone = np.abs(np.array(single) - own[:CHECKED_SINGLY])
        differences[:CHECKED_SINGLY] = np.maximum(differences[:CHECKED_SINGLY], alone)
    return differences


def run_all(console: Console, sizes: Sizes, names: Sequence[str] = tuple(CASES)) -> list[Found]:
    """The cases of these names, printed one after the other."""
    results = []
    for name in names:
        with console.status(f"{name} ..."):
            try:
                case = CASES[name](sizes)
            except LeftOut as reason:
                console.print(f"\n{name}: left out: {reason}")
                continue
            found = run_case(case, sizes)
        results.append(found)
        report.show(console, f"\n{found.title}; 1 thread; µs per row", *found.table())
        for who, why in found.left_out.items():
            console.print(f"Left out: {who}: {why}.")
    return results


def page(results: Sequence[Found]) -> str:
    """The tables in Markdown."""
    parts = []
    for found in results:
        header, rows = found.table()
        lines = [header, ["---"] * len(header), *rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        out = "".join(f"\n\nLeft out: {who}: {why}." for who, why in found.left_out.items())
        parts.append(f"{found.title}; one thread; µs per row:\n\n{table}{out}\n")
    return "\n".join(parts)


def main() -> None:
    """Print the tables, and write them where a page is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.values", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    for name in ("quick", "tiny"):
        size.add_argument(f"--{name}", action="store_const", const=name, dest="size")
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine")
    parser.add_argument("--one-row", action="store_true", help="leave out the large batch")
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--page", type=Path, help="a file for the tables in Markdown")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.filterwarnings("ignore")  # the libraries' about each other
    sizes = replace(SIZES[chosen.size or "full"], cpu_time=chosen.cpu_time)
    if chosen.one_row:
        sizes = replace(sizes, rows=1000, batches=(1,))
    console = Console(width=120, highlight=False)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items()))
    results = run_all(console, sizes, chosen.only)
    if chosen.page:
        chosen.page.write_text(page(results))


if __name__ == "__main__":
    main()
