"""The parts that evidence has where groups were counted, or rows have an order: as plain values and
tensors, and back. Files are hostile, so what is read must go together with the counts of all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qwyc.errors import ArtifactError
from qwyc.files.container import Tensors
from qwyc.files.families import TensorTypes
from qwyc.files.values import count, number, rows, text
from qwyc.limits import MAX_ROWS_COUNTED
from qwyc.policy.counts import PathCounts
from qwyc.policy.grouped import PathGroups, PathPrior
from qwyc.promise.certificate import Certificate
from qwyc.promise.evidence import Evidence
from qwyc.promise.windows import PathWindows
from qwyc.target.target import Target

LARGEST = MAX_ROWS_COUNTED  # of any count in a file; sums of them cannot overflow

# K policies, G groups, E groups in which some row differs (of all policies together), W windows.
GROUP_TENSORS: TensorTypes = {
    "path.group_sizes": (2, ("int64",)),  # (G, n_classes)
    "path.group_begin": (1, ("int64",)),  # (K + 1,)
    "path.group_at": (1, ("int64",)),  # (E,)
    "path.group_differences": (2, ("int64",)),  # (E, n_differences)
}
PRIOR_TENSORS: TensorTypes = {
    "path.prior_differences": (2, ("int64",)),  # (K, n_differences)
    "path.prior_squares": (2, ("int64",)),  # (K, n_differences)
}
WINDOW_TENSORS: TensorTypes = {
    "path.window_classes": (2, ("int64",)),  # (W, n_classes)
    "path.window_differences": (3, ("int64",)),  # (K, W, n_differences)
}
TENSORS: TensorTypes = {**GROUP_TENSORS, **PRIOR_TENSORS, **WINDOW_TENSORS}


def facts(seen: Evidence) -> dict[str, Any]:
    """What the header's `evidence` holds about groups and windows, where there are any."""
    found: dict[str, Any] = {}
    groups, windows = seen.counts.groups, seen.windows
    if groups is not None and groups.prior is not None:
        prior = groups.prior
        found["group_prior"] = {"caps": prior.caps, "weight": prior.weight, "full": prior.full}
    if windows is not None:
        found["windows"] = {"first": list(windows.first), "last": list(windows.last)}
    return found


def tensors(seen: Evidence) -> Tensors:
    """The same as tensors."""
    found: Tensors = {}
    groups, windows = seen.counts.groups, seen.windows
    if groups is not None:
        by_group = (groups.sizes, groups.begin, groups.at, groups.differences)
        found |= dict(zip(GROUP_TENSORS, by_group, strict=True))
        if groups.prior is not None:
            known = (groups.prior.differences, groups.prior.squares)
            found |= dict(zip(PRIOR_TENSORS, known, strict=True))
    if windows is not None:
        by_window = (windows.by_class, windows.differences)
        found |= dict(zip(WINDOW_TENSORS, by_window, strict=True))
    return found


def later_facts(seen: Certificate | Evidence) -> dict[str, Any]:
    """Where no row was left out and nothing recertified, files are as they were before that could be."""
    left_out = {"left_out": seen.left_out} if seen.left_out else {}
    return left_out | ({} if seen.recertified is None else {"recertified": seen.recertified})


