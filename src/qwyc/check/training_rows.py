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
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.check.leaf_cells import Cells, Floats, Numbers
from qwyc.model.ensemble import Sample
from qwyc.model.trees import TreeModels
from qwyc.policy.scores import ScoreMatrix

DOUBT = 1e-5  # rows are training rows where new rows would be as close less often than this
NOISE = (math.inf, 1.5, 0.5)  # the most that single trees may add in a direction, for each test
MOST_RATIO = 0.7  # nothing is tested where training rows would be hardly closer than others
FEWEST_ROWS = 100
COVARIANCE_ROWS = 8192  # that S is measured on

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

    @property
    def doubt(self) -> str:
        """Why a promise would not hold, as a sentence without its full stop."""
        return (
            "the rows, or many of them, are those that the model was trained on. Its trees count their "
            "training rows, and the sample matches these counts more closely than new rows do "
            f"(p = {self.p_value:.0e})"
        )


def closeness(
    sample: Sample, scores: ScoreMatrix, *, threads: int | None = None
) -> Closeness | None:
    """How close a sample is to the rows that the model was trained on; None where there is no evidence, as
    with models that do not count rows and with samples that are small beside the training rows."""
    models, m = sample.ensemble.base_models, len(scores.full)
    if not isinstance(models, TreeModels) or m < FEWEST_ROWS:
        return None
    cells = Cells.of(models, m)
    if cells is None:
        return None
    least = 1 / m + 1 / cells.most_rows  # the factor of S for new rows, or less
    if 1 / m - 2 / cells.most_rows > MOST_RATIO * least:
        return None
    given = _Given.of(models, sample, scores, cells, threads)
    tests = [test for test in given.tests(cells, least) if test is not None]
    if not tests:
        return None
    closest = min(tests, key=lambda test: test.p_value)
    p_value = min(1.0, len(NOISE) * closest.p_value)  # one of several tests
    return Closeness(closest.ratio, p_value, closest.dimensions)


@dataclass(frozen=True, eq=False)
class _Given:
    """The given rows in their cells."""

    cell: npt.NDArray[np.int32]  # (T', N)
    weight: Floats | None  # (T', N) what a row counts in a tree; None: 1
    shares: Floats  # (cells,) of the rows, or of their weight

    @classmethod
    def of(
        cls,
        models: TreeModels,
        sample: Sample,
        scores: ScoreMatrix,
        cells: Cells,
        threads: int | None,
    ) -> _Given:
        cell = cells.of_rows(sample.rows, threads)
        weight = None if models.weighs == "rows" else _curvature(scores, cells.trees)
        shares = np.zeros(len(cells.shares))
        for k in range(len(cell)):
            counted = np.bincount(
                cell[k], None if weight is None else weight[k], minlength=len(shares)
            )
            shares += counted / counted.sum()
        return cls(cell, weight, shares)

    def tests(self, cells: Cells, least: float) -> list[Closeness | None]:
        """A test for each set of directions.

        Directions are found on some rows, and the covariance along them is measured on others: the rows
        that directions were found on spread more along them than others do."""
        rows = np.random.default_rng(0).permutation(self.cell.shape[1])[:COVARIANCE_ROWS]
        half = len(rows) // 2
        found = self._influence(cells, np.sort(rows[:half]))
        spread = found.T @ found / half
        values, vectors = np.linalg.eigh(spread)
        usable = np.flatnonzero(values > 1e-3 * values[-1])[-(half // 3) :]
        values, vectors = values[usable], vectors[:, usable]
        own = np.zeros_like(spread)  # what each tree adds by itself
        for begin, end in zip(cells.begin[:-1], cells.begin[1:], strict=True):
            own[begin:end, begin:end] = spread[begin:end, begin:end]
        noise = ((own @ vectors) * vectors).sum(axis=0) / values
        measured = self._influence(cells, np.sort(rows[half:])) @ vectors
        covariance = np.cov(measured, rowvar=False).reshape(len(values), len(values))
        along = (self.shares - cells.shares) @ vectors
        return [
            _test(along[kept], covariance[np.ix_(kept, kept)], len(measured), least)
            for kept in (np.flatnonzero(noise <= limit) for limit in NOISE)
        ]

    def _influence(self, cells: Cells, rows: Numbers) -> Floats:
        """What each of some rows adds to the shares, less the mean, (rows, cells), to first order."""
        table = np.zeros((len(rows), len(self.shares)))
        at = np.arange(len(rows))
        for k in range(len(self.cell)):
            own = slice(cells.begin[k], cells.begin[k + 1])
            weight = np.ones(len(rows))
            if self.weight is not None:
                weight = self.weight[k, rows] / self.weight[k].mean()
            table[:, own] -= weight[:, None] * self.shares[own]
            table[at, self.cell[k, rows]] += weight
        return table


def _curvature(scores: ScoreMatrix, trees: Numbers) -> Floats:
    """p (1 - p) of every row before each of some trees, (T', N), as the trainer has added it up."""
    weight = np.empty((len(trees), len(scores.full)))
    margin, done = np.full(len(scores.full), scores.base), 0
    for k in np.argsort(trees):
        for t in range(done, int(trees[k])):
            margin += scores.values[:, t]
        done = int(trees[k])
        p = 1 / (1 + np.exp(-np.clip(margin, -30, 30)))
        weight[k] = p * (1 - p)
    return weight


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
