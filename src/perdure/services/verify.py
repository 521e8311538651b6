"""Checks every invariant of the store, on one consistent snapshot, while writers go on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from perdure.domain.errors import Corrupt
from perdure.domain.reports import Finding, VerifyReport
from perdure.domain.scope import Address, Owner
from perdure.engine.invariants import Invariants
from perdure.ports import rows
from perdure.ports.store import Progress, Snapshot, Store

FINDINGS_MAX = 1_000
PROGRESS_EVERY = 5_000


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
        laws = Invariants()
        names: dict[rows.AnyRow, str] = {}
        for table in rows.TABLES:
            checked[table] = 0
            for row in snapshot.rows(table):
                checked[table] += 1
                if progress is not None and checked[table] % PROGRESS_EVERY == 0:
                    progress(table, checked[table])
                yield from _check_row(laws, table, row, names)
            if progress is not None:
                progress(table, checked[table])
        yield from laws.end()
    except Corrupt as error:
        yield Finding("the store can be read", "the database", str(error))


def _check_row(laws: Invariants, table: str, row: rows.AnyRow, names: dict[rows.AnyRow, str]) -> Iterator[Finding]:
    try:
        owner = Owner(row[0], row[1])
        match table:
            case "sessions":
                session = rows.to_session(row)
                names[row[:5]] = session.id
                yield from laws.session(owner, session)
            case "messages":
                yield from laws.message(owner, rows.to_message((*row, names.get(row[:5], "?"))))
            case "tool_calls":
                yield from laws.call(owner, Address(row[2], row[3]), rows.to_call(row))
            case "jobs":
                yield from laws.job(rows.to_job(row))
            case "owners":
                yield from laws.owner(owner, row[2])
            case "operations":
                yield from laws.operation(owner, rows.to_operation(row))
            case "tallies":
                tally = rows.to_tally(row)
                yield from laws.tally(owner, tally, rows.tally_key(tally), row[-1])
            case _:
                yield Finding("every table has its laws", table, "nobody checks it")
    except Corrupt as error:
        yield Finding("every row can be read", f"table {table}", str(error))
