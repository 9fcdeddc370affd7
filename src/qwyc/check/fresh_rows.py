"""Rows for a test of a classifier: they are refused if it was made from them, and copies count together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwyc.errors import InputError, QwycWarning
from qwyc.model.ensemble import Ensemble
from qwyc.promise import repeats
from qwyc.promise.certified import Certified
from qwyc.promise.compare import BLOCK
from qwyc.promise.origin import Origin
from qwyc.rows.identity import Hashes
from qwyc.rows.selection import row_count, take
from qwyc.runtime.arguments import check_choice


@dataclass(frozen=True, eq=False)
class FreshRows:
    """What is known about rows that a classifier was not made from."""

    groups: Any  # a label per row, the same for copies; None: rows are independent draws
    hashes: Hashes | None  # (N,) by the columns in use; None where rows are no table of numbers


def fresh_rows(
    certified: Certified,
    X: Any,
    origins: Iterable[Origin | None],
    groups: Any,
    together: str | None,
) -> FreshRows:
    """Check rows in memory against the rows that a classifier was made from, and for copies.

    Raises InputError where rows are recognised. `together` is one of `repeats.REPEATS`, or None for what
    `optimize` was told. Warnings point at the caller of the function that calls this."""
    if together is None:
        together = repeats.INDEPENDENT if certified.origins.independent else repeats.TOGETHER
    check_choice("repeats", together, repeats.REPEATS)
    found_hashes = _hashes(certified.ensemble, X)
    if found_hashes is None:
        return FreshRows(groups, None)
    whole, hashes = found_hashes
    for origin in origins:
        if origin is not None:
            _refuse_known(origin, hashes)
    if together == repeats.TOGETHER and groups is None:  # groups that are given are the units
        found = repeats.units(whole, hashes)
        if found.group is not None:
            warnings.warn(found.warning, QwycWarning, stacklevel=3)
            groups = found.group
    return FreshRows(groups, hashes)


def _hashes(ensemble: Ensemble, X: Any) -> tuple[Hashes, Hashes] | None:
    """Hashes of rows by all columns, and by those in use, (N,) each."""
    n, whole, used = row_count(X), [], []
    for i in range(0, n, BLOCK):
        block = X if n <= BLOCK else take(X, np.arange(i, min(i + BLOCK, n)))
        sample = ensemble.sample(block)
        if sample.hashes is None or sample.used_hashes is None:
            return None
        whole.append(sample.hashes)
        used.append(sample.used_hashes)
    return (np.concatenate(whole), np.concatenate(used)) if whole else None


def _refuse_known(origin: Origin, hashes: Hashes) -> None:
    overlap = origin.found(hashes)
    known = (
        f"{overlap.share:.1%} of these rows are among the {origin.rows:,} rows that the classifier was "
        f"made from ({overlap.found:,} of {overlap.looked_up:,} rows that were looked up)"
    )
    why = (
        "Its thresholds were fitted to those rows, or its operating point was chosen on them, so they "
        "cannot show how it decides new rows"
    )
    if overlap.refused:
        raise InputError(f"{known}. {why}: pass other rows")
    if overlap.doubtful:
        warnings.warn(f"{known}, more than by chance. {why}", QwycWarning, stacklevel=4)
