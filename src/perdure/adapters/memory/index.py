"""The search index in plain dicts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from perdure.adapters.memory.tables import OwnerTables
from perdure.domain.context.recall import LEXICON, NewEntry
from perdure.ports.tables import index as forms
from perdure.ports.tables.index import (
    INDEX_ENTRIES,
    INDEX_HEADS,
    INDEX_PACKS,
    INDEX_VECTORS,
    IndexEntry,
    IndexEntryRow,
    IndexHead,
    Pack,
    PendingEntries,
)

MAX_INTEGER = 2**63 - 1


class MemoryIndex:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner
        self._pending = PendingEntries()

    def head(self) -> IndexHead:
        row = self._tables.find(INDEX_HEADS)
        return IndexHead() if row is None else forms.to_head(row)

    def entries(self, after: int, *, upto: int, limit: int) -> list[IndexEntry]:
        found = [forms.to_index_entry(row) for row in self._tables.of(INDEX_ENTRIES)]
        return [entry for entry in found if after < entry.number <= upto][:limit]

    def find_entries(self, kind: str, refs: Sequence[str]) -> dict[str, int]:
        found = self._tables.each(INDEX_ENTRIES)
        return {row.ref: row.number for row in found if row.kind == kind and row.ref in refs}

    def vectors(self, embedder: str, after: int, *, upto: int) -> list[tuple[int, bytes]]:
        found = self._tables.of(INDEX_VECTORS, embedder)
        return [(row.number, row.body) for row in found if after < row.number <= upto]

    def packs(self) -> list[Pack]:
        return [forms.to_pack(row) for row in self._tables.of(INDEX_PACKS)]

    def pack_spans(self) -> list[tuple[int, int]]:
        return [(pack.first, pack.last) for pack in self.packs()]

    def count_entries(self, kind: str) -> int:
        return sum(row.kind == kind for row in self._tables.each(INDEX_ENTRIES))

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
            self._remove_packs()
        rows = self._tables.each(INDEX_ENTRIES) if pending.entries else ()
        held = {(row.kind, row.ref): row for row in rows if (row.kind, row.ref) in pending.entries}
        for name, row in list(held.items()):
            entry = pending.entries[name]
            if entry is not None and entry.body == row.body and name not in pending.added:
                del pending.entries[name], held[name]
        made = forms.planned(pending, {name: row.number for name, row in held.items()}, self.head().last)
        if made or pending.begun:
            self._advance(len(made))
        if not made:
            return None
        for new in made:
            if new.kind == forms.GONE:
                self._drop_packs(new.replaces)
        self._drop(held.values())
        for new in made:
            self._tables.put(INDEX_ENTRIES, forms.index_entry_row(self._owner, new))
        return pending.now

    def put_head(self, head: IndexHead) -> None:
        if self.head().incarnation:
            self._tables.put(INDEX_HEADS, forms.head_row(self._owner, forms.kept_head(self.head(), head)))

    def put_vectors(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        for row in forms.vector_rows(self._owner, embedder, vectors):
            entry = self._tables.find(INDEX_ENTRIES, row.number)
            if entry is not None and entry.kind != forms.GONE:
                self._tables.put(INDEX_VECTORS, row)

    def remove_vectors(self, embedder: str) -> None:
        for row in self._tables.of(INDEX_VECTORS, embedder):
            self._tables.remove(INDEX_VECTORS, row)

    def fix(self) -> None:
        self._remove_packs()
        for entry in self._tables.of(INDEX_ENTRIES):
            if entry.kind == forms.GONE:
                self._tables.remove(INDEX_ENTRIES, entry)
            elif entry.replaces:
                self._tables.put(INDEX_ENTRIES, entry._replace(replaces=0))
        numbers = {entry.number for entry in self._tables.of(INDEX_ENTRIES)}
        for vector in self._tables.of(INDEX_VECTORS):
            if vector.number not in numbers:
                self._tables.remove(INDEX_VECTORS, vector)
        head = self.head()
        if numbers or head.incarnation:
            last = max(head.last, *numbers, 0)
            lexicon = head.lexicon if head.incarnation else LEXICON
            vectored = 0 if head.vectored > last else head.vectored
            fixed = replace(head, incarnation=os.urandom(8).hex(), last=last, lexicon=lexicon, vectored=vectored)
            self._tables.put(INDEX_HEADS, forms.head_row(self._owner, fixed))

    def put_pack(self, pack: Pack) -> None:
        self._remove_packs(pack.first, pack.last)
        self._tables.put(INDEX_PACKS, forms.pack_row(self._owner, pack))

    def remove_packs(self) -> None:
        self._pending.without_packs = True

    def _remove_packs(self, first: int = 0, last: int = MAX_INTEGER) -> None:
        """Drop the packs that hold an entry between these numbers."""
        for row in self._tables.of(INDEX_PACKS):
            if row.first <= last and row.last >= first:
                self._tables.remove(INDEX_PACKS, row)

    def _drop_packs(self, number: int) -> None:
        """Drop the packs that hold an entry, or one that it has replaced."""
        while number:
            self._remove_packs(number, number)
            entry = self._tables.find(INDEX_ENTRIES, number)
            number = 0 if entry is None else entry.replaces

    def _advance(self, count: int) -> int:
        head = self.head()
        if not head.incarnation:
            # Nothing was held before, so everything will have been indexed by these rules.
            head = IndexHead(os.urandom(8).hex(), lexicon=LEXICON)
        made = replace(head, last=head.last + count)
        self._tables.put(INDEX_HEADS, forms.head_row(self._owner, made))
        return head.last

    def _drop(self, entries: Iterable[IndexEntryRow]) -> None:
        for entry in entries:
            if entry.replaces:
                self._tables.put(INDEX_ENTRIES, entry._replace(kind=forms.GONE, ref=str(entry.number), body=b""))
            else:
                self._tables.remove(INDEX_ENTRIES, entry)
            for vector in self._tables.of(INDEX_VECTORS):
                if vector.number == entry.number:
                    self._tables.remove(INDEX_VECTORS, vector)
