"""Pins: lines of a conversation that a compaction carries on word for word, with who said them and when.

Rules and wishes of the user, open questions, decisions, and every line with an id, a path, an amount or a date; then, where
there is room, what else the user said. Finding them costs a bounded amount per message, however long it is; a budget keeps the
most important ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Literal

from perdure.domain.conversation.messages import Message, Role
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass, replace
from perdure.engine.summary.questions import StatementIndex, bounded_views, open_questions
from perdure.engine.text import cues
from perdure.engine.text.literals import LiteralItem, items_of
from perdure.engine.text.sentences import count_words, sentence_spans

PinKind = Literal["constraint", "question", "decision", "identifier", "path", "url", "wish", "quantity", "date", "statement"]
ITEM_KINDS = ("identifier", "path", "url", "quantity", "date")
BARE = "Also named: "
"""How a line begins that holds only items whose own lines had no room."""
GAP = " … "
"""Between words of one message that do not follow each other there."""

_HEAD = pattern(r"\[(?:(\d{4}-\d\d-\d\d) )?(user|assistant|tool|system)( asks)?\] ")


@dataclass(frozen=True, slots=True)
class Pin:
    """A line to keep. `text` and `items` stand word for word in the message; an empty `text` means: only the items."""

    kind: PinKind
    text: str
    items: tuple[str, ...]
    seq: int
    """The message it is from; negative for lines of an earlier compaction, which are older."""
    role: Role
    at: datetime | None
    place: int = 0
    """Which sentence of the message it is."""
    is_bulk: bool = False
    """From a tool, a long explanation or a pasted text: of less weight than what was said in passing."""

    @property
    def head(self) -> str:
        return line_head(self.role, self.at, asks=self.kind == "question")

    @property
    def line(self) -> str:
        """The pin alone, as the agent would see it: when, who, and the words."""
        return f"{self.head}{self.text}" if self.text else BARE + ", ".join(self.items)


def line_head(role: str, at: datetime | None, *, asks: bool = False) -> str:
    """Who spoke and when, in few tokens. An open question says so: it is read again in the next compaction."""
    day = f"{at.astimezone(UTC):%Y-%m-%d} " if at is not None else ""
    return f"[{day}{role}{' asks' if asks else ''}] "


def split_head(line: str) -> tuple[Role | None, datetime | None, bool, str]:
    """A line taken apart again: role, day, whether it is an open question, and the words. No head, no role."""
    match = _HEAD.match(line)
    if match is None:
        return None, None, False, line
    role: Role = match[2]  # type: ignore[assignment]
    return role, _day(match[1]), match[3] is not None, line[match.end() :]


def _day(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) if text else None
    except ValueError:
        return None


BARE_SHARE = 0.3
"""The part of the budget that lines leave to ids whose own lines find no room."""
JOINED_CHARS_MAX = 400

# User rules first, then what is open, then what was decided; then what cannot be guessed; then amounts and dates, and what
# else the user said. Ids from tools, from long explanations and from what was pasted come late: most of them are bulk.
_CLASSES: dict[PinKind, int] = {
    "constraint": 0,
    "question": 1,
    "decision": 2,
    "identifier": 3,
    "path": 3,
    "url": 3,
    "wish": 3,
    "quantity": 4,
    "date": 4,
    "statement": 5,
}
_BULK_CLASS = 6
_LAST_CLASS = 7
_ROLES: dict[str, int] = {"user": 0, "system": 1, "assistant": 2, "tool": 3}
_WORD = pattern(r"[^\W_]+")


def fit_pins(
    pins: Sequence[Pin], tokens_max: int, count: Callable[[str], int], *, words_max: int | None = None
) -> tuple[str, ...]:
    """Lines that keep the most important pins within `tokens_max`, in the order of the log.

    With `words_max`, lines other than rules of the user only as long as all have no more words than that; ids stay, bare.

    Rules of the user go first, then open questions, decisions, ids with paths and addresses, amounts and dates; within a
    class the user before the agent before tools, and the newer before the older. What says the same is kept once. Items
    whose line finds no room go into one last line, bare, as far as they fit.
    """
    return _Fit(pins, tokens_max, count, words_max).lines()


class _Fit:
    """One choice of pins. Sentences of one message share a line, so the second of them costs no head."""

    def __init__(self, pins: Sequence[Pin], tokens_max: int, count: Callable[[str], int], words_max: int | None) -> None:
        self._pins = pins
        self._words_left = words_max
        self._tokens_max = tokens_max
        self._count = count
        self._ranked = sorted(_distinct(pins), key=lambda index: _rank(pins[index], index))
        self._order = {index: order for order, index in enumerate(self._ranked)}
        self._text_costs = {index: count(pins[index].text) + 1 for index in self._ranked}
        self._head_costs = {head: count(head) for head in {pins[index].head for index in self._ranked}}
        self._chosen: set[int] = set()
        self._lines_begun: set[tuple[int, str]] = set()
        self._held = ""
        self._bare = _bare_items(pins, self._ranked)

    def lines(self) -> tuple[str, ...]:
        all_tokens = sum(self._text_costs.values()) + sum(self._head_costs[self._pins[index].head] for index in self._ranked)
        bare_tokens = self._count(BARE + ", ".join(self._bare)) if self._bare else 0
        is_tight = all_tokens > self._tokens_max
        reserve = min(int(self._tokens_max * BARE_SHARE), bare_tokens) if is_tight else 0
        self._choose(self._tokens_max - reserve, repeats=False)
        left = self._tokens_max - self._count("\n".join(self._written()))
        self._choose(left, repeats=True)
        while self._chosen and self._count("\n".join(self._written())) > self._tokens_max:
            self._chosen.remove(max(self._chosen, key=self._order.__getitem__))
        return self._written()

    def _choose(self, tokens: int, *, repeats: bool) -> None:
        """Take pins in their order as long as there is room; lines whose items are all there already only if `repeats`."""
        for index in self._ranked:
            pin = self._pins[index]
            if index in self._chosen or not pin.text:
                continue
            is_known = bool(pin.items) and pin.kind in ITEM_KINDS and all(_core(item) in self._held for item in pin.items)
            if is_known and not (repeats and pin.role == "user"):
                continue
            line = (pin.seq, pin.head)
            cost = self._text_costs[index] + (self._head_costs[pin.head] if line not in self._lines_begun else 1)
            if cost <= tokens and self._has_words(pin):
                tokens -= cost
                self._chosen.add(index)
                self._lines_begun.add(line)
                self._held += f"\n{pin.text}"

    def _has_words(self, pin: Pin) -> bool:
        """Whether there are words left for it; a rule of the user takes them, whether there are or not."""
        if self._words_left is None:
            return True
        words = count_words(pin.text)
        if words > self._words_left and pin.kind != "constraint":
            return False
        self._words_left -= words
        return True

    def _written(self) -> tuple[str, ...]:
        lines = tuple(_joined(self._pins[index] for index in sorted(self._chosen)))
        last = self._bare_line(lines)
        return (*lines, last) if last else lines

    def _bare_line(self, lines: Sequence[str]) -> str:
        """The items that no line holds, as many as fit beside the lines, in log order; empty if none."""
        seen = "\n".join(lines)
        left = self._tokens_max - (self._count(seen) + 1 if lines else 0) - self._count(BARE)
        fitting: list[tuple[int, str]] = []
        for item, index in self._bare.items():
            if left <= 1:
                break
            cost = self._count(f" {item}") + 1
            if cost <= left and _core(item) not in seen:
                left -= cost
                fitting.append((index, item))
        fitting.sort(key=lambda pair: pair[0])
        return BARE + ", ".join(item for _, item in fitting) if fitting else ""


def _joined(pins: Iterable[Pin]) -> Iterable[str]:
    """The lines of pins in log order. Words that did not stand together have a gap between them."""
    for _, group in groupby(pins, key=lambda pin: (pin.seq, pin.head)):
        line, place = "", -1
        for pin in group:
            if line and len(line) + len(pin.text) <= JOINED_CHARS_MAX:
                line += (" " if pin.place == place + 1 else GAP) + pin.text
            else:
                if line:
                    yield line
                line = pin.head + pin.text
            place = pin.place
        yield line


def _core(item: str) -> str:
    """What of an item tells it from others: `order A-1001` and `A-1001` are one thing."""
    last = item.rsplit(" ", 1)[-1]
    return last if len(last) >= 4 else item


def _distinct(pins: Sequence[Pin]) -> list[int]:
    """Of pins whose words are the same, the newest; nothing that has neither words nor items."""
    newest: dict[str, int] = {}
    for index, pin in enumerate(pins):
        if pin.text or pin.items:
            newest[" ".join(_WORD.findall(pin.text.casefold())) or pin.line] = index
    return sorted(newest.values())


def _rank(pin: Pin, index: int) -> tuple[int, int, int]:
    kind = _CLASSES[pin.kind]
    if pin.role == "user" and pin.is_bulk:
        kind = max(kind + 4, 5)
    elif pin.role != "user":
        # What the agent asks or settles is no rule of the user; its amounts and dates are mostly explanation.
        kind = _LAST_CLASS if kind > 3 else _BULK_CLASS if pin.is_bulk else max(kind, 2)
    return kind, _ROLES.get(pin.role, 3), -index


def _bare_items(pins: Sequence[Pin], ranked: Sequence[int]) -> dict[str, int]:
    """Items by the index of their pin, most important first. An amount of the agent's says nothing without its line."""
    wanted: dict[str, int] = {}
    for index in ranked:
        if pins[index].role == "user" or pins[index].kind not in ("quantity", "date"):
            for item in pins[index].items:
                wanted.setdefault(item, index)
    return wanted


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
    statements = StatementIndex(messages)
    older = (pin for number, line in enumerate(previous) for pin in _reread(line, number - len(previous)))
    return (*(_unless_answered(pin, statements) for pin in older), *pins_of(messages))


