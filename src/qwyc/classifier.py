"""Classifier: an ensemble, the policy that makes it quit early, and what is known about the two."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native, artifact
from qwyc.cascade import BaseModels
from qwyc.certify import (
    Certificate,
    Choices,
    check_budget,
    check_confidence,
    warn_of_rare_classes,
)
from qwyc.ensemble import Ensemble
from qwyc.errors import ArtifactError, InputError, OptionError
from qwyc.policy import Decisions, Policy
from qwyc.speed import Speed
from qwyc.threads import thread_count


@dataclass(frozen=True, eq=False, repr=False)
class Classifier:
    """Makes the decisions of a full ensemble from as few of its base models as each row needs.

    Rows may be NumPy arrays or pandas, Polars and Arrow tables. All methods may be called from many
    threads at once."""

    ensemble: Ensemble | BaseModels
    policy: Policy
    certificate: Certificate
    choices: Choices | None = None  # what the policy was chosen from, where there was a choice
    speed: Speed | None = None  # as measured by `optimize`; files do not keep it

    def __post_init__(self) -> None:
        if self.policy.n_models != self.ensemble.n_models:
            raise OptionError(
                f"the policy is for {self.policy.n_models} base models; "
                f"the ensemble has {self.ensemble.n_models}"
            )
        if self.choices is not None:
            self.choices.path.index_of(self.policy)  # or it was not chosen from it

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again, and native objects cannot be pickled.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The class of every row, (N,), as the source model's own `predict` gives it."""
        label: npt.NDArray[Any] = self.decide(X, threads=threads).label
        return label

    def decide(self, X: Any, *, threads: int | None = None) -> Decisions:
        """The class of every row, how many base models it took, its score and whether the score is
        complete."""
        if not isinstance(self.ensemble, Ensemble):
            return self.ensemble.decide(X, self.policy, threads=threads)
        rows, cores = self.ensemble.matrix(X), thread_count(threads)
        positive, steps, score = self._quitter.decide(rows, cores)
        return Decisions(
            self.ensemble.classes[positive], steps, score, steps == self.ensemble.n_models
        )

    @cached_property
    def predict_one(self) -> Callable[[Any], Any]:
        """`predict_one(row)`: the class of one row, (n_features,), from a NumPy array, a sequence or a
        table of one row.
        Arrays of float32 or float64, and lists and tuples of Python's own numbers, take well under two
        microseconds for most rows; all else is converted first. Safe to call from many threads at
        once."""
        negative, positive = self.ensemble.classes.tolist()
        same = replace(self)  # this one would hold itself, and live until the next collection

        def otherwise(row: Any) -> Any:
            return same.predict(_as_table(row)).tolist()[0]

        if not isinstance(self.ensemble, Ensemble) or self.ensemble.transform is not None:
            return otherwise
        inputs = self.ensemble.inputs
        if not inputs.takes_plain_rows:
            return otherwise
        same.__dict__["_quitter"] = self._quitter  # laid out once
        finite_only = not (inputs.accepts_missing and inputs.accepts_infinity)
        exact = 2**24 if inputs.integers == "float32" else 2**53
        # The bound method itself: fewer steps from Python to the engine than a callable object.
        return _native.OneRow(
            self._quitter, negative, positive, otherwise, np.ndarray, finite_only, exact
        ).predict

    @cached_property
    def _quitter(self) -> _native.Quitter:
        if not isinstance(self.ensemble, Ensemble):
            raise AttributeError("callables are called one by one; there is nothing to lay out")
        return self.ensemble.quitter(self.policy)

    def score_full(self, X: Any, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """The full score of every row, (N,), from every base model."""
        return self.ensemble.score_full(X, threads=threads)

    def at(
        self, *, alpha: float | Mapping[str, float], confidence: float | None = None
    ) -> Classifier:
        """The same classifier for another alpha (and confidence), without fitting anything again.

        The policy is taken from the path by the rows that were held out; each such choice is valid by
        itself, so do not try many and keep the one you like best. Whether quitting pays is not measured
        again: it is a policy that quits early wherever one is certified."""
        budget, choices = check_budget(alpha), self.needed_choices()
        if budget == 0:
            raise OptionError("alpha=0 is proven, not sampled: optimise the model for it")
        level = check_confidence(self.certificate.confidence if confidence is None else confidence)
        policy, certificate = choices.choose(budget, level)
        warn_of_rare_classes(certificate, policy.quit)
        return replace(self, policy=policy, certificate=certificate, speed=None)

    def needed_choices(self) -> Choices:
        """The path that the policy was chosen from and what is known of it, or an error without one."""
        if self.choices is None:
            raise OptionError(
                "this classifier has one policy only, being proven or made by the paper's method; there is "
                "no other to choose"
            )
        return self.choices

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
        artifact.write(path, (self.ensemble, self.policy, self.certificate, self.choices))

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
        if self.speed is not None:
            work += f"; {self.speed}"
        if not seen.rows:
            work = (
                f"at most {policy.n_models} base models per row; not measured, no sample was given"
            )
        return (
            f"qwyc.Classifier: {self.ensemble.description}\n"
            f"  decision   {positive} where score >= {self._threshold_in_words()}, otherwise {negative}; "
            f"{quits}\n"
            f"  work       {work}\n"
            f"  agreement  {self.certificate}"
        )

    def _threshold_in_words(self) -> str:
        """The threshold, and as a probability where that says more."""
        threshold = self.policy.threshold
        if not isinstance(self.ensemble, Ensemble) or self.ensemble.link.kind != "logistic":
            return f"{threshold:g}"
        return f"{threshold:.4g} (probability {self.ensemble.link.probability(threshold):.4g})"

    def _repr_html_(self) -> str:
        """A compact card, which notebooks show instead of the four lines."""
        from qwyc.card import card

        return card(self)


def _as_table(row: Any) -> Any:
    """One row as a table of one row, if it is not one already."""
    if isinstance(row, np.ndarray) and row.ndim == 1:
        return row[np.newaxis]
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)):
        return [list(row)]
    if not isinstance(row, np.ndarray) and hasattr(row, "columns") and len(row) == 1:
        return row
    shape = f" of shape {row.shape}" if hasattr(row, "shape") else ""
    raise InputError(
        "predict_one takes a one-dimensional NumPy array, a sequence of values or a table of one row; got "
        f"{type(row).__name__}{shape}"
    )


def load(path: str | os.PathLike[str]) -> Classifier:
    """Read a classifier from a `.qwyc` file. Nothing in the file is executed."""
    return Classifier(*artifact.read(path))


def checked(classifier: Any) -> Classifier:
    """What was passed as a classifier, if it is one."""
    if not isinstance(classifier, Classifier):
        raise OptionError(
            f"a qwyc.Classifier was expected; got {type(classifier).__name__}: load a file with qwyc.load"
        )
    return classifier
