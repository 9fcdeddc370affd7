"""Certified: an ensemble, a policy for it, and what is known about the two. This is what files hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.base_models import Runner
from qwyc.model.ensemble import Ensemble
from qwyc.policy.costs import KINDS
from qwyc.policy.features import FeatureUse
from qwyc.policy.filter_policy import ClassPolicy, FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.policy.rounds import survival
from qwyc.promise.certificate import Certificate
from qwyc.promise.evaluation import UNKNOWN, Evaluation, Speed
from qwyc.promise.evidence import Choices
from qwyc.promise.origin import UNKNOWN as UNKNOWN_ORIGINS
from qwyc.promise.origin import Origins


@dataclass(frozen=True, eq=False, repr=False)
class Certified:
    """What a classifier is made of. `Classifier` adds what users call."""

    ensemble: Ensemble
    policy: Policy | ClassPolicy
    certificate: Certificate
    choices: Choices | None = None  # what the policy was chosen from, where there was a choice
    evaluation: Evaluation = UNKNOWN  # whether rows quit, and who decided that
    speed: Speed | None = None  # as measured by `optimize`; files do not keep it
    cost_kind: str = ""  # how costs came about: one of KINDS; "" is told from the policy's costs
    origins: Origins = UNKNOWN_ORIGINS  # the rows that it was made from
    # (n_features,) what features cost, included in the policy's costs; None: features do not count
    feature_costs: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        expected = LeadPolicy if self.ensemble.by_class else Policy
        fits = ClassPolicy if self.ensemble.by_class else Policy
        if not isinstance(self.policy, fits):
            what = "two thresholds per step"
            if self.ensemble.by_class:
                what = "a threshold per step and class, for classes with a score each"
            raise OptionError(
                f"a classifier has a {expected.__name__}, {what}; got a {type(self.policy).__name__}: "
                "run it with qwyc.Cascade(ensemble, policy)"
            )
        if isinstance(self.policy, ClassPolicy):
            if self.policy.n_classes != self.ensemble.base_models.n_scores:
                raise OptionError(
                    f"the policy is for {self.policy.n_classes} classes; the ensemble has "
                    f"{self.ensemble.base_models.n_scores}"
                )
            if self.policy.ties != self.ensemble.base_models.ties:
                raise OptionError("the policy and the ensemble decide ties differently")
        if self.policy.n_models != self.ensemble.n_models:
            raise OptionError(
                f"the policy is for {self.policy.n_models} base models; "
                f"the ensemble has {self.ensemble.n_models}"
            )
        if self.feature_costs is not None and self.feature_use is None:
            raise OptionError("feature costs need base models that say which features they look at")
        object.__setattr__(self, "certificate", self.completed(self.certificate))
        ones = bool((self.policy.costs == 1 + self._paid_for_features()).all())
        if not self.cost_kind:
            object.__setattr__(self, "cost_kind", "one" if ones else "given")
        elif self.cost_kind not in KINDS or (self.cost_kind == "one" and not ones):
            raise OptionError(
                f"cost_kind {self.cost_kind!r} does not fit the policy's costs; leave it out, and it is "
                "told from them"
            )
        if self.choices is not None:
            self.choices.index_of(self.policy)  # or it was not chosen from it

    def completed(self, certificate: Certificate) -> Certificate:
        """A certificate of this ensemble, with the features and labels that only the ensemble knows."""
        return replace(certificate, features=self.feature_use, labels=self.ensemble.class_names)

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again, and native objects cannot be pickled.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    @cached_property
    def runner(self) -> Runner:
        """The base models laid out for the policy."""
        reaching = survival(self.certificate.counts, self.policy.n_models)
        return self.ensemble.runner(self.policy, reaching)

    @cached_property
    def feature_use(self) -> FeatureUse | None:
        """Which features rows need along the policy's order; None where base models do not say which
        features they look at."""
        pairs, schema = self.ensemble.base_models.feature_needs(), self.ensemble.schema
        if pairs is None or schema is None:
            return None
        costs = self.feature_costs
        if costs is not None and costs.shape != (schema.n_features,):
            raise OptionError(
                f"feature costs must be {schema.n_features} numbers, one per feature; got shape "
                f"{costs.shape}"
            )
        return FeatureUse.of(pairs, self.policy.order, schema.n_features, costs)

    def _paid_for_features(self) -> npt.NDArray[np.float64]:
        """What the policy's costs have for features, (T,), by base model."""
        paid = np.zeros(self.policy.n_models)
        if self.feature_costs is not None and self.feature_use is not None:
            paid[self.policy.order] = self.feature_use.cost_by_step
        return paid

    @property
    def timing(self) -> str:
        """What `speed` says of the way that rows are evaluated; "" where nothing was measured."""
        return "" if self.speed is None else self.speed.describe(self.evaluation.quits)

    @property
    def counts_models(self) -> bool:
        """Whether a cost is a number of base models and nothing else."""
        return self.cost_kind == "one" and self.feature_costs is None

    @property
    def cost_unit(self) -> str:
        """What the policy's costs count, in words."""
        words = {"one": "each base model counts 1", "given": "as given"}
        unit = words.get(self.cost_kind) or self.ensemble.base_models.cost_unit(self.cost_kind)
        unit = unit or self.cost_kind
        if self.feature_costs is None:
            return unit
        return f"{unit}; a feature counts as given where it is first needed"

    @property
    def only(self) -> int | None:
        """The index of the class that it is a filter for; None where it decides between all classes."""
        return self.policy.only if isinstance(self.policy, FilterPolicy) else None

    def needed_choices(self) -> Choices:
        """What the policy was chosen from; raises OptionError where there was no choice."""
        if self.choices is None:
            raise OptionError(
                "this classifier has only one policy, because it was proven or made by the paper's method; "
                "there is no other to choose"
            )
        return self.choices
