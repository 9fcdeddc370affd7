"""Everything that is known about a classifier: what it is, what other alphas cost, how it is evaluated."""

from __future__ import annotations

from typing import Any

from qwyc import _native
from qwyc.model.ensemble import Ensemble
from qwyc.policy.policy import Policy
from qwyc.promise.certificate import percent
from qwyc.promise.certified import Certified
from qwyc.report.features import feature_facts, feature_lines
from qwyc.report.text import summary
from qwyc.runtime.wording import one_line

ALPHAS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02)


def inspect(certified: Certified) -> dict[str, Any]:
    """Everything as plain values, for JSON."""
    ensemble, policy, seen = certified.ensemble, certified.policy, certified.certificate
    facts: dict[str, Any] = {
        "model": ensemble.description,
        "classes": ensemble.classes.tolist(),
        "positive_class": positive_class(ensemble),
        "threshold": policy.threshold if isinstance(policy, Policy) else None,
        "base_models": policy.n_models,
        "quits": policy.quit,
        "only": None if certified.only is None else ensemble.classes.tolist()[certified.only],
        "why": why(certified),
        "evaluation_decided_by": certified.evaluation.decided_by,
        "costs": {"kind": certified.cost_kind, "unit": certified.cost_unit},
        "certificate": seen.as_dict() | {"sentence": str(seen)},
        "at_other_alphas": other_alphas(certified),
    }
    layout, _ = ensemble.base_models.layout()
    if layout:
        facts[ensemble.base_models.kind] = layout
        facts["instruction_sets"] = _native.available_isas()
    if ensemble.schema is not None:
        facts["features"] = ensemble.schema.n_features
    if certified.feature_use is not None:
        facts["feature_use"] = feature_facts(certified)
    if ensemble.digest is not None:
        facts["digest"] = ensemble.digest
    return facts


def inspect_model(ensemble: Ensemble) -> dict[str, Any]:
    """What is known of a model without a policy, as plain values."""
    return {
        "model": ensemble.description,
        "classes": ensemble.classes.tolist(),
        "positive_class": positive_class(ensemble),
        "base_models": ensemble.n_models,
        "features": None if ensemble.schema is None else ensemble.schema.n_features,
        "digest": ensemble.digest,
    }


def positive_class(ensemble: Ensemble) -> Any:
    """The label of the positive class of two; None where there are more, or none."""
    labels = ensemble.classes.tolist()
    return labels[1] if ensemble.has_classes and len(labels) == 2 else None


def why(certified: Certified) -> str:
    """Whether rows quit early or are evaluated in full, and why."""
    choice = certified.evaluation
    timed = f": {certified.timing}" if certified.timing else ""
    if certified.policy.quit != "never":
        if not certified.certificate.rows:
            return "rows quit early; nothing was measured"
        return f"rows quit early{timed}"
    if choice.decided_by == "request" and not choice.quits:
        return "rows are evaluated in full, as requested"
    if choice.decided_by == "model" and not choice.quits:
        return (
            "rows are evaluated in full, since quitting early costs more than it saves by the cost model"
            f"{timed}"
        )
    if _could_quit(certified):
        return (
            "rows are evaluated in full, since quitting early was measured to be slower when the "
            f"classifier was optimised{timed}"
        )
    if certified.choices is None and choice.decided_by == "unknown":
        return "rows are evaluated in full: quitting early is slower, or would break the promise"
    return "rows are evaluated in full: no policy that quits early keeps the promise"


def _could_quit(certified: Certified) -> bool:
    """Whether a policy that quits early was certified but not used."""
    certificate, choice = certified.certificate, certified.evaluation
    if choice.decided_by != "unknown":
        return not choice.quits
    if certified.choices is None or certificate.confidence is None:
        return False
    return certified.choices.evidence.boldest(certificate.budget, certificate.confidence) > 0


def other_alphas(certified: Certified) -> list[dict[str, float]]:
    """Base models per row at other alphas, on the rows held out; each is valid by itself."""
    if certified.choices is None or certified.certificate.confidence is None:
        return []
    if not certified.certificate.holds:
        return []  # nothing is promised at any alpha
    evidence = certified.choices.evidence
    return [
        {
            "alpha": alpha,
            "mean_models": float(evidence.counts.mean_models[k]),
            "mean_cost": float(evidence.counts.mean_cost[k]),
        }
        for alpha, k in evidence.boldest_at_each(
            ALPHAS, certified.certificate.confidence, certified.certificate.budget.target
        )
    ]


def describe(certified: Certified) -> str:
    """The same facts as text: the classifier's own lines, and what they leave out."""
    base_models, others = certified.ensemble.base_models, other_alphas(certified)
    lines = [summary(certified), f"  evaluation {why(certified)}"]
    positive = positive_class(certified.ensemble)
    if positive is not None:
        lines.append(
            f"  positive   class {one_line(positive)}: the second of the model's two classes, which "
            "libraries sort"
        )
    lines.append(f"  costs      {certified.cost_unit}")
    _, layout = base_models.layout()
    if layout:
        family = base_models.kind.removeprefix("class-")
        lines.append(f"  {family:<10} {layout}; {_native.available_isas()[0]} on this machine")
    if certified.ensemble.digest is not None:
        lines.append(f"  digest     {certified.ensemble.digest}")
    lines += feature_lines(certified)
    if others:
        level = percent(certified.certificate.confidence)
        alone = ", without limits by class" if certified.certificate.budget.by_class else ""
        lines.append(f"  other alphas{alone}, at {level} confidence, on the rows held out:")
        lines += [
            f"    {at['alpha']:>6.2%}  {at['mean_models']:7.1f} base models per row"
            for at in others
        ]
    return "\n".join(lines)
