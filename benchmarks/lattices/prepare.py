"""What is made from a model before anything is timed: frozen graphs, TFLite models, and whether XLA
compiles a graph at all. With many lattices this may take minutes, so it is done in a process of its
own that may take so much processor time and no more. Results are kept between runs."""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..cache import cached_file
from ..peers import LeftOut, run_limited
from . import models
from .models import Weights, live, tensorflow
from .shapes import Shape

LIMIT = 240  # seconds of processor time; it counts the same on a busy machine
PATIENCE = 5  # times as long by the wall clock
MANY = 100  # lattices; with fewer, everything takes seconds and is done in this process
CHILD = "from benchmarks.lattices.prepare import child; child()"
MADE = "made in"


@dataclass(frozen=True)
class Job:
    """One thing to make: "freeze", "convert" (to TFLite) or "compile" (a frozen graph, by XLA)."""

    kind: str
    shape: Shape
    weights: Weights
    interpolation: str
    form: str
    rows: int = 0  # in a call; to compile for
    graph: Path | None = None  # to compile

    @property
    def key(self) -> str:
        """Different for whatever may change the result."""
        _, _, _, versions = tensorflow()
        words = [self.kind, self.shape, self.interpolation, self.form, self.rows, versions]
        words += [inspect.getsource(each) for each in (models, sys.modules[__name__])]
        digest = hashlib.sha256(repr(words).encode())
        for array in vars(self.weights).values():
            digest.update(np.ascontiguousarray(array).tobytes())
        return f"lattices-{self.kind}-{digest.hexdigest()[:12]}"


def prepared(job: Job) -> Path:
    """The file that the job makes, made now or in an earlier run. LeftOut where it takes too long."""
    said = cached_file(f"{job.key}.txt", lambda path: _prepare(job, path))
    if not said.read_text().startswith(MADE):
        raise LeftOut(said.read_text())
    return said.with_suffix(".bin")


def _prepare(job: Job, said: Path) -> None:
    """Make the file beside `said`, and write down how it went."""
    target, started = said.with_suffix(".bin"), time.perf_counter()
    if job.shape.lattices < MANY:
        try:
            WAYS[job.kind](job, target)
        except Exception as error:
            raise LeftOut(f"it does not {job.kind}: {first_line(error)}") from None
    elif not _in_child(job, target):
        said.write_text(
            f"to {job.kind} {job.shape.lattices} lattices took more than {LIMIT} s of processor time "
            "and was stopped"
        )
        return
    said.write_text(f"{MADE} {time.perf_counter() - started:.0f} s")


def _in_child(job: Job, target: Path, limit: int = LIMIT) -> bool:
    """Whether the job was done within the limit."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "job.pickle"
        work.write_bytes(pickle.dumps(job))
        arguments = [CHILD, str(work), str(target.absolute()), str(limit)]
        try:
            code, errors = run_limited(arguments, PATIENCE * limit, Path(__file__).parents[2])
        except subprocess.TimeoutExpired:
            return False
    if code == -signal.SIGXCPU:
        return False
    if code:
        raise LeftOut(f"it does not {job.kind}: {(errors.strip().splitlines() or ['?'])[-1][:200]}")
    return True


def child() -> None:
    """The other process. The system stops it at the limit."""
    import resource  # not on Windows

    work, target, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 10))
    job = pickle.loads(Path(work).read_bytes())  # written by the process that started this one
    WAYS[job.kind](job, Path(target))
    sys.stderr.flush()
    os._exit(0)  # freeing a graph of 500 layers takes long


def traced(job: Job) -> tuple[Any, Any]:
    """The model as a concrete function of one (N, F) tensor, and the model."""
    tf, _, _, _ = tensorflow()
    model = live(job.shape, job.weights, job.interpolation, job.form)

    def scores(x: Any) -> Any:
        return model(tf.split(x, job.shape.features, axis=1), training=False)

    rows = tf.TensorSpec([None, job.shape.features], tf.float32)
    return tf.function(scores).get_concrete_function(rows), model


def freeze(job: Job, target: Path) -> None:
    """The graph with its weights folded into constants, and the names of its input and output."""
    from tensorflow.python.framework.convert_to_constants import (  # as TFLite's converter does
        convert_variables_to_constants_v2,
    )

    function, model = traced(job)  # a function does not keep the variables of its model
    frozen = convert_variables_to_constants_v2(function)
    del model
    content = frozen.graph.as_graph_def().SerializeToString()
    target.write_bytes(pickle.dumps((content, frozen.inputs[0].name, frozen.outputs[0].name)))


def convert(job: Job, target: Path) -> None:
    """A TFLite model."""
    tf, _, _, _ = tensorflow()
    function, model = traced(job)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], model)
    target.write_bytes(converter.convert())


def compile_graph(job: Job, target: Path) -> None:
    """An empty file where XLA compiles the graph; what it compiled cannot be kept."""
    assert job.graph is not None
    tf, _, _, _ = tensorflow()
    call = compiled(frozen_graph(job.graph), job.shape.features)
    call(tf.zeros([job.rows, job.shape.features]))
    target.write_bytes(b"")


WAYS: dict[str, Callable[[Job, Path], None]] = {
    "freeze": freeze,
    "convert": convert,
    "compile": compile_graph,
}


def frozen_graph(path: Path) -> Any:
    """The concrete function that `freeze` wrote."""
    tf, _, _, _ = tensorflow()
    from tensorflow.python.eager.wrap_function import function_from_graph_def

    content, given, found = pickle.loads(path.read_bytes())  # written by ourselves
    return function_from_graph_def(tf.compat.v1.GraphDef.FromString(content), given, found)


def compiled(graph: Any, features: int) -> Any:
    """The graph under `jit_compile=True`. It is compiled anew for every number of rows."""
    tf, _, _, _ = tensorflow()
    again = tf.function(lambda x: graph(x), jit_compile=True)
    return again.get_concrete_function(tf.TensorSpec([None, features], tf.float32))


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
