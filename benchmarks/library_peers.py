"""libqwyc and exported C against the C interfaces of the peers, from C programs; answers checked.

    python -W ignore -m benchmarks.library_peers [--trees 500] [--rounds 7] [--tiny]

Two models on UCI Adult: one of XGBoost (depth 5) and one of LightGBM (31 leaves), as no library reads the
other's. Each program loads its model once a round and goes over rows of float32 one at a time, then over
100,000 rows in one call, on one thread. TL2cgen's code and exported C take single rows only. Where ONNX
Runtime decides rows differently, the table says how many. Programs take turns; a figure is the median of
the rounds, in processor time."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import machine

from . import peers
from .cache import Trained, trained
from .cases import LEARNING_RATE, TRAINING_ROWS, adult, train_lightgbm, train_xgboost
from .contest import WrongAnswer
from .export import ALPHA, Built, exported, tl2cgen
from .library import ROOT, library

MANY = 100_000
ONES = 4_000  # rows that are passed one at a time
Figures = tuple[float, float | None]  # nanoseconds per row: one at a time, many at once

HARNESS = """
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
%s
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(int argc, char **argv) {
    if (argc < 6) return 1;
    const int64_t n = atol(argv[2]), ones = atol(argv[3]), width = atol(argv[4]);
    float *rows = malloc((size_t)(n * width) * sizeof *rows);
    int32_t *label = malloc((size_t)n * sizeof *label), *alone = malloc((size_t)ones * sizeof *alone);
    FILE *in = fopen(argv[5], "rb"), *out = fopen(argv[6], "wb");
    if (!rows || !label || !alone || !in || !out || start(argv[1], n, width)) return 2;
    if (fread(rows, sizeof *rows, (size_t)(n * width), in) != (size_t)(n * width)) return 3;
    double single = 0, many = 0;
    for (int pass = 0; pass < 2; ++pass) { /* the first one warms up */
        double begin = now();
        for (int64_t i = 0; i < ones; ++i) alone[i] = one(rows + i * width);
        single = now() - begin;
        begin = now();
        if (all(rows, n, width, label)) return 4;
        many = now() - begin;
    }
    fwrite(alone, sizeof *alone, (size_t)ones, out);
    fwrite(label, sizeof *label, (size_t)n, out);
    fclose(out);
    printf("%%.3f %%.3f\\n", 1e9 * single / (double)ones, 1e9 * many / (double)n);
    return 0;
}
"""

OURS = """
#include <qwyc.h>
static qwyc_model *model;
static int start(const char *path, int64_t n, int64_t width) {
    (void)n, (void)width;
    return qwyc_load(path, &model) != QWYC_OK;
}
static int32_t one(const float *row) {
    int32_t label = -1;
    qwyc_decide_one_f32(model, row, &label, NULL, NULL);
    return label;
}
static int all(const float *rows, int64_t n, int64_t width, int32_t *label) {
    const qwyc_rows given = {rows, QWYC_FLOAT32, n, width, 0, 0};
    return qwyc_decide(model, &given, 1, label, NULL, NULL) != QWYC_OK;
}
"""

XGBOOST = """
extern int XGBoosterCreate(const void **matrices, uint64_t n, void **out);
extern int XGBoosterLoadModel(void *booster, const char *path);
extern int XGBoosterSetParam(void *booster, const char *name, const char *value);
extern int XGBoosterPredictFromDense(void *booster, const char *values, const char *config, void *info,
                                     const uint64_t **shape, uint64_t *axes, const float **result);
static void *model;
static int64_t columns;
static int start(const char *path, int64_t n, int64_t width) {
    (void)n, columns = width;
    return XGBoosterCreate(NULL, 0, &model) || XGBoosterLoadModel(model, path) ||
           XGBoosterSetParam(model, "nthread", "1");
}
static const float *predict(const float *rows, int64_t n) {
    char values[200];
    const uint64_t *shape;
    uint64_t axes;
    const float *result = NULL;
    snprintf(values, sizeof values,
             "{\\"data\\":[%llu,true],\\"shape\\":[%lld,%lld],\\"typestr\\":\\"<f4\\",\\"version\\":3}",
             (unsigned long long)(uintptr_t)rows, (long long)n, (long long)columns);
    XGBoosterPredictFromDense(model, values,
                              "{\\"type\\":0,\\"training\\":false,\\"iteration_begin\\":0,"
                              "\\"iteration_end\\":0,\\"strict_shape\\":false,\\"cache_id\\":0,"
                              "\\"missing\\":NaN}",
                              NULL, &shape, &axes, &result);
    return result;
}
static int32_t one(const float *row) { return predict(row, 1)[0] > 0.5f; }
static int all(const float *rows, int64_t n, int64_t width, int32_t *label) {
    const float *result = predict(rows, n);
    (void)width;
    for (int64_t i = 0; result && i < n; ++i) label[i] = result[i] > 0.5f;
    return !result;
}
"""

LIGHTGBM = """
extern int LGBM_BoosterCreateFromModelfile(const char *path, int *iterations, void **out);
extern int LGBM_BoosterPredictForMat(void *booster, const void *data, int type, int32_t n, int32_t width,
                                     int row_major, int what, int first, int count, const char *options,
                                     int64_t *length, double *result);
