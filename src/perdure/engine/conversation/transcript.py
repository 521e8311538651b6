"""Transcripts: a session as Markdown that people can read and that gives every message back as it was.

A message is a heading, its content as a quotation, and a comment with everything else about it, in this order:

    ## 2 · Assistant · 2026-01-05 10:00:07 UTC

    > Two tables are free at eight.

    <!-- perdure:message {"seq":2,"id":"m2","role":"assistant", …} -->

Every line of the content starts with `>`. So nothing in it can pass for our own lines, and a code fence or comment left
open in it ends with the quotation, in any viewer. The comment comes last: with it the message is complete, without it
the write was cut off.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from perdure.domain.conversation.messages import ROLES, Message, Session, ToolCall
from perdure.domain.errors import Conflict, Corrupt, InvalidInput, Unsupported
from perdure.domain.scope import Address, MessageId, SessionId, ToolCallId
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.values import dataclass

T = TypeVar("T")

FORMAT_VERSION = 1
TOPIC_BYTES_MAX = 40
TOPIC_WORDS_MAX = 7
NO_TOPIC = "session"
SHOWN_CHARS_MAX = 200
"""So much of a tool call's arguments is shown. The comment has all of them."""

HEAD_BYTES_MAX = 32_768
"""Three ids of full length, each byte escaped, and what stands around them."""

_HEAD = "<!-- perdure:transcript "
_MARK = "<!-- perdure:message "
_END = " -->"
_MEND = "move the file away, and a new one is written"
_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool result", "system": "System"}

