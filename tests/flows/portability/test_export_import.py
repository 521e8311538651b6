"""Lossless exports: out of one store and into another, whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perdure
from forged_exports import exported, parsed, sealed
from lanes import examples
from perdure import Conflict, InvalidInput, LimitExceeded, Limits, NotFound, ToolCall, Unavailable
from perdure.domain.jobs import Claim
from perdure.engine.conversation.jobs import TALLY
from perdure.engine.knowledge.terms import NAME_KEY, UNKEYED
from perdure.ports.tables.index import INDEX_JOB
from perdure.services.jobs.idempotency import IdempotentRequests
from perdure.services.portability.export import PORTABLE

METADATA = {"x": [1, "ü", 1.5, {"y": None}]}


def fill(engine: perdure.Engine, user: str = "ana") -> perdure.Memory:
    """Something of everything, by public calls."""
    memory = engine.memory(user, agent="coach")
    memory.append("user", "I live in Oslo. My name is Ana.", id="m1", metadata=METADATA)
    memory.append("assistant", "…", tool_calls=[ToolCall("c1", "weather", {"city": "Oslo"})])  # type: ignore[arg-type]
    memory.append("tool", "rain 🌧 \u2028 &c", tool_call_id="c1")
    memory.append("user", '{"looks": "like JSON"}', session="other")
    for value in ("one", {"two": 2, "pi": 3.14, "deep": [[[[]]]]}, None):
        memory.state.save("k", value)
    memory.state.save("gone", 1)
    memory.state.delete("gone")
    series = memory.series("kudos")
    series.merge([{"id": 1, "timestamp": "2025-01-01"}], window=("2025-01-01", "2025-01-02"))
    series.merge([{"id": 1, "timestamp": "2025-01-05", "n": 2}], window=("2025-01-05", "2025-01-07"))
    memory.remember("Lives in Oslo", entities=["place:Oslo"], attribute="lives_in", value="Oslo")
    memory.remember("Lives in Bergen", entities=["place:Bergen"], attribute="lives_in", value="Bergen")
    memory.memories.pin(memory.remember("Likes tea").statement.memory)  # type: ignore[union-attr]
    memory.todos.add("call mum")
    memory.lessons.add("Be brief", "user")
    memory.instructions.add("Always answer in English")
    memory.todos.tasks.start("look it up")
    memory.conversation.configure(profile="complete")
    memory.conversation.clear(memory.conversation.message("m1").session)
    memory.before("what is the weather in Oslo?")
    engine.process()
    memory.append("user", "I work at Acme.", session="other")  # of which nothing is learned yet
    return memory


def everything(engine: perdure.Engine) -> dict[str, list[Any]]:
    with engine._store.snapshot() as snapshot:
        return {table: list(snapshot.rows(table)) for table in PORTABLE}


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as opened:
        yield opened


@pytest.fixture
def target() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as opened:
        yield opened


class TestRoundTrips:
    def test_what_one_store_exports_another_exports_again_byte_for_byte(
        self, backend: Any, engine: Any, tmp_path: Path
    ) -> None:
        """SQLite or PostgreSQL, to memory, to SQLite, and back."""
        first = exported(fill(backend.open()))
        with perdure.open(f"sqlite:///{tmp_path}/other.db") as other:
            data = first
            for step in (engine, other):
                report = step.memory("ana").import_(io.BytesIO(data))
                assert report.users == ("ana",)
                assert sum(report.rows.values()) == len(parsed(first)) - 2
                data = exported(step.memory("ana"))
                assert data == first
                assert step.verify().clean
            back = backend.open()
            back.memory("ana").import_(io.BytesIO(data), replace=True)
            assert exported(back.memory("ana")) == first
            assert back.verify().clean

    def test_an_imported_user_goes_on_as_if_nothing_had_happened(self, engine: Any, target: Any) -> None:
        fill(engine)
        target.memory("ana").import_(io.BytesIO(exported(engine.memory("ana"))))
        ana = target.memory("ana", agent="coach")
        assert ana.append("user", "I live in Oslo. My name is Ana.", id="m1", metadata=METADATA).repeated
        assert target.process().failed == 0
        assert target.memory("ana", agent="coach").recall("where does she live?").hits
        contents = [one.content for one in ana.memories.list()]
        assert sorted(contents) == sorted(set(contents)), "nothing was learned twice"
        assert any("Acme" in one for one in contents), "what was waiting to be learned is learned here"
        assert ana.undo(ana.journal.list(1)[0].batch)
        assert target.verify().clean

    def test_under_another_name_it_is_the_same_of_another_user(self, engine: Any) -> None:
        data = exported(fill(engine))
        ben = engine.memory("ben")
        assert ben.import_(io.BytesIO(data)).users == ("ben",)
        assert parsed(exported(ben))[1:-1] == parsed(data)[1:-1]
        assert exported(engine.memory("ana")) == data
        assert engine.verify().clean

    def test_of_nobody_there_is_nothing_to_export_and_nothing_comes_of_it(self, engine: Any, target: Any) -> None:
        data = exported(engine.memory("nobody"))
        assert len(parsed(data)) == 2
        assert target.memory("nobody").import_(io.BytesIO(data)).rows == {}
        assert target.users() == []

    def test_all_users_of_a_space_go_to_one_file_and_back(self, engine: Any, target: Any, tmp_path: Path) -> None:
        fill(engine)
        fill(engine, "Ünï%cödé 🦉")
        engine.memory("ana").lessons.add("Everybody should know", "global")
        engine.memory("elsewhere", space="other").state.save("k", 1)
        engine.api_keys.create("a key")
        report = engine.export(tmp_path / "all.jsonl.gz")
        assert report.users == ("ana", "perdure:shared", "Ünï%cödé 🦉")
        with gzip.open(tmp_path / "all.jsonl.gz") as file:
            lines = parsed(file.read())
        assert [line["part"] for line in lines if "format" in line] == [1, 2, 3]
        done = target.import_(tmp_path / "all.jsonl.gz")
        assert (done.users, done.rows) == (report.users, report.rows)
        assert target.users() == ["ana", "Ünï%cödé 🦉"]
        assert target.memory("new").lessons.list("global")[0].text == "Everybody should know"
        target.export(tmp_path / "again.jsonl")
        assert parsed((tmp_path / "again.jsonl").read_bytes()) == lines
        with pytest.raises(InvalidInput, match="3 users"):
            target.memory("zoe").import_(tmp_path / "all.jsonl.gz")

    @settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_whatever_was_done_an_export_brings_it_back(self, data: st.DataObject) -> None:
        text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
        json_values = st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
            max_leaves=8,
        )
        with perdure.open("memory:") as one, perdure.open("memory:") as other:
            memory = one.memory("ana", agent=data.draw(text), channel=data.draw(text))
            for _ in range(data.draw(st.integers(0, 8))):
                act = data.draw(st.sampled_from(["say", "save", "delete", "remember", "todo", "process", "merge"]))
                try:
                    if act == "say":
                        memory.append(
                            "user", data.draw(text), metadata=data.draw(st.dictionaries(text, json_values, max_size=2))
                        )
                    elif act == "save":
                        memory.state.save(data.draw(text), data.draw(json_values))
                    elif act == "delete":
                        memory.state.delete("k")
                    elif act == "remember":
                        memory.remember(data.draw(text))
                    elif act == "todo":
                        memory.todos.add(data.draw(text))
                    elif act == "merge":
                        memory.series("s").merge(
                            [{"id": data.draw(text), "timestamp": "2025-01-01", "v": data.draw(json_values)}]
                        )
                    else:
                        one.process()
                except InvalidInput:
                    pass  # some texts are refused; whatever is kept must come back
            first = exported(memory)
            if len(first.splitlines()) == 2:
                return
            other.memory("ana").import_(io.BytesIO(first))
            assert exported(other.memory("ana")) == first
            assert other.verify().clean


class TestWhatIsExported:
    def test_lines_name_their_columns_and_show_json_as_json(self, engine: Any) -> None:
        lines = parsed(exported(fill(engine)))
        assert lines[0] == {
            "format": "perdure-export",
            "version": 1,
            "schema": lines[0]["schema"],
            "space": "default",
            "user": "ana",
            "part": 1,
            "of": 1,
        }
        message = next(line for line in lines if line.get("id") == "m1")
        assert message["table"] == "messages"
        assert message["metadata"] == METADATA
        assert "user_id" not in message
        assert {line["table"] for line in lines[1:-1]} >= {
            "sessions",
            "messages",
            "tool_calls",
            "jobs",
            "operations",
            "state_revisions",
            "series_entries",
            "records",
            "decisions",
            "agent_states",
        }
        tables = [line["table"] for line in lines[1:-1]]
        assert tables == sorted(tables, key=PORTABLE.index)

    def test_two_exports_of_the_same_data_are_the_same_bytes(self, engine: Any, tmp_path: Path) -> None:
        fill(engine)
        for name in ("a.jsonl.gz", "b.jsonl.gz"):
            engine.memory("ana").export(tmp_path / name)
        assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()

    def test_nobody_elses_words_are_in_it_and_nothing_that_was_forgotten(self, engine: Any) -> None:
        fill(engine)
        ben = engine.memory("ben")
        ben.append("user", "xylophone", id="x1")
        ben.state.save("instrument", "xylophone")
        assert b"xylophone" not in exported(engine.memory("ana"))
        assert b"xylophone" in exported(ben)
        ben.state.clear()
        ben.forget(messages=("x1", "x1"))
        ben.forget(user=True)
        assert b"xylophone" not in exported(ben)

    def test_what_belongs_to_this_server_stays_here(self, engine: Any) -> None:
        ana = fill(engine)
        claim = IdempotentRequests(engine._store, engine._clock).claim(ana.scope.owner, "request-1", "f")
        [job] = engine._store.claim(Claim("w", (TALLY,), engine._clock.now(), 600.0, 1))
        assert job.state == "running"
        with ana.turn():
            lines = parsed(exported(ana))
        assert claim.key not in json.dumps(lines)
        jobs = [line for line in lines if line.get("table") == "jobs"]
        assert {line["state"] for line in jobs} == {"ready"}
        assert {line["worker"] for line in jobs} == {None}
        assert INDEX_JOB not in {line["kind"] for line in jobs}
        assert [line["turn_holder"] for line in lines if line.get("table") == "agent_states"] == [None]

    def test_a_file_is_not_overwritten_by_accident_and_appears_whole(self, engine: Any, tmp_path: Path) -> None:
        path = tmp_path / "ana.jsonl"
        fill(engine).export(path)
        with pytest.raises(Conflict, match="exists already"):
            engine.memory("ana").export(path)
        engine.memory("ana").export(path, replace=True)
        assert [one.name for one in tmp_path.iterdir()] == ["ana.jsonl"]
        assert path.stat().st_mode & 0o077 == 0


class TestWhatIsRefused:
    @pytest.fixture
    def data(self, engine: Any) -> bytes:
        return exported(fill(engine))

    def test_a_file_cut_off_anywhere_stores_nothing(self, data: bytes, target: Any) -> None:
        lines = data.splitlines(keepends=True)
        for cut in (
            b"".join(lines[:-1]),
            b"".join(lines[:1]),
            b"".join(lines[:-3]) + lines[-1],
            data[:-20],
            data[: len(data) // 2],
        ):
            with pytest.raises(InvalidInput, match=r"line \d+"):
                target.memory("ana").import_(io.BytesIO(cut), "jsonl")
        with pytest.raises(InvalidInput):
            target.memory("ana").import_(io.BytesIO(b""), "jsonl")
        with pytest.raises(InvalidInput, match="cut off"):
            target.memory("ana").import_(io.BytesIO(gzip.compress(data)[:-100]))
        assert not any(everything(target).values())

    @pytest.mark.parametrize("form", ["auto", "jsonl", "mem0"])
    def test_a_file_open_in_text_mode_is_refused_by_name(self, data: bytes, target: Any, form: str) -> None:
        with pytest.raises(InvalidInput, match="open it in binary mode"):
            target.memory("ana").import_(io.StringIO(data.decode()), form)
        with pytest.raises(InvalidInput, match="open it in binary mode"):
            target.memory("ana").export(io.StringIO())  # type: ignore[arg-type]
        assert not any(everything(target).values())

    def test_a_changed_letter_is_noticed(self, data: bytes, target: Any) -> None:
        assert b"Lives in Oslo" in data
        with pytest.raises(InvalidInput, match="altered"):
            target.memory("ana").import_(io.BytesIO(data.replace(b"Lives in Oslo", b"Lives in Rome")))
        assert not any(everything(target).values())

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda row: row.pop("content"), "columns"),
            (lambda row: row.update(extra=1), "extra"),
            (lambda row: row.update(table="index_heads"), "index_heads"),
            (lambda row: row.update(table="operations"), "columns"),
            (lambda row: row.update(table="nonsense"), "names table"),
            (lambda row: row.update(content=True), "bool"),
            (lambda row: row.update(content={"a": 1}), "JSON"),
            (lambda row: row.update(content="a\0b"), "NUL"),
            (lambda row: row.update(tokens=2**63), "number"),
            (lambda row: row.update(seq="first"), "does not fit"),
            (lambda row: row.update(seq=7), "law|fit"),
            (lambda row: row.update(session_number=99), "fit"),
            (lambda row: row.update(role="king"), "fit"),
        ],
    )
    def test_a_crafted_row_is_refused_with_its_line(
        self, data: bytes, target: Any, change: Callable[[dict[str, Any]], Any], says: str
    ) -> None:
        lines = parsed(data)
        row = next(line for line in lines if line.get("id") == "m1")
        change(row)
        with pytest.raises(InvalidInput, match=says) as caught:
            target.memory("ana").import_(sealed(lines))
        assert "nothing was imported" in str(caught.value)
        assert not any(everything(target).values())

    def test_rows_out_of_order_or_twice_are_refused(self, data: bytes, target: Any) -> None:
        lines = parsed(data)
        with pytest.raises(InvalidInput, match="behind those of another table"):
            target.memory("ana").import_(sealed([*lines[:1], *lines[2:-1], lines[1]]))
        with pytest.raises(InvalidInput, match=r"line 3 .* does not fit"):
            target.memory("ana").import_(sealed([*lines[:2], lines[1], *lines[2:-1]]))
        assert not any(everything(target).values())

    @pytest.mark.parametrize(
        ("heading", "says"),
        [
            ({"version": 2}, "format version 2"),
            ({"schema": 99}, "upgrade"),
            ({"schema": "6"}, "schema"),
            ({"of": 2}, "part"),
            ({"part": 2, "of": 2}, "part"),
            ({"user": None}, "does not name its user"),
            ({"format": "other"}, "heading"),
        ],
    )
    def test_a_newer_or_foreign_heading_is_refused(self, data: bytes, target: Any, heading: Any, says: str) -> None:
        lines = parsed(data)
        lines[0] |= heading
        with pytest.raises(InvalidInput, match=says):
            target.memory("ana").import_(sealed(lines), "jsonl")

    def test_what_is_no_export_at_all_is_said_so(self, target: Any, tmp_path: Path) -> None:
        ana = target.memory("ana")
        with pytest.raises(NotFound):
            ana.import_(tmp_path / "nothing.jsonl")
        for junk in (b"\xff\xfe\x00", b"[1, 2", b"{}\n{}\n", b'"text"\n'):
            with pytest.raises(InvalidInput):
                ana.import_(io.BytesIO(junk))
        with pytest.raises(InvalidInput, match="format"):
            ana.import_(io.BytesIO(b""), "xml")
        with pytest.raises(InvalidInput, match="folder"):
            ana.import_(tmp_path, "jsonl")

    @pytest.mark.parametrize("packed", [True, False])
    def test_a_disk_that_fails_while_it_is_read_is_told_and_stores_nothing(
        self, data: bytes, target: Any, packed: bool
    ) -> None:
        """P5: the error of the system came out as it was."""

        class Failing(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                if self.tell() > 200:
                    raise OSError(errno.EIO, "Input/output error")
                return super().read(min(100, size) if size is not None and size > 0 else size)

            def readline(self, size: int | None = -1, /) -> bytes:
                self.read(0)
                return super().readline(size)

        with pytest.raises(Unavailable, match=r"`source` cannot be read \(Input/output error\)"):
            target.import_(Failing(gzip.compress(data) if packed else data))
        assert everything(target) == everything(perdure.open("memory:"))

    def test_a_stream_that_cannot_be_read_says_why_in_its_own_words(self, target: Any, tmp_path: Path) -> None:
        with (
            (tmp_path / "out").open("wb") as written,
            pytest.raises(Unavailable, match=r"`source` cannot be read \(.*read.*\)"),
        ):
            target.import_(written)

    def test_a_user_that_holds_data_is_replaced_only_if_told_so(self, data: bytes, backend: Any) -> None:
        engine = backend.open()
        ana = engine.memory("ana")
        ana.state.save("old", "words")
        engine.memory("ben").state.save("k", 1)
        for dry_run in (False, True):
            with pytest.raises(Conflict, match="holds data"):
                ana.import_(io.BytesIO(data), dry_run=dry_run)
        assert ana.state.load("old") == "words"
        assert ana.import_(io.BytesIO(data), replace=True, dry_run=True).rows["messages"] == 5
        assert ana.state.load("old") == "words"
        ana.import_(io.BytesIO(data), replace=True)
        assert not ana.state.find("old").found
        assert exported(ana) == data
        assert engine.memory("ben").state.load("k") == 1
        assert engine.verify().clean

    def test_more_than_may_come_is_refused(self, data: bytes) -> None:
        limits = replace(Limits(), import_bytes_max=2_000)
        with perdure.open(settings=perdure.Settings(url="memory:", limits=limits)) as small:
            with pytest.raises(LimitExceeded, match="import_bytes_max"):
                small.memory("ana").import_(io.BytesIO(gzip.compress(data)))


def test_an_export_of_an_older_schema_is_brought_up_to_date(engine: Any, target: Any) -> None:
    """As schema 5 had it: without decisions, usage and keys of names, and before channels could be shared."""
    lines = parsed(exported(fill(engine)))
    lines[0]["schema"] = 5
    old = [line for line in lines if line.get("table") not in ("decisions", "usage") and line.get("field") != NAME_KEY]
    assert len(old) < len([line for line in lines if line.get("table") not in ("decisions", "usage")]), (
        "there are keys of names"
    )
    old = [{name: value for name, value in line.items() if name != "shared"} for line in old]
    target.memory("ana").import_(sealed(old))
    assert target.verify().clean
    after = _as_kept(exported(target.memory("ana")))
    kept = _as_kept(exported(engine.memory("ana")))
    entities = [line["key"] for line in kept if line["table"] == "records" and line["kind"] == "entity"]
    field, value = UNKEYED
    marks = [{"table": "record_terms", "kind": "entity", "field": field, "value": value, "key": key} for key in entities]
    assert [line for line in after if line.get("field") == field] == marks, "as the migration marks those of an older store"
    assert [line for line in after if line not in marks] == [line for line in kept if line.get("field") != NAME_KEY]
    target.memory("ana").remember("Bought bread", entities=["person:Rui Sousa"])
    held = [line for line in _as_kept(exported(target.memory("ana"))) if line.get("key") in entities]
    names = (NAME_KEY, field)
    keys = [line for line in kept if line.get("field") in names]
    assert [line for line in held if line.get("field") in names] == keys, "the next new name gives the others their keys"
    assert target.verify().clean


def _as_kept(data: bytes) -> list[dict[str, Any]]:
    """The rows of an export that an older schema has, too."""
    return [line for line in parsed(data)[1:-1] if line["table"] not in ("decisions", "usage", "jobs")]


def test_the_async_face_exports_and_imports(tmp_path: Path) -> None:
    import asyncio

    import perdure.aio

    async def run() -> tuple[int, int]:
        async with await perdure.aio.open("memory:") as engine:
            ana = engine.memory("ana")
            await ana.state.save("k", 1)
            report = await ana.export(tmp_path / "ana.jsonl")
            done = await engine.memory("ben").import_(tmp_path / "ana.jsonl")
            await engine.export(tmp_path / "all.jsonl")
            return sum(report.rows.values()), sum(done.rows.values())

    written, read = asyncio.run(run())
    assert written == read > 0
