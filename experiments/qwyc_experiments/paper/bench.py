"""An ensemble on its data, and how to measure a policy on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc

from .curves import Measured, Point
from .data import Data
from .experiments import Experiment
from .setting import Setting


@dataclass(frozen=True, eq=False)
class Bench:
    """The full ensemble, its scores on the training and test rows, and smaller ensembles."""

    experiment: Experiment
    setting: Setting
    data: Data
    ensemble: qwyc.Ensemble
    # size -> what decides rows (N, D) with an ensemble of so many base models: (N,) bool
    smaller: Mapping[int, Callable[[npt.NDArray[np.float32]], npt.NDArray[np.bool_]]]
    facts: dict[str, str]  # how it was trained, in words

    @cached_property
    def fitting(self) -> qwyc.ScoreMatrix:
        """Scores on the rows that the model was trained on, as in the paper."""
        return self.ensemble.scores(self.data.X)

    @cached_property
    def testing(self) -> qwyc.ScoreMatrix:
        """Scores on rows that neither the model nor a policy has seen."""
        return self.ensemble.scores(self.data.X_test)

    @cached_property
    def without_validation(self) -> qwyc.ScoreMatrix:
        """Scores on the training rows but for the validation rows."""
        return self.fitting.take(np.flatnonzero(~self.data.validation))

    @cached_property
    def validation(self) -> qwyc.ScoreMatrix:
        """Scores on the validation rows, which are training rows."""
        return self.fitting.take(np.flatnonzero(self.data.validation))

    def point(
        self,
        policy: Any,
        method: str,
        order: str,
        knob: float,
        *,
        seed: int | None = None,
        bin_width: float | None = None,
    ) -> Point:
        """What a policy does on the rows it was fitted on and on the test rows."""
        seen, new = policy.apply(self.fitting), policy.apply(self.testing)
        label = new.label.astype(bool)
        return Point(
            method,
            order,
            float(knob),
            seed,
            bin_width,
            measured(seen.label, seen.steps, self.fitting.positive, self.data.y),
            measured(label, new.steps, self.testing.positive, self.data.y_test),
            new.steps.astype(np.int16),
            label,
            policy,
        )

    def full_evaluation(self) -> tuple[Measured, Measured]:
        """The full ensemble itself, on the training and on the test rows."""
        T = self.ensemble.n_models
        fitted, new = self.fitting.positive, self.testing.positive
        return measured(fitted, T, fitted, self.data.y), measured(new, T, new, self.data.y_test)


def measured(label: Any, steps: Any, full: Any, truth: Any) -> Measured:
    """Base models, differences to the full ensemble and accuracy of decisions about rows."""
    return Measured(
        float(np.mean(steps)), float(np.mean(label != full)), float(np.mean(label == truth))
    )
