"""Segments: entries as columns, as packs and back, joined and with vectors; and what cannot be read is `Corrupt`."""

from __future__ import annotations

import resource
import struct
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lanes import examples
from perdure.domain.context.recall import ENTRY_KINDS
from perdure.domain.errors import Corrupt
from perdure.domain.scope import Address
from perdure.domain.times.instants import to_us
from perdure.engine.search.allowed import Allowed
from perdure.engine.search.entries import HEADER, KIND_CODES, EntryHeader, IndexedText, entity_hash, entry, words_of
from perdure.engine.search.index import stacked
from perdure.engine.search.lexicon import lexemes, term_hash
from perdure.engine.search.question import understand
from perdure.engine.search.ranking import rank
from perdure.engine.search.segments import (
    EntryRow,
    Segment,
    from_pack,
    joined,
    packed_vectors,
    segment_of,
    to_pack,
    with_vectors,
)

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
DIMS = 4
TEXTS = (
    "",
    "the boat",
    "I rowed the boat yesterday, and the boat leaked",
    "Ünïcode 漢字 🦉 boats",
    "on January 20, 2026 and in March",
    "paragraph about the boat. " * 400,  # more than one passage
    "boat " * 300,  # a count beyond a byte
)
SPEAKERS = ("", "", "Mia", "Ana Lima", "漢" * 80)


@lru_cache
def words(text: str) -> IndexedText:
    return words_of(text, NOW, "UTC", entities=("person:mia",) if "rowed" in text else ())


def a_body(text: str = "the boat", **fields: object) -> bytes:
    placed = EntryHeader("message", NOW, agent="coach", session=(Address("coach", "c"), 1), seq=3, role="user")
    return entry("m1", replace(placed, **fields), words(text)).body  # type: ignore[arg-type]


bodies = st.builds(
    lambda text, kind, days, speaker, session, seq, archived: (
        entry(
            "m",
            EntryHeader(
                kind,
                NOW + timedelta(days=days),
                session=None if session is None else (Address("coach", "c"), session),
                seq=seq,
                speaker=speaker,
                archived=archived,
            ),
            words(text),
        ).body
    ),
    st.sampled_from(TEXTS),
    st.sampled_from(ENTRY_KINDS),
    st.integers(-9, 9),
    st.sampled_from(SPEAKERS),
    st.sampled_from((None, 1, 2)),
    st.integers(0, 9),
    st.booleans(),
)


@st.composite
def rows_of(draw: st.DrawFn) -> list[EntryRow]:
    """Entries with numbers that go up, some of which replace others, or only say what is gone."""
    number, found = 0, []
    for body in draw(st.lists(st.one_of(bodies, bodies, bodies, st.just(b"")), max_size=12)):
        number += draw(st.integers(1, 3))
        replaces = draw(st.integers(0, number - 1)) if body else draw(st.integers(1, max(1, number - 1)))
        found.append((number, replaces, draw(st.sampled_from(("m1", "ü", "a\x1fb", str(number)))), body))
    return found


vectors_of = st.dictionaries(st.integers(1, 40), st.integers(0, 99))


def pieces(rows: Sequence[EntryRow], cuts: Sequence[int]) -> list[Segment]:
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    return [segment_of(rows[low:high]) for low, high in pairwise(bounds)]


def same(one: Segment, other: Segment) -> None:
    assert one.names() == other.names()
    for field in fields(Segment):
        if field.name not in ("name", "name_start"):  # a name that was cut inside a letter may be told in other bytes
            first, second = getattr(one, field.name), getattr(other, field.name)
            assert first.shape == second.shape, field.name
            assert (first == second).all(), field.name


def a_vector(segment: Segment, number: int, seed: int, dims: int = DIMS) -> bytes:
    """Vectors for all passages of an entry."""
    item = int(np.searchsorted(segment.number, number))
    count = int(np.count_nonzero(segment.passage_item == item)) if number in segment.number else 1
    return packed_vectors(np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32))


# -- what is in a segment


def test_a_segment_says_what_its_entries_say() -> None:
    body = a_body("I rowed the boat yesterday, and the boat leaked", speaker="Mia", valid_to=NOW + timedelta(days=1))
    segment = segment_of([(4, 0, "m1", body), (7, 4, "4", b""), (9, 2, "ü", a_body(""))])
    assert (segment.items, segment.passages) == (3, 1)
    assert segment.number.tolist() == [4, 7, 9]
    assert segment.replaces.tolist() == [0, 4, 2]
    assert [segment.ref_of(item) for item in range(3)] == ["m1", "4", "ü"]
    assert segment.kind.tolist() == [KIND_CODES["message"], 0, KIND_CODES["message"]]
    assert (segment.names(), segment.speaker.tolist()) == (["Mia"], [0, -1, -1])
    assert (segment.at[0], segment.valid_to[0]) == (to_us(NOW), to_us(NOW + timedelta(days=1)))
    terms = {term_hash(term) for term in lexemes("I rowed the boat yesterday, and the boat leaked")} | {
        entity_hash("person:mia")
    }
    assert set(segment.term.tolist()) == terms
    place = segment.term.tolist().index(term_hash("boat"))
    assert segment.posting_count[segment.term_start[place] : segment.term_start[place + 1]].tolist() == [2]
    assert [str(moment)[:8] for moment in segment.time_start] == [str(to_us(datetime(2026, 1, 4, tzinfo=UTC)))[:8]]
    assert (segment.vector.shape, segment.bytes > 0) == ((1, 0), True)


