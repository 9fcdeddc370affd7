"""Lattices: interpolated tables of vertices, and linear functions, of calibrated features, evaluated
natively."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import ModelError, RowsError
from qwyc.model.base_models import Bounds, Floats
from qwyc.model.ensemble import Ensemble, Source
from qwyc.model.link import LOGISTIC, Link
from qwyc.model.native import (
    NativeRunner,
    native_runner,
    parts_of,
    rows_at_once,
    scores_in_parts,
)
from qwyc.policy.costs import Costs
from qwyc.policy.features import Pairs
from qwyc.policy.path import AnyPath
from qwyc.policy.rule import StoppingRule
from qwyc.rows.schema import Schema
from qwyc.runtime.arguments import check_choice
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.ties import BY_SCORES, Ties

MEASURED_ROWS = 4096
MEASURED_REPEATS = 5
USUAL = 256  # operations of an evaluation; one that takes more counts as several
MARGIN = 2.0**-50  # relative to the largest sum; sums are exact, so any positive margin would do


class CalibratorKind(enum.IntEnum):
    """How a calibrator maps a column to a number."""

    PIECEWISE_LINEAR = 0  # between keypoints
    CATEGORICAL = 1  # a table by category code


class Interpolation(enum.IntEnum):
    """How a base model computes its value from its calibrated inputs."""

    HYPERCUBE = 0  # multilinear: all 2^d vertices of the cell around a row
    SIMPLEX = 1  # the d + 1 vertices of a simplex of the cell
    LINEAR = 2  # a weighted sum of the inputs plus a constant; there is no table


@dataclass(frozen=True, eq=False)
class LatticeArrays:
    """C calibrators and T base models. Calibrator c owns point[point_begin[c]:point_begin[c+1]] and the
    outputs at the same place. Base model t owns input[input_begin[t]:input_begin[t+1]], the sizes at the
    same place, and vertex[vertex_begin[t]:vertex_begin[t+1]]. Real is float32 or float64, the same for all
    arrays: the dtype that rows are converted to."""

    calibrator_kind: npt.NDArray[np.uint8]  # (C,) CalibratorKind
    calibrator_feature: npt.NDArray[np.int32]  # (C,) the column that it reads
    point_begin: npt.NDArray[np.int64]  # (C + 1,)
    # (P,) Real; piecewise linear: keypoints, rising; categorical: 0, 1, 2, ...
    point: npt.NDArray[Any]
    output: npt.NDArray[Any]  # (P,) Real; at the keypoints, or by category code
    has_missing: npt.NDArray[np.uint8]  # (C,) 1 where there is an output for missing values
    missing_value: npt.NDArray[Any]  # (C,) Real; NaN: NaN is missing; 0 where has_missing is 0
    missing_output: npt.NDArray[Any]  # (C,) Real
    other_output: npt.NDArray[Any]  # (C,) Real; of codes outside the table; 0 for numbers
    interpolation: npt.NDArray[np.uint8]  # (T,) Interpolation
    weight: npt.NDArray[np.float64]  # (T,) what a base model's value is multiplied with
    input_begin: npt.NDArray[np.int64]  # (T + 1,)
    input: npt.NDArray[np.int32]  # (I,) calibrators
    size: npt.NDArray[np.int32]  # (I,) vertices along each input, 2 or more; 0 for linear
    vertex_begin: npt.NDArray[np.int64]  # (T + 1,)
    # (V,) Real; row-major, first input slowest; linear: weights, then constant
    vertex: npt.NDArray[Any]

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return len(self.interpolation)

    @property
    def n_calibrators(self) -> int:
        """Number of calibrators, C."""
        return len(self.calibrator_kind)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of all Real arrays."""
        return self.vertex.dtype


