"""The others: each evaluates a trained model by its own fastest documented way from Python.

A function takes the model and a number of threads and gives a Peer, or raises LeftOut with the reason.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
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

from .cache import Trained, cached_file

COMPILE_SECONDS = 120  # more is too long to wait for
COMPILE = """
import sys, tl2cgen, treelite
model = treelite.Model.deserialize(sys.argv[1])
params = {"parallel_comp": int(sys.argv[3]), "quantize": 1}
tl2cgen.export_lib(model, toolchain="gcc", libpath=sys.argv[2], params=params)
"""


class LeftOut(Exception):  # noqa: N818 (a reason, not an error)
    """Why a peer does not take part."""


def same(rows: Any) -> Any:
    """Rows as they are: a C-ordered float32 matrix."""
    return rows


def above_half(output: Any) -> Any:
    """Probabilities as decisions, (N,)."""
    return np.asarray(output).reshape(-1) > 0.5


def above_zero(output: Any) -> Any:
    """Scores as decisions, (N,)."""
    return np.asarray(output).reshape(-1) > 0


@dataclass(frozen=True)
class Peer:
    """One way to evaluate a model."""

    name: str
    version: str
    batch: Callable[[Any], Any] | None  # of rows in `form`
    single: Callable[[Any], Any] | None  # of one row, (n_features,), a NumPy array
    positive: Callable[[Any], Any] = above_half  # from either's output to decisions
    form: Callable[[Any], Any] = same  # what it takes fastest; converting to it is not timed
    note: str = ""


def library(name: str, package: str | None = None) -> tuple[Any, str]:
    """A module and the version of its package."""
    try:
        module = importlib.import_module(name)
        return module, importlib.metadata.version(package or name)
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        raise LeftOut(f"not installed ({error})") from None
    except Exception as error:  # a library that breaks on import is left out too, and named
        raise LeftOut(f"cannot be imported: {error}") from None


# ---- the libraries that train ------------------------------------------------------------------


def xgboost(trained: Trained, threads: int) -> Peer:
    """`Booster.inplace_predict`, which takes NumPy without a DMatrix."""
    _, version = library("xgboost", "xgboost-cpu")
    booster = trained.model.get_booster()

    def predict(rows: Any) -> Any:
        return booster.inplace_predict(rows, validate_features=False)

    booster.set_param({"nthread": threads})
    return Peer("XGBoost", version, predict, lambda row: predict(row[None]))


def lightgbm(trained: Trained, threads: int) -> Peer:
    """`Booster.predict`, every tree."""
    _, version = library("lightgbm")
    booster = trained.model.booster_

    def predict(rows: Any) -> Any:
        return booster.predict(rows, num_threads=threads, validate_features=False)

    return Peer("LightGBM", version, predict, lambda row: predict(row[None]))


def lightgbm_early(trained: Trained, threads: int, margin: float, freq: int) -> Peer:
    """`Booster.predict` with `pred_early_stop`."""
    _, version = library("lightgbm")
    booster = trained.model.booster_
    options = {
        "num_threads": threads,
        "pred_early_stop": True,
        "pred_early_stop_margin": margin,
        "pred_early_stop_freq": freq,
        "validate_features": False,
    }

    def predict(rows: Any) -> Any:
        return booster.predict(rows, **options)

    return Peer(
        "LightGBM pred_early_stop",
        version,
        predict,
        lambda row: predict(row[None]),
        note=f"margin {margin:g}, freq {freq}",
    )


def lightgbm_c(trained: Trained, threads: int) -> Peer:
    """Single rows through LightGBM's C interface, which its Python package does not offer."""
    module, version = library("lightgbm")
    names = sorted(Path(module.__file__).parent.rglob("lib_lightgbm.*"))
    if not names:
        raise LeftOut("its shared library was not found")
    lib = ctypes.CDLL(str(names[0]))
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        trained.model.booster_.save_model(file.name)
        handle, fast, iterations = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        made = lib.LGBM_BoosterCreateFromModelfile(
            file.name.encode(), ctypes.byref(iterations), ctypes.byref(handle)
        )
    float32, normal, every = 0, 0, -1
    n_features = trained.model.booster_.num_feature()
    options = f"num_threads={threads} verbosity=-1".encode()
    made = made or lib.LGBM_BoosterPredictForMatSingleRowFastInit(
        handle, normal, 0, every, float32, n_features, options, ctypes.byref(fast)
    )
    if made:
        raise LeftOut("the C interface refused the model")
    length, result = ctypes.c_int64(), ctypes.c_double()
    length_at, result_at = ctypes.byref(length), ctypes.byref(result)
    call = lib.LGBM_BoosterPredictForMatSingleRowFast

    def single(row: Any) -> float:
        call(fast, ctypes.c_void_p(row.ctypes.data), length_at, result_at)
        return result.value

    return Peer("LightGBM, C interface", version, None, single)


