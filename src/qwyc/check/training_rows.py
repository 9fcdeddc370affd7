"""Whether rows are those that a model was trained on, by the evidence that the model itself holds.

Trees know how many training rows reached each leaf. Let d be the difference between the share of the given
rows in each cell (`leaf_cells`) and the share of the training rows. For m given rows and n training rows, d
has the covariance

    (1/m + 1/n) S   where both were drawn from one distribution,
    (1/m - 1/n) S   where the given rows are a random part of the training rows,

with S the covariance of a row's cells. S is measured on the given rows, over the cells of many trees
together, so it does not matter how alike the trees are. Rows that are closer to the training rows than new
rows can be are training rows. Drift makes d larger, never smaller.

Trees may be grown on random parts of the training rows (bagging). This adds to d what each tree's part
differs by, which hides the difference above in directions in which one tree counts, and averages out where
many trees agree. So d is tested in three sets of directions: all, and those in which trees agree more and
more. n is taken to be at most twice the rows of a tree, which errs towards finding nothing."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.check.leaf_cells import Cells, Floats, Numbers
from qwyc.check.row_weights import CountingTrees, counting_trees
from qwyc.errors import TrainingRowsWarning
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.compare import count_taken
from qwyc.rows.odd_values import ERROR, FLAG
from qwyc.rows.selection import row_count

DOUBT = 1e-4  # rows are training rows where new rows would be as close less often than this
NOISE = (math.inf, 1.5, 0.5)  # the most that single trees may add in a direction, for each test
MOST_RATIO = 0.7  # nothing is tested where training rows would be hardly closer than others
FEWEST_ROWS = 100
COVARIANCE_ROWS = 8192  # that S is measured on
BLOCK = 1 << 16  # rows that are placed at once

# Why a promise would not hold. Files keep it, so it has no numbers that depend on the machine.
WHY = (
    "the rows, or many of them, are those that the model was trained on. Its trees count their training "
    "rows, and the sample matches these counts more closely than new rows do"
)
WAY_OUT = "pass rows that the model has not seen, such as a validation set"


@dataclass(frozen=True)
class Closeness:
    """How close rows are to the training rows of a model, where that is closest."""

    ratio: float  # squared distance, over the least that is expected of new rows
    p_value: float  # how often new rows are as close
    dimensions: int

    @property
    def is_training(self) -> bool:
        """Whether rows are too close to be new."""
        return self.p_value < DOUBT


def closeness(
    sample: Sample, scores: ScoreMatrix, *, threads: int | None = None
) -> Closeness | None:
    """How close a sample is to the rows that the model was trained on; None where there is no evidence, as
    with models that do not count rows and with samples that are small beside the training rows."""
    look = Look.at(sample.ensemble, len(scores.full))
    if look is None:
        return None
    for i in range(0, len(scores.full), BLOCK):
        part = slice(i, i + BLOCK)
        look.add(sample.rows[part], scores.values[part], threads=threads)
    return look.closeness()


def doubts_of(found: Closeness | None, what: str, *, stacklevel: int = 3) -> tuple[str, ...]:
    """Doubts where rows are too close to the training rows to be new, as clauses; none otherwise. The
    warning starts with `what`. It points at the caller of the function that calls this, or so many levels
    up."""
    if found is None or not found.is_training:
        return ()
    warnings.warn(
        f"{what}: {WHY}. A model is surer of its training rows than of new ones, so new rows are decided "
        f"differently more often than these: {WAY_OUT}",
        TrainingRowsWarning,
        stacklevel=stacklevel,
    )
    return (WHY,)


def look_at_rows(ensemble: Ensemble, X: Any, unseen: str = ERROR) -> Look | None:
    """What looks at the rows of X as they are evaluated; None where it would show nothing. With `unseen`
    FLAG, rows with a value that the model refuses are not evaluated."""
    counting = counting_trees(ensemble.base_models)
    if counting is None or not len(counting.models.trees.leaf_weight):
        return None  # a classifier from a file, for example, so that rows of a stream need no count
    n_rows = row_count(X) if unseen != FLAG else count_taken(ensemble, X)
    return Look.at(ensemble, n_rows) if n_rows else None


class Look:
    """Rows beside the training rows of a model, block by block."""

    def __init__(self, counting: CountingTrees, cells: Cells, n_rows: int) -> None:
        self._counting, self._cells, self._n_rows = counting, cells, n_rows
        self._least = 1 / n_rows + 1 / cells.most_rows  # the factor of S for new rows, or less
        chosen = np.random.default_rng(0).permutation(n_rows)[:COVARIANCE_ROWS]
        # Directions are found on some rows, and the covariance along them is measured on others: the rows
        # that directions were found on spread more along them than others do.
        self._rows = np.split(chosen, [len(chosen) // 2])
        self._picked: list[list[_Placed]] = [[], []]
        self._counted = np.zeros(len(cells.shares))  # (cells,) rows, or their weight
        self._done = 0

    @classmethod
    def at(cls, ensemble: Ensemble, n_rows: int) -> Look | None:
        """A look at `n_rows` rows; None where it would show nothing."""
        counting = counting_trees(ensemble.base_models)
        if counting is None or n_rows < FEWEST_ROWS:
            return None
        cells = Cells.of(counting.models, n_rows, counting.first)
        if cells is None:
            return None
        look = cls(counting, cells, n_rows)
        training = 1 / n_rows - 2 / cells.most_rows  # the factor of S for training rows, or more
        return None if training > MOST_RATIO * look._least else look

    def add(self, rows: Any, values: npt.NDArray[Any], *, threads: int | None = None) -> None:
        """The next rows, as the base models take them, and what each base model says, (N, T), or
        (N, T, K)."""
        placed = _Placed.of(self._counting, self._cells, rows, values, threads)
        for k in range(len(placed.cell)):
            self._counted += np.bincount(
                placed.cell[k], placed.weight[k], minlength=len(self._counted)
            )
        for picked, chosen in zip(self._picked, self._rows, strict=True):
            at = chosen[(chosen >= self._done) & (chosen < self._done + len(rows))] - self._done
            picked.append(placed.take(np.sort(at)))
        self._done += len(rows)

    def add_sample(
        self, sample: Sample, scores: ScoreMatrix, *, threads: int | None = None
    ) -> None:
        """The next rows, with their scores."""
        self.add(sample.rows, scores.values, threads=threads)

    def closeness(self) -> Closeness | None:
        """The result, once all rows have been added."""
        cells = self._cells
        total = np.add.reduceat(self._counted, cells.begin[:-1])  # (T',)
        shares = self._counted / np.repeat(total, np.diff(cells.begin))
        found, measured = (
            _Placed.joined(picked).influence(cells, shares, total / self._n_rows)
            for picked in self._picked
        )
        spread = found.T @ found / len(found)
        values, vectors = np.linalg.eigh(spread)
        usable = np.flatnonzero(values > 1e-3 * values[-1])[-(len(found) // 3) :]
        values, vectors = values[usable], vectors[:, usable]
        own = np.zeros_like(spread)  # what each tree adds by itself
        for begin, end in zip(cells.begin[:-1], cells.begin[1:], strict=True):
            own[begin:end, begin:end] = spread[begin:end, begin:end]
        noise = ((own @ vectors) * vectors).sum(axis=0) / values
        covariance = np.cov(measured @ vectors, rowvar=False).reshape(len(values), len(values))
        along = (shares - cells.shares) @ vectors
        tests = []
        for limit in NOISE:
            kept = np.flatnonzero(noise <= limit)
            tests.append(
                _test(along[kept], covariance[np.ix_(kept, kept)], len(measured), self._least)
            )
        possible = [test for test in tests if test is not None]
        if not possible:
            return None
        closest = min(possible, key=lambda test: test.p_value)
        p_value = min(1.0, len(NOISE) * closest.p_value)  # one of several tests
        return Closeness(closest.ratio, p_value, closest.dimensions)


@dataclass(frozen=True, eq=False)
class _Placed:
    """Some rows in their cells."""

    cell: npt.NDArray[np.int32]  # (T', N)
    weight: npt.NDArray[np.float32]  # (T', N) what a row counts in a tree

    @classmethod
    def of(
        cls,
        counting: CountingTrees,
        cells: Cells,
        rows: Any,
        values: npt.NDArray[Any],
        threads: int | None,
    ) -> _Placed:
        cell = cells.of_rows(rows, threads)
        if counting.weigh is None:
            return cls(cell, np.ones(cell.shape, dtype=np.float32))
        return cls(cell, counting.weigh(values, cells.trees))

    def take(self, rows: Numbers) -> _Placed:
        return _Placed(self.cell[:, rows], self.weight[:, rows])

    @staticmethod
    def joined(parts: list[_Placed]) -> _Placed:
        cell = np.concatenate([part.cell for part in parts], axis=1)
        return _Placed(cell, np.concatenate([part.weight for part in parts], axis=1))

    def influence(self, cells: Cells, shares: Floats, mean: Floats) -> Floats:
        """What each row adds to the shares, less the mean, (N, cells), to first order; `mean` (T',) is the
        mean weight of a row."""
        n = self.cell.shape[1]
        table, at = np.zeros((n, len(shares))), np.arange(n)
        for k in range(len(self.cell)):
            own = slice(cells.begin[k], cells.begin[k + 1])
            weight = self.weight[k] / mean[k]
            table[:, own] -= weight[:, None] * shares[own]
            table[at, self.cell[k]] += weight
        return table


def _test(along: Floats, covariance: Floats, rows: int, least: float) -> Closeness | None:
    """Hotelling's test of a difference, (r,), whose covariance is `least` times one that was measured on so
    many rows: how often would it be as small?"""
    r = len(along)
    if r == 0 or rows <= 2 * r or np.linalg.cond(covariance) > 1e8:
        return None
    squared = float(along @ np.linalg.solve(covariance, along)) / least
    ratio = squared / r * (rows - r - 2) / (rows - 1)  # 1 on average
    # The ratio is F distributed; a chi-square variable of the same variance is close enough.
    freedom = 1 / (1 / r + 1 / (rows - r))
    return Closeness(ratio, chi_square_tail(freedom * ratio, freedom), r)


def chi_square_tail(value: float, freedom: float) -> float:
    """The probability that a chi-square variable is at most `value`: the series of the incomplete gamma
    function."""
    a, x = freedom / 2, value / 2
    if x <= 0:
        return 0.0
    if x > a + 10 * math.sqrt(a) + 10:
        return 1.0
    term, total, k = 1.0, 1.0, 1
    while term > 1e-17 * total:
        term *= x / (a + k)
        total += term
        k += 1
    return min(1.0, math.exp(a * math.log(x) - x - math.lgamma(a + 1)) * total)
