"""Checks the weights of recall on LongMemEval alone (MIT), and says what fitting is worth on questions not seen.

    PERDURE_BENCH_DATA=…/recall python bench/recall/fit.py

Every question is asked twice: among 48 sessions, and among all of them. The weights go, one after the other, to the best of a
few values, until none moves. The goal is the mean of what matters of an answer: turn recall@10 and NDCG@10, session all@5 and
all@10. A value is taken only if it is better by more than `GAIN_MIN`, so that what the data do not decide stays as it is.
The same done on four fifths of the questions, and judged on the rest, shows what fitting is worth on questions not seen.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from perdure.adapters.embedding.static import StaticEmbedder, bundled_kin
from perdure.domain.times.instants import to_us
from perdure.engine.search.allowed import Allowed
from perdure.engine.search.columns import ItemColumns, ItemRow, item_columns, rounded
from perdure.engine.search.entries import ROLE_CODES, cut, telling
from perdure.engine.search.question import understand
from perdure.engine.search.ranking import WEIGHTS, ArmScores, Weights, fused, measured
from perdure.engine.times.mentions import find_times

GRID = {
    "meaning": (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    "session": (0.0, 0.1, 0.2, 0.3, 0.4, 0.6),
    "around": (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.7),
    "brief_terms": (10.0, 20.0, 30.0, 40.0, 60.0, 80.0),
    "telling": (0.0, 0.1, 0.2, 0.3, 0.4),
    "time_times": (0.0, 0.3, 0.5, 0.7, 1.0, 1.5),
    "time_plus": (0.0, 0.25, 0.5, 0.75, 1.0),
    "machine": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0),
}
"""`speaker` and `hop` are not here: in LongMemEval nobody has a name, and every second message is long."""
GAIN_MIN = 0.002
ROUNDS_MAX = 4
FOLDS = 5
SESSIONS = 48
STARTS = {"chosen": WEIGHTS, "neutral": Weights(1.0, 0.0, 0.0, machine=1.0, telling=0.0, time_times=0.0, time_plus=0.0)}


@dataclass(frozen=True)
class Asking:
    """A question in one haystack, with what the arms found: only the weighing is done again and again."""

    id: str
    allowed: Allowed
    found: ArmScores
    gold: frozenset[int]
    sessions: frozenset[int]


def main() -> None:
    items = json.loads((Path(os.environ["PERDURE_BENCH_DATA"]) / "longmemeval_oracle.json").read_text("utf8"))
    shelf, places, sessions = stored(items)
    asked = askings([item for item in items if not item["question_id"].endswith("_abs")], shelf, places, sessions)
    for name, start in STARTS.items():
        print(f"from {name} weights: {goal(shelf, asked, start):.4f}")
        fitted = fit(shelf, asked, start)
        print(f"  fitted on all: {goal(shelf, asked, fitted):.4f}  {asdict(fitted)}")
        unseen, held = [], []
        for fold in range(FOLDS):
            inside = [one for one in asked if int(sha256(one.id.encode()).hexdigest(), 16) % FOLDS != fold]
            outside = [one for one in asked if int(sha256(one.id.encode()).hexdigest(), 16) % FOLDS == fold]
            unseen += values(shelf, outside, fit(shelf, inside, start))
            held += values(shelf, outside, start)
        print(f"  on questions not seen: {np.mean(held):.4f} before, {np.mean(unseen):.4f} fitted")


def fit(shelf: ItemColumns, asked: list[Asking], start: Weights) -> Weights:
    best, top = start, goal(shelf, asked, start)
    for _ in range(ROUNDS_MAX):
        before = best
        for name, grid in GRID.items():
            tried = {value: goal(shelf, asked, replace(best, **{name: value})) for value in grid}
            value = max(tried, key=lambda value: tried[value])
            if tried[value] > top + GAIN_MIN:
                best, top = replace(best, **{name: value}), tried[value]
        if best == before:
            break
    return best


def goal(shelf: ItemColumns, asked: list[Asking], weights: Weights) -> float:
    return float(np.mean(values(shelf, asked, weights)))


def values(shelf: ItemColumns, asked: list[Asking], weights: Weights) -> list[float]:
    return [_value(shelf, one, weights) for one in asked]


def _value(shelf: ItemColumns, one: Asking, weights: Weights) -> float:
    order = fused(shelf, one.found, one.allowed, limit=60, weights=weights).items.tolist()
    hits = [place for place, item in enumerate(order[:10]) if item in one.gold]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(one.gold))))
    ndcg = sum(1 / math.log2(place + 2) for place in hits) / ideal
    seen = list(dict.fromkeys(shelf.session_code[order].tolist()))
    return (len(hits) / len(one.gold) + ndcg + (one.sessions <= set(seen[:5])) + (one.sessions <= set(seen[:10]))) / 4


def stored(items: list[dict[str, Any]]) -> tuple[ItemColumns, dict[tuple[str, int], int], list[str]]:
    """All sessions on one shelf, where each message stands, and the session names by their codes."""
    rows: list[ItemRow] = []
    places: dict[tuple[str, int], int] = {}
    names: dict[str, None] = {}
    texts: list[str] = []
    for item in items:
        for name, date, turns in zip(
            item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True
        ):
            if name in names:
                continue
            names[name] = None
            at = moment(date)
            for seq, turn in enumerate(turns):
                text = turn["content"].strip()
                passages = cut(text)
                texts += [text[one.start : one.end] for one in passages]
                times = [(to_us(time.first), to_us(time.last)) for time in find_times(text[:8_000], at, "UTC")]
                places[name, seq] = len(rows)
                rows.append(ItemRow(passages, 1, ROLE_CODES[turn["role"]], name, seq, "", to_us(at), telling(text), times))
    codes, scales = rounded(StaticEmbedder().embed(texts))
    start = 0
    for place, row in enumerate(rows):
        end = start + len(row.passages)
        rows[place] = replace(row, vectors=codes[start:end], scales=scales[start:end])
        start = end
    return item_columns(rows, dims=codes.shape[1]), places, list(names)


def askings(
    items: list[dict[str, Any]], shelf: ItemColumns, places: dict[tuple[str, int], int], names: list[str]
) -> list[Asking]:
    embedder = StaticEmbedder()
    code = {name: place for place, name in enumerate(names)}
    found = []
    for item in items:
        asked = understand(item["question"], moment(item["question_date"]), "UTC", near=bundled_kin().near)
        vector = embedder.embed([asked.meaning], kind="query")[0]
        wanted = set(item["answer_session_ids"])
        gold = {
            places[name, seq]
            for name, turns in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True)
            for seq, turn in enumerate(turns)
            if turn.get("has_answer")
        }
        rnd = random.Random(item["question_id"])
        others = rnd.sample(sorted(set(names) - wanted), SESSIONS - len(wanted))
        for pool in (sorted(wanted) + others, names):
            allowed = Allowed(shelf, np.isin(shelf.session_code, [code[name] for name in pool]))
            arms = measured(shelf, asked, allowed, vector)
            found.append(Asking(item["question_id"], allowed, arms, frozenset(gold), frozenset(code[name] for name in wanted)))
    return found


def moment(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


if __name__ == "__main__":
    main()
