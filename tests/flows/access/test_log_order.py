"""What gives data away, or destroys it, is in the access log before it begins: if it cannot be, nothing is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import apsw
import pytest

import old_stores
import perdure
from perdure import Conflict, NotFound, Unavailable
from perdure.adapters.memory.access import MemoryAccesses
from perdure.domain.access import COMMAND_LINE, Access
from perdure.domain.scope import shared_owner
from perdure.testing import StoppedClock
from perdure.testing.contract.access import an_access, put

SPACE = shared_owner("default")


def settings(url: str = "memory:", **more: Any) -> perdure.Settings:
    return perdure.Settings(url=url, **{"access_log": "all", **more})


def log_of(engine: perdure.Engine, user: str | None = "ana") -> list[Access]:
    """Without leaving an entry; of the space, if no user is named."""
    owner = SPACE if user is None else engine.memory(user).scope.owner
    return list(engine._store.read(owner, lambda view: view.accesses.list_accesses(limit=10_000)))


def ended(accesses: list[Access]) -> list[tuple[str, str]]:
    return [(one.call, one.outcome) for one in accesses]


def filled(engine: perdure.Engine) -> perdure.Memory:
    ana = engine.memory("ana")
    ana.append("user", "My sister Maria lives in Oslo", session="s1")
    ana.remember("Maria is my sister", "PEOPLE", entities=["person:Maria"])
    ana.state.save("k", 1)
    ana.series("runs").merge([{"id": 1, "timestamp": "2026-01-01T00:00:00Z"}])
    return ana


# -- a log that cannot be written


def rows(path: Path) -> dict[str, list[Any]]:
    connection = apsw.Connection(str(path))
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {name: list(connection.execute(f"SELECT * FROM {name}")) for name in names}
    connection.close()
    return found


def never(*_: object) -> Any:
    raise AssertionError("it was called")


class Open:
    write = staticmethod(never)


Calls = dict[str, Callable[[perdure.Engine, Path], object]]
CALLS: Calls = {
    "export to a file": lambda e, to: e.memory("ana").export(to / "ana.jsonl"),
    "export to something open": lambda e, to: e.memory("ana").export(Open()),  # type: ignore[arg-type]
    "export to a vault": lambda e, to: e.memory("ana").export(to / "vault", "vault"),
    "export of all": lambda e, to: e.export(to / "all.jsonl"),
    "backup": lambda e, to: e.backup(to / "all.perdure"),
    "run": lambda e, to: e.memory("ana").run("Where does Maria live?", never),
    "fetch": lambda e, to: e.memory("ana").series("runs").fetch("2026-01-02", "2026-01-04", never),
    "forgetting a user": lambda e, to: e.memory("ana").forget(user=True),
    "forgetting an entity": lambda e, to: e.memory("ana").forget(entity="person:Maria"),
    "removing a series": lambda e, to: e.memory("ana").series("runs").remove(),
    "deleting a session": lambda e, to: e.memory("ana").conversation.delete("s1"),
    "import": lambda e, to: e.memory("ana").import_(BytesIO(b'{"memory": "x"}'), "mem0"),
    "purge": lambda e, to: e.purge(),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_given_and_nothing_destroyed_without_an_entry(tmp_path: Path, name: str) -> None:
    path, to = tmp_path / "p.db", tmp_path / "out"
    to.mkdir()
    with perdure.open(settings=settings(f"sqlite:///{path}")) as engine:
        filled(engine)
        engine.process()
        with apsw.Connection(str(path)) as connection:
            connection.execute("CREATE TRIGGER boom BEFORE INSERT ON accesses BEGIN SELECT raise(fail, 'no'); END")
        before = rows(path)
        with pytest.raises(Unavailable, match="nothing is done"):
            CALLS[name](engine, to)
        assert rows(path) == before
    assert list(to.iterdir()) == []


def test_the_log_says_that_it_is_begun_while_it_goes_on_and_how_it_ended_afterwards(backend: Any, tmp_path: Path) -> None:
    with backend.open(access_log="all") as engine:
        ana = filled(engine)
        seen: set[tuple[str, str]] = set()
        ana.run("Where does Maria live?", lambda text: seen.add(ended(log_of(engine))[0]) or text)  # type: ignore[func-returns-value]
        ana.export(tmp_path / "a.jsonl")
        engine.backup(tmp_path / "b", progress=lambda *_: seen.add(ended(log_of(engine, None))[0]))
        assert seen == {("run", "begun"), ("backup", "begun")}
        assert (ended(log_of(engine))[0], ended(log_of(engine, None))[0]) == (("export", "done"), ("backup", "done"))
        assert {one.kind for one in log_of(engine, None)[0].touched} >= {"messages", "accesses"}
        with pytest.raises(Conflict):
            engine.backup(tmp_path / "b")
        last = log_of(engine, None)[0]
        assert (last.outcome, last.error) == ("refused", "Conflict")
        assert [one.call for one in log_of(engine, None)] == ["backup", "backup"], "one entry for each call"
        assert engine.verify().clean


def test_what_ended_without_a_note_stays_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with perdure.open(settings=settings(), clock=StoppedClock()) as engine:
        ana, stored = filled(engine), MemoryAccesses.put_access

        def only_beginnings(self: MemoryAccesses, access: Access, *, keep: int) -> bool:
            if access.outcome != "begun":
                raise Unavailable("the disk is full; try again")
            return stored(self, access, keep=keep)

        monkeypatch.setattr(MemoryAccesses, "put_access", only_beginnings)
        with pytest.raises(Unavailable):
            ana.export(tmp_path / "a.jsonl")
        with pytest.raises(Unavailable):
            ana.forget(user=True)
        monkeypatch.undo()
        assert ended(log_of(engine, None)) == [("forget", "begun")]
        assert log_of(engine) == [], "they are forgotten"
        assert (tmp_path / "a.jsonl").exists(), "which the log had told of"
        assert engine.verify().clean


def test_only_changes_are_begun_if_that_is_all_that_was_asked_for(tmp_path: Path) -> None:
    with perdure.open(settings=settings(access_log="changes"), clock=StoppedClock()) as engine:
        filled(engine).export(tmp_path / "a.jsonl")
        engine.backup(tmp_path / "b")
        assert "export" not in {one.call for one in log_of(engine)}
        assert log_of(engine, None) == []


# -- only what was found is named


SECRET = "sk-live-51H8"


def test_what_was_asked_for_and_is_not_there_is_neither_named_nor_counted(backend: Any) -> None:
    with backend.open(access_log="all") as engine:
        ana = filled(engine)
        ana.state.save("null", None)
        before = len(log_of(engine))
        assert ana.state.load(SECRET) is None
        assert ana.state.load(SECRET, default=[SECRET], revision=3) == [SECRET]
        assert not ana.state.find(SECRET).found
        assert not ana.state.delete(SECRET)
        assert ana.state.history(SECRET) == []
        series = ana.series(SECRET)
        assert series.count() == 0
        assert list(series.entries()) == []
        assert series.remove() == 0
        with pytest.raises(NotFound):
            series.about()
        with pytest.raises(TypeError):
            ana.state.load()  # type: ignore[call-arg]
        assert [one.touched for one in log_of(engine)[:-before]] == [()] * (len(log_of(engine)) - before)
        with engine._store.snapshot() as snapshot:
            assert SECRET not in repr(list(snapshot.rows("accesses")))
        assert ana.state.load("null", 7) is None
        assert ana.series("runs").count() == ana.series("runs").remove() == 1
        named = [(one.call, [(thing.kind, thing.names) for thing in one.touched]) for one in log_of(engine)[:3]]
        assert named == [
            ("series.remove", [("series", ("runs",))]),
            ("series.count", [("series", ("runs",))]),
            ("state.load", [("state", ("null",))]),
        ]


def test_a_context_document_that_is_not_there_is_not_named() -> None:
    from perdure.documents import ContextManager

    with perdure.open(settings=settings(), clock=StoppedClock()) as engine:
        contexts = ContextManager(storage="store", engine=engine, user="ana")
        context = contexts.load(f"ana:coach:{SECRET}")
        contexts.delete(f"ana:coach:{SECRET}")
        assert SECRET not in repr(log_of(engine))
        contexts.save(context)
        contexts.load(context.session_id)
        contexts.delete(context.session_id)
        told = {one.call: [(thing.count, thing.names) for thing in one.touched] for one in log_of(engine)[:3]}
        assert told == {"documents.save": [(1, (SECRET,))], "documents.load": [(1, (SECRET,))], "documents.delete": [(1, ())]}


def test_forgetting_messages_tells_how_many(backend: Any) -> None:
    with backend.open(access_log="all") as engine:
        ana = engine.memory("ana")
        first, last = (ana.append("user", f"I like tea {number}").id for number in range(2))
        report = ana.forget(messages=(first, last))
        assert report.redacted["messages"] == 2
        assert ("message", 2) in [(one.kind, one.count) for one in log_of(engine)[0].touched]


# -- restoring


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    with perdure.open(settings=settings(f"sqlite:///{tmp_path}/old.db")) as engine:
        filled(engine)
        engine.users()
        engine.backup(tmp_path / "b")
    return tmp_path / "b"


def test_a_restored_store_tells_that_it_was_restored(backend: Any, backup: Path) -> None:
    with backend.open(access_log="all") as engine:
        engine.memory("bob").state.save("mine", 1)
        engine.api_keys.list()
    logging = replace(backend.settings, access_log="all")
    with pytest.raises(Conflict):
        perdure.restore(backup, settings=logging)
    with backend.open() as engine:
        assert [(one.call, one.outcome, one.error) for one in log_of(engine, None)] == [
            ("restore", "refused", "Conflict"),
            ("api_keys.list", "done", ""),
        ]
    counts = perdure.restore(backup, settings=logging, replace=True)
    with backend.open() as engine:
        restored, taken, users = log_of(engine, None)
        assert (restored.call, restored.action, restored.outcome, restored.actor, restored.face) == (
            "restore",
            "change",
            "done",
            "program",
            "python",
        )
        assert (taken.call, taken.outcome, users.call) == ("backup", "begun", "users"), "the log is that of the backup"
        assert counts["accesses"] == sum(len(log_of(engine, user)) for user in ("ana", None)) - 1
        assert log_of(engine, "bob") == []
        assert engine.verify().clean


def test_an_empty_store_stays_empty_when_it_could_not_be_restored_and_is_told_of_when_it_could(
    backup: Path, tmp_path: Path
) -> None:
    there = settings(f"sqlite:///{tmp_path}/new.db")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perdure.restore(backup, settings=there, progress=stop)
    perdure.restore(backup, settings=there)
    with perdure.open(settings=there) as engine:
        assert ended(log_of(engine, None))[0] == ("restore", "done")
    perdure.restore(backup, settings=settings(there.url, access_log="off"), replace=True)
    with perdure.open(settings=there) as engine:
        assert "restore" not in {one.call for one in log_of(engine, None)}


def test_a_store_is_not_restored_if_its_log_cannot_say_so(backup: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with perdure.open(f"sqlite:///{path}") as engine:
        engine.memory("bob").state.save("mine", 1)
    with apsw.Connection(str(path)) as connection:
        connection.execute(
            "CREATE TRIGGER boom BEFORE INSERT ON accesses WHEN new.call = 'restore' BEGIN SELECT raise(fail, 'no'); END"
        )
    before = rows(path)
    with pytest.raises(perdure.PerdureError):
        perdure.restore(backup, settings=settings(f"sqlite:///{path}"), replace=True)
    assert rows(path) == before


@pytest.mark.parametrize("version", [6, 8])
def test_a_backup_of_an_older_version_is_told_of_as_well(tmp_path: Path, version: int) -> None:
    with perdure.open("memory:", clock=StoppedClock()) as today:
        filled(today)
        put(today._store, an_access("a1"))
        held = old_stores.rows_of(today, version, rebuilt=False)
    there = settings(f"sqlite:///{tmp_path}/new.db")
    perdure.restore(old_stores.write_backup(tmp_path / "old.perdure", version, held), settings=there)
    with perdure.open(settings=there) as engine:
        assert ended(log_of(engine, None)) == [("restore", "done")]
        assert engine.verify().clean


def test_who_restores_by_the_command_line_is_told_so(backup: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from perdure.interfaces.cli.commands import app

    env = {"PERDURE_URL": f"sqlite:///{tmp_path}/new.db", "PERDURE_ACCESS_LOG": "all"}
    done = CliRunner(env=env).invoke(app, ["admin", "restore", str(backup)])
    assert done.exit_code == 0, done.output
    with perdure.open(env["PERDURE_URL"]) as engine:
        last = log_of(engine, None)[0]
        assert (last.call, last.actor, last.face) == ("restore", COMMAND_LINE.actor, COMMAND_LINE.face)
