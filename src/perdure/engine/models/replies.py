"""Replies: what a model answered to a prompt, read once into typed values. What cannot be read is a value too, not an error.

Lessons steer every later prompt, so they are looked at twice: boilerplate, echoes of the prompt and orders are no lessons.

The extraction prompt's data, and the reader of its reply: what cannot be found word for word in a message is not taken.

Also the lines `MEMORY_APPEND` of a reply, which are meant for the memory, and the reply as the user may see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from perdure.domain.conversation.digests import SESSION_FIELDS, SPINE_SECTIONS
from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.proposals import (
    ENTITY_TYPES,
    EntityName,
    Evidence,
    Extraction,
    ExtractionRequest,
    Proposal,
    TodoProposal,
)
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass
from perdure.engine.extraction.predicates import bounded_importance
from perdure.engine.lessons import ECHOES, clean_lessons, sameness
from perdure.engine.models.answers import Unreadable, read_object, spelt, without_thoughts
from perdure.engine.models.prompts import as_data, message_form

ENTRY_CHARS_MAX = 500
ENTRIES_MAX = 50


@dataclass(frozen=True, slots=True)
class FoldReply:
    context: str
    lessons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextReply:
    text: str


@dataclass(frozen=True, slots=True)
class FieldsReply:
    """The parts by name, all present, in the order of the prompt."""

    fields: dict[str, Json]


_WHOLE_FENCE = pattern(r"\s*```[\w-]*\n(?P<inside>.*?)\n?```\s*", re.DOTALL)
_HEADING = pattern(
    r"[ \t>]*(?:#{1,6}[ \t]*)?(?:\d[.)][ \t]*)?(?P<mark>\*\*|__|\[)?[ \t]*(?P<name>context|lessons?(?: learned)?)[ \t]*"
    r"(?P<first>[:：])?[ \t]*(?:\*\*|__|\])?[ \t]*(?P<second>[:：])?[ \t]*(?P<rest>.*)",
    re.IGNORECASE,
)
_PREAMBLE = pattern(
    r"(?:sure|certainly|of course|okay|ok|here(?:'s| is| are)|below (?:is|are)|the following)\b[^\n]*:\s*", re.IGNORECASE
)
_BULLET = pattern(r"\s*(?:[-*+•‣◦·–—]|\(?\d{1,3}[.)])\s+")


def read_fold(reply: str) -> FoldReply | Unreadable:
    """CONTEXT and LESSONS, whatever the case and markup of the headings. Without headings all is context."""
    return _fold(*_parts(_bare(reply)))


def fold_fields(found: Mapping[str, Json]) -> FoldReply | Unreadable:
    """The same from an object with `context` and `lessons`, under the same rules."""
    context, lessons = _as_whole_text(found.get("context")), _as_list(found.get("lessons"))
    if context is None or lessons is None:
        return Unreadable("`context` must be a text and `lessons` a list of texts")
    # Some models put both parts, with their headings, into the one text.
    told, more = _parts(context)
    return _fold(told, [*more, *lessons])


def _fold(context: str, lessons: Iterable[str]) -> FoldReply | Unreadable:
    context = _PREAMBLE.sub("", context, count=1) if _PREAMBLE.match(context) else context
    context = context.strip()
    if not any(char.isalnum() for char in context):
        return Unreadable("the reply has no context")
    if len(ECHOES.findall(context)) >= 2:
        return Unreadable("the reply repeats the instructions")
    return FoldReply(context, clean_lessons(lessons))


def read_text(reply: str) -> TextReply | Unreadable:
    """Plain text, without a fence around it or a line that announces it."""
    text = _bare(reply)
    text = (_PREAMBLE.sub("", text, count=1) if _PREAMBLE.match(text) else text).strip()
    if not any(char.isalnum() for char in text):
        return Unreadable("the reply is empty")
    if len(ECHOES.findall(text)) >= 2:
        return Unreadable("the reply repeats the instructions")
    return TextReply(text)


def read_session(reply: str) -> FieldsReply | Unreadable:
    """The fields of a session. Texts may be missing, lists may be a single text; anything else is `Unreadable`."""
    found = json_object(reply, SESSION_FIELDS)
    return found if isinstance(found, Unreadable) else session_fields(found)


def read_spine(reply: str) -> FieldsReply | Unreadable:
    """The sections of a spine, under the same rules."""
    found = json_object(reply, SPINE_SECTIONS)
    return found if isinstance(found, Unreadable) else spine_fields(found)


def session_fields(found: Mapping[str, Json]) -> FieldsReply | Unreadable:
    """The fields of a session that was read already."""
    return _fields(found, texts=("one_liner", "tone"), names=SESSION_FIELDS, needed="one_liner")


def spine_fields(found: Mapping[str, Json]) -> FieldsReply | Unreadable:
    """The sections of a spine that was read already."""
    return _fields(found, texts=(), names=SPINE_SECTIONS, needed=None)


def _bare(reply: str) -> str:
    text = without_thoughts(reply).replace("\r\n", "\n").replace("\r", "\n").strip()
    match = _WHOLE_FENCE.fullmatch(text)
    return match["inside"] if match else text


def _parts(text: str) -> tuple[str, list[str]]:
    """What stands under CONTEXT, or under nothing, and the lines under LESSONS."""
    context: list[str] = []
    lessons: list[str] = []
    into, is_headed = context, False
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line)
        if heading is None or not _is_heading(line, heading):
            _add(into, line, is_list=into is lessons)
            continue
        is_lessons = heading["name"].casefold().startswith("lesson")
        if not is_lessons and not is_headed:
            context.clear()
        is_headed = is_headed or not is_lessons
        into = lessons if is_lessons else context
        if heading["rest"]:
            _add(into, heading["rest"], is_list=is_lessons)
    return "\n".join(context), lessons


def _is_heading(line: str, match: re.Match[str]) -> bool:
    """A word at the start of a sentence is no heading: it stands alone, or a colon or markup sets it off."""
    is_marked = match["first"] or match["second"] or (match["mark"] and not match["rest"]) or line.lstrip().startswith("#")
    return bool(is_marked) or not match["rest"]


def _add(lines: list[str], line: str, *, is_list: bool) -> None:
    """Under LESSONS a line that is no bullet continues the bullet before it."""
    if is_list and lines and lines[-1].strip() and line.strip() and not _BULLET.match(line) and line[:1] in " \t":
        lines[-1] = f"{lines[-1].rstrip()} {line.strip()}"
    else:
        lines.append(line)


def _fields(
    found: Mapping[str, Json], *, texts: Sequence[str], names: Sequence[str], needed: str | None
) -> FieldsReply | Unreadable:
    fields: dict[str, Json] = {}
    for name in names:
        value = found.get(name)
        read = _as_text(value) if name in texts else _as_list(value)
        if read is None:
            return Unreadable(f"`{name}` has not the shape asked for")
        fields[name] = read
    if needed is not None and not fields[needed]:
        return Unreadable(f"`{needed}` is empty")
    return FieldsReply(fields)


def json_object(reply: str, names: Sequence[str]) -> dict[str, Json] | Unreadable:
    """What the one JSON object in a reply has under the names, in any case; keys as the names are spelt."""
    found = read_object(reply)
    if isinstance(found, Unreadable):
        return found
    known = {name: value for name, value in spelt(found, names).items() if name in names}
    return known or Unreadable("the reply holds no JSON object with the keys asked for")


def _as_text(value: Json) -> str | None:
    if value is None:
        return ""
    return _entry(value) if isinstance(value, str) else None


def _as_whole_text(value: Json) -> str | None:
    return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else None


def _as_list(value: Json) -> list[str] | None:
    if value is None:
        return []
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return [entry for item in value[:ENTRIES_MAX] if (entry := _entry(item)) and sameness(entry) not in ("none", "n/a")]


def _entry(text: str) -> str:
    return " ".join(text.split())[:ENTRY_CHARS_MAX]


PROPOSALS_MAX = 20
TODOS_MAX = 8


def extraction_data(request: ExtractionRequest) -> str:
    """What the prompt shows: known names, what was said before, then the numbered messages."""
    return "\n".join(_lines(request))


def _lines(request: ExtractionRequest) -> Iterator[str]:
    if request.known:
        yield as_data({"known": [f"{name.type}: {name.label}" for name in request.known]})
    for message in request.before:
        yield as_data({"before": message_form(message)})
    for number, message in enumerate(request.messages, 1):
        yield as_data({"n": number, **message_form(message)})


def read_extraction(reply: str, request: ExtractionRequest) -> Extraction | Unreadable:
    """What a reply proposes. Entries that quote nothing that was said are counted as skipped; others are judged elsewhere."""
    found = json_object(reply, ("proposals", "todos"))
    return found if isinstance(found, Unreadable) else extraction_of(found, request)


def extraction_of(found: Mapping[str, Json], request: ExtractionRequest) -> Extraction:
    """What an object that was read already proposes, under the same rules."""
    proposed, todos = _objects_in(found.get("proposals")), _objects_in(found.get("todos"))
    read = [_proposal(one, request) for one in proposed[:PROPOSALS_MAX]]
    promised = [_todo(one, request) for one in todos[:TODOS_MAX]]
    kept = tuple(one for one in read if one is not None)
    kept_todos = tuple(one for one in promised if one is not None)
    return Extraction(kept, kept_todos, skipped=len(proposed) + len(todos) - len(kept) - len(kept_todos))


def _objects_in(value: Json) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _evidence(one: Mapping[str, Any], request: ExtractionRequest) -> tuple[Evidence, ...]:
    """Where the quoted words stand: in the message of that number, or in the only other one of the user's that has them.

    Small models quote well and count badly.
    """
    number, quote = one.get("n"), one.get("quote")
    if not isinstance(quote, str) or not quote.strip():
        return ()
    said = [message for message in request.messages if message.role == "user" and quote in message.content]
    is_number = isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= len(request.messages)
    numbered = request.messages[number - 1] if is_number and number is not None else None
    if numbered not in said and len(said) != 1:
        return ()
    message: Message = numbered if numbered is not None and numbered in said else said[0]
    start = message.content.find(quote)
    return (Evidence(message.id, start, start + len(quote), message.at),)


def _proposal(one: Mapping[str, Any], request: ExtractionRequest) -> Proposal | None:
    evidence = _evidence(one, request)
    content = one.get("content")
    if not evidence or not isinstance(content, str):
        return None
    named = [EntityName(entity["type"], entity["label"]) for entity in _objects_in(one.get("entities")) if _is_entity(entity)]
    attribute = attribute if isinstance(attribute := one.get("attribute"), str) and attribute else None
    value = one.get("value")
    return Proposal(
        type=one.get("type", "PROFILE"),
        fact_type=one.get("fact_type", "fact"),
        content=content,
        entities=tuple(named),
        subject=named[0] if one.get("type") in ("PEOPLE", "PROJECT") and named else None,
        attribute=attribute,
        value=value if isinstance(value, str) and value else None,
        evidence=evidence,
        confidence=one.get("confidence", 0.7),
        importance=bounded_importance(
            one.get("importance"), attribute, one.get("fact_type", "fact"), content, of_user=one.get("type") != "PEOPLE"
        ),
        ended=one.get("ended") is True,
        corrects=one.get("corrects") is True,
    )


def _is_entity(entity: Mapping[str, Any]) -> bool:
    return entity.get("type") in ENTITY_TYPES and isinstance(entity.get("label"), str) and bool(entity["label"].strip())


def _todo(one: Mapping[str, Any], request: ExtractionRequest) -> TodoProposal | None:
    evidence = _evidence(one, request)
    content = one.get("content")
    if not evidence or not isinstance(content, str):
        return None
    return TodoProposal(one.get("kind", "thread"), content, done=one.get("done") is True, evidence=evidence)


MARK = "MEMORY_APPEND"
APPENDS_MAX = 20
"""Of one reply; a model that asks for more repeats itself."""

_BEFORE = pattern("[\\s>*_`\\[(#+•\\d.)\u200b-\u200f\u2060\ufeff-]{0,16}")
_AFTER = pattern(r"(?![A-Za-z0-9])[\])*_`]*\s*")
_COLON = pattern(r"[\s:：*_`\])]*[:：][\s*_`]*")
_AGENT = pattern(r"\(?agent\s*[:=]\s*(?P<agent>[^\s:,;)\]*`]+)[)\]*`]*\s*[:：,;]?\s*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_FENCE = pattern(r"\s*(`{3,}|~{3,})")
_ITEM = pattern(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+(?P<text>.*)")


@dataclass(frozen=True, slots=True)
class LessonRequest:
    """Something a model wants remembered; by one agent alone, if it names one."""

    text: str
    agent: str | None = None


def split_reply(reply: str) -> tuple[str, tuple[LessonRequest, ...]]:
    """The reply without its lines for the memory, and what they say.

    A line begins with the mark, whatever markup stands around it. With nothing behind the mark, the list below it is meant.
    Inside a code fence the mark is text like any other.
    """
    if MARK not in reply:
        return reply, ()
    shown = _KeptLines([])
    found: list[LessonRequest] = []
    lines = reply.split("\n")
    fence = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        fence, inside = _fenced(line, fence)
        rest = None if inside else _behind_mark(line)
        if rest is None:
            shown.add(line)
            continue
        shown.gap = True
        agent, text = _agent_and_text(rest)
        found.append(LessonRequest(text, agent))
        while not text and at < len(lines) and (item := _ITEM.fullmatch(lines[at])) and _behind_mark(lines[at]) is None:
            found.append(LessonRequest(_without_markup(item["text"]), agent))
            at += 1
    if not found:
        return reply, ()
    return shown.text, tuple(one for one in found if one.text)


@dataclass(slots=True)
class _KeptLines:
    """The lines that are left, without the gaps that the others leave."""

    lines: list[str]
    gap: bool = False

    def add(self, line: str) -> None:
        if self.gap and not line.strip() and not (self.lines and self.lines[-1].strip()):
            return
        self.gap = False
        self.lines.append(line)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip() if self.gap else "\n".join(self.lines)


def _behind_mark(line: str) -> str | None:
    """What stands behind the mark that a line begins with; None if it does not."""
    place = line.find(MARK)
    if place < 0 or not _BEFORE.fullmatch(line, 0, place):
        return None
    after = _AFTER.match(line, place + len(MARK))
    return None if after is None else line[after.end() :]


def _fenced(line: str, fence: str) -> tuple[str, bool]:
    """The fence that is open after a line, and whether the line is a part of one."""
    match = _FENCE.match(line)
    if not fence:
        return (match[1], True) if match else ("", False)
    closes = match is not None and match[1].startswith(fence) and not line.strip().strip(fence[0])
    return ("", True) if closes else (fence, True)


def _agent_and_text(rest: str) -> tuple[str | None, str]:
    colon = _COLON.match(rest)
    rest = rest[colon.end() :] if colon else rest
    agent = _AGENT.fullmatch(rest)
    return (agent["agent"], _without_markup(agent["rest"])) if agent else (None, _without_markup(rest))


def _without_markup(text: str) -> str:
    """Without the markup that was opened before the mark."""
    text = text.strip()
    for mark in ("**", "__", "`", "*", "]", ")"):
        if text.endswith(mark) and text.count(mark) % 2 and {"]": "[", ")": "("}.get(mark, "\0") not in text:
            text = text.removesuffix(mark).rstrip()
    return text
