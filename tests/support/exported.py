"""Classifiers as C: compiled, loaded, and compared with Python, row by row."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from qwyc.classifier import Classifier
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
REFUSED = -1
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LEVELS = (("-O0",), ("-O2", "-march=native"), ("-O3", "-march=native"))
MANY_ROWS = 100_000

# Decides rows one by one, from a library or from files.
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include "{header}"

#define REAL {real}
#define N_FEATURES {n_features}
#define K {n_scores}

void run_rows(const REAL *rows, long n, int32_t *label, int32_t *steps, double *score);
void run_rows(const REAL *rows, long n, int32_t *label, int32_t *steps, double *score) {{
    long i;
    for (i = 0; i < n; ++i) {{
        label[i] = (int32_t){prefix}_decide_one(rows + i * N_FEATURES, steps + i{score});
        if (label[i] != {prefix}_predict_one(rows + i * N_FEATURES)) label[i] = -1000;
    }}
    (void)score;
}}

#ifdef AS_PROGRAM
int main(int argc, char **argv) {{
    const long n = argc > 2 ? atol(argv[1]) : 0;
    FILE *file = fopen(argv[2], "rb");
    REAL *rows = malloc((size_t)n * N_FEATURES * sizeof *rows);
    int32_t *label = malloc((size_t)n * sizeof *label), *steps = malloc((size_t)n * sizeof *steps);
    double *score = calloc((size_t)n * K, sizeof *score);
    if (!file || !rows || !label || !steps || !score) return 2;
    if (fread(rows, sizeof *rows, (size_t)n * N_FEATURES, file) != (size_t)n * N_FEATURES) return 3;
    fclose(file);
    run_rows(rows, n, label, steps, score);
    fwrite(label, sizeof *label, (size_t)n, stdout);
    fwrite(steps, sizeof *steps, (size_t)n, stdout);
    fwrite(score, sizeof *score, (size_t)n * K, stdout);
    free(rows), free(label), free(steps), free(score);
    return 0;
}}
#endif
"""


