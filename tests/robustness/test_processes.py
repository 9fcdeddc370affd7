"""Forks, new processes and sub-interpreters: they work, or are refused, and never hang or crash."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import qwyc
from fuzz.corpus import classifier

ROWS = np.random.default_rng(0).normal(size=(50_000, 3)).astype(np.float32)
SECONDS = 60


def in_fork(action):
    """The exit code of a fork that runs an action: 0 where it returns true."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if action() else 1)
        finally:
            os._exit(9)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fork_decides_the_same(threads):
    fast = classifier()
    expected = fast.predict(ROWS, threads=threads)  # threads of the native core have run before
    found = in_fork(lambda: np.array_equal(fast.predict(ROWS, threads=threads), expected))
    assert found == 0


def test_a_fork_reads_tables_and_files(tmp_path):
    import pandas as pd

    fast, path = classifier(), tmp_path / "rows.csv"
    pd.DataFrame(ROWS[:5000], columns=["f0", "f1", "f2"]).to_csv(path, index=False)
    fast.save(tmp_path / "fast.qwyc")

    def read():
        from qwyc.rows.files.reader import read_table

        table, _ = read_table(path, fast.ensemble.schema)
        return qwyc.load(tmp_path / "fast.qwyc").predict(table)

    expected = read()  # Arrow has threads of its own after this
    assert in_fork(lambda: np.array_equal(read(), expected)) == 0


def test_new_processes_get_classifiers_by_pickle():
    fast = classifier()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(fast.predict, (ROWS[:100],))
    np.testing.assert_array_equal(found, fast.predict(ROWS[:100]))


def test_sub_interpreters_work_or_are_refused(tmp_path):
    """NumPy refuses to be loaded by a second interpreter, and so does qwyc."""
    classifier().save(tmp_path / "fast.qwyc")
    code = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import numpy as np, qwyc
fast = qwyc.load(sys.argv[1])
before = fast.predict(np.zeros((3, 3)))
inside = "import numpy as np, qwyc; qwyc.load(%r).predict(np.zeros((3, 3)))" % sys.argv[1]
for _ in range(2):
    one = interpreters.create()
    try:
        failed = interpreters.run_string(one, inside)
    except Exception as error:
        failed = error
    assert failed is None or "ImportError" in str(failed), failed
    interpreters.destroy(one)
assert (fast.predict(np.zeros((3, 3))) == before).all()
"""
    command = [sys.executable, "-W", "ignore", "-c", code, tmp_path / "fast.qwyc"]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_threads_with_and_without_the_global_lock(tmp_path):
    """Where the interpreter is a free-threaded one, loading qwyc does not bring its lock back. 64 threads
    that decide, load, save and monitor at once get what one thread gets."""
    classifier().save(tmp_path / "fast.qwyc")
    code = """
import sys, sysconfig, threading
import numpy as np, qwyc
free = bool(sysconfig.get_config_var('Py_GIL_DISABLED'))
turns = 20 if free else 1
assert not free or not sys._is_gil_enabled()
path = sys.argv[1]
fast, rows = qwyc.load(path), np.random.default_rng(0).normal(size=(500, 3))
expected, monitor, wrong = fast.predict(rows), qwyc.Monitor(fast, rate=0.5), []
def work(number):
    for turn in range(turns):
        found = [qwyc.load(path).predict(rows), fast.predict(rows), monitor.predict(rows)]
        found.append([fast.predict_one(row) for row in rows])
        wrong.extend(1 for labels in found if not np.array_equal(labels, expected))
        fast.save(f"{path}.{number % 4}")
threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not wrong and monitor.rows_seen == 64 * turns * 500, (wrong, monitor)
assert not free or not sys._is_gil_enabled()
"""
    command = [sys.executable, "-c", code, tmp_path / "fast.qwyc"]
    done = subprocess.run(command, capture_output=True, timeout=10 * SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_soak_for_a_moment():
    from benchmarks.soak import soak

    latencies, wrong, early, late = soak(3, threads=3)
    assert wrong == []
    assert sum(len(seen) for seen in latencies.values()) > 50
    assert late - early < 64 << 20
