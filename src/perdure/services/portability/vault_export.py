"""Exports to a vault: a folder of Markdown notes about one user, for people to read, link and edit.

One note for each memory, entity, session, book of lessons, list of todos, series and key of state, and an index. All of one
moment, the same words for the same data; only notes that say something else than before are written.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from perdure.domain.conversation.messages import Message, Session
from perdure.domain.knowledge.entities import Entity, Todo, from_body
from perdure.domain.knowledge.memories import MemoryRecord, Statement, least, to_memory, to_statement
from perdure.domain.lessons import Lesson, to_lesson
from perdure.domain.reports import ExportReport
from perdure.domain.scope import RESERVED, Owner
from perdure.domain.series import CoveredWindow, Entry, Series
from perdure.domain.state import is_plain
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass, field
from perdure.engine.portability import STATEMENTS, bullet, escaped, fenced, file_name, link, quoted, section
from perdure.ports.store import Progress, Snapshot, Store, check_progress
from perdure.ports.tables.knowledge import to_record
from perdure.ports.tables.log import to_message, to_session
from perdure.ports.tables.series import SERIES_ENTRIES, SERIES_WINDOWS, STATE_KEYS, to_entry, to_revision, to_series, to_window
from perdure.services.portability.vault_folder import Note, Vault

ENTRIES_SHOWN = 20
INDEX_SHOWN = 500
FOLDERS = {
    "memory": "memories",
    "entity": "entities",
    "session": "sessions",
    "lessons": "lessons",
    "todos": "todos",
    "series": "series",
    "state": "state",
}


@dataclass(frozen=True, slots=True)
class VaultExporter:
    store: Store

    def export(self, owner: Owner, folder: Path, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """Write or bring up to date the vault of a user.

        A note that a person has changed since is left as it is, unless `replace`; a note of ours whose memory is gone goes,
        too; a note that somebody else wrote is never touched.
        """
        check_progress(progress)
        vault = Vault.open(folder)
        vault.begin((owner.space, owner.user))
        done: dict[str, list[str]] = {"written": [], "unchanged": [], "edited": []}
        kinds: Counter[str] = Counter()
        seen: set[str] = set()
        size = 0
        with self.store.snapshot(owner) as snapshot:
            for note in _notes(snapshot, owner):
                done[vault.put(note, replace=replace)].append(note.path)
                kinds[note.kind] += 1
                seen.add(note.path)
                size += len(note.body)
                if progress is not None:
                    progress(note.kind, kinds[note.kind])
        gone = sorted(path for path in vault.notes if path not in seen)
        removed = [path for path in gone if vault.remove(path)]
        vault.end()
        edited = sorted({*done["edited"], *(set(gone) - set(removed))})
        return ExportReport(
            "vault",
            (owner.user,),
            dict(kinds),
            size,
            written=tuple(done["written"]),
            removed=tuple(removed),
            edited=tuple(edited),
        )


@dataclass(slots=True)
class _UserKnowledge:
    """What is known of the user, read once."""

    memories: dict[str, MemoryRecord] = field(default_factory=dict)
    statements: dict[str, list[Statement]] = field(default_factory=lambda: defaultdict(list))
    entities: dict[str, Entity] = field(default_factory=dict)
    todos: dict[str, list[Todo]] = field(default_factory=lambda: defaultdict(list))
    books: dict[tuple[str, str | None, str | None], list[Lesson]] = field(default_factory=lambda: defaultdict(list))
    cited: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The memories that rest on a message."""
    said_in: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """The sessions in which a memory was said: their refs and labels."""


def _notes(snapshot: Snapshot, owner: Owner) -> Iterator[Note]:
    known = _read_known(snapshot, owner)
    index: dict[str, list[tuple[str, str]]] = defaultdict(list)
    # Sessions come before memories: only their messages tell in which of them a memory was said.
    for note in chain(
        _lesson_notes(known),
        _todo_notes(known),
        _session_notes(snapshot, owner, known),
        _knowledge_notes(known),
        _series_notes(snapshot, owner),
        _state_notes(snapshot, owner),
    ):
        index[note.kind].append((note.ref, str(note.meta["title"])))
        yield note
    yield _index_note(owner, index)


def _knowledge_notes(known: _UserKnowledge) -> Iterator[Note]:
    about: dict[str, list[str]] = defaultdict(list)
    for key in sorted(known.memories):
        for ref in _entities_of(known, key):
            about[ref].append(key)
        yield _memory_note(known, key)
    yield from (_entity_note(known, ref, about.get(ref, ())) for ref in sorted(known.entities))


def _read_known(snapshot: Snapshot, owner: Owner) -> _UserKnowledge:
    known = _UserKnowledge()
    for row in snapshot.rows("records", owner):
        record = to_record(row)
        if record.kind == "memory":
            known.memories[record.key] = to_memory(record.body)
        elif record.kind == "statement":
            statement = to_statement(record.body)
            known.statements[statement.memory].append(statement)
            for one in statement.evidence:
                known.cited[one.message].add(statement.memory)
        elif record.kind == "entity":
            known.entities[record.key] = from_body(Entity, record.body)
        elif record.kind == "todo":
            todo = from_body(Todo, record.body)
            known.todos[todo.agent].append(todo)
        elif record.kind == "lesson":
            lesson = to_lesson(record.body)
            if lesson.ended_at is None:
                known.books[(lesson.scope, lesson.agent, lesson.channel)].append(lesson)
    return known


