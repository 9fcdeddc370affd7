"""Which module may import which, what importing the package costs, and what the files look like."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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


NATIVE_LAYERS = {  # folder of native/ -> the folders that it may include
    "core": {"core"},
    "kernels": {"core", "kernels"},
    "fit": {"core", "fit"},
    "python": {"core", "fit", "python"},
    "tests": {"core", "kernels", "fit", "tests"},
}


def native_files():
    return [p for p in (ROOT / "native").rglob("*") if p.suffix in {".cpp", ".hpp", ".inc"}]


def bad_includes(folder, text):
    """The includes in `text`, a file of native/`folder`, that its layer does not allow."""
    ours = re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)
    bad = [name for name in ours if name.split("/")[0] not in NATIVE_LAYERS[folder]]
    if folder != "python":
        bad += re.findall(r"^\s*#\s*include\s+<((?:nanobind/.*|Python\.h))>", text, re.MULTILINE)
    return bad


def test_native_folders_include_only_what_is_below_them():
    paths = native_files()
    assert {path.parent.name for path in paths} == set(NATIVE_LAYERS)
    for path in paths:
        assert bad_includes(path.parent.name, path.read_text()) == [], path


@pytest.mark.parametrize(
    ("folder", "include"),
    [
        ("core", '"fit/gram.hpp"'),
        ("core", '"kernels/targets.hpp"'),
        ("kernels", '"fit/gram.hpp"'),
        ("fit", '"python/arrays.hpp"'),
        ("fit", '"kernels/targets.hpp"'),
        ("tests", '"python/arrays.hpp"'),
        ("core", '"forest.hpp"'),  # without its folder
        ("kernels", "<Python.h>"),
        ("core", "<nanobind/nanobind.h>"),
    ],
)
def test_an_include_from_a_higher_folder_is_found(folder, include):
    assert bad_includes(folder, f"#include <vector>\n#include {include}\n") == [include[1:-1]]


def test_files_are_small_rooms():
    for pattern in ("src/**/*.py", "native/*/*.[ch]pp", "benchmarks/*.py", "experiments/*.py"):
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
