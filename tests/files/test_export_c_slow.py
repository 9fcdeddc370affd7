"""Exported C on 100,000 rows, by two compilers, under sanitizers and for a Cortex-M4."""

from __future__ import annotations

import re
import shutil
import subprocess

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import RandomForestClassifier

import qwyc
from class_forests import random_classes
from exported import (
    MANY_ROWS,
    SANITIZERS,
    exported,
    needs,
    odd_rows,
    with_random_filter,
    with_random_policy,
)
from forests import random_ensemble, random_rows
from lattices import lattice_rows, random_lattices
from qwyc.datasets import load_adult

pytestmark = pytest.mark.slow


def random_classifier(family):
    if family == "lattices":
        ensemble = random_lattices(21, n_models=30, most_inputs=7)
        rows = lattice_rows(21, ensemble, 2000)
    else:
        by_class = family in ("classes", "filter")
        ensemble = random_classes(22, rounds=20) if by_class else random_ensemble(22)
        rows = random_rows(21, ensemble, 2000)
    if family == "filter":
        return with_random_filter(ensemble, rows, 2)
    return with_random_policy(ensemble, rows)


families = pytest.mark.parametrize("family", ["trees", "classes", "filter", "lattices"])


@families
def test_every_build_on_odd_rows(tmp_path, family):
    fast = random_classifier(family)
    exported(tmp_path, fast).check_every_build(odd_rows(fast.ensemble, MANY_ROWS))


def adult_classifier(kind):
    train = load_adult("train")
    X, y = train.codes(), train.label
    make = {
        "xgboost": lambda: xgboost.XGBClassifier(n_estimators=500, max_depth=5, n_jobs=1),
        "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=500, verbose=-1, n_jobs=1),
        "forest": lambda: RandomForestClassifier(100, max_depth=10, n_jobs=1, random_state=0),
    }
    model = make[kind]().fit(X[:16000], y[:16000])
    return qwyc.optimize(model, X[16000:], alpha=0.005, progress=False)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "forest"])
def test_trained_models_on_many_rows(tmp_path, kind, small):
    fast = adult_classifier(kind)
    if small and kind != "xgboost":
        with pytest.raises(qwyc.QwycError, match="no small form"):
            fast.export_c(tmp_path / "model", small=True)
        return
    files = exported(tmp_path, fast, small=small)
    train = load_adult("train")
    rows = np.resize(train.codes(), (MANY_ROWS, train.codes().shape[1]))
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler):
            decide = files.compiled("-O2", compiler=compiler)
            files.check(decide, rows)
            files.check(decide, odd_rows(fast.ensemble, MANY_ROWS))
    files.check(lambda rows: files.run_as_program(rows, *SANITIZERS), rows[:20_000])


def test_the_small_form_fits_a_cortex_m4(tmp_path, capsys):
    needs("arm-none-eabi-gcc")
    fast = adult_classifier("xgboost")
    sizes = {}
    for small in (False, True):
        source, header = fast.export_c(tmp_path / f"model{small}", small=small)
        target = tmp_path / "model.o"
        command = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]
        command += [
            "-mfpu=fpv4-sp-d16",
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-Os",
        ]
        subprocess.run([*command, "-c", source, "-o", target], check=True)
        found = subprocess.run(
            ["arm-none-eabi-size", target], capture_output=True, text=True, check=True
        ).stdout
        text, data, bss = map(int, found.splitlines()[1].split()[:3])
        assert (data, bss) == (0, 0)
        names = subprocess.run(
            ["arm-none-eabi-nm", "-u", target], capture_output=True, text=True, check=True
        ).stdout
        helpers = set(re.findall(r"U (\w+)", names))
        tables = int(re.search(r"TABLE_BYTES (\d+)", header.read_text()).group(1))
        assert tables < text < tables + 4000
        sizes[small] = text
        if small:  # no arithmetic of double or float in software
            assert not {name for name in helpers if re.match("__aeabi_[df]", name)}
    with capsys.disabled():
        print(f"\nCortex-M4, 500 trees: {sizes[False]:,} bytes, small form {sizes[True]:,} bytes")
    assert sizes[True] < 0.7 * sizes[False]
