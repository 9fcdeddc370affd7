"""The wheel and the source distribution as users get them, in clean environments."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    ):
        assert wanted in names
    assert any(n.startswith("qwyc/_native.") and n.endswith(".so") for n in names)
    assert any(n.endswith("licenses/LICENSE") for n in names)
    ours = ("qwyc", "_qwyc_command")  # the package, and how its command starts
    assert not [n for n in names if n.split("/")[0] not in ours and ".dist-info/" not in n]


def test_the_source_distribution_holds_what_it_should(packages):
    (sdist,) = packages.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = ["/".join(n.split("/")[1:]) for n in archive.getnames()]
    for wanted in ("CMakeLists.txt", "native/fit.cpp", "README.md", "LICENSE"):
        assert wanted in names
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
