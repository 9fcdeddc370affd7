"""Trees of K classes in C: quit on the lead of a class, or decide by the full scores.

A filter for one class quits where another class is far enough ahead of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qwyc.files.export_c.nodes import AT_ONCE, Layout, add_nodes, walked
from qwyc.files.export_c.program import Program, Tables, joined, quit_end
from qwyc.files.export_c.text import c_type, narrowed, real_literal
from qwyc.files.export_c.ties import decide_full
from qwyc.files.export_c.trees import add_leaves
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.trees import Summation
from qwyc.policy.filter_policy import ClassPolicy, FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy

_DECIDE = """
static int decide(const real *row, int32_t *steps, double *score) {{
    {leaf} leaf[{walked}];
    double sum[N_SCORES];
    uint32_t t, k;
{quitting}    for (t = {begin}; t < N_TREES; t += {at_once}) walk(t, row, leaf + t);
    full_scores(leaf, sum);
    if (steps) *steps = N_STEPS;
    if (score)
        for (k = 0; k < N_SCORES; ++k) score[k] = sum[k];
    return decide_full(sum);
}}
"""

_QUITTING = """    uint32_t r;
    for (k = 0; k < N_SCORES; ++k) sum[k] = base[k];
    for (r = 0, t = 0; r < N_QUITS; ++r) {{
{variables}        for (; t < step_end[r]; ++t) {{
            if (t % {at_once} == 0) walk(t, row, leaf + t);
            {add}
        }}
{find}        if ({quits}) {{
            if (steps) *steps = (int32_t)r + 1;
            if (score)
                for (k = 0; k < N_SCORES; ++k) score[k] = sum[k];
            return leader;
        }}
{rule_out}    }}
"""

_LEAD_VARIABLES = """        double best, second, lead;
        int leader = 0;
"""

_FIND_LEADER = """        best = sum[0], second = -INFINITY;
        for (k = 1; k < N_SCORES; ++k) {
            if (sum[k] > best) {
                second = best, best = sum[k], leader = (int)k;
            } else if (sum[k] > second) {
                second = sum[k];
            }
        }
        lead = best - second > 0 ? best - second : 0;
"""

_FILTER_VARIABLES = "        int leader = ONLY == 0; /* the first class besides ONLY */\n"

_FIND_BEST_OTHER = """        for (k = (uint32_t)leader + 1; k < N_SCORES; ++k)
            if (k != ONLY && sum[k] > sum[leader]) leader = (int)k;
"""

_RULE_OUT = """        for (k = 0; k < N_SCORES; ++k)
            if (best - sum[k] > ruled_out_at[r]) sum[k] = -INFINITY;
"""

_FULL_SCORES = """
/* The sums as {library} makes them: in the order of the model, and rounded where it rounds. */
static void full_scores(const {leaf} *leaf, double *score) {{
    {kind} total[N_SCORES];
    uint32_t t, k;
    for (k = 0; k < N_SCORES; ++k) total[k] = {first};
    for (t = 0; t < N_TREES; ++t) {{
        const uint32_t at = place[t];
        {add}
    }}
    for (k = 0; k < N_SCORES; ++k) score[k] = {finish};
}}
"""


def program(models: ClassTreeModels, policy: ClassPolicy, library: str) -> Program:
    """The trees along the policy's order; those of a base model stay together."""
    begin, K = models.step_begin, models.n_scores
    order = np.concatenate([np.arange(begin[r], begin[r + 1]) for r in policy.order])
    tables, layout = Tables(), Layout.of(models.trees, order)
    leaf = c_type(layout.leaf_type)
    walk = add_nodes(tables, layout.trees, models.less_equal, models.truncates, leaf)
    n_quits = quit_end(
        np.isfinite(policy.gap)
        if isinstance(policy, FilterPolicy)
        else np.asarray(np.isfinite(policy.lead).any(axis=1))
    )
    leaves = _leaves(models, order)
    step = add_leaves(tables, leaves, models.summation, models.divisor, n_quits)
    tables.add("place", narrowed(layout.place), "where each tree of the model is, in its order")
    ends = np.cumsum(np.diff(begin)[policy.order])
    if n_quits:
        tables.add("step_end", narrowed(ends[:n_quits]), "where the trees of each step end")
        tables.add("base", models.base, "what the running sums start from")
    if not models.has_vectors:
        tables.add("tree_class", narrowed(models.tree_class[order]), "what each tree adds to")
    quitting = ""
    if n_quits:
        quitting = _quitting(tables, models, policy, n_quits, step)
    full = _full_scores(tables, models, leaf, library)
    tie_code, uses_math = decide_full(models.ties)
    n_trees, quit_trees = len(order), int(ends[n_quits - 1]) if n_quits else 0
    only = f", ONLY = {policy.only}" if isinstance(policy, FilterPolicy) else ""
    sizes = (
        f"enum {{ N_TREES = {n_trees}, N_STEPS = {models.n_models}, N_SCORES = {K}, "
        f"N_QUITS = {n_quits}{only} }};"
    )
    decide = _DECIDE.format(
        leaf=leaf,
        walked=walked(n_trees),
        begin=walked(quit_trees),
        at_once=AT_ONCE,
        quitting=quitting,
    )
    return Program(
        tables=tables.text,
        code=joined([sizes, *walk, full, tie_code, decide]),
        n_bytes=tables.n_bytes,
        stack=layout.leaf_type.itemsize * n_trees + 24 * K,
        uses_math=uses_math,
        how=f"{models.description}, {len(models.trees.feature):,} nodes, in the order of evaluation",
    )


