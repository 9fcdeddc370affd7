"""Draw docs/images/architecture.svg: `python docs/architecture/draw.py`.

The layers are those of the import-linter contract "layers" in pyproject.toml. The arrows are the imports
that grimp finds in the package. A caption is the first sentence of the docstring of a package or module.
"""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path

import grimp
from importlinter.api import read_configuration

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "qwyc"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

NATIVE = "_native"
UNDER_ALL = 2  # so many layers at the bottom serve all others; arrows to them are left out
COLOURS = ("#4c72b0", "#dd8452", "#3f8f5a", "#c44e52", "#8172b3", "#8c613c", "#3a9aa8", "#7a7a7a")
WIDTH, LEFT, RIGHT, GAP = 1000, 16, 640, 14  # boxes are between LEFT and RIGHT, arrows to the right
LINE = 15  # height of a line of text
CAPTION, NAMES = 6.0, 6.7  # widths of a character, in the captions and in the names of modules


@dataclass(frozen=True)
class Box:
    """A package or module of qwyc."""

    name: str
    caption: str
    modules: tuple[str, ...]  # its direct children
    calls_native: bool

    def lines(self, width: float) -> tuple[list[str], list[str]]:
        """The caption and the names of the modules, broken to fit a box of this width."""
        available = width - 24
        caption = textwrap.wrap(self.caption, int(available / CAPTION))
        return caption, textwrap.wrap(" ".join(self.modules), int(available / NAMES))


def layers() -> list[list[str]]:
    """Names by layer, from the top, as the contract has them."""
    contracts = read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    (contract,) = [contract for contract in contracts if contract["id"] == "layers"]
    return [
        [name.strip(" ()") for name in layer.replace(":", "|").split("|")]
        for layer in contract["layers"]
    ]


def imports() -> Counter[tuple[str, str]]:
    """(importer, imported), both names of a layer, and how many pairs of modules are behind it."""
    graph = grimp.build_graph("qwyc", cache_dir=None)
    found: Counter[tuple[str, str]] = Counter()
    for module in sorted(graph.modules - {"qwyc", "qwyc.__main__"}):
        for other in sorted(graph.find_modules_directly_imported_by(module)):
            if other != "qwyc":
                found[module.split(".")[1], other.split(".")[1]] += 1
            elif native_only(graph, module):
                found[module.split(".")[1], NATIVE] += 1
    return found


def native_only(graph: grimp.ImportGraph, module: str) -> bool:
    """Whether the native module is all that a module takes from the package itself. grimp knows Python
    files only, so `from qwyc import _native` is an import of `qwyc` to it."""
    details = graph.get_import_details(importer=module, imported="qwyc")
    return all(line["line_contents"].strip() == f"from qwyc import {NATIVE}" for line in details)


def first_sentence(name: str) -> str:
    """Of the docstring of a package or module."""
    files = [PACKAGE / name / "__init__.py", PACKAGE / f"{name}.py", PACKAGE / f"{name}.pyi"]
    file = next(file for file in files if file.exists())
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    sentence = " ".join(docstring.split("\n\n")[0].split()).split(". ")[0]
    return sentence.removesuffix(".").replace("`", "")


def children(name: str) -> tuple[str, ...]:
    """The modules in a package; of the native module, the folders of its source."""
    if name == NATIVE:
        folders = {path.parent.name for path in (ROOT / "native").glob("*/*.cpp")}
        return tuple(sorted(folders - {"capi", "files", "fuzz", "tests"}))  # the C library is apart
    files = [*(PACKAGE / name).glob("*.py"), *(PACKAGE / name).glob("*/__init__.py")]
    inside = {file.relative_to(PACKAGE / name).parts[0].removesuffix(".py") for file in files}
    return tuple(sorted(inside - {"__init__"}))


def draw() -> str:
    """The picture, as SVG."""
    rows, found = layers(), imports()
    boxes = {
        name: Box(name, first_sentence(name), children(name), (name, NATIVE) in found)
        for row in rows
        for name in row
    }
    heights = [row_height([boxes[name] for name in row]) for row in rows]
    tops = list(accumulate(heights[:-1], lambda y, height: y + height + GAP, initial=GAP))
    bottom = tops[-1] + heights[-1]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 34}" '
        f'viewBox="0 0 {WIDTH} {bottom + 34}" font-family="DejaVu Sans, Helvetica, sans-serif">',
        "<title>The layers of qwyc, and which imports which</title>",
        f'<rect width="{WIDTH}" height="{bottom + 34}" fill="#ffffff"/>',
    ]
    for row, top, height in zip(rows, tops, heights, strict=True):
        width = box_width(row)
        for k, name in enumerate(row):
            out += draw_box(boxes[name], LEFT + k * (width + GAP), top, width, height)
    out += draw_arrows(between_rows(rows, found), tops, heights)
    under = ", ".join(name for row in rows[-UNDER_ALL:] for name in row)
    note = f"The more imports, the wider the arrow. Any layer may import {under}: no arrows."
    out.append(text(LEFT, bottom + 22, note, 12))
    return "\n".join([*out, "</svg>", ""])