extern int LGBM_BoosterPredictForMatSingleRowFastInit(void *booster, int what, int first, int count,
                                                      int type, int32_t width, const char *options,
                                                      void **out);
extern int LGBM_BoosterPredictForMatSingleRowFast(void *fast, const void *data, int64_t *length,
                                                  double *result);
static void *model, *fast;
static double *results;
static int start(const char *path, int64_t n, int64_t width) {
    int iterations;
    results = malloc((size_t)n * sizeof *results);
    return !results || LGBM_BoosterCreateFromModelfile(path, &iterations, &model) ||
           LGBM_BoosterPredictForMatSingleRowFastInit(model, 0, 0, -1, 0, (int32_t)width,
                                                      "num_threads=1", &fast);
}
static int32_t one(const float *row) {
    int64_t length;
    double result = 0;
    LGBM_BoosterPredictForMatSingleRowFast(fast, row, &length, &result);
    return result > 0.5;
}
static int all(const float *rows, int64_t n, int64_t width, int32_t *label) {
    int64_t length;
    const int failed = LGBM_BoosterPredictForMat(model, rows, 0, (int32_t)n, (int32_t)width, 1, 0, 0, -1,
                                                 "num_threads=1", &length, results);
    for (int64_t i = 0; i < n; ++i) label[i] = results[i] > 0.5;
    return failed;
}
"""

# OrtGetApiBase leads to a table of functions. A function is known by its place in it, which never changes;
# the places are those of the public header. A status is NULL if all is well.
ONNX_RUNTIME = """
#include <string.h>
struct entry {
    void (*const *(*table)(uint32_t version))(void);
    const char *(*version)(void);
};
extern const struct entry *OrtGetApiBase(void);
enum { CREATE_ENVIRONMENT = 3, CREATE_SESSION = 7, RUN = 9, CREATE_OPTIONS = 10, THREADS_OF_A_NODE = 24,
       THREADS_OF_NODES = 25, CREATE_TENSOR = 49, DATA_OF_TENSOR = 51, CREATE_MEMORY = 69,
       RELEASE_VALUE = 96 };
