"""The `.qwyc` file of a classifier, format 2 (docs/format.md). Everything in a file is checked before it
is used."""

from __future__ import annotations

import os
import stat
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Any

import numpy.typing as npt

from qwyc.errors import ArtifactError, QwycError
from qwyc.files import (
    container,
    evidence_parts,
    feature_parts,
    format_1,
    origins,
    parts,
    policies,
)
from qwyc.files.container import Container, Content, Tensors
from qwyc.files.families import FAMILIES, TensorTypes
from qwyc.files.values import one_of, shortened
from qwyc.model.ensemble import Ensemble
from qwyc.promise.certified import Certified
from qwyc.runtime.output import replacing
from qwyc.target.many_classes import ManyClasses
from qwyc.target.within import Within

FORMAT = 2

POLICY_TENSORS: TensorTypes = {"policy.order": (1, ("int32",)), "policy.costs": (1, ("float64",))}
PATH_TENSORS: TensorTypes = {
    "path.penalty": (1, ("float64",)),
    "path.differences": (2, ("int64",)),  # (K, n_differences)
    "path.fit_differences": (2, ("int64",)),  # (K, n_differences)
    "path.mean_models": (1, ("float64",)),
    "path.mean_cost": (1, ("float64",)),
}
LATER_TENSORS: TensorTypes = {
    "path.exits": (2, ("int64",)),  # (K, B); not in files of 0.1.0
    "path.stops": (2, ("int64",)),  # (K, T); only with path.exits
    **evidence_parts.TENSORS,
}


def write(path: str | os.PathLike[str], certified: Certified) -> None:
    """Write a file; the same classifier gives the same bytes."""
    content = to_bytes(certified)
    with replacing(file_path(path)) as file:
        file.write(content)


def write_model(path: str | os.PathLike[str], ensemble: Ensemble) -> None:
    """Write a file of a model without a policy."""
    content = model_to_bytes(ensemble)
    with replacing(file_path(path)) as file:
        file.write(content)


def read(path: str | os.PathLike[str]) -> Certified | Ensemble:
    """Read a file: a classifier, or a model without a policy. It is read, not mapped: a mapped file that
    another process truncates would end this one."""
    try:
        with open(file_path(path), "rb") as file:
            facts = os.fstat(file.fileno())
            if stat.S_ISFIFO(facts.st_mode):
                raise ValueError("not a qwyc file: it is a pipe")
            if facts.st_size == 0:
                raise ValueError("not a qwyc file: it is empty")
            content = file.read(container.SIZE_BYTES)
            # A large file of another kind is refused before all of it is read.
            container.check_header_size(content, facts.st_size)
            content += file.read()
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "it does not fit into memory"
        raise ArtifactError(f"cannot read {path}: {reason}") from None
    try:
        return from_bytes(content)
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None


def file_path(path: Any) -> FilePath:
    """`path`, if it can be one."""
    try:
        if "\0" in os.fspath(path) or not os.fspath(path):
            raise ValueError
        os.fsencode(path)  # half of a surrogate pair is in no name of a file
        return FilePath(path)
    except (TypeError, ValueError):
        raise ArtifactError(f"a path was expected; got {path!r}") from None


