"""Figures that the paper prints (Wang, Gupta and You, 2018, arXiv:1806.11202): Tables 2 to 5, in its
appendix. Experiments 1 and 2 are published as pictures only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One line of a table of the paper."""

    differ: float  # share of the test rows
    models: float  # mean base models
    microseconds: float  # per test row
    deviation: float  # of that, as a share, over 100 runs
    speed_up: float


# experiment -> "full", "qwyc" or "fan" -> line
TABLES = {
    3: {
        "full": Published(0.0, 5, 4.98, 0.06, 1.0),
        "qwyc": Published(0.0044, 1.54, 1.82, 0.07, 2.7),
        "fan": Published(0.0051, 2.09, 2.49, 0.08, 2.0),
    },
    4: {
        "full": Published(0.0, 500, 322, 0.04, 1.0),
        "qwyc": Published(0.0045, 237, 177, 0.04, 1.8),
        "fan": Published(0.0046, 309, 293, 0.12, 1.1),
    },
    5: {
        "full": Published(0.0, 5, 4.91, 0.07, 1.0),
        "qwyc": Published(0.0043, 1.18, 1.23, 0.06, 4.0),
        "fan": Published(0.0051, 1.20, 1.39, 0.07, 3.5),
    },
    6: {
        "full": Published(0.0, 500, 269, 0.04, 1.0),
        "qwyc": Published(0.0059, 234, 149, 0.04, 1.8),
        "fan": Published(0.0046, 268, 209, 0.07, 1.3),
    },
}
