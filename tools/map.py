"""Draws the map of the code from its imports: layers as rows, their folders as boxes, imports as lines that lead down.

    python tools/map.py            # writes docs/images/architecture.svg and the table of shelves in docs/ARCHITECTURE.md
    python tools/map.py --check    # writes nothing; exit 1 if one of the two is not what the code says
    python tools/map.py --table    # prints the table

A line is thicker the more pairs of modules it stands for. Imports for the type checker are none; one that is made inside a
function and leads up is left out; where another one leads up, the tool stops and names it. The source is read, not imported:
the same source gives the same picture, byte for byte.
"""

from __future__ import annotations

import argparse
import ast
import colorsys
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "perdure"
PICTURE, PAGE = ROOT / "docs" / "images" / "architecture.svg", ROOT / "docs" / "ARCHITECTURE.md"

HUES = {
    "interfaces": 265,
    "aio": 300,
    "app": 335,
    "handles": 5,
    "services": 30,
    "engine": 140,
    "adapters": 210,
    "testing": 230,
    "ports": 185,
    "domain": 65,
}
"""The layers from the top down, each with its colour. What lies beside their folders is in the row of `app`."""
LAYERS = tuple(HUES)
ORDERED = ("services", "engine")
"""The layers whose shelves stand in an order, one above what it imports."""


# What is there


