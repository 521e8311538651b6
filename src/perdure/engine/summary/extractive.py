"""The summariser that needs no model: it chooses sentences and says who spoke them and when. It invents nothing.

Which sentences matter is decided in `salience`; this module lays them out for each kind of digest within its length.

The written form of sessions and spines: from parts to text within a length, and from the text back to its parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from perdure.domain.conversation.digests import SESSION_FIELDS, SPINE_SECTIONS, Summary, SummaryRequest
from perdure.domain.conversation.messages import Message
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import Json
from perdure.engine.lessons import clean_lessons
from perdure.engine.summary.pins import line_head
from perdure.engine.summary.questions import StatementIndex, sentences_of
from perdure.engine.summary.salience import PEOPLE_MAX, SummarySentence, names_in, people_of, picked, ranked
from perdure.engine.text import cues
from perdure.engine.text.sentences import count_words, cut_text

_TITLES = {"what_mattered": "What mattered", "open_loops": "Open", "commitments": "Promised", "people": "People"}
_BY_TITLE = {title: name for name, title in _TITLES.items()}
_TONE = "Tone: "
_BULLET = pattern(r"[-*+•]\s+")
# Over length, the oldest promise or loop goes first; of what mattered and of people, the least.
_OLDEST_FIRST = ("open_loops", "commitments")


def session_summary(fields: Mapping[str, Json], chars_max: int, words_max: int | None) -> Summary:
    """The session as text and parts that say the same, both cut down to the length."""
    parts: dict[str, Json] = {name: list(fields[name]) if name in _TITLES else fields[name] for name in SESSION_FIELDS}
    while not _fits(text := _session_text(parts), chars_max, words_max):
        longest = max(_TITLES, key=lambda name: sum(map(len, parts[name])))
        if parts[longest]:
            parts[longest].pop(0 if longest in _OLDEST_FIRST else -1)
        elif parts["tone"]:
            parts["tone"] = ""
        else:
            parts["one_liner"] = text = cut_text(parts["one_liner"], chars_max, words_max)
            break
    return Summary(text, fields=parts)


def session_fields(text: str) -> dict[str, Json]:
    """The parts of a session's text. Any other text is all `one_liner` and `what_mattered`."""
    fields: dict[str, Json] = {"one_liner": "", **{name: [] for name in _TITLES}, "tone": ""}
    current = fields["what_mattered"]
    for raw in text.splitlines():
        line = raw.strip()
        title, _, rest = line.partition(":")
        if title in _BY_TITLE:
            current = fields[_BY_TITLE[title]]
            current += [part.strip() for part in rest.split(",") if part.strip()]
        elif line.startswith(_TONE):
            fields["tone"] = line.removeprefix(_TONE)
        elif line and not fields["one_liner"]:
            fields["one_liner"] = line
        elif line:
            current.append(_BULLET.sub("", line, count=1))
    return fields


def spine_summary(sections: Mapping[str, Sequence[str]], chars_max: int, words_max: int | None) -> Summary:
    """The spine as text and parts that say the same. Over length, the section that takes most room loses its oldest line."""
    parts = {name: list(sections[name]) for name in SPINE_SECTIONS}
    while not _fits(text := _spine_text(parts), chars_max, words_max):
        longest = max(parts, key=lambda name: sum(map(len, parts[name])))
        is_last = sum(map(len, parts.values())) == 1
        oldest = parts[longest].pop(0)
        frame = _spine_text({longest: [""]})
        if is_last and len(frame) < chars_max and (words_max is None or count_words(frame) < words_max):
            room = None if words_max is None else words_max - count_words(frame)
            parts[longest] = [line] if (line := cut_text(oldest, chars_max - len(frame), room)) else []
    return Summary(text, fields=parts)


def spine_sections(text: str) -> dict[str, list[str]]:
    """The sections of a spine's text by name, each a list of lines. What stands under no known heading is left out."""
    sections: dict[str, list[str]] = {name: [] for name in SPINE_SECTIONS}
    current: list[str] | None = None
    for raw in text.splitlines():
        line = raw.strip()
        heading = re.sub(r"[\s-]+", "_", line.strip("#*:_ ").upper())
        if heading in sections:
            current = sections[heading]
        elif current is not None and (entry := _BULLET.sub("", line, count=1)):
            current.append(entry)
    return sections


def _session_text(fields: Mapping[str, Json]) -> str:
    lines = [fields["one_liner"]] if fields["one_liner"] else []
    for name, title in _TITLES.items():
        if name == "people" and fields[name]:
            lines.append(f"{title}: {', '.join(fields[name])}")
        elif fields[name]:
            lines += [f"{title}:", *(f"- {line}" for line in fields[name])]
    if fields["tone"] and lines:
        lines.append(f"{_TONE}{fields['tone']}")
    return "\n".join(lines)


def _spine_text(sections: Mapping[str, Sequence[str]]) -> str:
    return "\n\n".join("\n".join([f"## {name}", *(f"- {line}" for line in lines)]) for name, lines in sections.items() if lines)


