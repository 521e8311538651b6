"""The job that keeps an owner's index whole: takes in what was stored before there was one, makes vectors, packs them.

Each step is a short transaction of its own and may be repeated. Embedding happens outside any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from perdure.domain.context.recall import ENTRY_KINDS, LEXICON, Hit, NewEntry
from perdure.domain.conversation.digests import DIGEST_KINDS, SPINE_ADDRESS, SPINE_SESSION
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.errors import Unavailable
from perdure.domain.jobs import Job
from perdure.domain.knowledge.records import RecordKind, RecordQuery
from perdure.domain.scope import RESERVED, MessageId, Owner
from perdure.domain.state import is_found
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass, replace
from perdure.engine.search.entries import series_entry, spans_of, state_entry, state_spans_of
from perdure.ports.clock import Clock
from perdure.ports.models import Embedder
from perdure.ports.store import Progress, Store, Tx, View, check_progress
from perdure.ports.tables.index import GONE, IndexEntry, IndexHead, Pack
from perdure.services.index.cache import dims_of
from perdure.services.index.reads import Name, read_found
from perdure.services.index.unread import SessionPlace
from perdure.services.index.writes import ENTRY_OF, ZONE, enter_digests, enter_record, entry_of
from perdure.services.models.embedders import awaited, embedded, embedder_id

EMBED_BATCH = 256
"""Entries whose vectors are made at once."""
PACK_ITEMS = 2_048
GONE_MAX = 1_000
"""So many rows may say what is gone, before they go themselves."""
PAGE = 500
SESSIONS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Indexer:
    store: Store
    clock: Clock
    embedder: Callable[[], Embedder | None]
    """The embedder in use, loaded when it is first asked for; None: meaning is not compared."""
    zone: str
    read_up_to: Callable[[Owner, SessionPlace, int], None]
    """Has the messages of a session read that nobody has read yet, up to one."""

    def handle(self, job: Job) -> None:
        """Bring the owner's index up to date."""
        if self._head(job.owner).lexicon != LEXICON:
            self.rebuild(job.owner)
        self._sweep(job.owner)
        self.make_vectors(job.owner)
        self.pack(job.owner)

    def lacks_little(self, owner: Owner) -> bool:
        """Whether what is missing of the owner's index can be made at once."""
        head, embedder = self._head(owner), self.embedder()
        done = head.last if embedder is None else _upto(head, embedder_id(embedder))
        return head.lexicon == LEXICON and head.last - done <= EMBED_BATCH

    def reindex(self, owner: Owner, progress: Progress | None = None) -> int:
        """Make everything anew that is not as it should be, while the rest answers; the number of entries.

        What has been indexed rightly keeps its entry and its vectors.
        """
        check_progress(progress)
        self.store.write(owner, lambda tx: tx.index.fix())
        self.rebuild(owner, progress)
        self._recheck_vectors(owner)
        self.make_vectors(owner, progress)
        self.pack(owner)
        return self.store.read(owner, lambda view: sum(view.index.count_entries(kind) for kind in ENTRY_KINDS))

    def _sweep(self, owner: Owner) -> None:
        """Drop rows that only say what is gone, when there are many: then every reader starts over."""

        def work(tx: Tx) -> None:
            if tx.index.count_entries(GONE) > GONE_MAX:
                tx.index.fix()

        if self.store.read(owner, lambda view: view.index.count_entries(GONE)) > GONE_MAX:
            self.store.write(owner, work)

    def owners(self) -> list[Owner]:
        """Everybody of whom something is indexed, or should be."""
        with self.store.snapshot() as snapshot:
            return [Owner(str(row[0]), str(row[1])) for row in snapshot.rows("index_heads")]

    def _head(self, owner: Owner) -> IndexHead:
        return self.store.read(owner, lambda view: view.index.head())

    # -- vectors

    def make_vectors(self, owner: Owner, progress: Progress | None = None) -> None:
        """Make what is missing of the vectors of the embedder in use. When they are all there, they answer."""
        with awaited():
            embedder = self.embedder()
            name = "" if embedder is None else embedder_id(embedder)
        if embedder is None:
            return
        done = 0
        while True:
            head, rows, found = self.store.read(owner, lambda view: self._waiting(view, name))
            if not rows:
                break
            vectors = _embedded(embedder, rows, found, dims_of(name))
            last = rows[-1].number
            self.store.write(owner, lambda tx: _keep(tx, name, vectors, head, last))  # noqa: B023 - it runs before the next turn
            done += len(rows)
            if progress is not None:
                progress("vectors", done)
        if head.embedder != name:
            self.store.write(owner, lambda tx: _answer_with(tx, name))

    def _waiting(self, view: View, name: str) -> tuple[IndexHead, list[IndexEntry], dict[Name, Hit]]:
        head = view.index.head()
        rows = view.index.entries(_upto(head, name), upto=head.last, limit=EMBED_BATCH)
        return head, rows, read_found(view, [(row.kind, row.ref) for row in rows if row.body], now=from_us(0))

    def _recheck_vectors(self, owner: Owner) -> None:
        """Have vectors made again from the first entry on whose are missing or do not fit."""
        from perdure.engine.search.entries import passages_in

        after = 0
        while True:
            head, rows, held = self.store.read(owner, lambda view: _with_vectors(view, after))  # noqa: B023 - it runs at once
            size = 4 + dims_of(head.embedder)
            wrong = [row.number for row in rows if row.body and len(held.get(row.number, b"")) != size * passages_in(row.body)]
            if wrong or not rows:
                break
            after = rows[-1].number
        if wrong:
            self.store.write(owner, lambda tx: _lower(tx, wrong[0] - 1))

    # -- packs

    def pack(self, owner: Owner) -> None:
        """Lay out what has its vectors for reading at once: every full run, and whatever stands between two packs."""
        from perdure.engine.search.segments import segment_of, to_pack, with_vectors

        with awaited():
            embedder = self.embedder()
            dims, name = (0, "") if embedder is None else (embedder.dims, embedder_id(embedder))
        while True:
            head, rows, vectors = self.store.read(owner, lambda view: _packable(view, name))
            if not rows:
                return
            segment = segment_of([(row.number, row.replaces, row.ref, row.body) for row in rows])
            body = to_pack(with_vectors(segment, dict(vectors), dims))
            made = Pack(rows[0].number, rows[-1].number, name, body)
            if not self.store.write(owner, lambda tx: _put_pack(tx, made, head, rows)):  # noqa: B023 - it runs before the next turn
                return

    # -- everything anew

    def rebuild(self, owner: Owner, progress: Progress | None = None) -> None:
        """Take in everything that is held, page by page; what an entry stands for no more is taken out."""
        done = 0
        for count in self._entered(owner):
            done += count
            if progress is not None:
                progress("entries", done)
        self._drop_orphans(owner)
        self.store.write(owner, lambda tx: tx.index.put_head(replace(tx.index.head(), lexicon=LEXICON)))

    def _entered(self, owner: Owner) -> Iterator[int]:
        now = self.clock.now()
        for session in self.store.read(owner, lambda view: view.list_sessions(None, limit=SESSIONS_MAX)):
            self.read_up_to(owner, (session.address, session.number), session.messages)
            yield from self._enter_messages(owner, session)
            self.store.write(owner, lambda tx: _enter_layers(tx, session, now))  # noqa: B023 - it runs before the next turn
        self.store.write(owner, lambda tx: enter_digests(tx, SPINE_ADDRESS, SPINE_SESSION, "spine", now=now))
        for kind in ENTRY_OF:
            before: str | None = None
            while keys := self.store.read(
                owner,
                lambda view: [one.key for one in view.records.list_(RecordQuery(kind, PAGE, None, before))],  # noqa: B023
            ):
                self.store.write(owner, lambda tx: _enter_records(tx, kind, keys, now))  # noqa: B023
                before = keys[-1]
                yield len(keys)
        yield self.store.write(owner, lambda tx: _enter_data(tx, now))

    def _enter_messages(self, owner: Owner, session: Session) -> Iterator[int]:
        after = Cursor(session.number, 0)
        while page := self.store.read(
            owner,
            lambda view: view.list_messages(MessageQuery(session.address, PAGE, session.number, after=after)),  # noqa: B023
        ):
            # What was said since is read by the job that counts it.
            page = [message for message in page if message.seq <= session.messages]
            if not page:
                return
            entries = {message.id: entry_of(message, self.zone) for message in page}

            def work(tx: Tx, page: Sequence[Message] = page, entries: dict[MessageId, NewEntry] = entries) -> None:
                # What was forgotten or deleted since we read it must not come back: the session keeps rivals off.
                tx.find_session(session.address, session.number)
                held = tx.find_messages([message.id for message in page])
                same = [entries[message.id] for message in page if held.get(message.id) == message]
                tx.index.put(same, now=self.clock.now())

            self.store.write(owner, work)
            after = Cursor(session.number, page[-1].seq)
            yield len(page)

    def _drop_orphans(self, owner: Owner) -> None:
        after = 0
        while True:
            rows, found = self.store.read(owner, lambda view: _with_sources(view, after))  # noqa: B023
            if not rows:
                return
            orphans = [row for row in rows if row.body and (row.kind, row.ref) not in found]
            for kind in {row.kind for row in orphans}:
                refs = [row.ref for row in orphans if row.kind == kind]
                self.store.write(owner, lambda tx: _remove_orphans(tx, kind, refs, self.clock))  # noqa: B023
            after = rows[-1].number


