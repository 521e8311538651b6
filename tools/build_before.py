"""Fits what `before` goes by, on the goals in `bench/overseer_goals` that may be learned from, and on them alone.

    python tools/build_before.py          writes `needs.bin`, `affinity.bin` and `weights.json` of src/perdure/engine/oversight
    python tools/build_before.py --cross  reports on each writer of the lives, and on the worlds to tune on, as the others teach
    python tools/build_before.py --without w15 FOLDER     writes them into that folder, as they are without a writer

The parts `report` and `worlds/held` are not read. The same goals give the same files.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from perdure.adapters.embedding.static import StaticEmbedder, word_vectors
from perdure.engine.extraction.judge import JudgeTable, packed, run_places
from perdure.engine.oversight import needs, relevance
from perdure.engine.oversight.statements import is_whole
from perdure.engine.times.question import extract_time_range

ROOT = Path(__file__).parent.parent
GOALS, PACKAGE = ROOT / "bench/overseer_goals", ROOT / "src/perdure/engine/oversight"
sys.path.insert(0, str(ROOT / "bench/knowledge"))

import judge as bench  # noqa: E402 - it lies in a folder that is no package

NOW = "2026-06-15T08:00:00+00:00"
STEPS = 127
OPENED_MAX = 0.03
"""Of the goals that need nothing, as writers who did not teach it word them, so many may pass for ones that do."""
HOLD = 3.0
"""How strongly the plain weights are held near nought."""
PASSES, STEP, SHRINK, BATCH, SEED, BEGIN = 4, 0.01, 0.3, 16, 1, 0.1
"""How the affinity is learned: few passes, since it would soon know each goal by heart."""


@dataclass(frozen=True)
class TaughtGoal:
    """A goal as somebody wrote it."""

    writer: str
    text: str
    timed: bool
    needs: frozenset[str]
    fine: frozenset[str]


@dataclass(frozen=True)
class TaughtWorld:
    """What is saved in one life, and the goals of it."""

    writer: str
    catalogue: relevance.Catalogue
    goals: tuple[TaughtGoal, ...]
    memories: frozenset[str]


def worlds() -> list[TaughtWorld]:
    """The lives, the worlds to tune on, and those of `overseer.py` to tune on, which have no memories."""
    read = [
        _world(path.stem, json.loads(line))
        for path in sorted((GOALS / "lives/train").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    read += [_world("tune", json.loads(path.read_text(encoding="utf-8"))) for path in sorted((GOALS / "worlds/tune").glob("*"))]
    more = {one["world"]: one["goals"] for one in _read("more.json")}
    return read + [_world("first", {**one, "goals": one["goals"] + more[one["world"]]}) for one in _read("tune.json")]


def quiet_goals() -> list[TaughtGoal]:
    """Goals of nobody's world that need nothing."""
    texts = [*_read("nothing.json"), *(text for one in _read("same_words.json") for text in one["goals"])]
    return [_goal("first", {"goal": text, "needs": []}, NOW) for text in texts]


def _read(name: str) -> list[Any]:
    found: list[Any] = json.loads((GOALS / name).read_text(encoding="utf-8"))
    return found


def _world(writer: str, data: dict[str, Any]) -> TaughtWorld:
    state = [relevance.SavedItem("state", key, "", json.dumps(value)[:101]) for key, value in data["state"].items()]
    series = [relevance.SavedItem("series", one["name"], one["description"]) for one in data["series"]]
    goals = tuple(_goal(writer, one, data.get("now", NOW)) for one in data["goals"])
    memories = frozenset(one["id"] for one in data.get("memories", ()))
    return TaughtWorld(writer, relevance.Catalogue([*state, *series], word_vectors), goals, memories)


def _goal(writer: str, goal: dict[str, Any], now: str) -> TaughtGoal:
    timed = extract_time_range(goal["goal"], datetime.fromisoformat(now)) is not None
    return TaughtGoal(writer, goal["goal"], timed, frozenset(goal["needs"]), frozenset(goal.get("fine", ())))


# -- whether anything is needed


def gate_table(goals: Sequence[TaughtGoal]) -> JudgeTable:
    """What the n-grams of these goals teach, as it is kept in a file."""
    samples = [(np.array(run_places(one.text[: needs.JUDGED_CHARS_MAX])), bool(one.needs), 1.0) for one in goals]
    return JudgeTable(*_rounded(bench.binary(samples)[:, None]))


