"""Run all experiments and write the page of the documentation: `make experiments`.

python -m qwyc_experiments.paper [--quick] [--docs docs] [--state build/experiments]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from .reproduce import compute, contents, write


def main() -> None:
    """Everything that `qwyc reproduce all` does, with the page and its pictures where the documentation
    has them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="reduced sizes, to see that it works")
    parser.add_argument(
        "--docs",
        type=Path,
        help="folder of the documentation (default: docs; with --quick, build/quick-experiments)",
    )
    parser.add_argument(
        "--state",
        type=Path,
        default=Path("build/experiments"),
        help="where finished stages are kept",
    )
    options = parser.parse_args()
    docs = options.docs or Path("build/quick-experiments" if options.quick else "docs")
    console = Console()

    def progress(what: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[2K{what} {done} of {total}", end="", file=sys.stderr, flush=True)
        elif done == 0:
            print(what, file=sys.stderr, flush=True)

    outcomes, settings = compute(
        "all",
        options.state,
        quick=options.quick,
        console=console,
        progress=progress,
        folder=docs,
    )
    files = contents(outcomes, settings, images="images/reproduction/")
    write(options.state, {"points.csv": files.pop("points.csv")})
    files["reproduction.md"] = files.pop("report.md")
    write(docs, files)
    console.print(f"Wrote {docs / 'reproduction.md'} and {len(files) - 1} pictures.")


if __name__ == "__main__":
    main()
