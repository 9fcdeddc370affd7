"""qwyc and TensorFlow Lattice on one thread, answers checked: `make bench-lattices`.

Exit code 1 where somebody's scores or full decisions are not the model's.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lattices", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="only see that it runs")
    parser.add_argument("--only", nargs="*", choices=("A", "B"), default=("A", "B"))
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="for a busy machine: batches by processor time, not by the wall clock",
    )
    parser.add_argument(
        "--page",
        type=Path,
        default=Path("bench-results/lattices.md"),
        help="where the results go, as Markdown",
    )
    return parser.parse_args()


def main() -> None:
    """Set the environment, then load the libraries and run."""
    chosen = options()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    from .run import run

    run(chosen)


if __name__ == "__main__":
    main()
