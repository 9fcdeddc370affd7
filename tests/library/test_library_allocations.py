"""No allocation for a row: none at all for single rows, and as many for 8,000 rows at once as for 1,000."""

from __future__ import annotations

import subprocess
from pathlib import Path

import catboost
import numpy as np
from test_library_catboost import make_frame, train
from test_library_kinds import certified

import qwyc
from class_forests import random_classes, random_policy
from exported import with_random_policy
from forests import random_ensemble, random_rows
from lattices import lattice_rows, random_lattices
from library import ROOT, built
from qwyc.files import classifier_file

MOST = 8000  # rows; count_allocations.c


def classifiers():
    for seed in range(3):
        ensemble = random_ensemble(seed, n_trees=40)
        yield with_random_policy(ensemble, random_rows(seed, ensemble), seed)
    for seed in range(3):
        ensemble = random_classes(seed, n_classes=2 + seed, vectors=seed == 2, gaps=seed == 1)
        yield certified(ensemble, random_policy(seed, ensemble, rules_out=seed == 1))
    for seed in range(3):
        ensemble = random_lattices(seed)
        yield with_random_policy(ensemble, lattice_rows(seed, ensemble), seed)
    frame, y = make_frame()
    ensemble = qwyc.read_model(train(catboost.CatBoostClassifier, y > 0))
    yield with_random_policy(ensemble, frame)


def test_calls_allocate_nothing_for_a_row(tmp_path):
    program, folder = tmp_path / "count", built()
    source = Path(__file__).with_name("count_allocations.c")
    linked = (f"-L{folder}", "-lqwyc", f"-Wl,-rpath,{folder}", "-rdynamic")
    flags = ("-std=c11", "-O1", f"-I{ROOT}/include", "-fno-builtin")
    subprocess.run(["cc", *flags, source, "-o", program, *linked], check=True)
    files, width = [], 0
    for i, fast in enumerate(classifiers()):
        files.append(tmp_path / f"{i}.qwyc")
        files[-1].write_bytes(classifier_file.to_bytes(fast))
        width = max(width, fast.ensemble.schema.n_features)
    numbers = np.random.default_rng(0).integers(0, 9, MOST * width).astype(np.float64)
    numbers.tofile(tmp_path / "numbers")
    done = subprocess.run(
        [program, tmp_path / "numbers", *files], capture_output=True, text=True, check=True
    )
    counts = np.array([line.split() for line in done.stdout.splitlines()], dtype=int)
    assert counts.shape == (len(files), 3)
    one, fewer, more = counts.T
    assert (one == 0).all(), counts
    assert (counts >= 0).all(), counts
    assert (more - fewer <= 16).all(), counts  # 5,000 rows more