def test_no_entries_make_an_empty_segment() -> None:
    empty = segment_of([])
    assert (empty.items, empty.passages, empty.names()) == (0, 0, [])
    same(from_pack(to_pack(empty)), empty)
    assert stacked([empty]).number.tolist() == []


def test_a_long_text_has_several_passages_of_one_item() -> None:
    segment = segment_of([(1, 0, "m1", a_body(TEXTS[5]))])
    assert segment.passages > 1
    assert set(segment.passage_item.tolist()) == {0}


# -- packs, joining, vectors


@given(rows_of())
def test_a_pack_gives_back_what_was_packed(rows: list[EntryRow]) -> None:
    segment = segment_of(rows)
    same(from_pack(to_pack(segment)), segment)
    assert to_pack(from_pack(to_pack(segment))) == to_pack(segment)


@given(rows_of(), st.lists(st.integers(0, 12), max_size=4))
def test_segments_that_are_joined_are_those_made_at_once(rows: list[EntryRow], cuts: list[int]) -> None:
    same(joined(pieces(rows, cuts)), segment_of(rows))


@given(rows_of(), st.lists(st.integers(0, 12), max_size=3), vectors_of, vectors_of)
def test_vectors_are_the_same_whenever_they_come(
    rows: list[EntryRow], cuts: list[int], first: dict[int, int], second: dict[int, int]
) -> None:
    """Into the parts or into the whole, all at once or some later: the last word for an entry counts."""
    whole = segment_of(rows)
    early = {number: a_vector(whole, number, seed) for number, seed in first.items()}
    late = {number: a_vector(whole, number, seed) for number, seed in second.items()}
    at_once = with_vectors(whole, early | late, DIMS)
    same(with_vectors(with_vectors(whole, early, DIMS), late, DIMS), at_once)
    same(joined([with_vectors(part, early | late, DIMS) for part in pieces(rows, cuts)]), at_once)
    same(from_pack(to_pack(at_once)), at_once)
    known = {number for number in early | late if number in whole.number}
    has = {int(whole.number[item]) for item in whole.passage_item[at_once.scale > 0]}
    assert has <= known


def test_parts_without_vectors_are_widened() -> None:
    one, other = (segment_of([(number, 0, "m", a_body())]) for number in (1, 2))
    with_some = joined([one, with_vectors(other, {2: a_vector(other, 2, 1)}, DIMS)])
    assert with_some.vector.shape == (2, DIMS)
    assert with_some.scale[0] == 0
    assert with_some.scale[1] > 0


def test_vectors_of_another_size_begin_anew() -> None:
    segment = segment_of([(1, 0, "m", a_body()), (2, 0, "n", a_body())])
    held = with_vectors(segment, {1: a_vector(segment, 1, 1), 2: a_vector(segment, 2, 2)}, DIMS)
    other = with_vectors(held, {2: a_vector(segment, 2, 3, dims=8)}, 8)
    assert other.vector.shape == (2, 8)
    assert (other.scale[0] == 0, other.scale[1] > 0) == (True, True)


def test_rounded_vectors_keep_their_direction() -> None:
    rows = np.random.default_rng(7).standard_normal((1, 64)).astype(np.float32)
    segment = segment_of([(1, 0, "m", a_body())])
    held = with_vectors(segment, {1: packed_vectors(rows)}, 64)
    back = held.vector[0].astype(np.float32) * held.scale[0]
    assert np.dot(back, rows[0]) / (np.linalg.norm(back) * np.linalg.norm(rows[0])) > 0.999
    nothing = packed_vectors(np.zeros((1, 64), np.float32))
    assert with_vectors(segment, {1: nothing}, 64).scale.tolist() == [0.0]


# -- what cannot be read


