"""Verification, backup, restore and the doctor, on every store."""

from __future__ import annotations

import gzip
import json
import re
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

import perdure
from perdure import Conflict, Corrupt, InvalidInput, NotFound, ToolCall
from perdure.domain.models import Usage
from perdure.domain.scope import Owner
from perdure.engine import laws as index_invariants
from perdure.engine import laws as invariants
from perdure.engine.search.segments import segment_of, to_pack
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.access import an_access
from perdure.testing.contract.access import put as log
from perdure.testing.contract.oversight import a_decision, count, put
from perdure.testing.contract.samples import NOW


def talk(engine: perdure.Engine, user: str = "ana") -> perdure.Memory:
    """Something of everything."""
    memory = engine.memory(user, agent="coach")
    memory.append("user", "what is the weather?", id="m1", metadata={"x": [1, "ü"]})
    memory.append("assistant", "…", tool_calls=[ToolCall("c1", "weather", {"city": "Oslo"}), ToolCall("c2", "news")])  # type: ignore[arg-type]
    memory.append("tool", "rain", tool_call_id="c1")
    memory.append("user", "thanks", session="other")
    for value in ("one", {"two": 2}, None):
        memory.state.save("k", value)
    series = memory.series("kudos_timeseries")
    series.merge([{"id": 1, "timestamp": "2025-01-01"}], window=("2025-01-01", "2025-01-02"))
    series.merge([{"id": 1, "timestamp": "2025-01-05", "n": 2}], window=("2025-01-05", "2025-01-07"))
    memory.remember("Lives in Oslo", entities=["place:Oslo"], attribute="lives_in", value="Oslo")
    memory.conversation.configure(profile="complete")
    memory.conversation.clear(memory.conversation.message("m1").session)
    memory.conversation.replace("in short: thanks", "other")
    owner = Owner("default", user)
    put(engine._store, a_decision("d1"), a_decision("d2", kind="after"), owner=owner)
    count(engine._store, Usage("relevance", "ok", 1, 100, 20, 12.5, NOW), owner=owner)
    log(engine._store, an_access("a1"), owner=owner)
    engine.process()
    return memory


def kept(engine: perdure.Engine) -> dict[str, list[Any]]:
    """All but what is made anew: the index, and the job that makes it."""
    return {
        name: [row for row in rows if name != "jobs" or row[2] != "index"]
        for name, rows in contents(engine).items()
        if not TABLES[name].rebuilt
    }


def contents(engine: perdure.Engine) -> dict[str, list[Any]]:
    with engine._store.snapshot() as snapshot:
        return {table: list(snapshot.rows(table)) for table in TABLES}


