"""Checks every invariant of the store, on one consistent snapshot, while writers go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from perdure.domain.errors import Corrupt
from perdure.domain.reports import Finding, VerifyReport
from perdure.domain.scope import Address, Owner
from perdure.engine.data_invariants import DataInvariants
from perdure.engine.index_invariants import IndexInvariants
from perdure.engine.invariants import Invariants
from perdure.ports import conversation_rows as forms
from perdure.ports import rows, tallies
from perdure.ports.accesses import to_access
from perdure.ports.index import to_head, to_index_row
from perdure.ports.oversight import to_decision, to_usage
from perdure.ports.records import to_record
from perdure.ports.store import Progress, Snapshot, Store
from perdure.services.soundness import CHECKED, ODD, flaw

FINDINGS_MAX = 1_000
PROGRESS_EVERY = 5_000
Check = Callable[[Owner, rows.AnyRow], Iterator[Finding]]


def verify(store: Store, progress: Progress | None = None) -> VerifyReport:
    """What is wrong, up to a bound; nothing is changed."""
    checked: dict[str, int] = {}
    with store.snapshot() as snapshot:
        # What the database says of itself comes first, but a damaged page must not keep us from saying so.
        findings = list(islice(_all(store, snapshot, checked, progress), FINDINGS_MAX + 1))
    return VerifyReport(checked, tuple(findings[:FINDINGS_MAX]), truncated=len(findings) > FINDINGS_MAX)


def _all(store: Store, snapshot: Snapshot, checked: dict[str, int], progress: Progress | None) -> Iterator[Finding]:
    try:
        yield from store.check()
        laws, data, index = Invariants(), DataInvariants(), IndexInvariants()
        checks = _checks(laws, data, index)
        for table in rows.TABLES:
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


def _row(check: Check, table: str, row: rows.AnyRow) -> Iterator[Finding]:
    """What is wrong with one row. Whatever it holds, it is told, and does not end the verification."""
    law, where = "every row can be read", f"table {table}"
    key = row[: rows.TABLES[table].key]
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
    names: dict[rows.AnyRow, str] = {}
    entry_kinds = {"statement": "memory", "todo": "todo", "instruction": "instruction", "lesson": "lesson"}

    def session(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = rows.to_session(row)
        names[row[:5]] = held.id
        return laws.session(owner, held)

    def tally(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = tallies.to_tally(row)
        return laws.tally(owner, held, tallies.tally_key(held), row[-1])

    def digest(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = forms.to_digest(row)
        return laws.digest(owner, held, (forms.digest_key(held), forms.digest_record(held)), row[-1])

    def message(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = rows.to_message((*row, names.get(row[:5], "?")))
        index.held(owner, "message", held.id)
        return laws.message(owner, held)

    def record(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = to_record(row)
        if held.kind in entry_kinds:
            index.held(owner, entry_kinds[held.kind], held.key)
        return laws.record(owner, held)

    def head(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = to_head(row)
        return index.head(owner, held.last, held.lexicon, (held.vectored, held.coming_upto))

    def entry(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = to_index_row(row)
        return index.entry(owner, held.number, held.replaces, (held.kind, held.ref), held.body)

    return {
        "sessions": session,
        "messages": message,
        "tool_calls": lambda owner, row: laws.call(owner, Address(row[2], row[3]), rows.to_call(row)),
        "jobs": lambda _owner, row: laws.job(rows.to_job(row)),
        "owners": lambda owner, row: laws.owner(owner, row[2]),
        "operations": lambda owner, row: laws.operation(owner, rows.to_operation(row)),
        "tallies": tally,
        "state_keys": lambda owner, row: data.state_key(owner, row[2], row[3], valued=row[6] is not None),
        "state_revisions": lambda owner, row: data.state_revision(owner, rows.to_revision(row)),
        "series": lambda owner, row: data.series(owner, rows.to_series(row)),
        "series_entries": lambda owner, row: data.entry(owner, row[2], rows.to_entry(row)),
        "series_past": lambda owner, row: data.past_entry(owner, row[2], rows.to_past_entry(row)),
        "series_windows": lambda owner, row: data.window(owner, row[2], rows.to_window(row)),
        "series_leases": _readable(rows.to_lease),
        "agent_states": lambda owner, row: laws.agent_state(owner, forms.to_agent_state(row)),
        "digests": digest,
        "records": record,
        "record_terms": lambda owner, row: laws.term(owner, row[2:]),
        "echoes": lambda _owner, _row: iter(()),
        "decisions": _readable(to_decision),
        "usage": _readable(to_usage),
        "accesses": _readable(to_access),
        "index_heads": head,
        "index_entries": entry,
        "index_vectors": lambda owner, row: index.vector(owner, row[3], row[2], row[4]),
        "index_packs": lambda owner, row: index.pack(owner, row[2], row[3], row[5]),
    }


def _readable(read: Callable[[rows.AnyRow], object]) -> Check:
    """For rows that obey no law but this: that they can be read."""

    def check(_owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        read(row)
        return iter(())

    return check
