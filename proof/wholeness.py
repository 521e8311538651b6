"""All or nothing: after a fault, the store must be whole. Every promise that meets faults asks here (P4 counts it all).

Twice: `verify`, perdure's own check, and a second one that reads the rows and knows nothing of perdure's code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import perdure
from perdure.ports.tables.rows import TABLES
from proof.harness import Round

Rows = dict[str, list[dict[str, Any]]]


def check_whole(round: Round, engine: perdure.Engine, *, when: str) -> bool:
    """Nothing in the store is orphaned, torn or contradictory; each finding is a violation."""
    findings = [str(finding) for finding in engine.verify().findings] + [*orphans(rows_of(engine))]
    round.count("stores verified")
    for finding in findings:
        round.wrong("not whole", f"{when}: {finding}")
    return not findings


def check_heals(round: Round, engine: perdure.Engine, *, when: str, seconds: float = 30.0) -> bool:
    """The fault is over: a new write succeeds, the jobs drain without failing, and the store is whole."""
    with round.guarded("does not heal"):
        memory = engine.memory("healing")
        stored = memory.append("user", f"after {when}")
        round.check(memory.messages(1)[-1].id == stored.id, "does not heal", f"{when}: what was just stored is not read back")
        done = engine.process(seconds)
        round.check(done.failed == 0, "does not heal", f"{when}: {done.failed} jobs failed")
        round.count("recoveries")
    return check_whole(round, engine, when=when)


def rows_of(engine: perdure.Engine) -> Rows:
    """Every row of the store at one moment, by table."""
    with engine._store.snapshot() as snapshot:
        return {
            table: [dict(zip(spec.columns, row, strict=True)) for row in snapshot.rows(table)] for table, spec in TABLES.items()
        }


def orphans(rows: Rows) -> Iterator[str]:
    """Rows without what they belong to: a message without session, job or index entry, a vector without its entry, a
    record without the operation that wrote it."""
    yield from _dangling(rows)
    yield from _uncounted(rows)
    yield from _unindexed(rows)


def _key(row: dict[str, Any], *columns: str) -> tuple[Any, ...]:
    return (row["space"], row["user_id"], *(row[column] for column in columns))


WORDS_MIN = 4
PLACE = ("agent", "channel", "session_number")
BELONGS = (
    # table, its columns, the table that must have them under these names
    ("messages", PLACE, "sessions", PLACE),
    ("tallies", PLACE, "sessions", PLACE),
    ("tool_calls", (*PLACE, "call_seq"), "messages", (*PLACE, "seq")),
    ("state_revisions", ("key",), "state_keys", ("key",)),
    ("series_entries", ("series",), "series", ("series",)),
    ("series_past", ("series", "id"), "series_entries", ("series", "id")),
    ("series_windows", ("series",), "series", ("series",)),
    ("record_terms", ("kind", "key"), "records", ("kind", "key")),
    ("records", ("operation",), "operations", ("seq",)),
    ("tallies", ("operation",), "operations", ("seq",)),
    ("digests", ("operation",), "operations", ("seq",)),
    ("index_vectors", ("number",), "index_entries", ("number",)),
    ("index_entries", (), "index_heads", ()),
    ("operations", (), "owners", ()),
)


def _dangling(rows: Rows) -> Iterator[str]:
    for table, columns, parent, names in BELONGS:
        held = {_key(row, *names) for row in rows[parent]}
        for row in rows[table]:
            if (key := _key(row, *columns)) not in held:
                yield f"{table} {key} has nothing in {parent}"
    held = {_key(row, "key", "revision") for row in rows["state_revisions"]}
    for row in rows["state_keys"]:
        if _key(row, "key", "revision") not in held:
            yield f"state_keys {_key(row, 'key')} stands at revision {row['revision']}, which is not there"


def _uncounted(rows: Rows) -> Iterator[str]:
    """Numbers run without holes, and what is counted is there."""
    seqs: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows["messages"]:
        seqs[_key(row, *PLACE)].append(row["seq"])
    for row in rows["sessions"]:
        found = sorted(seqs[_key(row, *PLACE)])
        if row["deleted_at_us"] is None and found != [*range(1, row["messages"] + 1)]:
            yield f"sessions {_key(row, *PLACE)} counts {row['messages']} messages and has {len(found)}"
    numbers: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows["operations"]:
        numbers[_key(row)].append(row["seq"])
    for row in rows["owners"]:
        found = sorted(numbers[_key(row)])
        if found and (found[-1] != row["operations"] or found != [*range(found[0], found[-1] + 1)]):
            yield f"owners {_key(row)} counts {row['operations']} operations and has {len(found)} up to {found[-1]}"
    entries: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in rows["series_entries"]:
        entries[_key(row, "series")] += 1
    for row in rows["series"]:
        if row["entries"] != entries[_key(row, "series")]:
            yield f"series {_key(row, 'series')} counts {row['entries']} entries and has {entries[_key(row, 'series')]}"


def _unindexed(rows: Rows) -> Iterator[str]:
    """What was said can be found or will be: it has its entry in the index, or waits with the job that makes it."""
    entered = {_key(row, "kind", "ref") for row in rows["index_entries"]}
    counting = {_key(row) for row in rows["jobs"] if row["kind"] == "tally" and row["state"] != "done"}
    unfinished = {_key(row) for row in rows["jobs"] if row["kind"] in ("index", "reindex") and row["state"] != "done"}
    tallied = {_key(row, *PLACE): row["up_to_seq"] for row in rows["tallies"]}
    said = {_key(row, "id"): row["content"] for row in rows["messages"]}
    gone = {_key(row, *PLACE) for row in rows["sessions"] if row["deleted_at_us"] is not None}
    for row in rows["messages"]:
        if _key(row, *PLACE) in gone:
            continue
        if tallied.get(_key(row, *PLACE), 0) < row["seq"]:
            if _key(row) not in counting:
                yield f"messages {_key(row, 'id')} has no job that counts and indexes it"
            continue
        findable = row["content"].strip() and row["role"] == "user" and _key(row) not in unfinished
        if findable and (*_key(row), "message", row["id"]) not in entered:
            yield f"messages {_key(row, 'id')} has no entry in the index"
    for row in rows["index_entries"]:
        if row["kind"] == "message" and _key(row, "ref") not in said:
            yield f"index_entries {_key(row, 'number')} is of message {row['ref']}, which is not there"
    vectors = {_key(row, "embedder", "number") for row in rows["index_vectors"]}
    packed = [(_key(row, "embedder"), row["first"], row["last"]) for row in rows["index_packs"]]
    heads = {_key(row): row for row in rows["index_heads"]}
    for row in rows["index_entries"]:
        head = heads.get(_key(row))
        words = said.get(_key(row, "ref"), "").split() if row["kind"] == "message" else []
        # What has no words that mean anything has no vector either.
        if head is None or not head["embedder"] or row["number"] > head["vectored"] or sum(map(str.isalpha, words)) < WORDS_MIN:
            continue
        whose = (*_key(row), head["embedder"])
        if (*whose, row["number"]) not in vectors and not any(
            key == whose and first <= row["number"] <= last for key, first, last in packed
        ):
            yield f"index_entries {_key(row, 'number')} is said to have a vector, and has none"
