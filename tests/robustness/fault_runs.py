"""Runs with faults.c preloaded: `save` and `predict -o` with a fault at every call that changes a file.

`python fault_runs.py LIBRARY FOLDER save|predict` prints a JSON list of what was found after each fault."""

import ctypes
import json
import os
import sys
from pathlib import Path

KINDS = {"kill": 1, "no space": 2, "broken": 3, "short": 4}
MOST_CALLS = 200  # far above what any run makes


def attempt(shim, folder, kind, at, action):
    """Run an action in a child of this process with one fault: its exit code and whether it came so far."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        shim.fault_arm(str(folder).encode(), KINDS[kind], at, int(kind == "short"))
        try:
            code = action()
        except OSError:  # ArtifactError is one
            code = 2
        except BaseException:
            code = 9
        calls = shim.fault_calls()
        shim.fault_disarm()
        os.write(writer, b"far" if calls > at else b"end")
        os._exit(code)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    told = os.read(reader, 3)
    os.close(reader)
    return os.waitstatus_to_exitcode(status), told != b"end"


def main():
    """See the module."""
    shim = ctypes.CDLL(sys.argv[1])
    folder, what = Path(sys.argv[2]).resolve(), sys.argv[3]
    import commands
    import qwyc

    target = folder / "out" / ("fast.qwyc" if what == "save" else "labels.csv")
    target.parent.mkdir()
    fast = qwyc.load(folder / "fast.qwyc")

    def save():
        fast.save(target)
        return 0

    def predict():
        arguments = [folder / "fast.qwyc", folder / "rows.csv", "-o", target]
        return commands.run("predict", *arguments).returncode

    action = save if what == "save" else predict
    old = b"what was there before"
    child, _ = attempt(shim, target.parent, "kill", MOST_CALLS, action)  # nothing fails
    assert child == 0, child
    new = target.read_bytes()
    found = []
    for kind in KINDS:
        for at in range(MOST_CALLS):
            target.write_bytes(old)
            code, came_so_far = attempt(shim, target.parent, kind, at, action)
            content = target.read_bytes()
            others = [path.name for path in target.parent.iterdir() if path != target]
            for name in others:
                (target.parent / name).unlink()
            state = {old: "old", new: "new"}.get(content, "damaged")
            if not came_so_far:
                break
            found.append({"kind": kind, "at": at, "code": code, "state": state, "others": others})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
