"""Classifier: an ensemble, the policy that makes it quit early, and what is known about the two."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import artifact
from qwyc.cascade import BaseModels
from qwyc.certify import (
    Certificate,
    Evidence,
    boldest_that_passes,
    certificate_for,
    check_budget,
    check_confidence,
)
from qwyc.ensemble import Ensemble
from qwyc.errors import ArtifactError, OptionError
from qwyc.policy import Decisions, Policy
from qwyc.stopping import Path


@dataclass(frozen=True, eq=False, repr=False)
class Classifier:
    """Makes the decisions of a full ensemble from as few of its base models as each row needs.

    Rows may be NumPy arrays or pandas, Polars and Arrow tables. All methods may be called from many
    threads at once."""

    ensemble: Ensemble | BaseModels
    policy: Policy
    certificate: Certificate
    path: Path | None = None  # the family that the policy was taken from, where there is one
    evidence: Evidence | None = None  # what its members did on rows held out

    def __post_init__(self) -> None:
        if self.policy.n_models != self.ensemble.n_models:
            raise OptionError(
                f"the policy is for {self.policy.n_models} base models; "
                f"the ensemble has {self.ensemble.n_models}"
            )

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The class of every row, (N,), as the source model's own `predict` gives it."""
        label: npt.NDArray[Any] = self.decide(X, threads=threads).label
        return label

    def decide(self, X: Any, *, threads: int | None = None) -> Decisions:
        """The class of every row, how many base models it took, its score and whether the score is
        complete."""
        return self.ensemble.decide(X, self.policy, threads=threads)

    def score_full(self, X: Any, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """The full score of every row, (N,), from every base model."""
        return self.ensemble.score_full(X, threads=threads)

    def at(
        self, *, alpha: float | Mapping[str, float], confidence: float | None = None
    ) -> Classifier:
        """The same classifier for another alpha (and confidence), without fitting anything again.

        The policy is taken from the path by the rows that were held out; each such choice is valid by
        itself, so do not try many and keep the one you like best."""
        if self.path is None or self.evidence is None:
            raise OptionError(
                "this classifier has one policy only; optimise with method='auto' to be able to "
                "change alpha later"
            )
        budget = check_budget(alpha)
        level = check_confidence(self.certificate.confidence if confidence is None else confidence)
        k = boldest_that_passes(self.evidence, budget, level)
        certificate = certificate_for(self.path, self.evidence, k, budget, level)
        return replace(self, policy=self.path[k], certificate=certificate)

    def without_transform(self) -> Classifier:
        """The same classifier for rows as they reach the trees: a pipeline's own steps are left out."""
        if not isinstance(self.ensemble, Ensemble) or self.ensemble.transform is None:
            return self
        return replace(self, ensemble=replace(self.ensemble, transform=None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.qwyc` file; an existing one is replaced in one step or not at all."""
        if not isinstance(self.ensemble, Ensemble):
            raise ArtifactError(
                "a classifier over Python callables cannot be saved, since files hold no code; keep "
                "its policy (order, lower, upper, threshold, costs) and build a qwyc.Cascade from it"
            )
        if self.ensemble.transform is not None:
            raise ArtifactError(
                f"the pipeline's own steps ({self.ensemble.transform}) are code, and files hold none; "
                "save classifier.without_transform(), which takes rows as pipeline[:-1].transform "
                "gives them"
            )
        artifact.write(
            path, (self.ensemble, self.policy, self.certificate, self.path, self.evidence)
        )

    def __repr__(self) -> str:
        policy = self.policy
        negative, positive = (str(c) for c in self.ensemble.classes)
        quits = {
            "both": f"quits early for {negative} and {positive}",
            "negative": f"quits early for {negative} only; {positive} always gets its full score",
            "positive": f"quits early for {positive} only; {negative} always gets its full score",
            "never": "never quits early",
        }[policy.quit]
        seen = self.certificate
        rows = {"held-out": "rows held out", "in-sample": "the fitting rows"}.get(
            seen.how, "the sample"
        )
        work = f"{seen.mean_models:.1f} of {policy.n_models} base models per row on {rows}"
        if not (policy.costs == 1).all():
            work += f", cost {seen.mean_cost / seen.full_cost:.1%}"
        if not seen.rows:
            work = (
                f"at most {policy.n_models} base models per row; not measured, no sample was given"
            )
        return (
            f"qwyc.Classifier: {self.ensemble.description}\n"
            f"  decision   {positive} where score >= {policy.threshold:g}, otherwise {negative}; "
            f"{quits}\n"
            f"  work       {work}\n"
            f"  agreement  {self.certificate}"
        )


def load(path: str | os.PathLike[str]) -> Classifier:
    """Read a classifier from a `.qwyc` file. Nothing in the file is executed."""
    return Classifier(*artifact.read(path))
