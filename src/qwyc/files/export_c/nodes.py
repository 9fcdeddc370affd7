"""The nodes of trees as one array, tree by tree in the order of evaluation, and the walk to a leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.files.export_c.program import Tables
from qwyc.files.export_c.text import c_type, lines_of, literals, narrowed, real_literal
from qwyc.model.tree_selection import some_trees
from qwyc.model.trees import NodeFlag, Trees

MOST_SETS = 2**24  # float32 holds their numbers
ZERO = np.float32(1e-35)  # numbers up to this size are missing where a node says so

AT_ONCE = 8  # trees that are walked together, which hides the latency of memory

_NEXT = """
/* The child that a row goes to; at a leaf, which is below 0, it stays. There is no branch on the value,
   because processors cannot predict it. */
static inline int32_t next_of(const struct node *own, int32_t at, const real *row) {
    const struct node *const node = own + (at < 0 ? 0 : at);
    const int32_t next = node->child[!goes_left(node, value_of(row, node->feature))];
    return at < 0 ? at : next;
}
"""

_PLAIN = """
static inline int goes_left(const struct node *node, real x) {{
    return {left};
}}
"""

_IN_SET = """
static int in_set(uint32_t set, real x) {{
    uint32_t code, word;
    if (!(x {least} && x < {most})) return 0; /* also where x is NaN */
    code = (uint32_t)x;
    word = set_begin[set] + code / 32;
    return word < set_begin[set + 1] && (set_words[word] >> (code % 32) & 1u) != 0;
}}
"""

_SPECIAL = """
/* Flags: 1 missing goes left, 2 a set of categories, 4 a code in the set goes left, 8 zero is missing. */
static inline int goes_left(const struct node *node, real x) {{
    if (!(node->flags & {special}u)) return {left};
    if ({missing}) return node->flags & 1;
{by_set}    return x {compare} node->threshold;
}}
"""

_BY_SET = """    if (node->flags & 2u)
        return in_set((uint32_t)node->threshold, x) == ((node->flags & 4u) != 0);
