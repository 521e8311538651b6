"""The written form of sessions and spines: from parts to text within a length, and from the text back to its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from perdure.domain.digests import SESSION_FIELDS, SPINE_SECTIONS, Summary
from perdure.domain.text import Json
from perdure.engine.sentences import count_words, cut_text

_TITLES = {"what_mattered": "What mattered", "open_loops": "Open", "commitments": "Promised", "people": "People"}
_BY_TITLE = {title: name for name, title in _TITLES.items()}
_TONE = "Tone: "
_BULLET = re.compile(r"[-*+•]\s+")
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