def is_bulk(message: Message, place: int) -> bool:
    """Whether a sentence of the message, counted from 1, is explanation or pasted text rather than something said."""
    if message.role == "user":
        # What is this long was mostly pasted; what the user says about it stands before it.
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


def _kind(message: Message, sentence: str, items: Sequence[LiteralItem], asked: frozenset[str]) -> PinKind | None:
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


def _item_kind(message: Message, items: Sequence[LiteralItem]) -> PinKind | None:
    kinds = [item.kind for item in items]
    if message.role == "tool" and len(message.content) > SHORT_TOOL_CHARS:
        kinds = [kind for kind in kinds if kind not in ("quantity", "date")]
    return min(kinds, key=_ITEM_RANK.__getitem__, default=None)


def _pinned(message: Message, kind: PinKind, sentence: str, items: Sequence[LiteralItem], place: int) -> Iterable[Pin]:
    whole = Pin(
        kind=kind,
        text=sentence,
        items=tuple(sentence[item.start : item.end] for item in items),
        seq=message.seq,
        role=message.role,
        at=message.at,
        place=place,
        is_bulk=is_bulk(message, place),
    )
    if len(sentence) <= LINE_CHARS_MAX:
        return (whole,)
    pins = []
    for start, end in _windows(kind, sentence, items):
        inside = tuple(sentence[item.start : item.end] for item in items if start <= item.start and item.end <= end)
        pins.append(replace(whole, text=sentence[start:end], items=inside))
    return pins


