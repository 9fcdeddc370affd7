"""Draw docs/images/architecture.svg from the imports in src/qwyc: `python docs/architecture/draw.py`.

Layers stand one above the other, and an arrow goes from a layer to each that it imports from. A module
that is in no layer, or an import that goes up, is an error: the picture cannot be drawn untrue. Arrows
to the ground, which all have, are left out."""

from __future__ import annotations

import ast
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "qwyc"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

# From what users touch down to what everything stands on: name, what it does, modules.
LAYERS = [
    ("doors", "how people come in", "cli __main__ estimator demo bench inspection plot"),
    ("making", "from a model and rows to a classifier", "optimize verify"),
    ("spreading", "Spark, Ray, Dask", "distributed"),
    ("proving", "against the model itself, against the full ensemble", "parity compare"),
    (
        "classifier",
        "ensemble, policy, certificate; its file",
        "classifier artifact header speed card",
    ),
    ("reading", "what other libraries have trained", "importers"),
    ("promising", "what is known about new rows", "certify provable binomial"),
    ("fitting", "order and thresholds from scores", "fit orders thresholds stopping fan problem"),
    ("ensemble", "base models, and every one of them on every row", "ensemble cascade"),
    ("deciding", "policies, and what they decide", "policy scores tally answers"),
    (
        "rows",
        "any table to the matrix that trees take",
        "datafiles csvfiles batch tables categories rows",
    ),
    (
        "ground",
        "used by all of the above",
        "errors options threads progress capacity outputs timing datasets border cityhash reference",
    ),
    ("native", "C++: every hot loop", "_native"),
]
GROUND = next(i for i, (name, _, _) in enumerate(LAYERS) if name == "ground")
WIDTH, LEFT, BOX, HEIGHT, GAP = 960, 20, 650, 46, 16
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#64869c")


def layer_of() -> dict[str, int]:
    """Which layer each module is in."""
    return {m: i for i, (_, _, modules) in enumerate(LAYERS) for m in modules.split()}


def imports() -> Counter[tuple[str, str]]:
    """(module, module that it imports) at run time, and how many statements say so."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        importer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if importer == "__init__":
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = []
        for node in ast.walk(tree):
            for name in _imported(node):
                if name not in (importer, "", "experiments"):
                    found[importer, name] += 1
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
        return [".".join(parts[1:2]) for parts in names if parts[0] == "qwyc"]
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "qwyc":
        below = (node.module or "").split(".")[1:2]
        names = below or [alias.name for alias in node.names]
        # `from qwyc import x` of a module; what is no module comes from the package itself
        return [n for n in names if (PACKAGE / n).is_dir() or list(PACKAGE.glob(f"{n}.py*"))]
    return []


def arrows() -> Counter[tuple[int, int]]:
    """From layer to layer, and how many pairs of modules stand behind it."""
    layer, found = layer_of(), Counter()
    there = {p.relative_to(PACKAGE).parts[0].removesuffix(".py") for p in PACKAGE.rglob("*.py")}
    if missing := there - set(layer) - {"__init__"}:
        raise SystemExit(f"in no layer: {sorted(missing)}")
    if gone := set(layer) - there - {"_native"}:
        raise SystemExit(f"no such module: {sorted(gone)}")
    for above, below in imports():
        if layer[above] > layer[below]:
            raise SystemExit(f"{above} imports {below}, which stands above it")
        if layer[above] < layer[below] != GROUND:
            found[layer[above], layer[below]] += 1
    return found


def draw() -> str:
    """The picture, as SVG."""
    lines = arrows()
    height = len(LAYERS) * (HEIGHT + GAP) + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="DejaVu Sans, Helvetica, sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="context-stroke"/>'
        "</marker></defs>",
    ]
    top = [GAP + i * (HEIGHT + GAP) for i in range(len(LAYERS))]
    leaving, coming = Counter(a for a, _ in lines), Counter(b for _, b in lines)
    gone, come = Counter[int](), Counter[int]()
    right = LEFT + BOX
    for (above, below), count in sorted(lines.items(), key=lambda line: (line[0][0], line[0][1])):
        gone[above] += 1
        come[below] += 1
        y1 = top[above] + HEIGHT * gone[above] / (leaving[above] + 1)
        y2 = top[below] + HEIGHT * (coming[below] + 1 - come[below]) / (coming[below] + 1)
        reach = right + 26 + 23 * (below - above)
        out.append(
            f'<path d="M{right} {y1:.1f} C{reach} {y1:.1f} {reach} {y2:.1f} {right + 1} {y2:.1f}" '
            f'fill="none" stroke="{COLOURS[above % len(COLOURS)]}" '
            f'stroke-width="{0.8 + 0.3 * min(count, 5):.1f}" marker-end="url(#tip)"/>'
        )
    for (name, what, modules), y in zip(LAYERS, top, strict=True):
        fill = "#e8eefb" if name != "native" else "#fdeedd"
        out += [
            f'<rect x="{LEFT}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="7" fill="{fill}" '
            'stroke="#5b7fc7" stroke-opacity="0.6"/>',
            f'<text x="{LEFT + 12}" y="{y + 19}" font-size="14" font-weight="bold" fill="#1d2b45">'
            f'{escape(name)}<tspan font-weight="normal" font-size="12" fill="#5a6780">  {escape(what)}'
            "</tspan></text>",
            f'<text x="{LEFT + 12}" y="{y + 37}" font-size="11" font-family="DejaVu Sans Mono, monospace" '
            f'fill="#33415c">{escape(modules.replace("_native", _native_files()))}</text>',
        ]
    return "\n".join([*out, "</svg>", ""])


def _native_files() -> str:
    names = {path.parent.name for path in (ROOT / "native").glob("*/*.cpp")}
    return " ".join(sorted(names - {"tests"}))


if __name__ == "__main__":
    PICTURE.write_text(draw())
