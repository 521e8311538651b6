"""Drawings as numbers: where bars, lines and circles stand, and the things of a small graph. Templates make SVG of them.

A graph is laid out so that things that hang together lie together; the same graph always looks the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from perdure.domain.reports import DayActivity

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


GRAPH_WIDTH, GRAPH_HEIGHT, MARGIN = 760.0, 460.0, 46.0
ROUNDS = 220
GOLDEN = math.pi * (3 - math.sqrt(5))
RADIUS_MIN, RADIUS_MAX = 5.0, 14.0


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    label: str
    x: float
    y: float
    radius: float
    tone: str


@dataclass(frozen=True, slots=True)
class Edge:
    x1: float
    y1: float
    x2: float
    y2: float
    width: float


@dataclass(frozen=True, slots=True)
class Graph:
    width: float
    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


TONES = {"person": "violet", "place": "accent", "org": "blue", "project": "amber", "user": "strong"}


def laid_out(things: Mapping[str, tuple[str, int]], links: Sequence[tuple[str, str, int]]) -> Graph:
    """Nodes by name with a label and a weight, and links with theirs. Springs pull, charges push, until it is calm."""
    names = sorted(things, key=lambda name: (-things[name][1], name))
    place = {name: at for at, name in enumerate(names)}
    pairs = [(place[one], place[other], weight) for one, other, weight in links if one in place and other in place]
    spots = _settled(len(names), [*pairs, *_held_together(len(names), pairs)])
    heaviest = max((weight for _, weight in things.values()), default=1)
    nodes = tuple(
        Node(
            name=name,
            label=things[name][0],
            x=round(float(spots[at, 0]), 1),
            y=round(float(spots[at, 1]), 1),
            radius=round(RADIUS_MIN + (RADIUS_MAX - RADIUS_MIN) * math.sqrt(things[name][1] / max(1, heaviest)), 1),
            tone=TONES.get(name.partition(":")[0], "soft"),
        )
        for name, at in place.items()
    )
    edges = tuple(
        Edge(nodes[one].x, nodes[one].y, nodes[other].x, nodes[other].y, round(min(4.0, 0.7 + 0.5 * math.log2(1 + weight)), 2))
        for one, other, weight in pairs
    )
    return Graph(GRAPH_WIDTH, GRAPH_HEIGHT, nodes, edges)


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
    pull = np.array([1 + math.log2(pair[2]) * 0.3 for pair in pairs])[:, None]
    for step in range(ROUNDS):
        apart = spots[:, None, :] - spots[None, :, :]
        far = np.maximum(np.linalg.norm(apart, axis=2), 0.01)
        move = (apart / far[:, :, None] * (ideal**2 / far)[:, :, None]).sum(axis=1)
        if len(pairs):
            along = spots[one] - spots[other]
            drawn = along * np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 0.01) / ideal * pull * 0.5
            np.add.at(move, one, -drawn)
            np.add.at(move, other, drawn)
        move -= spots * 0.6  # towards the middle, so that what hangs on nothing stays in sight
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        heat = 0.12 * (1 - step / ROUNDS) + 0.002
        spots = spots + move / length * np.minimum(length, heat)
    return _fitted(spots)


def _fitted(spots: Plane) -> Plane:
    """Into the frame, each direction by itself."""
    low, high = spots.min(axis=0), spots.max(axis=0)
    span = np.where(high - low > 1e-9, high - low, 1.0)
    frame = np.array([GRAPH_WIDTH - 2 * MARGIN, GRAPH_HEIGHT - 2 * MARGIN])
    middle = np.where(high - low > 1e-9, 0.0, 0.5)
    fitted: Plane = ((spots - low) / span + middle) * frame + MARGIN
    return fitted
