"""Whether rows quit early or are evaluated in full, and who decided that.

Counting base models does not tell whether quitting pays: it has bookkeeping of its own. So `optimize`
measures both ways, unless it is told what to do. The file records the choice and who made it, but no
times: the same inputs must give the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

MARGIN = 0.8  # full evaluation must take less than this share of quitting's time to be preferred
DECIDED_BY = ("measurement", "request", "default", "unknown")


@dataclass(frozen=True)
class Evaluation:
    """The choice that a classifier was made with."""

    quits: bool  # rows quit where the policy lets them; False: a policy was set aside
    decided_by: str  # one of DECIDED_BY; "default": nothing was measured; "unknown": an old file


UNKNOWN = Evaluation(True, "unknown")


@dataclass(frozen=True)
class Speed:
    """Time for one row, in microseconds, on one thread of this machine."""

    quit: float  # rows quit early
    full: float  # every base model on every row
    rows: int  # measured on

    @property
    def quitting_pays(self) -> bool:
        """Whether rows should quit early."""
        return self.full >= MARGIN * self.quit

    def __str__(self) -> str:
        if self.quitting_pays:
            where = f"one thread, {self.rows:,} rows, this machine"
            return f"{self.full / self.quit:.1f} times as fast as qwyc in full ({where})"
        return f"quitting early would be slower here ({self.quit:.2f} µs a row against {self.full:.2f})"
