"""Checks every invariant of the store, on one consistent snapshot, while writers go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from perdure.domain.errors import Corrupt
from perdure.domain.reports import Finding, VerifyReport
from perdure.domain.scope import Address, Owner
from perdure.engine.data_invariants import DataInvariants
from perdure.engine.invariants import Invariants
from perdure.ports import conversation_rows as forms
from perdure.ports import rows
from perdure.ports.records import to_record
from perdure.ports.store import Progress, Snapshot, Store

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
        laws, data = Invariants(), DataInvariants()
        checks = _checks(laws, data)
        for table in rows.TABLES:
            checked[table] = 0
            for row in snapshot.rows(table):
                checked[table] += 1
                if progress is not None and checked[table] % PROGRESS_EVERY == 0:
                    progress(table, checked[table])
                try:
                    yield from checks[table](Owner(str(row[0]), str(row[1])), row)
                except Corrupt as error:
                    yield Finding("every row can be read", f"table {table}", str(error))
            if progress is not None:
                progress(table, checked[table])
        yield from laws.end()
        yield from data.end()
    except Corrupt as error:
        yield Finding("the store can be read", "the database", str(error))


def _checks(laws: Invariants, data: DataInvariants) -> dict[str, Check]:
    """For every table, what its rows must obey. A table without an entry here fails the first verification."""
    names: dict[rows.AnyRow, str] = {}

    def session(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = rows.to_session(row)
        names[row[:5]] = held.id
        return laws.session(owner, held)

    def tally(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = rows.to_tally(row)
        return laws.tally(owner, held, rows.tally_key(held), row[-1])

    def digest(owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        held = forms.to_digest(row)
        return laws.digest(owner, held, (forms.digest_key(held), forms.digest_record(held)), row[-1])

    def lease(_owner: Owner, row: rows.AnyRow) -> Iterator[Finding]:
        rows.to_lease(row)
        return iter(())

    def echo(_owner: Owner, _row: rows.AnyRow) -> Iterator[Finding]:
        return iter(())

    return {
        "sessions": session,
        "messages": lambda owner, row: laws.message(owner, rows.to_message((*row, names.get(row[:5], "?")))),
        "tool_calls": lambda owner, row: laws.call(owner, Address(row[2], row[3]), rows.to_call(row)),
        "jobs": lambda _owner, row: laws.job(rows.to_job(row)),
        "owners": lambda owner, row: laws.owner(owner, row[2]),
        "operations": lambda owner, row: laws.operation(owner, rows.to_operation(row)),
        "tallies": tally,
        "state_keys": lambda owner, row: data.state_key(owner, row[2], row[3]),
        "state_revisions": lambda owner, row: data.state_revision(owner, rows.to_revision(row)),
        "series": lambda owner, row: data.series(owner, rows.to_series(row)),
        "series_entries": lambda owner, row: data.entry(owner, row[2], rows.to_entry(row)),
        "series_past": lambda owner, row: data.past_entry(owner, row[2], rows.to_past_entry(row)),
        "series_windows": lambda owner, row: data.window(owner, row[2], rows.to_window(row)),
        "series_leases": lease,
        "agent_states": lambda owner, row: laws.agent_state(owner, forms.to_agent_state(row)),
        "digests": digest,
        "records": lambda owner, row: laws.record(owner, to_record(row)),
        "record_terms": lambda owner, row: laws.term(owner, row[2:]),
        "echoes": echo,
    }