def box_width(row: list[str]) -> float:
    """Width of each of the boxes of a layer."""
    return (RIGHT - LEFT - GAP * (len(row) - 1)) / len(row)


def row_height(row: list[Box]) -> int:
    """Height of a layer: its tallest box."""
    width = box_width([box.name for box in row])
    most = max(sum(map(len, box.lines(width))) for box in row)
    return 32 + LINE * most


def draw_box(box: Box, x: float, y: float, width: float, height: float) -> list[str]:
    """Name, caption and modules."""
    fill = "#fdf1e2" if box.name == NATIVE else "#edf2fb"
    caption, names = box.lines(width)
    out = [
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="6" fill="{fill}" '
        'stroke="#8ea6d6"/>',
        text(x + 12, y + 20, box.name, 14, "#16233d", 'font-weight="bold"'),
    ]
    if box.calls_native:
        out.append(text(x + width - 10, y + 19, "calls C++", 10, "#b3641a", 'text-anchor="end"'))
    y += 22
    for line in caption:
        y += LINE
        out.append(text(x + 12, y, line, 11, "#4a566e"))
    mono = 'font-family="DejaVu Sans Mono, monospace"'
    for line in names:
        y += LINE
        out.append(text(x + 12, y, line, 11, "#1f4f96", mono))
    return out


def text(x: float, y: float, words: str, size: int, fill: str = "#4a566e", style: str = "") -> str:
    """One line of text."""
    style = f" {style}" if style else ""
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" fill="{fill}"{style}>{escape(words)}</text>'
    )


def between_rows(
    rows: list[list[str]], found: Counter[tuple[str, str]]
) -> Counter[tuple[int, int]]:
    """Imports from layer to layer, without those to the layers that serve all."""
    layer = {name: k for k, row in enumerate(rows) for name in row}
    arrows: Counter[tuple[int, int]] = Counter()
    for (importer, imported), count in found.items():
        above, below = layer[importer], layer[imported]
        if above != below and below < len(rows) - UNDER_ALL:
            arrows[above, below] += count
    return arrows


def draw_arrows(arrows: Counter[tuple[int, int]], tops: list[int], heights: list[int]) -> list[str]:
    """Arcs to the right of the boxes. Arrows end in the upper part of a layer and start in its lower part,
    sorted by length, so that arcs of one layer do not cross."""
    bulge = 4 / 3 * (WIDTH - RIGHT - 40) / tops[-UNDER_ALL]  # the longest stays inside the picture
    out = []
    for (start, end), count in sorted(arrows.items()):
        y1 = tops[start] + heights[start] * place(arrows, start, (start, end))
        y2 = tops[end] + heights[end] * place(arrows, end, (start, end))
        colour, width = COLOURS[start % len(COLOURS)], 0.9 + 0.35 * min(count, 12)
        reach = RIGHT + 24 + bulge * abs(y2 - y1)
        out += [
            f'<path d="M{RIGHT} {y1:.1f} C{reach:.1f} {y1:.1f} {reach:.1f} {y2:.1f} {RIGHT + 6} {y2:.1f}" '
            f'fill="none" stroke="{colour}" stroke-width="{width:.2f}" stroke-opacity="0.85"/>',
            f'<path d="M{RIGHT} {y2:.1f} l8 -3.5 v7 z" fill="{colour}"/>',
        ]
    return out


def place(arrows: Counter[tuple[int, int]], row: int, arrow: tuple[int, int]) -> float:
    """Where on the side of a layer an arrow ends or starts, from 0 (top) to 1."""
    ends = sorted((a for a in arrows if a[1] == row), reverse=True)  # the shortest on top
    starts = sorted((a for a in arrows if a[0] == row), reverse=True)  # the longest on top
    places = [*ends, *starts]
    return (places.index(arrow) + 1) / (len(places) + 1)


if __name__ == "__main__":
    PICTURE.write_text(draw())
