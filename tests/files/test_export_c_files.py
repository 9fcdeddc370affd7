"""The files of exported C: what they declare, names, categories, errors, the command and the example."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import warnings
from dataclasses import replace
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest

import qwyc
from commands import run
from exported import WARNINGS, exported, with_random_policy
from forests import random_ensemble, random_rows, with_inputs
from qwyc.errors import ArtifactError, ModelError, OptionError
from qwyc.files.export_c.text import comment, identifiers, integer_literal, real_literal, string
from trained import make_frame

EXAMPLE = Path(__file__).parents[2] / "examples" / "c" / "decide.c"
HOSTILE = 'a"; */ int main(void) { /* ??/ \\ \n é \udcff'


@pytest.fixture(scope="module")
def fast():
    """LightGBM on a table with categories of text and of integers."""
    frame, y = make_frame(rows=3000)
    model = lightgbm.LGBMClassifier(n_estimators=30, num_leaves=7, verbose=-1, n_jobs=1)
    model.fit(frame[:1000], np.array(["no", "yes"])[y[:1000]])
    return qwyc.optimize(model, frame[1000:], alpha=0.03, progress=False)


def compile_library(folder, *sources):
    target = folder / "library.so"
    command = ["cc", *WARNINGS, "-shared", "-fPIC", *sources, "-o", target, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


def test_the_header_says_what_the_model_is(tmp_path, fast):
    source, header = fast.export_c(tmp_path / "model.c")
    assert (source, header) == (tmp_path / "model.c", tmp_path / "model.h")
    text = header.read_text()
    flat = " ".join(text.replace("\n * ", " ").split())
    assert fast.ensemble.digest in flat
    assert str(fast.certificate) in flat
    assert "lightgbm" in flat
    assert "#define QWYC_N_FEATURES 6\n" in text
    assert "#define QWYC_N_CLASSES 2\n" in text
    assert "int qwyc_predict_one(const double *row);" in text
    assert "1 (the_colour): 'red' = 0, 'green' = 1," in flat
    bytes_said = int(re.search(r"TABLE_BYTES (\d+)", text).group(1))
    target = tmp_path / "model.o"
    subprocess.run(["cc", "-std=c99", "-c", source, "-o", target], check=True)
    assert 0.5 * bytes_said < target.stat().st_size < 3 * bytes_said + 20_000


def test_names_are_constants(tmp_path, fast):
    source, _ = fast.export_c(tmp_path / "model")
    library = compile_library(tmp_path, source)
    names = (ctypes.c_char_p * 6).in_dll(library, "qwyc_feature_names")
    assert [name.decode() for name in names] == list(fast.ensemble.schema.names)
    classes = (ctypes.c_char_p * 2).in_dll(library, "qwyc_class_names")
    assert list(classes) == [b"no", b"yes"]


def test_codes_of_categories_are_those_of_python(tmp_path, fast):
    source, header = fast.export_c(tmp_path / "model")
    library = compile_library(tmp_path, source)
    frame, _ = make_frame(seed=3, rows=200)
    frame["the colour"] = frame["the colour"].cat.add_categories("unknown")
    frame.loc[5:9, "the colour"] = "unknown"
    rows = fast.ensemble.rows(frame)
    code = ctypes.c_double()
    for value, expected in zip(frame["the colour"], rows[:, 1], strict=True):
        text = None if pd.isna(value) else value.encode()
        assert library.qwyc_code_of_the_colour(text, ctypes.byref(code)) == 1
        np.testing.assert_equal(code.value, expected)
    for value, expected in zip(frame["size"], rows[:, 4], strict=True):
        assert library.qwyc_code_of_size(ctypes.c_int32(value), ctypes.byref(code)) == 1
        np.testing.assert_equal(code.value, expected)
    assert "int qwyc_code_of_size(int32_t value, double *code);" in header.read_text()


@pytest.mark.parametrize(
    ("unseen", "found"), [("error", 0), ("invalid", -1.0), ("first", 0.0), ("missing", np.nan)]
)
def test_unknown_categories(tmp_path, unseen, found):
    plain = random_ensemble(1, dtype="float32")
    fast = with_random_policy(plain, random_rows(1, plain, 50))
    categories = {0: ("a", "b"), 2: (1.5, 2.0)}
    ensemble = with_inputs(plain, categories=categories, unseen=unseen)
    source, _ = replace(fast, ensemble=ensemble).export_c(tmp_path / "model")
    library = compile_library(tmp_path, source)
    code = ctypes.c_float(7)
    for call, value in (
        (library.qwyc_code_of_0, b"c"),
        (library.qwyc_code_of_2, ctypes.c_double(3.0)),
    ):
        assert call(value, ctypes.byref(code)) == (unseen != "error")
        if unseen != "error":
            np.testing.assert_equal(code.value, found)
    assert library.qwyc_code_of_2(ctypes.c_double(2.0), ctypes.byref(code)) == 1
    assert code.value == 1
    assert library.qwyc_code_of_0(b"", ctypes.byref(code)) == (unseen != "error")
    if unseen in ("first", "missing"):
        assert np.isnan(code.value)  # empty text is missing for YDF


def test_hostile_names_stay_text(tmp_path):
    plain = random_ensemble(1, dtype="float32")
    fast = with_random_policy(plain, random_rows(1, plain, 50))
    names = (HOSTILE, "x" * 5000, "", "*" + "/" * 40, "a\0b")
    categories = {0: (HOSTILE[:-1], "*/", "/*"), 1: ("long" * 3000,), 4: ("\0",)}
    ensemble = with_inputs(plain, names=names, categories=categories)
    ensemble = replace(ensemble, classes=np.array([HOSTILE, "b"], dtype=object))
    source, _ = replace(fast, ensemble=ensemble).export_c(tmp_path / "model")
    library = compile_library(tmp_path, source)
    found = (ctypes.c_char_p * 5).in_dll(library, "qwyc_feature_names")
    assert found[0].decode() == HOSTILE.replace("\udcff", "\\udcff")
    assert found[1] == b"x" * 1000 + b"..."
    assert not hasattr(library, "main")
    assert run_gcc_as_cpp(tmp_path)


def run_gcc_as_cpp(folder):
    """Whether C++ takes the header."""
    source = folder / "user.cpp"
    source.write_text(
        '#include "model.h"\nint main() { float r[9] = {}; return qwyc_predict_one(r); }'
    )
    command = ["g++", "-Wall", "-Werror", "-c", source, "-o", folder / "user.o"]
    return subprocess.run(command, check=False).returncode == 0


def test_two_models_in_one_program(tmp_path):
    made = []
    for seed, prefix in ((1, "first"), (2, "second_model")):
        ensemble = random_ensemble(seed, dtype="float32")
        rows = random_rows(seed, ensemble, 100)
        made.append(
            exported(tmp_path, with_random_policy(ensemble, rows), prefix=prefix, name=prefix)
        )
    library = compile_library(tmp_path, *(files.sources[0] for files in made))
    for files, prefix in zip(made, ("first", "second_model"), strict=True):
        rows = random_rows(9, files.fast.ensemble, 100)
        expected = files.fast.decide(rows).label
        predict = getattr(library, f"{prefix}_predict_one")
        found = [predict(row.ctypes.data_as(ctypes.c_void_p)) for row in rows]
        assert found == expected.tolist()


def test_the_same_classifier_gives_the_same_bytes(tmp_path, fast):
    first = [path.read_bytes() for path in fast.export_c(tmp_path / "model")]
    fast.save(tmp_path / "model.qwyc")
    again = qwyc.load(tmp_path / "model.qwyc").export_c(tmp_path / "model.h")
    assert [path.read_bytes() for path in again] == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.c", "model.h", "model.qwyc"]


def test_compilers_that_would_change_results_are_stopped(tmp_path, fast):
    source, _ = fast.export_c(tmp_path / "model")
    command = ["cc", "-std=c99", "-ffast-math", "-c", source, "-o", tmp_path / "model.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "-ffast-math" in done.stderr


def test_callables_are_refused(tmp_path):
    def score(rows):
        return rows[:, 0]

    X = np.random.default_rng(0).normal(size=(400, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = qwyc.optimize([score, score], X, alpha=0.05, progress=False)
    with pytest.raises(ModelError, match="Python code"):
        made.export_c(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("prefix", ["", "2a", "a-b", "a" * 64, None, "é"])
def test_prefixes_that_are_no_names(tmp_path, fast, prefix):
    with pytest.raises(OptionError, match="prefix must be"):
        fast.export_c(tmp_path / "model", prefix=prefix)


def test_files_that_cannot_be_written(tmp_path, fast):
    with pytest.raises(ArtifactError, match="there is no folder"):
        fast.export_c(tmp_path / "none" / "model")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ArtifactError, match="name a file"):
        fast.export_c(tmp_path / "folder")


def test_the_command(tmp_path, fast):
    fast.save(tmp_path / "m.qwyc")
    done = run("export", "c", "m.qwyc", "-o", "out", "--prefix", "fraud", cwd=tmp_path)
    assert done.stdout.decode().split() == ["Wrote", "out.c", "and", "out.h."]
    fast.export_c(tmp_path / "here", prefix="fraud")
    assert (tmp_path / "out.h").read_text() == (tmp_path / "here.h").read_text()
    done = run("export", "c", "m.qwyc", "-o", "out", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["header"] == "out.h"
    done = run("export", "c", "m.qwyc", "-o", "small", "--small", cwd=tmp_path)
    assert done.returncode == 2
    assert b"no small form" in done.stderr
    assert not (tmp_path / "small.c").exists()
    done = run("export", "onnx", "m.qwyc", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_example(tmp_path, dtype):
    ensemble = random_ensemble(3, dtype=dtype, n_trees=30)
    rows = random_rows(3, ensemble, 300)
    fast = with_random_policy(ensemble, rows)
    source, _ = fast.export_c(tmp_path / "model")
    program = tmp_path / "decide"
    command = ["cc", *WARNINGS, "-O2", "-I", tmp_path, EXAMPLE, source, "-o", program, "-lm"]
    subprocess.run(command, check=True)
    lines = "\n".join(",".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in rows)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    decisions = fast.decide(rows)
    expected = [
        f"{label},{steps}" for label, steps in zip(decisions.label, decisions.steps, strict=True)
    ]
    assert done.stdout.split() == expected
    done = subprocess.run([program], input="1,2\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "line 1: expected 5 numbers\n")


def test_numbers_of_c():
    assert real_literal(0.1, single=False) == "0x1.999999999999ap-4"
    assert real_literal(-0.0, single=True) == "-0.0f"
    assert real_literal(2.0**-149, single=True) == "0x1p-149f"
    assert real_literal(-np.inf, single=False) == "-INFINITY"
    assert integer_literal(-(2**63)) == "INT64_MIN"
    assert integer_literal(2**32 - 1) == "4294967295u"
    assert identifiers(["a b", "A-b", "é", "ok"]) == ["a_b_0", "a_b_1", "column_2", "ok"]
    assert "*/" not in comment("*/*/**//*")
    assert string('a"?\n') == '"a\\"\\?\\012"'
