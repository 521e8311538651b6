"""Drawings as numbers: where bars, lines and circles stand, and the things of a small graph. Templates make SVG of them.

A graph is laid out so that things that hang together lie together; the same graph always looks the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from perdure.domain.reports import DayActivity
from perdure.domain.values import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    Plane = npt.NDArray[np.float64]

WIDTH, HEIGHT, FOOT = 720.0, 120.0, 18.0


@dataclass(frozen=True, slots=True)
class ActivityBar:
    day: date
    x: float
    width: float
    messages_y: float
    messages_height: float
    changes_y: float
    changes_height: float
    messages: int
    changes: int
    label: str


@dataclass(frozen=True, slots=True)
class BarChart:
    width: float
    height: float
    base: float
    """Where the bars stand."""
    bars: tuple[ActivityBar, ...]
    top: int
    """What the highest bar counts."""


def activity(days: Sequence[DayActivity]) -> BarChart:
    """Messages and, above them, changes for each day. Only some days are labelled, so that labels do not touch."""
    top = max((one.messages + one.changes for one in days), default=0)
    base = HEIGHT - FOOT
    step = WIDTH / max(1, len(days))
    scale = (base - 8) / top if top else 0.0
    bars = []
    for place, one in enumerate(days):
        said, changed = one.messages * scale, one.changes * scale
        label = f"{one.day.day} {one.day:%b}" if (len(days) - 1 - place) % 7 == 0 else ""
        bars.append(
            ActivityBar(
                day=one.day,
                x=place * step + step * 0.14,
                width=step * 0.72,
                messages_y=base - said,
                messages_height=said,
                changes_y=base - said - changed,
                changes_height=changed,
                messages=one.messages,
                changes=one.changes,
                label=label,
            )
        )
    return BarChart(WIDTH, HEIGHT, base, tuple(bars), top)


ROUNDS, APART_ROUNDS = 40, 40
GOLDEN = math.pi * (3 - math.sqrt(5))
RADIUS_MIN, RADIUS_MAX = 4.0, 12.0
LABEL_CHARS, CROWD_CHARS, CROWD = 18, 14, 80
LETTER, LINE, MARGIN = 6.4, 13.0, 8.0
"""What a letter and a line of a label take, in the units of the drawing: those of a pixel, at the width it is made for."""
GRAPHS_KEPT = 32
STEPS = np.array([(x, y) for x in range(-264, 265, 24) for y in range(-264, 265, 12)], np.float64)
AROUND = STEPS[np.argsort((STEPS**2).sum(axis=1), kind="stable")]
"""Places around a place, the nearest first; they are tried a part at a time."""
AROUND_PARTS = 12


@dataclass(frozen=True, slots=True)
class Frame:
    """How wide a drawing is shown, and how high it may grow; `nodes_max` is what can be read in it."""

    width: float
    height_max: float
    nodes_max: int


WIDE = Frame(1000.0, 1500.0, 200)
NARROW = Frame(340.0, 620.0, 30)


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    label: str
    x: float
    y: float
    radius: float
    tone: str
    silent: bool
    """Its label would cover that of a heavier one: it is shown when one points at it."""


@dataclass(frozen=True, slots=True)
class Graph:
    width: float
    height: float
    nodes: tuple[Node, ...]
    lines: Markup
    """The links as lines of SVG, each with the places of its two nodes: a thousand are written at once."""


TONES = {"person": "violet", "place": "accent", "org": "blue", "project": "amber", "user": "strong"}


def laid_out(things: Mapping[str, tuple[str, int]], links: Sequence[tuple[str, str, int]], frame: Frame = WIDE) -> Graph:
    """Nodes by name with a label and a weight, and links with theirs. The heaviest that fit are drawn."""
    names = sorted(things, key=lambda name: (-things[name][1], name))[: frame.nodes_max]
    return _drawn(tuple((name, *things[name]) for name in names), tuple(links), frame)


@lru_cache(GRAPHS_KEPT)
def _drawn(things: tuple[tuple[str, str, int], ...], links: tuple[tuple[str, str, int], ...], frame: Frame) -> Graph:
    place = {name: at for at, (name, _, _) in enumerate(things)}
    pairs = [(place[one], place[other], weight) for one, other, weight in links if one in place and other in place]
    heaviest = max((weight for _, _, weight in things), default=1)
    radii = [round(RADIUS_MIN + (RADIUS_MAX - RADIUS_MIN) * math.sqrt(one[2] / max(1, heaviest)), 1) for one in things]
    chars = LABEL_CHARS if len(things) <= CROWD else CROWD_CHARS
    labels = [label if len(label) <= chars else f"{label[: chars - 1].rstrip()}…" for _, label, _ in things]
    sizes = np.array([(max(2 * r, len(label) * LETTER) + 4, 2 * r + LINE + 4) for r, label in zip(radii, labels, strict=True)])
    room = float(sizes.prod(axis=1).sum()) if things else 0.0
    height = min(frame.height_max, max(320.0, 2.4 * room / frame.width))
    spots = _settled(len(things), [*pairs, *_held_together(len(things), pairs)])
    spots = _apart(_fitted(spots, frame.width, height), sizes.reshape(-1, 2), (frame.width, height))
    spots, silent = _moved(spots, sizes.reshape(-1, 2), (frame.width, height))
    nodes = tuple(
        Node(
            name=name,
            label=labels[at],
            x=round(float(spots[at, 0]), 1),
            # The box is the circle and the label below it; its middle is not the circle's.
            y=round(float(spots[at, 1]) - LINE / 2, 1),
            radius=radii[at],
            tone=TONES.get(name.partition(":")[0], "soft"),
            silent=at in silent,
        )
        for at, (name, _, _) in enumerate(things)
    )
    lines = Markup("\n").join(_line(nodes, one, other, weight) for one, other, weight in pairs)
    return Graph(frame.width, round(height, 1), nodes, lines)


def _line(nodes: Sequence[Node], one: int, other: int, weight: int) -> Markup:
    width = round(min(2.5, 0.6 + 0.3 * math.log2(1 + weight)), 2)
    hub = ' class="hub"' if nodes[one].name == "user" else ""
    ends = f'x1="{nodes[one].x}" y1="{nodes[one].y}" x2="{nodes[other].x}" y2="{nodes[other].y}"'
    return Markup(f'<line{hub} {ends} stroke-width="{width}" data-one="{one}" data-other="{other}"/>')  # noqa: S704 - numbers


def _apart(spots: Plane, sizes: Plane, frame: tuple[float, float]) -> Plane:
    """Boxes of these sizes pushed apart, each the shorter way, and kept in the frame, until none covers another."""
    count = len(spots)
    if count < 2:
        return spots
    low = sizes / 2 + MARGIN / 2
    high = np.maximum(low, np.array(frame) - low)
    x, y = spots[:, 0], spots[:, 1]
    need_x, need_y = ((sizes[:, None, at] + sizes[None, :, at]) / 2 for at in (0, 1))
    np.fill_diagonal(need_x, -np.inf)
    order = np.sign(np.arange(count)[:, None] - np.arange(count)[None, :])
    for _ in range(APART_ROUNDS):
        gap_x, gap_y = x[:, None] - x[None, :], y[:, None] - y[None, :]
        touching = np.flatnonzero((np.abs(gap_x) < need_x) & (np.abs(gap_y) < need_y))
        if not len(touching):
            break
        one, other = np.divmod(touching, count)
        side_x, side_y, first = gap_x[one, other], gap_y[one, other], order[one, other]
        over_x, over_y = need_x[one, other] - np.abs(side_x), need_y[one, other] - np.abs(side_y)
        across = over_x < over_y
        push_x = np.where(across, over_x, 0.0) * np.where(side_x == 0, first, np.sign(side_x))
        push_y = np.where(across, 0.0, over_y) * np.where(side_y == 0, first, np.sign(side_y))
        x = np.clip(x + np.bincount(one, push_x, count) * 0.75, low[:, 0], high[:, 0])
        y = np.clip(y + np.bincount(one, push_y, count) * 0.75, low[:, 1], high[:, 1])
    return np.column_stack((x, y))


def _covered(spots: Plane, sizes: Plane) -> set[int]:
    """Those whose box a box before it touches, the heaviest first."""
    found: set[int] = set()
    for at in range(1, len(spots)):
        near = (np.abs(spots[:at] - spots[at]) < (sizes[:at] + sizes[at]) / 2 - 1.0).all(axis=1)
        if any(int(other) not in found for other in near.nonzero()[0]):
            found.add(at)
    return found


def _moved(spots: Plane, sizes: Plane, frame: tuple[float, float]) -> tuple[Plane, set[int]]:
    """Boxes that are still covered go to the nearest free place around them; and those for which there is none."""
    spots, covered = spots.copy(), _covered(spots, sizes)
    low, high = sizes / 2 + MARGIN / 2, np.maximum(sizes / 2 + MARGIN / 2, np.array(frame) - sizes / 2 - MARGIN / 2)
    for at in sorted(covered):
        others = [one for one in range(len(spots)) if one != at and one not in covered]
        for some in np.array_split(AROUND, AROUND_PARTS):
            places = np.clip(spots[at] + some, low[at], high[at])
            touched = np.abs(places[:, None, :] - spots[others]) < (sizes[others] + sizes[at]) / 2
            free = np.flatnonzero(~touched.all(axis=2).any(axis=1))
            if len(free):
                spots[at] = places[free[0]]
                covered.discard(at)
                break
    return spots, covered


def _held_together(count: int, pairs: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Links that nobody sees, from the heaviest node to that of each group that hangs on nothing: else they drift away."""
    group = list(range(count))

    def first(one: int) -> int:
        while group[one] != one:
            one = group[one]
        return one

    for one, other, _ in pairs:
        low, high = sorted((first(one), first(other)))
        group[high] = low
    return [(0, one, 1) for one in range(1, count) if first(one) == one]


