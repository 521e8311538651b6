"""Checks every invariant of the store, on one consistent snapshot, while writers go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice

from perdure.domain.errors import Corrupt
from perdure.domain.reports import Finding, VerifyReport
from perdure.domain.scope import Address, Owner
from perdure.engine.laws import DataInvariants, IndexInvariants, Invariants
from perdure.ports.store import Progress, Snapshot, Store
from perdure.ports.tables.access import to_access
from perdure.ports.tables.conversation import digest_key, digest_record, tally_key, to_agent_state, to_digest, to_tally
from perdure.ports.tables.index import INDEX_PACKS, INDEX_VECTORS, to_head, to_index_entry
from perdure.ports.tables.jobs import to_job
from perdure.ports.tables.knowledge import OWNERS, to_operation, to_record
from perdure.ports.tables.log import TOOL_CALLS, to_call, to_message, to_session
from perdure.ports.tables.oversight import to_decision, to_usage
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.series import (
    SERIES_ENTRIES,
    SERIES_PAST,
    SERIES_WINDOWS,
    STATE_KEYS,
    to_entry,
    to_lease,
    to_past_entry,
    to_revision,
    to_series,
    to_window,
)
from perdure.ports.tables.table import AnyRow
from perdure.services.store.soundness import CHECKED, ODD, flaw

FINDINGS_MAX = 1_000
PROGRESS_EVERY = 5_000
Check = Callable[[Owner, AnyRow], Iterator[Finding]]


def verify(store: Store, progress: Progress | None = None) -> VerifyReport:
    """What is wrong, up to a bound; nothing is changed."""
    checked: dict[str, int] = {}
    with store.snapshot() as snapshot:
        # What the database says of itself comes first, but a damaged page must not keep us from saying so.
        findings = list(islice(_all_findings(store, snapshot, checked, progress), FINDINGS_MAX + 1))
    return VerifyReport(checked, tuple(findings[:FINDINGS_MAX]), truncated=len(findings) > FINDINGS_MAX)


def _all_findings(store: Store, snapshot: Snapshot, checked: dict[str, int], progress: Progress | None) -> Iterator[Finding]:
    try:
        yield from store.check()
        laws, data, index = Invariants(), DataInvariants(), IndexInvariants()
        checks = _checks(laws, data, index)
        _note_tallies(snapshot, index)
        for table in TABLES:
            checked[table] = 0
            for row in snapshot.rows(table):
                checked[table] += 1
                if progress is not None and checked[table] % PROGRESS_EVERY == 0:
                    progress(table, checked[table])
                yield from _row(checks[table], table, row)
            if progress is not None:
                progress(table, checked[table])
        yield from laws.end()
        yield from data.end()
        yield from index.end()
    except Corrupt as error:
        yield Finding("the store can be read", "the database", str(error))


def _note_tallies(snapshot: Snapshot, index: IndexInvariants) -> None:
    """What a tally does not count yet need not be indexed yet; rows that cannot be read are told of in their turn."""
    for row in snapshot.rows("tallies"):
        with suppress(*ODD):
            index.tally(Owner(str(row[0]), str(row[1])), tuple(row[2:5]), to_tally(row).up_to_seq)


def _row(check: Check, table: str, row: AnyRow) -> Iterator[Finding]:
    """What is wrong with one row. Whatever it holds, it is told, and does not end the verification."""
    law, where = "every row can be read", f"table {table}"
    key = row[: TABLES[table].key]
    wrong = flaw(table, row) if table in CHECKED else None
    if wrong is not None:
        yield Finding(law, where, f"row {key!r:.200}: {wrong}")
    try:
        yield from check(Owner(str(row[0]), str(row[1])), row)
    except ODD as error:
        if wrong is None:
            yield Finding(law, where, str(error) if isinstance(error, Corrupt) else f"row {key!r:.200}: {type(error).__name__}")


def _checks(laws: Invariants, data: DataInvariants, index: IndexInvariants) -> dict[str, Check]:
    """For every table, what its rows must obey. A table without an entry here fails the first verification."""
    names: dict[AnyRow, str] = {}
    entry_kinds = {"statement": "memory", "todo": "todo", "instruction": "instruction", "lesson": "lesson"}

    def session(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_session(row)
        names[row[:5]] = held.id
        return laws.session(owner, held)

    def tally(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_tally(row)
        return laws.tally(owner, held, tally_key(held), row[-1])

    def digest(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_digest(row)
        return laws.digest(owner, held, (digest_key(held), digest_record(held)), row[-1])

    def call(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        named = TOOL_CALLS.named(row)
        return laws.call(owner, Address(named.agent, named.channel), to_call(row))

    def state_key(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        named = STATE_KEYS.named(row)
        return data.state_key(owner, named.key, named.revision, valued=named.size_bytes is not None)

    def message(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_message((*row, names.get(row[:5], "?")))
        index.expect_message(owner, tuple(row[2:5]), held.seq, held.id)
        return laws.message(owner, held)

    def job(_owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_job(row)
        return chain(laws.job(held), index.job(held))

    def record(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_record(row)
        if held.kind in entry_kinds:
            index.expect(owner, entry_kinds[held.kind], held.key)
        return laws.record(owner, held)

    return {
        "sessions": session,
        "messages": message,
        "tool_calls": call,
        "jobs": job,
        "owners": lambda owner, row: laws.owner(owner, OWNERS.named(row).operations),
        "operations": lambda owner, row: laws.operation(owner, to_operation(row)),
        "tallies": tally,
        "state_keys": state_key,
        "state_revisions": lambda owner, row: data.state_revision(owner, to_revision(row)),
        "series": lambda owner, row: data.series(owner, to_series(row)),
        "series_entries": lambda owner, row: data.entry(owner, SERIES_ENTRIES.named(row).series, to_entry(row)),
        "series_past": lambda owner, row: data.past_entry(owner, SERIES_PAST.named(row).series, to_past_entry(row)),
        "series_windows": lambda owner, row: data.window(owner, SERIES_WINDOWS.named(row).series, to_window(row)),
        "series_leases": _readable(to_lease),
        "agent_states": lambda owner, row: laws.agent_state(owner, to_agent_state(row)),
        "digests": digest,
        "records": record,
        "record_terms": lambda owner, row: laws.term(owner, row[2:]),
        "echoes": lambda _owner, _row: iter(()),
        "decisions": _readable(to_decision),
        "usage": _readable(to_usage),
        "accesses": _readable(to_access),
        **_index_checks(index),
    }


def _index_checks(index: IndexInvariants) -> dict[str, Check]:
    def head(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_head(row)
        return index.head(owner, held.last, held.lexicon, (held.vectored, held.coming_upto))

    def entry(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        held = to_index_entry(row)
        return index.entry(owner, held.number, held.replaces, (held.kind, held.ref), held.body)

    def vector(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        named = INDEX_VECTORS.named(row)
        return index.vector(owner, named.number, named.embedder, named.body)

    def pack(owner: Owner, row: AnyRow) -> Iterator[Finding]:
        named = INDEX_PACKS.named(row)
        return index.pack(owner, named.first, named.last, named.body)

    return {"index_heads": head, "index_entries": entry, "index_vectors": vector, "index_packs": pack}


def _readable(read: Callable[[AnyRow], object]) -> Check:
    """For rows that obey no law but this: that they can be read."""

    def check(_owner: Owner, row: AnyRow) -> Iterator[Finding]:
        read(row)
        return iter(())

    return check
