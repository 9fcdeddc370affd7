"""Which module may import which, what importing the package costs, and what the files look like."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "qwyc"

sys.path.insert(0, str(ROOT / "docs" / "architecture"))
import draw  # noqa: E402

sys.path.pop(0)


def test_the_picture_is_drawn_from_the_code():
    assert draw.PICTURE.read_text() == draw.draw(), "run `python docs/architecture/draw.py`"


def test_imports_go_down_and_never_round():
    """Between layers `draw` refuses what goes up; this is also about modules of one layer."""
    needs = {}
    for importer, name in draw.imports():
        needs.setdefault(importer, set()).add(name)
    settled = set(draw.layer_of()) - set(needs)
    while needs:
        ready = [name for name, below in needs.items() if below <= settled]
        assert ready, f"a cycle among {sorted(needs)}"
        settled.update(ready)
        for name in ready:
            del needs[name]


def test_an_import_that_goes_up_cannot_be_drawn(monkeypatch):
    monkeypatch.setattr(draw, "imports", lambda: {("policy", "classifier"): 1})
    with pytest.raises(SystemExit, match="policy imports classifier, which stands above it"):
        draw.draw()


def test_nothing_but_the_tests_imports_the_oracle():
    assert "reference" not in {name for _, name in draw.imports()}


def test_importing_the_package_is_light():
    code = "import sys, qwyc; print(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"xgboost", "lightgbm", "sklearn", "catboost", "scipy", "pandas", "polars", "pyarrow"}
    heavy |= {"onnx", "onnxruntime", "treelite", "ydf", "matplotlib", "pyspark", "ray", "dask"}
    assert not heavy & set(loaded.stdout.split())
    assert not {"rich", "typer"} & set(loaded.stdout.split())


def test_python_is_only_in_the_bindings():
    for path in (ROOT / "native").glob("*.[ch]pp"):
        if not path.name.startswith("bind"):
            assert "nanobind" not in path.read_text()
            assert "Python.h" not in path.read_text()


def test_files_are_small_rooms():
    for pattern in ("src/**/*.py", "native/*.[ch]pp", "benchmarks/*.py", "experiments/*.py"):
        for path in ROOT.glob(pattern):
            assert len(path.read_text().splitlines()) <= 420, path


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
