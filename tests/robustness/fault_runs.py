"""Runs with faults.c preloaded: `save` and `predict -o` with a fault at every call that concerns a file.

`python fault_runs.py LIBRARY FOLDER save|predict|parquet KINDS...` prints a JSON list of what was found
after each fault."""

import ctypes
import json
import os
import sys
from pathlib import Path

KINDS = {"kill": 1, "no space": 2, "broken": 3, "short": 4, "cut": 5}
MOST_CALLS = 500  # far above what any run makes
UNEXPECTED = 9


def attempt(shim, folder, kind, at, action):
    """Run an action in a child of this process with one fault: its exit code, whether it came so far, and
    what is known of the call."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        import qwyc

        told = ""
        shim.fault_arm(str(folder).encode(), KINDS[kind], at, int(kind == "short"))
        try:
            code, told = action()
        except qwyc.QwycError as error:
            code, told = 2, str(error)
        except BaseException as error:
            code, told = UNEXPECTED, repr(error)
        calls = shim.fault_calls()
        shim.fault_disarm()
        name = shim.fault_name().decode()
        os.write(writer, json.dumps([calls > at, name, told[-1000:]]).encode())
        os._exit(code)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    told = os.read(reader, 1 << 16)
    os.close(reader)
    came_so_far, name, text = json.loads(told) if told else (True, "", "")
    return os.waitstatus_to_exitcode(status), came_so_far, name, text


def main():
    """See the module."""
    shim = ctypes.CDLL(sys.argv[1])
    shim.fault_name.restype = ctypes.c_char_p
    folder, what = Path(sys.argv[2]).resolve(), sys.argv[3]
    import commands
    import qwyc

    rows = folder / ("rows.parquet" if what == "parquet" else "rows.csv")
    names = {"save": "fast.qwyc", "predict": "labels.csv", "parquet": "labels.parquet"}
    target = folder / "out" / names[what]
    target.parent.mkdir()
    fast = qwyc.load(folder / "fast.qwyc")

    def save():
        fast.save(target)
        return 0, ""

    def predict():
        done = commands.run("predict", folder / "fast.qwyc", rows, "-o", target)
        if b"should not happen" in done.stderr or b"Traceback" in done.stderr:
            return UNEXPECTED, done.stderr.decode()
        return done.returncode, done.stderr.decode()

    action = save if what == "save" else predict
    if what != "save":
        predict()  # imports what it needs
        target.unlink()
    old = b"what was there before"
    child, *_, text = attempt(shim, folder, "kill", MOST_CALLS, action)  # nothing fails
    assert child == 0, text
    new = target.read_bytes()
    found = []
    for kind in sys.argv[4:]:
        for at in range(MOST_CALLS):
            target.write_bytes(old)
            code, came_so_far, name, text = attempt(shim, folder, kind, at, action)
            content = target.read_bytes()
            others = [path.name for path in target.parent.iterdir() if path != target]
            for other in others:
                (target.parent / other).unlink()
            if not came_so_far:
                break
            state = {old: "old", new: "new"}.get(content, "damaged")
            found.append(
                {"kind": kind, "at": at, "code": code, "state": state, "others": others}
                | {"call": name, "text": text}
            )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