enum { DEVICE = 0, ERRORS_ONLY = 3, FLOAT = 1 };
#define CALL(place, ...) ((void *(*)(__VA_ARGS__))functions[place])
static void (*const *functions)(void);
#define RELEASE(value) ((void (*)(void *))functions[RELEASE_VALUE])(value)
static void *environment, *options, *session, *memory, *row_in;
static float *values;
static int64_t columns;
static void *tensor(const float *rows, int64_t n) {
    const int64_t shape[] = {n, columns};
    void *made = NULL;
    CALL(CREATE_TENSOR, void *, const void *, size_t, const int64_t *, size_t, int, void **)
    (memory, rows, (size_t)(n * columns) * sizeof *rows, shape, 2, FLOAT, &made);
    return made;
}
static int predict(void *in, int64_t n, int32_t *label) {
    void *out = NULL;
    int64_t *found = NULL;
    const char *const from = "@input@", *const to = "@output@";
    const int failed = CALL(RUN, void *, void *, const char *const *, void *const *, size_t,
                            const char *const *, size_t, void **)
                       (session, NULL, &from, &in, 1, &to, 1, &out) ||
                       CALL(DATA_OF_TENSOR, void *, int64_t **)(out, &found);
    for (int64_t i = 0; !failed && i < n; ++i) label[i] = (int32_t)found[i];
    RELEASE(out);
    return failed;
}
static int start(const char *path, int64_t n, int64_t width) {
    (void)n, columns = width;
    values = malloc((size_t)width * sizeof *values);
    functions = OrtGetApiBase()->table(1);
    return !values || !functions ||
           CALL(CREATE_ENVIRONMENT, int, const char *, void **)(ERRORS_ONLY, "", &environment) ||
           CALL(CREATE_OPTIONS, void **)(&options) || CALL(THREADS_OF_A_NODE, void *, int)(options, 1) ||
           CALL(THREADS_OF_NODES, void *, int)(options, 1) ||
           CALL(CREATE_SESSION, void *, const char *, void *, void **)
           (environment, path, options, &session) ||
           CALL(CREATE_MEMORY, int, int, void **)(DEVICE, 0, &memory) ||
           !(row_in = tensor(values, 1));
}
static int32_t one(const float *row) {
    int32_t label = -1;
    memcpy(values, row, (size_t)columns * sizeof *row);
    predict(row_in, 1, &label);
    return label;
}
static int all(const float *rows, int64_t n, int64_t width, int32_t *label) {
    void *const in = tensor(rows, n);
    const int failed = !in || predict(in, n, label);
    (void)width;
    RELEASE(in);
    return failed;
}
"""


def program(folder: Path, name: str, body: str, *linked: str) -> Path:
    """A C program that times a library."""
    source = folder / f"{name}.c"
    source.write_text(HARNESS % body)
    flags = ("-std=c99", "-O2", f"-I{ROOT}/include")
    subprocess.run(["cc", *flags, source, "-o", folder / name, *linked], check=True)
    return folder / name


def shared(package: str, pattern: str) -> tuple[str, ...]:
    """What links the library that is in a Python package."""
    folder = Path(str(importlib.import_module(package).__file__)).parent
    found = sorted(folder.glob(pattern))
    if not found:
        raise peers.LeftOut(f"{package} has no {pattern}")
    return str(found[0]), f"-Wl,-rpath,{found[0].parent}"


def version_of(package: str) -> str:
    """Of an installed library."""
    return str(importlib.import_module(package).__version__)


def run(words: list[Any], rows: Any, ones: int, expected: Any, name: str) -> Figures:
    """One round of a program."""
    folder = Path(words[0]).parent
    sizes = [str(len(rows)), str(ones), str(rows.shape[1])]
    done = subprocess.run(
        [*map(str, words), *sizes, folder / "rows", folder / "labels"],
        capture_output=True,
        text=True,
        check=True,
    )
    labels = np.frombuffer((folder / "labels").read_bytes(), np.int32)
    check(labels, np.concatenate([expected[:ones], expected]), name)
    one, many = map(float, done.stdout.split()[-2:])
    return one, many


def check(found: Any, expected: Any, name: str) -> None:
    """Raise WrongAnswer where a decision differs."""
    wrong = int(np.count_nonzero(np.asarray(found) != expected))
    if wrong:
        raise WrongAnswer(f"{name} decides {wrong:,} of {len(expected):,} rows differently")


def of_source(built: Built, rows: Any, ones: int, expected: Any, name: str) -> Figures:
    """One round of exported C or TL2cgen's code, which take rows one at a time."""
    folder = built.program.parent
    (folder / "rows").write_bytes(np.ascontiguousarray(rows[:ones]).tobytes())
    words = [built.program, str(ones), "0.05", folder / "rows", folder / "labels"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    check(np.frombuffer((folder / "labels").read_bytes(), np.uint8), expected[:ones], name)
    return float(done.stdout.split()[0]), None


def onnx_runtime(folder: Path, of: Trained, rows: Any) -> tuple[list[Any], str, Any]:
    """A program with ONNX Runtime and its model, the version, and the decisions that Python gets."""
    runtime, version = peers.library("onnxruntime")
    called = peers.onnx_runtime(of, 1)
    assert called.batch is not None
    linked = folder / f"libonnxruntime.so.{version.split('.')[0]}"  # its own name for itself
    linked.symlink_to(shared("onnxruntime", "capi/libonnxruntime.so*")[0])
    content = peers.onnx_model(of)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    body = ONNX_RUNTIME.replace("@input@", session.get_inputs()[0].name)
    body = body.replace("@output@", session.get_outputs()[0].name)
    built = program(folder, "onnxruntime", body, str(linked), f"-Wl,-rpath,{folder}")
    return [built, content], version, np.ravel(called.batch(rows)).astype(np.int32)


@contextlib.contextmanager
def or_left_out(peer: str) -> Iterator[None]:
    """A peer that cannot take part is named, and the others go on."""
    try:
        yield
    except peers.LeftOut as reason:
        print(f"{peer} is left out: {reason}")


def contest(name: str, of: Trained, folder: Path, n: int, ones: int, rounds: int) -> None:
    """Print a table for one model."""
    folder.mkdir()
    sample, _, test = adult()
    model = of.model
    fast = qwyc.optimize(
        model, sample[TRAINING_ROWS:], alpha=ALPHA, evaluation="quit", progress=False
    )
    rows = np.ascontiguousarray(np.resize(test, (n, test.shape[1])), dtype=np.float32)
    (folder / "rows").write_bytes(rows.tobytes())
    linked = (f"-L{library()}", "-lqwyc", f"-Wl,-rpath,{library()}")
    ours = program(folder, "libqwyc", OURS, *linked)
    turns: dict[str, Callable[[], Figures]] = {}
    full = fast.full().predict(rows)
    for title, classifier in (("quitting", fast), ("in full", fast.full())):
        path, expected = folder / f"{title}.qwyc", classifier.predict(rows)
        classifier.save(path)
        label = f"libqwyc, {title}"
        turns[label] = lambda p=path, e=expected, t=label: run([ours, p], rows, ones, e, t)  # type: ignore[misc]
        if name == "XGBoost":  # whose rows are of float32, as the timer of exported C has them
            label, built = (
                f"exported C, {title}",
                exported(folder / f"{title} C", classifier, False, "cc"),
            )
            turns[label] = lambda b=built, e=expected, t=label: of_source(b, rows, ones, e, t)  # type: ignore[misc]
    with or_left_out("C API"):
        if name == "XGBoost":
            model.save_model(folder / "model.ubj")
            theirs = program(folder, "peer", XGBOOST, *shared("xgboost", "lib/libxgboost.so"))
            words, version = [theirs, folder / "model.ubj"], version_of("xgboost")
        else:
            model.booster_.save_model(folder / "model.txt")
            theirs = program(folder, "peer", LIGHTGBM, *shared("lightgbm", "lib/lib_lightgbm.so"))
            words, version = [theirs, folder / "model.txt"], version_of("lightgbm")
        label = f"{name} {version}, C API"
        turns[label] = lambda: run(words, rows, ones, full, name)
    if name == "XGBoost":
        with or_left_out("TL2cgen"):
            code, version = tl2cgen(folder / "tl", model, rows.shape[1], "cc")
            bits = np.where(np.isnan(rows), np.int32(-1), rows.view(np.int32))
            turns[f"TL2cgen {version}"] = lambda: of_source(code, bits, ones, full, "TL2cgen")
    with or_left_out("ONNX Runtime"):
        started, version, decided = onnx_runtime(folder, of, rows)
        differs = int(np.count_nonzero(decided != full))
        label = f"ONNX Runtime {version}, C API; {differs:,} rows decided differently"
        turns[label] = lambda: run(started, rows, ones, decided, "ONNX Runtime")
    taken: dict[str, list[Figures]] = {title: [] for title in turns}
    for _ in range(rounds):
        for title, turn in turns.items():
            taken[title].append(turn())
    print(f"\n| {name}'s model, ns per row | one at a time | {n:,} rows at once |\n|---|---|---|")
    for title, figures in taken.items():
        one = float(np.median([figure[0] for figure in figures]))
        batch = [figure[1] for figure in figures if figure[1] is not None]
        cell = f"{float(np.median(batch)):,.0f}" if batch else ""
        print(f"| {title} | {one:,.0f} | {cell} |", flush=True)


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tiny", action="store_true", help="only see that it runs")
    chosen = parser.parse_args()
    trees, rounds = (20, 1) if chosen.tiny else (chosen.trees, chosen.rounds)
    n, ones = (500, 100) if chosen.tiny else (MANY, ONES)
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    with tempfile.TemporaryDirectory() as folder:
        of = trained(train_xgboost, trees=trees, depth=5, learning_rate=LEARNING_RATE)
        contest("XGBoost", of, Path(folder) / "xgboost", n, ones, rounds)
        of = trained(train_lightgbm, trees=trees, leaves=31)
        contest("LightGBM", of, Path(folder) / "lightgbm", n, ones, rounds)


if __name__ == "__main__":
    main()