@pytest.fixture
def _little_memory() -> Iterator[None]:
    """Damage must not be taken for a wish for gigabytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 1_000_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


WHOLE = [(1, 0, "m1", a_body(TEXTS[2], speaker="Mia")), (2, 1, "1", b""), (3, 0, "m3", a_body(TEXTS[5]))]
PACK = to_pack(with_vectors(segment_of(WHOLE), {1: packed_vectors(np.ones((1, DIMS), np.float32))}, DIMS))


def search(segment: Segment) -> None:
    """Do with it all that a search does."""
    stack = stacked([segment])
    asked = understand("Which boat did Mia row yesterday?", NOW, "UTC", speakers=stack.shelf.speakers)
    rank(stack.shelf, asked, Allowed(stack.shelf, stack.live), np.ones(DIMS, np.float32), limit=5)
    [stack.ref_of(item) for item in range(len(stack.number))]


def read_or_refused(body: bytes) -> None:
    """`Corrupt`, or exactly what was packed: some bytes only fill up."""
    try:
        found = from_pack(body)
    except Corrupt as error:
        assert "reindex" in str(error)  # noqa: PT017
    else:
        same(found, from_pack(PACK))


@given(st.integers(0, len(PACK) - 1))
def test_a_pack_that_is_cut_off_is_corrupt(length: int) -> None:
    read_or_refused(PACK[:length])


@pytest.mark.usefixtures("_little_memory")
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(PACK) - 1), st.integers(1, 255))
def test_a_pack_with_an_altered_byte_is_corrupt(place: int, change: int) -> None:
    altered = bytearray(PACK)
    altered[place] ^= change
    read_or_refused(bytes(altered))


@pytest.mark.parametrize("body", [b"", b"\0" * 100, b"perdure-pack-1\n\0", PACK[:16] + b"\xff" * 8 + PACK[24:], b"x" + PACK])
def test_what_is_no_pack_is_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt):
        from_pack(body)


@pytest.mark.parametrize(
    "contents",
    [
        "[]",
        "{}",
        "null",
        "5",
        '[["number"]]',
        '[["number", "<i8", [1], 0]]',
        '[["wrong", "<i8", [0], 0]]',
        '[["number", "O", [1], 0]]',
        '[["number", "<i8", [-1], 0]]',
        '[["number", "<i8", [8e92], 0]]',
        '[["number", "<i8", [1e999], 0]]',
        '[["number", "<i8", [1], 99999999999999999999]]',
        '[["number", "nope", [1], 0]]',
        '[["number", "<i8", 1, 0]]',
        "[" * 5_000,
    ],
    ids=lambda text: text[:40],
)
def test_a_table_of_contents_that_makes_no_sense_is_corrupt(contents: str) -> None:
    head = contents.encode() + b" " * (-len(contents) % 8)
    with pytest.raises(Corrupt):
        from_pack(PACK[:16] + len(head).to_bytes(8, "little") + head + b"\0" * 64)


@given(st.integers(0, 2), st.integers(0, 10_000))
def test_an_entry_that_is_cut_off_is_corrupt(which: int, length: int) -> None:
    rows = [*WHOLE]
    body = rows[which][3]
    if 0 < length < len(body):
        rows[which] = (*rows[which][:3], body[:length])
        with pytest.raises(Corrupt, match="reindex"):
            segment_of(rows)


@pytest.mark.usefixtures("_little_memory")
@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from((0, 2)), st.integers(0, 400), st.integers(1, 255))
def test_an_entry_with_an_altered_byte_is_corrupt_or_says_something_else_but_never_breaks_a_search(
    which: int, place: int, change: int
) -> None:
    rows = [*WHOLE]
    body = bytearray(rows[which][3])
    body[place % len(body)] ^= change
    rows[which] = (*rows[which][:3], bytes(body))
    try:
        segment = segment_of(rows)
    except Corrupt:
        return
    search(segment)


@pytest.mark.usefixtures("_little_memory")
def test_a_passage_that_claims_four_billion_terms_is_corrupt() -> None:
    body = bytearray(a_body())
    at = HEADER.size + 16 * HEADER.unpack_from(body)[12]
    body[at : at + 4] = struct.pack("<I", 2**32 - 1)
    with pytest.raises(Corrupt):
        segment_of([(1, 0, "m1", bytes(body))])


def test_an_entry_of_another_layout_is_corrupt() -> None:
    body = a_body()
    with pytest.raises(Corrupt, match="laid out"):
        segment_of([(1, 0, "m1", bytes([99]) + body[1:])])
    with pytest.raises(Corrupt, match="laid out"):
        segment_of([(1, 0, "m1", body + b"\0")])


def test_vectors_that_do_not_fit_their_entry_are_corrupt() -> None:
    segment = segment_of([(1, 0, "m1", a_body())])
    for body in (b"", b"\0" * (DIMS + 3), b"\0" * (2 * (DIMS + 4))):
        with pytest.raises(Corrupt, match="vectors"):
            with_vectors(segment, {1: body}, DIMS)
    assert with_vectors(segment, {2: b"whatever"}, DIMS).scale.tolist() == [0.0], "those of others are none of our business"
