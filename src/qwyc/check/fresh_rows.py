"""Rows for a test of a classifier: they are refused if it was made from them, and copies count together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, QwycWarning
from qwyc.model.ensemble import Sample
from qwyc.promise import repeats
from qwyc.promise.certified import Certified
from qwyc.promise.group_labels import group_numbers
from qwyc.promise.origin import Origin
from qwyc.rows.identity import Hashes
from qwyc.rows.selection import row_count
from qwyc.runtime.arguments import check_choice


@dataclass(frozen=True, eq=False)
class FreshRows:
    """What is known about rows that a classifier was not made from."""

    groups: Any  # a label per row, the same for copies; None: rows are independent draws
    hashes: Hashes | None  # (N,) by the columns in use; None where rows are no table of numbers


class RowHashes:
    """Hashes of rows that come block by block: 8 bytes a row, or 16 if some columns are not in use."""

    def __init__(self) -> None:
        self._whole: list[Hashes] | None = []  # by all columns
        self._used: list[Hashes] | None = []  # by those in use; None where these are all

    def add(self, sample: Sample) -> None:
        """The next rows."""
        if self._whole is None:
            return
        if sample.hashes is None or sample.used_hashes is None:
            self._whole = self._used = None
            return
        self._whole.append(sample.hashes)
        if sample.used_hashes is sample.hashes:
            self._used = None
        elif self._used is not None:
            self._used.append(sample.used_hashes)

    def take(self) -> tuple[Hashes, Hashes] | None:
        """By all columns and by those in use, (N,) each; None where rows are no table of numbers. They
        are not kept."""
        if self._whole is None:
            return None
        whole, self._whole = np.concatenate(self._whole), []
        if self._used is None:
            return whole, whole
        used, self._used = np.concatenate(self._used), []
        return whole, used


class KeptRows:
    """Which rows of a sample were counted, block by block; the others have values that the model
    refuses."""

    def __init__(self) -> None:
        self._blocks: list[npt.NDArray[np.bool_] | int] = []  # an int: so many rows, all counted
        self.left_out = 0

    def add(self, sample: Sample) -> None:
        """The next rows."""
        self._blocks.append(row_count(sample.rows) if sample.kept is None else sample.kept)
        self.left_out += sample.left_out

    def of(self, groups: Any) -> Any:
        """Of labels, one for each row, those of the rows that were counted."""
        if groups is None or not self.left_out:
            return groups
        kept = np.concatenate(
            [np.ones(block, bool) if isinstance(block, int) else block for block in self._blocks]
        )
        return group_numbers(groups, len(kept))[kept]

    def check(self, what: str) -> None:
        """Raise an error if no row was counted."""
        if self.left_out and not any(
            isinstance(block, int) or block.any() for block in self._blocks
        ):
            rows = "the only row" if self.left_out == 1 else f"each of the {self.left_out:,} rows"
            raise InputError(
                f"the model refuses a value in {rows}, so none is left to "
                f"{what}: decide(X, unseen='flag') says why"
            )


def repeats_option(certified: Certified, together: str | None) -> str:
    """One of `repeats.REPEATS`: None stands for what `optimize` was told."""
    if together is None:
        together = repeats.INDEPENDENT if certified.origins.independent else repeats.TOGETHER
    check_choice("repeats", together, repeats.REPEATS)
    return together


def fresh_rows(
    found_hashes: tuple[Hashes, Hashes] | None,
    origins: Iterable[Origin | None],
    groups: Any,
    together: str,
    *,
    stacklevel: int = 3,
) -> FreshRows:
    """Check rows against the rows that a classifier was made from, and for copies.

    Raises InputError where rows are recognised. `together` is one of `repeats.REPEATS`. Warnings point at
    the caller of the function that calls this, or so many levels up."""
    if found_hashes is None:
        return FreshRows(groups, None)
    whole, hashes = found_hashes
    for origin in origins:
        if origin is not None:
            _refuse_known(origin, hashes, stacklevel + 1)
    if together == repeats.TOGETHER and groups is None:  # groups that are given are the units
        found = repeats.units(whole, hashes)
        if found.group is not None:
            warnings.warn(found.warning, QwycWarning, stacklevel=stacklevel)
            groups = found.group
    return FreshRows(groups, hashes)


def _refuse_known(origin: Origin, hashes: Hashes, stacklevel: int) -> None:
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
        warnings.warn(f"{known}, more than by chance. {why}", QwycWarning, stacklevel=stacklevel)