def _note(kind: str, ref: str, title: str, meta: Mapping[str, Any], parts: Iterable[str]) -> Note:
    line = " ".join(title.split())[:200]
    told = {"perdure": kind, "title": line, **{name: one for name, one in meta.items() if one is not None and one != []}}
    body = "\n".join((f"# {escaped(line)}", "", *(part for part in parts if part)))
    return Note(f"{FOLDERS[kind]}/{file_name(ref)}.md", kind, ref, told, body)


# -- what is known


def _memory_note(known: _UserKnowledge, key: str) -> Note:
    memory = known.memories[key]
    statements = sorted(known.statements.get(key, ()), key=lambda one: (one.recorded_at, one.id))
    now = [one for one in statements if one.is_live()]
    past = [one for one in statements if not one.is_live()]
    title = memory.label or (now or past)[0].content if memory.label or statements else key
    trust = least((one.trust for one in statements), "user")
    meta = {
        "type": memory.type,
        "fact_type": memory.fact_type,
        "entities": list(memory.entities),
        "importance": memory.importance,
        "pinned": memory.pinned,
        "status": memory.status,
        "source": memory.source,
        "trust": None if trust == "user" else trust,
        "visible_to": memory.visible_to,
        "created": _iso_seconds(memory.created_at),
        "updated": _iso_seconds(memory.updated_at),
    }
    about = [f"- {_entity_link(known, ref)}" for ref in _entities_of(known, key)]
    said = [f"- {link('sessions', ref, label)}" for ref, label in sorted(known.said_in.get(key, {}).items())]
    parts = (
        section(STATEMENTS, (bullet(one.content, one.id) for one in now)),
        section("Earlier", (f"- {escaped(one.content)} (until {_iso_seconds(one.valid_to)})" for one in past)),
        section("About", about),
        section("Said in", said),
    )
    return _note("memory", key, title, meta, parts)


def _entities_of(known: _UserKnowledge, key: str) -> list[str]:
    named = (ref for one in known.statements.get(key, ()) for ref in one.entities)
    return list(dict.fromkeys((*known.memories[key].entities, *named)))


def _entity_link(known: _UserKnowledge, ref: str) -> str:
    held = known.entities.get(ref)
    return link("entities", ref, ref if held is None else held.label) if held is not None else escaped(ref)


def _entity_note(known: _UserKnowledge, ref: str, about: Sequence[str]) -> Note:
    entity = known.entities[ref]
    memories = [(key, known.memories[key]) for key in about]
    links = [f"- {link('memories', key, memory.label or memory.type)}: {memory.fact_type}" for key, memory in memories]
    meta = {
        "ref": ref,
        "type": entity.type,
        "also": list(entity.aliases),
        "merged_into": entity.merged_into,
        "created": _iso_seconds(entity.created_at),
    }
    merged = "" if entity.merged_into is None else f"Is {_entity_link(known, entity.merged_into)}.\n"
    return _note("entity", ref, entity.label, meta, (merged, section("Memories", links)))


def _lesson_notes(known: _UserKnowledge) -> Iterator[Note]:
    for (scope, agent, channel), lessons in sorted(known.books.items(), key=lambda one: [part or "" for part in one[0]]):
        ref = json.dumps([scope, agent, channel])
        title = "Lessons" + "".join(f" of {name} {one}" for name, one in (("agent", agent), ("channel", channel)) if one)
        ordered = sorted(lessons, key=lambda one: (one.created_at, one.id))
        shown = [bullet(one.text, one.id) for one in ordered if one.archived_at is None]
        kept = [f"- {escaped(one.text)}" for one in ordered if one.archived_at is not None]
        meta = {"scope": scope, "agent": agent, "channel": channel}
        yield _note("lessons", ref, title, meta, (section("Lessons", shown), section("Archived", kept)))


def _todo_notes(known: _UserKnowledge) -> Iterator[Note]:
    for agent, todos in sorted(known.todos.items()):
        ordered = sorted(todos, key=lambda one: (one.created_at, one.id))
        lines = {state: [one for one in ordered if (one.state == "pending") is state] for state in (True, False)}
        due = [bullet(with_due(one), one.id, done=False) for one in lines[True]]
        over = [bullet(with_due(one), one.id, done=one.state == "completed") for one in lines[False]]
        yield _note("todos", agent, f"Todos told to {agent}", {"agent": agent}, (section("Open", due), section("Over", over)))


def with_due(todo: Todo) -> str:
    """What the line of a todo says."""
    return todo.content if todo.due_at is None else f"{todo.content} (due {todo.due_at.isoformat(timespec='minutes')})"


# -- what was said


