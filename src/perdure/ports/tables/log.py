"""The log as rows: sessions, messages, and the pairing of tool calls with their results."""

from __future__ import annotations

import json
from typing import NamedTuple

from perdure.domain.conversation.messages import ROLES, CallState, Message, Role, Session, ToolCall
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.text.rules import compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.ports.tables.table import AnyRow, Table, address_of, instant_or_none, us_or_none


class SessionRow(NamedTuple):
    space: str
    user_id: str
    agent: str
    channel: str
    session_number: int
    session: SessionId
    opened_at_us: int
    last_at_us: int
    ended_at_us: int | None
    messages: int
    tokens: int
    turns: int
    boundary_seq: int
    spine_seq: int
    deleted_at_us: int | None
    learned_seq: int


class MessageRow(NamedTuple):
    space: str
    user_id: str
    agent: str
    channel: str
    session_number: int
    seq: int
    id: MessageId
    role: Role
    content: str
    at_us: int
    tokens: int
    metadata: str | None
    tool_calls: str | None
    tool_call_id: ToolCallId | None
    failed: int


class LoggedMessageRow(NamedTuple):
    """A row of `messages` followed by its session's id, as look-ups have it."""

    space: str
    user_id: str
    agent: str
    channel: str
    session_number: int
    seq: int
    id: MessageId
    role: Role
    content: str
    at_us: int
    tokens: int
    metadata: str | None
    tool_calls: str | None
    tool_call_id: ToolCallId | None
    failed: int
    session: SessionId


class ToolCallRow(NamedTuple):
    space: str
    user_id: str
    agent: str
    channel: str
    call_id: ToolCallId
    session_number: int
    name: str
    call_seq: int
    result_seq: int | None
    failed: int


SESSIONS = Table("sessions", SessionRow, 5)
MESSAGES = Table("messages", MessageRow, 6)
LOGGED_MESSAGES = Table("messages", LoggedMessageRow, 6)
TOOL_CALLS = Table("tool_calls", ToolCallRow, 6)


def session_row(owner: Owner, session: Session) -> SessionRow:
    return SessionRow(
        space=owner.space,
        user_id=owner.user,
        agent=session.address.agent,
        channel=session.address.channel,
        session_number=session.number,
        session=session.id,
        opened_at_us=to_us(session.opened_at),
        last_at_us=to_us(session.last_at),
        ended_at_us=us_or_none(session.ended_at),
        messages=session.messages,
        tokens=session.tokens,
        turns=session.turns,
        boundary_seq=session.boundary_seq,
        spine_seq=session.spine_seq,
        deleted_at_us=us_or_none(session.deleted_at),
        learned_seq=session.learned_seq,
    )


def to_session(row: AnyRow) -> Session:
    return SESSIONS.read(row, _read_session)


def _read_session(row: SessionRow) -> Session:
    return Session(
        address=address_of(row.agent, row.channel),
        number=row.session_number,
        id=row.session,
        opened_at=from_us(row.opened_at_us),
        last_at=from_us(row.last_at_us),
        ended_at=instant_or_none(row.ended_at_us),
        messages=row.messages,
        tokens=row.tokens,
        turns=row.turns,
        boundary_seq=row.boundary_seq,
        spine_seq=row.spine_seq,
        deleted_at=instant_or_none(row.deleted_at_us),
        learned_seq=row.learned_seq,
    )


def message_row(owner: Owner, message: Message) -> MessageRow:
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return MessageRow(
        space=owner.space,
        user_id=owner.user,
        agent=message.address.agent,
        channel=message.address.channel,
        session_number=message.session_number,
        seq=message.seq,
        id=message.id,
        role=message.role,
        content=message.content,
        at_us=to_us(message.at),
        tokens=message.tokens,
        metadata=compact_json(message.metadata) if message.metadata else None,
        tool_calls=compact_json(calls) if calls else None,
        tool_call_id=message.tool_call_id,
        failed=int(message.failed),
    )


def to_message(row: AnyRow) -> Message:
    """From the columns of `messages` followed by the session's id."""
    return LOGGED_MESSAGES.read(row, _read_message)


def _read_message(row: LoggedMessageRow) -> Message:
    if row.role not in ROLES:
        raise ValueError("unknown role")
    return Message(
        id=row.id,
        session=row.session,
        session_number=row.session_number,
        seq=row.seq,
        role=row.role,
        content=row.content,
        at=from_us(row.at_us),
        tokens=row.tokens,
        metadata={} if row.metadata is None else json.loads(row.metadata),
        tool_calls=() if row.tool_calls is None else _read_calls(row.tool_calls),
        tool_call_id=row.tool_call_id,
        failed=bool(row.failed),
        address=address_of(row.agent, row.channel),
    )


def _read_calls(text: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(ToolCallId(call["id"]), call["name"], call["arguments"]) for call in json.loads(text))


def call_row(owner: Owner, address: Address, call: CallState) -> ToolCallRow:
    return ToolCallRow(
        space=owner.space,
        user_id=owner.user,
        agent=address.agent,
        channel=address.channel,
        call_id=call.id,
        session_number=call.session_number,
        name=call.name,
        call_seq=call.call_seq,
        result_seq=call.result_seq,
        failed=int(call.failed),
    )


def to_call(row: AnyRow) -> CallState:
    return TOOL_CALLS.read(row, _read_call)


def _read_call(row: ToolCallRow) -> CallState:
    return CallState(
        session_number=row.session_number,
        id=row.call_id,
        name=row.name,
        call_seq=row.call_seq,
        result_seq=row.result_seq,
        failed=bool(row.failed),
    )
