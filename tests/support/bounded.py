"""Runs a piece of code in a process of its own, and measures its time and the memory that it adds."""

import json
import subprocess
import sys
from types import SimpleNamespace

_CODE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import qwyc

def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024

path = sys.argv[1]
open("/proc/self/clear_refs", "w").write("5")
before, start = peak(), time.monotonic()
try:
    {code}
    error, message = "", ""
except Exception as caught:
    error, message = type(caught).__name__, str(caught)
print(json.dumps([peak() - before, time.monotonic() - start, error, message]))
"""


def measured(code, path, seconds=60):
    """What one line of code takes, which may use `path`, `qwyc` and `np`: bytes, seconds, and the name and
    message of the error that it raises, "" if it raises none. It fails the test if the process crashes."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE.format(code=code), str(path)],
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    bytes_taken, taken, error, message = json.loads(done.stdout)
    return SimpleNamespace(bytes=bytes_taken, seconds=taken, error=error, message=message)
