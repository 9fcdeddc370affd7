"""Files of format 1, which version 0.1.0 wrote: they are read for ever, as format 2."""

from __future__ import annotations

from typing import Any

from qwyc.errors import ArtifactError
from qwyc.files.container import Container
from qwyc.files.values import count
from qwyc.model.trees import TreeModels
from qwyc.rows.schema import Schema
from qwyc.target.two_classes import TwoClasses

FORMAT = 1
RENAMED = {
    "path.price": "path.penalty",
    "path.flips": "path.differences",
    "path.fit_flips": "path.fit_differences",
}
MODEL = ("source", "threshold", "classes", "link")
TREES = ("summation", "less_equal", "truncates", "base", "divisor")


def upgraded(old: Container) -> Container:
    """The same content as format 2 has it."""
    body: dict[str, Any] = old.body
    evidence = body["evidence"]
    return Container(
        2,
        {
            "model": {
                "kind": TreeModels.kind,
                "digest": body["model_digest"],
                "schema": {"integers": Schema.integers} | body["inputs"],
                "base_models": {name: body[name] for name in TREES},
                **{name: body[name] for name in MODEL},
            },
            "target": {"kind": TwoClasses.kind, "threshold": body["policy"]["threshold"]},
            "certificate": body["certificate"] | {"counts": _counts(body["certificate"])},
            "evidence": None if evidence is None else evidence | {"by_class": _by_class(evidence)},
            "evaluation": {"quits": True, "decided_by": "unknown"},
        },
        {RENAMED.get(name, name): tensor for name, tensor in old.tensors.items()},
    )


def _counts(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "by_class": _by_class(facts),
        "differences": [facts["negative"], facts["positive"]],
        "mean_models": facts["mean_models"],
        "mean_cost": facts["mean_cost"],
    }


def _by_class(facts: dict[str, Any]) -> list[int]:
    rows, positive = count(facts["rows"]), count(facts["full_positive"])
    if positive > rows:
        raise ArtifactError("there are more positives than rows")
    return [rows - positive, positive]
