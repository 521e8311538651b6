"""The search index in plain dicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from perdure.adapters.memory.held import OwnerRows
from perdure.domain.recall import LEXICON, NewEntry
from perdure.domain.scope import Owner
from perdure.ports import index as forms
from perdure.ports.index import IndexHead, IndexRow, Pack, Pending


class MemoryIndex:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner
        self._prefix = (owner.space, owner.user)
        self._pending = Pending()

    def head(self) -> IndexHead:
        row = self._held.tables["index_heads"].get(self._prefix)
        return IndexHead() if row is None else forms.to_head(row)

    def entries(self, after: int, *, upto: int, limit: int) -> list[IndexRow]:
        found = [forms.to_index_row(row) for row in self._held.of("index_entries")]
        return [row for row in found if after < row.number <= upto][:limit]

    def find_entries(self, kind: str, refs: Sequence[str]) -> dict[str, int]:
        found = map(forms.to_index_row, self._held.of("index_entries"))
        return {row.ref: row.number for row in found if row.kind == kind and row.ref in refs}

    def vectors(self, embedder: str, after: int, *, upto: int) -> list[tuple[int, bytes]]:
        return [(row[3], row[4]) for row in self._held.of("index_vectors", embedder) if after < row[3] <= upto]

    def packs(self) -> list[Pack]:
        return [forms.to_pack(row) for row in self._held.of("index_packs")]

    def pack_spans(self) -> list[tuple[int, int]]:
        return [(pack.first, pack.last) for pack in self.packs()]

    def count_entries(self, kind: str) -> int:
        return sum(row[3] == kind for row in self._held.of("index_entries"))

    def add(self, entries: Sequence[NewEntry], *, now: datetime) -> None:
        self._pending.add(entries, now)

    def put(self, entries: Sequence[NewEntry], *, now: datetime) -> None:
        self._pending.put(entries, now)

    def remove(self, kind: str, refs: Sequence[str], *, now: datetime) -> None:
        self._pending.remove(kind, refs, now)

    def flush(self) -> datetime | None:
        """Carry out what is pending; the time of it, or None if that changed nothing."""
        pending, self._pending = self._pending, Pending()
        if pending.without_packs:
            self._remove_packs()
        rows = self._held.tables["index_entries"].values() if pending.entries else ()
        held = {(row[3], row[4]): row[2] for row in rows if (row[3], row[4]) in pending.entries}
        for name, number in list(held.items()):
            entry = pending.entries[name]
            body = self._held.tables["index_entries"][(*self._prefix, number)][6]
            if entry is not None and entry.body == body and name not in pending.added:
                del pending.entries[name], held[name]
        made = forms.planned(pending, held, self.head().last)
        if not made:
            return None
        self._advance(len(made))
        for row in made:
            if row.kind == forms.GONE:
                self._drop_packs(row.replaces)
        self._drop(list(held.values()))
        for row in made:
            self._held.put("index_entries", forms.index_row(self._owner, row))
        return pending.now

    def put_head(self, head: IndexHead) -> None:
        if self.head().incarnation:
            self._held.put("index_heads", forms.head_row(self._owner, forms.kept_head(self.head(), head)))

    def put_vectors(self, embedder: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        for number, body in vectors:
            row = self._held.tables["index_entries"].get((*self._prefix, number))
            if row is not None and row[3] != forms.GONE:
                self._held.put("index_vectors", (*self._prefix, embedder, number, body))

    def remove_vectors(self, embedder: str) -> None:
        for row in self._held.of("index_vectors", embedder):
            self._held.remove("index_vectors", row[:4])

    def mend(self) -> None:
        self._remove_packs()
        for row in self._held.of("index_entries"):
            if row[3] == forms.GONE:
                self._held.remove("index_entries", row[:3])
            elif row[5]:
                self._held.put("index_entries", (*row[:5], 0, row[6]))
        numbers = {row[2] for row in self._held.of("index_entries")}
        for row in self._held.of("index_vectors"):
            if row[3] not in numbers:
                self._held.remove("index_vectors", row[:4])
        head = self.head()
        if numbers or head.incarnation:
            last = max(head.last, *numbers, 0)
            lexicon = head.lexicon if head.incarnation else LEXICON
            vectored = 0 if head.vectored > last else head.vectored
            mended = replace(head, incarnation=os.urandom(8).hex(), last=last, lexicon=lexicon, vectored=vectored)
            self._held.put("index_heads", forms.head_row(self._owner, mended))

    def put_pack(self, pack: Pack) -> None:
        for held in self.packs():
            if held.first <= pack.last and held.last >= pack.first:
                self._held.remove("index_packs", (*self._prefix, held.first))
        self._held.put("index_packs", forms.pack_row(self._owner, pack))

    def remove_packs(self) -> None:
        self._pending.without_packs = True

    def _remove_packs(self) -> None:
        for pack in self.packs():
            self._held.remove("index_packs", (*self._prefix, pack.first))

    def _drop_packs(self, number: int) -> None:
        """Drop the packs that hold an entry, or one that it has replaced."""
        while number:
            for pack in self.packs():
                if pack.first <= number <= pack.last:
                    self._held.remove("index_packs", (*self._prefix, pack.first))
            row = self._held.tables["index_entries"].get((*self._prefix, number))
            number = 0 if row is None else row[5]

    def _advance(self, count: int) -> int:
        head = self.head()
        if not head.incarnation:
            # Nothing was held before, so everything will have been indexed by these rules.
            head = IndexHead(os.urandom(8).hex(), lexicon=LEXICON)
        made = replace(head, last=head.last + count)
        self._held.put("index_heads", forms.head_row(self._owner, made))
        return head.last

    def _drop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            row = self._held.tables["index_entries"][(*self._prefix, number)]
            if row[5]:
                self._held.put("index_entries", (*row[:3], forms.GONE, str(number), row[5], b""))
            else:
                self._held.remove("index_entries", (*self._prefix, number))
            for row in self._held.of("index_vectors"):
                if row[3] == number:
                    self._held.remove("index_vectors", row[:4])