def _upto(head: IndexHead, name: str) -> int:
    """How far the vectors of an embedder go."""
    if head.embedder in ("", name):
        return head.vectored
    return head.coming_upto if head.coming == name else 0


def _with_vectors(view: View, after: int) -> tuple[IndexHead, list[IndexEntry], dict[int, bytes]]:
    head = view.index.head()
    rows = view.index.entries(after, upto=head.vectored, limit=PACK_ITEMS) if head.embedder else []
    found = view.index.vectors(head.embedder, after, upto=rows[-1].number) if rows else []
    return head, rows, dict(found)


def _lower(tx: Tx, vectored: int) -> None:
    head = tx.index.head()
    tx.index.put_head(replace(head, vectored=min(head.vectored, vectored)))


def _embedded(embedder: Embedder, rows: Sequence[IndexEntry], found: dict[Name, Hit], dims: int) -> list[tuple[int, bytes]]:
    from perdure.engine.search.segments import packed_vectors

    texts: list[str] = []
    places: list[tuple[int, int, int]] = []
    for row in rows:
        held = found.get((row.kind, row.ref))
        if held is not None:
            spans = (state_spans_of if row.kind == "state" else spans_of)(held.text)
            places.append((row.number, len(texts), len(texts) + len(spans)))
            texts += [held.text[start:end] for start, end in spans]
    if not texts:
        return []
    with awaited():
        vectors = embedded(embedder, texts, "passage")
        if vectors.shape[1] != dims:
            raise Unavailable(f"its vectors have {vectors.shape[1]} numbers now, and had {dims} a moment ago")
    return [(number, packed_vectors(vectors[start:end])) for number, start, end in places]


