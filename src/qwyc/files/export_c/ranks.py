"""Nodes of the small form: thresholds are ranks among those of their feature, and categories are codes.

Before any tree is walked, each value of a row becomes one small integer: the number of thresholds below it,
or its code. Nodes compare these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.files.export_c.nodes import Layout, add_sets
from qwyc.files.export_c.program import Tables
from qwyc.files.export_c.text import narrowed
from qwyc.model.trees import NodeFlag, Trees

_RANKS = """
/* A small integer for each feature: how many of its thresholds are {side} the value{or_code}.
   MISSING for NaN. */
static void rank_features(const real *row, {rank} *rank) {{
    uint32_t f;
    for (f = 0; f != N_NUMERICAL; ++f) {{
        const real x = value_of(row, used_feature[f]);
        uint32_t low = cut_begin[f], high = cut_begin[f + 1];
        while (low < high) {{
            const uint32_t middle = (low + high) / 2;
            if (cut[middle] {compare} x) {{
                low = middle + 1;
            }} else {{
                high = middle;
            }}
        }}
        rank[f] = ({rank})(x != x ? MISSING : low - cut_begin[f]);
    }}
{codes}}}
"""

_CODES = """    for (; f < N_USED; ++f) {{ /* categories */
        const real x = value_of(row, used_feature[f]);
        const int known = x {least} && x < n_codes[f - N_NUMERICAL];
        rank[f] = ({rank})(x != x ? MISSING : known ? (uint32_t)x : UNKNOWN);
    }}
"""

_WALK = """
/* The leaf that a row reaches in a tree, counted over all trees. */
static uint32_t leaf_of(uint32_t tree, const {rank} *rank) {{
    const uint32_t begin = tree_begin[tree], n = tree_begin[tree + 1] - begin;
    uint32_t at = 0; /* from n on: leaf at - n of the tree */
    while (at < n) {{
        const uint32_t node = begin + at, word = node_feature[node], own = rank[word >> {shift}];
        int left = own <= node_cut[node];
{by_set}        if (own == MISSING) left = (int)(word & 1u);
        at = left ? node_left[node] : node_right[node];
    }}
    return begin + tree + (at - n); /* a tree has one leaf more than it has nodes */
}}
"""

_BY_SET = """        if ((int)(word >> 2) >= N_NUMERICAL) {
            const uint32_t set = node_cut[node], at_word = set_begin[set] + own / 32;
            const uint32_t end = own == UNKNOWN ? 0 : set_begin[set + 1];
            left = (at_word < end && (set_words[at_word] >> own % 32 & 1u)) == (word >> 1 & 1u);
        }
