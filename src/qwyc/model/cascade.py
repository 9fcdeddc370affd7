"""Cascade: a policy over Python callables, or over an ensemble of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.model.base_models import Floats
from qwyc.model.callables import BaseModel, callable_ensemble
from qwyc.model.ensemble import Ensemble
from qwyc.model.native import plain_arrays
from qwyc.policy.decisions import Decisions
from qwyc.policy.fan_policy import FanPolicy
from qwyc.policy.filter_policy import ClassPolicy
from qwyc.policy.policy import Policy


class Cascade:
    """Decides rows with a policy over callables: `f(x) = base + sum of models[t](x)`.

    Rows may be an array, a pandas, Polars or Arrow table, a sparse matrix or a list. A base model is
    called with rows of the same kind, but only those that are still undecided. An `Ensemble` of trees or
    lattices, as `read_model` gives it, is evaluated natively under any kind of policy; one of K classes
    takes a `LeadPolicy` or a `FilterPolicy`."""

    def __init__(
        self,
        models: Ensemble | Sequence[BaseModel],
        policy: Policy | FanPolicy | ClassPolicy,
        *,
        base: float = 0.0,
        classes: Any = (0, 1),
    ) -> None:
        if not isinstance(policy, Policy | FanPolicy | ClassPolicy):
            raise OptionError(f"a policy was expected, as fit_policy gives it; got {policy!r}")
        if not isinstance(models, Ensemble):
            models = callable_ensemble(list(models), base=base, classes=classes)
        if isinstance(policy, ClassPolicy) and not models.by_class:
            raise OptionError(
                f"the policy is for {policy.n_classes} classes with a score each; the base models have one "
                "score for two classes"
            )
        if models.n_models != policy.n_models:
            raise OptionError(
                f"the policy is for {policy.n_models} base models; got {models.n_models}"
            )
        self.ensemble = models
        self.policy = policy
        self._runner = models.runner(policy)
        self._plain_arrays = plain_arrays(self._runner, models)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row, (N,)."""
        return self.decide(X).label

    def decide(self, X: Any) -> Decisions:
        """The class of every row, how many base models it took, its score and whether it is complete."""
        plain = self._plain_arrays
        decided: Any = None if plain is None else plain.decide(X, None)
        return self.ensemble.decide(X, self._runner) if decided is None else decided

    def score_full(self, X: Any) -> Floats:
        """The full score of every row, (N,), from every base model."""
        return self.ensemble.score_full(X)

    def __repr__(self) -> str:
        if isinstance(self.policy, ClassPolicy):
            quits = "never quits" if self.policy.quit == "never" else "quits early"
            return f"qwyc.Cascade: {self.ensemble.description}, {quits}"
        return f"qwyc.Cascade: {self.ensemble.description}, quits {self.policy.quit}"
