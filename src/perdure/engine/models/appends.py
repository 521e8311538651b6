"""`MEMORY_APPEND` in a model's reply: the lines that are meant for the memory, and the reply as the user may see it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.domain.text.patterns import pattern

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
            found.append(LessonRequest(_bare(item["text"]), agent))
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
    return (agent["agent"], _bare(agent["rest"])) if agent else (None, _bare(rest))


def _bare(text: str) -> str:
    """Without the markup that was opened before the mark."""
    text = text.strip()
    for mark in ("**", "__", "`", "*", "]", ")"):
        if text.endswith(mark) and text.count(mark) % 2 and {"]": "[", ")": "("}.get(mark, "\0") not in text:
            text = text.removesuffix(mark).rstrip()
    return text
