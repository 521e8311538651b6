"""Draws how perdure grows from what `bench/scale.py` measured: the picture and the table of docs/SCALE.md.

    python bench/scale.py --backend sqlite --json bench/growth.json    measure; not on a busy machine
    python tools/growth.py             write docs/images/growth.svg, and the table between `<!-- growth: … -->` and its end
    python tools/growth.py --check     write nothing; exit 1 if one of the two is not what the file says

The same file gives the same picture, byte for byte. What was not measured at a size is left out of its line.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import figures

ROOT = Path(__file__).resolve().parents[1]
MEASURED, PICTURE, PAGE = ROOT / "bench" / "growth.json", ROOT / "docs" / "images" / "growth.svg", ROOT / "docs" / "SCALE.md"
BLOCK = re.compile(r"(<!-- growth: [^>]*-->\n).*?(?=<!-- end -->)", re.DOTALL)
CODE = ("src/perdure/services", "src/perdure/engine", "src/perdure/adapters/sql", "src/perdure/adapters/sqlite")

# As wide as a narrow telephone, where it is shown in its own size: smaller, its words could not be read.
WIDTH, LEFT, RIGHT, HEAD, PLOT, FOOT = 390, 44, 268, 34, 140, 40
LABEL_STEP = 14
TIMES = {
    "recall, first": "first recall",
    "recall, after an append": "after an append",
    "recall p95": "recall, p95",
    "recall": "recall",
    "context": "context",
    "append": "append",
}
SIZES = {"file_mb": "file", "index_mb": "index in it", "process_mb": "process"}
HUES = {
    "recall, first": "#c2500b",
    "recall, after an append": "#a8338f",
    "recall p95": "#2f74d0",
    "recall": "#2f74d0",
    "context": "#2a8a4a",
    "append": "#8a6d1f",
    "file_mb": "#5a6fc0",
    "index_mb": "#2a8a8a",
    "process_mb": "#c2500b",
}
DASHED = ("recall p95",)
STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 14px; font-weight: 600 }
  .small { font-size: 11px; fill: #59636e }
  .right { text-anchor: end }
  .middle { text-anchor: middle }
  .ground { fill: #ffffff }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round }
  .dashed { stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .small { fill: #9ea7b3 }
    .ground { fill: #0d1117 }
    .grid { stroke: #30363d }
    .line, .dot { filter: brightness(1.35) }
  }
"""

Point = tuple[float, float]


@cache
def measured() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return told


def parts() -> dict[str, list[dict[str, Any]]]:
    """The sizes on SQLite: of more and more users, and of one user with more and more memories."""
    return {part: measured()["sqlite"][part] for part in ("one", "users")}


def figure(size: dict[str, Any], what: str) -> float | None:
    """One figure of a size, in ms or MB; None where it was not measured."""
    if what in SIZES:
        found: float | None = size.get(what)
        return found
    task, _, share = what.removesuffix(" p95"), "", "p95" if what.endswith(" p95") else "p50"
    timed: float | None = size["ms"].get(task, {}).get(share)
    return timed


# The picture


@dataclass(frozen=True)
class Panel:
    """One plot: what grows to the right, and lines of what that costs."""

    title: str
    across: str
    lines: dict[str, list[Point]]
    top: int

    @property
    def ends(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The powers of ten from which and up to which each axis goes."""
        points = [point for line in self.lines.values() for point in line]
        return tuple(_powers([point[axis] for point in points]) for axis in (0, 1))  # type: ignore[return-value]

    def x(self, value: float) -> float:
        low, high = self.ends[0]
        return round(LEFT + (RIGHT - LEFT) * (math.log10(value) - low) / (high - low), 1)

    def y(self, value: float) -> float:
        low, high = self.ends[1]
        return round(self.top + HEAD + PLOT * (high - math.log10(value)) / (high - low), 1)

    def drawn(self) -> list[str]:
        bottom = self.top + HEAD + PLOT
        told = [f'<text class="title" x="12" y="{self.top + 18}">{escape(self.title)}</text>']
        for power in range(self.ends[1][0], self.ends[1][1] + 1):
            y = self.y(10**power)
            told.append(f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/>')
            told.append(f'<text class="small right" x="{LEFT - 6}" y="{y + 4}">{_short(10**power)}</text>')
        steps = [10**power for power in range(self.ends[0][0], self.ends[0][1] + 1)]
        told += [f'<text class="small middle" x="{self.x(step)}" y="{bottom + 16}">{_short(step)}</text>' for step in steps]
        told.append(f'<text class="small middle" x="{(LEFT + RIGHT) // 2}" y="{bottom + 31}">{self.across}</text>')
        for what, points in self.lines.items():
            at = [(self.x(across), self.y(up)) for across, up in points]
            path = " ".join(f"{'L' if place else 'M'}{x} {y}" for place, (x, y) in enumerate(at))
            dashed = " dashed" if what in DASHED else ""
            told.append(f'<path class="line{dashed}" d="{path}" style="stroke:{HUES[what]}"/>')
            told += [f'<circle class="dot" cx="{x}" cy="{y}" r="3" style="fill:{HUES[what]}"/>' for x, y in at]
        return told + self.labels()

    def labels(self) -> list[str]:
        """What each line is, at its end, moved apart where lines end close to each other."""
        ends = {what: (self.x(points[-1][0]), self.y(points[-1][1])) for what, points in self.lines.items()}
        ordered = sorted(ends, key=lambda what: ends[what][1])
        wanted = [ends[what][1] for what in ordered]
        top, bottom = self.top + HEAD, self.top + HEAD + PLOT
        at = _apart(wanted, top, bottom)
        told = []
        for what, y in zip(ordered, at, strict=True):
            from_x, from_y = ends[what]
            value = _short(self.lines[what][-1][1])
            lead = f"M{from_x} {from_y} L{RIGHT + 8} {y}"
            told.append(f'<path class="line" d="{lead}" style="stroke:{HUES[what]};stroke-width:1;opacity:0.5"/>')
            label = f"{(TIMES | SIZES)[what]} {value}"
            told.append(f'<text class="small" x="{RIGHT + 10}" y="{round(y + 4, 1)}">{escape(label)}</text>')
        return told


def _powers(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _short(value: float) -> str:
    """A number in few signs: 0.3, 12, 1,000, 100k, 1M."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if value >= 10_000:
        return f"{value / 1_000:.0f}k"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _apart(wanted: Sequence[float], top: float, bottom: float) -> list[float]:
    """Each as near to where it should be as the others leave room."""
    at: list[float] = []
    for place in wanted:
        at.append(max(place, at[-1] + LABEL_STEP if at else top))
    last = bottom
    for number in reversed(range(len(at))):
        at[number] = round(min(at[number], last), 1)
        last = at[number] - LABEL_STEP
    return at


def panels() -> list[Panel]:
    grows = {"one": ("One user", "memories of the user", "memories"), "users": ("Many users", "users", "users")}
    made, top = list[Panel](), 8
    for part, sizes in parts().items():
        who, across, key = grows[part]
        for costs, named in (("a call, in ms", TIMES), ("file and process, in MB", SIZES)):
            lines = {what: [(size[key], value) for size in sizes if (value := figure(size, what))] for what in named}
            made.append(Panel(f"{who}: {costs}", across, {what: line for what, line in lines.items() if line}, top))
            top += HEAD + PLOT + FOOT
    return made


def picture() -> str:
    told = measured()
    drawn = panels()
    height = drawn[-1].top + HEAD + PLOT + FOOT + 34
    said = (f"Measured at commit {told['commit']}, {told['date']}.", "Medians, and p95 dashed; both axes are logarithmic.")
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
            "<title>What calls, file and process cost as one user has more memories, and as there are more users</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>',
            *(line for panel in drawn for line in panel.drawn()),
            *(f'<text class="small" x="12" y="{height - 26 + 15 * line}">{words}</text>' for line, words in enumerate(said)),
            "</svg>\n",
        )
    )


