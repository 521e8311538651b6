"""Keeping the index up to date with what is written, in the transaction that writes it.

Whoever changes something that can be found calls one of these. What they do is done when the transaction ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from perdure.domain.digests import Digest, DigestKind
from perdure.domain.instructions import Instruction
from perdure.domain.lessons import to_lesson
from perdure.domain.memories import to_memory, to_statement
from perdure.domain.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.recall import NewEntry
from perdure.domain.records import RecordKind, RecordQuery
from perdure.domain.scope import RESERVED, Address
from perdure.domain.things import Todo, from_body
from perdure.engine.entries import (
    digest_entry,
    digest_ref,
    instruction_entry,
    lesson_entry,
    message_entry,
    series_entry,
    state_entry,
    statement_entry,
    todo_entry,
    words_of,
)
from perdure.engine.indexing import short
from perdure.ports.store import Tx

ZONE = "UTC"
"""What times of day in records and digests mean: they were put into words by us."""
STATEMENTS_MAX = 10_000
PAGE = 1_000
ENTRY_OF: Mapping[RecordKind, str] = {
    "statement": "memory",
    "todo": "todo",
    "instruction": "instruction",
    "lesson": "lesson",
}
"""The kind of entry by which records of a kind are found; the others are not."""


def enter_record(tx: Tx, kind: RecordKind, key: str, body: Mapping[str, Any] | None, *, now: datetime) -> None:
    """A record was written, or removed if `body` is None."""
    if kind == "memory":
        if body is not None:
            _enter_statements(tx, key, now)
    elif kind in ENTRY_OF and body is None:
        tx.index.remove(ENTRY_OF[kind], [key], now=now)
    elif kind == "statement" and body is not None:
        statement = to_statement(body)
        tx.index.put([statement_entry(statement, ZONE, archived=_is_archived(tx, statement.memory))], now=now)
    elif kind == "todo" and body is not None:
        tx.index.put([todo_entry(from_body(Todo, body), ZONE)], now=now)
    elif kind == "instruction" and body is not None:
        tx.index.put([instruction_entry(from_body(Instruction, body), ZONE)], now=now)
    elif kind == "lesson" and body is not None:
        tx.index.put([lesson_entry(to_lesson(body), ZONE)], now=now)


def _enter_statements(tx: Tx, memory: str, now: datetime) -> None:
    """A memory may have been archived, or brought back: then its statements are found no more, or again."""
    archived = _is_archived(tx, memory)
    found = tx.records.list_(RecordQuery("statement", STATEMENTS_MAX, ("memory", short(memory))))
    tx.index.put([statement_entry(to_statement(record.body), ZONE, archived=archived) for record in found], now=now)


def _is_archived(tx: Tx, memory: str) -> bool:
    held = tx.records.find("memory", memory)
    return held is not None and to_memory(held.body).status != "ACTIVE"


def enter_digests(tx: Tx, address: Address, session_number: int, kind: DigestKind, *, now: datetime) -> None:
    """A version of a layer was written, undone or removed: the newest that is left is what can be found."""
    newest = tx.conversation.latest_digest(address, session_number, kind)
    if newest is None:
        gone = Digest(address, session_number, kind, 0, "", 0, (), "", (), (), {}, "", False, now)
        tx.index.remove("digest", [digest_ref(gone)], now=now)
        return
    tx.index.put([digest_entry(newest, ZONE)], now=now)


def leave_digests(tx: Tx, digests: Sequence[Digest], *, now: datetime) -> None:
    """These digests were removed, or undone."""
    for address, number, kind in dict.fromkeys((one.address, one.session_number, one.kind) for one in digests):
        enter_digests(tx, address, number, kind, now=now)


def enter_messages(tx: Tx, messages: Iterable[Message], zone: str, *, now: datetime) -> None:
    """Messages whose words have changed, or that were never taken in."""
    tx.index.put([entry_of(message, zone) for message in messages], now=now)


def entry_of(message: Message, zone: str) -> NewEntry:
    """The entry of a message that is held."""
    return message_entry(message, words_of(message.content, message.at, zone))


def enter_state(tx: Tx, keys: Iterable[str], *, now: datetime) -> None:
    """Values of these keys were rewritten."""
    found = [tx.state.find(key) for key in keys if not key.startswith(RESERVED)]
    tx.index.put([state_entry(one, ZONE) for one in found if one is not None and one.body is not None], now=now)


def enter_series(tx: Tx, names: Iterable[str], *, now: datetime) -> None:
    """Descriptions of these series were rewritten."""
    found = [tx.series.find(name) for name in names]
    tx.index.put([series_entry(one, ZONE) for one in found if one is not None], now=now)


def leave_messages(tx: Tx, session: Session, *, now: datetime) -> None:
    """All messages of a session are about to be deleted."""
    after = Cursor(session.number, 0)
    while page := tx.list_messages(MessageQuery(session.address, PAGE, session.number, after=after)):
        tx.index.remove("message", [message.id for message in page], now=now)
        after = Cursor(session.number, page[-1].seq)