"""


@dataclass(frozen=True)
class Ranks:
    """What the trees compare, in C."""

    type: str  # of a rank
    n_used: int  # features
    missing: int  # the rank of NaN
    sizes: str  # constants, for an enum
    code: list[str]  # the functions `rank_features` and `leaf_of`

    @property
    def stack(self) -> int:
        """Bytes of the ranks of a row."""
        return self.n_used * (1 if self.type == "uint8_t" else 2)


def refused(reason: str) -> ModelError:
    """The error for a model without a small form."""
    return ModelError(
        f"the model has no small form that decides every row the same: {reason}. Export it in "
        "the usual form"
    )


def add_nodes(tables: Tables, layout: Layout, less_equal: bool, truncates: bool) -> Ranks:
    """Add thresholds, sets and nodes."""
    trees = layout.trees
    categorical = (trees.flags & NodeFlag.CATEGORICAL) != 0
    numerical, by_code = (
        np.unique(trees.feature[~categorical]),
        np.unique(trees.feature[categorical]),
    )
    both = np.intersect1d(numerical, by_code)
    if len(both):
        raise refused(f"column {both[0]} is compared with numbers and with categories")
    used = np.concatenate([numerical, by_code])
    place = np.zeros(int(used.max()) + 1, dtype=np.int64)
    place[used] = np.arange(len(used))
    of_node = place[trees.feature]
    node_cut = np.zeros(len(of_node), dtype=np.int64)
    cuts = []
    for f in range(len(numerical)):
        here = of_node == f
        cuts.append(np.unique(trees.threshold[here]))
        node_cut[here] = np.searchsorted(cuts[-1], trees.threshold[here])
    tables.add("used_feature", narrowed(used), "columns that trees look at, those of numbers first")
    _add_cuts(tables, cuts)
    n_codes = _add_codes(tables, trees, categorical, by_code)
    node_cut[categorical] = add_sets(tables, trees, categorical)
    _add_children(tables, trees, of_node, node_cut, len(by_code) > 0)
    most = max([len(own) for own in cuts] + n_codes.tolist())
    if most >= 2**16 - 2:
        raise refused(f"a feature has {most:,} thresholds or categories; ranks go up to 65,533")
    rank = "uint8_t" if most < 2**8 - 2 else "uint16_t"
    missing = 2**8 - 1 if rank == "uint8_t" else 2**16 - 1
    codes = _CODES.format(least="> -1" if truncates else ">= 0", rank=rank) if len(by_code) else ""
    ranking = _RANKS.format(
        rank=rank,
        side="below" if less_equal else "at or below",
        or_code=", or its code" if len(by_code) else "",
        compare="<" if less_equal else "<=",
        codes=codes,
    )
    walk = _WALK.format(
        rank=rank, shift=2 if len(by_code) else 1, by_set=_BY_SET if len(by_code) else ""
    )
    sizes = f"N_USED = {len(used)}, N_NUMERICAL = {len(numerical)}, MISSING = {missing}"
    sizes += f", UNKNOWN = {missing - 1}" if len(by_code) else ""
    return Ranks(rank, len(used), missing, sizes, [ranking, walk])


def _add_cuts(tables: Tables, cuts: list[npt.NDArray[np.float32]]) -> None:
    """Add the thresholds of each feature; one of none, where there are only categories."""
    own = cuts or [np.zeros(1, np.float32)]
    begin = np.concatenate([[0], np.cumsum([len(values) for values in own])])
    tables.add("cut_begin", narrowed(begin), "where the thresholds of each begin")
    tables.add("cut", np.concatenate(own), "thresholds, rising")


def _add_codes(
    tables: Tables,
    trees: Trees,
    categorical: npt.NDArray[np.bool_],
    by_code: npt.NDArray[np.int32],
) -> npt.NDArray[np.int64]:
    """Add the number of codes of each column of categories, and return them: larger codes are in no set."""
    most = np.zeros(len(by_code), dtype=np.int64)
    sizes = np.diff(trees.category_begin)
    np.maximum.at(
        most, np.searchsorted(by_code, trees.feature[categorical]), 32 * sizes[categorical]
    )
    tables.add("n_codes", narrowed(most), "codes that sets of each column of categories may have")
    return most


def _add_children(
    tables: Tables,
    trees: Trees,
    of_node: npt.NDArray[np.int64],
    node_cut: npt.NDArray[np.int64],
    has_sets: bool,
) -> None:
    nodes = np.repeat(np.diff(trees.node_begin), np.diff(trees.node_begin))  # of each node's tree
    left, right = (np.where(c >= 0, c, nodes + ~c) for c in (trees.left, trees.right))
    word = of_node * 2
    if has_sets:
        word = (word + ((trees.flags & NodeFlag.IN_SET_LEFT) != 0)) * 2
    word = word + (trees.flags & NodeFlag.DEFAULT_LEFT)
    note = "the place in used_feature; lowest bit: missing goes left"
    if has_sets:
        note += "; next: a code in the set goes left"
    tables.add("tree_begin", narrowed(trees.node_begin), "where the nodes of each tree begin")
    tables.add("node_feature", narrowed(word), note)
    tables.add("node_cut", narrowed(node_cut), "a row goes left up to this rank; or a set")
    tables.add("node_left", narrowed(left), "a node, or a leaf from the number of nodes on")
    tables.add("node_right", narrowed(right), "the same")