def read_later(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as arguments of a certificate and of evidence."""
    digest = facts.get("recertified")
    recertified = None if digest is None else text(digest)
    return {"left_out": rows(facts.get("left_out", 0)), "recertified": recertified}


def read_groups(
    facts: Mapping[str, Any], tensors: Mapping[str, Any], counts: PathCounts, target: Target
) -> PathGroups | None:
    """Groups whose sums are the counts of all rows; None where rows were counted. Names of tensors come
    without "path."."""
    if not _present(GROUP_TENSORS, tensors):
        if "group_prior" in facts or _present(PRIOR_TENSORS, tensors):
            raise ArtifactError("the evidence describes groups, but has none")
        return None
    sizes, begin, at, differences = (tensors[name] for name in _short(GROUP_TENSORS))
    K, n_classes, kinds = len(counts), target.n_classes, len(target.differences)
    G, E = len(sizes), len(at)
    if sizes.shape != (G, n_classes) or count(facts["groups"]) != G:
        raise ArtifactError("the evidence counts a different number of groups")
    _check_range(sizes, LARGEST)
    if not np.array_equal(sizes.sum(axis=0), counts.by_class) or (sizes.sum(axis=1) < 1).any():
        raise ArtifactError("the groups and the evidence have different rows")
    if differences.shape != (E, kinds) or begin.shape != (K + 1,):
        raise ArtifactError("the groups' tensors differ in length")
    if begin[0] != 0 or begin[-1] != E or (np.diff(begin) < 0).any():
        raise ArtifactError("the groups of the policies do not follow each other")
    _check_range(at, G - 1)
    step = np.diff(at) > 0  # ascending, but where the next policy begins
    step[begin[(begin > 0) & (begin < E)] - 1] = True
    if not step.all():
        raise ArtifactError("the groups of a policy are not in ascending order")
    _check_range(differences, LARGEST)
    if any((differences[:, kind] > sizes[at, c]).any() for c, kind in _lost(target)):
        raise ArtifactError("a group has more disagreements than rows")
    if (differences.sum(axis=1) < 1).any():
        raise ArtifactError("a group is listed without a disagreement")
    groups = PathGroups(sizes, begin, at, differences, _read_prior(facts, tensors, K, target))
    if not np.array_equal(groups.totals()[0], counts.differences):
        raise ArtifactError("the groups and the evidence have different disagreements")
    return groups


def _read_prior(
    facts: Mapping[str, Any], tensors: Mapping[str, Any], K: int, target: Target
) -> PathPrior | None:
    known = facts.get("group_prior")
    if (known is None) == _present(PRIOR_TENSORS, tensors):
        raise ArtifactError("what is known about groups is not complete")
    if known is None:
        return None
    caps = tuple(count(cap) for cap in known["caps"])
    shares = [tuple(number(share) for share in known[name]) for name in ("weight", "full")]
    if any(len(values) != 1 + target.n_classes for values in (caps, *shares)):
        raise ArtifactError("what is known about groups is for a different number of classes")
    if min(caps) < 1 or max(caps) > LARGEST or any(not 0 <= x <= 1 for row in shares for x in row):
        raise ArtifactError("what is known about groups is out of range")
    differences, squares = (tensors[name] for name in _short(PRIOR_TENSORS))
    shape = (K, len(target.differences))
    if differences.shape != shape or squares.shape != shape:
        raise ArtifactError("the groups' tensors differ in length")
    _check_range(differences, LARGEST)
    if (squares < differences).any():
        raise ArtifactError("what is known about groups is out of range")
    return PathPrior(caps, shares[0], shares[1], differences, squares)


def read_windows(
    facts: Mapping[str, Any], tensors: Mapping[str, Any], counts: PathCounts, target: Target
) -> PathWindows | None:
    """Windows of which the latest has the counts of the evidence; None where rows have no order."""
    known = facts.get("windows")
    if (known is None) == _present(WINDOW_TENSORS, tensors):
        raise ArtifactError("the windows are not complete")
    if known is None:
        return None
    first, last = (tuple(text(value) for value in known[end]) for end in ("first", "last"))
    by_class, differences = (tensors[name] for name in _short(WINDOW_TENSORS))
    K, W, kinds = len(counts), len(first), len(target.differences)
    shapes = (by_class.shape, differences.shape)
    if not W or len(last) != W or shapes != ((W, target.n_classes), (K, W, kinds)):
        raise ArtifactError("the windows differ in number")
    _check_range(by_class, LARGEST)
    _check_range(differences, LARGEST)
    if any((differences[:, :, kind] > by_class[:, c]).any() for c, kind in _lost(target)):
        raise ArtifactError("a window has more disagreements than rows")
    same_rows = np.array_equal(by_class[-1], counts.by_class)
    if not same_rows or not np.array_equal(differences[:, -1], counts.differences):
        raise ArtifactError("the latest window and the evidence have different rows")
    return PathWindows(first, last, by_class, differences)


def _lost(target: Target) -> list[tuple[int, int]]:
    """Each class, and each way in which its rows can be decided differently."""
    return [(c, kind) for c in range(target.n_classes) for kind in target.lost_from(c)]


def _present(wanted: TensorTypes, tensors: Mapping[str, Any]) -> bool:
    """Whether all of the tensors are there; some of them alone are an error."""
    found = [name in tensors for name in _short(wanted)]
    if any(found) != all(found):
        raise ArtifactError("the evidence is not complete: tensors are missing")
    return all(found)


def _short(names: TensorTypes) -> list[str]:
    return [name.removeprefix("path.") for name in names]


def _check_range(values: Any, most: int) -> None:
    if values.size and (values.min() < 0 or values.max() > most):
        raise ArtifactError("the evidence has numbers out of range")
