"""Exported C, one row at a time, against `predict_one` in Python and against TL2cgen; answers checked.

    python -W ignore -m benchmarks.export [--trees 500] [--seconds 5] [--compiler cc] [--tiny]

XGBoost on UCI Adult, depth 5. Programs go over all test rows with one call per row. Times are
processor time, of the pass at the first decile, which other work on the machine has not disturbed.
TL2cgen's nested ifs get rows in the form that they take, and compute the margin
only. Compile time is the processor time of all compilers that a model needs, at -O2; memory is that of the
largest one. Bytes are those of code and constants in the object files."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import machine

from .cache import trained
from .cases import LEARNING_RATE, TRAINING_ROWS, adult, train_xgboost
from .contest import WrongAnswer
from .peers import LeftOut, library

ALPHA = 0.005
UNITS = 2  # translation units of TL2cgen, which compile at the same time where there are two cores
# A process that is larger than the compiler would count as its memory.
WATCH = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)
"""

TIMER = """
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
{include}

static double now(void) {{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}}

static int compare(const void *a, const void *b) {{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}}

int main(int argc, char **argv) {{
    enum {{ MOST = 100000 }};
    static double seconds[MOST];
    const long n = argc > 4 ? atol(argv[1]) : 0;
    const double length = atof(argv[2]);
    float *rows = malloc((size_t)n * {width} * sizeof *rows);
    unsigned char *label = malloc((size_t)n);
    FILE *in = fopen(argv[3], "rb"), *out = fopen(argv[4], "wb");
    const double begin = now();
    int passes = 0;
    if (!rows || !label || !in || !out) return 2;
    if (fread(rows, sizeof *rows, (size_t)n * {width}, in) != (size_t)n * {width}) return 3;
    do {{
        const double start = now();
        for (long i = 0; i < n; ++i) {{
            {call}
        }}
        seconds[passes++] = now() - start;
    }} while (now() - begin < length && passes < MOST);
    fwrite(label, 1, (size_t)n, out);
    fclose(out);
    qsort(seconds, (size_t)passes, sizeof *seconds, compare);
    printf("%.3f %d\\n", 1e9 * seconds[passes / 10] / (double)n, passes);
    return 0;
}}
"""


@dataclass(frozen=True)
class Built:
    """A model as a program, and what it took to make it."""

    seconds: float  # processor time of the compilers
    megabytes: float  # of the largest of them
    size: int  # bytes of code and constants
    program: Path