"""


@dataclass(frozen=True)
class Layout:
    """Trees in the order of evaluation."""

    trees: Trees  # those of the model, in this order
    place: npt.NDArray[np.int64]  # (n_trees,) where each tree of the model is

    @classmethod
    def of(cls, trees: Trees, order: npt.NDArray[Any]) -> Layout:
        """`order` (n_trees,) is the tree of the model at each place."""
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(some_trees(trees, np.asarray(order, dtype=np.intp)), place)

    @property
    def leaf_type(self) -> np.dtype[Any]:
        """What holds the number of a leaf."""
        return np.dtype(np.uint16 if int(self.trees.leaf_begin[-1]) < 2**16 else np.uint32)


def add_nodes(
    tables: Tables, trees: Trees, less_equal: bool, truncates: bool, leaf: str
) -> list[str]:
    """Add the tables of nodes; returns the functions up to `walk`, which writes leaves as `leaf`."""
    categorical = (trees.flags & NodeFlag.CATEGORICAL) != 0
    threshold = trees.threshold.copy()
    threshold[categorical] = add_sets(tables, trees, categorical)
    begin = np.pad(trees.node_begin, (0, walked(trees.n_trees) - trees.n_trees), mode="edge")
    tables.add("tree_begin", narrowed(begin), "where the nodes of each tree begin")
    _add_structs(tables, trees, threshold)
    code = []
    if categorical.any():
        least = "> -1" if truncates else ">= 0"
        code.append(_IN_SET.format(least=least, most=real_literal(2**24, single=False)))
    return [*code, _goes_left(trees, less_equal), _NEXT, _walk(leaf)]


def _walk(leaf: str) -> str:
    """The function that walks AT_ONCE trees."""
    each = range(AT_ONCE)
    lines = [f"const uint32_t begin_{i} = tree_begin[tree + {i}u];" for i in (*each, AT_ONCE)]
    lines += [f"int32_t at_{i} = begin_{i} == begin_{i + 1} ? -1 : 0;" for i in each]
    lines.append(f"while (({' & '.join(f'at_{i}' for i in each)}) >= 0) {{")
    lines += [f"    at_{i} = next_of(nodes + begin_{i}, at_{i}, row);" for i in each]
    lines.append("}")
    lines += [
        f"leaf[{i}] = ({leaf})(begin_{i} + tree + {i}u + (uint32_t)(-1 - at_{i}));" for i in each
    ]
    return (
        f"/* The leaves that a row reaches in {AT_ONCE} trees, counted over all trees. Below 0, `at` is\n"
        "   leaf -1 - at of the tree; a tree has one leaf more than it has nodes. */\n"
        f"static void walk(uint32_t tree, const real *row, {leaf} *leaf) {{\n"
        + "".join(f"    {line}\n" for line in lines)
        + "}\n"
    )


def walked(n_trees: int) -> int:
    """Trees, and some more to make the last group whole."""
    return -(-n_trees // AT_ONCE) * AT_ONCE


def _goes_left(trees: Trees, less_equal: bool) -> str:
    compare = "<=" if less_equal else "<"
    left = f"x {compare} node->threshold"
    if (trees.flags & NodeFlag.DEFAULT_LEFT).any():
        left = f"({left}) | ((x != x) & (node->flags & 1))"
    special = int(np.bitwise_or.reduce(trees.flags, initial=0)) & int(
        NodeFlag.CATEGORICAL | NodeFlag.ZERO_IS_MISSING
    )
    if not special:
        return _PLAIN.format(left=left)
    missing = "x != x"
    if special & NodeFlag.ZERO_IS_MISSING:
        zero = real_literal(float(ZERO), single=True)
        missing = f"x != x || ((node->flags & 8u) && x >= -{zero} && x <= {zero})"
    by_set = _BY_SET if special & NodeFlag.CATEGORICAL else ""
    return _SPECIAL.format(
        special=special, left=left, missing=missing, by_set=by_set, compare=compare
    )


def _add_structs(tables: Tables, trees: Trees, threshold: npt.NDArray[Any]) -> None:
    """One node after the other, in the narrowest types."""
    most_nodes = int(np.diff(trees.node_begin).max())
    index = np.dtype(np.int16 if most_nodes < 2**15 else np.int32)
    wide = len(trees.feature) > 0 and int(trees.feature.max()) >= 2**16
    word = np.dtype(np.uint32 if wide else np.uint16)
    fields = [("threshold", threshold.dtype), ("feature", word), ("flags", word)]
    node = np.dtype([*fields, ("child", index, (2,))], align=True)
    columns = (trees.feature, trees.flags, trees.left, trees.right)
    rows = [
        f"{{{number}, {feature}, {flags}, {{{left}, {right}}}}}"
        for number, feature, flags, left, right in zip(
            literals(threshold), *(column.tolist() for column in columns), strict=True
        )
    ]
    rows.append("{0, 0, 0, {-1, -1}}")  # walks of trees without nodes look here
    tables.add_text(
        "/* Child 0 is left. Children are counted within the tree; below 0, it is leaf -1 - child. The\n"
        "   threshold of a set of categories is the number of the set. */\n"
        f"struct node {{\n    real threshold;\n    {c_type(word)} feature, flags;\n"
        f"    {c_type(index)} child[2];\n}};\n"
        f"static const struct node nodes[{len(rows)}] = {{\n{lines_of(rows)}\n}};\n",
        node.itemsize * len(rows),
    )


def add_sets(
    tables: Tables, trees: Trees, categorical: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Add the sets of categories, each once; returns the number of each such node's set."""
    number: dict[bytes, int] = {}
    words: list[npt.NDArray[np.uint32]] = []
    of_node = []
    for node in np.flatnonzero(categorical):
        first, last = trees.category_begin[node : node + 2]
        own = trees.category_words[first:last]
        if own.tobytes() not in number:
            number[own.tobytes()] = len(words)
            words.append(own)
        of_node.append(number[own.tobytes()])
    if len(words) > MOST_SETS:
        raise ModelError(
            f"the trees have {len(words):,} different sets of categories, and exported C has at most "
            f"{MOST_SETS:,}; use a .qwyc file"
        )
    if words:
        begin = np.concatenate([[0], np.cumsum([len(own) for own in words])])
        tables.add("set_begin", narrowed(begin), "where the words of each set of categories begin")
        all_words = np.concatenate(
            [*words, np.zeros(1, np.uint32)]
        )  # one more: C has no empty array
        tables.add("set_words", all_words, "code c is bit c % 32 of word c / 32 of a set")
    return np.array(of_node, dtype=np.int64)
