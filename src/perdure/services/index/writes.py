"""Keeping the index up to date with what is written, in the transaction that writes it, and noting what is put into prompts.

Anyone who changes something that can be found calls one of these. What they do is done when the transaction ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any

from perdure.domain.context.context import Block, PromptPart
from perdure.domain.context.recall import NewEntry
from perdure.domain.conversation.digests import Digest, DigestKind
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.knowledge.entities import Instruction, Todo, from_body
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import Statement, to_statement
from perdure.domain.knowledge.records import RecordKind, RecordQuery
from perdure.domain.lessons import to_lesson
from perdure.domain.scope import RESERVED, Address, Owner
from perdure.domain.state import is_found
from perdure.engine.search.entries import (
    IndexedText,
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
from perdure.engine.text.hygiene import fingerprints
from perdure.ports.clock import Clock
from perdure.ports.store import ReadOnly, Store, Tx

ZONE = "UTC"
"""What times of day in records and digests mean: they were put into words by us."""
STATEMENTS_MAX = 10_000
PAGE = 1_000
SHORT_CHARS_MAX = 4_000
"""The words of longer messages are not kept at hand."""
ENTRY_OF: Mapping[RecordKind, str] = {
    "statement": "memory",
    "todo": "todo",
    "instruction": "instruction",
    "lesson": "lesson",
}
"""The kind of entry by which records of a kind are found; the others are not."""


def enter_record(
    tx: Tx, kind: RecordKind, key: str, body: Mapping[str, Any] | None, *, now: datetime, new: bool = False
) -> None:
    """A record was written, or removed if `body` is None; `new`: there was none before, so that it cannot be indexed."""
    if kind == "memory":
        if body is not None:
            _enter_statements(tx, key, now)
    elif kind in ENTRY_OF and body is None:
        tx.index.remove(ENTRY_OF[kind], [key], now=now)
    elif kind == "statement" and body is not None:
        enter_statement(tx, to_statement(body), now=now, new=new)
    elif kind == "todo" and body is not None:
        tx.index.put([todo_entry(from_body(Todo, body), ZONE)], now=now)
    elif kind == "instruction" and body is not None:
        tx.index.put([instruction_entry(from_body(Instruction, body), ZONE)], now=now)
    elif kind == "lesson" and body is not None:
        tx.index.put([lesson_entry(to_lesson(body), ZONE)], now=now)


def enter_statement(tx: Tx, statement: Statement, *, now: datetime, new: bool) -> None:
    """The same of a statement."""
    enter = tx.index.add if new else tx.index.put
    enter([statement_entry(statement, ZONE, archived=_is_archived(tx, statement.memory))], now=now)


def _enter_statements(tx: Tx, memory: str, now: datetime) -> None:
    """A memory may have been archived, or brought back: then its statements are found no more, or again."""
    archived = _is_archived(tx, memory)
    found = tx.records.list_(RecordQuery("statement", STATEMENTS_MAX, ("memory", term_value(memory))))
    tx.index.put([statement_entry(to_statement(record.body), ZONE, archived=archived) for record in found], now=now)


def _is_archived(tx: Tx, memory: str) -> bool:
    held = tx.records.find("memory", memory)
    return held is not None and held.body["status"] != "ACTIVE"


def enter_digests(tx: Tx, address: Address, session_number: int, kind: DigestKind, *, now: datetime) -> None:
    """A version of a layer was written, undone or removed: the newest that is left is what can be found."""
    newest = tx.conversation.latest_digest(address, session_number, kind)
    if newest is None:
        tx.index.remove("digest", [digest_ref(address, session_number, kind)], now=now)
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
    short = len(message.content) <= SHORT_CHARS_MAX
    return message_entry(message, (_words if short else words_of)(message.content, message.at, zone))


@lru_cache(maxsize=1_024)
def _words(text: str, at: datetime, zone: str) -> IndexedText:
    """Of a message that an answer has found before it was taken in, the words are known when it is."""
    return words_of(text, at, zone)


def enter_state(tx: Tx, keys: Iterable[str], *, now: datetime) -> None:
    """Values of these keys were rewritten."""
    held = [one for key in keys if not key.startswith(RESERVED) and (one := tx.state.find(key)) is not None]
    tx.index.put([state_entry(one, ZONE) for one in held if is_found(one.body)], now=now)
    tx.index.remove("state", [one.key for one in held if not is_found(one.body)], now=now)


def enter_series(tx: Tx, names: Iterable[str], *, now: datetime) -> None:
    """Descriptions of these series were rewritten."""
    found = [tx.series.find(name) for name in names]
    tx.index.put([series_entry(one, ZONE) for one in found if one is not None], now=now)


def leave_messages(tx: Tx, session: Session, *, now: datetime) -> set[str]:
    """All messages of a session are about to be deleted; their ids."""
    gone: set[str] = set()
    after = Cursor(session.number, 0)
    while page := tx.list_messages(MessageQuery(session.address, PAGE, session.number, after=after)):
        gone.update(message.id for message in page)
        tx.index.remove("message", [message.id for message in page], now=now)
        after = Cursor(session.number, page[-1].seq)
    return gone


ECHOES_MAX = 10_000
"""Fingerprints that are kept for one user."""


def register_echoes(store: Store, clock: Clock, owner: Owner, blocks: Sequence[Block | PromptPart]) -> None:
    """Keep the fingerprints of the blocks that are not kept yet."""
    prints = [one for block in blocks for one in _prints_of(block.text)]
    if not prints:
        return
    held = store.read(owner, lambda view: view.records.find_echoes(prints))
    new = [one for one in dict.fromkeys(prints) if one not in held]
    now = clock.now()
    if not new:
        return
    with suppress(ReadOnly):
        store.write(owner, lambda tx: tx.records.put_echoes(new, at=now, keep=ECHOES_MAX))


def enter_echoes(tx: Tx, blocks: Sequence[Block | PromptPart], *, now: datetime) -> None:
    """The same, within a transaction that writes anyway."""
    prints = [one for block in blocks for one in _prints_of(block.text)]
    held = tx.records.find_echoes(prints)
    tx.records.put_echoes([one for one in dict.fromkeys(prints) if one not in held], at=now, keep=ECHOES_MAX)


@lru_cache(maxsize=256)
def _prints_of(text: str) -> tuple[str, ...]:
    return tuple(fingerprints(text))
