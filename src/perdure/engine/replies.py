"""Replies: what a model answered to a prompt, read once into typed values. What cannot be read is a value too, not an error.

Lessons steer every later prompt, so they are looked at twice: boilerplate, echoes of the prompt and orders are no lessons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perdure.domain.digests import SESSION_FIELDS, SPINE_SECTIONS
from perdure.domain.text import Json
from perdure.engine.answers import Unreadable, read_object, spelt, without_thoughts
from perdure.engine.hygiene import flaw
from perdure.engine.lessons import LESSON_CHARS_MAX, as_lesson, sameness

LESSON_LINE_CHARS_MAX = 240
MARKUP_CHARS = 10
"""What a bullet before a lesson may have."""
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


_WHOLE_FENCE = re.compile(r"\s*```[\w-]*\n(?P<inside>.*?)\n?```\s*", re.DOTALL)
_HEADING = re.compile(
    r"[ \t>]*(?:#{1,6}[ \t]*)?(?:\d[.)][ \t]*)?(?P<mark>\*\*|__|\[)?[ \t]*(?P<name>context|lessons?(?: learned)?)[ \t]*"
    r"(?P<first>[:：])?[ \t]*(?:\*\*|__|\])?[ \t]*(?P<second>[:：])?[ \t]*(?P<rest>.*)",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(
    r"(?:sure|certainly|of course|okay|ok|here(?:'s| is| are)|below (?:is|are)|the following)\b[^\n]*:\s*", re.IGNORECASE
)
# Parts of our own prompts, and of those that models have seen most: a model that repeats them has not summarised.
_ECHOES = re.compile(
    r"at most \d+ (?:words|characters)|one line each|short bullets|each under its own heading|on a line by itself"
    r"|between `?<data>|</?data>|lines of json|facts about this conversation are not lessons|serve the user's latest question"
    r"|(?:tools|approach(?:es)?) that worked|mistakes? to avoid|what the user corrected|write `?none|copy names, numbers"
    r"|you keep the notes|answer with (?:two parts|one json)|verified facts and outcomes|bullet (?:list|points) of|\{\{\w+\}\}",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"(?:ignore|disregard|forget|override) (?:all |any |the |your )*(?:previous|prior|above|earlier|system|safety|these)?"
    r" ?(?:instructions?|prompts?|rules?|guidelines?|messages?)|system prompt|developer (?:mode|message)|jailbreak|you are now"
    r"|act as (?:an?|the)|pretend (?:to be|you)|reveal (?:the|your)"
    r"|(?:send|post|forward|upload|exfiltrate) .{0,60}(?:password|secret|token|credential|api key|https?://)"
    r"|do anything now|</?(?:system|assistant|user|instructions?)>|\[/?INST\]|<\|",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*(?:[-*+•‣◦·–—]|\(?\d{1,3}[.)])\s+")


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
    if len(_ECHOES.findall(context)) >= 2:
        return Unreadable("the reply repeats the instructions")
    return FoldReply(context, clean_lessons(lessons))


def read_text(reply: str) -> TextReply | Unreadable:
    """Plain text, without a fence around it or a line that announces it."""
    text = _bare(reply)
    text = (_PREAMBLE.sub("", text, count=1) if _PREAMBLE.match(text) else text).strip()
    if not any(char.isalnum() for char in text):
        return Unreadable("the reply is empty")
    if len(_ECHOES.findall(text)) >= 2:
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


def clean_lessons(lines: Iterable[str]) -> tuple[str, ...]:
    """Those of `lines` that are lessons, one line each, each once: no boilerplate, no echo, no order, nothing invisible."""
    found: dict[str, str] = {}
    for line in lines:
        lesson = as_lesson(line)
        if lesson is not None and why_no_lesson(lesson, chars_max=LESSON_LINE_CHARS_MAX) is None:
            found.setdefault(sameness(lesson), lesson)
    return tuple(found.values())


def why_no_lesson(text: str, *, chars_max: int = LESSON_CHARS_MAX) -> str | None:
    """Why `text` must not be kept as a lesson; None if nothing speaks against it."""
    wrong = flaw(text)
    if wrong is not None:
        return wrong
    lesson = as_lesson(text)
    if lesson is None:
        return "says nothing that could be followed, or has characters that nobody sees"
    # The line as it was given: a longer one would be cut, and half a lesson may say the opposite.
    if len(" ".join(text.split())) > chars_max + MARKUP_CHARS:
        return f"has more than {chars_max} characters"
    if _ECHOES.search(lesson):
        return "repeats the words of a prompt"
    return "is an order to a model" if _ORDERS.search(lesson) else None


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
