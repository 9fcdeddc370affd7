"""libqwyc: from a file to the first answer, one row at a time, and many rows at once; answers checked.

    python -W ignore -m benchmarks.library [--trees 500] [--seconds 3] [--tiny]

XGBoost on UCI Adult, depth 5. The library is compiled in build/ctest, as `make ctest` does, and called
from a C program on one thread. Times are processor time. Loading is the median of many loads in one
process, each followed by the decision of one row, in processor time and in time passed; the first load of
the process stands beside it. Rows are timed by the pass at the first decile."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import machine

from .cache import trained
from .cases import LEARNING_RATE, TRAINING_ROWS, adult, train_xgboost
from .contest import WrongAnswer
from .export import exported, in_python, timed

ALPHA = 0.005
ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "ctest"

TIMER = """
#define _POSIX_C_SOURCE 199309L
#include <qwyc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 100000 };
static double seconds[MOST], passed[MOST];

static double at(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double now(void) { return at(CLOCK_PROCESS_CPUTIME_ID); }
static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double at_share(double *of, int n, int parts) {
    qsort(of, (size_t)n, sizeof *of, compare);
    return of[n / parts];
}

int main(int argc, char **argv) {
    const char *const path = argv[1];
    const long n = argc > 6 ? atol(argv[2]) : 0, width = argc > 6 ? atol(argv[6]) : 0;
    const double length = atof(argv[3]);
    FILE *in = fopen(argv[4], "rb"), *out = fopen(argv[5], "wb");
    qwyc_model *model = NULL;
    double first = 0, load, wall, one, many, begin;
    int passes = 0;
    float *rows = malloc((size_t)(n * width) * sizeof *rows);
    int32_t *label = malloc((size_t)n * sizeof *label), *again = malloc((size_t)n * sizeof *again);
    if (!rows || !label || !again || !in || !out) return 2;
    if (fread(rows, sizeof *rows, (size_t)(n * width), in) != (size_t)(n * width)) return 3;
    begin = now();
    do {
        const double then = at(CLOCK_MONOTONIC), start = now();
        if (qwyc_load(path, &model) != QWYC_OK) return puts(qwyc_last_error()), 2;
        if (qwyc_decide_one_f32(model, rows, label, NULL, NULL) != QWYC_OK) return 2;
        passed[passes] = at(CLOCK_MONOTONIC) - then;
        seconds[passes++] = now() - start;
        if (passes == 1) first = seconds[0];
        if (now() - begin < length && passes < MOST) qwyc_free(model), model = NULL;
    } while (!model);
    load = at_share(seconds, passes, 2), wall = at_share(passed, passes, 2);
    begin = now(), passes = 0;
    do {
        const double start = now();
        for (long i = 0; i < n; ++i) qwyc_decide_one_f32(model, rows + i * width, label + i, NULL, NULL);
        seconds[passes++] = now() - start;
    } while (now() - begin < length && passes < MOST);
    one = at_share(seconds, passes, 10) / (double)n;
    const qwyc_rows all = {rows, QWYC_FLOAT32, n, width, 0, 0};
    begin = now(), passes = 0;
    do {
        const double start = now();
        if (qwyc_decide(model, &all, 1, again, NULL, NULL) != QWYC_OK) return 2;
        seconds[passes++] = now() - start;
    } while (now() - begin < length && passes < MOST);
    many = at_share(seconds, passes, 10) / (double)n;
    fwrite(label, sizeof *label, (size_t)n, out);
    fwrite(again, sizeof *again, (size_t)n, out);
    fclose(out);
    printf("%.9f %.9f %.9f %.3f %.3f\\n", first, load, wall, 1e9 * one, 1e9 * many);
    qwyc_free(model);
    return 0;
}
"""


def library() -> Path:
    """The folder of the shared library, compiled if it is out of date."""
    cmake = Path(sys.executable).with_name("cmake")
    program = str(cmake) if cmake.exists() else "cmake"
    options = ("-DQWYC_PYTHON=OFF", "-DQWYC_TESTS=ON", "-DQWYC_LIBRARY=ON")
    for command in (("-S", ROOT, "-B", BUILD, *options), ("--build", BUILD, "--target", "qwyc")):
        subprocess.run([program, *map(str, command)], check=True, capture_output=True)
    return BUILD


def measure(
    folder: Path, fast: qwyc.Classifier, rows: Any, seconds: float
) -> tuple[float, float, float, float, float, int]:
    """Seconds of the first load, of a later one in processor time and in time passed; nanoseconds per row
    one at a time and of many; bytes of the file. Raises WrongAnswer where a decision is not Python's."""
    folder.mkdir()
    fast.save(folder / "model.qwyc")
    (folder / "timer.c").write_text(TIMER)
    (folder / "rows").write_bytes(np.ascontiguousarray(rows).tobytes())
    built, program = library(), folder / "timer"
    linked = (f"-L{built}", "-lqwyc", f"-Wl,-rpath,{built}")
    source = ("-std=c99", "-O2", f"-I{ROOT}/include", folder / "timer.c")
    subprocess.run(["cc", *source, "-o", program, *linked], check=True)
    words = [program, folder / "model.qwyc", str(len(rows)), str(seconds)]
    done = subprocess.run(
        [*words, folder / "rows", folder / "labels", str(rows.shape[1])],
        capture_output=True,
        text=True,
        check=True,
    )
    labels = np.frombuffer((folder / "labels").read_bytes(), np.int32).reshape(2, -1)
    expected = fast.predict(rows)
    wrong = int(np.count_nonzero(fast.ensemble.classes.take(labels) != expected))
    if wrong:
        raise WrongAnswer(f"libqwyc decides {wrong:,} rows differently")
    first, load, wall, one, many = map(float, done.stdout.split())
    return first, load, wall, one, many, (folder / "model.qwyc").stat().st_size


def per_row(run: Callable[[], Any], n: int, seconds: float) -> float:
    """Nanoseconds of processor time per row, of the pass at the first decile."""
    passes: list[float] = []
    begin = time.process_time()
    while not passes or time.process_time() - begin < seconds:
        start = time.process_time()
        run()
        passes.append(time.process_time() - start)
    return 1e9 * float(np.quantile(passes, 0.1)) / n


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each figure")
    parser.add_argument("--tiny", action="store_true", help="only see that it runs")
    chosen = parser.parse_args()
    trees, seconds = (20, 0.0) if chosen.tiny else (chosen.trees, chosen.seconds)
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    rows, _, test = adult()
    model = trained(train_xgboost, trees=trees, depth=5, learning_rate=LEARNING_RATE).model
    fast = qwyc.optimize(
        model, rows[TRAINING_ROWS:], alpha=ALPHA, evaluation="quit", progress=False
    )
    if chosen.tiny:
        test = test[:500]
    with tempfile.TemporaryDirectory() as name:
        print("| from a file to the first answer | bytes | first | median | median time passed |")
        print("|---|---|---|---|---|")
        figures = {}
        for title, classifier in (("quitting", fast), ("in full", fast.full())):
            *loads, one, many, size = measure(Path(name) / title, classifier, test, seconds)
            shown = " | ".join(f"{1e3 * load:.2f} ms" for load in loads)
            print(f"| {trees} trees, {title} | {size:,} | {shown} |", flush=True)
            figures[title] = one, many
        print("\n| ns per row, one thread | one at a time | many at once |\n|---|---|---|")
        for title, classifier in (("quitting", fast), ("in full", fast.full())):
            one, many = figures[title]
            print(f"| libqwyc, {title} | {one:,.0f} | {many:,.0f} |", flush=True)
            alone = in_python(classifier, test, seconds)
            runs = classifier.predict
            batch = per_row(lambda runs=runs: runs(test, threads=1), len(test), seconds)  # type: ignore[misc]
            print(f"| Python, {title} | {alone:,.0f} | {batch:,.0f} |", flush=True)
            built = exported(Path(name) / f"{title} in C", classifier, False, "cc")
            taken = timed(built, test, seconds, classifier.predict(test), "exported C")
            print(f"| exported C, {title} | {taken:,.0f} | |", flush=True)
        booster = model.get_booster()
        booster.set_param({"nthread": 1})
        theirs = per_row(lambda: booster.inplace_predict(test), len(test), seconds)
        right = (booster.inplace_predict(test) > 0.5) == fast.full().predict(test).astype(bool)
        if not right.all():
            raise WrongAnswer("XGBoost decides rows differently")
        print(f"| XGBoost's own `inplace_predict`, in full | | {theirs:,.0f} |")


if __name__ == "__main__":
    main()
