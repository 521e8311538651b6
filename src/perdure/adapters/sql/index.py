"""The search index of one owner in a SQL database."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime

from perdure.adapters.sql.statements import SqlStatements
from perdure.domain.context.recall import LEXICON, NewEntry
from perdure.domain.scope import Owner
from perdure.ports.tables import index as forms
from perdure.ports.tables.index import IndexEntry, IndexHead, Pack, PendingEntries


class SqlIndex:
    __slots__ = ("_owner", "_pending", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._pending = PendingEntries()

    def head(self) -> IndexHead:
        found = self._run.all(self._run.locked("index_head"))
        return forms.to_head(found[0]) if found else IndexHead()

    def entries(self, after: int, *, upto: int, limit: int) -> list[IndexEntry]:
        return [forms.to_index_entry(row) for row in self._run.all("index_entries", after=after, upto=upto, limit=limit)]

    def find_entries(self, kind: str, refs: Sequence[str]) -> dict[str, int]:
        if not refs:
            return {}
        found = self._run.all("find_index_entries", kind=kind, refs=self._run.array(list(refs)))
        return {ref: number for ref, number, _ in found}

    def vectors(self, embedder: str, after: int, *, upto: int) -> list[tuple[int, bytes]]:
        found = self._run.all("index_vectors", embedder=embedder, after=after, upto=upto)
        return [(number, body) for number, body in found]

    def packs(self) -> list[Pack]:
        return [forms.to_pack(row) for row in self._run.all("index_packs")]

    def pack_spans(self) -> list[tuple[int, int]]:
        return [(first, last) for first, last in self._run.all("index_pack_spans")]

    def count_entries(self, kind: str) -> int:
        [(count,)] = self._run.all("count_index_entries", kind=kind)
        return int(count)

    def begin(self) -> None:
        self._pending.begun = True

    def add(self, entries: Sequence[NewEntry], *, now: datetime) -> None:
        self._pending.add(entries, now)

    def put(self, entries: Sequence[NewEntry], *, now: datetime) -> None:
        self._pending.put(entries, now)

    def remove(self, kind: str, refs: Sequence[str], *, now: datetime) -> None:
        self._pending.remove(kind, refs, now)

    def flush(self) -> datetime | None:
        """Carry out what is pending; the time of it, or None if that changed nothing."""
        pending, self._pending = self._pending, PendingEntries()
        if pending.without_packs:
            self.head()  # first of all, as everywhere: it keeps rivals off
            self._run.send("remove_index_packs")
        found = {} if pending.fresh else self._find_held(pending)
        same = [name for name, held in found.items() if (entry := pending.entries[name]) is not None and entry.body == held[2]]
        for name in same:
            if name not in pending.added:
                del pending.entries[name], found[name]
        held = {name: number for name, (number, _, _) in found.items()}
        count = sum(entry is not None or name in held for name, entry in pending.entries.items())
        if not count:
            if pending.begun:
                self._advance(0)
            return None
        made = forms.planned(pending, held, self._advance(count))
        for new in made:
            if new.kind == forms.GONE:
                self._drop_packs(new.replaces)
        self._drop(found.values())
        self._run.put("insert_index_entry", [forms.index_entry_row(self._owner, new) for new in made])
        return pending.now

    def _find_held(self, pending: PendingEntries) -> dict[tuple[str, str], tuple[int, int, bytes]]:
        """The numbers of what is held of it, those of what that has replaced, and the bodies."""
        # Rivals are kept off first: what they have just put must be found.
        self.head()
        held: dict[tuple[str, str], tuple[int, int, bytes]] = {}
        for kind in {name[0] for name in pending.entries}:
            refs = self._run.array([ref for other, ref in pending.entries if other == kind])
            for ref, number, replaces, body in self._run.all("held_index_entries", kind=kind, refs=refs):
                held[(kind, ref)] = (number, replaces, bytes(body))
        return held

    def _drop_packs(self, number: int) -> None:
        """Drop the packs that hold an entry, or one that it has replaced."""
        while number > 0:
            self._run.send("remove_index_packs_within", first=number, last=number)
            found = self._run.all("index_entry_replaces", number=number)
            number = found[0][0] if found and found[0][0] < number else 0

    def put_head(self, head: IndexHead) -> None:
        self._run.put("put_index_head", [forms.head_row(self._owner, head)])

    def put_vectors(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        if vectors:
            self._run.put("put_index_vector", forms.vector_rows(self._owner, embedder, vectors))

    def remove_vectors(self, embedder: str) -> None:
        self._run.send("remove_index_vectors", embedder=embedder)

    def fix(self) -> None:
        self.head()
        self._run.send("remove_index_packs")
        self._run.send("remove_gone_index_entries")
        self._run.send("unlink_index_entries")
        self._run.send("remove_loose_index_vectors")
        [(highest,)] = self._run.all("highest_index_entry")
        if highest and not self._run.all("index_head"):
            self._advance(0)
        self._run.send("renew_index_head", incarnation=os.urandom(8).hex(), highest=highest or 0)

    def put_pack(self, pack: Pack) -> None:
        self._run.send("remove_index_packs_within", first=pack.first, last=pack.last)
        self._run.put("insert_index_pack", [forms.pack_row(self._owner, pack)])

    def remove_packs(self) -> None:
        self._pending.without_packs = True

    def _advance(self, count: int) -> int:
        """Reserve numbers; the last one before them. Rivals wait here until we are done, so numbers are committed in order."""
        [(last,)] = self._run.all("advance_index", incarnation=os.urandom(8).hex(), count=count, lexicon=LEXICON)
        return int(last) - count

    def _drop(self, held: Iterable[tuple[int, int, bytes]]) -> None:
        for number, replaces, _ in held:
            self._run.send("bury_index_entry" if replaces else "remove_index_entry", number=number)
            self._run.send("remove_index_vector", number=number)
