"""Files are complete or as they were, whatever fails while they are written."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
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


ALL = ("kill", "no space", "broken", "short", "cut")
CASES = [
    ("save", ALL),
    ("predict", ("kill", "broken")),
    pytest.param(("predict", ("no space", "short", "cut")), marks=pytest.mark.slow),
    pytest.param(("parquet", ALL), marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join((case[0], *case[1])))
def runs(request, library, tmp_path_factory):
    """What was found after each fault."""
    import pandas as pd

    what, kinds = request.param
    folder = tmp_path_factory.mktemp(what)
    classifier().save(folder / "fast.qwyc")
    rows = "\n".join(f"{i % 7 - 3},{i % 5 - 2},{i}" for i in range(3000))
    (folder / "rows.csv").write_text(f"f0,f1,f2\n{rows}\n")
    pd.read_csv(folder / "rows.csv").to_parquet(folder / "rows.parquet")
    path = os.pathsep.join([str(HERE.parent), str(HERE.parent / "support")])
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", HERE / "fault_runs.py", library, folder, what, *kinds],
        env=environment,
        capture_output=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout)


def test_every_call_was_reached(runs):
    for kind in {run["kind"] for run in runs}:
        calls = [run["at"] for run in runs if run["kind"] == kind]
        assert calls == list(range(len(calls)))
        assert len(calls) >= 20  # of save, which looks at every folder of the path
    names = {run["call"] for run in runs if run["kind"] != "kill"}
    assert names >= {"stat", "open", "fstat", "lseek", "write", "fchmod", "fsync"}
    assert names >= {"linkat", "close", "rename", "unlink"}
    for kind in {run["kind"] for run in runs} & {"no space", "broken"}:
        calls = [run["call"] for run in runs if run["kind"] == kind]
        renamed = calls.index("rename")
        assert "fsync" in calls[:renamed]  # of the file
        assert "fsync" in calls[renamed:]  # and of its folder


def test_the_old_file_or_the_new_one_is_there(runs):
    assert {run["state"] for run in runs} == {"old", "new"}


def test_a_failed_call_is_an_error_of_qwyc_or_does_not_matter(runs):
    failed = [run for run in runs if run["kind"] in ("no space", "broken")]
    for run in failed:
        assert run["others"] == [], run
        assert (run["code"], run["state"]) in ((2, "old"), (0, "new")), run
        assert "standard output" not in run["text"], run
        if run["call"] in ("write", "fchmod", "linkat", "rename"):
            assert run["code"] == 2, run
    if failed:
        assert sum(run["code"] == 2 for run in failed) >= 8


def test_parts_of_writes_and_reads_are_no_error(runs):
    short = [run for run in runs if run["kind"] == "short"]
    assert all((run["code"], run["state"], run["others"]) == (0, "new", []) for run in short)


def test_a_file_that_ends_while_it_is_read_is_an_error(runs):
    """From some call on, every read says that the file has ended."""
    for run in runs:
        if run["kind"] == "cut":
            assert (run["code"], run["state"]) in ((2, "old"), (0, "new")), run
            assert run["others"] == [], run


def test_a_killed_process_leaves_at_most_the_complete_file(runs):
    killed = [run for run in runs if run["kind"] == "kill"]
    assert all(run["code"] == KILLED for run in killed)
    # Between its name and the rename, a temporary is complete: two files are closed there.
    assert sum(bool(run["others"]) for run in killed) <= 3


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


def test_a_table_that_is_truncated_at_the_end_of_a_row_while_it_is_read(tmp_path):
    """What is left is a sound CSV with fewer rows; its decisions would not be those of the file."""
    from qwyc.rows.files.reader import TableFiles

    row = b"1,2,3\n"
    path = tmp_path / "rows.csv"
    path.write_bytes(b"f0,f1,f2\n" + row * 4_000_000)  # more than is read ahead
    reading = TableFiles(path, classifier().ensemble.schema).batches()
    next(reading)
    os.truncate(path, 9 + len(row) * 3_000_000)
    with pytest.raises(qwyc.InputError, match="became shorter while it was read"):
        list(reading)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_while_a_file_is_saved_again_and_again(number, tmp_path):
    path = tmp_path / "fast.qwyc"
    classifier().save(path)
    content = path.read_bytes()
    code = (
        "import sys, qwyc; fast = qwyc.load(sys.argv[1]); fast.save(sys.argv[1]);"
        "print('ready', flush=True)\nwhile True: fast.save(sys.argv[1])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.05)
        process.send_signal(number)
    assert process.returncode != 0
    assert path.read_bytes() == content
    left = [other for other in tmp_path.iterdir() if other != path]
    assert all(other.read_bytes() == content for other in left)  # complete, if it has a name
    assert len(left) <= (number != signal.SIGINT)