def catboost(trained: Trained, threads: int) -> Peer:
    """`predict` of a Pool made beforehand; of a NumPy vector for one row."""
    module, version = library("catboost")
    raw = {"prediction_type": "RawFormulaVal", "thread_count": threads}
    return Peer(
        "CatBoost",
        version,
        lambda pool: trained.model.predict(pool, **raw),
        lambda row: trained.model.predict(row, **raw),
        above_zero,
        module.Pool,
    )


def ydf(trained: Trained, threads: int) -> Peer:
    """`predict` of contiguous columns made beforehand; of views of a row for one row."""
    _, version = library("ydf")
    model = trained.model
    names = model.input_feature_names()

    def predict(columns: Any) -> Any:
        return model.predict(columns, num_threads=threads)

    return Peer(
        "YDF",
        version,
        predict,
        lambda row: predict({name: row[i : i + 1] for i, name in enumerate(names)}),
        form=lambda rows: {n: np.ascontiguousarray(rows[:, i]) for i, n in enumerate(names)},
    )


def sklearn(trained: Trained, threads: int) -> Peer:
    """`predict_proba`, which `predict` calls too."""
    _, version = library("sklearn", "scikit-learn")
    model = trained.model
    model.n_jobs = threads
    return Peer(
        "scikit-learn",
        version,
        model.predict_proba,
        lambda row: model.predict_proba(row[None]),
        second_is_larger,
    )


def second_is_larger(output: Any) -> Any:
    """Two shares a row as decisions, (N,); a tie is the first class."""
    shares = np.asarray(output).reshape(-1, 2)
    return shares[:, 1] > shares[:, 0]


# ---- the libraries that evaluate others' models -----------------------------------------------


def as_treelite(model: Any) -> Any:
    """The model as a Treelite model."""
    module, _ = library("treelite")
    try:
        if hasattr(model, "get_booster"):
            return module.frontend.from_xgboost(model.get_booster())
        if hasattr(model, "booster_"):
            return module.frontend.from_lightgbm(model.booster_)
        return module.sklearn.import_model(model)
    except Exception as error:
        raise LeftOut(f"Treelite cannot read the model: {_first_line(error)}") from None


def is_forest(model: Any) -> bool:
    """Whether its output is a share for each class."""
    return not hasattr(model, "get_booster") and not hasattr(model, "booster_")


def treelite(trained: Trained, threads: int) -> Peer:
    """Treelite's General Tree Inference Library."""
    module, version = library("treelite")
    converted = as_treelite(trained.model)
    dtype = np.dtype(converted.input_type)

    def predict(rows: Any) -> Any:
        return module.gtil.predict(converted, rows, nthread=threads)

    return Peer(
        "Treelite GTIL",
        version,
        predict,
        lambda row: predict(row[None].astype(dtype, copy=False)),
        second_is_larger if is_forest(trained.model) else above_half,
        lambda rows: rows.astype(dtype),
    )


