"""What may answer a question: the columns against one item at a time, by the rules as they are written down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from perdure.domain.context.recall import ENTRY_KINDS, EntryKind
from perdure.domain.knowledge.memories import Statement
from perdure.domain.scope import Address
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span
from perdure.engine.search.entries import EntryHeader, agent_hash, entity_hash, entry, session_hash, statement_entry, words_of
from perdure.engine.search.index import SearchFilter, SegmentStack, allowed, stacked
from perdure.engine.search.lexicon import lexemes, term_hash
from perdure.engine.search.segments import segment_of

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
AGENTS = ("coach", "companion")
HERE = Address("coach", "c")
TEXTS = ("the boat", "John Doe has a boat", "John has it", "on January 20, 2026", "doe", "")

# So few moments that they often fall together: ends are where mistakes are.
moments = st.integers(-3, 3).map(lambda days: NOW + timedelta(days=days))
maybe = st.one_of(st.none(), moments)


@dataclass(frozen=True)
class Item:
    """One thing as it is written down; the filter knows only its entry."""

    statement: Statement
    kind: EntryKind = "memory"
    archived: bool = False
    session: int | None = None
    at: datetime = NOW
    replaced: bool = False
    gone: bool = False
    entities: tuple[str, ...] = field(default=())


@st.composite
def items(draw: st.DrawFn) -> Item:
    start, recorded, content = draw(moments), draw(moments), draw(st.sampled_from(TEXTS))
    end = draw(maybe)
    statement = Statement(
        id="x",
        memory="m",
        content=content,
        subject="user",
        entities=draw(st.sampled_from(((), ("person:john_doe",)))) if content else (),
        valid_from=start,
        recorded_at=recorded,
        last_mentioned=draw(moments),
        valid_to=None if end is None else max(end, start),
        closed_at=None if end is None else max(draw(moments), recorded),
        visible_to=draw(st.sampled_from((None, *AGENTS))),
    )
    return Item(
        statement,
        draw(st.sampled_from(ENTRY_KINDS)),
        draw(st.booleans()),
        draw(st.sampled_from((None, 1, 2))),
        draw(moments),
        draw(st.sampled_from((False, False, False, True))),
        draw(st.sampled_from((False, False, False, True))),
    )


def body_of(item: Item) -> bytes:
    one = item.statement
    if item.kind == "memory":
        return statement_entry(one, "UTC", archived=item.archived).body
    placed = EntryHeader(
        item.kind,
        item.at,
        agent=one.visible_to,
        session=None if item.session is None else (HERE, item.session),
        valid_from=one.valid_from,
        valid_to=one.valid_to,
        known_from=one.recorded_at,
        closed_at=one.closed_at,
        archived=item.archived,
    )
    return entry("x", placed, words_of(one.content, item.at, "UTC", entities=one.entities)).body


def stack_of(given: list[Item], parts: int = 2) -> SegmentStack:
    rows: list[tuple[int, int, str, bytes]] = []
    for number, item in enumerate(given, 1):
        rows.append((number, 0, str(number), body_of(item)))
    for number, item in enumerate(given, 1):
        if item.replaced or item.gone:
            rows.append((len(rows) + 1, number, str(number), b""))
    middle = len(rows) // parts
    return stacked([segment_of(rows[:middle]), segment_of(rows[middle:])])


@dataclass(frozen=True)
class Question:
    """What is asked, in the words of those who ask."""

    kinds: tuple[EntryKind, ...] = ENTRY_KINDS
    agent: str = "coach"
    as_of: datetime | None = None
    known_at: datetime | None = None
    sessions: tuple[int, ...] | None = None
    span: tuple[datetime, datetime] | None = None
    names: tuple[tuple[str, ...], ...] | None = None

    def filter(self) -> SearchFilter:
        return SearchFilter(
            self.kinds,
            agent_hash(self.agent),
            to_us(NOW),
            None if self.as_of is None else to_us(self.as_of),
            None if self.known_at is None else to_us(self.known_at),
            None if self.sessions is None else tuple(session_hash(HERE, number) for number in self.sessions),
            None if self.span is None else Span(to_us(self.span[0]), to_us(self.span[1])),
            None if self.names is None else tuple(frozenset(_hash(name) for name in names) for names in self.names),
        )


def _hash(name: str) -> int:
    return entity_hash(name) if ":" in name else term_hash(next(iter(lexemes(name))))


spans = st.tuples(moments, moments).filter(lambda pair: pair[0] < pair[1])
questions = st.builds(
    Question,
    kinds=st.lists(st.sampled_from(ENTRY_KINDS), min_size=1, unique=True).map(tuple) | st.just(ENTRY_KINDS),
    agent=st.sampled_from(AGENTS),
    as_of=maybe,
    known_at=maybe,
    sessions=st.none() | st.lists(st.sampled_from((1, 2, 3)), max_size=2).map(tuple),
    span=st.none() | spans,
    names=st.none() | st.just((("person:john_doe",), ("john", "doe"))) | st.just((("boat",),)),
)


def may_answer(item: Item, asked: Question) -> bool:
    """The same, one by one and slowly."""
    one = item.statement
    said_at = one.last_mentioned if item.kind == "memory" else item.at
    session = None if item.kind == "memory" else item.session
    if item.gone or item.replaced or item.archived or item.kind not in asked.kinds:
        return False
    if one.visible_to not in (None, asked.agent):
        return False
    if not _holds(item, asked):
        return False
    if asked.sessions is not None and session not in asked.sessions:
        return False
    if asked.span is not None and item.kind != "series":
        start, end = asked.span
        speaks = (
            "January 20" in one.content
            and start < datetime(2026, 1, 21, tzinfo=UTC)
            and end > datetime(2026, 1, 20, tzinfo=UTC)
        )
        if not (start <= said_at < end or speaks):
            return False
    if asked.names is not None:
        has = {*one.entities, *one.content.lower().replace(",", "").split()}
        return any(has.issuperset(names) for names in asked.names)
    return True


def _holds(item: Item, asked: Question) -> bool:
    if asked.as_of is None and asked.known_at is None:
        return item.kind == "message" or item.statement.is_current(NOW)
    moment = asked.as_of or asked.known_at
    assert moment is not None
    return item.statement.holds_at(moment, asked.known_at)


@given(st.lists(items(), max_size=12), questions)
def test_the_columns_say_what_the_rules_say_of_each_item_s3_19_x_25(given: list[Item], asked: Question) -> None:
    mask = allowed(stack_of(given), asked.filter()).mask
    assert mask[: len(given)].tolist() == [may_answer(item, asked) for item in given]
    assert not mask[len(given) :].any(), "what says that another is gone is nothing itself"


@given(st.lists(items(), max_size=12), st.lists(moments, min_size=2, max_size=6))
def test_what_begins_or_ends_between_two_questions_is_seen_by_the_second(given: list[Item], asked_at: list[datetime]) -> None:
    stack = stack_of(given)
    for moment in asked_at:
        asked = replace(Question().filter(), now_us=to_us(moment))
        assert allowed(stack, asked).mask.tolist() == allowed(stack_of(given), asked).mask.tolist()


def test_an_empty_shelf_allows_nothing() -> None:
    for asked in (Question(), Question(sessions=()), Question(names=((),)), Question(span=(NOW, NOW + timedelta(days=1)))):
        assert allowed(stacked([]), asked.filter()).mask.tolist() == []


def test_a_name_without_a_word_stands_for_nothing() -> None:
    stack = stack_of([Item(_statement(content="the boat"))])
    wanted = SearchFilter(ENTRY_KINDS, agent_hash("coach"), to_us(NOW), terms=(frozenset(),))
    assert allowed(stack, wanted).mask.tolist() == [False]


def test_the_words_of_a_name_may_be_in_different_passages() -> None:
    long = "John. " + "and so on and on. " * 500 + "Doe."
    stack = stack_of([Item(_statement(content=long))])
    assert len(stack.shelf.passage_item) > 1
    assert allowed(stack, Question(names=(("john", "doe"),)).filter()).mask.tolist() == [True]
    assert allowed(stack, Question(names=(("john", "boat"),)).filter()).mask.tolist() == [False]


def _statement(**fields: Any) -> Statement:
    standard: dict[str, Any] = {"id": "x", "memory": "m", "content": "", "subject": "user", "entities": ()}
    return Statement(**(standard | {"valid_from": NOW, "recorded_at": NOW, "last_mentioned": NOW} | fields))


def test_a_statement_that_was_closed_is_found_as_of_a_moment_before_its_end() -> None:
    end = NOW - timedelta(days=1)
    stack = stack_of(
        [Item(_statement(valid_from=NOW - timedelta(days=9), recorded_at=NOW - timedelta(days=9), valid_to=end, closed_at=NOW))]
    )
    for moment, expected in ((end - timedelta(microseconds=1), True), (end, False)):
        assert allowed(stack, Question(as_of=moment).filter()).mask.tolist() == [expected]
    assert allowed(stack, Question(as_of=NOW, known_at=NOW - timedelta(microseconds=1)).filter()).mask.tolist() == [True]
    assert allowed(stack, Question(as_of=NOW, known_at=NOW).filter()).mask.tolist() == [False]


def test_times_beyond_all_years_do_not_overflow() -> None:
    extreme = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    stack = stack_of([Item(_statement(valid_from=datetime.min.replace(tzinfo=UTC), recorded_at=NOW))])
    assert allowed(stack, Question(as_of=extreme).filter()).mask.tolist() == [True]
    assert np.count_nonzero(stack.live) == 1
