"""What a monitor watches: as much of a classifier as it takes to judge counts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from qwyc.classifier import Classifier
from qwyc.errors import OptionError
from qwyc.policy.counts import Counts, exit_bins
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.promise.budget import percentage
from qwyc.promise.limits import Limit

Label = str | int | float | bool
MOST_CLASSES = 256  # the decisions of rows that wait are bytes


@dataclass(frozen=True)
class Subject:
    """A classifier as monitors know it. Monitors of equal subjects can be merged."""

    model: str | None  # digest of the ensemble; None for code, which has none
    policy: str  # digest of the policy
    n_models: int
    labels: tuple[Label, ...]  # of the classes
    limits: tuple[Limit, ...]  # what is promised
    lost: tuple[tuple[int, ...], ...]  # by class: the differences that such a row can have
    how: str  # the certificate's: "held-out", "proven" or "in-sample", which is no promise
    certified: Counts  # what the certificate counted

    @classmethod
    def of(cls, classifier: Classifier) -> Subject:
        """What is watched of a classifier."""
        policy, certificate = classifier.policy, classifier.certificate
        target = policy.target
        if target.n_classes > MOST_CLASSES:
            raise OptionError(
                f"a Monitor watches classifiers of up to {MOST_CLASSES} classes; this one has "
                f"{target.n_classes:,}: verify it on fresh rows instead"
            )
        what: tuple[float | None, str] = target.only, target.kind
        if isinstance(policy, Policy):
            what, arrays = (policy.threshold, target.kind), [policy.lower, policy.upper]
        else:
            arrays = [policy.lead if isinstance(policy, LeadPolicy) else policy.gap]
        digest = hashlib.sha256(repr(what).encode())
        for array in (policy.order, *arrays):
            digest.update(np.ascontiguousarray(array).data)
        return cls(
            classifier.ensemble.digest,
            digest.hexdigest(),
            policy.n_models,
            tuple(_plain(label) for label in classifier.ensemble.classes.tolist()),
            certificate.budget.limits,
            tuple(target.lost_from(index) for index in range(target.n_classes)),
            certificate.how if certificate.holds else "in-sample",  # which promises nothing
            replace(certificate.counts, groups=None),  # a monitor counts rows
        )

    def check_same(self, other: Subject, action: str) -> None:
        """Raise OptionError unless the other classifier decides and promises the same."""
        differing = [
            words
            for name, words in {
                "model": "model",
                "policy": "policy",
                "n_models": "number of base models",
                "labels": "classes",
                "limits": "budget",
            }.items()
            if getattr(self, name) != getattr(other, name)
        ]
        if differing:
            raise OptionError(
                f"cannot {action}: it belongs to a classifier with a different {' and '.join(differing)}; "
                "use monitors of the same classifier"
            )

    @property
    def n_bins(self) -> int:
        """Number of bins in which rows are counted by where they stopped."""
        return len(exit_bins(self.n_models))

    @property
    def whole(self) -> Limit:
        """What counts as a disagreement; its share says nothing."""
        return Limit(1.0, tuple(range(len(self.certified.differences))))

    def class_limit(self, index: int) -> Limit:
        """What counts as lost from a class; its share says nothing."""
        return Limit(1.0, self.lost[index], index)

    def broken(self, limit: Limit) -> str:
        """What it means that a limit is broken."""
        share = percentage(limit.share)
        if limit.among is not None:
            name = self.labels[limit.among]
            return (
                f"more than {share} of the rows that the full ensemble calls {name} are decided "
                "differently"
            )
        if len(limit.differences) == len(self.certified.differences):
            return f"more than {share} of the rows are decided differently"
        names = ", ".join(str(self.labels[kind]) for kind in limit.differences)
        return f"more than {share} of the rows are decided {names} instead of as the full ensemble does"


def _plain(label: object) -> Label:
    """A label as files keep it."""
    return label if isinstance(label, (str, int, float, bool)) else str(label)