# The table


COLUMNS = {
    "recall, first": "recall, first since opening",
    "recall": "recall",
    "recall, after an append": "recall after an append",
    "append": "append",
    "context": "context",
    "series merge": "series merge",
    "series query": "series query",
}


def table() -> str:
    """The figures, in the words of the page: p50 / p95 in ms."""
    shown = {
        what: said for what, said in COLUMNS.items() if any(what in size["ms"] for part in parts().values() for size in part)
    }
    head = ["users", "memories", "file", "process", *shown.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for part in ("users", "one"):
        for size in parts()[part]:
            cells = [
                f"{size['users']:,}",
                f"{size['memories']:,}",
                *(_mb(size.get(what)) for what in ("file_mb", "process_mb")),
            ]
            lines.append("| " + " | ".join(cells + [_pair(size["ms"].get(what)) for what in shown]) + " |")
    return "\n".join([said_of_it(), "", *lines, "", _ends()]) + "\n"


def said_of_it() -> str:
    told = measured()
    changes = figures.commits_since(CODE, told["commit"])
    since = f", {changes} change{'s' * (changes > 1)} since" if changes else ""
    on = f"{told['machine']['cores']} cores, {told['machine']['file system']}"
    busy = told["busy"] and told["busy"] > figures.BUSY
    warned = f", busy ({told['busy']} × the processor time): for orientation only" if busy else ""
    how = f"every write synced; p50 / p95 in milliseconds; {told['conditions']}."
    return f"Measured at commit {told['commit']}{since}, on {on}{warned}, {how}"


def _ends() -> str:
    """How little many users cost, and how much one large user does."""
    ratios = [one["value"] for one in measured()["sqlite"]["ratios"].values()]
    crowd, large = parts()["users"], parts()["one"][-1]
    said = [
        f"From {crowd[0]['users']:,} to {crowd[-1]['users']:,} users a call costs {min(ratios):.2f} × to {max(ratios):.2f} ×."
    ]
    memory = f" and {_mb(large['process_mb'])} of memory in the process" if large.get("process_mb") else ""
    calls = f"{_ms(figure(large, 'recall'))} ms a recall, {_ms(figure(large, 'recall, first'))} ms the first one"
    return " ".join([*said, f"One user with {large['memories']:,} memories costs {calls}{memory}."])


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _mb(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f} MB"


def _pair(found: dict[str, float] | None) -> str:
    return "–" if found is None else f"{_ms(found['p50'])} / {_ms(found.get('p95'))}"


def written(text: str) -> str:
    """The page with its table as it is now."""
    return BLOCK.sub(lambda block: block[1] + table(), text)


def main() -> int:
    parser = argparse.ArgumentParser(description="The picture and the table of how perdure grows, from bench/growth.json.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if one of the two is not what the file says"
    )
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    if given.check:
        same = figures.SINCE.sub("", page) == figures.SINCE.sub("", written(page))
        return 0 if same and PICTURE.read_text(encoding="utf-8") == picture() else 1
    PICTURE.write_text(picture(), encoding="utf-8")
    PAGE.write_text(written(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
