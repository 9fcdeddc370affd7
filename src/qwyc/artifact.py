"""The .qwyc file: safetensors, whose single metadata entry is a JSON header (docs/format.md).

Nothing in a file is executed. Everything in it is checked before it is used, and a SHA-256 over
header and tensors tells a damaged file from a whole one."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from qwyc.certify import Certificate, Evidence, check_budget
from qwyc.ensemble import Ensemble, Inputs, Link, Source, Summation, Trees
from qwyc.errors import ArtifactError, QwycError
from qwyc.policy import Policy
from qwyc.stopping import Path

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


# What a classifier is made of.
Parts = tuple[Ensemble, Policy, Certificate, Path | None, Evidence | None]


def write(path: str | os.PathLike[str], parts: Parts) -> None:
    """Write a file; the same parts give the same bytes."""
    content = to_bytes(parts)
    target = _file_path(path)
    target = target.resolve()  # a link stays a link; what it points to is replaced
    if target.exists() and not target.is_file():
        raise ArtifactError(f"cannot write {target}: it is a directory or a device, not a file")
    # Written beside the target, made durable, then renamed over it: never a half-written file.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ArtifactError(f"cannot write {target}: {error.strerror or error}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> Parts:
    """Read a file."""
    try:
        content = _file_path(path).read_bytes()
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror or error}") from None
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
    ensemble, policy, certificate, path, evidence = parts
    tensors = {f"trees.{k}": getattr(ensemble.trees, k) for k in TREE_DTYPES}
    tensors |= {f"policy.{k}": getattr(policy, k) for k in POLICY_DTYPES}
    if path is not None and evidence is not None:
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
        "inputs": _inputs_to_json(ensemble.inputs),
        "summation": ensemble.summation.name.lower(),
        "less_equal": ensemble.less_equal,
        "truncates": ensemble.truncates,
        "base": ensemble.base,
        "divisor": ensemble.divisor,
        "threshold": ensemble.threshold,
        "classes": _classes_to_json(ensemble.classes),
        "link": asdict(ensemble.link),
        "policy": {"threshold": policy.threshold},
        "certificate": asdict(certificate),
        "evidence": None
        if evidence is None
        else {k: getattr(evidence, k) for k in ("rows", "fit_rows", "seed", "sample")},
    }
    header = {"format": FORMAT, "sha256": _digest(body, tensors), "body": body}
    return safetensors.numpy.save(tensors, metadata={KEY: _canonical(header)})


def from_bytes(content: bytes) -> Parts:
    """What the content of a `.qwyc` file says, once all of it has been checked."""
    header = _read_header(content)
    try:
        tensors = safetensors.numpy.load(content)
    except Exception as error:  # safetensors raises its own and several built-in types
        raise ArtifactError(f"the file is damaged: {error}") from None
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
    ) as error:
        reason = str(error) if isinstance(error, QwycError) else f"{type(error).__name__}: {error}"
        raise ArtifactError(f"not a sound qwyc file: {reason}") from None


def _read_header(content: bytes) -> dict[str, Any]:
    """The JSON header, of a format that this version reads."""
    try:
        size = int.from_bytes(content[:8], "little")
        if len(content) < 8 or size > len(content) - 8:
            raise ValueError
        header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][KEY])
        version = header["format"]
        if not isinstance(version, int):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ArtifactError("not a qwyc file, or a truncated one") from None
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
    inputs = _inputs_from_json(body["inputs"])
    if inputs.dtype != trees.threshold.dtype.name:
        raise ArtifactError("inputs.dtype is not the dtype of the thresholds")
    ensemble = Ensemble(
        trees=trees,
        inputs=inputs,
        summation=Summation[_text(body["summation"]).upper()],
        less_equal=_flag(body["less_equal"]),
        truncates=_flag(body["truncates"]),
        base=_number(body["base"]),
        divisor=_number(body["divisor"]),
        threshold=_number(body["threshold"]),
        classes=_classes_from_json(body["classes"]),
        link=Link(
            kind=_text(body["link"]["kind"]),
            scale=_number(body["link"]["scale"]),
            dtype=_text(body["link"]["dtype"]),
        ),
        source=Source(**{f.name: _text(body["source"][f.name]) for f in fields(Source)}),
    )
    _ = ensemble.native  # checks every index in the trees
    if ensemble.digest != body["model_digest"]:
        raise ArtifactError("the model does not match its digest")
    policy = Policy(
        **{k: tensors[f"policy.{k}"] for k in POLICY_DTYPES},
        threshold=_number(body["policy"]["threshold"]),
    )
    certificate = _certificate_from_json(body["certificate"])
    if policy.n_models != ensemble.n_models:
        raise ArtifactError("the policy is for another number of base models")
    if (body["evidence"] is None) != ("path.lower" not in tensors):
        raise ArtifactError("a path needs its evidence, and the evidence its path")
    if body["evidence"] is None:
        return ensemble, policy, certificate, None, None
    return ensemble, policy, certificate, *_path(body["evidence"], tensors, policy)


def _path(
    facts: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], policy: Policy
) -> tuple[Path, Evidence]:
    t = {k: tensors[f"path.{k}"] for k in PATH_DTYPES}
    path = Path(policy.order, t["lower"], t["upper"], t["price"], policy.threshold, policy.costs)
    K, T = len(path), policy.n_models
    shapes: dict[str, tuple[int, ...]] = {"lower": (K, T), "upper": (K, T), "flips": (K, 2)}
    shapes |= {"fit_flips": (K, 2), "mean_models": (K,), "mean_cost": (K,)}
    if K == 0 or any(t[name].shape != shape for name, shape in shapes.items()):
        raise ArtifactError("the path's tensors differ in length")
    for k in range(K):
        _ = path[k]  # checks its thresholds
    evidence = Evidence(
        rows=_count(facts["rows"]),
        flips=t["flips"],
        mean_models=t["mean_models"],
        mean_cost=t["mean_cost"],
        fit_rows=_count(facts["fit_rows"]),
        fit_flips=t["fit_flips"],
        seed=_whole(facts["seed"]),
        sample=_text(facts["sample"]),
    )
    if (t["flips"] < 0).any() or t["flips"].sum(axis=1).max() > evidence.rows:
        raise ArtifactError("the path has more flips than rows")
    return path, evidence


def _certificate_from_json(facts: dict[str, Any]) -> Certificate:
    how = _text(facts["how"])
    if how not in ("held-out", "in-sample", "proven"):
        raise ArtifactError(f"unknown kind of certificate: {how!r}")
    confidence, bound = facts["confidence"], facts["upper_bound"]
    return Certificate(
        alpha=check_budget(facts["alpha"]),
        confidence=None if confidence is None and how != "held-out" else _number(confidence),
        rows=_count(facts["rows"]),
        negative=_count(facts["negative"]),
        positive=_count(facts["positive"]),
        upper_bound=None if bound is None and how != "held-out" else _number(bound),
        mean_models=_number(facts["mean_models"]),
        mean_cost=_number(facts["mean_cost"]),
        full_cost=_number(facts["full_cost"]),
        how=how,
        fit_rows=_count(facts["fit_rows"]),
        seed=_whole(facts["seed"]),
        sample=_text(facts["sample"]),
    )


def _inputs_to_json(inputs: Inputs) -> dict[str, Any]:
    missing = None if np.isnan(inputs.missing) else inputs.missing
    return {
        "n_features": inputs.n_features,
        "names": None if inputs.names is None else list(inputs.names),
        "dtype": inputs.dtype,
        "categories": [[i, list(v)] for i, v in sorted(inputs.categories.items())],
        "arrays_hold_values": inputs.arrays_hold_values,
        "unseen": inputs.unseen,
        "hashed": inputs.hashed,
        "missing": missing,
        "accepts_missing": inputs.accepts_missing,
        "accepts_infinity": inputs.accepts_infinity,
    }


def _inputs_from_json(facts: dict[str, Any]) -> Inputs:
    n = _count(facts["n_features"])
    names = facts["names"]
    if names is not None and len(names) != n:
        raise ArtifactError(f"{len(names)} feature names for {n} features")
    categories = {}
    for i, values in facts["categories"]:
        if _count(i) >= n or not all(isinstance(v, (str, int, float, type(None))) for v in values):
            raise ArtifactError("categories of an unknown feature, or not text or numbers")
        categories[i] = tuple(values)
    missing = facts["missing"]
    return Inputs(
        n_features=n,
        names=None if names is None else tuple(_text(name) for name in names),
        dtype=_text(facts["dtype"]),
        categories=categories,
        arrays_hold_values=_flag(facts["arrays_hold_values"]),
        unseen=_text(facts["unseen"]),
        hashed=_flag(facts.get("hashed", False)),
        missing=float("nan") if missing is None else _number(missing, finite=False),
        accepts_missing=_flag(facts["accepts_missing"]),
        accepts_infinity=_flag(facts["accepts_infinity"]),
    )


def _classes_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    if not all(isinstance(v, (str, int, float)) for v in values):
        raise ArtifactError(f"class labels must be text or numbers to be saved; got {values!r}")
    return {"dtype": classes.dtype.str, "values": values}


def _classes_from_json(facts: dict[str, Any]) -> npt.NDArray[Any]:
    values = facts["values"]
    if len(values) != 2 or not all(isinstance(v, (str, int, float)) for v in values):
        raise ArtifactError("classes must be two labels, text or numbers")
    dtype = np.dtype(_text(facts["dtype"]))
    if dtype.kind not in "biufUO" or dtype.itemsize > 4096:
        raise ArtifactError(f"classes cannot have dtype {dtype}")
    return np.array(values, dtype=dtype)


def _digest(body: Any, tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256(_canonical(body).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _number(value: Any, *, finite: bool = True) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArtifactError(f"expected a number, got {value!r}")
    if finite and not np.isfinite(value):
        raise ArtifactError(f"expected a finite number, got {value!r}")
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ArtifactError(f"expected a count, got {value!r}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArtifactError(f"expected a whole number, got {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ArtifactError(f"expected text, got {value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArtifactError(f"expected true or false, got {value!r}")
    return value
