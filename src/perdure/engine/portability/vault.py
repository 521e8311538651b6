"""The words of a vault: file names, text that stays inside its note, links, and what the lines of an edited note say.

Text from memory is data. In a note it can be read, but makes no link, no tag, no list and no other note of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

NAME_CHARS_MAX = 60
BLOCK_CHARS = 10
STATEMENTS = "Statements"
_PLAIN = re.compile(r"[a-z0-9_]{1,60}")
_OTHERS = re.compile(r"[^a-z0-9]+")
# Names that mean a device on Windows, whatever their ending.
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(10))))
_MARKUP = r"\`*_[]<>#|^~$%=!&{}"
_ESCAPES = {ord(char): f"\\{char}" for char in _MARKUP} | {ord("\n"): "<br>"}
_ESCAPES |= {code: f"&#{code};" for code in (*range(10), *range(11, 32), *range(127, 160), 0x2028, 0x2029)}
# Characters that turn the text around them, or that nobody sees.
_ESCAPES |= {code: f"&#{code};" for code in (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF)}
_UNESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])|<br\s*/?>|&#(\d{1,7});")
_IN_LINKS = str.maketrans({"[": "(", "]": ")", "|": "/", "\\": "/", "#": "＃", "^": "＾", "<": "‹", ">": "›", "`": "'"})
_BULLET = re.compile(r"\s*[-*+] (?:\[([ xX/-])\] )?(.*?)(?:\s+\^([0-9a-z-]+))?\s*")
_HEADING = re.compile(r"#{1,6} (.*)")


def file_name(ref: str) -> str:
    """A name for the note of `ref`: no two refs share one, however the disk spells names, and none leaves its folder."""
    if _PLAIN.fullmatch(ref) and ref not in _DEVICES:
        return ref
    slug = _OTHERS.sub("-", ref.casefold()).strip("-")[:NAME_CHARS_MAX].strip("-")
    # Plain names have no hyphen, so these are never one of them.
    return f"{slug}-{_digest(ref)}" if slug else f"x-{_digest(ref)}"


def block_id(ref: str) -> str:
    """What marks the line that tells of `ref`."""
    return _digest(ref)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:BLOCK_CHARS]


def escaped(text: str) -> str:
    """`text` as one line of Markdown that shows it and does nothing else."""
    line = text.translate(_ESCAPES)
    return f"\\{line}" if line[:1] in ("-", "+") else line


def unescaped(line: str) -> str:
    """The text that a line shows; of an escaped one, the text that it was made of."""
    return _UNESCAPE.sub(_unescape, line)


def _unescape(found: re.Match[str]) -> str:
    if found[1] is not None:
        return found[1]
    if found[2] is None:
        return "\n"
    code = int(found[2])
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def link(folder: str, ref: str, label: str) -> str:
    """A link to another note."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in label.translate(_IN_LINKS)).split())[:100]
    return f"[[{folder}/{file_name(ref)}|{shown.strip() or folder}]]"


def quoted(text: str) -> str:
    """Several lines as a quotation."""
    return "\n".join(f"> {escaped(line)}" for line in text.split("\n"))


def fenced(text: str, language: str = "json") -> str:
    """A text as it is, behind a fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def section(title: str, lines: Iterable[str]) -> str:
    """A heading with lines under it; nothing if there are none."""
    found = list(lines)
    return "" if not found else "\n".join((f"## {title}", "", *found, ""))


def bullet(text: str, ref: str, *, done: bool | None = None) -> str:
    """A line of a list that can be edited: its mark at the end says which one it is."""
    box = "" if done is None else "[x] " if done else "[ ] "
    return f"- {box}{escaped(text)} ^{block_id(ref)}"


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A line of a list in a note, as it stands there now."""

    number: int
    text: str
    block: str | None = None
    done: bool | None = None
    """Whether its box is ticked; None: it has none."""


def bullets(body: str, under: str | None = None) -> Iterator[NoteLine]:
    """The lines of the lists in a note; only those under a heading, if one is named."""
    inside = under is None
    for number, line in enumerate(body.split("\n"), start=1):
        if (heading := _HEADING.match(line)) is not None:
            inside = under is None or heading[1].strip() == under
        elif inside and (found := _BULLET.fullmatch(line)) is not None and found[2].strip():
            box = None if found[1] is None else found[1] in "xX"
            yield NoteLine(number, unescaped(found[2]).strip(), found[3], box)


def changed_value(content: str, value: str | None, edited: str) -> str | None:
    """The value that an edited text has where `content` has `value`; None if it is worded in another way."""
    if not value or content.count(value) != 1:
        return None
    before, after = content.split(value)
    inner = edited[len(before) : len(edited) - len(after)]
    fits = edited.startswith(before) and edited.endswith(after) and len(edited) > len(before) + len(after)
    return inner.strip() or None if fits else None
