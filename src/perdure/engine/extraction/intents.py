"""What the user intends, promises, repeats, struggles with, and says to have done.

A firm word makes a commitment, a hedged one a thread unless it names a time, and what recurs is a habit. What is said to
the assistant about the talk itself (`I'll try that`) is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from perdure.domain.knowledge.proposals import TodoKind
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.patterns import forms, pattern, words
from perdure.engine.text.own_words import told_by_others
from perdure.engine.times.mentions import TimeMention


@dataclass(frozen=True, slots=True)
class Intent:
    """One thing to do, or done, before it has evidence."""

    kind: TodoKind
    content: str
    start: int
    end: int
    due_at: datetime | None = None
    time_words: str | None = None
    recurrence: str | None = None
    done: bool = False
    confidence: float = 0.8


@dataclass(frozen=True, slots=True)
class Completion:
    """Something a sentence says is done. `bare`: as a report of its own, `Sent the slides`."""

    verb: str
    thing: str
    start: int
    end: int
    bare: bool


CONTENT_CHARS_MAX = 160
TASK_WORDS_MAX = 16
"""What takes more words than this to say is not one thing to do."""
# What is due on a day is due before the day is over; the end of a half-open range is already the next one.
_LAST_MOMENT = timedelta(seconds=1)


def find_intents(sentence: str, times: list[TimeMention], now: datetime, *, asks: bool) -> Iterator[Intent]:
    """Things to do in one sentence, whose `times` have their places in it. Of a question, only requests to remind."""
    if pattern("weather").search(sentence):
        return
    ahead = [one for one in times if one.last > now and one.kind != "since"]
    taken: list[tuple[int, int]] = []
    for intent in _candidates(sentence, ahead, asks=asks):
        if not any(start < intent.end and intent.start < end for start, end in taken):
            taken.append((intent.start, intent.end))
            yield intent


def _candidates(sentence: str, times: list[TimeMention], *, asks: bool) -> Iterator[Intent]:
    for form in ("remind", "noted"):
        for match in pattern(form).finditer(sentence):
            yield from _intent(match, times, "commitment", 0.95)
    if asks:
        return
    for match in pattern("friction").finditer(sentence):
        yield from _friction(match)
    for match in pattern("promised").finditer(sentence):
        yield from _intent(match, times, "commitment", 0.9)
    for match in pattern("should").finditer(sentence):
        yield from _intent(match, times, "thread", 0.7, words("PURSUITS") | words("DUTIES"))
    for match in pattern("hedged").finditer(sentence):
        yield from _intent(match, times, "thread", 0.7, words("PURSUITS"))
    for match in pattern("must").finditer(sentence):
        yield from _intent(match, times, "commitment", 0.85, words("DUTIES"))
    for match in pattern("will").finditer(sentence):
        yield from _intent(match, times, "thread" if match["soft"] else "commitment", 0.8, words("ERRANDS"))
    for match in pattern("going").finditer(sentence):
        yield from _going(match, times)
    for match in pattern("appointment").finditer(sentence):
        if times:
            yield from _intent(match, times, "commitment", 0.8, frozenset())


def _intent(
    match: re.Match[str], times: list[TimeMention], kind: TodoKind, confidence: float, timeless: frozenset[str] | None = None
) -> Iterator[Intent]:
    """The task of a match. Without a time only the `timeless` verbs make one; None allows all."""
    content, start, end, when = _task(match, times)
    verb = content.split()[0].lower() if content else ""
    if not verb or pattern("chat").search(content) or pattern("dangling").search(content):
        return
    if timeless is not None:
        if (
            pattern("no_task").match(content)
            or pattern("wondered").search(match.string[: match.start()])
            or told_by_others(match.string[: match.start()])
            or len(content.split()) > TASK_WORDS_MAX
        ):
            return
        if when is None and len(content.split()) < 2:
            return
        if when is None and (verb not in timeless or pattern("vague_task").search(content)):
            return
        if when is not None and (verb in words("NO_TASKS") or (when.kind == "span" and verb in ("plan", "start"))):
            return
    if when is not None and when.kind == "recurring":
        yield replace(_timed("habit", content, start, end, when), recurrence=when.cron, confidence=confidence)
    elif when is not None:
        yield replace(_timed("commitment", content, start, end, when), due_at=_due(when), confidence=confidence)
    else:
        yield Intent(kind, content, start, end, confidence=confidence)


def _timed(kind: TodoKind, content: str, start: int, end: int, when: TimeMention) -> Intent:
    return Intent(kind, content, start, max(end, when.end), time_words=when.words)


def _task(match: re.Match[str], times: list[TimeMention]) -> tuple[str, int, int, TimeMention | None]:
    """The task in its own words without the time, its place, and the time that belongs to it."""
    sentence, (start, end) = match.string, match.span("what")
    for form in ("cut", "clause_break"):
        cut = pattern(form).search(sentence, start, end)
        end = cut.start() if cut else end
    inside = [one for one in times if match.start() <= one.start < end]
    when = next((one for one in inside if one.kind == "recurring"), inside[0] if inside else None)
    behind = when is not None and when.start > start
    text = sentence[start : when.start] if when is not None and behind else sentence[start:end]
    if when is not None and when.start <= start < when.end:
        text = re.sub(r"^(?:to |that |i )", "", sentence[when.end : end].strip(" ,"))
    text = _base_form(pattern("trail").sub("", text).strip(" ,:-'\"")[:CONTENT_CHARS_MAX])
    place = match.start() + len(match[0]) - len(match[0].lstrip(" .,;:!"))
    return text[:1].upper() + text[1:], place, start + len(text), when


def _base_form(text: str) -> str:
    """`visiting Rome` as a thing to do: `visit Rome`."""
    verb, space, rest = text.partition(" ")
    if not verb.endswith("ing") or len(verb) < 6:
        return text
    stem = verb[:-3]
    if stem in words("DROPS_E"):
        stem += "e"
    elif len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "ls":
        stem = stem[:-1]
    return f"{stem}{space}{rest}"


def as_promise(content: str, times: list[TimeMention], now: datetime) -> Intent:
    """A whole sentence as something to do, with the first time in it that lies ahead."""
    when = next((one for one in times if one.last > now and one.kind != "since"), None)
    if when is None:
        return Intent("commitment", content, 0, len(content))
    if when.kind == "recurring":
        return Intent("habit", content, 0, len(content), time_words=when.words, recurrence=when.cron)
    return Intent("commitment", content, 0, len(content), due_at=_due(when), time_words=when.words)


def _due(when: TimeMention) -> datetime | None:
    if when.exact:
        return when.first if when.kind != "until" else when.last - timedelta(minutes=1)
    return when.last - _LAST_MOMENT


def _friction(match: re.Match[str]) -> Iterator[Intent]:
    cut = pattern("cut").search(match.string, match.start("what"), match.end())
    end = cut.start() if cut else match.end()
    text = re.sub(r"(?i)^i(?:['’]m| am|['’]ve| have)?\s+(?:been )?", "", match.string[match.start() : end]).strip(" ,")
    if (
        not pattern("chat").search(text)
        and not pattern("troubleshooting").search(text)
        and not pattern("dangling").search(text)
        and ("trouble" not in text or pattern("life").search(text))
    ):
        yield Intent("friction", text[:1].upper() + text[1:], match.start(), end, confidence=0.85)


def _going(match: re.Match[str], times: list[TimeMention]) -> Iterator[Intent]:
    """`I'm flying to Oslo on Monday`: with a time it is settled, and so is moving house or marrying without one."""
    verb = match["verb"].lower()
    content, start, end, when = _task(match, times) if match["what"].strip() else ("", match.start(), match.end(), None)
    if pattern("no_trip").match(match["what"]) or (when is not None and when.kind == "recurring"):
        return
    if when is None and verb not in ("moving", "relocating", "getting married"):
        return
    rest = content if match["what"].lstrip()[:1].isupper() else content[:1].lower() + content[1:]
    task = f"{forms('GOING')[verb].capitalize()} {rest}".strip()
    if when is None:
        yield Intent("thread", task, start, end)
    else:
        yield replace(_timed("commitment", task, start, end, when), due_at=_due(when))


def find_completions(sentence: str) -> Iterator[Completion]:
    """What the sentence says is done."""
    for match in pattern("is_done").finditer(sentence):
        thing = match["what"] or match["thing"]
        yield Completion(
            "finish", pattern("trail").sub("", thing).strip(), match.start(), match.end(), bare=match["what"] is not None
        )
    for match in pattern("done").finditer(sentence):
        cut = pattern("cut").search(match.string, match.start("what"), match.end())
        text = re.split(r" and | - ", match.string[match.start("what") : cut.start() if cut else match.end()])[0]
        thing = pattern("trail").sub("", text).strip(" ,")
        yield Completion(
            forms("PAST")[match["verb"].lower()],
            thing,
            match.start("verb"),
            match.start("what") + len(text),
            bare=not match["lead"] and not sentence[: match.start("verb")].strip(" -*•"),
        )


def completes(done: Completion, held: Intent) -> bool:
    """Whether the one says that the other is done: the same verb, or one that fits all, and a thing in common."""
    verb, *_ = held.content.lower().split()
    common = _things(done.thing) & _things(held.content)
    return bool(common) and (done.verb in words("ANY_DONE") or verb in (done.verb, "finish", "complete", "get", "do"))


def as_completion(done: Completion) -> Intent | None:
    """What is reported as done though nothing here says it was open: it may have been said long before."""
    if not done.bare or not _things(done.thing) or done.verb not in words("REPORTED"):
        return None
    verb = "finish" if done.verb == "do" else done.verb
    return Intent("commitment", f"{verb.capitalize()} {done.thing}", done.start, done.end, done=True, confidence=0.6)


def _things(text: str) -> set[str]:
    return {
        word.rstrip("s") for word in re.findall(r"[\w-]+", text.lower()) if word not in words("SMALL_WORDS") and len(word) > 2
    }
