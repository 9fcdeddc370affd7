"""docs/limits.md lists every limit with its value."""

import re
from pathlib import Path

from qwyc import limits

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()


def test_every_limit_is_on_the_page():
    rows = dict(re.findall(r"^\| `(MAX_\w+)` \| ([0-9,]+) \|", PAGE, re.MULTILINE))
    constants = {name: value for name, value in vars(limits).items() if name.startswith("MAX_")}
    assert {name: int(value.replace(",", "")) for name, value in rows.items()} == constants


def test_every_bound_on_memory_is_on_the_page():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) MB \| (\d+) \|$", PAGE, re.MULTILINE)
    bounds = {
        name: (bound.fixed // limits.MB, bound.factor) for name, bound in limits.MEMORY.items()
    }
    assert {name: (int(fixed), int(factor)) for name, fixed, factor in rows} == bounds


def test_limits_of_the_native_core_are_the_same():
    native = Path(__file__).parents[2] / "native" / "core"
    nodes = re.search(r"limit = size_t\{1\} << (\d+)", (native / "forest.cpp").read_text())
    assert (1 << int(nodes[1])) - 1 == limits.MAX_NODES
    codes = re.search(r"kMaxCategoryCodes = 1 << (\d+)", (native / "categories.hpp").read_text())
    assert 1 << int(codes[1]) == limits.MAX_CATEGORY_CODES