def _session_notes(snapshot: Snapshot, owner: Owner, known: _UserKnowledge) -> Iterator[Note]:
    sessions = {row[:5]: to_session(row) for row in snapshot.rows("sessions", owner)}
    for place, group in groupby(snapshot.rows("messages", owner), key=lambda row: row[:5]):
        session = sessions.pop(place)
        if session.deleted_at is None:
            yield _session_note(session, (to_message((*row, session.id)) for row in group), known)
    yield from (_session_note(session, iter(()), known) for session in sessions.values() if session.deleted_at is None)


def _session_note(session: Session, messages: Iterator[Message], known: _UserKnowledge) -> Note:
    address = session.address
    ref = json.dumps([address.agent, address.channel, session.number])
    title = f"Session {session.number} with {address.agent} on {address.channel}"
    said: list[str] = []
    memories: set[str] = set()
    for message in messages:
        found = known.cited.get(message.id, set()) & known.memories.keys()
        memories |= found
        for key in found:
            known.said_in[key][ref] = title
        said += [f"**{message.role}** {message.at.isoformat(timespec='seconds')}", "", quoted(_words(message)), ""]
    links = [f"- {link('memories', key, known.memories[key].label or known.memories[key].type)}" for key in sorted(memories)]
    meta = {
        "session": session.id,
        "number": session.number,
        "agent": address.agent,
        "channel": address.channel,
        "opened": _iso_seconds(session.opened_at),
        "last": _iso_seconds(session.last_at),
        "ended": _iso_seconds(session.ended_at),
        "messages": session.messages,
    }
    return _note("session", ref, title, meta, (section("Remembered from it", links), section("What was said", said)))


def _words(message: Message) -> str:
    calls = [f"(calls {call.name})" for call in message.tool_calls]
    return "\n".join([*([message.content] if message.content or not calls else []), *calls])


# -- what was kept


def _series_notes(snapshot: Snapshot, owner: Owner) -> Iterator[Note]:
    windows: dict[str, list[CoveredWindow]] = defaultdict(list)
    for row in snapshot.rows("series_windows", owner):
        windows[SERIES_WINDOWS.named(row).series].append(to_window(row))
    newest: dict[str, list[Entry]] = {}
    for name, group in groupby(snapshot.rows("series_entries", owner), key=lambda row: SERIES_ENTRIES.named(row).series):
        newest[name] = _newest(to_entry(row) for row in group)
    for row in snapshot.rows("series", owner):
        series = to_series(row)
        yield _series_note(series, windows.get(series.name, []), newest.get(series.name, []))


def _newest(entries: Iterable[Entry]) -> list[Entry]:
    found: list[Entry] = []
    for entry in entries:
        found.append(entry)
        if len(found) >= 10 * ENTRIES_SHOWN:
            found = sorted(found, key=lambda one: (-one.at_us, one.id))[:ENTRIES_SHOWN]
    return sorted(found, key=lambda one: (-one.at_us, one.id))[:ENTRIES_SHOWN]


def _series_note(series: Series, windows: Sequence[CoveredWindow], newest: Sequence[Entry]) -> Note:
    meta = {
        "entries": series.count,
        "api_calls": series.api_calls,
        "since": _iso_seconds(series.accumulated_since),
        "updated": _iso_seconds(series.last_updated),
    }
    held = [f"- {_iso_seconds(from_us(one.span.start_us))} to {_iso_seconds(from_us(one.span.end_us))}" for one in windows]
    shown = [f"{_iso_seconds(from_us(one.at_us))}\n\n{fenced(_pretty(one.body))}\n" for one in newest]
    return _note("series", series.name, series.name, meta, (section("Covered", held), section("Newest entries", shown)))


def _state_notes(snapshot: Snapshot, owner: Owner) -> Iterator[Note]:
    keys = map(STATE_KEYS.named, snapshot.rows("state_keys", owner))
    heads = {one.key: one.revision for one in keys if not one.key.startswith(RESERVED)}
    for row in snapshot.rows("state_revisions", owner):
        revision = to_revision(row)
        if heads.get(revision.key) != revision.number or revision.body is None or not is_plain(revision.body):
            continue  # verbatim values and lists are for programs
        meta = {
            "revision": revision.number,
            "saved": _iso_seconds(revision.saved_at),
            "expires": _iso_seconds(revision.expires_at),
        }
        yield _note("state", revision.key, revision.key, meta, (fenced(_pretty(json.loads(revision.body))),))


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _index_note(owner: Owner, found: Mapping[str, Sequence[tuple[str, str]]]) -> Note:
    parts = []
    for kind, folder in FOLDERS.items():
        held = sorted(found.get(kind, ()))
        lines = [f"- {link(folder, ref, title)}" for ref, title in held[:INDEX_SHOWN]]
        more = [f"- … and {len(held) - INDEX_SHOWN} more in `{folder}`"] if len(held) > INDEX_SHOWN else []
        parts.append(section(f"{folder.capitalize()} ({len(held)})", [*lines, *more]))
    title = f"What is remembered of {owner.user}"
    body = "\n".join((f"# {escaped(title)}", "", *(part for part in parts if part)))
    return Note("index.md", "index", "index", {"perdure": "index", "title": title}, body)


def _iso_seconds(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
