"""qwyc with the oldest versions that pyproject.toml allows: python oldest.py FOLDER [TEST FILES].

Makes an environment in FOLDER with those versions of what qwyc needs and of the extra `cli`, copies the
package that this Python has into it, and runs smoke.py and commands there. Test files need pytest and
trainers, which are installed in their oldest versions too: `make oldest`."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import tomllib

import _qwyc_command
import qwyc

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
FOR_TESTS = [
    "pandas",
    "polars",
    "pyarrow",
    "safetensors",
    "hypothesis",
    "pytest",
    "pytest-xdist",
    "fsspec",
]


def minima(*extras):
    """`name==version` for each requirement of the core and of some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    found = (re.match(r"([\w-]+)>=([\w.]+)", line) for line in lines)
    return {match[1]: f"{match[1]}=={match[2]}" for match in found if match}


def make(folder, requirements):
    """An environment with these requirements and a copy of the package: its Python and variables."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--only-binary", ":all:", *requirements], check=True)
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    for module in (qwyc, _qwyc_command):
        shutil.copytree(Path(module.__file__).parent, site / module.__name__)
    shutil.copy(qwyc._native.__file__, site / "qwyc")
    return python, os.environ | {"PYTHONPATH": str(site), "PYTHONNOUSERSITE": "1"}


def check(folder):
    """Decide rows with the oldest versions of the core and of `cli`. Returns what pip has installed."""
    python, environment = make(folder, minima("cli").values())
    run = {"env": environment, "cwd": folder, "check": True}
    subprocess.run([python, ROOT / "tests" / "packaging" / "smoke.py"], **run)
    (folder / "rows.csv").write_text("a\n1\n")
    command = [python, "-m", "qwyc", "inspect", GOLDEN / "xgboost.qwyc"]
    subprocess.run(command, **run, stdout=subprocess.DEVNULL)
    command = [python, "-m", "qwyc", "predict", GOLDEN / "random-forest.qwyc"]
    done = subprocess.run([*command, "rows.csv"], **(run | {"check": False}), capture_output=True)
    assert done.returncode == 2, "rows of other columns were taken"
    assert b"column" in done.stderr, done.stderr
    freeze = [python, "-m", "pip", "freeze", "--disable-pip-version-check"]
    return subprocess.run(freeze, check=True, capture_output=True, text=True).stdout


def main():
    folder, *tests = map(Path, sys.argv[1:])
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    print(check(folder))
    if tests:
        of_tests = minima("test", "xgboost", "lightgbm", "sklearn", "cli")
        wanted = [*minima("xgboost", "lightgbm", "sklearn", "cli").values()]
        wanted += [of_tests[name] for name in FOR_TESTS]
        python, environment = make(folder, wanted)
        command = [python, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests]
        sys.exit(subprocess.run(command, env=environment, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