def _settled(count: int, pairs: Sequence[tuple[int, int, int]]) -> Plane:
    """Fruchterman and Reingold's springs, from a sunflower's places, cooled a fixed number of rounds."""
    if count == 0:
        return np.zeros((0, 2))
    turn = np.arange(count) * GOLDEN
    reach = np.sqrt((np.arange(count) + 0.5) / count)
    spots = np.column_stack((np.cos(turn) * reach, np.sin(turn) * reach))
    ideal = 1.0 / math.sqrt(count)
    one = np.array([pair[0] for pair in pairs], np.intp)
    other = np.array([pair[1] for pair in pairs], np.intp)
    pull = np.array([1 + math.log2(pair[2]) * 0.3 for pair in pairs])
    x, y = spots[:, 0].copy(), spots[:, 1].copy()
    for step in range(ROUNDS):
        apart_x, apart_y = x[:, None] - x[None, :], y[:, None] - y[None, :]
        push = ideal**2 / np.maximum(apart_x * apart_x + apart_y * apart_y, 1e-4)
        move_x, move_y = (apart_x * push).sum(axis=1), (apart_y * push).sum(axis=1)
        if len(pairs):
            along_x, along_y = x[one] - x[other], y[one] - y[other]
            drawn = np.maximum(np.hypot(along_x, along_y), 0.01) / ideal * pull * 0.5
            move_x -= np.bincount(one, along_x * drawn, count) - np.bincount(other, along_x * drawn, count)
            move_y -= np.bincount(one, along_y * drawn, count) - np.bincount(other, along_y * drawn, count)
        move_x -= x * 0.6  # towards the middle, so that what hangs on nothing stays in sight
        move_y -= y * 0.6
        length = np.maximum(np.hypot(move_x, move_y), 1e-9)
        share = np.minimum(length, 0.12 * (1 - step / ROUNDS) + 0.002) / length
        x, y = x + move_x * share, y + move_y * share
    return np.column_stack((x, y))


def _fitted(spots: Plane, width: float, height: float) -> Plane:
    """Into the frame, each direction by itself, and by rank as much as by distance: a crowd gets the room it needs."""
    if len(spots) < 2:
        return np.array([[width / 2, height / 2]] * len(spots)).reshape(-1, 2)
    low, high = spots.min(axis=0), spots.max(axis=0)
    span = np.where(high - low > 1e-9, high - low, 1.0)
    ranks = spots.argsort(axis=0).argsort(axis=0) / (len(spots) - 1)
    fitted: Plane = (((spots - low) / span + ranks) / 2) * (np.array([width, height]) - 90.0) + 45.0
    return fitted
