"""The JSON header of a .qwyc file: its parts to and from plain values. Files are hostile, so every value
is checked for its type and range before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.certify import Certificate, check_budget
from qwyc.ensemble import INTEGERS, Inputs
from qwyc.errors import ArtifactError


def certificate_from_json(facts: dict[str, Any]) -> Certificate:
    """A certificate."""
    how = one_of(facts["how"], "held-out", "in-sample", "proven")
    confidence, bound = facts["confidence"], facts["upper_bound"]
    if confidence is not None and not 0 < number(confidence) < 1:
        raise ArtifactError(f"confidence must be between 0 and 1, got {confidence!r}")
    if number(facts["full_cost"]) <= 0 or number(facts["mean_models"]) < 0:
        raise ArtifactError("costs and base models per row must be positive")
    rows, full_positive = count(facts["rows"]), count(facts["full_positive"])
    negative, positive = count(facts["negative"]), count(facts["positive"])
    if max(negative + positive, full_positive) > rows:
        raise ArtifactError("the certificate has more disagreements or positives than rows")
    return Certificate(
        alpha=check_budget(facts["alpha"]),
        confidence=None if confidence is None and how != "held-out" else number(confidence),
        rows=rows,
        full_positive=full_positive,
        negative=negative,
        positive=positive,
        upper_bound=None if bound is None and how != "held-out" else number(bound),
        mean_models=number(facts["mean_models"]),
        mean_cost=number(facts["mean_cost"]),
        full_cost=number(facts["full_cost"]),
        how=how,
        fit_rows=count(facts["fit_rows"]),
        seed=whole(facts["seed"]),
        sample=text(facts["sample"]),
        groups=count(facts["groups"]),
    )


def inputs_to_json(inputs: Inputs) -> dict[str, Any]:
    """What rows must look like."""
    missing = None if np.isnan(inputs.missing) else inputs.missing
    facts = {
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
    if inputs.integers != Inputs.integers:  # files of version 0.1.0 do not have it
        facts["integers"] = inputs.integers
    return facts


def inputs_from_json(facts: dict[str, Any]) -> Inputs:
    """What rows must look like."""
    n = count(facts["n_features"])
    names = facts["names"]
    if names is not None and len(names) != n:
        raise ArtifactError(f"{len(names)} feature names for {n} features")
    categories = {}
    for i, values in facts["categories"]:
        if count(i) >= n or not all(isinstance(v, (str, int, float, type(None))) for v in values):
            raise ArtifactError("categories of an unknown feature, or not text or numbers")
        categories[i] = tuple(values)
    missing = facts["missing"]
    return Inputs(
        n_features=n,
        names=None if names is None else tuple(text(name) for name in names),
        dtype=text(facts["dtype"]),
        categories=categories,
        arrays_hold_values=flag(facts["arrays_hold_values"]),
        unseen=text(facts["unseen"]),
        hashed=flag(facts["hashed"]),
        missing=float("nan") if missing is None else number(missing, finite=False),
        accepts_missing=flag(facts["accepts_missing"]),
        accepts_infinity=flag(facts["accepts_infinity"]),
        integers=one_of(facts.get("integers", Inputs.integers), *INTEGERS),
    )


def classes_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """The two class labels and their dtype."""
    values = classes.tolist()
    if not all(isinstance(v, (str, int, float)) for v in values):
        raise ArtifactError(f"class labels must be text or numbers to be saved; got {values!r}")
    return {"dtype": classes.dtype.str, "values": values}


def classes_from_json(facts: dict[str, Any]) -> npt.NDArray[Any]:
    """The two class labels, (2,)."""
    values = facts["values"]
    if len(values) != 2 or not all(isinstance(v, (str, int, float)) for v in values):
        raise ArtifactError("classes must be two labels, text or numbers")
    dtype = np.dtype(text(facts["dtype"]))
    if dtype.kind not in "biufUO" or dtype.itemsize > 4096:
        raise ArtifactError(f"classes cannot have dtype {dtype}")
    return np.array(values, dtype=dtype)


def number(value: Any, *, finite: bool = True) -> float:
    """A number, finite unless said otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArtifactError(f"expected a number, got {value!r}")
    if finite and not np.isfinite(value):
        raise ArtifactError(f"expected a finite number, got {value!r}")
    return float(value)


def count(value: Any) -> int:
    """A whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ArtifactError(f"expected a count, got {value!r}"[:100])
    return value


def whole(value: Any) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArtifactError(f"expected a whole number, got {value!r}")
    return value


def one_of(value: Any, *known: str) -> str:
    """One of some words."""
    if value not in known:
        raise ArtifactError(f"expected one of {', '.join(known)}; got {value!r}")
    return text(value)


def text(value: Any) -> str:
    """Text."""
    if not isinstance(value, str):
        raise ArtifactError(f"expected text, got {value!r}")
    return value


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ArtifactError(f"expected true or false, got {value!r}")
    return value
