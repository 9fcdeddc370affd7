"""Which features rows need, and from which step on."""

from __future__ import annotations

from typing import Any

import numpy as np

from qwyc.policy.counts import exit_bins
from qwyc.promise.certified import Certified
from qwyc.report.text import features_per_row
from qwyc.rows.column_names import feature_name

WIDTH = 76  # of a list of names in a line


def feature_facts(certified: Certified) -> dict[str, Any]:
    """When each feature is first needed and by how many rows, as plain values, for JSON. Features are in
    the order in which they are needed; those that no base model looks at are left out."""
    use, seen, schema = certified.feature_use, certified.certificate, certified.ensemble.schema
    assert use is not None  # base models say which features they look at
    assert schema is not None
    known = seen.mean_features is not None
    rows = use.rows_needing(seen.counts.stops) if known else np.zeros(len(use.first), np.int64)
    order = [int(j) for j in np.argsort(use.first, kind="stable") if use.used[j]]
    return {
        "looked_at": len(order),
        "mean_features": seen.mean_features,
        "mean_cost": seen.mean_feature_cost,
        "full_cost": use.full_cost,
        "features": [
            {
                "feature": feature_name(j, schema),
                "step": int(use.first[j]) + 1,
                "share_of_rows": float(rows[j] / seen.rows) if known else None,
                "cost": float(use.costs[j]),
            }
            for j in order
        ],
    }


def feature_lines(certified: Certified) -> list[str]:
    """The same as a compact table: a line for each range of steps in which features are first needed, with
    the share of rows that get there. Nothing where base models do not say what they look at."""
    use = certified.feature_use
    if use is None:
        return []
    facts = feature_facts(certified)
    if facts["mean_features"] is None:
        lines = [
            f"  features   {facts['looked_at']} are looked at; how many a row needs is not known"
        ]
    else:
        lines = [
            f"  features   {features_per_row(certified)}; first needed at step, by share of rows:"
        ]
    for first, last in exit_bins(use.n_models):
        here = [at for at in facts["features"] if first <= at["step"] <= last]
        if not here:
            continue
        shares = [at["share_of_rows"] for at in here]
        share = "" if shares[0] is None else _range(max(shares), min(shares))
        steps = f"{first}" if first == last else f"{first} to {last}"
        names = _shortened([str(at["feature"]) for at in here])
        lines.append(f"    {steps:>10}  {share:>16}  {names}")
    return lines


def _range(most: float, least: float) -> str:
    high, low = f"{most:.1%}", f"{least:.1%}"
    return high if high == low else f"{high} to {low}"


def _shortened(names: list[str]) -> str:
    """As many names as fit into a line, and how many more there are."""
    text = names[0]
    for i, name in enumerate(names[1:], start=1):
        if len(text) + len(name) > WIDTH:
            return f"{text} and {len(names) - i} more"
        text += f", {name}"
    return text
