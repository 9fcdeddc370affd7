"""Policies and paths of each target as plain values and tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from qwyc.errors import ArtifactError
from qwyc.files.container import Tensors
from qwyc.files.families import TensorTypes
from qwyc.files.values import count, number
from qwyc.model.ensemble import Ensemble
from qwyc.model.probabilities import single_output
from qwyc.policy.estimate_path import EstimatePath
from qwyc.policy.estimate_policy import EstimatePolicy
from qwyc.policy.estimates import Estimates
from qwyc.policy.filter_path import ClassPath, FilterPath
from qwyc.policy.filter_policy import ClassPolicy, FilterPolicy
from qwyc.policy.lead_path import LeadPath
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.path import Path
from qwyc.policy.policy import Policy
from qwyc.target.many_classes import ManyClasses
from qwyc.target.two_classes import TwoClasses
from qwyc.target.within import Within

ONE_CLASS = "one-class"  # a filter for one of the classes
TARGETS = (TwoClasses.kind, ManyClasses.kind, ONE_CLASS, Within.kind)

# T base models, M policies, C classes. The last axis of `lead` is 1 where all classes share thresholds.
POLICY: Mapping[str, TensorTypes] = {
    TwoClasses.kind: {"policy.lower": (1, ("float64",)), "policy.upper": (1, ("float64",))},  # (T,)
    ManyClasses.kind: {"policy.lead": (2, ("float64",))},  # (T, C) or (T, 1)
    ONE_CLASS: {"policy.gap": (1, ("float64",))},  # (T,)
    Within.kind: {
        "policy.lower": (1, ("float64",)),  # (T,)
        "policy.upper": (1, ("float64",)),  # (T,)
        "estimates.slope": (1, ("float64",)),  # (T,)
        "estimates.begin": (1, ("int64",)),  # (T + 1,)
        "estimates.knots": (1, ("float64",)),  # (knots,)
        "estimates.offsets": (1, ("float64",)),  # (knots,)
    },
}
PATH: Mapping[str, TensorTypes] = {
    TwoClasses.kind: {"path.lower": (2, ("float64",)), "path.upper": (2, ("float64",))},  # (M, T)
    ManyClasses.kind: {"path.lead": (3, ("float64",))},  # (M, T, C) or (M, T, 1)
    ONE_CLASS: {"path.gap": (2, ("float64",))},  # (M, T)
    Within.kind: {"path.lower": (2, ("float64",)), "path.upper": (2, ("float64",))},  # (M, T)
}

# Where classes are ruled out. A policy of such a path that rules none out has no tensor of its own.
DROP: TensorTypes = {
    "policy.drop": (1, ("float64",)),
    "path.drop": (2, ("float64",)),
}  # (T,), (M, T)


def target_facts(policy: Policy | ClassPolicy) -> dict[str, Any]:
    """What `target` holds in a header."""
    if isinstance(policy, FilterPolicy):
        return {"kind": ONE_CLASS, "only": policy.only}
    facts: dict[str, Any] = {"kind": policy.target.kind}
    if isinstance(policy, EstimatePolicy):
        facts["tolerance"] = policy.within.tolerance
    return facts | {"threshold": policy.threshold} if isinstance(policy, Policy) else facts


def policy_tensors(policy: Policy | ClassPolicy) -> Tensors:
    """The thresholds of a policy."""
    if isinstance(policy, Policy):
        found = {"policy.lower": policy.lower, "policy.upper": policy.upper}
        if isinstance(policy, EstimatePolicy):
            names = (field.name for field in fields(Estimates))
            found |= {f"estimates.{name}": getattr(policy.estimates, name) for name in names}
        return found
    if isinstance(policy, FilterPolicy):
        return {"policy.gap": policy.gap}
    drop = policy.ruled_out_at
    return {"policy.lead": _shared(policy.lead)} | (
        {"policy.drop": drop} if np.isfinite(drop).any() else {}
    )


def read_policy(
    facts: Mapping[str, Any], tensors: Tensors, ensemble: Ensemble
) -> Policy | ClassPolicy:
    """A policy for the ensemble; `facts` are those of the target."""
    order, costs = tensors["policy.order"], tensors["policy.costs"]
    if (facts["kind"] not in (TwoClasses.kind, Within.kind)) != ensemble.by_class:
        raise ArtifactError("the model does not have the scores that its target compares")
    if not ensemble.by_class:
        bounds, threshold = (tensors["policy.lower"], tensors["policy.upper"]), facts["threshold"]
        if facts["kind"] != Within.kind:
            return Policy(order, *bounds, number(threshold), costs)
        estimates = Estimates(*(tensors[f"estimates.{f.name}"] for f in fields(Estimates)))
        if number(threshold) != ensemble.threshold:
            raise ArtifactError("outputs within a tolerance must use the model's own threshold")
        within = Within(number(facts["tolerance"]), single_output(ensemble))
        return EstimatePolicy(order, *bounds, number(threshold), costs, estimates, within)
    models = ensemble.base_models
    if facts["kind"] == ONE_CLASS:
        only, gap = count(facts["only"]), tensors["policy.gap"]
        return FilterPolicy(order, gap, costs, only, models.n_scores, models.ties)
    lead = _spread(tensors["policy.lead"], ensemble)
    return LeadPolicy(order, lead, costs, models.ties, tensors.get("policy.drop"))


def path_tensors(path: Path | ClassPath) -> Tensors:
    """The thresholds of a path."""
    if isinstance(path, Path):
        return {"path.lower": path.lower, "path.upper": path.upper}
    if isinstance(path, FilterPath):
        return {"path.gap": path.gap}
    return {"path.lead": _shared(path.lead)} | (
        {} if path.drop is None else {"path.drop": path.drop}
    )


def read_path(
    tensors: Mapping[str, Any], policy: Policy | ClassPolicy, ensemble: Ensemble
) -> Path | ClassPath:
    """A path along the order of a policy. Names of tensors come without "path."."""
    order, penalty, costs = policy.order, tensors["penalty"], policy.costs
    M, T = len(penalty), policy.n_models
    names = ["lower", "upper"] if isinstance(policy, Policy) else ["lead"]
    if isinstance(policy, FilterPolicy):
        names = ["gap"]
    names += [name for name in ("drop",) if name in tensors]
    if any(tensors[name].shape[:2] != (M, T) for name in names):
        raise ArtifactError("the path's tensors differ in length")
    if isinstance(policy, Policy):
        lower, upper = tensors["lower"], tensors["upper"]
        along = (order, lower, upper, penalty, policy.threshold, costs)
        if isinstance(policy, EstimatePolicy):
            return EstimatePath(*along, policy.estimates, policy.within)
        return Path(*along)
    if isinstance(policy, FilterPolicy):
        of_class = (policy.only, policy.n_classes, policy.ties)
        return FilterPath(order, tensors["gap"], penalty, costs, *of_class)
    lead, drop = _spread(tensors["lead"], ensemble), tensors.get("drop")
    return LeadPath(order, lead, penalty, costs, policy.ties, drop)


def _shared(lead: Any) -> Any:
    """Thresholds by class, or one for all classes where they are equal."""
    first = lead[..., :1]
    return np.ascontiguousarray(first) if (lead == first).all() else lead


def _spread(lead: Any, ensemble: Ensemble) -> Any:
    """Thresholds for each class."""
    n_classes = ensemble.base_models.n_scores
    if lead.shape[-1] not in (1, n_classes):
        raise ArtifactError(f"thresholds are for {lead.shape[-1]} classes; there are {n_classes}")
    return np.broadcast_to(lead, (*lead.shape[:-1], n_classes))
