"""The .qwyc file: safetensors, whose single metadata entry is a JSON header (docs/format.md).

Nothing in a file is executed. Everything in it is checked before it is used, and a SHA-256 over
header and tensors tells a damaged file from a whole one."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from qwyc.errors import ArtifactError, QwycError
from qwyc.files.header import (
    certificate_from_json,
    classes_from_json,
    classes_to_json,
    count,
    flag,
    inputs_from_json,
    inputs_to_json,
    number,
    one_of,
    text,
    whole,
)
from qwyc.model.ensemble import Ensemble, Link, Source, Summation, Trees
from qwyc.policy.fit.stopping import Path
from qwyc.policy.policy import Policy
from qwyc.promise.certificate import Certificate, Choices, Evidence
from qwyc.runtime.output import replacing

FORMAT = 1
KEY = "qwyc"  # the only metadata entry: safetensors writes several in random order

TREE_DTYPES: Mapping[str, tuple[str, ...]] = {
    "node_begin": ("int64",),
    "leaf_begin": ("int64",),
    "feature": ("int32",),
    "threshold": ("float32", "float64"),
    "left": ("int32",),
    "right": ("int32",),
    "flags": ("uint8",),
    "category_begin": ("int64",),
    "category_words": ("uint32",),
    "leaf_value": ("float64",),
    "leaf_other": ("float64",),
}
POLICY_DTYPES: Mapping[str, tuple[str, ...]] = {
    "order": ("int32",),
    "lower": ("float64",),
    "upper": ("float64",),
    "costs": ("float64",),
}
DTYPES = {"U8": "u1", "U32": "<u4", "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}
PATH_DTYPES: Mapping[str, tuple[str, ...]] = {
    "lower": ("float64",),  # (K, T)
    "upper": ("float64",),  # (K, T)
    "price": ("float64",),
    "flips": ("int64",),  # (K, 2)
    "fit_flips": ("int64",),  # (K, 2)
    "mean_models": ("float64",),
    "mean_cost": ("float64",),
}
TENSORS = {f"trees.{k}": v for k, v in TREE_DTYPES.items()} | {
    f"policy.{k}": v for k, v in POLICY_DTYPES.items()
}
PATH_TENSORS = {f"path.{k}": v for k, v in PATH_DTYPES.items()}
FLAT = {*TENSORS, "path.price", "path.mean_models", "path.mean_cost"}  # the others have two axes


EVIDENCE = ("rows", "full_positive", "fit_rows", "seed", "sample", "groups")  # in the header

# What a classifier is made of.
Parts = tuple[Ensemble, Policy, Certificate, Choices | None]


def write(path: str | os.PathLike[str], parts: Parts) -> None:
    """Write a file; the same parts give the same bytes."""
    content = to_bytes(parts)
    with replacing(_file_path(path)) as file:
        file.write(content)


def read(path: str | os.PathLike[str]) -> Parts:
    """Read a file, which is mapped into memory while it is looked at."""
    try:
        with open(_file_path(path), "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ValueError("not a qwyc file: it is empty")
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: what cannot be mapped, such as a pipe
        reason = getattr(error, "strerror", None) or error
        raise ArtifactError(f"cannot read {path}: {reason}") from None
    try:
        return from_bytes(content)
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None


def _file_path(path: Any) -> FilePath:
    try:
        if "\0" in os.fspath(path) or not os.fspath(path):
            raise ValueError
        return FilePath(path)
    except (TypeError, ValueError):
        raise ArtifactError(f"a path was expected; got {path!r}") from None


def to_bytes(parts: Parts) -> bytes:
    """The content of a `.qwyc` file."""
    ensemble, policy, certificate, choices = parts
    tensors = {f"trees.{k}": getattr(ensemble.trees, k) for k in TREE_DTYPES}
    tensors |= {f"policy.{k}": getattr(policy, k) for k in POLICY_DTYPES}
    if choices is not None:
        path, evidence = choices.path, choices.evidence
        tensors |= {
            "path.lower": path.lower,
            "path.upper": path.upper,
            "path.price": path.price,
            "path.flips": evidence.flips,
            "path.fit_flips": evidence.fit_flips,
            "path.mean_models": evidence.mean_models,
            "path.mean_cost": evidence.mean_cost,
        }
    tensors = {k: np.ascontiguousarray(v) for k, v in tensors.items()}
    body = {
        "source": asdict(ensemble.source),
        "model_digest": ensemble.digest,
        "inputs": inputs_to_json(ensemble.inputs),
        "summation": ensemble.summation.name.lower(),
        "less_equal": ensemble.less_equal,
        "truncates": ensemble.truncates,
        "base": ensemble.base,
        "divisor": ensemble.divisor,
        "threshold": ensemble.threshold,
        "classes": classes_to_json(ensemble.classes),
        "link": asdict(ensemble.link),
        "policy": {"threshold": policy.threshold},
        "certificate": asdict(certificate),
        "evidence": None if choices is None else {k: getattr(evidence, k) for k in EVIDENCE},
    }
    header = {"format": FORMAT, "sha256": _digest(body, tensors), "body": body}
    return safetensors.numpy.save(tensors, metadata={KEY: _canonical(header)})


def from_bytes(content: bytes | memoryview | mmap.mmap) -> Parts:
    """What the content of a `.qwyc` file says, once all of it has been checked."""
    header = _read_header(content)
    tensors = _tensors(content)
    try:
        body = header["body"]
        if _digest(body, tensors) != header["sha256"]:
            raise ArtifactError("the file is damaged: its contents do not match their checksum")
        return _build(body, _checked(tensors))
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
    ) as error:
        reason = str(error) if isinstance(error, QwycError) else f"{type(error).__name__}: {error}"
        raise ArtifactError(f"not a sound qwyc file: {reason}") from None


def _tensors(content: bytes | memoryview | mmap.mmap) -> dict[str, npt.NDArray[Any]]:
    """The file's tensors, copied: what is checked must not change when the file does."""
    size = int.from_bytes(content[:8], "little")
    view = memoryview(content)[8 + size :]
    tensors = {}
    try:
        for name, facts in json.loads(bytes(content[8 : 8 + size])).items():
            if name == "__metadata__":
                continue
            dtype, shape = np.dtype(DTYPES[facts["dtype"]]), [count(n) for n in facts["shape"]]
            begin, end = (count(at) for at in facts["data_offsets"])
            if end > len(view) or end - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"tensor {name} does not fit the file")
            tensors[name] = np.frombuffer(view[begin:end], dtype).reshape(shape).copy()
    except (ValueError, KeyError, TypeError, AttributeError, ArtifactError) as error:
        raise ArtifactError(f"the file is damaged: {error}") from None
    return tensors


