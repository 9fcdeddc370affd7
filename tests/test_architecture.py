"""Which module may import which, what importing the package costs, and what the files look like."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "qwyc"

# The flow: model -> importers -> Ensemble -> ScoreMatrix -> fit -> Policy -> certify -> Certificate
# -> Classifier -> artifact. A module may import only what stands here beside it.
ALLOWED = {
    "errors": set(),
    "threads": {"options"},
    "progress": set(),
    "datasets": set(),
    "reference": set(),
    "options": {"errors"},
    "capacity": {"errors"},
    "scores": {"errors"},
    "rows": {"errors"},
    "cityhash": set(),
    "categories": {"cityhash", "errors"},
    "tables": {"categories", "errors"},
    "policy": {"_native", "errors", "options", "scores", "threads"},
    "fan": {"_native", "errors", "options", "policy", "scores", "threads"},
    "orders": {"_native", "errors", "scores", "threads"},
    "border": set(),
    "ensemble": {
        "_native",
        "border",
        "errors",
        "options",
        "policy",
        "progress",
        "scores",
        "tables",
        "threads",
    },
    "cascade": {"errors", "fan", "options", "policy", "progress", "rows", "scores"},
    "importers": {"_native", "border", "cascade", "ensemble", "errors", "importers"},
    "fit": {
        "_native",
        "errors",
        "fan",
        "options",
        "orders",
        "policy",
        "progress",
        "scores",
        "stopping",
        "threads",
    },
    "binomial": set(),
    "stopping": {"_native", "capacity", "errors", "policy", "progress", "scores", "threads"},
    "provable": {"ensemble", "policy"},
    "certify": {"binomial", "errors", "options", "policy", "stopping"},
    "header": {"certify", "ensemble", "errors"},
    "artifact": {"certify", "ensemble", "errors", "header", "policy", "stopping"},
    "speed": {"ensemble", "policy", "rows"},
    "card": set(),
    "classifier": {
        "_native",
        "artifact",
        "card",
        "cascade",
        "certify",
        "ensemble",
        "errors",
        "policy",
        "speed",
        "stopping",
        "threads",
    },
    "answers": {"policy"},
    "compare": {"classifier", "errors", "progress", "rows", "stopping"},
    "distributed": {
        "answers",
        "artifact",
        "cascade",
        "classifier",
        "compare",
        "ensemble",
        "errors",
        "options",
        "tables",
    },
    "parity": {"cascade", "ensemble", "errors", "importers"},
    "verify": {
        "binomial",
        "certify",
        "classifier",
        "compare",
        "distributed",
        "ensemble",
        "errors",
        "parity",
        "progress",
    },
    "optimize": {
        "capacity",
        "cascade",
        "certify",
        "classifier",
        "distributed",
        "ensemble",
        "errors",
        "fit",
        "importers",
        "options",
        "orders",
        "parity",
        "policy",
        "progress",
        "provable",
        "rows",
        "scores",
        "speed",
        "stopping",
        "threads",
    },
    "estimator": {"certify", "classifier", "errors", "optimize", "policy", "rows"},
    "plot": {"certify", "classifier", "errors"},
    "csvfiles": {"ensemble", "errors"},
    "datafiles": {"csvfiles", "errors", "tables"},
    "outputs": {"errors"},
    "timing": set(),
    "bench": {
        "classifier",
        "ensemble",
        "errors",
        "importers",
        "options",
        "progress",
        "threads",
        "timing",
    },
    "demo": {
        "",
        "certify",
        "classifier",
        "datasets",
        "errors",
        "options",
        "outputs",
        "plot",
        "policy",
        "progress",
    },
    "inspection": {"_native", "certify", "classifier", "ensemble", "errors"},
    "cli": {
        "",
        "bench",
        "datafiles",
        "demo",
        "ensemble",
        "errors",
        "experiments",
        "inspection",
        "outputs",
        "progress",
    },
}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name != "__init__":
            yield name, path


def imported(path):
    """First name below `qwyc` of every import at run time; "" for the package itself."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "qwyc":
                    yield ".".join(alias.name.split(".")[1:2])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "qwyc":
            below = node.module.split(".")[1:2]
            yield from below or [alias.name for alias in node.names]


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda v: getattr(v, "stem", v))
def test_imports_follow_the_table(name, path):
    assert set(imported(path)) - {name} <= ALLOWED[name]


def test_the_table_has_no_cycle():
    settled = {"", "_native", "experiments"}
    waiting = {name: needs - {name} for name, needs in ALLOWED.items()}
    while waiting:
        ready = [name for name, needs in waiting.items() if needs <= settled]
        assert ready, f"a cycle among {sorted(waiting)}"
        settled.update(ready)
        for name in ready:
            del waiting[name]


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
