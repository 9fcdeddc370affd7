"""The stages of `optimize`: scores, costs, a certified policy, and whether quitting pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from qwyc import importers
from qwyc.approximation import Approximation
from qwyc.build.fitting import Fitting, proven_policy
from qwyc.build.held_out import HeldOut
from qwyc.build.speed import Measure, expected, measure
from qwyc.build.tolerance import ToleranceFitting
from qwyc.check.parity import prove_parity
from qwyc.classifier import Classifier
from qwyc.errors import InputError, RowsError
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.policy.costs import Costs
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.budget import Budget
from qwyc.promise.certificate import observed_certificate
from qwyc.promise.certified import Certified
from qwyc.promise.evaluation import Evaluation, Speed
from qwyc.promise.evidence import Choices
from qwyc.promise.ordered import Order
from qwyc.rows.selection import row_count
from qwyc.runtime.memory import check_capacity
from qwyc.runtime.progress import ProgressOption, progress_reporter

Made = TypeVar("Made", bound=Classifier | Approximation)


@dataclass(frozen=True, eq=False)
class Run:
    """One call of `optimize`: what its stages share."""

    ensemble: Ensemble
    sample: Sample | None
    budget: Budget
    confidence: float
    headroom: int
    quit: str
    only: int | None  # index of the class of a filter
    threshold: float
    seed: int
    threads: int | None
    progress: ProgressOption

    def score(self, source: importers.OpenModel) -> ScoreMatrix:
        """Every base model on every row, once memory and the model's own decisions have been checked."""
        assert self.sample is not None
        n, T = row_count(self.sample.given), self.ensemble.n_models
        check_capacity(n, T, score_bytes=self.ensemble.base_models.score_bytes)
        with progress_reporter(self.progress, "Evaluating every base model", n * T) as report:
            scores = self.ensemble.scores(self.sample, threads=self.threads, report=report)
        if not len(scores.full):
            raise RowsError(
                "{rows} has no rows; optimising needs a sample of rows like those to come"
            )
        with progress_reporter(self.progress, "Comparing with the model itself", 0):
            if self.ensemble.has_classes:
                prove_parity(source, self.sample, scores)
        return scores

    def measured_costs(self, costs: Any) -> Any:
        """Costs as numbers, where they are to be counted or measured."""
        if not isinstance(costs, str):
            return costs
        if self.sample is None:
            raise InputError(f"costs={costs!r} are measured on rows: pass X")
        with progress_reporter(self.progress, "Measuring costs", 0):
            return self.ensemble.costs(self.sample, costs, threads=self.threads)

    def proven(self, scores: ScoreMatrix | None, costs: Costs) -> Classifier:
        """Quits that no input can prove wrong."""
        policy = proven_policy(
            self.ensemble, threshold=self.threshold, costs=costs, quit=self.quit, only=self.only
        )
        certificate = observed_certificate(
            "proven", self.budget, policy, scores, seed=self.seed, threads=self.threads
        )
        return Classifier(self.ensemble, policy, certificate)

    def published(self, problem: Fitting, method: str) -> Classifier:
        """Algorithm 1, or 2 along the model's own order: alpha holds on the sample."""
        policy = problem.published(method, self.budget, self.progress)
        certificate = observed_certificate(
            "in-sample", self.budget, policy, problem.scores, seed=self.seed, threads=self.threads
        )
        return Classifier(self.ensemble, policy, certificate)

    def certified(
        self,
        problem: Fitting | ToleranceFitting,
        units: npt.NDArray[np.intp] | None,
        when: Order | None,
        doubts: tuple[str, ...],
    ) -> Classifier | Approximation:
        """Fit a path on one part of the sample, take the boldest policy that the other part certifies.
        `units` (N,) are numbers of groups from 0, where groups are counted instead of rows."""
        level = self.confidence
        split = HeldOut.of(problem.decided, self.budget, level, units, when, self.seed)
        fitting = problem.take(split.fit)
        path = fitting.path(self.budget, self.progress)
        with progress_reporter(self.progress, "Certifying", len(path)) as report:
            evidence = split.evidence(path, problem.scores, fitting.scores, self.threads, report)
        evidence = replace(evidence, doubts=doubts)
        choices = Choices(path, evidence)
        chosen = choices.choose(self.budget, self.confidence, self.headroom)
        made = Approximation if isinstance(problem, ToleranceFitting) else Classifier
        return made(self.ensemble, *chosen, choices)

    def choose_evaluation(
        self,
        classifier: Made,
        scores: ScoreMatrix | None,
        evaluation: str | Measure,
        by_time: bool,
    ) -> Made:
        """The classifier as it is, or one that never quits early, and who decided that. `by_time` is
        whether the time that decisions take counts, expected or measured."""
        speed, chosen = None, Evaluation(True, "default")
        if evaluation in ("quit", "full"):
            chosen = Evaluation(evaluation == "quit", "request")
        elif by_time and self.sample is not None:  # its rows tell how many reach each step
            speed = self._speed(classifier, evaluation)
            if evaluation == "model":
                chosen = Evaluation(expected(classifier).quitting_pays, "model")
            elif speed is not None:  # otherwise there are too few rows to tell
                chosen = Evaluation(speed.quitting_pays, "measurement")
        classifier = replace(classifier, evaluation=chosen, speed=speed)
        return classifier if chosen.quits else self._in_full(classifier, scores)

    def _speed(self, classifier: Certified, evaluation: str | Measure) -> Speed | None:
        """Times of both ways; None where there are too few rows, or they are not a matrix. With a cost
        model they are only shown, and a policy that never quits has none."""
        assert self.sample is not None
        shown_only = evaluation == "model"
        if not self.ensemble.takes_matrix or (shown_only and classifier.policy.quit == "never"):
            return None
        clock = evaluation if callable(evaluation) else measure
        with progress_reporter(self.progress, "Timing", 0):
            return clock(classifier, self.sample.rows)

    def _in_full(self, classifier: Made, scores: ScoreMatrix | None) -> Made:
        """The same classifier, never quitting."""
        seen = classifier.certificate
        if classifier.choices is not None and seen.confidence is not None:
            policy, certificate = classifier.choices.member(0, seen.budget, seen.confidence)
        else:
            policy = classifier.policy.without_quitting()
            certificate = observed_certificate(
                seen.how, seen.budget, policy, scores, seed=seen.seed, threads=self.threads
            )
        return replace(classifier, policy=policy, certificate=certificate)
