"""Pins: lines of a conversation that a compaction must carry on word for word, and which of them a budget can hold.

Rules of the user, open questions, decisions, and every line with an id, a path, an amount or a date. Finding them costs a
bounded amount per message, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from perdure.domain.messages import Message
from perdure.engine import cues
from perdure.engine.fitting import fit_pins
from perdure.engine.items import Item, items_of
from perdure.engine.pins import BARE, GAP, ITEM_KINDS, Pin, PinKind, split_head
from perdure.engine.questions import Statements, bounded_views, open_questions
from perdure.engine.sentences import sentence_spans

__all__ = ["Pin", "carried", "fit_pins", "is_bulk", "pins_of"]

LINE_CHARS_MAX = 200
TOOL_PINS_MAX = 12
MESSAGE_PINS_MAX = 60
TALK_CHARS_MAX = 400
"""An agent's message up to this length tells or confirms something; a longer one mostly explains."""
PASTED_CHARS = 900
OWN_SENTENCES = 3
SHORT_LINE_CHARS = 120
"""The same of a line read back, whose message is not at hand."""
SHORT_TOOL_CHARS = 1_000
"""Amounts and dates are taken from a tool's result only if it is no longer than this: the rest is bulk."""
_ITEM_RANK: dict[str, int] = {kind: rank for rank, kind in enumerate(ITEM_KINDS)}


def pins_of(messages: Sequence[Message]) -> tuple[Pin, ...]:
    """The pins of `messages`, in log order. Questions that the messages themselves answer are not among the open ones."""
    asked = open_questions(messages)
    return tuple(pin for index, message in enumerate(messages) for pin in _message_pins(message, asked.get(index, frozenset())))


def carried(previous: Sequence[str], messages: Sequence[Message]) -> tuple[Pin, ...]:
    """The pinned lines of an earlier compaction as pins again, older than all of `messages`, followed by those of `messages`.

    What was open and is answered by `messages` is open no more: the line stays only if its items deserve it.
    """
    statements = Statements(messages)
    older = (pin for number, line in enumerate(previous) for pin in _reread(line, number - len(previous)))
    return (*(_still(pin, statements) for pin in older), *pins_of(messages))


def is_bulk(message: Message, place: int) -> bool:
    """Whether a sentence of the message, counted from 1, is explanation or pasted text rather than something said."""
    if message.role == "user":
        # What is so long was mostly pasted; what the user says about it stands before it.
        return len(message.content) > PASTED_CHARS and place > OWN_SENTENCES
    return message.role == "tool" or len(message.content) > TALK_CHARS_MAX


def _message_pins(message: Message, asked: frozenset[str]) -> list[Pin]:
    found: list[Pin] = []
    place = 0
    limit = TOOL_PINS_MAX if message.role == "tool" else MESSAGE_PINS_MAX
    for view in bounded_views(message):
        for start, end in sentence_spans(view):
            place += 1
            sentence = view[start:end]
            items = items_of(sentence)
            kind = _kind(message, sentence, items, asked)
            if kind is not None:
                found.extend(_pinned(message, kind, sentence, items, place))
            if len(found) >= limit:
                return found[:limit]
    return found


def _kind(message: Message, sentence: str, items: Sequence[Item], asked: frozenset[str]) -> PinKind | None:
    by_item = _item_kind(message, items)
    if message.role == "tool":
        return by_item
    if sentence in asked:
        return "question"
    if cues.is_question(sentence):
        return by_item
    if message.role == "user" and cues.RULE.search(sentence):
        return "constraint"
    if cues.OPEN.search(sentence):
        return "question"
    if cues.DECISION.search(sentence) and (message.role == "user" or by_item is not None):
        return "decision"
    if message.role == "user" and not cues.is_small_talk(sentence):
        return by_item or ("wish" if cues.WISH.search(sentence) else "statement")
    return by_item


def _item_kind(message: Message, items: Sequence[Item]) -> PinKind | None:
    kinds = [item.kind for item in items]
    if message.role == "tool" and len(message.content) > SHORT_TOOL_CHARS:
        kinds = [kind for kind in kinds if kind not in ("quantity", "date")]
    return min(kinds, key=_ITEM_RANK.__getitem__, default=None)