# In Markdown a lone carriage return ends a line, so the next one needs its own `>`. It is written as the reference
# `&#13;` and a line break; where the text itself has that reference at the end of a line, it is escaped once more.
_INNER_CR = re.compile(r"\r(?=[^\n])")
_LOOKALIKE = re.compile(r"&((?:amp;)*#13;)(?=[\r\n]|\Z)")
_ESCAPED_LOOKALIKE = re.compile(r"&amp;((?:amp;)*#13;)(?=[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class TranscriptHead:
    """What a transcript says of its session."""

    address: Address
    session: SessionId
    session_number: int
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class TranscriptGrowth:
    """What `added` messages make of a file: its first `keep` bytes stay, and `more` follows them."""

    keep: int
    more: bytes
    added: int


@dataclass(frozen=True, slots=True)
class WholePart:
    """The part of a file that is whole: so many bytes, up to this message (0 before the first)."""

    size: int
    last_seq: int


def grown(held: bytes, session: Session, messages: Sequence[Message], *, after: int) -> TranscriptGrowth | None:
    """What becomes of the file that is held; None if it has all of `messages` already.

    `messages` are those after seq `after`. `Conflict` if the file no longer has the ones before them.
    """
    sound = survey(held)
    if sound.last_seq < after:
        raise Conflict(f"the transcript of session {session.id!r:.80} was removed meanwhile; write it from its beginning")
    new = [message for message in messages if message.seq > sound.last_seq]
    if not new:
        return None
    blocks = [block(message).encode() for message in new]
    if sound.size == 0:
        whole = b"".join((opening(session).encode(), *blocks))
        if not whole.startswith(held):
            raise Corrupt(f"the file of session {session.id!r:.80} is not a transcript; move it away, and a new one is written")
        return TranscriptGrowth(0, whole, len(new))
    tail = held[sound.size :]
    if not tail or blocks[0].startswith(tail) or not _is_text(tail):
        return TranscriptGrowth(sound.size, b"".join(blocks), len(new))
    # Not what a crash leaves, but somebody's note: it stays.
    return TranscriptGrowth(len(held), b"".join((b"" if tail.endswith(b"\n") else b"\n", *blocks)), len(new))


def survey(held: bytes) -> WholePart:
    """How far the file is whole. Only its first and last comments are read."""
    nul = held.find(b"\0")
    # No text has a NUL; file systems leave them where a write was cut off.
    whole = held if nul < 0 else held[:nul]
    head = _head_line(whole)
    if head is None:
        return WholePart(0, 0)
    start = len(whole)
    while (start := whole.rfind(f"\n{_MARK}".encode(), head[1] - 1, start)) >= 0:
        end = whole.find(b"\n", start + 1)
        if end >= 0:
            fields = _fields(whole[start + 1 : end], _MARK)
            return WholePart(end + 1, _checked(fields.get("seq"), int))
    return WholePart(head[1], 0)


def read_head(begin: bytes) -> TranscriptHead | None:
    """What the file says of itself; None if it does not begin like a transcript."""
    line = _head_line(begin)
    if line is None:
        return None
    fields = _fields(begin[line[0] : line[1]], _HEAD)
    if _checked(fields.get("version"), int) > FORMAT_VERSION:
        raise Unsupported("the transcript was written by a newer perdure; upgrade this one to read it")
    with _reading():
        return TranscriptHead(
            Address(fields["agent"], fields["channel"]),
            SessionId(_checked(fields["session"], str)),
            _checked(fields["number"], int),
            datetime.fromisoformat(fields["opened_at"]),
        )


def read_messages(held: bytes) -> list[Message]:
    """Every message that is complete in the file, as it was written, or as somebody has edited its text since."""
    head, line = read_head(held), _head_line(held)
    if head is None or line is None:
        return []
    with _reading():
        text = held[line[1] : survey(held).size].decode()
    found: list[Message] = []
    lines: list[str] = []
    for one in text.split("\n"):
        if one.startswith(_MARK):
            found.append(_message(head, _fields(one.encode(), _MARK), lines))
            lines = []
        else:
            lines.append(one)
    return found


def opening(session: Session) -> str:
    """What stands before the first message. It depends on the session alone, however its messages came."""
    address = session.address
    fields: dict[str, Json] = {
        "version": FORMAT_VERSION,
        "session": session.id,
        "number": session.number,
        "agent": address.agent,
        "channel": address.channel,
        "opened_at": session.opened_at.isoformat(),
    }
    return (
        f"# Session of {_clock(session.opened_at)}\n\n"
        f"Session {_span(session.id)} with agent {_span(address.agent)} on channel {_span(address.channel)}.\n\n"
        f"{_comment(_HEAD, fields)}\n"
    )


def block(message: Message) -> str:
    """One message, from the empty line before its heading to the end of its comment."""
    parts = [_heading(message.seq, message.role, message.at, failed=message.failed)]
    if message.content:
        parts.append("\n".join(_quoted(message.content)))
    if message.tool_call_id is not None:
        parts.append(f"- answers call {_span(message.tool_call_id)}")
    if message.tool_calls:
        parts.append("\n".join(_call_line(call) for call in message.tool_calls))
    parts.append(_comment(_MARK, _message_fields(message)))
    return "\n" + "\n\n".join(parts) + "\n"


def topic(messages: Iterable[Message]) -> str:
    """A few words of the first thing the user said, for a file name: small letters, digits and hyphens, in any script."""
    first = next((message.content for message in messages if message.role == "user"), "")
    slug = ""
    # Anyone who pastes a book still gets a short name in a short time.
    for word in _words(first[:2_000])[:TOPIC_WORDS_MAX]:
        longer = f"{slug}-{word}" if slug else word
        if len(longer.encode()) > TOPIC_BYTES_MAX:
            return slug or longer.encode()[:TOPIC_BYTES_MAX].decode(errors="ignore")
        slug = longer
    return slug or NO_TOPIC


def _words(text: str) -> list[str]:
    # Marks belong to the letter before them; without them, many scripts would fall apart.
    plain = unicodedata.normalize("NFKC", text).lower()
    kept = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in plain)
    return [word for piece in kept.split() if (word := _without_leading_marks(piece))]


def _without_leading_marks(piece: str) -> str:
    return piece[next((index for index, char in enumerate(piece) if char.isalnum()), len(piece)) :]


def _message_fields(message: Message) -> dict[str, Json]:
    """All of a message but its content, and what the head says for all of them."""
    fields: dict[str, Json] = {
        "seq": message.seq,
        "id": message.id,
        "role": message.role,
        "at": message.at.isoformat(),
        "tokens": message.tokens,
    }
    if message.tool_calls:
        fields["tool_calls"] = [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in message.tool_calls]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    if message.failed:
        fields["failed"] = True
    if message.metadata:
        fields["metadata"] = dict(message.metadata)
    return fields


