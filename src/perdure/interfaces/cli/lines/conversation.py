"""A conversation and its layers as lines for a terminal. What was stored is data: it is shown, never obeyed."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Console
from rich.text import Text

from perdure.domain.conversation.agent_state import AgentState
from perdure.domain.conversation.digests import Digest, DigestKind, DigestSource
from perdure.domain.conversation.messages import Message, Session, ToolCall
from perdure.interfaces.cli.output import plural, visible

WIDTH_MIN, WIDTH_MAX = 20, 100
"""Longer lines are hard to read, however wide the terminal."""
CONTENT_CHARS = 1_200
"""So much of a message is shown unless all of it is asked for."""
LAYER_CHARS = 4_000
"""The same for a layer: more than its writers make, but a caller may have put any text in its place."""
TOOL_CHARS = 160
"""The same for the arguments and the result of a tool call."""
HIT_CHARS, HIT_LEAD = 240, 60
"""The length of an excerpt of a hit, and how much of it stands before the first word that was found."""
SOURCES_SHOWN = 3
INDENT = "  "
MEASURE = Console(width=WIDTH_MAX)
"""Nothing is printed on it: wrapping asks a console how wide characters are."""

ROLE_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow", "system": "bold magenta"}
LAYER_NAMES: Mapping[DigestKind, str] = {
    "spine": "spine of the user",
    "session": "session digest",
    "rolling": "rolling digest",
    "fold": "fold",
}


class MessageLines:
    """Messages as lines. Remembers which tool a call named, so that its result can say so."""

    def __init__(self, width: int, *, full: bool = False, mark_sessions: bool = False) -> None:
        self._width = width
        self._full = full
        self._mark_sessions = mark_sessions
        self._session: str | None = None
        self._tools: dict[str, str] = {}

    def lines(self, messages: Iterable[Message]) -> Iterator[Text]:
        for message in messages:
            if self._mark_sessions and message.session != self._session:
                self._session = message.session
                yield heading(f"session {message.session_number}", message.session)
            yield self._head(message)
            yield from self._body(message)
            for call in message.tool_calls:
                self._tools[call.id] = call.name
                yield from wrapped(f"→ {_called(call, full=self._full)}", self._width, "yellow")

    def _head(self, message: Message) -> Text:
        head = Text.assemble(
            (message.role, ROLE_STYLES[message.role]),
            "  ",
            (local(message.at), "dim"),
            "  ",
            (f"{message.session_number}.{message.seq}", "dim"),
        )
        if message.tool_call_id is not None:
            tool = self._tools.pop(message.tool_call_id, message.tool_call_id)
            head.append(f"  ← {one_line(tool)}", "yellow")
        if message.failed:
            head.append("  FAILED", "bold red")
        return head

    def _body(self, message: Message) -> Iterator[Text]:
        text = message.content
        if not self._full and message.role == "tool":
            text = _short(" ".join(text.split()), TOOL_CHARS)
            yield from wrapped(text, self._width)
        elif text:
            yield from body(text, self._width, full=self._full)


def session_head(session: Session) -> list[Text]:
    """What a session is, in a few lines."""
    ended = "open" if session.ended_at is None else f"ended {local(session.ended_at)}"
    where = f"with {one_line(session.address.agent)} on {one_line(session.address.channel)}"
    counts = (
        f"{plural(session.messages, 'message')} in {plural(session.turns, 'turn')}, {session.working} in the working set, "
        f"{plural(session.tokens, 'token')}"
    )
    return [
        heading(f"session {session.number}", session.id),
        Text(f"{INDENT}{where}; {ended}"),
        Text(f"{INDENT}opened {local(session.opened_at)}, last activity {local(session.last_at)}"),
        Text(f"{INDENT}{counts}"),
    ]


def session_entry(session: Session, layers: Mapping[str, int]) -> Iterator[Text]:
    """A session in a list. Its id stands alone, so that it can be copied on a narrow terminal too."""
    state = "open" if session.ended_at is None else "ended"
    yield Text.assemble((one_line(session.id), "bold"), "  ", (state, "dim" if session.ended_at else "green"))
    versions = ", ".join(f"{kind} {version}" for kind, version in layers.items()) or "none"
    where = f"{one_line(session.address.agent)} on {one_line(session.address.channel)}"
    yield Text(f"{INDENT}{where}; opened {local(session.opened_at)}, last {local(session.last_at)}")
    counts = f"{plural(session.messages, 'message')}, {session.working} in the working set, {plural(session.turns, 'turn')}"
    yield Text(f"{INDENT}{counts}; summaries: {versions}")


def digest_entry(digest: Digest, width: int) -> Iterator[Text]:
    """A version of a layer: what it is, what it stands for, where it comes from."""
    head = heading(f"{LAYER_NAMES[digest.kind]}, version {digest.version}", covered(digest))
    yield head.append("  UNDONE", "bold red") if digest.undone else head
    whose = "" if digest.kind == "spine" else f"session {digest.session_number}, "
    stood_in = "; the summariser asked for had failed, and this one stood in" if digest.fallback else ""
    told = f"{whose}by {digest.summariser}, {digest.policy}, {local(digest.made_at)}, {len(digest.text)} characters{stood_in}"
    yield from wrapped(told, width, "dim")


def layer(digest: Digest, width: int, *, full: bool) -> Iterator[Text]:
    """A version of a layer, and what it says."""
    yield from digest_entry(digest, width)
    if digest.text:
        yield from body(digest.text, width, full=full, chars=LAYER_CHARS)
    elif not digest.pinned:
        yield Text(f"{INDENT}(no summary: the working set was cleared)", "dim")
    for title, lines in (("kept word for word:", digest.pinned), ("lessons:", digest.lessons)):
        if lines:
            yield Text(f"{INDENT}{title}", "bold")
        for line in lines:
            yield from wrapped(line if full else _short(line, LAYER_CHARS), width, indent=f"{INDENT}│ ")


def working_head(session: Session, messages: Sequence[Message]) -> Iterator[Text]:
    """Where the working set begins and ends, and what of it is not shown."""
    if not messages:
        yield heading("working set", "empty")
        return
    yield heading("working set", f"messages {session.boundary_seq + 1} to {messages[-1].seq}")
    if count := older(session, messages):
        yield Text(f"{INDENT}… {count} older ones; --limit shows more", "dim")


def older(session: Session, messages: Sequence[Message]) -> int:
    """How many messages of the working set stand before the shown ones."""
    return messages[0].seq - session.boundary_seq - 1 if messages else 0


def hit(message: Message, words: Sequence[str], width: int) -> Iterator[Text]:
    """A found message: its place, and the part of it with the words, which are marked."""
    place = f"{message.session_number}.{message.seq}"
    yield Text.assemble(
        (place, "bold"),
        "  ",
        (message.role, ROLE_STYLES[message.role]),
        "  ",
        (local(message.at), "dim"),
        "  ",
        (one_line(f"{message.id}  session {message.session}"), "dim"),
    )
    text = message.content
    found = places(text, words)
    start = max(0, found[0][0] - HIT_LEAD) if found else 0
    end = min(len(text), start + HIT_CHARS)
    line = Text("…" if start else "")
    at = start
    for low, high in found:
        if low >= end:
            break
        line.append(one_line(text[at:low])).append(one_line(text[low : min(high, end)]), "bold reverse")
        at = min(high, end)
    line.append(one_line(text[at:end])).append("…" if end < len(text) else "")
    yield from _indented(line, width, INDENT)


def agent_state_lines(found: AgentState) -> Iterator[Text]:
    """Counters and diagnostics of an address; the first line is what can be configured."""
    profile = "as the settings say" if found.profile is None else found.profile
    casual, private, shared = ("yes" if one else "no" for one in (found.casual, found.private, found.shared))
    yield Text(f"profile: {profile}; casual: {casual}; private: {private}; shared: {shared}")
    yield Text(f"turns: {found.turns}; the last: {_when(found.last_at)}")
    if found.last_text is not None:
        yield Text(f"last words of the user: {one_line(found.last_text)}")
    yield Text(f"rolling digest: tried {_when(found.rolling_tried_at)}, written {_when(found.rolling_done_at)}")
    if found.rolling_error is not None:
        detail = "" if found.rolling_error.detail is None else f": {found.rolling_error.detail}"
        yield Text(f"rolling digest failed: {one_line(found.rolling_error.reason + detail)}", "red")
    count = "" if found.curated_memories is None else f", with {found.curated_memories} memories"
    yield Text(f"curator: last ran {_when(found.curated_at)}{count}")


def covered(digest: Digest, *, chain: bool = True) -> str:
    """Which messages a digest stands for; with `chain`, also which version it continues."""
    runs = [_run(digest, source) for source in digest.sources[:SOURCES_SHOWN]]
    more = len(digest.sources) - SOURCES_SHOWN
    since = [f"continuing version {digest.based_on}"] if chain and digest.based_on else []
    return ", ".join([*runs, *([f"and {more} more"] if more > 0 else []), *since])


def heading(title: str, rest: object) -> Text:
    return Text.assemble(("── ", "dim"), (title, "bold"), "  ", one_line(rest))


def body(text: str, width: int, *, full: bool, chars: int = CONTENT_CHARS) -> Iterator[Text]:
    """A text, indented; what is cut off is said."""
    cut = len(text) - chars
    if full or cut <= 0:
        yield from wrapped(text, width)
        return
    yield from wrapped(text[:chars] + "…", width)
    yield Text(f"{INDENT}[{cut:,} more characters; --full shows them]", "dim")


def wrapped(text: str, width: int, style: str = "", *, indent: str = INDENT) -> Iterator[Text]:
    """Lines of `text`. All are indented, so that no stored text can pass for a heading."""
    # Tabs and the line ends of Windows are layout; every other control character is shown as what it is.
    for line in text.replace("\r\n", "\n").split("\n"):
        yield from _indented(Text(visible(line.expandtabs(4)), style), width, indent)


def _indented(line: Text, width: int, indent: str) -> Iterator[Text]:
    room = max(WIDTH_MIN, min(width, WIDTH_MAX)) - len(indent)
    for part in line.wrap(MEASURE, room):
        part.rstrip()
        yield Text(indent).append_text(part)


def one_line(text: object) -> str:
    """Stored text within a line of ours: it cannot begin another one."""
    return visible(str(text).translate({9: " ", 10: " "}))


def local(at: datetime) -> str:
    """An instant as the clock on the wall shows it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _when(at: datetime | None) -> str:
    return "never" if at is None else local(at)


