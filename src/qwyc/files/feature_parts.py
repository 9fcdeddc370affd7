"""What features cost and where rows stopped, as tensors, and back. Files are hostile, so what is read must
go together with the counts of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ArtifactError
from qwyc.files.container import Tensors
from qwyc.files.families import TensorTypes
from qwyc.policy.counts import Counts, PathCounts
from qwyc.policy.rule import StoppingRule
from qwyc.promise.certified import Certified
from qwyc.promise.evidence import Choices

# Each may be absent. A certificate has stops of its own only where there is no path that has them.
TENSORS: TensorTypes = {
    "policy.feature_costs": (1, ("float64",)),  # (n_features,)
    "certificate.stops": (1, ("int64",)),  # (T,)
}


def tensors(certified: Certified) -> Tensors:
    """What a file keeps besides the path."""
    found: Tensors = {}
    if certified.feature_costs is not None:
        found["policy.feature_costs"] = certified.feature_costs
    stops = certified.certificate.counts.stops
    if stops and not (certified.choices and path_tensors(certified.choices.evidence.counts)):
        found["certificate.stops"] = np.array(stops, dtype=np.int64)
    return found


def path_tensors(counts: PathCounts) -> Tensors:
    """Where rows stopped under each policy of a path: in bins, and by step."""
    if counts.exits is None:
        return {}
    by_step = {} if counts.stops is None else {"path.stops": counts.stops}
    return {"path.exits": counts.exits} | by_step


def read_feature_costs(tensor: Any) -> npt.NDArray[np.float64] | None:
    """What features cost, (n_features,); None where the file does not say."""
    if tensor is None:
        return None
    if not (np.isfinite(tensor) & (tensor >= 0)).all():
        raise ArtifactError("feature costs must be numbers of at least 0")
    costs = np.array(tensor)
    costs.flags.writeable = False
    return costs


def check_stops(stops: Any, counts: PathCounts) -> None:
    """Refuse stops, (K, T), of other rows than those of the counts."""
    if counts.exits is None:
        raise ArtifactError("the path counts rows by step, but not in bins")
    if stops.min() < 0 or stops.max() > counts.rows or (stops.sum(axis=1) != counts.rows).any():
        raise ArtifactError("the path's counts by step are of different rows")


def with_stops(counts: Counts, policy: StoppingRule, choices: Choices | None, own: Any) -> Counts:
    """A certificate's counts, with where its rows stopped: `own` (T,), or what the evidence has for its
    policy."""
    if own is not None:
        if own.shape != (policy.n_models,) or own.min() < 0 or own.max() > counts.rows:
            raise ArtifactError("the certificate counts rows for a different number of steps")
        if int(own.sum()) != counts.rows:
            raise ArtifactError("the certificate's counts by step are of different rows")
        return replace(counts, stops=tuple(own.tolist()))
    if choices is None or choices.evidence.counts.stops is None:
        return counts
    seen = choices.evidence.counts[choices.index_of(policy)]
    if (seen.by_class, seen.exits) != (counts.by_class, counts.exits):
        return counts  # of other rows
    return replace(counts, stops=seen.stops)