class TestBackup:
    def test_a_backup_restores_to_the_same_contents_on_either_database(
        self, backend: Any, tmp_path: Path, postgres_url: str, postgres_schema: str
    ) -> None:
        engine = backend.open()
        talk(engine)
        talk(engine, "Ünï%cödé 🦉")
        report = engine.backup(tmp_path / "b.perdure")
        assert report.rows["messages"] == 8
        targets = [
            perdure.Settings(url=f"sqlite:///{tmp_path}/copy.db"),
            perdure.Settings(url=postgres_url, postgres_schema=f"{postgres_schema}_copy"),
        ]
        try:
            for target in targets:
                assert perdure.restore(report.path, settings=target) == report.rows
                with perdure.open(settings=target) as copy:
                    assert kept(copy) == kept(engine)
                    assert copy.verify().clean
                    assert copy.memory("ana", agent="coach").append("user", "goes on").seq == 2
        finally:
            import psycopg

            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(f"DROP SCHEMA IF EXISTS {postgres_schema}_copy CASCADE")

    def test_writers_go_on_during_a_backup_and_the_copy_is_of_one_moment(self, backend: Any, tmp_path: Path) -> None:
        engine = backend.open()
        ana = engine.memory("ana")
        ana.append_many(perdure.NewMessage("user", str(number)) for number in range(2_000))
        stop, written = threading.Event(), []

        def write() -> None:
            while not stop.is_set():
                written.append(ana.append("user", "meanwhile").seq)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            reports = [engine.backup(tmp_path / f"b{number}") for number in range(5)]
        finally:
            stop.set()
            thread.join()
        assert written
        for number, report in enumerate(reports):
            target = f"sqlite:///{tmp_path}/copy{number}.db"
            perdure.restore(report.path, target)
            with perdure.open(target) as copy:
                assert copy.verify().clean
                assert copy.memory("ana").conversation.sessions()[0].messages == report.rows["messages"]

    def test_a_store_that_holds_something_is_not_overwritten_by_accident(self, backend: Any, tmp_path: Path) -> None:
        engine = backend.open()
        talk(engine)
        engine.backup(tmp_path / "b")
        engine.memory("ana", agent="coach").append("user", "since then")
        with pytest.raises(Conflict, match="not empty"):
            perdure.restore(tmp_path / "b", settings=backend.settings)
        assert engine.memory("ana", agent="coach").messages(1)[0].content == "since then"
        perdure.restore(tmp_path / "b", settings=backend.settings, replace=True)
        assert [message.content for message in engine.memory("ana", agent="coach").messages(1)] == ["thanks"]
        assert engine.verify().clean

    def test_a_file_is_not_overwritten_by_accident(self, sqlite: Any, tmp_path: Path) -> None:
        engine = sqlite.open()
        (tmp_path / "b").write_text("precious")
        with pytest.raises(Conflict, match="exists"):
            engine.backup(tmp_path / "b")
        assert (tmp_path / "b").read_text() == "precious"
        engine.backup(tmp_path / "b", replace=True)
        assert {path.name for path in tmp_path.iterdir() if "part" in path.name} == set()

    def test_a_backup_that_cannot_be_written_leaves_nothing(self, sqlite: Any, tmp_path: Path) -> None:
        with pytest.raises(perdure.Unavailable, match="cannot be written"):
            sqlite.open().backup(tmp_path / "no" / "such" / "folder" / "b")

    @pytest.mark.parametrize("harm", ["cut", "flip", "rows", "empty", "text", "newer", "missing", "future schema"])
    def test_a_damaged_backup_is_refused_and_nothing_is_touched(self, sqlite: Any, tmp_path: Path, harm: str) -> None:
        engine = sqlite.open()
        talk(engine)
        good = engine.backup(tmp_path / "b").path
        before = contents(engine)
        data = bytearray(good.read_bytes())
        lines = gzip.decompress(bytes(data)).splitlines(keepends=True)
        bad = tmp_path / "bad"
        if harm == "cut":
            bad.write_bytes(data[: len(data) // 2])
        elif harm == "flip":
            data[len(data) // 2] ^= 0xFF
            bad.write_bytes(data)
        elif harm == "rows":
            bad.write_bytes(gzip.compress(b"".join(lines[:3] + lines[4:])))
        elif harm == "empty":
            bad.write_bytes(b"")
        elif harm == "text":
            bad.write_text("hello")
        elif harm in ("newer", "future schema"):
            header = json.loads(lines[0])
            header["version" if harm == "newer" else "schema"] = 99
            import hashlib

            body = [json.dumps(header).encode() + b"\n", *lines[1:-1]]
            footer = {**json.loads(lines[-1]), "sha256": hashlib.sha256(b"".join(body)).hexdigest()}
            bad.write_bytes(gzip.compress(b"".join(body) + json.dumps(footer).encode() + b"\n"))
        with pytest.raises((Corrupt, InvalidInput, NotFound, Conflict)) as caught:
            perdure.restore(bad, settings=sqlite.settings, replace=True)
        assert str(bad) in str(caught.value) or harm == "future schema"
        assert contents(engine) == before


def test_a_restore_from_a_file_that_is_not_there_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        perdure.restore(tmp_path / "typo", f"sqlite:///{tmp_path}/new.db")
    assert not (tmp_path / "new.db").exists()


def test_what_people_said_is_readable_by_its_owner_only(sqlite: Any, tmp_path: Path) -> None:
    engine = sqlite.open()
    engine.memory("ana").append("user", "x")
    backup = engine.backup(tmp_path / "b").path
    for path in (backup, *(file.path for file in engine.files())):
        assert path.stat().st_mode & 0o077 == 0, path


def test_equal_contents_give_equal_backups(sqlite: Any, tmp_path: Path) -> None:
    engine = sqlite.open()
    talk(engine)
    assert engine.backup(tmp_path / "a").path.read_bytes() == engine.backup(tmp_path / "b").path.read_bytes()


def test_a_purge_that_a_reader_blocks_says_so(sqlite: Any) -> None:
    engine = sqlite.open(deadline_s=0.2)
    talk(engine)
    with engine._store.snapshot() as snapshot:
        next(snapshot.rows("messages"))
        talk(engine, "bob")
        assert "a reader keeps the old pages in use" in engine.purge().bytes_remain
    assert engine.purge().bytes_remain == ""


def test_the_default_schema_of_postgres_verifies(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute('DROP SCHEMA IF EXISTS perdure CASCADE; DROP SCHEMA IF EXISTS "Quoted" CASCADE')
        for schema in ("perdure", "Quoted"):
            with perdure.open(settings=perdure.Settings(url=postgres_url, postgres_schema=schema)) as engine:
                talk(engine)
                assert engine.verify().findings == ()
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')


def a_pack(first: int, last: int, *numbers: int) -> str:
    """A pack that says it holds one run of entries, and holds others."""
    body = to_pack(segment_of([(number, 0, "x", b"") for number in numbers])).hex()
    return f"INSERT INTO index_packs SELECT space, user_id, {first}, {last}, embedder, x'{body}' FROM index_heads"


BREAKAGES = {
    "messages of a session are numbered from 1 without holes": "DELETE FROM messages WHERE seq = 1 AND session_number = 1",
    "a session counts its messages": "UPDATE sessions SET messages = messages + 1",
    "a session counts its tokens": "UPDATE sessions SET tokens = tokens + 1",
    "sessions of an address are numbered from 1 without holes": "UPDATE sessions SET session_number = 7 WHERE session_number = 2",
    "every message belongs to a session": "UPDATE messages SET session_number = 9 WHERE session_number = 2",
    "every tool call is paired": "DELETE FROM tool_calls WHERE call_id = 'c2'",
    "every tool result answers a call": "UPDATE tool_calls SET call_id = 'c9' WHERE call_id = 'c1'",
    "every paired call stands in the message that makes it": "UPDATE tool_calls SET call_seq = 1 WHERE call_id = 'c2'",
    "every paired result stands in the message that answers": "UPDATE tool_calls SET result_seq = 3 WHERE call_id = 'c2'",
    "a session ends at its last activity": "UPDATE sessions SET ended_at_us = 5 WHERE session_number = 1",
    "a session's last activity is not before its opening": "UPDATE sessions SET last_at_us = 5 WHERE session_number = 2",
    "a job's counters agree": "UPDATE jobs SET attempts = 99 WHERE kind = 'tally'",
    "a dead job says why": "UPDATE jobs SET state = 'dead', due_at_us = NULL WHERE kind = 'tally'",
    "operations of an owner are numbered from 1 without holes": "UPDATE operations SET seq = 9 WHERE seq = 2",
    "an owner counts its operations": "UPDATE owners SET operations = 9",
    "an operation starts from what the one before it left": "UPDATE operations SET before = '{}' WHERE seq = 1",
    "a derived row is what its last operation left": "UPDATE tallies SET up_to_seq = 0, body = replace(body, '1', '2')",
    "a tally counts messages that exist": "UPDATE tallies SET up_to_seq = 99",
    "a tally that is up to date equals a fresh count": "UPDATE tallies SET body = replace(body, 'user', 'usher')",
    "what an operation left is there": "DELETE FROM tallies",
    "revisions of a key follow one another": "DELETE FROM state_revisions WHERE revision = 2",
    "a stored value is JSON": "UPDATE state_revisions SET body = 'nope' WHERE revision = 2",
    "a key stands at its latest revision": "UPDATE state_keys SET revision = 9",
    "a series' books balance": "UPDATE series SET fetched = fetched + 1",
    "a series counts its entries": "UPDATE series SET entries = 9",
    "an entry is last seen no earlier than first": "UPDATE series_entries SET last_seen_us = 0",
    "past versions of an entry are numbered from 1": "UPDATE series_past SET version = 5",
    "covered windows do not overlap": "UPDATE series_windows SET end_us = end_us + 864000000000",
    "no window covers what was the future": "UPDATE series_windows SET fetched_us = 0",
    "a session counts its turns": "UPDATE sessions SET turns = turns + 1",
    "what is out of the working set is told by a fold": "UPDATE sessions SET boundary_seq = 1 WHERE session_number = 1",
    "boundary and spine lie within the session": "UPDATE sessions SET boundary_seq = 99 WHERE session_number = 2",
    "a deleted session is empty and has ended": "UPDATE sessions SET deleted_at_us = 5 WHERE session_number = 1",
    "an address counts its turns": "UPDATE agent_states SET turns = 1",
    "a digest continues an earlier version": "UPDATE digests SET body = json_set(body, '$.based_on', 1)",
    "a digest stands for messages that exist": "UPDATE digests SET body = json_set(body, '$.sources[0][4]', 99)",
    "a record is found by what it says": "DELETE FROM record_terms WHERE field = 'slot'",
    "a single-valued attribute has one current value": (
        "INSERT INTO records SELECT space, user_id, kind, 'z', json_set(body, '$.id', 'z'), operation FROM records "
        "WHERE kind = 'statement'"
    ),
    "vectors are made of entries that exist": "UPDATE index_heads SET vectored = 99",
    "entries are numbered up to what the head says": "UPDATE index_heads SET last = 3, vectored = 3",
    "a pack holds the entries that it says": a_pack(1, 3, 1, 2),
    "what a pack holds is there, or something says that it is gone": a_pack(900, 901, 900, 901),
    "everything held is indexed, and nothing else": "DELETE FROM index_entries WHERE ref = 'm1'",
    "messages that are not counted wait with a job": "UPDATE tallies SET up_to_seq = 1 WHERE session_number = 1",
    "every row can be read": "UPDATE messages SET tool_calls = '[{]' WHERE tool_calls IS NOT NULL",
    "the schema is the expected one": "DROP INDEX jobs_open",
}

OTHER_WAYS = [
    ("a record is found by what it says", "UPDATE record_terms SET value = 'elsewhere' WHERE field = 'type'"),
    ("boundary and spine lie within the session", "UPDATE sessions SET spine_seq = 99"),
    (
        "a deleted session is empty and has ended",
        "UPDATE sessions SET deleted_at_us = 5, messages = 0 WHERE session_number = 2",
    ),
    ("what is out of the working set is told by a fold", "UPDATE sessions SET boundary_seq = 0 WHERE session_number = 1"),
    ("what is out of the working set is told by a fold", "UPDATE digests SET undone = 1 WHERE session_number = 1"),
    ("what is out of the working set is told by a fold", "DELETE FROM digests WHERE session_number = 2"),
    ("an address counts its turns", "DELETE FROM agent_states"),
    ("a digest stands for messages that exist", "UPDATE digests SET body = json_set(body, '$.sources[0][3]', 0)"),
    ("a digest stands for messages that exist", "UPDATE digests SET body = json_set(body, '$.sources[0][2]', 7)"),
    ("a digest stands for messages that exist", "UPDATE digests SET body = json_set(body, '$.sources[0][0]', 'chef')"),
    ("a derived row is what its last operation left", "UPDATE digests SET body = json_set(body, '$.text', 'forged')"),
    ("a derived row is what its last operation left", "UPDATE digests SET operation = 1"),
    ("what an operation left is there", "DELETE FROM digests"),
    ("every row can be read", "UPDATE digests SET body = 'nope'"),
    ("every row can be read", "UPDATE digests SET body = '{}'"),
    ("every row can be read", "UPDATE agent_states SET rolling_error = 'nope'"),
    ("vectors are made of entries that exist", "UPDATE index_heads SET coming = 'x/1/2', coming_upto = 99"),
    (
        "vectors are made of entries that exist",
        "INSERT INTO index_vectors SELECT space, user_id, embedder, 99, x'00' FROM index_heads",
    ),
    ("everything held is indexed, and nothing else", "UPDATE index_entries SET ref = 'm9' WHERE ref = 'm1'"),
    ("everything held is indexed, and nothing else", "UPDATE index_entries SET kind = 'todo' WHERE kind = 'memory'"),
    (
        "everything held is indexed, and nothing else",
        "INSERT INTO index_entries SELECT space, user_id, 9000, kind, 'more', 0, body FROM index_entries WHERE ref = 'm1'",
    ),
    ("everything held is indexed, and nothing else", "DELETE FROM index_entries"),
    (
        "everything held is indexed, and nothing else",
        "DELETE FROM index_entries; DELETE FROM index_vectors; DELETE FROM index_heads",
    ),
    ("entries are numbered up to what the head says", "DELETE FROM index_heads"),
    ("every row can be read", "UPDATE index_entries SET body = substr(body, 1, 60) WHERE kind = 'message'"),
    ("every row can be read", "UPDATE index_entries SET body = CAST(body || x'00' AS BLOB) WHERE kind = 'message'"),
    ("every row can be read", "UPDATE index_entries SET body = CAST(x'63' || substr(body, 2) AS BLOB) WHERE kind = 'message'"),
    (
        "every row can be read",
        "UPDATE index_entries SET body = CAST(substr(body, 1, 76) || x'ff000000' || substr(body, 81) AS BLOB) WHERE ref = 'm1'",
    ),
    ("every row can be read", "UPDATE index_entries SET replaces = 99 WHERE ref = 'm1'"),
    ("every row can be read", "UPDATE index_vectors SET body = x'0011'"),
    ("every row can be read", "UPDATE decisions SET body = 'weather'"),
    ("every row can be read", "UPDATE decisions SET body = '[\"weather\"]'"),
    ("every row can be read", "UPDATE decisions SET agent = ''"),
    ("every row can be read", "UPDATE decisions SET channel = printf('%.*c', 999, 'x')"),
    ("every row can be read", "UPDATE decisions SET at_us = 9223372036854775807"),
    ("every row can be read", "UPDATE usage SET last_at_us = -9223372036854775807"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE decisions SET kind = 'during'"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE decisions SET number = 0"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE usage SET calls = -1"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE usage SET took_us = -1"),
    ("every row can be read", "UPDATE accesses SET touched = 'recall'"),
    ("every row can be read", 'UPDATE accesses SET touched = \'[["message", 1, ["m1", "m2"]]]\''),
    ("every row can be read", "UPDATE accesses SET touched = '[[\"message\", -1, []]]'"),
    ("every row can be read", "UPDATE accesses SET operations = '[\"1\"]'"),
    ("every row can be read", "UPDATE accesses SET error = 'NotFound'"),
    ("every row can be read", "UPDATE accesses SET call = ''"),
    ("every row can be read", "UPDATE accesses SET actor = ''"),
    ("every row can be read", "UPDATE accesses SET at_us = 9223372036854775807"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE accesses SET face = 'telephone'"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE accesses SET action = 'look'"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE accesses SET number = 0"),
    ("every row can be read", "PRAGMA ignore_check_constraints = ON; UPDATE accesses SET outcome = 'perhaps'"),
    ("every row can be read", "INSERT INTO index_packs SELECT space, user_id, 1, 2, embedder, x'00' FROM index_heads"),
    ("every row can be read", a_pack(1, 2, 1, 2).replace("6e756d626572", "6e756d626573")),
]


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed SQLite store with something of everything, for tests that only damage it."""
    path = tmp_path_factory.mktemp("talked") / "perdure.db"
    with perdure.open(f"sqlite:///{path}", background=False) as engine:
        talk(engine)
    return path.read_bytes()


class TestVerify:
    def test_a_sound_store_is_clean_and_everything_was_looked_at(self, backend: Any) -> None:
        engine = backend.open()
        talk(engine)
        seen: list[tuple[str, int]] = []
        report = engine.verify(lambda table, rows: seen.append((table, rows)))
        assert report.clean
        assert report.checked["messages"] == 4
        assert {table for table, _ in seen} == set(TABLES)

    @pytest.mark.parametrize(("law", "harm"), [*BREAKAGES.items(), *OTHER_WAYS])
    def test_each_broken_law_is_found_and_named(self, sqlite: Any, tmp_path: Path, talked: bytes, law: str, harm: str) -> None:
        path = tmp_path / "perdure.db"
        path.write_bytes(talked)
        vandal = apsw.Connection(str(path))
        vandal.execute("PRAGMA foreign_keys = OFF")
        vandal.execute(harm)
        vandal.close()
        report = sqlite.open().verify()
        assert law in {finding.law for finding in report.findings}
        assert not any(word in f"{finding}" for word in ("weather", "thanks") for finding in report.findings)

    @pytest.mark.parametrize(("module", "most"), [(invariants, 20), (index_invariants, 4)])
    def test_every_law_of_conversations_and_of_the_index_has_a_test_that_breaks_it(self, module: Any, most: int) -> None:
        source = Path(module.__file__).read_text(encoding="utf-8")
        laws = set(re.findall(r'Finding\(\s*"([^"]+)"', source))
        refused = {"a job has a due time exactly while it is open"}  # by the database, before we would see it
        assert laws - refused - BREAKAGES.keys() == set()
        assert len(laws) > most

    def test_a_damaged_page_is_found(self, sqlite: Any) -> None:
        engine = sqlite.open()
        engine.memory("ana").append_many(perdure.NewMessage("user", "x" * 200) for _ in range(500))
        engine.purge()
        path = engine.files()[0].path
        engine.close()
        data = bytearray(path.read_bytes())
        for page in range(10, len(data) // 4096 - 4, 7):
            data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
        path.write_bytes(data)
        report = sqlite.open().verify()
        assert {finding.law for finding in report.findings} & {"the file's pages are sound", "the store can be read"}

    def test_a_reference_without_its_target_is_told_with_both_tables(self, sqlite: Any) -> None:
        engine = sqlite.open()
        talk(engine)
        vandal = apsw.Connection(str(engine.files()[0].path))
        vandal.execute("PRAGMA foreign_keys = OFF")
        vandal.execute("DELETE FROM sessions")
        vandal.close()
        told = [one for one in engine.verify().findings if one.law == "every reference has its target"]
        assert {one.seen for one in told} == {"nothing in sessions"}
        assert any(re.fullmatch(r"messages row \d+", one.where) for one in told), told

    def test_reading_a_damaged_row_is_corrupt_and_never_skipped(self, sqlite: Any) -> None:
        engine = sqlite.open()
        talk(engine)
        path = str(engine.files()[0].path)
        vandal = apsw.Connection(path)
        vandal.execute("UPDATE messages SET metadata = 'nonsense' WHERE id = 'm1'")
        vandal.close()
        with pytest.raises(Corrupt, match="perdure admin verify"):
            engine.memory("ana", agent="coach").messages()


class TestDoctor:
    def test_it_proves_a_round_trip_and_leaves_no_trace(self, backend: Any) -> None:
        engine = backend.open()
        talk(engine)
        before = contents(engine)
        report = engine.doctor()
        assert report.healthy
        assert report.round_trip_ms >= 0
        assert "perdure" in report.versions
        assert report.store.bytes > 0
        assert contents(engine) == before

    def test_a_store_that_forgets_is_called_degraded(self) -> None:
        report = perdure.open("memory:").doctor()
        assert not report.healthy
        assert "memory" in report.degraded[0]

    def test_less_durable_is_called_degraded(self, sqlite: Any) -> None:
        report = sqlite.open(durability="normal").doctor()
        assert any("NORMAL" in line for line in report.degraded)

    def test_late_work_is_called_degraded(self, backend: Any) -> None:
        from perdure.testing import StoppedClock

        clock = StoppedClock()
        engine = backend.open(clock=clock)
        engine.memory("ana").append("user", "x")
        clock.move(hours=1)
        assert any("perdure worker" in line for line in engine.doctor().degraded)


def test_purge_gives_space_back_and_takes_deleted_text_off_the_disk(sqlite: Any) -> None:
    engine = sqlite.open()
    engine.memory("ana").append_many(perdure.NewMessage("user", f"secret-{number} " * 50) for number in range(500))
    engine.memory("bob").append("user", "stays")
    engine._store.erase(Owner("default", "ana"))
    report = engine.purge()
    assert report.bytes_after < report.bytes_before
    for file in engine.files():
        assert b"secret-" not in file.path.read_bytes()
    assert engine.memory("bob").messages()[0].content == "stays"


def test_files_are_those_that_hold_the_data(backend: Any) -> None:
    engine = backend.open()
    talk(engine)
    names = {file.path.name for file in engine.files()}
    assert names == ({"perdure.db", "perdure.db-wal", "perdure.db-shm"} if backend.name == "sqlite" else set())
