"""What the index knows of a thing: its words and times as hashes and numbers, whose it is, and when it holds.

The body of an entry is a small record of fixed layout, so that thousands of them are read without looking at each.
It is written without numpy: appending a message must not load it.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from perdure.domain.context.recall import ENTRY_KINDS, EntryKind, NewEntry
from perdure.domain.conversation.digests import DIGEST_KINDS, SPINE_SESSION, Digest, DigestKind
from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.entities import Instruction, Todo
from perdure.domain.knowledge.memories import Statement
from perdure.domain.lessons import Lesson
from perdure.domain.scope import Address
from perdure.domain.series import Series
from perdure.domain.state import Revision, found_by
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import to_us
from perdure.domain.values import dataclass
from perdure.engine.search.lexicon import lexemes, term_hash
from perdure.engine.text import cues
from perdure.engine.times.mentions import find_times

PASSAGE_CHARS = 3_000
"""Where a long text is cut, about: four or five hundred words, as many as an assistant's long answer has."""
WHOLE_CHARS_MAX = 6_000
"""A text up to here stays whole: two halves of one answer would only compete with each other."""
PASSAGES_MAX = 64
"""Of a longer text the beginning is searched: 64 passages are about thirty thousand words."""

_BREAKS = tuple(map(pattern, (r"\n\s*\n", r"\n", r"[.!?…。！？]\s*", r"\s+")))
"""Where to cut, the best first: paragraph, line, sentence, word."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text, and how often each of its terms (by hash) occurs in it."""

    start: int
    end: int
    terms: dict[int, int]
    length: int
    """Terms in all, repeats counted."""


def cut(text: str, spans: Sequence[tuple[int, int]] | None = None) -> list[Passage]:
    """The passages of a text: in order, side by side, and together all of it up to `PASSAGES_MAX`; none of no text.

    A message is one passage. Only a text that is much longer is cut, so that a remark inside a pasted document is not
    drowned; shorter passages were measured and found nothing more (docs/explanation, recall).
    """
    return [_passage(text, start, end) for start, end in (spans_of(text) if spans is None else spans)]


def spans_of(text: str) -> list[tuple[int, int]]:
    """Where `cut` cuts: each stretch is at most `PASSAGE_CHARS` long, unless the text is whole."""
    if len(text) <= WHOLE_CHARS_MAX:
        return [(0, len(text))] if text else []
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text) and len(spans) < PASSAGES_MAX:
        end = len(text) if len(text) - start <= PASSAGE_CHARS else _break(text, start)
        spans.append((start, end))
        start = end
    return spans


def state_spans_of(text: str) -> list[tuple[int, int]]:
    """The same for a value of the state: each text that it is found by stands in a line, and is compared on its own."""
    spans: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        spans += [(start + first, start + last) for first, last in spans_of(line)]
        start += len(line) + 1
    return spans[:PASSAGES_MAX]