def measured(command: Sequence[Any]) -> tuple[float, float]:
    """Run a compiler: its processor time, and its megabytes, with its own processes."""
    words = [sys.executable, "-S", "-c", WATCH, *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongAnswer(f"the compiler failed: {' '.join(map(str, command))}: {done.stderr}")
    seconds, kilobytes = done.stdout.split()[-2:]
    return float(seconds), float(kilobytes) / 1024


def build(folder: Path, sources: Sequence[Path], timer: str, compiler: str) -> Built:
    """Compile a model, and a program that times it."""
    objects, seconds, most = [], 0.0, 0.0
    for source in sources:
        target = source.with_suffix(".o")
        taken, megabytes = measured([compiler, "-std=c99", "-O2", "-c", source, "-o", target])
        objects.append(target)
        seconds, most = seconds + taken, max(most, megabytes)
    found = subprocess.run(["size", *objects], capture_output=True, text=True, check=True).stdout
    size = sum(sum(map(int, line.split()[:2])) for line in found.splitlines()[1:])
    main = folder / "timer.c"
    main.write_text(timer)
    program = folder / "timer"
    subprocess.run(
        [compiler, "-std=c99", "-O2", "-I", folder, main, *objects, "-o", program, "-lm"],
        check=True,
    )
    return Built(seconds, most, size, program)


def timed(built: Built, rows: Any, seconds: float, expected: Any, name: str) -> float:
    """Nanoseconds per row; raises WrongAnswer where a decision is not the expected one."""
    folder = built.program.parent
    (folder / "rows").write_bytes(np.ascontiguousarray(rows).tobytes())
    done = subprocess.run(
        [built.program, str(len(rows)), str(seconds), folder / "rows", folder / "labels"],
        capture_output=True,
        text=True,
        check=True,
    )
    labels = np.frombuffer((folder / "labels").read_bytes(), np.uint8)
    wrong = int(np.count_nonzero(labels != expected))
    if wrong:
        raise WrongAnswer(f"{name} decides {wrong:,} of {len(rows):,} rows differently")
    return float(done.stdout.split()[0])


def exported(folder: Path, fast: qwyc.Classifier, small: bool, compiler: str) -> Built:
    """A classifier as C."""
    folder.mkdir()
    source, header = fast.export_c(folder / "model", small=small)
    timer = TIMER.format(
        include=f'#include "{header.name}"',
        width="QWYC_N_FEATURES",
        call="label[i] = (unsigned char)qwyc_predict_one(rows + i * QWYC_N_FEATURES);",
    )
    return build(folder, [source], timer, compiler)


def tl2cgen(folder: Path, model: Any, width: int, compiler: str) -> tuple[Built, str]:
    """The whole model as TL2cgen writes it, and the version."""
    module, version = library("tl2cgen")
    treelite, _ = library("treelite")
    folder.mkdir()
    read = treelite.frontend.from_xgboost(model.get_booster())
    module.generate_c_code(read, dirpath=folder, params={"parallel_comp": UNITS})
    timer = TIMER.format(
        include='#include "header.h"',
        width=width,
        call=f"float margin = 0; predict((union Entry *)(rows + i * {width}), 1, &margin); "
        "label[i] = margin > 0;",
    )
    return build(folder, sorted(folder.glob("*.c")), timer, compiler), version


def in_python(fast: qwyc.Classifier, rows: Any, seconds: float) -> float:
    """Nanoseconds of `predict_one` on NumPy rows, as in the programs."""
    predict, one_by_one, passes = fast.predict_one, list(rows[:20_000]), []
    begin = time.process_time()
    while not passes or time.process_time() - begin < seconds:
        start = time.process_time()
        for row in one_by_one:
            predict(row)
        passes.append((time.process_time() - start) / len(one_by_one))
    return 1e9 * float(np.quantile(passes, 0.1))


def line(name: str, nanoseconds: float, built: Built | None) -> str:
    """A line of the table."""
    cells = ["", "", ""]
    if built is not None:
        cells = [f"{built.seconds:.2f} s", f"{built.megabytes:.0f} MB", f"{built.size:,}"]
    return f"| {name} | {nanoseconds:,.0f} | {' | '.join(cells)} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--tiny", action="store_true", help="only see that it runs")
    chosen = parser.parse_args()
    trees, seconds = (20, 0.0) if chosen.tiny else (chosen.trees, chosen.seconds)
    print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    found = subprocess.run(
        [chosen.compiler, "--version"], capture_output=True, text=True, check=True
    )
    print(f"compiler: {found.stdout.splitlines()[0]}")
    rows, _, test = adult()
    model = trained(train_xgboost, trees=trees, depth=5, learning_rate=LEARNING_RATE).model
    fast = qwyc.optimize(
        model, rows[TRAINING_ROWS:], alpha=ALPHA, evaluation="quit", progress=False
    )
    quits, full = fast.predict(test), fast.full().predict(test)
    steps = fast.decide(test).steps.mean()
    print(f"XGBoost, {trees} trees, depth 5; {steps:.1f} trees per row where it quits")
    print(
        "| one row at a time | ns per row | compiled in | memory | bytes |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as name:
        for title, classifier, small, expected in (
            ("exported C, quitting", fast, False, quits),
            ("exported C, quitting, small form", fast, True, quits),
            ("exported C, in full", fast.full(), False, full),
            ("exported C, in full, small form", fast.full(), True, full),
        ):
            built = exported(Path(name) / title, classifier, small, chosen.compiler)
            print(line(title, timed(built, test, seconds, expected, title), built), flush=True)
        try:
            built, version = tl2cgen(Path(name) / "tl", model, test.shape[1], chosen.compiler)
            bits = np.where(np.isnan(test), np.int32(-1), test.view(np.int32))
            title = f"TL2cgen {version}, in full"
            print(line(title, timed(built, bits, seconds, full, title), built), flush=True)
        except LeftOut as reason:
            print(f"TL2cgen is left out: {reason}")
    for title, classifier in (("quitting", fast), ("in full", fast.full())):
        print(line(f"`predict_one` in Python, {title}", in_python(classifier, test, seconds), None))


if __name__ == "__main__":
    main()