def gate(goals: Sequence[TaughtGoal]) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """The plain weights, chosen on what each writer's goals look like to a table that the others taught; the goals of those
    writers' log odds, and whether they need anything."""
    judged = [one for one in goals if one.writer != "first"]
    tables = {out: gate_table([one for one in goals if one.writer != out]) for out in sorted({one.writer for one in judged})}
    plain = [needs.plain_features(one.text, timed=one.timed) for one in judged]
    names = sorted(plain[0])
    said = np.array([needs.worded(one.text, tables[one.writer]) for one in judged])
    rows = np.column_stack([said, np.array([[one[name] for name in names] for one in plain])])
    wanted = np.array([bool(one.needs) for one in judged])
    found = _logistic(rows, wanted, 1.0)[:-1]
    weights = {name: round(value, 2) for name, value in zip(names, (found[1:] / found[0]).tolist(), strict=True)}
    odds = said + rows[:, 1:] @ np.array([weights[name] for name in names])
    odds[[is_whole(one.text) for one in judged]] = -np.inf
    quiet = np.sort(odds[~wanted])[::-1]
    weights["bias"] = -round(float(quiet[int(OPENED_MAX * len(quiet))]), 2)
    return weights, odds + weights["bias"], wanted


# -- which saved things


@dataclass(frozen=True)
class Example:
    """A goal that needs something, and all that its world has saved: what is merely fine counts neither way."""

    writer: str
    goal: TaughtGoal
    ids: tuple[str, ...]
    rows: np.ndarray
    meant: np.ndarray
    things: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        return np.array([one not in self.goal.fine for one in self.ids])

    @property
    def wanted(self) -> np.ndarray:
        return np.array([one in self.goal.needs for one in self.ids], float)


def examples(some: Sequence[TaughtWorld]) -> list[Example]:
    return [
        Example(
            world.writer,
            goal,
            tuple(one.id for one in world.catalogue.candidates),
            relevance.measure(goal.text, world.catalogue, timed=goal.timed).astype(float),
            word_vectors([goal.text])[0].astype(float),
            np.asarray(world.catalogue.all_rows, float),
        )
        for world in some
        for goal in world.goals
        if goal.needs
    ]


def plain_weights(some: Sequence[Example]) -> np.ndarray:
    """Logistic regression; the last weight is the bias. What fits a goal better never speaks against it."""
    rows = np.vstack([one.rows[one.counts] for one in some])
    wanted = np.concatenate([one.wanted[one.counts] for one in some])
    free = np.array([name in ("is_series", "state_in_time") for name in relevance.FEATURES])
    used = np.ones(rows.shape[1], bool)
    while True:
        found = np.zeros(rows.shape[1] + 1)
        found[np.append(used, True)] = _logistic(rows[:, used], wanted, HOLD)
        against = (found[:-1] < 0) & ~free
        if not against.any():
            return found
        used &= ~against


def affinity(some: Sequence[Example], plain: np.ndarray) -> JudgeTable:
    """Two projections, stacked, by Adam's steps on top of the plain weights."""
    dims, rank = 1 << (relevance.AFFINITY_BITS - 1), relevance.AFFINITY_RANK
    begin, chance = np.random.default_rng(SEED), random.Random(SEED)
    both = begin.normal(0, BEGIN, (2, dims, rank))
    mean, spread, order, step = np.zeros_like(both), np.zeros_like(both), list(some), 0
    known = {id(one): one.rows @ plain[:-1] + plain[-1] for one in some}
    for _ in range(PASSES):
        chance.shuffle(order)
        for start in range(0, len(order), BATCH):
            slope = np.zeros_like(both)
            for one in order[start : start + BATCH]:
                things, at = one.things[one.counts], one.meant @ both[0]
                given = things @ both[1]
                off = relevance.squashed(known[id(one)][one.counts] + given @ at) - one.wanted[one.counts]
                slope[0] += np.outer(one.meant, off @ given)
                slope[1] += np.outer(off @ things, at)
            step += 1
            mean = 0.9 * mean + 0.1 * slope / BATCH
            spread = 0.999 * spread + 0.001 * (slope / BATCH) ** 2
            way = mean / (1 - 0.9**step) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
            both -= STEP * (way + SHRINK * both)
    return JudgeTable(*_rounded(both.reshape(2 * dims, rank)))