def places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where folded `words` stand in `text`: spans in order, none overlapping."""
    folded, spans = _folded(text)
    found = []
    for word in words:
        at = folded.find(word)
        while at >= 0:
            found.append((spans[at][0], spans[at + len(word) - 1][1]))
            at = folded.find(word, at + len(word))
    merged: list[tuple[int, int]] = []
    for low, high in sorted(found):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def folded_words(query: str) -> list[str]:
    """The words of a query in the form that the search compares."""
    return unicodedata.normalize("NFKC", query).casefold().split()


def _folded(text: str) -> tuple[str, list[tuple[int, int]]]:
    """`text` as the search reads it, and for each character there the span it comes from."""
    if text.isascii():
        return text.lower(), [(at, at + 1) for at in range(len(text))]
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(text) + 1):
        # A letter and the accents behind it may fold into one character.
        if end == len(text) or not unicodedata.combining(text[end]):
            part = unicodedata.normalize("NFKC", text[start:end]).casefold()
            parts.append(part)
            spans += [(start, end)] * len(part)
            start = end
    return "".join(parts), spans


def _short(text: str, chars: int) -> str:
    cut = len(text) - chars
    return text if cut <= 0 else f"{text[:chars]}… [{cut:,} more characters; --full shows them]"


def _called(call: ToolCall, *, full: bool) -> str:
    given = call.arguments
    if isinstance(given, Mapping):
        told = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items())
    else:
        told = "" if given is None else json.dumps(given, ensure_ascii=False)
    return f"{call.name}({told if full else _short(told, TOOL_CHARS)})"


def _run(digest: Digest, source: DigestSource) -> str:
    span = f"messages {source.first_seq} to {source.last_seq}"
    if digest.kind != "spine":
        return span
    return f"{source.address.agent} on {source.address.channel}: session {source.session_number} {span}"
