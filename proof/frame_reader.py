"""An independent reader of what perdure writes into prompts: the grammar as a model's host would understand it.

It shares no code with what it reads. A frame is a head line, a body and an end line; between frames stand the messages of a
conversation, each beginning with its role at the start of a line; of a frame's body every kind has lines of its own form, and
each line says whose words it has. Whatever else looks like any of that is forged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

HEAD = re.compile(r'<memory kind="([a-z_]+)" title="([^"<>]*)" source="([^"<>]*)">')
END = "</memory>"
ROLE = re.compile(r"(user|assistant|tool|system): ")
TRUSTS = ("tool", "import", "agent", "user")
"""The least first."""
TRUST_OF = {"user": "user", "assistant": "agent", "tool": "tool", "system": "import", "import": "import", "agent": "agent"}
OPAQUE = ("summary", "session_digest", "rolling_digest", "left_off", "spine")
"""Written by a summariser: the head says by whom, and how far it is to be trusted."""
TOOLS_SOURCE = "perdure"
"""What the answers of tools say is their source; their pieces are labelled one by one."""
LISTS = ("foundation", "instructions", "lessons", "todos", "state", "series")

_SIGNS = "<\uff1c\u2039\ufe64\u27e8\u3008\u2329\u276e\u02c2\u1438\u227a"
_LOOKS = {
    "m": "m\u043c\u043f\u1d0d",
    "e": "e\u0435\u1d07\u0454\u03b5",
    "o": "o\u043e\u03bf\u0585\u1d0f0",
    "r": "r\u0433\u0280",
    "y": "y\u0443\u03b3\u04af\u028f",
}
_LIKE_FENCE = re.compile(f"[{_SIGNS}][\\s/\u2044\u2215\uff0f]*" + "\\s*".join(f"[{_LOOKS[char]}]" for char in "memory"))
_CONTROL = re.compile(
    r"<[|\uff5c][^<>\n]{1,60}[|\uff5c]>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|<(?:/?s|bos|eos|start_of_turn|end_of_turn)>",
    re.IGNORECASE,
)
# Order of characters turned, widths of nothing, tags, and what fonts of others would show. A joiner is other scripts' and emoji's own, one at a
# time, and a style is of the sign before it, which no joiner is: in turn, the two would spell whatever nobody sees.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
    r"|[\u200c\u200d]{2,}|[a-z][\u200c\u200d]|[\u200c\u200d][a-z\ufe00-\ufe0f]|[\ufe00-\ufe0f]{2,}|[a-z][\ufe00-\ufe0f]"
)
_LINE_OF = {
    "memories": re.compile(
        r"- (?:known(?: (?:since|until) \d{4}-\d\d-\d\d)?|digest|todo|state|lesson|instruction|series)(?: \((?P<a>[a-z]+)\))?: "
        r"|- (?P<role>user|assistant|tool|import): |- [^:()\[\]]{1,80} \((?P<b>user|assistant|tool|import)\): "
        r"|\[[^\]\s]+\](?: \((?P<c>[a-z]+)\))?: |(?P<heading>On \d{4}-\d\d-\d\d(?:, session [^:()]*)?:$)"
    ),
    "cards": re.compile(r"\[[^\]\s]+\](?: \((?P<c>[a-z]+)\))?: "),
    "previous_tail": re.compile(r"(?P<role>user|assistant|tool|system): "),
}


@dataclass(frozen=True, slots=True)
class Item:
    """Some words, whose they are said to be, and of what kind the frame is that they stand in."""

    kind: str
    trust: str
    text: str


@dataclass(slots=True)
class Reading:
    items: list[Item] = field(default_factory=list)
    wrongs: list[str] = field(default_factory=list)
    frames: int = 0

    def trust_of(self, mark: str) -> list[tuple[str, str]]:
        """Whose words those with the mark are said to be, and in which kinds of frames."""
        return [(one.trust, one.kind) for one in self.items if mark in one.text]


def read(text: str, *, talks: bool = False) -> Reading:
    """The items of a text. `talks`: messages of a conversation may stand between the frames."""
    reading = Reading()
    kind, source, body = "", "", list[str]()
    for line in text.split("\n"):
        head = HEAD.fullmatch(line)
        if head is not None and not kind:
            kind, source, body = head[1], head[3], []
            reading.frames += 1
        elif head is not None:
            reading.wrongs.append(f"a frame within a frame of {kind}: {line!r:.200}")
        elif line == END and kind:
            reading.items += _items(kind, source, body, reading.wrongs)
            kind = ""
        elif kind:
            body.append(line)
        else:
            _outside(line, reading, talks=talks)
    if kind:
        reading.wrongs.append(f"a frame of {kind} has no end")
    reading.wrongs += _looks(text, fences=2 * reading.frames)
    return reading


def plain(text: str) -> list[str]:
    """What is wrong with a text that has no frames of its own, such as one message of a chat."""
    return list(_looks(text, fences=0))


def _looks(text: str, *, fences: int) -> Iterator[str]:
    if found := _UNSEEN.search(text):
        yield f"a character that nobody sees: {' '.join(f'U+{ord(char):04X}' for char in found[0][:10])}"
    if found := _CONTROL.search(text):
        yield f"the bound of a turn: {found[0]!r}"
    folded = _folded(text)
    like = list(_LIKE_FENCE.finditer(folded))
    if len(like) != fences:
        seen = next(
            (one for one in like if not folded[one.start() :].startswith(("<memory kind=", END))), like[-1] if like else None
        )
        shown = "" if seen is None else folded[max(0, seen.start() - 40) : seen.end() + 40]
        yield f"{len(like)} things look like a fence, {fences} are one: {shown!r}"


def _folded(text: str) -> str:
    """As it looks: one width and font for all letters, small, without accents and what has no width."""
    flat = unicodedata.normalize("NFKD", text)
    return "".join(
        char for char in flat if char == "\n" or unicodedata.category(char) not in ("Mn", "Me", "Cf", "Cc")
    ).casefold()


def _outside(line: str, reading: Reading, *, talks: bool) -> None:
    said = ROLE.match(line)
    if said is not None and talks:
        reading.items.append(Item("conversation", TRUST_OF[said[1]], line))
    elif line.startswith("  ") and talks and reading.items and reading.items[-1].kind == "conversation":
        last = reading.items[-1]
        reading.items[-1] = Item(last.kind, last.trust, f"{last.text}\n{line}")
    elif line.strip():
        reading.wrongs.append(f"words outside of any frame: {line!r:.200}")


def _items(kind: str, source: str, body: list[str], wrongs: list[str]) -> Iterator[Item]:
    if kind in OPAQUE:
        said = re.search(r"; trust: ([a-z]+)$", source)
        if said is None or said[1] not in TRUSTS:
            wrongs.append(f"a frame of {kind} does not say how far it is to be trusted: {source!r:.200}")
            return
        yield Item(kind, said[1], "\n".join(body))
    elif source == TOOLS_SOURCE:
        yield from _pieces(kind, body, wrongs)
    elif kind in _LINE_OF:
        for line in body:
            found = _LINE_OF[kind].match(line)
            if found is None:
                wrongs.append(f"a line of {kind} that has no source: {line!r:.200}")
                continue
            named = {name: value for name, value in found.groupdict().items() if value}
            if "heading" not in named:
                yield Item(kind, TRUST_OF.get(next(iter(named.values()), "user"), "?"), line)
    elif kind in LISTS:
        for line in body:
            if not line.startswith("- "):
                wrongs.append(f"a line of {kind} that is no item: {line!r:.200}")
            marked = re.match(r"- \((assistant|tool|import)\) ", line)
            usual = {"lessons": "agent", "state": "tool", "series": "tool"}.get(kind, "user")
            yield Item(kind, TRUST_OF[marked[1]] if marked else usual, line)
    else:
        yield from _pieces(kind, body, wrongs)


def _pieces(kind: str, body: list[str], wrongs: list[str]) -> Iterator[Item]:
    """Of a tool's answer: pieces whose lines but the first are set in; each begins with a label of ours."""
    label = re.compile(
        r"(?:\d+\. | {3}beside it )?\[(?:\"(?:[^\"\\]|\\.)*\"|[^\]\"])*?(?:, by (?P<by>assistant|tool|import))?\] (?:(?P<said>user|assistant|tool|system): )?"
        r"|(?P<role>user|assistant|tool|system): |not covered: |nothing |left out: |\{"
    )
    pieces: list[list[str]] = []
    for line in body:
        if line.startswith("  ") and not line.startswith("   beside it ") and pieces:
            pieces[-1].append(line)
        else:
            pieces.append([line])
    for piece in pieces:
        found = label.match(piece[0])
        if found is None:
            wrongs.append(f"a piece of {kind} without a label: {piece[0]!r:.200}")
            continue
        named = found["by"] or found["role"] or found["said"] or "user"
        yield Item(kind, TRUST_OF[named], "\n".join(piece))