def scored(one: Example, plain: np.ndarray, held: JudgeTable) -> np.ndarray:
    goals, things = np.split(held.weights * np.array(held.scales), 2)
    return relevance.squashed(one.rows @ plain[:-1] + plain[-1] + (one.things @ things) @ (one.meant @ goals))


# -- both


def _rounded(weights: np.ndarray) -> tuple[tuple[float, ...], frozenset[int], np.ndarray]:
    scales = np.abs(weights).max(axis=0) / STEPS
    return tuple(np.float32(scales).tolist()), frozenset(), np.rint(weights / np.float32(scales)).astype(np.int8)


def _logistic(rows: np.ndarray, wanted: np.ndarray, hold: float) -> np.ndarray:
    """Logistic regression by Newton's steps; the last weight is the bias, which is not held back."""
    wide = np.column_stack([rows, np.ones(len(rows))]).astype(float)
    found, held = np.zeros(wide.shape[1]), np.append(np.full(rows.shape[1], hold), 1e-6)
    for _ in range(25):
        guess = 1 / (1 + np.exp(-np.clip(wide @ found, -30, 30)))
        curve = wide.T @ (wide * (guess * (1 - guess))[:, None]) + np.diag(held)
        found -= np.linalg.solve(curve, wide.T @ (guess - wanted) + held * found)
    return found


def files(without: str = "") -> dict[str, bytes]:
    """What is written, by name."""
    known = [world for world in worlds() if world.writer != without]
    goals = [*(goal for world in known for goal in world.goals), *quiet_goals()]
    some = examples(known)
    plain = plain_weights(some)
    both, opening = affinity(some, plain), gate_table(goals)
    keys = dict(zip((*relevance.FEATURES, "bias"), np.round(plain, 3).tolist(), strict=True))
    document = {
        "about": "Fitted by `tools/build_before.py`; do not change by hand. `embedder`: whose vectors the affinity is for.",
        "embedder": f"{StaticEmbedder().name}/{StaticEmbedder().version}",
        "keys": keys,
        "needs": gate(goals)[0],
    }
    return {
        needs.FILE: packed(opening.scales, (), opening.weights),
        relevance.AFFINITY: packed(both.scales, (), both.weights),
        "weights.json": (json.dumps(document, indent=1) + "\n").encode(),
    }


def cross() -> None:
    """How it would do for writers who did not teach it."""
    known = worlds()
    weights, odds, wanted = gate([*(goal for world in known for goal in world.goals), *quiet_goals()])
    print(f"gate {weights}: opens for {(odds[wanted] > 0).mean():.3f} of {wanted.sum()} goals that need something, ", end="")
    print(f"for {(odds[~wanted] > 0).mean():.3f} of {(~wanted).sum()} that do not")
    some = examples(known)
    for parts in (("w15", "w16", "w17", "w18", "w19"), ("tune",)):
        found: list[tuple[float, bool, bool]] = []
        for out in parts:
            taught = [one for one in some if one.writer != out]
            plain = plain_weights(taught)
            held = affinity(taught, plain)
            for one in (one for one in some if one.writer == out):
                marks = zip(scored(one, plain, held).tolist(), one.ids, strict=True)
                found += [(mark, name in one.goal.needs | one.goal.fine, name in one.goal.needs) for mark, name in marks]
        _show(parts, np.array(sorted(found, reverse=True)))


def _show(parts: Collection[str], marks: np.ndarray) -> None:
    right = np.cumsum(marks[:, 1]) / np.arange(1, len(marks) + 1)
    got = np.cumsum(marks[:, 2]) / marks[:, 2].sum()
    curve: Callable[[float], int] = lambda share: int(np.nonzero(right >= share)[0].max(initial=0))  # noqa: E731
    shown = [
        f"{share:.1f}: {got[curve(share)]:.3f} from {marks[curve(share), 0]:.2f} on" for share in (0.7, 0.6, 0.5, 0.4, 0.3)
    ]
    print(", ".join(parts), f"keys needed, given at a precision of {'; '.join(shown)}")


if __name__ == "__main__":
    if "--cross" in sys.argv:
        cross()
    else:
        left_out, folder = sys.argv[2:] if "--without" in sys.argv else ("", PACKAGE)
        for name, data in files(left_out).items():
            Path(folder, name).write_bytes(data)
