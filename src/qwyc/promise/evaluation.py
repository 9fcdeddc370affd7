"""Whether rows quit early or are evaluated in full, and who decided that.

Counting base models does not tell whether quitting pays: it has bookkeeping of its own. So `optimize`
compares both ways by a cost model, unless it is told what to do. The file records the choice and who made
it, but no times: the same inputs must give the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

# Of times, which differ from run to run: full evaluation must take less than this share of quitting's time
# to be preferred. The cost model needs no such margin.
MARGIN = 0.8
DECIDED_BY = ("model", "measurement", "request", "default", "unknown")


@dataclass(frozen=True)
class Evaluation:
    """The choice that a classifier was made with."""

    quits: bool  # rows quit where the policy lets them; False: a policy was set aside
    # One of DECIDED_BY; "model": the cost model; "measurement": times; "default": the two ways were not
    # compared; "unknown": an old file.
    decided_by: str


UNKNOWN = Evaluation(True, "unknown")


@dataclass(frozen=True)
class Expected:
    """Cost for one row by the cost model, the same on every machine."""

    quit: float  # rows quit early
    full: float  # every base model on every row, in the same unit

    @property
    def quitting_pays(self) -> bool:
        """Whether rows should quit early."""
        return self.quit <= self.full


@dataclass(frozen=True)
class Speed:
    """Time for one row, in microseconds, on one thread of this machine."""

    quit: float  # rows quit early
    full: float  # every base model on every row
    rows: int  # measured on

    @property
    def quitting_pays(self) -> bool:
        """Whether rows should quit early, by times alone."""
        return self.full >= MARGIN * self.quit

    def describe(self, quits: bool) -> str:
        """The times beside what is done: `quits` is whether rows quit early."""
        if quits:
            where = f"one thread, {self.rows:,} rows, this machine"
            return f"{self.full / self.quit:.1f} times as fast as qwyc in full ({where})"
        how = "slower" if self.quit > self.full else "faster"
        return (
            f"quitting early would be {how} here ({self.quit:.2f} µs a row against {self.full:.2f})"
        )
