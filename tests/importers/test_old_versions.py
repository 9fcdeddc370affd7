"""Models of old versions of XGBoost and LightGBM: read to the scores that those versions gave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import qwyc

OLD = Path(__file__).parent / "old"
SAVED = sorted(path.stem for path in OLD.glob("*.expected"))


def check(stem, folder):
    facts = json.loads((folder / f"{stem}.expected").read_text())
    rows = np.array(facts["rows"], dtype=float)  # null is NaN
    (path,) = (p for p in folder.glob(f"{stem}.*") if p.suffix != ".expected")
    ensemble = qwyc.read_model(path)
    np.testing.assert_array_equal(ensemble.score_full(rows), facts["scores"])
    return ensemble


@pytest.mark.parametrize("stem", SAVED)
def test_files_of_old_versions(stem):
    assert check(stem, OLD).n_models == (12 if "forest" in stem else 4)


def test_there_are_files_of_both_libraries():
    assert {stem.split("-")[0] for stem in SAVED} == {"xgboost", "lightgbm"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "version"),
    [("xgboost", "1.7.6"), ("xgboost", "2.0.3"), ("lightgbm", "3.3.5"), ("lightgbm", "4.0.0")],
)
def test_old_versions_train_and_are_read(library, version, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet"]
    needed = ["numpy<2", "scipy<1.12", "scikit-learn<1.4"]
    subprocess.run([*install, *needed], check=True)
    subprocess.run([*install, "--no-deps", f"{library}=={version}"], check=True)
    folder = tmp_path / "models"
    folder.mkdir()
    subprocess.run([python, OLD / "make.py", library, folder], check=True)
    stems = sorted(path.stem for path in folder.glob("*.expected"))
    assert len(stems) >= 5
    for stem in stems:
        assert version in stem
        check(stem, folder)
