"""Trees of two classes in C: quit on the running sum, or add the full score as the source library does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.files.export_c.nodes import AT_ONCE, Layout, add_nodes, walked
from qwyc.files.export_c.program import Program, Tables, joined, quit_end
from qwyc.files.export_c.text import c_type, narrowed, real_literal, real_narrowed
from qwyc.model.trees import Summation, TreeModels
from qwyc.policy.policy import Policy

ABOVE_HALF = float(np.nextafter(0.5, 1.0))

_DECIDE = """
static int decide(const real *row, int32_t *steps, double *score) {{
    {leaf} leaf[{walked}];
    uint32_t r;
{quitting}    for (r = {begin}; r < N_TREES; r += {at_once}) walk(r, row, leaf + r);
    {{
        const double full = full_score(leaf);
        if (steps) *steps = N_TREES;
        if (score) *score = full;
        return full >= {threshold};
    }}
}}
"""

_QUITTING = """    double sum = {base};
    for (r = 0; r < N_QUITS; ++r) {{
        if (r % {at_once} == 0) walk(r, row, leaf + r);
        sum += {step};
        if ({quits}) {{
            if (steps) *steps = (int32_t)r + 1;
            if (score) *score = sum;
            return {positive};
        }}
    }}
"""

_FULL_SCORE = """
/* The sum as {library} makes it: in the order of the model, and rounded where it rounds. */
static double full_score(const {leaf} *leaf) {{
    {start}
    uint32_t t;
    for (t = 0; t < N_TREES; ++t) {add}
    {finish}
}}
"""

# The source compares its two shares; the score is moved to that side of 1/2.
_SHARES = """{{
        const double value = total / {divisor}, share = other / {divisor};
        if (value > share) return value < {above} ? {above} : value;
        return value > 0.5 ? 0.5 : value;
    }}"""


def program(models: TreeModels, policy: Policy, library: str) -> Program:
    """The trees along the policy's order."""
    tables, layout = Tables(), Layout.of(models.trees, policy.order)
    leaf = c_type(layout.leaf_type)
    walk = add_nodes(tables, layout.trees, models.less_equal, models.truncates, leaf)
    n_quits = quit_end((policy.lower > -np.inf) | (policy.upper < np.inf))
    step = add_leaves(tables, layout.trees.leaf_value, models.summation, models.divisor, n_quits)
    if models.summation == Summation.SHARES:
        tables.add("leaf_other", real_narrowed(layout.trees.leaf_other), "the other class's share")
    tables.add("place", narrowed(layout.place), "the step at which each tree of the model runs")
    add_thresholds(tables, policy, n_quits)
    quitting = _QUITTING.format(
        base=real_literal(models.base, single=False),
        at_once=AT_ONCE,
        step=step.format("leaf[r]"),
        **comparisons(policy, n_quits),
    )
    decide = _DECIDE.format(
        leaf=leaf,
        walked=walked(models.n_models),
        begin=walked(n_quits),
        at_once=AT_ONCE,
        threshold=real_literal(policy.threshold, single=False),
        quitting=quitting if n_quits else "",
    )
    sizes = f"enum {{ N_TREES = {models.n_models}, N_QUITS = {n_quits} }};"
    return Program(
        tables=tables.text,
        code=joined([sizes, *walk, full_score(models, leaf, library), decide]),
        n_bytes=tables.n_bytes,
        stack=layout.leaf_type.itemsize * models.n_models,
        uses_math=False,
        how=f"{models.description}, {len(models.trees.feature):,} nodes, in the order of evaluation",
    )


def add_leaves(
    tables: Tables,
    values: npt.NDArray[np.float64],
    summation: Summation,
    divisor: float,
    n_quits: int,
) -> str:
    """Add the leaves' values; returns what a leaf adds to a running sum, with {} for its number."""
    if summation in (Summation.FLOAT32, Summation.FLOAT32_LATE):
        tables.add("leaf_value", values.astype(np.float32), "what each leaf adds")
        return "leaf_value[{}]"
    own = real_narrowed(values)
    tables.add("leaf_value", own, "what each leaf adds")
    if divisor == 1:
        return "leaf_value[{}]" if own.dtype == np.float32 else "as_float(leaf_value[{}])"
    if n_quits:
        tables.add(
            "leaf_step",
            (values / divisor).astype(np.float32),
            "what each leaf adds to the running sum: its part of the mean",
        )
    return "leaf_step[{}]"


def add_thresholds(tables: Tables, policy: Policy, n_quits: int) -> None:
    """Add the thresholds that rows can cross."""
    for name, values in (("lower", policy.lower), ("upper", policy.upper)):
        if can_cross(policy, n_quits)[name]:
            side = "negative below" if name == "lower" else "positive above"
            tables.add(name, values[:n_quits], f"after each step, a row quits {side} it")


def comparisons(policy: Policy, n_quits: int) -> dict[str, str]:
    """The test of a running sum, and which way it quits."""
    can = can_cross(policy, n_quits)
    below, above = "sum < lower[r]", "sum > upper[r]"
    if can["lower"] and can["upper"]:
        return {"quits": f"{below} || {above}", "positive": above}
    if can["lower"]:
        return {"quits": below, "positive": "0"}
    return {"quits": above, "positive": "1"}


def can_cross(policy: Policy, n_quits: int) -> dict[str, bool]:
    """Whether some row may quit on each side."""
    return {
        "lower": bool((policy.lower[:n_quits] > -np.inf).any()),
        "upper": bool((policy.upper[:n_quits] < np.inf).any()),
    }


def full_score(models: Any, leaf: str, library: str) -> str:
    """The function that adds the full score."""
    rule, start = models.summation, float(models.start)
    late = rule in (Summation.FLOAT32_LATE, Summation.FLOAT64_LATE)
    narrow = rule in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    kind = "float" if narrow else "double"
    first = 0.0 if late else float(np.float32(start)) if narrow else start
    begin = f"{kind} total = {real_literal(first, single=narrow)};"
    add = "total += leaf_value[leaf[place[t]]];"
    divisor = real_literal(models.divisor, single=False)
    base = real_literal(start, single=False)
    finish = {
        Summation.FLOAT32: "return total;",
        Summation.FLOAT32_LATE: f"return as_float((double)total + {base});",
        Summation.FLOAT64_LATE: f"return total + {base};",
        Summation.FLOAT64: "return total;" if models.divisor == 1 else f"return total / {divisor};",
    }.get(rule, "")
    if rule == Summation.SHARES:
        begin += " double other = 0;"
        add = "{\n        total += leaf_value[leaf[place[t]]];\n"
        add += "        other += leaf_other[leaf[place[t]]];\n    }"
        finish = _SHARES.format(divisor=divisor, above=real_literal(ABOVE_HALF, single=False))
    return _FULL_SCORE.format(library=library, leaf=leaf, start=begin, add=add, finish=finish)
