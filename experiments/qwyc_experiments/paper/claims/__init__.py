"""What the paper says, claim by claim, and whether it holds here. `verdicts` has the rules."""

from __future__ import annotations

from collections.abc import Mapping

from ..curves import LEVELS, Outcome
from . import accuracy, across, fewer, orders, shape, timing
from .ours import beyond
from .shape import histogram
from .untested import NOT_TESTED
from .verdicts import FAILS, HOLDS, IN_PART, OPEN, Claim, Verdict, number

__all__ = [
    "FAILS",
    "HOLDS",
    "IN_PART",
    "LEVELS",
    "NOT_TESTED",
    "OPEN",
    "Claim",
    "Verdict",
    "beyond",
    "claims",
    "histogram",
    "number",
]


def claims(outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """The paper's claims that the outcomes can judge, with a verdict for each experiment that has what is
    needed. Any of the experiments may be missing."""
    modules = (fewer, timing, accuracy, orders, across, shape)
    found = [claim for module in modules for claim in module.claims(outcomes)]
    return [claim for claim in found if claim.verdicts]