def _fits(text: str, chars_max: int, words_max: int | None) -> bool:
    return len(text) <= chars_max and (words_max is None or count_words(text) <= words_max)


SENTENCE_CHARS_MAX = 280
FIELD_CHARS_MAX = 200
LESSON_CHARS_MAX = 160
LESSONS_MAX = 8
LINES_MAX = 200
"""Sentences one summary looks at after ranking; a request for more is a request for the log."""
_MATTERED_MAX = 6
_LOOPS_MAX = 6
_SECTION_LINES_MAX = 40


class ExtractiveSummariser:
    """Sentences of the conversation itself. The same request gives the same summary."""

    @property
    def name(self) -> str:
        return "extractive/1"

    def summarise(self, request: SummaryRequest) -> Summary:
        """A summary of the kind asked for, within its length; empty if nothing was said but small talk."""
        kinds: dict[str, Callable[[SummaryRequest], Summary]] = {
            "fold": _fold,
            "rolling": _rolling,
            "session": _session,
            "spine": _spine,
        }
        return kinds[request.kind](request)


def corrections(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the user said about doing it better another time, in their words, one line each."""
    found: dict[str, None] = {}
    for message in messages:
        if message.role != "user":
            continue
        for sentence in sentences_of(message):
            line = " ".join(sentence.split())
            if len(line) >= 12 and cues.CORRECTION.search(line) and not cues.is_question(line):
                found[cut_text(line, LESSON_CHARS_MAX)] = None
    return clean_lessons(found)[-LESSONS_MAX:]


def _fold(request: SummaryRequest) -> Summary:
    chosen = picked(ranked(request.previous, request.messages, request.question), LINES_MAX)
    return Summary(_fitted(chosen, request.chars_max, request.words_max), corrections(request.messages))


def _fitted(best_first: Sequence[SummarySentence], chars_max: int, words_max: int | None) -> str:
    """As many of the best as fit, as lines in log order; sentences of one message share a line."""
    chars, words = chars_max, words_max if words_max is not None else chars_max
    kept: list[SummarySentence] = []
    turns: set[int] = set()
    for candidate in best_first:
        text = cut_text(_one_line(candidate.text), SENTENCE_CHARS_MAX)
        is_new = candidate.turn < 0 or candidate.turn not in turns
        head = line_head(candidate.role, candidate.at) if candidate.role and is_new else ""
        # A sentence that joins its message's line costs at most a gap mark and two spaces, or a new line.
        cost_chars, cost_words = len(head) + len(text) + 3, count_words(head) + count_words(text) + 1
        if cost_chars <= chars and cost_words <= words:
            kept.append(candidate)
            turns.add(candidate.turn)
            chars -= cost_chars
            words -= cost_words
    text = "\n".join(_lines(sorted(kept, key=lambda one: one.place)))
    if not text and best_first:
        text = next(iter(_lines([best_first[0]])))
    return cut_text(text, chars_max, words_max)


def _lines(in_order: Iterable[SummarySentence]) -> Iterable[str]:
    for _, group in groupby(in_order, key=lambda one: (one.turn, one.place if one.turn < 0 else 0)):
        parts: list[str] = []
        before = None
        first = None
        for candidate in group:
            first = first or candidate
            if before is not None and candidate.place != before + 1:
                parts.append("…")
            parts.append(cut_text(_one_line(candidate.text), SENTENCE_CHARS_MAX))
            before = candidate.place
        if first is not None:
            yield (line_head(first.role, first.at) if first.role else "") + " ".join(parts)


def _rolling(request: SummaryRequest) -> Summary:
    """Where we are: what the user is after now, what was decided, what is open; what came before in the room that is left."""
    found = ranked(_without_labels(request.previous), request.messages, request.question)
    spoken = [one for one in found if one.role in ("user", "assistant") or one.turn < 0]
    now = _current(spoken) or _newest(spoken)
    opened = [one for one in spoken if one.is_open and one is not now][-2:]
    decided = [one for one in spoken if one.is_decision and one is not now and not one.is_open][-3:]
    taken = {one.place for one in (*opened, *decided)} | ({now.place} if now else set())
    before = [one for one in picked(spoken, 12) if one.place not in taken]
    parts = [("Now", [now] if now else []), ("Open", opened[::-1]), ("Decided", decided[::-1]), ("Before", before)]
    left = request.chars_max
    lines: list[str] = []
    words_left = request.words_max if request.words_max is not None else request.chars_max
    for label, group in parts:
        for candidate in group:
            head = line_head(candidate.role, candidate.at, asks=label == "Open") if candidate.role else ""
            line = f"{label}: {head}{cut_text(_one_line(candidate.text), max(80, request.chars_max // 3))}"
            if len(line) + 1 <= left and count_words(line) <= words_left:
                lines.append(line)
                left -= len(line) + 1
                words_left -= count_words(line)
    text = "\n".join(lines)
    if not text and now is not None:
        text = _one_line(now.text)
    return Summary(cut_text(text, request.chars_max, request.words_max))


def _without_labels(previous: str) -> str:
    return re.sub(r"^(?:Now|Open|Decided|Before): ", "", previous, flags=re.MULTILINE)


def _current(spoken: Sequence[SummarySentence]) -> SummarySentence | None:
    """What the user said last, as one: the topic. Questions of it that are open have a line of their own."""
    said = [one for one in spoken if one.role == "user" and one.turn >= 0 and len(one.words) >= 2]
    latest = [one for one in said if one.turn == said[-1].turn and not cues.is_question(one.text)] if said else []
    return replace(latest[-1], text=" ".join(one.text for one in latest)) if latest else _newest(said)


def _newest(candidates: Sequence[SummarySentence]) -> SummarySentence | None:
    return candidates[-1] if candidates else None


def _session(request: SummaryRequest) -> Summary:
    before = session_fields(request.previous)
    found = ranked("", request.messages, request.question)
    spoken = [one for one in found if one.role in ("user", "assistant")]
    lead = _lead(spoken)
    best = sorted(picked([one for one in spoken if one is not lead], _MATTERED_MAX), key=lambda one: -one.score)
    promised = [one for one in spoken if cues.PROMISE.search(one.text) and not cues.is_question(one.text)]
    still_open = _unsettled(before["open_loops"], request.messages)
    people = [*before["people"], *people_of(one.text for one in spoken)]
    tone = _tone(request.messages)
    fields: dict[str, Json] = {
        "one_liner": before["one_liner"] or (_brief(lead.text) if lead else ""),
        "what_mattered": [*before["what_mattered"][:_MATTERED_MAX], *map(_attributed, best)],
        "open_loops": _latest_distinct([*still_open, *(_attributed(one) for one in spoken if one.is_open)])[-_LOOPS_MAX:],
        "commitments": _latest_distinct([*before["commitments"], *map(_attributed, promised)])[-_LOOPS_MAX:],
        "people": list(dict.fromkeys(people))[:PEOPLE_MAX],
        "tone": (before["tone"] or tone) if tone == "neutral" else tone,
    }
    return session_summary(fields, request.chars_max, request.words_max)


def _lead(spoken: Sequence[SummarySentence]) -> SummarySentence | None:
    """What the user came for: the first of their messages that does more than lay down a rule, by its weightiest sentence."""
    users = [one for one in spoken if one.role == "user"]
    said = [one for one in users if len(one.words) >= 3]
    said = [one for one in users if one.words] if all(one.is_rule for one in said) else said
    first = [one for one in said if one.turn <= said[0].turn + 4] if said else []
    return max(first, key=lambda one: (not one.is_rule, -one.turn, one.score, -one.place), default=None)


def _attributed(candidate: SummarySentence) -> str:
    return (f"{candidate.role}: " if candidate.role else "") + _brief(candidate.text)


def _brief(text: str) -> str:
    return cut_text(_one_line(text), FIELD_CHARS_MAX)


_TONES = {tone: cues.Cue(tone) for tone in ("urgent", "frustrated", "worried", "friendly")}


def _tone(messages: Sequence[Message]) -> str:
    """One word for how the user spoke: the commonest of a few moods, else `neutral`."""
    said = [message.content[:2_000] for message in messages if message.role == "user"]
    counts = {tone: sum(cue.search(text) for text in said) for tone, cue in _TONES.items()}
    best = max(counts, key=lambda tone: counts[tone])
    return best if counts[best] * 5 >= len(said) and counts[best] else "neutral"


def _spine(request: SummaryRequest) -> Summary:
    sections = spine_sections(request.previous)
    sections["OPEN_LOOPS"] = _unsettled(sections["OPEN_LOOPS"], request.messages)
    found = ranked("", request.messages, request.question)
    for one in found:
        if one.role not in ("user", "assistant") or (cues.is_question(one.text) and not one.is_open):
            continue
        line = _brief(one.text)
        if one.role == "user" and (one.is_rule or cues.SELF.search(one.text)) and not one.is_open:
            sections["PROFILE"].append(line)
        elif one.is_decision or (one.role == "user" and cues.PROJECT.search(one.text) and not one.is_open):
            sections["PROJECTS"].append(line)
        if one.role == "user":
            sections["PEOPLE"] += [f"{name}: {line}" for name in names_in(one.text)]
        if one.is_open or (one.role == "user" and cues.PROMISE.search(one.text)):
            sections["OPEN_LOOPS"].append(line)
    distinct = {name: _latest_distinct(lines)[-_SECTION_LINES_MAX:] for name, lines in sections.items()}
    return spine_summary(distinct, request.chars_max, request.words_max)


def _unsettled(lines: Sequence[str], messages: Sequence[Message]) -> list[str]:
    statements = StatementIndex(messages)
    return [line for line in lines if not statements.settle(line)]


def _latest_distinct(lines: Sequence[str]) -> list[str]:
    """Each line once, at its latest place; case and punctuation do not count."""
    latest = {re.sub(r"\W+", " ", line.casefold()).strip(): index for index, line in enumerate(lines)}
    return [lines[index] for index in sorted(latest.values())]


def _one_line(text: str) -> str:
    return " ".join(text.split())