@dataclass(frozen=True)
class Exported:
    """C files of a classifier, with a driver."""

    folder: Path
    fast: Classifier
    small: bool
    sources: tuple[Path, ...]
    dtype: np.dtype

    @property
    def n_scores(self):
        return self.fast.ensemble.base_models.n_scores

    def compiled(self, *flags, compiler="cc", warnings=WARNINGS):
        """Compile the files with these flags and return what decides rows."""
        target = self.folder / f"{len(list(self.folder.iterdir()))}.so"
        self._compile(compiler, *warnings, *flags, "-shared", "-fPIC", target=target)
        library = ctypes.CDLL(str(target))

        def decide(rows):
            n = len(rows)
            label, steps = np.empty(n, np.int32), np.empty(n, np.int32)
            score = np.zeros((n, self.n_scores))
            pointers = (a.ctypes.data_as(ctypes.c_void_p) for a in (label, steps, score))
            data = rows.ctypes.data_as(ctypes.c_void_p)
            library.run_rows(data, ctypes.c_long(n), *pointers)
            return label, steps, score

        return decide

    def run_as_program(self, rows, *flags, compiler="cc"):
        """The same from a program of its own, which sanitizers can stop."""
        target, data = self.folder / "program", self.folder / "rows.bin"
        self._compile(compiler, *WARNINGS, *flags, "-DAS_PROGRAM", target=target)
        data.write_bytes(rows.tobytes())
        n = len(rows)
        run = subprocess.run([target, str(n), data], capture_output=True, check=False)
        assert run.returncode == 0, run.stderr.decode()[-2000:]
        ends = (4 * n, 8 * n)
        label, steps = (np.frombuffer(run.stdout[e - 4 * n : e], np.int32) for e in ends)
        return label, steps, np.frombuffer(run.stdout[8 * n :]).reshape(n, -1)

    def _compile(self, compiler, *flags, target):
        command = [compiler, *flags, *self.sources, "-o", target, "-lm"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr[:3000]

    def check(self, decide, rows):
        """Hold decisions, steps and scores to Python's, bit for bit."""
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        label, steps, score = decide(rows)
        expected = self.fast.decide(rows, unseen="flag")
        position = {value: k for k, value in enumerate(self.fast.ensemble.classes.tolist())}
        index = np.array([position.get(value, REFUSED) for value in expected.label.tolist()])
        np.testing.assert_array_equal(label, index)
        np.testing.assert_array_equal(steps, expected.steps)
        if not self.small:
            theirs = np.ascontiguousarray(expected.score.reshape(len(rows), -1))
            missing = np.isnan(theirs)  # all NaN is alike
            np.testing.assert_array_equal(np.isnan(score), missing)
            np.testing.assert_array_equal(
                np.where(missing, 0, score.view(np.int64)),
                np.where(missing, 0, theirs.view(np.int64)),
            )
        return expected

    def check_every_build(self, rows):
        """gcc and clang at three levels of optimisation, and under sanitizers."""
        for compiler in ("gcc", "clang"):
            needs(compiler)
            for flags in LEVELS:
                self.check(self.compiled(*flags, compiler=compiler), rows)
            self.check(
                lambda rows, c=compiler: self.run_as_program(rows, *SANITIZERS, compiler=c), rows
            )


def needs(compiler):
    """Skip a test where a compiler is missing."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")


def exported(folder, fast, *, prefix="qwyc", small=False, name="model"):
    """Write the C files of a classifier, and a driver."""
    folder.mkdir(exist_ok=True)
    source, header = fast.export_c(folder / name, prefix=prefix, small=small)
    schema = fast.ensemble.schema
    driver = folder / f"{name}_driver.c"
    driver.write_text(
        DRIVER.format(
            header=header.name,
            real="float" if schema.dtype == "float32" else "double",
            n_features=schema.n_features,
            n_scores=fast.ensemble.base_models.n_scores,
            prefix=prefix,
            score="" if small else ", score + i * K",
        )
    )
    return Exported(folder, fast, small, (source, driver), np.dtype(schema.dtype))


def with_random_policy(ensemble, rows, seed=0, quits="both"):
    """A classifier whose thresholds are running sums of these rows, so that some rows lie on them."""
    rng = np.random.default_rng(seed)
    scores = ensemble.scores(rows)
    order = rng.permutation(ensemble.n_models)
    sums = scores.base + np.cumsum(scores.values[:, order].astype(float), axis=1)
    T = ensemble.n_models
    if ensemble.by_class:
        K = len(ensemble.classes)
        two = np.sort(sums, axis=2)[:, :, -2:]
        lead = np.quantile(two[..., 1] - two[..., 0], 0.9, axis=0, method="nearest")  # (T,)
        lead = lead[:, None] * rng.choice([1.0, 1.0, 1.5], (T, K))
        lead[rng.random(T) < 0.3] = np.inf
        policy = LeadPolicy(order, lead, np.ones(T), ties=ensemble.base_models.ties)
        return _uncertified(ensemble, policy)
    lower, upper = (np.quantile(sums, q, axis=0, method="nearest") for q in (0.08, 0.92))
    open_ = rng.random(T) < 0.3
    lower[open_ | (quits == "positive")] = -math.inf
    upper[open_ | (quits == "negative")] = math.inf
    policy = Policy(order, lower, upper, ensemble.threshold, np.ones(T))
    return _uncertified(ensemble, policy)


def with_random_filter(ensemble, rows, only, seed=0):
    """A filter for a class whose thresholds are distances of these rows, so that some rows lie on them."""
    rng, T = np.random.default_rng(seed), ensemble.n_models
    scores, order = ensemble.scores(rows), rng.permutation(T)
    sums = scores.base + np.cumsum(scores.values[:, order].astype(float), axis=1)  # (N, T, K)
    ahead = np.delete(sums, only, axis=2).max(axis=2) - sums[:, :, only]
    gap = np.quantile(ahead, 0.9, axis=0, method="nearest")
    gap[rng.random(T) < 0.3] = np.inf
    ties = ensemble.base_models.ties
    policy = FilterPolicy(order, gap, np.ones(T), only, len(ensemble.classes), ties)
    return _uncertified(ensemble, policy)


def _uncertified(ensemble, policy):
    budget = budget_of(0.0, target=policy.target)
    return Classifier(ensemble, policy, observed_certificate("in-sample", budget, policy, None))


def odd_rows(ensemble, n, seed=0):
    """Rows of thresholds and their neighbours, codes, NaN, infinities, denormals and both zeros."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(ensemble.schema.dtype)
    shape = (n, ensemble.schema.n_features)
    with np.errstate(over="ignore"):
        rows = (rng.normal(size=shape) * 10.0 ** rng.integers(-2, 4, shape)).astype(dtype)
    for j, values in (ensemble.base_models.cuts() or {}).items():
        cuts = values.astype(dtype)
        near = np.concatenate(
            [cuts, np.nextafter(cuts, dtype.type(np.inf)), np.nextafter(cuts, dtype.type(-np.inf))]
        )
        here = rng.random(n) < 0.7
        rows[here, j] = rng.choice(near, int(here.sum()))
    tiny = np.finfo(dtype).smallest_subnormal
    odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, tiny, -tiny, 1e-36, 2.0**24, 3e9, -0.5, -1.0]
    here = rng.random(shape) < 0.15
    rows[here] = rng.choice(np.array(odd, dtype), int(here.sum()))
    return rows