def tl2cgen(trained: Trained, threads: int) -> Peer:
    """C code compiled with the machine's own compiler; the library is kept for the next run."""
    module, version = library("tl2cgen")
    converted = as_treelite(trained.model)
    dtype = str(np.dtype(converted.input_type))

    def form(rows: Any) -> Any:
        return module.DMatrix(rows.astype(dtype, copy=False), dtype=dtype)

    path, note = _compiled(converted, f"{trained.key}-tl2cgen-{version}")
    predictor = module.Predictor(str(path), nthread=threads)
    return Peer(
        "TL2cgen",
        version,
        predictor.predict,
        lambda row: predictor.predict(form(row[None])),
        second_is_larger if is_forest(trained.model) else above_half,
        form,
        note,
    )


def onnx_runtime(trained: Trained, threads: int) -> Peer:
    """ONNX Runtime on the model converted by onnxmltools or skl2onnx; the label alone is asked for."""
    runtime, version = library("onnxruntime")
    content = onnx_model(trained)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session = runtime.InferenceSession(str(content), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    label = [session.get_outputs()[0].name]
    return Peer(
        "ONNX Runtime",
        version,
        lambda rows: session.run(label, {name: rows})[0],
        lambda row: session.run(label, {name: row[None]})[0],
    )


def onnx_model(trained: Trained) -> Path:
    """The model as a file of ONNX."""
    return cached_file(f"{trained.key}.onnx", lambda path: _to_onnx(trained.model, path))


def _to_onnx(model: Any, path: Path) -> None:
    tools, _ = library("onnxmltools")
    library("skl2onnx")
    types = importlib.import_module("onnxmltools.convert.common.data_types")
    n_features = int(model.n_features_in_)
    inputs = [("x", types.FloatTensorType([None, n_features]))]
    try:
        if hasattr(model, "get_booster"):
            converted = tools.convert_xgboost(model, initial_types=inputs)
        elif hasattr(model, "booster_"):
            converted = tools.convert_lightgbm(model, initial_types=inputs, zipmap=False)
        else:
            skl2onnx = importlib.import_module("skl2onnx")
            example = np.zeros((1, n_features), np.float32)
            converted = skl2onnx.to_onnx(model, example, options={"zipmap": False})
    except Exception as error:
        raise LeftOut(f"the converter cannot read the model: {_first_line(error)}") from None
    path.write_bytes(converted.SerializeToString())


def _compiled(converted: Any, name: str) -> tuple[Path, str]:
    """The shared library, and how long it took to compile."""
    tried = cached_file(f"{name}.txt", lambda path: _compile(converted, path))
    said = tried.read_text()
    if not said.startswith("compiled"):
        raise LeftOut(said)
    return tried.with_suffix(".so"), said


def _compile(converted: Any, said: Path) -> None:
    """Compile in a process of its own, which can be stopped, and write down how it went."""
    target = said.with_suffix(".so")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.bin"
        converted.serialize(str(model))
        started = time.perf_counter()
        arguments = [COMPILE, str(model), str(target), str(os.cpu_count() or 1)]
        try:
            code, errors = run_limited(arguments, COMPILE_SECONDS)
        except subprocess.TimeoutExpired:
            said.write_text(f"compiling it took more than {COMPILE_SECONDS} s and was stopped")
            return
    seconds = time.perf_counter() - started
    if code:
        raise LeftOut(f"compiling it failed: {(errors.strip().splitlines() or ['?'])[-1]}")
    said.write_text(f"compiled in {seconds:.0f} s")


def run_limited(
    arguments: list[str], seconds: float, folder: Path | None = None
) -> tuple[int, str]:
    """Run Python code with arguments in a process of its own, in a folder. Returns its exit code and
    what it wrote to stderr. subprocess.TimeoutExpired where it was stopped after so many seconds."""
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=folder,
    )
    try:
        _, errors = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # the compilers that it started too
            process.wait()
    return process.returncode, errors


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
