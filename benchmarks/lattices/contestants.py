"""Those who evaluate an ensemble of lattices: TensorFlow Lattice in several ways, and qwyc in two."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import FULL, QUITTING

from ..peers import LeftOut, library, same
from .models import LAYERS, RTL, Weights, tensorflow
from .prepare import MANY, Job, compiled, first_line, frozen_graph, prepared
from .shapes import Shape

GRAPH, XLA, LITE = "tf.function", "XLA", "TFLite"
MOST_BYTES = 1 << 29  # of a tensor of (rows, vertices of all lattices), which one RTL layer has
SMALL, LARGE = (1, 256), (257, None)  # batches, from and to


@dataclass(frozen=True)
class Evaluator:
    """One way to evaluate an ensemble."""

    name: str
    version: str
    batch: Callable[[Any], Any]  # of rows in `form`; (N,) or (N, 1)
    single: Callable[[Any], Any]  # of a row in `single_form`
    most_rows: int | None = None  # in a call; None: no limit
    form: Callable[[Any], Any] = same  # of (N, F) float32; not timed
    single_form: Callable[[Any], Any] = same  # of (F,) float32; not timed
    gives_scores: bool = True  # batches; False: labels
    single_gives_score: bool = True
    batches: tuple[int, int | None] = (1, None)  # the least and the largest that it is timed with

    def takes_part(self, batch: int) -> bool:
        """Whether it is timed with batches of that size."""
        least, most = self.batches
        return least <= batch and (most is None or batch <= most)

    def evaluate(self, rows: Any) -> Any:
        """Scores or labels of all rows, (N,), in calls of at most `most_rows`."""
        step = self.most_rows or len(rows)
        parts = [rows[i : i + step] for i in range(0, len(rows), step)]
        return np.concatenate([np.reshape(self.batch(self.form(part)), -1) for part in parts])


@dataclass(frozen=True)
class Way:
    """TensorFlow's: a kind, the form of the model, and the batches that it is timed with."""

    kind: str
    form: str
    batches: tuple[int, int | None] = (1, None)

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.form}"


def ways(shape: Shape, interpolation: str) -> list[Way]:
    """Both forms, but for those that were clearly slower in a trial. With 500 lattices, a layer per
    lattice is faster in large batches, and one RTL layer many times as fast with a single row."""
    if shape.name == "A":
        both = [(GRAPH, LAYERS), (GRAPH, RTL), (XLA, LAYERS), (LITE, LAYERS), (LITE, RTL)]
        return [Way(kind, form) for kind, form in both]
    found = [Way(GRAPH, LAYERS), Way(GRAPH, RTL, SMALL), Way(XLA, RTL), Way(LITE, RTL)]
    if interpolation == "simplex":  # compiling it for a single row takes as long as for many
        found.insert(2, Way(XLA, LAYERS, LARGE))
    return found


def call_rows(shape: Shape, interpolation: str, form: str) -> int:
    """The most rows in a call."""
    most = shape.call_rows(interpolation)
    if form == RTL and interpolation == "hypercube":
        row = 4 * shape.lattices * 2**shape.inputs
        while most * row > MOST_BYTES:
            most //= 2
    return most


def theirs(
    shape: Shape, weights: Weights, interpolation: str, left_out: dict[str, str]
) -> list[Evaluator]:
    """TensorFlow's: as a graph, compiled by XLA, and by TFLite."""
    found = []
    for way in ways(shape, interpolation):
        rows = call_rows(shape, interpolation, way.form)
        job = Job("freeze", shape, weights, interpolation, way.form)
        try:
            found.append(KINDS[way.kind](job, way, rows))
        except LeftOut as reason:
            left_out[way.name] = str(reason)
    return found


def graph(job: Job, way: Way, rows: int) -> Evaluator:
    """A concrete function of one (N, F) tensor, the weights folded into constants."""
    return evaluator(frozen_graph(prepared(job)), way, rows)


def xla(job: Job, way: Way, rows: int) -> Evaluator:
    """The same with `jit_compile=True`."""
    path, features = prepared(job), job.shape.features
    if way.form == LAYERS and job.shape.lattices >= MANY:  # try it where it can be stopped
        prepared(replace(job, kind="compile", rows=rows, graph=path))
    made = evaluator(compiled(frozen_graph(path), features), way, rows)
    least = rows if way.batches == LARGE else 1
    try:
        made.batch(made.form(np.zeros((least, features), np.float32)))
    except Exception as error:
        raise LeftOut(f"does not compile: {first_line(error)}") from None
    return made


def evaluator(call: Callable[[Any], Any], way: Way, rows: int) -> Evaluator:
    """Of a concrete function."""
    tf, _, _, version = tensorflow()

    def evaluate(x: Any) -> Any:
        return call(x).numpy()

    return Evaluator(
        way.name,
        version,
        evaluate,
        evaluate,
        rows,
        form=tf.constant,
        single_form=lambda row: tf.constant(row[None]),
        batches=way.batches,
    )


def lite(job: Job, way: Way, rows: int) -> Evaluator:
    """TFLite on one thread, which runs on XNNPACK. Its input is a NumPy array."""
    interpreter_class, version = lite_interpreter()
    content = prepared(replace(job, kind="convert")).read_bytes()
    ready: dict[int, tuple[Any, int, int]] = {}  # by number of rows

    def interpreter(count: int) -> tuple[Any, int, int]:
        if count not in ready:
            made = interpreter_class(model_content=content, num_threads=1)
            at, out = made.get_input_details()[0]["index"], made.get_output_details()[0]["index"]
            made.resize_tensor_input(at, [count, job.shape.features])
            made.allocate_tensors()
            ready[count] = made, at, out
        return ready[count]

    def evaluate(x: Any) -> Any:
        made, at, out = interpreter(len(x))
        made.set_tensor(at, x)
        made.invoke()
        return made.get_tensor(out)

    try:
        evaluate(np.zeros((1, job.shape.features), np.float32))
    except Exception as error:
        raise LeftOut(f"does not run: {first_line(error)}") from None
    return Evaluator(
        way.name,
        version,
        evaluate,
        evaluate,
        rows,
        single_form=lambda row: row[None],
        batches=way.batches,
    )


KINDS: dict[str, Callable[[Job, Way, int], Evaluator]] = {GRAPH: graph, XLA: xla, LITE: lite}


def lite_interpreter() -> tuple[Any, str]:
    """LiteRT's where it is installed, else the one in TensorFlow."""
    try:
        module, version = library("ai_edge_litert.interpreter", "ai-edge-litert")
        return module.Interpreter, f"LiteRT {version}"
    except LeftOut:
        tf, _, _, version = tensorflow()
        warnings.filterwarnings("ignore", message=".*tf.lite.Interpreter is deprecated.*")
        return tf.lite.Interpreter, version


def ours(fast: Any) -> list[Evaluator]:
    """qwyc's two: every lattice, and quitting."""
    never = qwyc.Classifier(fast.ensemble, fast.policy.without_quitting(), fast.certificate)
    return [
        Evaluator(
            FULL,
            qwyc.__version__,
            lambda rows: fast.score_full(rows, threads=1),
            never.predict_one,
            single_gives_score=False,
        ),
        Evaluator(
            QUITTING,
            qwyc.__version__,
            lambda rows: fast.predict(rows, threads=1),
            fast.predict_one,
            gives_scores=False,
            single_gives_score=False,
        ),
    ]
