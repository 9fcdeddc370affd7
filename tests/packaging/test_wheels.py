"""What wheels are built for, and the script that tries them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PROJECT = (ROOT / "pyproject.toml").read_text()


def run(*arguments):
    words = [sys.executable, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_script_that_tries_wheels_passes_here():
    done = run(HERE / "smoke.py")
    assert done.returncode == 0, done.stderr
    assert "decides as it should" in done.stdout


def test_the_script_finds_a_wrong_decision(tmp_path):
    """A copy of the script beside files of which one label was changed."""
    golden = tmp_path / "golden" / "0.1.0"
    golden.mkdir(parents=True)
    (tmp_path / "packaging").mkdir()
    script = tmp_path / "packaging" / "smoke.py"
    script.write_text((HERE / "smoke.py").read_text())
    for path in (ROOT / "tests" / "golden" / "0.1.0").iterdir():
        (golden / path.name).write_bytes(path.read_bytes())
    kept = golden / "onnx.json"
    changed = kept.read_text().replace('"label": [0', '"label": [1', 1)
    assert changed != kept.read_text()
    kept.write_text(changed)
    done = run(script)
    assert done.returncode == 1
    assert "onnx: labels differ" in done.stderr


def test_a_wheel_that_was_not_repaired_is_refused(tmp_path):
    done = run(HERE / "check_wheel.py", tmp_path / "qwyc-1-cp311-cp311-linux_x86_64.whl")
    assert done.returncode == 1
    assert "has no manylinux tag: repair it with auditwheel first" in done.stderr
    assert run(HERE / "check_wheel.py").stderr.strip() == "usage: check_wheel.py WHEEL"


def test_wheels_are_built_from_the_oldest_python_on():
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', PROJECT)[1]
    built = re.search(r'build = "cp3\{([^}]*)\}-manylinux_\*"', PROJECT)[1].split(",")
    assert built[0] == oldest
    plain = [int(minor) for minor in built if minor.isdigit()]
    assert plain == list(range(plain[0], plain[-1] + 1))
    assert f"{plain[-1]}t" in built  # the module is made for Python without its lock too


def test_the_workflow_builds_what_is_stated_and_publishes_nothing():
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    stated = re.search(r"archs = \[(.*)\]", PROJECT)[1].replace('"', "").split(", ")
    assert sorted(re.findall(r"arch: (\w+)", workflow)) == sorted(stated)
    assert "contents: read" in workflow
    assert not re.search(r"twine|pypi-publish|id-token|secrets", workflow)
