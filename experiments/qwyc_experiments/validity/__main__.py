"""Run all parts, or some, and print their tables."""

from __future__ import annotations

import argparse
import time

from rich.console import Console

from . import __doc__ as description
from . import classes, groups, independent, many_classes, samples, tolerance
from . import time as in_time

PARTS = {
    "known": independent.known,
    "real": independent.real,
    "classes": classes.limits,
    "bounds": classes.bounds,
    "many-classes": many_classes.limits,
    "repeated": samples.repeated,
    "trained-on": samples.trained_on,
    "groups": groups.counted,
    "time": in_time.ordered,
    "tolerance": tolerance.limits,
    "verification": samples.first_verification,
}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of repetitions")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    console = Console(width=130)
    for name in options.parts or PARTS:
        started = time.perf_counter()
        PARTS[name](console, options.scale)
        console.print(f"{name}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
