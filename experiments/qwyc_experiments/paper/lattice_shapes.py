"""What the lattice ensembles of the stand-ins look like, and how trained numbers become an ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc

from .data import Data

JOINT, INDEPENDENT = "joint", "independent"
TRAININGS = (JOINT, INDEPENDENT)
EVERY_VALUE = 60  # a column of at most so many values has a keypoint at each: any table of outputs


@dataclass(frozen=True)
class Shape:
    """An ensemble of lattices of two vertices along each feature."""

    name: str  # of the experiment
    lattices: int  # T
    inputs: int  # features of a lattice, d
    keypoints: int  # of a calibrator of a column with many values
    missing: bool  # whether calibrators have an output of their own for missing values
    negative: (
        float | None
    )  # share of training rows that are called negative; None: the threshold is 0


SHAPES = {
    "rw1": Shape("rw1", 5, 13, 20, True, 0.95),
    "rw2": Shape("rw2", 500, 8, 16, False, None),
}
SIZES = {"rw1": (1, 2, 3, 4), "rw2": (5, 10, 20, 40, 80, 160, 320)}  # of the smaller ensembles
QUICK_SIZES = {"rw1": (1, 2, 3), "rw2": (5, 10, 20)}
QUICK = {
    "rw1": Shape("rw1", 4, 4, 6, True, 0.95),
    "rw2": Shape("rw2", 30, 3, 6, False, None),
}


def subsets_are_random(shape: Shape) -> bool:
    """Whether the features of a lattice are drawn at random; else Crystals chooses them."""
    return shape.name == "rw2"


def keypoints(
    values: npt.NDArray[np.float32], most: int, *, every: int = EVERY_VALUE
) -> npt.NDArray[np.float32]:
    """Places where a calibrator may bend: every value of a column with at most `every`, else half of them
    at quantiles of the rows and half at quantiles of the distinct values, for columns that are mostly 0."""
    values = values[~np.isnan(values)]
    distinct = np.unique(values)
    if len(distinct) > every:
        shares = np.linspace(0, 1, most // 2)
        parts = [np.quantile(each, shares, method="nearest") for each in (values, distinct)]
        distinct = np.unique(np.concatenate(parts))
    if len(distinct) < 2:  # a constant, or nothing: any second place will do
        first = distinct[0] if len(distinct) else np.float32(0)
        distinct = np.array([first, first + max(1, abs(first))])
    return distinct.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrator's numbers."""

    keypoints: npt.NDArray[np.float32]  # (K,)
    outputs: npt.NDArray[np.float32]  # (K,) in [0, 1]
    missing: float | None

    def calibrator(self) -> qwyc.lattice.PiecewiseLinear:
        return qwyc.lattice.PiecewiseLinear(
            self.keypoints, self.outputs, missing_output=self.missing
        )


@dataclass(frozen=True, eq=False)
class Numbers:
    """What is trained."""

    subsets: npt.NDArray[np.int64]  # (T, d) features
    vertices: npt.NDArray[np.float32]  # (T, 2**d), the first feature slowest
    calibrations: list[list[Calibration]]  # (T, d)


def assemble(numbers: Numbers, data: Data, negative: float | None) -> qwyc.Ensemble:
    """The mean of the lattices, with the threshold of the experiment."""
    members = [
        qwyc.lattice.Lattice(
            subset.tolist(), vertices, calibrators=[each.calibrator() for each in own]
        )
        for subset, vertices, own in zip(
            numbers.subsets, numbers.vertices, numbers.calibrations, strict=True
        )
    ]

    def at(threshold: float) -> qwyc.Ensemble:
        return qwyc.lattice.ensemble(
            members, features=data.X.shape[1], average=True, threshold=threshold
        )

    ensemble = at(0.0)
    if negative is None:
        return ensemble
    return at(threshold_for(ensemble.score_full(data.X), negative))


def threshold_for(scores: npt.NDArray[Any], negative: float) -> float:
    """The smallest score such that a share of the rows, or as little more as ties allow, is below it."""
    ranked = np.sort(scores)
    place = round(negative * len(ranked))
    return float(ranked[min(place, len(ranked) - 1)])