@dataclass(frozen=True, slots=True, order=True)
class Shelf:
    """A folder of a layer, or a module that lies beside the folders."""

    layer: str
    name: str

    @property
    def label(self) -> str:
        return self.name if self.is_module else f"{self.name} {len(members()[self])}"

    @property
    def is_module(self) -> bool:
        return self.name.endswith(".py")


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name, but the one that `python -m` runs."""
    return {
        ".".join(("perdure", *path.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in sorted(SRC.rglob("*.py"))
        if path.name != "__main__.py"
    }


@cache
def imports() -> frozenset[tuple[str, str]]:
    """Every pair of modules, one importing the other when it is loaded or when it first needs it."""
    found = set()
    for name, path in modules().items():
        for target, late in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if target in modules() and target != name and not (late and height(name) < height(target)):
                found.add((name, target))
    upwards = [f"{name} imports {target}" for name, target in sorted(found) if height(name) < height(target)]
    if upwards:
        raise SystemExit("imports that lead up:\n" + "\n".join(upwards))
    return frozenset(found)


def imported(node: ast.AST, *, late: bool = False) -> Iterator[tuple[str, bool]]:
    """The names that are imported below a node of the syntax, and whether that happens inside a function."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from ((alias.name, late) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from ((name if name in modules() else node.module, late) for name in inner)
    for child in ast.iter_child_nodes(node):
        yield from imported(child, late=late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def height(module: str) -> int:
    return -LAYERS.index(shelf_of(module).layer)


@cache
def shelf_of(module: str) -> Shelf:
    path = modules()[module].relative_to(SRC)
    layer = path.parts[0] if path.parts[0] in LAYERS else "app"
    folder = path.parent.relative_to(layer if path.parts[0] == layer else ".").as_posix()
    return Shelf(layer, path.name if folder == "." else folder)


@cache
def members() -> Mapping[Shelf, Sequence[str]]:
    """The modules of each shelf. A file that only makes a folder a package is not one."""
    held: dict[Shelf, list[str]] = {}
    for module, path in modules().items():
        if path.name != "__init__.py":
            held.setdefault(shelf_of(module), []).append(module)
    return {shelf: tuple(names) for shelf, names in sorted(held.items(), key=lambda item: (item[0].is_module, item[0]))}


@cache
def lines() -> Counter[tuple[Shelf, Shelf]]:
    """How many pairs of modules stand behind each line from one shelf to another."""
    counted = Counter((shelf_of(name), shelf_of(target)) for name, target in imports())
    return Counter({ends: count for ends, count in counted.items() if ends[0] != ends[1] and set(ends) <= members().keys()})


def between_layers() -> dict[tuple[str, str], int]:
    counted: Counter[tuple[str, str]] = Counter()
    for (upper, lower), count in lines().items():
        if upper.layer != lower.layer:
            counted[upper.layer, lower.layer] += count
    return dict(sorted(counted.items(), key=lambda item: [LAYERS.index(layer) for layer in item[0]]))


def levels(layer: str) -> list[list[Shelf]]:
    """The shelves of a layer from the top down, each above all that it imports."""
    own = [shelf for shelf in members() if shelf.layer == layer]
    below = {shelf: [lower for upper, lower in lines() if upper == shelf and lower.layer == layer] for shelf in own}

    @cache
    def level(shelf: Shelf) -> int:
        return 1 + max((level(lower) for lower in below[shelf]), default=-1)

    return [[shelf for shelf in own if level(shelf) == number] for number in range(max(map(level, own)), -1, -1)]


# Where it is drawn

WIDTH, MARGIN, LABEL, GUTTER, PAD, GAP = 1100, 12, 104, 150, 7, 7
LEFT, RIGHT = MARGIN + LABEL, WIDTH - GUTTER
BOX, STEP = 20, 27
CHARACTER = 6.6


@dataclass(frozen=True, slots=True)
class Box:
    """A shelf and where it is drawn: the middle of its top, and its width."""

    shelf: Shelf
    x: int
    y: int

    @property
    def width(self) -> int:
        return width_of(self.shelf)


def width_of(shelf: Shelf) -> int:
    return round(CHARACTER * len(shelf.label)) + 16


def flowed(layer: str, top: int) -> tuple[list[Box], int]:
    """The shelves of a layer in lines from left to right, and where the last line ends."""
    boxes, x, y = [], LEFT, top + PAD
    for shelf in members():
        if shelf.layer != layer:
            continue
        if x + width_of(shelf) > RIGHT - PAD:
            x, y = LEFT, y + STEP
        boxes.append(Box(shelf, x + width_of(shelf) // 2, y))
        x += width_of(shelf) + PAD
    return boxes, y + BOX + PAD


def stacked(layer: str, top: int) -> tuple[list[Box], int]:
    """The shelves of a layer by level, and where the lowest ends."""
    rows = levels(layer)
    at = settled(rows, [ends for ends in sorted(lines()) if {end.layer for end in ends} == {layer}])
    boxes = [Box(shelf, at[shelf], top + PAD + STEP * level) for level, row in enumerate(rows) for shelf in row]
    return boxes, top + PAD + STEP * (len(rows) - 1) + BOX + PAD


def settled(rows: list[list[Shelf]], edges: list[tuple[Shelf, Shelf]]) -> dict[Shelf, int]:
    """Where each shelf stands on its level, so that few lines cross and few run behind a box: the best of many small moves."""
    level = {shelf: number for number, row in enumerate(rows) for shelf in row}
    columns = range(LEFT + 60, RIGHT - 59, (RIGHT - LEFT - 120) // 10)
    at = {shelf: columns[(2 * place + 1) * len(columns) // (2 * len(row))] for row in rows for place, shelf in enumerate(row)}

    def cost() -> float:
        ends = [(at[a], level[a] + 0.37, at[b], level[b] - 0.37) for a, b in edges]
        behind = sum(
            abs(at[shelf] - x1 - (x2 - x1) * (level[shelf] - y1) / (y2 - y1)) < width_of(shelf) / 2 + 4
            for x1, y1, x2, y2 in ends
            for shelf in at
            if y1 < level[shelf] < y2
        )
        return (
            5 * behind
            + sum(crossing(one, two) for one, two in combinations(ends, 2))
            + sum(abs(e[0] - e[2]) for e in ends) / 300
        )

    def fits(shelf: Shelf, x: int) -> bool:
        beside = (other for other in rows[level[shelf]] if other != shelf)
        return all(abs(at[other] - x) >= (width_of(other) + width_of(shelf)) / 2 + 8 for other in beside)

    best = cost()
    for _ in range(4):
        for shelf in at:
            for x in columns:
                before = at[shelf]
                if x == before or not fits(shelf, x):
                    continue
                at[shelf] = x
                if (now := cost()) < best - 1e-9:
                    best = now
                else:
                    at[shelf] = before
    return at


def crossing(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    """Whether two lines, each lower at its end than at its start, meet anywhere between their ends."""
    top, bottom = max(one[1], two[1]), min(one[3], two[3])
    if top >= bottom:
        return False
    at = [[x1 + (x2 - x1) * (y - y1) / (y2 - y1) for x1, y1, x2, y2 in (one, two)] for y in (top, bottom)]
    return (at[0][0] - at[0][1]) * (at[1][0] - at[1][1]) < 0


# How it is drawn

STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .layer { font-size: 14px; font-weight: 600 }
  .small { font-size: 11px; fill: #59636e }
  .ground { fill: #ffffff }
  .box { fill: #ffffff; stroke-width: 1 }
  path, line { fill: none; stroke-linecap: round }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .small { fill: #9ea7b3 }
    .ground { fill: #0d1117 }
    .box { fill: #161b22 }
  }
"""
LEGEND = (
    "Lines lead down, from what imports to what is imported; a thicker line stands for more imports. Numbers count modules."
)


@cache
def picture() -> str:
    drawn, boxes, bands, top = list[str](), list[Box](), dict[str, tuple[int, int]](), MARGIN
    for layer in LAYERS:
        placed, bottom = (stacked if layer in ORDERED else flowed)(layer, top)
        boxes += placed
        bands[layer] = (top, bottom)
        drawn.append(band(layer, top, bottom))
        top = bottom + GAP
    at = {box.shelf: box for box in boxes}
    drawn += [straight(at[a], at[b], n) for (a, b), n in sorted(lines().items()) if a.layer == b.layer and a.layer in ORDERED]
    drawn += arcs(bands)
    drawn += [boxed(box) for box in boxes]
    height = top + 18
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
            "<title>The layers of perdure, their folders, and what imports what</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>',
            *drawn,
            f'<text class="small" x="{LEFT}" y="{top + 6}">{LEGEND}</text>',
            "</svg>\n",
        )
    )


def band(layer: str, top: int, bottom: int) -> str:
    count = sum(len(names) for shelf, names in members().items() if shelf.layer == layer)
    middle = (top + bottom) // 2
    words = f'<text class="layer" x="{MARGIN + 8}" y="{middle - 1}">{layer}</text>'
    counted = f'<text class="small" x="{MARGIN + 8}" y="{middle + 12}">{count} modules</text>'
    return (
        f'<rect x="{MARGIN}" y="{top}" width="{RIGHT - MARGIN}" height="{bottom - top}" rx="6" fill="{colour(layer)}"'
        f' fill-opacity="0.13"/>{words}{counted}'
    )


def boxed(box: Box) -> str:
    return (
        f'<rect class="box" x="{box.x - box.width // 2}" y="{box.y}" width="{box.width}" height="{BOX}" rx="4"'
        f' stroke="{colour(box.shelf.layer)}"/>'
        f'<text x="{box.x}" y="{box.y + 14}" text-anchor="middle">{escape(box.shelf.label)}</text>'
    )


def straight(upper: Box, lower: Box, count: int) -> str:
    return (
        f'<line x1="{upper.x}" y1="{upper.y + BOX}" x2="{lower.x}" y2="{lower.y}" stroke="{colour(upper.shelf.layer)}"'
        f' stroke-opacity="0.75" stroke-width="{thickness(count)}">{told(upper.shelf.name, lower.shelf.name, count)}</line>'
    )


def arcs(bands: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """The lines between layers, as bows at the right: into a band above, those from near first, and out of it below."""
    ends = between_layers()
    doors = {
        layer: [("in", a) for a, b in reversed(ends) if b == layer] + [("out", b) for a, b in reversed(ends) if a == layer]
        for layer in LAYERS
    }

    def door(layer: str, kind: str, other: str) -> int:
        top, bottom = bands[layer]
        return round(top + (bottom - top) * (doors[layer].index((kind, other)) + 1) / (len(doors[layer]) + 1))

    for (upper, lower), count in ends.items():
        start, end = door(upper, "out", lower), door(lower, "in", upper)
        out = RIGHT + min(GUTTER * 1.28, 22 + 0.3 * (end - start))
        yield (
            f'<path d="M{RIGHT} {start} C{out:.0f} {start} {out:.0f} {end} {RIGHT + 5} {end}" stroke="{colour(upper)}"'
            f' stroke-opacity="0.8" stroke-width="{thickness(count)}">{told(upper, lower, count)}</path>'
            f'<path d="M{RIGHT} {end} l7 -3.5 v7 z" style="fill:{colour(upper)}"/>'
        )


def told(upper: str, lower: str, count: int) -> str:
    return f"<title>{upper} → {lower}: {count}</title>"


def thickness(count: int) -> str:
    return f"{0.6 + 0.5 * math.log2(count):.2f}"


def colour(layer: str) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(HUES[layer] / 360, 0.48, 0.45))


# The table of shelves

COLUMNS = {
    "engine": "engine",
    "services": "services",
    "handles": "handles",
    "routes": "interfaces/http/routes",
    "pages": "interfaces/web/pages",
    "commands": "interfaces/cli",
}
FAMILIES = {
    "access": "keys accesses",
    "context": "recall prompt",
    "conversation": "messages sessions transcripts turns log chat",
    "jobs": "worker",
    "knowledge": "memories entities todos tasks instructions journal history",
    "lessons": "agents",
    "oversight": "decisions tools",
    "portability": "export import",
    "series": "state",
    "store": "admin system home config",
}
"""Nouns that have a page, a route or a command of their own, by the shelf that holds them."""
APART = {"handles/memory.py"}
"""Modules that bear a noun's name and hold more than that noun."""
TABLE = re.compile(r"(?P<start><!-- shelves: python tools/map.py -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


def table() -> str:
    """The shelves, one noun a row: what each holds, and the folder or modules it has in every layer."""
    nouns = sorted({shelf.name for shelf in members() if shelf.layer in ORDERED and not shelf.is_module})
    rows = [[f"**{noun}**", meaning(noun), *(cell(noun, folder) for folder in COLUMNS.values())] for noun in nouns]
    head = [["shelf", "holds", *COLUMNS], ["---"] * (2 + len(COLUMNS))]
    return "".join(f"| {' | '.join(row)} |\n" for row in head + rows)


def meaning(noun: str) -> str:
    """What the folder says of itself, in its first sentence."""
    package = next(path for layer in ORDERED if (path := SRC / layer / noun / "__init__.py").exists())
    said = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0].partition(". ")[0].rstrip(".")


def cell(noun: str, folder: str) -> str:
    """The number of modules of a folder; elsewhere the modules that are named by a noun of the shelf."""
    if folder in ORDERED:
        own = members().get(Shelf(folder, noun), members().get(Shelf(folder, f"{noun}.py"), ()))
        return str(len(own) or "")
    names = {stem(name) for name in (noun, *FAMILIES.get(noun, "").split())}
    own = [
        path for path in sorted((SRC / folder).iterdir()) if stem(path.stem) in names and f"{folder}/{path.name}" not in APART
    ]
    return ", ".join(f"`{path.stem}`" for path in own)


def stem(noun: str) -> str:
    """The same for one and for many."""
    return re.sub(r"(?<=..)s$", "", re.sub(r"ies$", "y", noun.strip("_")))


def page() -> str:
    """The page with the table as it should be."""
    written = PAGE.read_text(encoding="utf-8")
    return TABLE.sub(lambda part: part["start"] + table() + part["end"], written)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the map of the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not what the code says")
    parser.add_argument("--table", action="store_true", help="print the table of shelves, and write nothing")
    options = parser.parse_args()
    if options.table:
        print(table(), end="")
        return
    wanted = {PICTURE: picture(), PAGE: page()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what the code says" if options.check else f"wrote {path.relative_to(ROOT)}")
        if not options.check:
            path.write_text(wanted[path], encoding="utf-8")
    sys.exit(bool(stale) and options.check)


if __name__ == "__main__":
    main()