def _pinned(message: Message, kind: PinKind, sentence: str, items: Sequence[Item], place: int) -> Iterable[Pin]:
    bulk = is_bulk(message, place)
    if len(sentence) <= LINE_CHARS_MAX:
        found = tuple(sentence[item.start : item.end] for item in items)
        return (Pin(kind, sentence, found, message.seq, message.role, message.at, place, bulk),)
    pins = []
    for start, end in _windows(kind, sentence, items):
        inside = tuple(sentence[item.start : item.end] for item in items if start <= item.start and item.end <= end)
        pins.append(Pin(kind, sentence[start:end], inside, message.seq, message.role, message.at, place, bulk))
    return pins


def _windows(kind: PinKind, sentence: str, items: Sequence[Item]) -> list[tuple[int, int]]:
    """Parts of a long sentence around its items and its cue, cut between words, none longer than a line may be."""
    wanted = [(item.start, min(item.end, item.start + LINE_CHARS_MAX - 20)) for item in items]
    cue = {"constraint": cues.RULE, "question": cues.OPEN, "decision": cues.DECISION, "wish": cues.WISH}.get(kind)
    place = cue.place(sentence) if cue is not None else None
    if place is not None:
        wanted.append((place[0], min(place[1] + 80, len(sentence))))
    elif kind in ("question", "constraint", "decision"):
        wanted.append((len(sentence) - 100, len(sentence)))
    if not wanted:
        wanted.append((0, LINE_CHARS_MAX // 2))
    windows: list[tuple[int, int]] = []
    for start, end in sorted(wanted):
        if windows and end - windows[-1][0] <= LINE_CHARS_MAX - 40:
            windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
        else:
            windows.append((start, min(end, start + LINE_CHARS_MAX)))
    grown, floor = [], 0
    for start, end in windows:
        room = max(0, LINE_CHARS_MAX - (end - start)) // 2
        grown.append(_to_words(sentence, max(floor, start - room), start, end, min(len(sentence), end + room)))
        floor = grown[-1][1]
    return [(start, end) for start, end in grown if start < end]


def _to_words(text: str, low: int, start: int, end: int, high: int) -> tuple[int, int]:
    """The widest part from `low` to `high` that cuts no word; at least from `start` to `end`, unless that was taken before."""
    start, end = max(low, start), max(low, end)
    while low < start and low > 0 and not text[low - 1].isspace():
        low += 1
    while high > end and high < len(text) and not text[high].isspace():
        high -= 1
    while low < high and text[low].isspace():
        low += 1
    while high > low and text[high - 1].isspace():
        high -= 1
    return low, high


def _reread(line: str, seq: int) -> list[Pin]:
    if line.startswith(BARE):
        return [Pin("identifier", "", (item,), seq, "assistant", None) for item in line[len(BARE) :].split(", ") if item]
    role, at, asks, text = split_head(line)
    found: list[Pin] = []
    place = 0
    for part in text.split(GAP):
        place += 1
        for start, end in sentence_spans(part):
            place += 1
            words = part[start:end]
            items = items_of(words)
            bulk = role == "tool" or (role != "user" and len(words) > SHORT_LINE_CHARS)
            named = tuple(words[item.start : item.end] for item in items)
            pin = Pin("question", words, named, seq, role or "assistant", at, place, bulk)
            found.append(pin if asks else replace(pin, kind=_kind_again(pin, items)))
    return found


def _kind_again(pin: Pin, items: Sequence[Item]) -> PinKind:
    by_item = min((item.kind for item in items), key=_ITEM_RANK.__getitem__, default=None)
    if pin.role == "user" and cues.RULE.search(pin.text):
        return "constraint"
    if cues.DECISION.search(pin.text) and (pin.role == "user" or by_item is not None):
        return "decision"
    return by_item or ("wish" if pin.role == "user" and cues.WISH.search(pin.text) else "statement")


def _still(pin: Pin, statements: Statements) -> Pin:
    """A carried question that the new messages answer is no longer one."""
    if pin.kind == "question" and statements.settle(pin.text):
        return replace(pin, kind="date", text=pin.text if pin.items else "")
    return pin