@dataclass(frozen=True, eq=False, repr=False)
class LatticeModels:
    """Lattices and linear functions of calibrated features as base models. Every base model's value is
    rounded to a common grid on which sums are exact in any order."""

    arrays: LatticeArrays
    n_features: int
    start: float  # what is added to the sum, before it is rounded to the grid
    mean: bool  # whether the full score is a mean of the base models

    kind: ClassVar[str] = "lattices"
    n_scores: ClassVar[int] = 1
    ties: ClassVar[Ties] = BY_SCORES

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again, and the native lattices cannot be pickled.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    def __repr__(self) -> str:
        return f"LatticeModels({self.description})"

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return self.arrays.n_models

    @property
    def score_bytes(self) -> int:
        """Bytes of one score: 4 in float32, 8 in float64."""
        return self.arrays.dtype.itemsize

    @property
    def description(self) -> str:
        """Such as "500 lattices"."""
        linear = int(np.count_nonzero(self.arrays.interpolation == Interpolation.LINEAR))
        if linear == self.n_models:
            return f"{self.n_models} calibrated feature{'s' * (self.n_models != 1)}"
        if linear:
            return f"{self.n_models} lattices and linear terms"
        return f"{self.n_models} lattice{'s' * (self.n_models != 1)}"

    @property
    def base(self) -> float:
        """What the running sum starts from, on the grid."""
        return self.native.base

    @property
    def average(self) -> bool:
        """Whether the full score is a mean of the base models."""
        return self.mean

    @cached_property
    def native(self) -> _native.Lattices:
        """The same lattices in the native core; raises ModelError where the arrays are not sound."""
        try:
            return _native.Lattices(**self.tensors(), n_features=self.n_features, base=self.start)
        except ValueError as error:
            raise ModelError(f"the model's lattices are not valid: {error}") from None

    def scores(
        self, rows: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> tuple[npt.NDArray[Any], Floats]:
        """Every base model on every row, (N, T), and the full scores, (N,). Long work is done in parts, so
        that it can be interrupted and reports how far it is."""
        evaluate = self.native.score_matrix
        return scores_in_parts(evaluate, self.n_models, self.rows_at_once, rows, threads, report)

    def score_full(self, rows: Any, *, threads: int | None = None) -> Floats:
        """The full score of every row, (N,): the exact sum of the scores and the base."""
        cores = thread_count(threads)
        parts = parts_of(rows, self.rows_at_once)
        return np.concatenate([self.native.score_full(part, cores) for part in parts])

    @property
    def rows_at_once(self) -> int:
        """Rows of one call of the native core, after which Python can be interrupted."""
        return rows_at_once(self._evaluations)

    @cached_property
    def _evaluations(self) -> float:
        """The evaluations that a row counts as."""
        own, _ = self.native.operations()
        return float(np.maximum(own / USUAL, 1.0).sum())

    def runner(self, policy: StoppingRule, survival: Floats | None = None) -> NativeRunner:
        """The lattices laid out for one policy, of the kind that the engine runs."""
        return native_runner(self.native, "lattices", policy, self.rows_at_once)

    def path_counter(self, path: AnyPath) -> None:
        """None: scores have to be made first."""

    def expected_cost(self) -> None:
        """There is no cost model of lattices."""
        return

    def costs(self, rows: Any, how: str, *, threads: int | None = None) -> Costs:
        """What base models cost on rows like these, with calibrators as shared parts: "size" counts
        multiply-adds and comparisons; "measured" is microseconds per row on this machine, so it differs
        from run to run."""
        check_choice("costs", how, ("measured", "size"))
        if not len(rows):
            raise RowsError("{rows} has no rows; costs are measured on rows")
        if how == "size":
            own, calibrators = self.native.operations()  # (T,), (C,)
            return Costs(np.maximum(own, 1.0), calibrators, self.needs)
        seconds = self.native.measure_seconds(rows[:MEASURED_ROWS], MEASURED_REPEATS)
        own, calibrators = (1e6 * np.maximum(measured, 0.0) for measured in seconds)
        return Costs(np.maximum(own, 1e-6), calibrators, self.needs)

    def cost_unit(self, how: str) -> str:
        """What costs of this kind count."""
        units = {"size": "multiply-adds and comparisons", "measured": "microseconds, as measured"}
        return f"{units[how]}; a calibrator counts where it is first needed" if how in units else ""

    def feature_needs(self) -> Pairs:
        """The feature of each calibrated input."""
        a = self.arrays
        inputs = np.diff(a.input_begin)
        return np.repeat(np.arange(a.n_models), inputs), a.calibrator_feature[a.input]

    @property
    def needs(self) -> npt.NDArray[np.bool_]:
        """Which calibrators each base model needs, (T, C)."""
        a = self.arrays
        needs = np.zeros((a.n_models, a.n_calibrators), dtype=bool)
        needs[np.repeat(np.arange(a.n_models), np.diff(a.input_begin)), a.input] = True
        return needs

    def bounds(self) -> Bounds:
        """A lattice lies between its least and its largest vertex, a linear function between its values
        at the extreme outputs of its calibrators."""
        least, most = self.native.bounds()
        return Bounds(least, most, MARGIN * self.native.total)

    def cuts(self) -> None:
        """Lattices change everywhere between keypoints, and their library rounds as the machine does."""
        return

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays of `LatticeArrays` by name."""
        return {name: getattr(self.arrays, name) for name in LatticeArrays.__dataclass_fields__}

    def facts(self) -> dict[str, Any]:
        """What the sum starts from, and whether it is a mean."""
        return {"base": self.start, "mean": self.mean}

    def digest_facts(self) -> tuple[list[Any], list[float]]:
        """Whether the sum is a mean; what it starts from."""
        return [self.mean], [self.start]

    def layout(self) -> tuple[dict[str, Any], str]:
        """How large the lattices are and how they are interpolated."""
        a = self.arrays
        tables = a.interpolation != Interpolation.LINEAR  # (T,)
        facts: dict[str, Any] = {
            "vertices": int(np.diff(a.vertex_begin)[tables].sum()),
            "most_inputs": int(np.diff(a.input_begin).max()),
            "calibrators": a.n_calibrators,
        }
        for kind in Interpolation:
            facts[kind.name.lower()] = int(np.count_nonzero(a.interpolation == kind))
        parts = [
            f"{facts[name]:,} {words}"
            for name, words in (
                ("hypercube", "interpolated in a hypercube"),
                ("simplex", "interpolated in a simplex"),
                ("linear", "linear"),
            )
            if facts[name]
        ]
        text = (
            f"{facts['vertices']:,} vertices, up to {facts['most_inputs']:,} inputs a base model, "
            f"{facts['calibrators']:,} calibrators; {', '.join(parts)}"
        )
        return facts, text


def lattice_ensemble(
    arrays: LatticeArrays,
    schema: Schema,
    *,
    base: float,
    mean: bool,
    threshold: float,
    classes: npt.NDArray[Any],
    source: Source | None = None,
    link: Link = LOGISTIC,
) -> Ensemble:
    """An ensemble of lattices; raises ModelError where its arrays are not sound."""
    models = LatticeModels(arrays, schema.n_features, base, mean)
    _ = models.native  # checks every array
    return Ensemble(models, schema, threshold, classes, source, link)
