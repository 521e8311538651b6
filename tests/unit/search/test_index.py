"""Stacks: what was read piece by piece is what is read at once, whatever was replaced, taken out or came late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from lanes import examples
from perdure.domain.scope import Address
from perdure.engine.search import index
from perdure.engine.search.allowed import Allowed
from perdure.engine.search.entries import EntryHeader, IndexedText, agent_hash, entry, words_of
from perdure.engine.search.index import SegmentStack, stacked
from perdure.engine.search.question import understand
from perdure.engine.search.ranking import rank
from perdure.engine.search.segments import EntryRow, packed_vectors, segment_of, with_vectors

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
DIMS = 4
TEXTS = ("the boat", "I rowed the boat with Zoe", "ok", "", "bread and butter on Friday", "boat " * 40)
NAMES = ("", "", "Mia", "Zoe")


@lru_cache
def words(text: str) -> IndexedText:
    return words_of(text, NOW, "UTC")


@st.composite
def lives(draw: st.DrawFn) -> list[EntryRow]:
    """Entries as a store numbers them: a thing is put, put again, taken out; messages of sessions come in any order."""
    rows: list[EntryRow] = []
    held: dict[int, tuple[int, int]] = {}
    for number in range(1, draw(st.integers(0, 25)) + 1):
        known = draw(st.sampled_from((None, None, None, *held)))
        if known is not None and draw(st.booleans()):
            held.pop(known)
            rows.append((number, known, str(number), b""))
            continue
        session, seq = held.pop(known) if known is not None else (draw(st.integers(0, 3)), draw(st.integers(1, 9)))
        while known is None and session and (session, seq) in held.values():
            seq += 1
        placed = EntryHeader(
            "message" if session else "state",
            NOW + timedelta(minutes=number),
            agent="coach" if session != 3 else "companion",
            session=(Address("coach", "c"), session) if session else None,
            seq=seq if session else 0,
            role="user",
            speaker=draw(st.sampled_from(NAMES)),
        )
        rows.append((number, known or 0, f"m{number}", entry("m", placed, words(draw(st.sampled_from(TEXTS)))).body))
        held[number] = (session, seq)
    return rows


def vectors(rows: list[EntryRow]) -> dict[int, bytes]:
    sizes = {row[0]: words_passages(row) for row in rows}
    return {
        number: packed_vectors(np.random.default_rng(number).standard_normal((count, DIMS)).astype(np.float32))
        for number, count in sizes.items()
    }


def words_passages(row: EntryRow) -> int:
    return segment_of([row]).passages


def same(one: SegmentStack, other: SegmentStack) -> None:
    """Sessions may have other numbers; everything else is equal."""
    assert one.number.tolist() == other.number.tolist()
    assert one.live.tolist() == other.live.tolist()
    for name in ("kind", "role", "seq", "at", "telling", "length", "before", "after", "passage_item", "passage_length"):
        assert getattr(one.shelf, name).tolist() == getattr(other.shelf, name).tolist(), name
    assert one.shelf.sessions == other.shelf.sessions
    pairs = set(zip(one.shelf.session_code.tolist(), other.shelf.session_code.tolist(), strict=True))
    assert len(pairs) == len({first for first, _ in pairs}) == len({second for _, second in pairs})
    assert all((first == -1) == (second == -1) for first, second in pairs)
    assert [one.ref_of(item) for item in range(len(one.number))] == [other.ref_of(item) for item in range(len(other.number))]
    assert one.refs_of(np.arange(len(one.number), dtype=np.int32)) == [other.ref_of(item) for item in range(len(other.number))]
    for agent in ("coach", "companion"):
        assert set(one.speakers_to(agent_hash(agent))) == set(other.speakers_to(agent_hash(agent)))


def searched(stack: SegmentStack) -> dict[int, float]:
    asked = understand("Who rowed the boat with Zoe?", NOW, "UTC", speakers=stack.speakers_to(agent_hash("coach")))
    ranking = rank(stack.shelf, asked, Allowed(stack.shelf, stack.live), np.ones(DIMS, np.float32) / 2, limit=50)
    return {int(stack.number[item]): float(score) for item, score in zip(ranking.items, ranking.scores, strict=True)}


@settings(max_examples=examples(150))
@given(lives(), st.lists(st.integers(1, 6), max_size=12), st.booleans())
def test_what_was_taken_in_step_by_step_is_what_is_read_at_once(rows: list[EntryRow], steps: list[int], small: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "SMALL_SEGMENTS_MAX", 2 if small else 8)
        held = vectors(rows)
        stack: SegmentStack | None = None
        place = 0
        for size in (*steps, len(rows)):
            part, place = rows[place : place + size], place + size
            if part or stack is None:
                new = with_vectors(segment_of(part), held, DIMS)
                stack = stacked([*(() if stack is None else stack.segments), new], stack)
        assert stack is not None
        whole = stacked([with_vectors(segment_of(rows), held, DIMS)])
        same(stack, whole)
        assert searched(stack) == pytest.approx(searched(whole), abs=1e-4)


def test_what_was_replaced_or_taken_out_is_not_live() -> None:
    body = entry("m", EntryHeader("message", NOW), words("the boat")).body
    stack = stacked([segment_of([(1, 0, "a", body), (2, 0, "b", body)]), segment_of([(5, 1, "a", body), (6, 2, "6", b"")])])
    assert stack.live.tolist() == [False, False, True, False]
    assert (stack.newer_than(0), stack.newer_than(5), stack.newer_than(4)) == (1, 0, 1)


def test_what_is_replaced_but_was_never_read_does_not_matter() -> None:
    body = entry("m", EntryHeader("message", NOW), words("the boat")).body
    assert stacked([segment_of([(7, 3, "a", body), (9, 8, "9", b"")])]).live.tolist() == [True, False]


def test_neighbours_are_those_that_are_left() -> None:
    bodies = [
        entry("m", EntryHeader("message", NOW, session=(Address("a", "c"), 1), seq=seq), words("the boat")).body
        for seq in (1, 2, 3)
    ]
    stack = stacked([segment_of([(1, 0, "1", bodies[0]), (2, 0, "2", bodies[1]), (3, 0, "3", bodies[2]), (4, 2, "4", b"")])])
    assert (stack.shelf.before.tolist(), stack.shelf.after.tolist()) == ([-1, -1, 0, -1], [2, -1, -1, -1])


def test_nothing_makes_an_empty_stack() -> None:
    empty = stacked([])
    assert (empty.number.tolist(), empty.shelf.items, empty.shelf.sessions, empty.newer_than(0)) == ([], 0, 0, 0)
    assert searched(empty) == {}
