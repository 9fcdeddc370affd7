"""Approximation: the model's own output within a tolerance, from as few base models as each row needs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ArtifactError, OptionError
from qwyc.files import classifier_file
from qwyc.model.one_row import as_table
from qwyc.model.probabilities import SingleOutput, single_output
from qwyc.policy.decisions import Decisions
from qwyc.policy.estimate_policy import EstimatePolicy
from qwyc.promise.certificate import check_confidence
from qwyc.promise.certified import Certified
from qwyc.promise.doubtful import warn_of_moves
from qwyc.promise.evaluation import Evaluation
from qwyc.promise.tolerance import ToleranceBudget
from qwyc.report.text import summary
from qwyc.runtime.arguments import check_count

# What classifiers have and approximations do not have yet.
_OF_CLASSIFIERS = ("decide_lazily", "export_c", "report", "rounds", "without_transform")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Approximation(Certified):
    """A model whose outputs are within a tolerance of the full ensemble's: the probability of the positive
    class of two, or the value of a regression or ranking.

    A row quits as soon as its output is known closely enough. It then gets the output that is expected for
    rows with its running sum at its step. A row that completes gets the source model's own output, bit for
    bit. With the stated confidence, at most a share alpha of new rows gets an output that is off by more
    than the tolerance. There is no limit on how far off these outputs are. `qwyc.optimize(...,
    tolerance=)` makes an Approximation.

    Rows may be NumPy arrays or pandas, Polars and Arrow tables. All methods may be called from many threads
    at once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.policy, EstimatePolicy):
            raise OptionError(
                f"an approximation has an EstimatePolicy; got a {type(self.policy).__name__}"
            )

    @property
    def rule(self) -> EstimatePolicy:
        """The policy: thresholds for each step, and estimates of full scores."""
        assert isinstance(self.policy, EstimatePolicy)  # checked when it was made
        return self.policy

    @property
    def tolerance(self) -> float:
        """By how much outputs may be off, in the unit of the output."""
        return self.rule.within.tolerance

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The value of every row, (N,), in the type that the source model gives. For a model of two
        classes, it is the class of the estimated probability. Values are within the tolerance, except for
        a share alpha of rows."""
        _, scores = self._estimates(X, threads)
        if self.ensemble.has_classes:
            return self._labels(scores)
        return self._output(scores, threads)

    def predict_proba(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The probability of both classes, (N, 2). Rows quit early: the probability p of the positive
        class is within the tolerance of the source model's own, except for a share alpha of rows. The
        first column is 1 - p. `full().predict_proba(X)` never quits."""
        if not self.ensemble.has_classes:
            raise OptionError(
                f"a model of {self.ensemble.description} gives values, not probabilities: use predict"
            )
        _, scores = self._estimates(X, threads)
        positive = self._output(scores, threads)
        both = np.empty((len(positive), 2), dtype=positive.dtype)
        both[:, 0], both[:, 1] = 1 - positive, positive
        return both

    def decide(self, X: Any, *, threads: int | None = None) -> Decisions:
        """The output of every row, how many base models it took and whether all were evaluated.

        `score` is the output, never a running sum: exact if `complete`, otherwise estimated. `label` is
        the class that the output gives, or the value itself if there are no classes."""
        steps, scores = self._estimates(X, threads)
        output = self._output(scores, threads)
        label = self._labels(scores) if self.ensemble.has_classes else output
        return Decisions(label, steps, output.astype(np.float64), steps == self.ensemble.n_models)

    def _estimates(self, X: Any, threads: int | None) -> tuple[npt.NDArray[np.int32], Floats]:
        """Base models that each row took, (N,), and its estimated or full score, (N,)."""
        _, steps, sums = self.ensemble.run(X, self.runner, threads=threads)
        return steps, self.rule.estimates.scores(steps, sums, threads=threads)

    def _labels(self, scores: Floats) -> npt.NDArray[Any]:
        decided = (scores >= self.rule.threshold).astype(np.intp)
        return self.ensemble.classes.take(decided)

    @cached_property
    def _output(self) -> SingleOutput:
        return single_output(self.ensemble)

    @cached_property
    def predict_one(self) -> Callable[[Any], Any]:
        """`predict_one(row)`: what `predict` gives for one row, (n_features,), in any form that
        `Classifier.predict_one` takes."""

        def predict(row: Any) -> Any:
            return self.predict(as_table(row, self.ensemble), threads=1).tolist()[0]

        return predict

    def score_full(self, X: Any, *, threads: int | None = None) -> Floats:
        """The full score of every row, (N,), from every base model, before it becomes an output."""
        return self.ensemble.score_full(X, threads=threads)

    def at(
        self, *, alpha: float, confidence: float | None = None, headroom: int = 0
    ) -> Approximation:
        """The same model for another alpha, at the same tolerance, without fitting anything again. The
        policy is chosen from the path with the held-out rows. The promise holds for each such choice by
        itself, so do not try many and keep the best."""
        budget = ToleranceBudget.of(alpha, self.rule.within)
        level = check_confidence(self.certificate.confidence if confidence is None else confidence)
        room, choices = check_count("headroom", headroom, least=0), self.needed_choices()
        policy, certificate = choices.choose(budget, level, room)
        evaluation = Evaluation(True, "default")
        if self.evaluation == Evaluation(False, "request"):  # never to quit, whatever alpha is
            evaluation = self.evaluation
            policy, certificate = choices.member(0, budget, level, room)
        warn_of_moves(certificate)
        changed = {"policy": policy, "certificate": certificate, "evaluation": evaluation}
        return replace(self, **changed, speed=None)  # type: ignore[arg-type]

    def full(self) -> Approximation:
        """The same model, never quitting: the value, or the probability of the positive class, is the
        source model's own."""
        if self.policy.quit == "never":
            return self
        seen = self.certificate
        assert seen.confidence is not None  # it was certified
        known = (seen.budget, seen.confidence, seen.headroom)
        policy, certificate = self.needed_choices().member(0, *known)
        return replace(
            self,
            policy=policy,
            certificate=certificate,
            evaluation=Evaluation(False, "request"),
            speed=None,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.qwyc` file that `qwyc.load` reads; an existing one is replaced in one step or not at
        all."""
        if self.ensemble.has_code:
            raise ArtifactError(
                f"{self.ensemble.description} cannot be saved, since a part of it is Python code, and "
                "files hold none; optimise the model without it"
            )
        classifier_file.write(path, self)

    def __getattr__(self, name: str) -> Any:
        """Say why a method of `Classifier` is missing."""
        if name in _OF_CLASSIFIERS:
            raise AttributeError(
                f"{name} is a method of qwyc.Classifier, and this is a qwyc.Approximation, made with "
                f"tolerance=: optimise the model without tolerance for {name}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return summary(self)


def refuse_approximation(given: Any) -> None:
    """Refuse an approximation where only classifiers are taken."""
    if isinstance(given, Approximation):
        raise OptionError(
            "a qwyc.Classifier was expected; got a qwyc.Approximation, made with tolerance=: optimise the "
            "model without tolerance to get a classifier"
        )