def model_tensors(ensemble: Ensemble) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the base models, by their names in a file."""
    models = ensemble.base_models
    return {f"{models.kind}.{name}": array for name, array in (models.tensors() or {}).items()}


def model_to_bytes(ensemble: Ensemble) -> bytes:
    """The content of the file of a model without a policy."""
    body = {"model": parts.model_facts(ensemble)}
    return container.pack(Container(FORMAT, body, model_tensors(ensemble)))


def to_bytes(certified: Certified) -> bytes:
    """The content of a `.qwyc` file."""
    ensemble, policy, choices = certified.ensemble, certified.policy, certified.choices
    tensors = model_tensors(ensemble)
    tensors |= {name: getattr(policy, name.removeprefix("policy.")) for name in POLICY_TENSORS}
    tensors |= policies.policy_tensors(policy)
    if choices is not None:
        tensors |= parts.path_tensors(choices)
    tensors |= feature_parts.tensors(certified)
    tensors |= origins.tensors(certified.origins)
    body = {
        "model": parts.model_facts(ensemble),
        "target": policies.target_facts(policy),
        "certificate": parts.certificate_facts(certified.certificate),
        "evidence": None if choices is None else parts.evidence_facts(choices),
        "evaluation": asdict(certified.evaluation),
        "costs": certified.cost_kind,
        "origins": origins.facts(certified.origins),
    }
    return container.pack(Container(FORMAT, body, tensors))


def from_bytes(content: Content) -> Certified | Ensemble:
    """What the content of a `.qwyc` file says, once all of it has been checked."""
    try:
        found = container.unpack(content, (format_1.FORMAT, FORMAT))
        if found.format == format_1.FORMAT:
            found = format_1.upgraded(found)
        return _build(found.body, found.tensors)
    except ArtifactError:
        raise
    except (
        QwycError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        SyntaxError,
        MemoryError,  # a label of gigabytes
        RecursionError,  # a header of many levels
    ) as error:
        if isinstance(error, KeyError):
            reason = f"{error} is missing"
        else:
            kind = "" if isinstance(error, QwycError) else f"{type(error).__name__}: "
            reason = f"{kind}{error}"
        raise ArtifactError(f"not a valid qwyc file: {reason}") from None


def _build(body: dict[str, Any], tensors: Tensors) -> Certified | Ensemble:
    kind = one_of(body["model"]["kind"], *FAMILIES)
    if set(body) == {"model"}:
        _check_names(tensors, FAMILIES[kind].tensors)
        return parts.read_model(body["model"], tensors)
    target = one_of(body["target"]["kind"], *policies.TARGETS)
    if (body["evidence"] is None) != ("path.penalty" not in tensors):
        raise ArtifactError("a path needs its evidence, and the evidence its path")
    known = origins.expected(body.get("origins", {}))
    _check_tensors(tensors, kind, target, known)
    ensemble = parts.read_model(body["model"], tensors)
    if not ensemble.has_classes and target != Within.kind:
        raise ArtifactError("a policy is for a model of classes, and this one has none")
    policy = policies.read_policy(body["target"], tensors, ensemble)
    if policy.n_models != ensemble.n_models:
        raise ArtifactError("the policy is for a different number of base models")
    choices = None
    if body["evidence"] is not None:
        choices = parts.read_choices(body["evidence"], tensors, policy, ensemble)
    stops = tensors.get("certificate.stops")
    return Certified(
        ensemble,
        policy,
        parts.read_certificate(body["certificate"], ensemble, policy, choices, stops),
        choices,
        parts.read_evaluation(body["evaluation"]),
        cost_kind=parts.read_cost_kind(body.get("costs")),
        origins=origins.read(body.get("origins", {}), tensors),
        feature_costs=feature_parts.read_feature_costs(tensors.get("policy.feature_costs")),
    )


def _check_tensors(tensors: Tensors, kind: str, target: str, more: TensorTypes) -> None:
    expected = {**FAMILIES[kind].tensors, **POLICY_TENSORS, **policies.POLICY[target], **more}
    expected |= {name: kind for name, kind in feature_parts.TENSORS.items() if name in tensors}
    if "path.penalty" in tensors:
        expected |= {**PATH_TENSORS, **policies.PATH[target]}
        expected |= {name: kind for name, kind in LATER_TENSORS.items() if name in tensors}
    if target == ManyClasses.kind:
        expected |= {name: kind for name, kind in policies.DROP.items() if name in tensors}
    _check_names(tensors, expected)


def _check_names(tensors: Tensors, expected: TensorTypes) -> None:
    """ArtifactError where tensors are missing, unknown or of another type."""
    if set(tensors) != set(expected):
        raise ArtifactError(
            f"tensors are missing or unknown: {shortened(sorted(set(tensors) ^ set(expected)))}"
        )
    for name, (axes, dtypes) in expected.items():
        array = tensors[name]
        if array.ndim != axes or array.dtype.name not in dtypes:
            raise ArtifactError(
                f"tensor {name} is {array.dtype} of shape {array.shape}; expected {' or '.join(dtypes)} "
                f"with {axes} {'axis' if axes == 1 else 'axes'}"
            )
