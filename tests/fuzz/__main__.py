"""`python -m fuzz`: runs mutated files against every reader for some time, and reports findings.

A worker process runs the cases, so that a crash or a hang ends the worker and not the count. A finding is a
crash, a case of more than 10 seconds, memory above the bound of qwyc.limits, or an exception that is not
one of qwyc's own."""

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fuzz.corpus import corpus
from fuzz.mutate import mutated

SECONDS_A_CASE = 10
FINDINGS = Path("build/fuzz/findings")


def case(target, seed, number):
    """The content of one case; the same for the same arguments."""
    rng = random.Random(f"{target}/{seed}/{number}")
    return mutated(target, rng.choice(corpus(target)), rng)


def peak():
    """The most memory that this process has had, in bytes, since the last `reset_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak():
    """Begin to measure anew."""
    Path("/proc/self/clear_refs").write_text("5")


def work(target, seed, first, seconds, pipe):
    """Run cases from number `first` on until the time is over. Sends (number, None) before each case and
    (number, taken or text of the finding) after it."""
    from fuzz.targets import bound_of, run

    bound = bound_of(target)
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        path = Path(folder) / f"case.{target.split('-')[0]}"
        content = corpus(target)[0]
        path.write_bytes(content)
        assert run(target, path), "the file is refused before anything is changed"
        number = first
        while time.monotonic() < end:
            content = case(target, seed, number)
            path.write_bytes(content)
            pipe.send((number, None))
            reset_peak()
            before = peak()
            try:
                result = run(target, path)
            except Exception:
                result = traceback.format_exc()
            taken = peak() - before
            if taken > bound.bytes_for(len(content)):
                result = f"{taken:,} bytes of memory for a file of {len(content):,}"
            pipe.send((number, result))
            number += 1


def fuzz(target, seed, seconds, first=0):
    """Run one target for some time. Returns the number of cases, how many of them were taken as valid, and
    the findings as (number, text)."""
    corpus(target)  # before the fork, so that workers share it
    count = taken = 0
    findings = []
    end = time.monotonic() + seconds
    context = multiprocessing.get_context("fork")
    while (left := end - time.monotonic()) > 0:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=work, args=(target, seed, first, left, theirs))
        worker.start()
        theirs.close()
        number, running = first, False
        try:
            while True:
                # The first case waits for imports.
                limit = SECONDS_A_CASE if running else 60
                if not ours.poll(limit):
                    findings.append((number, f"more than {limit} seconds"))
                    count += 1
                    break
                number, result = ours.recv()
                running = result is None
                if not running:
                    count += 1
                    taken += result is True
                    if isinstance(result, str):
                        findings.append((number, result))
        except EOFError:
            worker.join()
            if worker.exitcode:
                findings.append((number, f"the process ended with {worker.exitcode}"))
                count += 1
        worker.kill()
        worker.join()
        first = number + 1
    return count, taken, findings


def main():
    """Run the command."""
    from fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", help=f"which readers; all by default: {', '.join(TARGETS)}"
    )
    parser.add_argument("--seconds", type=float, default=60, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    targets = options.targets or TARGETS
    found = 0
    for target in targets:
        count, taken, findings = fuzz(target, options.seed, options.seconds / len(targets))
        print(
            f"{target:<16} {count:>9,} cases, {taken:>7,} taken, {len(findings)} findings",
            flush=True,
        )
        for number, text in findings:
            FINDINGS.mkdir(parents=True, exist_ok=True)
            path = FINDINGS / f"{target}-{options.seed}-{number}"
            path.write_bytes(case(target, options.seed, number))
            print(f"  {path}: {text}", flush=True)
        found += len(findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