def _leaves(models: ClassTreeModels, order: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """What leaves add, in the new order of their trees; K numbers for each leaf, or one."""
    leaves = models.leaf_vector if models.has_vectors else models.trees.leaf_value
    begin = models.trees.leaf_begin
    return np.concatenate([leaves[begin[t] : begin[t + 1]] for t in order]).ravel()


def _quitting(
    tables: Tables,
    models: ClassTreeModels,
    policy: ClassPolicy,
    n_quits: int,
    step: str,
) -> str:
    """The steps after which a row may quit."""
    add = f"sum[tree_class[t]] += {step.format('leaf[t]')};"
    if models.has_vectors:
        number = step.format("leaf[t] * (uint32_t)N_SCORES + k")
        add = f"for (k = 0; k < N_SCORES; ++k) sum[k] += {number};"
    if isinstance(policy, FilterPolicy):
        note = "after each step, a row leaves where another class is ahead of ONLY by more"
        tables.add("gap_to_leave", policy.gap[:n_quits], note)
        return _QUITTING.format(
            variables=_FILTER_VARIABLES,
            at_once=AT_ONCE,
            add=add,
            find=_FIND_BEST_OTHER,
            quits="sum[leader] - sum[ONLY] > gap_to_leave[r]",
            rule_out="",
        )
    index, rule_out = _lead_tables(tables, policy, n_quits)
    return _QUITTING.format(
        variables=_LEAD_VARIABLES,
        at_once=AT_ONCE,
        add=add,
        find=_FIND_LEADER,
        quits=f"lead > lead_to_quit[{index}]",
        rule_out=rule_out,
    )


def _lead_tables(tables: Tables, policy: LeadPolicy, n_quits: int) -> tuple[str, str]:
    """The index of the threshold on a lead, and the code that rules classes out."""
    lead = policy.lead[:n_quits]
    shared = bool((lead == lead[:, :1]).all())
    note = "after each step, a row quits for the class that leads by more"
    tables.add("lead_to_quit", np.ascontiguousarray(lead[:, 0] if shared else lead), note)
    rule_out = ""
    if np.isfinite(policy.ruled_out_at[:n_quits]).any():
        tables.add("ruled_out_at", policy.ruled_out_at[:n_quits], "classes further behind are out")
        rule_out = _RULE_OUT
    return "r" if shared else "r * N_SCORES + (uint32_t)leader", rule_out


def _full_scores(tables: Tables, models: ClassTreeModels, leaf: str, library: str) -> str:
    """The function that adds the full scores."""
    rule = models.summation
    late = rule in (Summation.FLOAT32_LATE, Summation.FLOAT64_LATE)
    narrow = rule in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    first = "0"
    if models.start.any() or np.signbit(models.start).any():
        start = models.start.astype(np.float32) if narrow and not late else models.start
        tables.add(
            "start", start, "what the library's own sums start from, or have added at the end"
        )
        first = "0" if late else "start[k]"
        after = "start[k]"
    else:
        after = "0.0"
    add = "total[tree_class[at]] += leaf_value[leaf[at]];"
    if models.has_vectors:
        add = (
            "const uint32_t own = leaf[at] * (uint32_t)N_SCORES;\n        "
            "for (k = 0; k < N_SCORES; ++k) total[k] += leaf_value[own + k];"
        )
    finish = {
        Summation.FLOAT32: "total[k]",
        Summation.FLOAT32_LATE: f"as_float((double)total[k] + {after})",
        Summation.FLOAT64_LATE: f"total[k] + {after}",
    }.get(rule, "total[k]")
    if models.divisor != 1:
        finish = f"total[k] / {real_literal(models.divisor, single=False)}"
    return _FULL_SCORES.format(
        library=library,
        leaf=leaf,
        kind="float" if narrow else "double",
        first=first,
        add=add,
        finish=finish,
    )
