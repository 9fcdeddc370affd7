"""Everyone against everyone, answers checked: `make bench`, or `python -m benchmarks --quick`.

Exit code 1 where somebody who must decide as the model does, does not.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from qwyc.runtime.threads import thread_count

PARTS = (
    "xgboost",
    "lightgbm",
    "forest",
    "catboost",
    "ydf",
    "xgboost-categories",
    "lightgbm-categories",
    "classes",
    "values",
    "sparse",
    "growth",
)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    for name, what in (("quick", "a version of two minutes"), ("tiny", "only see that it runs")):
        size.add_argument(f"--{name}", action="store_const", const=name, dest="size", help=what)
    parser.add_argument("--only", nargs="*", choices=PARTS, help="some of the parts")
    parser.add_argument("--one-thread", action="store_true", help="leave out all threads")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="for a busy machine: batches on one thread by processor time, not by the wall clock",
    )
    parser.add_argument("--output", type=Path, default=Path("bench-results"), help="a folder")
    return parser.parse_args()


def main() -> None:
    """Set the environment, then load the libraries and run."""
    chosen = options()
    cores = thread_count(None)
    # Each library is told its number of threads by its own option, up to this many; threads that wait
    # sleep, since otherwise those of one contestant would take the next one's core.
    os.environ["OMP_NUM_THREADS"] = str(cores)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    from .run import run

    run(chosen, cores)


if __name__ == "__main__":
    main()