def _read_header(content: bytes | memoryview | mmap.mmap) -> dict[str, Any]:
    """The JSON header, of a format that this version reads."""
    try:
        size = int.from_bytes(content[:8], "little")
        if len(content) < 8 or size > len(content) - 8:
            raise ValueError
        header = json.loads(json.loads(bytes(content[8 : 8 + size]))["__metadata__"][KEY])
        version = header["format"]
        if not isinstance(version, int):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ArtifactError(
            "not a qwyc file, or a truncated one; qwyc optimize makes one from a model"
        ) from None
    if version != FORMAT:
        raise ArtifactError(
            f"the file has format {version}; this version of qwyc reads format {FORMAT}. "
            "Install the version that wrote it, or optimise again."
        )
    return dict(header)


def _checked(tensors: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    expected = TENSORS | PATH_TENSORS if "path.lower" in tensors else TENSORS
    if set(tensors) != set(expected):
        raise ArtifactError(
            f"tensors are missing or unknown: {sorted(set(tensors) ^ set(expected))}"
        )
    for name, dtypes in expected.items():
        array = tensors[name]
        if array.ndim != (1 if name in FLAT else 2) or array.dtype.name not in dtypes:
            raise ArtifactError(f"tensor {name} is {array.dtype}{array.shape}, expected {dtypes}")
    return dict(tensors)


def _build(body: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Parts:
    trees = Trees(**{k: tensors[f"trees.{k}"] for k in TREE_DTYPES})
    inputs = inputs_from_json(body["inputs"])
    if inputs.dtype != trees.threshold.dtype.name:
        raise ArtifactError("inputs.dtype is not the dtype of the thresholds")
    ensemble = Ensemble(
        trees=trees,
        inputs=inputs,
        summation=Summation[text(body["summation"]).upper()],
        less_equal=flag(body["less_equal"]),
        truncates=flag(body["truncates"]),
        base=number(body["base"]),
        divisor=number(body["divisor"]),
        threshold=number(body["threshold"]),
        classes=classes_from_json(body["classes"]),
        link=Link(
            kind=one_of(body["link"]["kind"], "logistic", "identity", "none"),
            scale=number(body["link"]["scale"]),
            dtype=one_of(body["link"]["dtype"], "float32", "float64"),
        ),
        source=Source(**{f.name: text(body["source"][f.name]) for f in fields(Source)}),
    ).checked()
    if ensemble.digest != body["model_digest"]:
        raise ArtifactError("the model does not match its digest")
    policy = Policy(
        **{k: tensors[f"policy.{k}"] for k in POLICY_DTYPES},
        threshold=number(body["policy"]["threshold"]),
    )
    certificate = certificate_from_json(body["certificate"])
    if policy.n_models != ensemble.n_models:
        raise ArtifactError("the policy is for another number of base models")
    if (body["evidence"] is None) != ("path.lower" not in tensors):
        raise ArtifactError("a path needs its evidence, and the evidence its path")
    if body["evidence"] is None:
        return ensemble, policy, certificate, None
    return ensemble, policy, certificate, _choices(body["evidence"], tensors, policy)


def _choices(
    facts: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], policy: Policy
) -> Choices:
    t = {k: tensors[f"path.{k}"] for k in PATH_DTYPES}
    path = Path(policy.order, t["lower"], t["upper"], t["price"], policy.threshold, policy.costs)
    K, T = len(path), policy.n_models
    shapes: dict[str, tuple[int, ...]] = {"lower": (K, T), "upper": (K, T), "flips": (K, 2)}
    shapes |= {"fit_flips": (K, 2), "mean_models": (K,), "mean_cost": (K,)}
    if K == 0 or any(t[name].shape != shape for name, shape in shapes.items()):
        raise ArtifactError("the path's tensors differ in length")
    for k in range(K):
        _ = path[k]  # checks its thresholds
    path.index_of(policy)  # which was chosen from it
    evidence = Evidence(
        rows=count(facts["rows"]),
        full_positive=count(facts["full_positive"]),
        flips=t["flips"],
        mean_models=t["mean_models"],
        mean_cost=t["mean_cost"],
        fit_rows=count(facts["fit_rows"]),
        fit_flips=t["fit_flips"],
        seed=whole(facts["seed"]),
        sample=text(facts["sample"]),
        groups=count(facts["groups"]),
    )
    rows, fit_rows = evidence.rows, evidence.fit_rows
    for flips, n in ((t["flips"], rows), (t["fit_flips"], fit_rows)):
        # Each by itself first: sums may overflow.
        if flips.min() < 0 or flips.max() > n or flips.sum(axis=1).max() > n or n == 0:
            raise ArtifactError("the path has more disagreements than rows")
    if evidence.full_positive > rows:
        raise ArtifactError("the path has more positives than rows")
    return Choices(path, evidence)


def _digest(body: Any, tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256(_canonical(body).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
