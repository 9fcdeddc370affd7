"""Those who evaluate an ensemble of lattices: TensorFlow Lattice in several ways, and qwyc in two."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import FULL, QUITTING

from ..peers import LeftOut, library, same
from .models import FORMS, Weights, live, tensorflow
from .shapes import Shape

GRAPH, XLA, LITE = "tf.function", "XLA", "TFLite"
XLA_SECONDS = (
    120  # who takes longer to compile for one row is left out: each batch size takes as long
)


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

    def evaluate(self, rows: Any) -> Any:
        """Scores or labels of all rows, (N,), in calls of at most `most_rows`."""
        step = self.most_rows or len(rows)
        parts = [rows[i : i + step] for i in range(0, len(rows), step)]
        return np.concatenate([np.reshape(self.batch(self.form(part)), -1) for part in parts])


def theirs(
    shape: Shape, weights: Weights, interpolation: str, left_out: dict[str, str]
) -> list[Evaluator]:
    """TensorFlow's: each form of the model as a graph, compiled by XLA, and by TFLite."""
    found = []
    for form in FORMS:
        model = live(shape, weights, interpolation, form)
        for kind, make in ((GRAPH, graph), (XLA, compiled), (LITE, lite)):
            try:
                found.append(make(model, shape, interpolation, f"{kind}, {form}"))
            except LeftOut as reason:
                left_out[f"{kind}, {form}"] = str(reason)
    return found


def graph(model: Any, shape: Shape, interpolation: str, name: str, jit: bool = False) -> Evaluator:
    """A concrete function of one (N, F) tensor, the weights folded into constants."""
    tf, _, _, version = tensorflow()
    from tensorflow.python.framework.convert_to_constants import (  # as TFLite's converter does
        convert_variables_to_constants_v2,
    )

    rows = tf.TensorSpec([None, shape.features], tf.float32)

    def scores(x: Any) -> Any:
        return model(tf.split(x, shape.features, axis=1), training=False)

    frozen = convert_variables_to_constants_v2(tf.function(scores).get_concrete_function(rows))
    call = frozen
    if jit:
        again = tf.function(lambda x: frozen(x)[0], jit_compile=True)
        call = again.get_concrete_function(rows)

    def evaluate(x: Any) -> Any:
        found = call(x)
        return (found if jit else found[0]).numpy()

    return Evaluator(
        name,
        version,
        evaluate,
        evaluate,
        shape.call_rows(interpolation),
        form=tf.constant,
        single_form=lambda row: tf.constant(row[None]),
    )


def compiled(model: Any, shape: Shape, interpolation: str, name: str) -> Evaluator:
    """The same with `jit_compile=True`. It is compiled anew for every number of rows."""
    evaluator = graph(model, shape, interpolation, name, jit=True)
    started = time.process_time()
    try:
        evaluator.single(evaluator.single_form(np.zeros(shape.features, np.float32)))
    except Exception as error:
        raise LeftOut(f"does not compile: {first_line(error)}") from None
    seconds = time.process_time() - started
    if seconds > XLA_SECONDS:
        raise LeftOut(f"compiling it for one row took {seconds:.0f} s of processor time")
    return evaluator


def lite(model: Any, shape: Shape, interpolation: str, name: str) -> Evaluator:
    """TFLite on one thread, which runs on XNNPACK. Its input is a NumPy array."""
    tf, _, _, _ = tensorflow()
    interpreter_class, version = lite_interpreter()
    rows = tf.TensorSpec([None, shape.features], tf.float32)

    def scores(x: Any) -> Any:
        return model(tf.split(x, shape.features, axis=1), training=False)

    try:
        function = tf.function(scores).get_concrete_function(rows)
        content = tf.lite.TFLiteConverter.from_concrete_functions([function], model).convert()
    except Exception as error:
        raise LeftOut(f"does not convert: {first_line(error)}") from None
    prepared: dict[int, tuple[Any, int, int]] = {}  # by number of rows

    def interpreter(count: int) -> tuple[Any, int, int]:
        if count not in prepared:
            made = interpreter_class(model_content=content, num_threads=1)
            at, out = made.get_input_details()[0]["index"], made.get_output_details()[0]["index"]
            made.resize_tensor_input(at, [count, shape.features])
            made.allocate_tensors()
            prepared[count] = made, at, out
        return prepared[count]

    def evaluate(x: Any) -> Any:
        made, at, out = interpreter(len(x))
        made.set_tensor(at, x)
        made.invoke()
        return made.get_tensor(out)

    try:
        evaluate(np.zeros((1, shape.features), np.float32))
    except Exception as error:
        raise LeftOut(f"does not run: {first_line(error)}") from None
    return Evaluator(
        name,
        version,
        evaluate,
        evaluate,
        shape.call_rows(interpolation),
        single_form=lambda row: row[None],
    )


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


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
