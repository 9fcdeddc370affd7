"""A wheel as a user gets it: python check_wheel.py WHEEL.

Installs the wheel in a fresh environment of the Python that runs this, with no program on PATH, so no
compiler, and from wheels only. Then runs smoke.py and `qwyc --version` there."""

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

SMOKE = Path(__file__).with_name("smoke.py")


def run(*arguments, **options):
    """What a command prints; SystemExit with all of it where the command fails."""
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".whl"):
        sys.exit("usage: check_wheel.py WHEEL")
    wheel = Path(sys.argv[1]).resolve()
    if "manylinux" not in wheel.name:
        sys.exit(f"{wheel.name} has no manylinux tag: repair it with auditwheel first")
    members = zipfile.ZipFile(wheel).infolist()
    unpacked = sum(member.file_size for member in members)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {unpacked / 1e6:.2f} MB unpacked")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "no-programs").mkdir()
        clean = {**os.environ, "PATH": str(folder / "no-programs")}
        for variable in ("CC", "CXX", "PYTHONPATH", "VIRTUAL_ENV"):
            clean.pop(variable, None)
        venv.create(folder / "fresh", with_pip=True)
        bin_ = folder / "fresh" / "bin"
        pip = (bin_ / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--only-binary", ":all:", wheel, env=clean, cwd=folder)
        print(run(bin_ / "python", "-I", SMOKE, env=clean, cwd=folder), end="")
        print(run(bin_ / "qwyc", "--version", env=clean, cwd=folder), end="")


if __name__ == "__main__":
    main()