def _message(head: TranscriptHead, fields: Mapping[str, Json], lines: Sequence[str]) -> Message:
    with _reading():
        role = fields["role"]
        if role not in ROLES:
            raise ValueError(role)
        at = datetime.fromisoformat(fields["at"]).astimezone(UTC)
        seq, failed = _checked(fields["seq"], int), _checked(fields.get("failed", False), bool)
        calls = fields.get("tool_calls", ())
        answers = fields.get("tool_call_id")
        return Message(
            id=MessageId(_checked(fields["id"], str)),
            session=head.session,
            session_number=head.session_number,
            seq=seq,
            role=role,
            content=_unquoted(_after(lines, _heading(seq, role, at, failed=failed))),
            at=at,
            tokens=_checked(fields["tokens"], int),
            metadata=_checked(fields.get("metadata", {}), dict),
            tool_calls=tuple(ToolCall(ToolCallId(one["id"]), one["name"], one["arguments"]) for one in calls),
            tool_call_id=None if answers is None else ToolCallId(_checked(answers, str)),
            failed=failed,
            address=head.address,
        )


def _after(lines: Sequence[str], heading: str) -> Sequence[str]:
    """The lines below the message's own heading: notes and half-written leftovers above it are not part of the message."""
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].rstrip() == heading:
            return lines[index + 1 :]
    return lines


def _quoted(content: str) -> Iterator[str]:
    text = _INNER_CR.sub("&#13;\n", _LOOKALIKE.sub(r"&amp;\1", content))
    # Editors remove spaces at the end of lines, so an empty line gets none.
    return (f"> {line}" if line else ">" for line in text.split("\n"))


def _unquoted(lines: Iterable[str]) -> str:
    text = "\n".join(line[2:] if line.startswith("> ") else line[1:] for line in lines if line.startswith(">"))
    return _ESCAPED_LOOKALIKE.sub(r"&\1", text.replace("&#13;\n", "\r"))


def _heading(seq: int, role: str, at: datetime, *, failed: bool) -> str:
    return f"## {seq} · {_SPEAKERS[role]}{', failed' if failed else ''} · {_clock(at)}"


def _clock(at: datetime) -> str:
    return f"{at.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def _call_line(call: ToolCall) -> str:
    return f"- calls {_span(call.name)} with {_span(compact_json(call.arguments))}, as call {_span(call.id)}"


def _span(text: str) -> str:
    """A piece of foreign text on one line, set as code so that nothing in it counts as Markdown."""
    line = "".join(char if char.isprintable() else " " for char in text)
    if len(line) > SHOWN_CHARS_MAX:
        line = f"{line[:SHOWN_CHARS_MAX]}…"
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    return f"{ticks} {line} {ticks}" if "`" in line or not line.strip() else f"{ticks}{line}{ticks}"


def _comment(mark: str, fields: Mapping[str, Json]) -> str:
    # Two hyphens could end the comment. In JSON they stand inside text only, where one may be written as an escape.
    return f"{mark}{compact_json(fields).replace('--', '-' + chr(92) + 'u002d')}{_END}"


def _head_line(begin: bytes) -> tuple[int, int] | None:
    """Where the comment of the head starts and where the next line does; None if it is missing or cut off."""
    start = begin.find(f"\n{_HEAD}".encode(), 0, HEAD_BYTES_MAX)
    end = begin.find(b"\n", start + 1)
    return None if start < 0 or end < 0 else (start + 1, end + 1)


def _fields(line: bytes, mark: str) -> dict[str, Json]:
    with _reading():
        text = line.decode().rstrip()
        return _checked(json.loads(text.removeprefix(mark).removesuffix(_END)), dict)


def _checked(value: Json, kind: type[T]) -> T:
    if type(value) is not kind:
        raise Corrupt(f"a comment of the transcript has a `{type(value).__name__}` where a `{kind.__name__}` belongs; {_MEND}")
    return value


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (InvalidInput, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Corrupt(f"a comment of the transcript cannot be read any more ({type(error).__name__}); {_MEND}") from error


def _is_text(tail: bytes) -> bool:
    try:
        return "\0" not in tail.decode()
    except UnicodeDecodeError:
        return False
