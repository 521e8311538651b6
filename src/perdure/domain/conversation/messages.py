"""Messages and the sessions they form: the canonical log, appended and never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, get_args

from perdure.domain.knowledge.records import RecordKind, Term
from perdure.domain.scope import Address, MessageId, SessionId, ToolCallId
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.values import dataclass, field

Role = Literal["user", "assistant", "tool", "system"]
ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call in an assistant message. Its result is a later `tool` message that names the id."""

    id: ToolCallId
    name: str
    arguments: Json = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append; empty fields are filled in."""

    role: str
    content: str
    id: str | None = None
    at: datetime | None = None
    session: str | None = None
    tokens: int | None = None
    metadata: Mapping[str, Json] | None = None
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    failed: bool = False


class ClientMessage(Protocol):
    """A message as the clients of OpenAI and Anthropic have it; its other fields are read if they are there."""

    @property
    def role(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Message:
    """A stored message. `session_number` and `seq` order it within its address; time does not."""

    id: MessageId
    session: SessionId
    session_number: int
    seq: int
    role: Role
    content: str
    at: datetime
    tokens: int
    metadata: Mapping[str, Json]
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: ToolCallId | None = None
    failed: bool = False
    address: Address = field(default_factory=Address)
    repeated: bool = field(default=False, compare=False)
    """True when this append found the message already held and stored nothing."""

    def __str__(self) -> str:
        return f"{self.role}: {self.content}"


@dataclass(frozen=True, slots=True)
class Session:
    """A stretch of talk at one address. `number` counts the sessions of the address from 1."""

    address: Address
    number: int
    id: SessionId
    opened_at: datetime
    last_at: datetime
    ended_at: datetime | None
    messages: int
    tokens: int
    turns: int = 0
    """A turn is one message of the user and all that answers it."""
    boundary_seq: int = 0
    """The working set starts after this message; what is before it is told by the newest fold."""
    spine_seq: int = 0
    """The last message that a spine of the user has taken in."""
    deleted_at: datetime | None = None
    """Its messages were deleted; only its number and id remain."""
    learned_seq: int = 0
    """The last message that was looked through for something to learn."""

    @property
    def working(self) -> int:
        """Messages in the working set."""
        return self.messages - self.boundary_seq


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The end of a session that was taken back: its messages, which are in the log no longer, until that is undone."""

    id: str
    address: Address
    session_number: int
    learned_seq: int
    """How far the session had been looked through for something to learn."""
    messages: tuple[Message, ...]

    @property
    def kind(self) -> RecordKind:
        return "withdrawal"

    @property
    def record_key(self) -> str:
        return self.id

    def terms(self) -> tuple[Term, ...]:
        return (withdrawn_from(self.address, self.session_number),)

    def body(self) -> Mapping[str, Json]:
        return {
            "id": self.id,
            "agent": self.address.agent,
            "channel": self.address.channel,
            "session_number": self.session_number,
            "learned_seq": self.learned_seq,
            "messages": [_message_body(one) for one in self.messages],
        }


def withdrawn_from(address: Address, session_number: int) -> Term:
    """The term by which withdrawals of a session are found."""
    return ("session", compact_json([address.agent, address.channel, session_number]))


def _message_body(message: Message) -> Json:
    return {
        "id": message.id,
        "session": message.session,
        "seq": message.seq,
        "role": message.role,
        "content": message.content,
        "at": to_us(message.at),
        "tokens": message.tokens,
        "metadata": dict(message.metadata),
        "tool_calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "failed": message.failed,
    }


def to_withdrawal(body: Mapping[str, Any]) -> Withdrawal:
    """The withdrawal that a record holds."""
    address, number = Address(body["agent"], body["channel"]), body["session_number"]
    messages = tuple(
        Message(
            id=one["id"],
            session=one["session"],
            session_number=number,
            seq=one["seq"],
            role=one["role"],
            content=one["content"],
            at=from_us(one["at"]),
            tokens=one["tokens"],
            metadata=one["metadata"],
            tool_calls=tuple(ToolCall(*call) for call in one["tool_calls"]),
            tool_call_id=one["tool_call_id"],
            failed=one["failed"],
            address=address,
        )
        for one in body["messages"]
    )
    return Withdrawal(body["id"], address, number, body["learned_seq"], messages)


@dataclass(frozen=True, slots=True)
class CallState:
    """The pairing of one tool call with its result, if that has come."""

    session_number: int
    id: ToolCallId
    name: str
    call_seq: int
    result_seq: int | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place in the log of one address."""

    session_number: int
    seq: int


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """Which messages of one address to list: the latest `limit` before a cursor, or the first `limit` after one."""

    address: Address
    limit: int
    session_number: int | None = None
    before: Cursor | None = None
    after: Cursor | None = None


def bounds(query: MessageQuery) -> tuple[Cursor, Cursor]:
    """The open interval of places that the query is about."""
    low, high = Cursor(0, 0), Cursor(2**62, 0)
    if query.session_number is not None:
        low, high = Cursor(query.session_number, 0), Cursor(query.session_number + 1, 0)
    if query.after is not None and query.after > low:
        low = query.after
    if query.before is not None and query.before < high:
        high = query.before
    return low, high
