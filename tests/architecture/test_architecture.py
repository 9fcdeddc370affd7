"""What importing the package loads, and what the files look like (layers: test_layers.py)."""

import ast
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import qwyc

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "qwyc"


def test_importing_the_package_is_light():
    code = "import sys, qwyc; print(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"xgboost", "lightgbm", "sklearn", "catboost", "scipy", "pandas", "polars", "pyarrow"}
    heavy |= {"onnx", "onnxruntime", "treelite", "ydf", "matplotlib", "pyspark", "ray", "dask"}
    heavy |= {"tensorflow", "tensorflow_lattice", "tf_keras", "keras"}
    assert not heavy & set(loaded.stdout.split())
    assert not {"rich", "typer"} & set(loaded.stdout.split())


@pytest.mark.parametrize(
    "folder", ["src", "native", "benchmarks", "experiments", "tests/oracle", "docs"]
)
def test_files_are_short(folder):
    source = {".py", ".cpp", ".hpp", ".inc"}
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in source]
    assert files
    assert [str(path) for path in files if len(path.read_text().splitlines()) > 420] == []


def test_the_stub_of_the_native_module_is_up_to_date(tmp_path):
    made = tmp_path / "made.pyi"
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "qwyc._native", "-o", str(made)],
        check=True,
    )
    ours = ast.parse((PACKAGE / "_native.pyi").read_text())
    assert ast.dump(ours) == ast.dump(ast.parse(made.read_text())), "run `make stubs`"


def test_the_version_is_the_same_everywhere():
    import qwyc

    assert f'\nversion = "{qwyc.__version__}"\n' in (ROOT / "pyproject.toml").read_text()


def test_every_folder_of_tests_is_collected(pytestconfig):
    folders = {path.parent.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert "build" in folders  # which pytest leaves out by default
    patterns = pytestconfig.getini("norecursedirs")
    assert not [name for name in folders for p in patterns if fnmatch(name, p)]


def test_completion_offers_public_names_only():
    offered = [name for name in dir(qwyc) if not name.startswith("__")]
    assert offered == sorted(qwyc.__all__)