def _break(text: str, start: int) -> int:
    """The last good break in the second half of the next `PASSAGE_CHARS`; without one, in the middle of a word."""
    low, high = start + PASSAGE_CHARS // 2, start + PASSAGE_CHARS
    for breaks in _BREAKS:
        ends = [found.end() for found in breaks.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high


def _passage(text: str, start: int, end: int) -> Passage:
    terms = lexemes(text[start:end])
    return Passage(start, end, dict(Counter(map(term_hash, terms))), len(terms))


TELLING_CHARS_MAX = 4_000
TELLING_SENTENCES = 2
"""So many sentences about oneself are as good as more: most messages that later matter have one or two."""

_SENTENCES = pattern(r"[^.!?\n。！？]+[.!?。！？]*")
_OWN_WORDS = pattern(lambda: rf"\b(?:{cues.either('first person')})\b|{cues.either('first person anywhere')}", re.IGNORECASE)


def telling(text: str) -> float:
    """How much a text tells of its writer, 0 to 1: sentences in the first person that are no questions."""
    told = 0
    for sentence in _SENTENCES.finditer(text, 0, TELLING_CHARS_MAX):
        if sentence[0][-1] not in "?？" and _OWN_WORDS.search(sentence[0]):
            told += 1
            if told == TELLING_SENTENCES:
                break
    return told / TELLING_SENTENCES


VERSION = 1
HEADER = struct.Struct("<BBBBIqqqqqQQHHHHI")
FOREVER = 2**63 - 1
TIMES_MAX = 32
LAST_SECOND = datetime.max.replace(tzinfo=UTC) - timedelta(seconds=1)
TIMED_CHARS_MAX = 8_000
"""Times are looked for in so much of a text."""
COUNT_MAX = 255
STATE_PREVIEW_CHARS = 100
SPEAKER_CHARS_MAX = 80
SPEAKER_BYTES_MAX = 200
ROLE_CODES = {"user": 1, "assistant": 2, "tool": 3, "system": 4}
KIND_CODES: dict[str, int] = {kind: code for code, kind in enumerate(ENTRY_KINDS, 1)}
ARCHIVED = 1
BEGUN = 2
"""It began when it was stored, whatever the clock was: no other start was stated."""
TELLING_BIT = 4
"""From here on the flags hold how much a text tells of its writer, in sixteenths less one."""
TELLING_STEPS = 15


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text as the index knows it: ready to be stored behind the header of an entry."""

    times: int
    passages: int
    terms: int
    telling: float
    body: bytes


@dataclass(frozen=True, slots=True)
class EntryHeader:
    """Whose an entry is, and when it was and is so."""

    kind: EntryKind
    at: datetime
    agent: str | None = None
    """The one agent that may find it; None: all agents of the user."""
    channel: str | None = None
    """The one channel on which it may be found; None: all of them."""
    session: tuple[Address, int] | None = None
    seq: int = 0
    role: str = ""
    speaker: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    known_from: datetime | None = None
    closed_at: datetime | None = None
    archived: bool = False
    start_stated: bool = False
    """Whether it begins when somebody said so; else it has begun."""


def name_hash(name: str) -> int:
    """What stands for a name in an entry; never 0."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


def agent_hash(agent: str | None) -> int:
    return 0 if agent is None else name_hash(f"agent:{agent}")


def place_hash(agent: str | None, channel: str | None) -> int:
    """For whom an entry is: everybody (0), one agent, or anyone who is on a channel."""
    return agent_hash(agent) if channel is None else name_hash(f"channel:{channel}\0{agent or ''}")


def session_hash(address: Address, number: int) -> int:
    return name_hash(f"session:{address.agent}\0{address.channel}\0{number}")


def entity_hash(ref: str) -> int:
    """The term by which what names an entity is found."""
    return name_hash(f"entity:{ref}")


def words_of(
    text: str,
    at: datetime,
    zone: str,
    *,
    entities: Iterable[str] = (),
    about: Sequence[tuple[datetime, datetime]] = (),
    spans: Sequence[tuple[int, int]] | None = None,
) -> IndexedText:
    """Take a text apart. Relative times in it are meant as of `at`; `about` are times that it is about without saying so.
    `spans`: where to cut it, if elsewhere than usual."""
    passages = cut(text, spans)
    extra = [entity_hash(ref) for ref in dict.fromkeys(entities)]
    found = find_times(text[:TIMED_CHARS_MAX], at, zone)[:TIMES_MAX] if text else []
    stretches = [*about, *((one.first, one.last) for one in found)]
    times = [to_us(moment) for stretch in stretches for moment in stretch]
    sizes: list[int] = []
    terms: list[int] = []
    counts = bytearray()
    for place, passage in enumerate(passages):
        mine = {**passage.terms, **dict.fromkeys(extra, 1)} if place == 0 and extra else passage.terms
        sizes += (len(mine), passage.length)
        terms += mine
        counts += bytes(min(count, COUNT_MAX) for count in mine.values())
    body = struct.pack(f"<{len(times)}q{len(sizes)}I{len(terms)}Q", *times, *sizes, *terms) + bytes(counts)
    return IndexedText(len(times) // 2, len(passages), len(terms), telling(text), body)


def passages_in(body: bytes) -> int:
    """How many passages an entry has; 0 if that cannot be read."""
    return int(HEADER.unpack_from(body)[-4]) if len(body) >= HEADER.size else 0


def entry(ref: str, placed: EntryHeader, words: IndexedText) -> NewEntry:
    start = placed.at if placed.valid_from is None else placed.valid_from
    speaker = placed.speaker.encode("utf-8", "replace")[:SPEAKER_BYTES_MAX]
    header = HEADER.pack(
        VERSION,
        KIND_CODES[placed.kind],
        ROLE_CODES.get(placed.role, 0),
        _flags(placed) | round(words.telling * TELLING_STEPS) << TELLING_BIT,
        placed.seq,
        to_us(placed.at),
        to_us(start),
        FOREVER if placed.valid_to is None else to_us(placed.valid_to),
        to_us(placed.at if placed.known_from is None else placed.known_from),
        FOREVER if placed.closed_at is None else to_us(placed.closed_at),
        place_hash(placed.agent, placed.channel),
        0 if placed.session is None else session_hash(*placed.session),
        words.times,
        words.passages,
        len(speaker),
        0,
        words.terms,
    )
    return NewEntry(placed.kind, ref, header + words.body + speaker)


def _flags(placed: EntryHeader) -> int:
    return (ARCHIVED if placed.archived else 0) | (0 if placed.start_stated else BEGUN)


# -- one function for each kind of thing


def speaker_in(metadata: Mapping[str, Json]) -> str:
    """The name that a message's metadata gives for who said it, if any."""
    name = metadata.get("name")
    return name[:SPEAKER_CHARS_MAX] if isinstance(name, str) else ""


def message_entry(message: Message, words: IndexedText) -> NewEntry:
    placed = EntryHeader(
        "message",
        message.at,
        agent=message.address.agent,
        session=(message.address, message.session_number),
        seq=message.seq,
        role=message.role,
        speaker=speaker_in(message.metadata),
    )
    return entry(message.id, placed, words)


def statement_entry(statement: Statement, zone: str, *, archived: bool) -> NewEntry:
    placed = EntryHeader(
        "memory",
        statement.last_mentioned,
        agent=statement.visible_to,
        valid_from=statement.valid_from,
        valid_to=statement.valid_to,
        known_from=statement.recorded_at,
        closed_at=statement.closed_at,
        archived=archived,
        start_stated=statement.start_stated,
    )
    return entry(statement.id, placed, words_of(statement.content, statement.last_mentioned, zone, entities=statement.entities))


def todo_entry(todo: Todo, zone: str) -> NewEntry:
    placed = EntryHeader("todo", todo.created_at, agent=todo.agent, valid_to=todo.ended_at, closed_at=todo.ended_at)
    # The last second of the calendar has none behind it.
    due = () if todo.due_at is None else ((todo.due_at, min(todo.due_at, LAST_SECOND) + timedelta(seconds=1)),)
    return entry(todo.id, placed, words_of(todo.content, todo.created_at, zone, about=due))


def instruction_entry(instruction: Instruction, zone: str) -> NewEntry:
    ended = instruction.ended_at
    placed = EntryHeader("instruction", instruction.created_at, agent=instruction.agent, valid_to=ended, closed_at=ended)
    return entry(instruction.id, placed, words_of(instruction.content, instruction.created_at, zone))


def digest_ref(address: Address, session_number: int, kind: DigestKind) -> str:
    """All versions of one layer share an entry: the newest that is not undone is what can be found."""
    return compact_json([address.agent, address.channel, session_number, kind])


def digest_parts(ref: str) -> tuple[Address, int, DigestKind]:
    """What `digest_ref` was made of."""
    agent, channel, number, name = json.loads(ref)
    kind = next(kind for kind in DIGEST_KINDS if kind == name)
    return Address(agent, channel), int(number), kind


def digest_entry(digest: Digest, zone: str) -> NewEntry:
    spine = digest.session_number == SPINE_SESSION
    placed = EntryHeader(
        "digest",
        digest.made_at,
        role="assistant",
        agent=None if spine else digest.address.agent,
        session=None if spine else (digest.address, digest.session_number),
    )
    ref = digest_ref(digest.address, digest.session_number, digest.kind)
    return entry(ref, placed, words_of(digest.text, digest.made_at, zone))


def lesson_entry(lesson: Lesson, zone: str) -> NewEntry:
    ended = lesson.ended_at
    placed = EntryHeader(
        "lesson",
        lesson.created_at,
        agent=lesson.agent,
        channel=lesson.channel,
        valid_to=ended,
        closed_at=ended,
        archived=lesson.archived_at is not None,
    )
    return entry(lesson.id, placed, words_of(lesson.text, lesson.created_at, zone))


def state_text(key: str, body: str | None) -> str:
    """What of a key and its value is indexed: the texts it is found by, in lines; or the name taken apart, and how the value
    begins, in one.
    """
    texts = found_by(body)
    return "\n".join(texts) if texts else f"{_spelt_out(key)} {(body or '')[:STATE_PREVIEW_CHARS]}".replace("\n", " ")


def state_entry(revision: Revision, zone: str) -> NewEntry:
    placed = EntryHeader("state", revision.saved_at, valid_to=revision.expires_at)
    text = state_text(revision.key, revision.body)
    return entry(revision.key, placed, words_of(text, revision.saved_at, zone, spans=state_spans_of(text)))


def series_text(series: Series) -> str:
    return f"{_spelt_out(series.name)} {series.spec.description}".rstrip()


def series_entry(series: Series, zone: str) -> NewEntry:
    placed = EntryHeader("series", series.accumulated_since)
    return entry(series.name, placed, words_of(series_text(series), series.accumulated_since, zone))


def _spelt_out(name: str) -> str:
    """A name as written and as words, so that `weekly_kudos` is found by `kudos`."""
    apart = "".join(char if char.isalnum() else " " for char in name)
    camel = "".join(
        f" {char}" if char.isupper() and place and apart[place - 1].islower() else char for place, char in enumerate(apart)
    )
    return name if camel == name else f"{name} {camel}"
