"""inspect: what a classifier is, what it would cost at other alphas, and how it is evaluated."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from qwyc import _native
from qwyc.certify import percent
from qwyc.classifier import Classifier
from qwyc.ensemble import Ensemble

ALPHAS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02)
# Other trees are compared for many rows at once (native/core/plan.hpp).
WHY_WALKED = "node by node, having more than 256 leaves or a category of more than 254 kinds"


def inspect(fast: Classifier) -> dict[str, Any]:
    """Everything that is known about a classifier, as plain values."""
    facts: dict[str, Any] = {
        "model": fast.ensemble.description,
        "classes": fast.ensemble.classes.tolist(),
        "threshold": fast.policy.threshold,
        "base_models": fast.policy.n_models,
        "quits": fast.policy.quit,
        "why": why(fast),
        "certificate": asdict(fast.certificate) | {"sentence": str(fast.certificate)},
        "at_other_alphas": other_alphas(fast),
    }
    if isinstance(fast.ensemble, Ensemble):
        leaves = np.diff(fast.ensemble.trees.leaf_begin)
        facts["trees"] = {
            "nodes": len(fast.ensemble.trees.feature),
            "most_leaves": int(leaves.max()),
            "walked": fast.ensemble.native.n_walked,
        }
        facts["features"] = fast.ensemble.inputs.n_features
        facts["digest"] = fast.ensemble.digest
        facts["instruction_sets"] = _native.available_isas()
    return facts


def why(fast: Classifier) -> str:
    """Whether rows quit early or are evaluated in full, and why."""
    if fast.policy.quit != "never":
        if not fast.certificate.rows:
            return "rows quit early; nothing was measured"
        return "rows quit early" if fast.speed is None else f"rows quit early: {fast.speed}"
    if _could_quit(fast):
        timed = f": {fast.speed}" if fast.speed is not None else ""
        return (
            "rows are evaluated in full, since quitting early was measured to be slower when the "
            f"classifier was optimised{timed}"
        )
    if fast.choices is None:  # the times are not in the file
        return "rows are evaluated in full: quitting early is slower, or would break the promise"
    return "rows are evaluated in full: no policy that quits early keeps the promise"


def _could_quit(fast: Classifier) -> bool:
    """Whether a policy that quits early was certified, and not taken."""
    asked = fast.certificate
    if fast.choices is None or asked.confidence is None:
        return fast.speed is not None and not fast.speed.quitting_pays
    return fast.choices.evidence.boldest(asked.alpha, asked.confidence) > 0


def other_alphas(fast: Classifier) -> list[dict[str, float]]:
    """Base models per row at other alphas, on the rows held out; each is valid by itself."""
    if fast.choices is None or fast.certificate.confidence is None:
        return []
    evidence = fast.choices.evidence
    return [
        {
            "alpha": alpha,
            "mean_models": float(evidence.mean_models[k]),
            "mean_cost": float(evidence.mean_cost[k]),
        }
        for alpha, k in evidence.boldest_at_each(ALPHAS, fast.certificate.confidence)
    ]


def describe(fast: Classifier) -> str:
    """The same for people: the classifier's own four lines, and what they leave out."""
    facts = inspect(fast)
    lines = [repr(fast), f"  evaluation {facts['why']}"]
    if "trees" in facts:
        trees = facts["trees"]
        kinds = f"{trees['nodes']:,} nodes, up to {trees['most_leaves']:,} leaves a tree"
        if trees["walked"]:
            kinds += f"; {trees['walked']:,} trees are walked {WHY_WALKED}"
        lines.append(f"  trees      {kinds}; {facts['instruction_sets'][0]} on this machine")
        lines.append(f"  digest     {facts['digest']}")
    if facts["at_other_alphas"]:
        lines.append(
            f"  other alphas, at {percent(fast.certificate.confidence)} confidence, on the rows held out:"
        )
        lines += [
            f"    {at['alpha']:>6.2%}  {at['mean_models']:7.1f} base models per row"
            for at in facts["at_other_alphas"]
        ]
    return "\n".join(lines)