def _keep(tx: Tx, name: str, vectors: Sequence[tuple[int, bytes]], seen: IndexHead, last: int) -> None:
    head = tx.index.head()
    if head.incarnation != seen.incarnation or _upto(head, name) >= last:
        return  # erased meanwhile, or another worker was faster
    tx.index.put_vectors(name, vectors)
    if head.coming not in ("", name):
        tx.index.remove_vectors(head.coming)  # given up before it was complete
    if head.embedder in ("", name):
        if not head.embedder:
            tx.index.remove_packs()  # they were made without vectors
        tx.index.put_head(replace(head, embedder=name, vectored=last, coming="", coming_upto=0))
    else:
        tx.index.put_head(replace(head, coming=name, coming_upto=last))


def _answer_with(tx: Tx, name: str) -> None:
    """Let the new vectors answer, if they are complete; the old ones go."""
    head = tx.index.head()
    if head.embedder == name or (head.coming_upto if head.coming == name else 0) < head.last:
        return
    tx.index.put_head(replace(head, embedder=name, vectored=head.coming_upto, coming="", coming_upto=0))
    if head.embedder:
        tx.index.remove_vectors(head.embedder)
    tx.index.remove_packs()


def _packable(view: View, name: str) -> tuple[IndexHead, list[IndexEntry], list[tuple[int, bytes]]]:
    """The next run of entries that should be a pack."""
    head = view.index.head()
    if head.embedder != name:
        return head, [], []
    upto = head.vectored if name else head.last
    after = 0
    for first, last in [*view.index.pack_spans(), (upto + 1, upto)]:
        end, least = (first - 1, 1) if first <= upto else (upto, PACK_ITEMS)
        if end - after >= least:  # fewer numbers than that cannot hold so many entries
            rows = view.index.entries(after, upto=end, limit=PACK_ITEMS)
            if len(rows) >= least:
                return head, rows, view.index.vectors(name, rows[0].number - 1, upto=rows[-1].number)
        after = last
    return head, [], []


def _put_pack(tx: Tx, pack: Pack, seen: IndexHead, rows: Sequence[IndexEntry]) -> bool:
    """Keep the pack, if all that is in it is still there."""
    head = tx.index.head()
    if (head.incarnation, head.embedder) != (seen.incarnation, seen.embedder):
        return False
    now = tx.index.entries(pack.first - 1, upto=pack.last, limit=len(rows) + 1)
    if now != list(rows):
        return False
    tx.index.put_pack(pack)
    return True


def _enter_layers(tx: Tx, session: Session, now: datetime) -> None:
    for kind in DIGEST_KINDS:
        if kind != "spine":
            enter_digests(tx, session.address, session.number, kind, now=now)


def _enter_records(tx: Tx, kind: RecordKind, keys: Sequence[str], now: datetime) -> None:
    tx.records.lock()
    for record in tx.records.find_many(kind, keys):
        enter_record(tx, kind, record.key, record.body, now=now)


def _enter_data(tx: Tx, now: datetime) -> int:
    keys = tx.state.list_keys(now=from_us(0), prefix="", after=None, limit=SESSIONS_MAX)
    held = [tx.state.find(one.key) for one in keys if not one.key.startswith(RESERVED)]
    alive = [state_entry(one, ZONE) for one in held if one is not None and is_found(one.body)]
    series = [series_entry(one, ZONE) for one in tx.series.list_series(after=None, limit=SESSIONS_MAX)]
    tx.index.put([*alive, *series], now=now)
    return len(alive) + len(series)


def _with_sources(view: View, after: int) -> tuple[list[IndexEntry], dict[Name, Hit]]:
    head = view.index.head()
    rows = view.index.entries(after, upto=head.last, limit=PAGE)
    return rows, read_found(view, [(row.kind, row.ref) for row in rows if row.body], now=from_us(0))


def _remove_orphans(tx: Tx, kind: str, refs: Sequence[str], clock: Clock) -> None:
    """What was made again since we looked stays."""
    found = read_found(tx, [(kind, ref) for ref in refs], now=from_us(0))
    tx.index.remove(kind, [ref for ref in refs if (kind, ref) not in found], now=clock.now())
