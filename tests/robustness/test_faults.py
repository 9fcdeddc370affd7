"""Files are complete or as they were, whatever fails while they are written."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import qwyc
from fuzz.corpus import classifier

HERE = Path(__file__).parent
KILLED = -9

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the faults are those of Linux")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """faults.c, compiled."""
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")))  # the package itself needs one
    path = tmp_path_factory.mktemp("faults") / "faults.so"
    source = str(HERE / "faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), source, "-ldl"], check=True)
    return path


@pytest.fixture(scope="module", params=["save", "predict"])
def runs(request, library, tmp_path_factory):
    """What was found after each fault."""
    folder = tmp_path_factory.mktemp(request.param)
    classifier().save(folder / "fast.qwyc")
    rows = "\n".join(f"{i % 7 - 3},{i % 5 - 2},{i}" for i in range(3000))
    (folder / "rows.csv").write_text(f"f0,f1,f2\n{rows}\n")
    path = os.pathsep.join([str(HERE.parent), str(HERE.parent / "support")])
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", HERE / "fault_runs.py", library, folder, request.param],
        env=environment,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout)


def test_every_call_was_reached(runs):
    for kind in ("kill", "no space", "broken", "short"):
        calls = [run["at"] for run in runs if run["kind"] == kind]
        assert calls == list(range(len(calls)))
        assert len(calls) >= 5  # a write, chmod, fsync, link, rename and fsync of the folder


def test_the_old_file_or_the_new_one_is_there(runs):
    assert {run["state"] for run in runs} == {"old", "new"}


def test_a_failed_write_is_an_error_and_leaves_nothing(runs):
    for run in runs:
        if run["kind"] in ("no space", "broken"):
            assert run["others"] == [], run
            # If the folder cannot be synced, the new file is there all the same.
            assert (run["code"], run["state"]) in ((2, "old"), (0, "new")), run
    assert sum(run["code"] == 2 for run in runs) >= 8


def test_parts_of_writes_and_reads_are_no_error(runs):
    short = [run for run in runs if run["kind"] == "short"]
    assert all((run["code"], run["state"], run["others"]) == (0, "new", []) for run in short)


def test_a_killed_process_leaves_at_most_the_complete_file(runs):
    killed = [run for run in runs if run["kind"] == "kill"]
    assert all(run["code"] == KILLED for run in killed)
    # Between its name and the rename, a temporary is complete.
    assert sum(bool(run["others"]) for run in killed) <= 1


def test_short_reads_of_a_classifier(library, tmp_path):
    classifier().save(tmp_path / "fast.qwyc")
    code = (
        "import ctypes, sys, qwyc; shim = ctypes.CDLL(sys.argv[1]);"
        "shim.fault_arm(sys.argv[2].encode(), 0, -1, 1);"
        "print(qwyc.load(sys.argv[2] + '/fast.qwyc').ensemble.digest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, library, tmp_path.resolve()],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        check=False,
    )
    digest = qwyc.load(tmp_path / "fast.qwyc").ensemble.digest
    assert done.stdout.decode().strip() == digest, done.stderr.decode()
