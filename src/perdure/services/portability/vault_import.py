"""Imports from a vault: what people have written or changed in its notes, taken as proposals through the ordinary calls.

A note that says what we wrote changes nothing. Nothing is deleted: a line that is gone is left alone, and said so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from perdure.domain.errors import InvalidInput, NotFound, PerdureError
from perdure.domain.knowledge.entities import Todo
from perdure.domain.knowledge.keys import slug
from perdure.domain.knowledge.memories import MemoryRecord, Statement
from perdure.domain.knowledge.proposals import FACT_TYPES, MEMORY_TYPES, FactType, MemoryType, Proposal, TodoProposal
from perdure.domain.lessons import LESSON_SCOPES, Lesson, LessonScope
from perdure.domain.reports import ImportedItem, ImportReport, Verdict
from perdure.domain.scope import DEFAULT, Address, Scope
from perdure.domain.values import dataclass, replace
from perdure.engine.knowledge.committer import objection
from perdure.engine.knowledge.curator import value_in_words
from perdure.engine.lessons import why_no_lesson
from perdure.engine.portability import STATEMENTS, NoteLine, block_id, bullets, changed_value
from perdure.engine.text.hygiene import refusal
from perdure.services.knowledge.entities import entity_names
from perdure.services.knowledge.memories import Knowledge, MemoryQuery
from perdure.services.knowledge.todos import Todos
from perdure.services.lessons.lessons import Lessons
from perdure.services.portability.import_ import VERDICTS
from perdure.services.portability.vault_export import FOLDERS, with_due
from perdure.services.portability.vault_folder import Vault, WrittenNote, read_note, sha256_of

SOURCE = "vault"
Found = tuple[Verdict, str]
_KINDS = {folder: kind for kind, folder in FOLDERS.items() if kind in ("memory", "lessons", "todos")}


@dataclass(frozen=True, slots=True)
class _Import:
    """What holds for all notes."""

    said: set[str]
    """What is known already, whichever note it stands in."""
    dry_run: bool


@dataclass(frozen=True, slots=True)
class VaultImporter:
    knowledge: Knowledge
    lessons: Lessons
    todos: Todos

    def import_(self, scope: Scope, folder: Path, *, dry_run: bool) -> ImportReport:
        """Take over what people wrote into the vault of this user; with `dry_run`, only say what that would be."""
        vault = Vault.open(folder)
        if vault.owner is not None and vault.owner[1] != scope.owner.user:
            raise InvalidInput(
                f"{folder} is the vault of user {vault.owner[1]!r:.80}; import it as that user, "
                "or take a lossless export to move what is known to another one"
            )
        most = self.knowledge.limits.page_rows_max
        said = {one.content for held in self.knowledge.list_(scope, MemoryQuery(limit=most)) for one in held.statements}
        items: list[ImportedItem] = []
        for path in vault.people_files():
            items += self._note(scope, vault, path, _Import(said, dry_run))
        gone = [path for path in vault.notes if not (vault.root / path).is_file()]
        items += [ImportedItem(path, "note", "ignored", "the note is missing; nothing was deleted") for path in sorted(gone)]
        return ImportReport("vault", (scope.owner.user,), dry_run, {}, tuple(items))

    def _note(self, scope: Scope, vault: Vault, path: str, of: _Import) -> list[ImportedItem]:
        written = vault.notes.get(path)
        if written is not None and sha256_of(vault.root / path) == written.sha256:
            return [ImportedItem(path, "note", "unchanged")]
        kind = written.kind if written is not None else _KINDS.get(path.split("/")[0]) if "/" in path else None
        if kind is None or kind not in _KINDS.values():
            why = "is not about memories, lessons or todos" if written is None else f"tells of {kind}, which is not edited here"
            return [ImportedItem(path, "note", "ignored", f"the note {why}")]
        try:
            meta, body, before = read_note(vault.root / path)
        except InvalidInput as error:
            return [ImportedItem(path, "note", "refused", f"the note {error}")]
        reading = _NoteReader(self, scope, written, meta, of)
        found = [
            ImportedItem(f"{path}:{before + line.number}", one, verdict, why)
            for line, one, verdict, why in reading.lines(kind, body)
        ]
        return found or [ImportedItem(path, "note", "ignored", "the note has no line of a list that could be taken over")]


@dataclass(frozen=True, slots=True)
class _NoteReader:
    """A note that was changed, or is new."""

    do: VaultImporter
    scope: Scope
    written: WrittenNote | None
    meta: Mapping[str, Any]
    of: _Import

    def lines(self, kind: str, body: str) -> Iterator[tuple[NoteLine, str, Verdict, str]]:
        if kind == "memory":
            taking = self._memory_lines()
            under = STATEMENTS if self.written is not None else None
        elif kind == "lessons":
            taking, under = self._lesson_lines(), "Lessons" if self.written is not None else None
        else:
            taking, under = self._todo_lines(), None
        seen: set[str] = set()
        for line in bullets(body, under):
            if line.block is not None:
                seen.add(line.block)
            try:
                verdict, why = taking.take(line)
            except PerdureError as error:
                verdict, why = "refused", str(error)
            yield line, kind.removesuffix("s"), verdict, why
        for number in range(len(taking.marks - seen)):
            yield NoteLine(number, ""), kind.removesuffix("s"), "ignored", "a line is missing; nothing was deleted"

    # -- memories

    def _memory_lines(self) -> _LineTaker:
        held = self._held_memory()
        current = {} if held is None else {block_id(one.id): one for one in held[1]}
        texts = self.of.said | {one.content for one in current.values()}

        def take(line: NoteLine) -> Found:
            was = current.get(line.block or "")
            if line.text in texts:
                return "unchanged", ""
            proposal = self._proposal(line.text, None if held is None else held[0], was)
            if (why := objection(proposal)) is not None:
                return "refused", why
            if self.of.dry_run:
                return ("added" if was is None else "changed"), ""
            visible_to = None if held is None else held[0].visible_to
            outcome = self.do.knowledge.remember(self.scope, proposal, source=SOURCE, pinned=False, visible_to=visible_to)
            verdict = VERDICTS[outcome.verdict]
            beside = was is not None and verdict == "added"
            return verdict, outcome.reason or ("what the line said before stays, too" if beside else "")

        return _LineTaker(take, set(current))

    def _held_memory(self) -> tuple[MemoryRecord, tuple[Statement, ...]] | None:
        if self.written is None:
            return None
        agents = [self.scope.address.agent, self.written.ref.rpartition("@")[2]]
        for agent in agents:
            try:
                found = self.do.knowledge.get(_scope_of_agent(self.scope, agent), self.written.ref)
            except (NotFound, InvalidInput):
                continue
            return found.memory, found.statements
        return None

    def _proposal(self, text: str, memory: MemoryRecord | None, was: Statement | None) -> Proposal:
        """What a line says: of the memory that the note is about, or as the front matter of a new note tells."""
        known = value_in_words(text)
        made = Proposal("PROFILE", "fact", text, confidence=1.0)
        if memory is not None:
            made = replace(
                made,
                type=_memory_type(memory.type),
                fact_type=_fact_type(memory.fact_type),
                entities=entity_names(memory.entities),
            )
        else:
            given = self.meta.get("entities")
            # Only texts: YAML can fold a small note into a value that has no end.
            names = [one for one in given if isinstance(one, str)] if isinstance(given, list) else [given]
            entities = entity_names([one for one in names if isinstance(one, str)])
            made = replace(
                made,
                type=_memory_type(self.meta.get("type")),
                fact_type=_fact_type(self.meta.get("fact_type")),
                entities=entities,
            )
        if was is not None and was.attribute is not None:
            value = changed_value(was.content, was.value, text)
            if value is not None:
                subject = None if ":" not in was.subject else entity_names([was.subject])[0]
                return _renamed(replace(made, attribute=was.attribute, value=value, subject=subject), was, value)
        if known is not None and not known.who and (memory is None or was is not None):
            return replace(made, attribute=known.attribute, value=known.value)
        return made

    # -- lessons

    def _lesson_lines(self) -> _LineTaker:
        scope, wanted = self._book()
        held = self.do.lessons.list_(scope, None, archived=True, ended=False, limit=self.do.knowledge.limits.page_rows_max)
        blocks = {block_id(one.id) for one in held}
        texts = {one.text for one in held}

        def take(line: NoteLine) -> Found:
            if line.text in texts:
                return "unchanged", ""
            if (why := why_no_lesson(line.text)) is not None:
                return "refused", f"the lesson {why}"
            if not self.of.dry_run:
                self.do.lessons.add(scope, line.text, wanted)
            beside = line.block in blocks
            return "added", "what the line said before stays, too" if beside else ""

        shown = (
            [] if self.written is None else [one for one in held if one.archived_at is None and _is_in_note(one, self.written)]
        )
        return _LineTaker(take, {block_id(one.id) for one in shown})

    def _book(self) -> tuple[Scope, LessonScope]:
        """Where the lessons of the note belong: to the book it was written from, else to the user."""
        scope, agent, channel = json.loads(self.written.ref) if self.written is not None else ("user", None, None)
        wanted: LessonScope = next((one for one in LESSON_SCOPES if one == scope), "user")
        address = self.scope.address
        return Scope(self.scope.owner, Address(agent or address.agent, channel or address.channel)), wanted

    # -- todos

    def _todo_lines(self) -> _LineTaker:
        scope = self.scope if self.written is None else _scope_of_agent(self.scope, self.written.ref)
        held = self.do.todos.list_(scope, kind=None, closed=True, due_before=None, limit=self.do.knowledge.limits.page_rows_max)
        blocks = {block_id(one.id): one for one in held}
        texts = {with_due(one): one for one in held} | {one.content: one for one in held}

        def take(line: NoteLine) -> Found:
            known = texts.get(line.text)
            if known is not None:
                return self._ticked(scope, known, line)
            if (why := refusal(line.text)) is not None:
                return "refused", f"the todo {why}"
            if not self.of.dry_run:
                self.do.todos.add(scope, TodoProposal("commitment", line.text, confidence=1.0))
            return "added", "what the line said before stays, too" if line.block in blocks else ""

        return _LineTaker(take, set(blocks) if self.written is not None else set())

    def _ticked(self, scope: Scope, todo: Todo, line: NoteLine) -> Found:
        if not line.done or todo.state != "pending":
            return "unchanged", ""
        if not self.of.dry_run:
            self.do.todos.complete(scope, todo.id)
        return "changed", "it is done"


@dataclass(frozen=True, slots=True)
class _LineTaker:
    take: Callable[[NoteLine], Found]
    marks: set[str]
    """The marks of the lines that were in the note when it was written."""


def _scope_of_agent(scope: Scope, agent: str) -> Scope:
    return Scope(scope.owner, Address(agent or DEFAULT, scope.address.channel))


def _is_in_note(lesson: Lesson, written: WrittenNote) -> bool:
    return json.dumps([lesson.scope, lesson.agent, lesson.channel]) == written.ref


def _memory_type(text: object) -> MemoryType:
    name = text.upper() if isinstance(text, str) else ""
    return next((one for one in get_args(MemoryType) if one == name), MEMORY_TYPES[0])


def _fact_type(text: object) -> FactType:
    name = text.lower() if isinstance(text, str) else ""
    return next((one for one in get_args(FactType) if one == name), FACT_TYPES[0])


def _renamed(proposal: Proposal, was: Statement, value: str) -> Proposal:
    """What is about the place that a statement names is about the new place, if another one stands there now."""
    if was.value is None or len(proposal.entities) != 1:
        return proposal
    [entity] = proposal.entities
    is_value = slug(entity.label) == slug(was.value)
    return replace(proposal, entities=(replace(entity, label=value),)) if is_value else proposal
