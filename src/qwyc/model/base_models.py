"""The interface of a family of base models: trees, Python callables, and whatever comes next.

A new family is a new file beside `trees.py` and `callables.py` with these members, a kernel in native/
where it is evaluated natively, and an entry in `files.families` where it can be saved. No caller
asks which family it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from qwyc.policy.costs import Costs
from qwyc.policy.features import Pairs
from qwyc.policy.path import AnyPath, PathSeen
from qwyc.policy.rule import StoppingRule
from qwyc.rows.schema import Schema
from qwyc.runtime.progress import Report
from qwyc.target.target import Decided
from qwyc.target.ties import Ties

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bounds:
    """What base models can add to a running sum, for any input at all."""

    least: Floats  # (T,) or (T, K)
    most: Floats  # (T,) or (T, K)
    margin: (
        float  # more than rounding makes a running sum plus what is left differ from the full score
    )


class PathCounter(Protocol):
    """Base models that say at once what every policy of a path does with rows."""

    def __call__(
        self, rows: Any, *, with_wrong: bool, threads: int | None = None
    ) -> PathSeen | None:
        """What `path.sums` says of the rows' scores and, if asked for, the policies that decide each row
        differently; None for rows whose scores have to be made first."""


class Runner(Protocol):
    """Base models laid out for one policy."""

    def decide(
        self, rows: Any, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats]:
        """The index of each row's class, the base models that it took and its score, each (N,); its
        scores are (N, K) where each class has one."""

    def one_row(
        self, labels: Sequence[Any], fallback: Callable[[Any], Any], schema: Schema | None
    ) -> Callable[[Any], Any] | None:
        """A function that decides one row of plain numbers and passes everything else to `fallback`;
        None where there is nothing faster than `fallback`."""

    def expected_cost(self) -> float | None:
        """What a decision costs, one row of many, in the unit of `BaseModels.expected_cost`, given the
        survival that the runner was made with; None where nothing is known. It is the same on every
        machine."""


class BaseModels(Protocol):
    """T base models of one family, which add up to a score. `rows` are as `Ensemble.rows` gives them, for
    `score_full` and for a runner as `Ensemble.rows_to_decide` does."""

    @property
    def kind(self) -> str:
        """The family's name in files: `model.kind`."""

    @property
    def description(self) -> str:
        """How many of what, such as "500 trees"."""

    @property
    def n_models(self) -> int:
        """Number of base models, T."""

    @property
    def n_scores(self) -> int:
        """How many scores they add up to: 1 for two classes, otherwise one for each of K classes."""

    @property
    def ties(self) -> Ties:
        """Which of K classes wins where their full scores are equal, or their probabilities."""

    @property
    def base(self) -> Any:
        """What the running sum starts from: a number, or (K,)."""

    @property
    def average(self) -> bool:
        """Whether the full score is a mean of T votes."""

    @property
    def score_bytes(self) -> int:
        """Bytes that one base model's score of one row takes in a ScoreMatrix."""

    def scores(
        self, rows: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> tuple[npt.NDArray[Any], Floats]:
        """Every base model on every row, (N, T) or (N, T, K), base model after base model in memory, and
        the full scores, (N,) or (N, K). `report` is
        called with the number of evaluations done, of rows times base models."""

    def score_full(self, rows: Any, *, threads: int | None = None) -> Floats:
        """The full score of every row, (N,), or scores, (N, K), summed as the source sums them."""

    def runner(self, policy: StoppingRule, survival: Floats | None = None) -> Runner:
        """The base models laid out for one policy. `survival`, (T,) the expected share of rows that reach
        each step, changes the time that decisions take, and nothing else."""

    def path_counter(self, path: AnyPath) -> PathCounter | None:
        """What counts the policies of a path; None where scores have to be made first."""

    def expected_cost(self) -> float | None:
        """What a full score costs, one row of many, such as in nanoseconds of a fixed machine; None where
        nothing is known. It is the same on every machine."""

    def bounds(self) -> Bounds | None:
        """What every base model can add; None where nothing is known."""

    def cuts(self) -> Mapping[int, Floats] | None:
        """Values of a feature next to which base models change, by feature; None where nothing is known."""

    def feature_needs(self) -> Pairs | None:
        """Which base models look at which features: two arrays of equal length, base models and features,
        in which a pair may come more than once; None where nothing is known."""

    def costs(self, rows: Any, how: str, *, threads: int | None = None) -> Floats | Costs:
        """What each base model costs on rows like these: (T,), or a `Costs` where base models share
        parts, of which the first to need one pays for it."""

    def cost_unit(self, how: str) -> str:
        """What costs of this kind count, such as "nodes that a row visits"; "" if there is no such
        kind."""

    def tensors(self) -> Mapping[str, npt.NDArray[Any]] | None:
        """The arrays that a file keeps, by name; None where base models are code."""

    def facts(self) -> dict[str, Any]:
        """What a file keeps besides the tensors, as plain values."""

    def digest_facts(self) -> tuple[list[Any], list[float]]:
        """What decides a row besides the tensors: rules, and numbers."""

    def layout(self) -> tuple[dict[str, Any], str]:
        """How they are evaluated: as plain values, and as a line of text; both empty if not known."""