def _windows(kind: PinKind, sentence: str, items: Sequence[LiteralItem]) -> list[tuple[int, int]]:
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
        named = (item for item in line[len(BARE) :].split(", ") if item)
        return [Pin(kind="identifier", text="", items=(item,), seq=seq, role="assistant", at=None) for item in named]
    role, at, asks, text = split_head(line)
    found: list[Pin] = []
    place = 0
    for part in text.split(GAP):
        place += 1
        for start, end in sentence_spans(part):
            place += 1
            words = part[start:end]
            items = items_of(words)
            pin = Pin(
                kind="question",
                text=words,
                items=tuple(words[item.start : item.end] for item in items),
                seq=seq,
                role=role or "assistant",
                at=at,
                place=place,
                is_bulk=role == "tool" or (role != "user" and len(words) > SHORT_LINE_CHARS),
            )
            found.append(pin if asks else replace(pin, kind=_kind_again(pin, items)))
    return found


def _kind_again(pin: Pin, items: Sequence[LiteralItem]) -> PinKind:
    by_item = min((item.kind for item in items), key=_ITEM_RANK.__getitem__, default=None)
    if pin.role == "user" and cues.RULE.search(pin.text):
        return "constraint"
    if cues.DECISION.search(pin.text) and (pin.role == "user" or by_item is not None):
        return "decision"
    return by_item or ("wish" if pin.role == "user" and cues.WISH.search(pin.text) else "statement")


def _unless_answered(pin: Pin, statements: StatementIndex) -> Pin:
    """A carried question that the new messages answer is no longer one."""
    if pin.kind == "question" and statements.settle(pin.text):
        return replace(pin, kind="date", text=pin.text if pin.items else "")
    return pin
