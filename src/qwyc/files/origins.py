"""The sketches of the rows that a classifier was made from, in a `.qwyc` file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qwyc.errors import ArtifactError
from qwyc.files.container import Tensors
from qwyc.files.families import TensorTypes
from qwyc.files.values import flag, number, one_of
from qwyc.files.values import rows as row_count
from qwyc.promise.origin import SIZE, Origin, Origins

NAMES = ("sample", "recertified")
INDEPENDENT = "independent_repeats"  # true where equal rows are independent draws; else left out


def facts(origins: Origins) -> dict[str, Any]:
    """What `origins` holds in a header."""
    found: dict[str, Any] = {
        name: {"rows": origin.rows, "chance": origin.chance}
        for name, origin in _known(origins).items()
    }
    return found | ({INDEPENDENT: True} if origins.independent else {})


def tensors(origins: Origins) -> Tensors:
    """The hashes, as tensors."""
    return {f"origin.{name}": origin.hashes for name, origin in _known(origins).items()}


def _known(origins: Origins) -> dict[str, Origin]:
    found = {name: getattr(origins, name) for name in NAMES}
    return {name: origin for name, origin in found.items() if origin is not None}


def expected(facts: Mapping[str, Any]) -> TensorTypes:
    """The tensors that go with a header."""
    names = (one_of(name, *NAMES) for name in facts if name != INDEPENDENT)
    return {f"origin.{name}": (1, ("uint64",)) for name in names}


def read(facts: Mapping[str, Any], tensors: Tensors) -> Origins:
    """Sketches that are sorted and bounded."""
    names = [name for name in facts if name != INDEPENDENT]
    found = {name: _read(facts[name], tensors[f"origin.{name}"]) for name in names}
    return Origins(**found, independent=flag(facts.get(INDEPENDENT, False)))


def _read(facts: Mapping[str, Any], hashes: Any) -> Origin:
    rows, chance = row_count(facts["rows"]), number(facts["chance"])
    if not 0 < len(hashes) <= min(SIZE, rows) or np.any(hashes[1:] <= hashes[:-1]):
        raise ArtifactError("the hashes of the sample's rows are not sorted, or too many")
    if not 0 <= chance <= 1:
        raise ArtifactError("the share of rows that repeat by chance is not between 0 and 1")
    return Origin(hashes, rows, chance)
