"""Exports that somebody changed with care: each is refused as a whole, or what comes of it can be read and used."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import random
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import perdure
from forged_exports import Lines, exported, parsed, sealed
from lanes import examples
from perdure import Conflict, InvalidInput, LimitExceeded, Limits, PerdureError, ToolCall
from perdure.domain.models import Usage
from perdure.domain.text.rules import compact_json

DROP = object()
LONG = "long " * 2_000
VALUES: tuple[object, ...] = (DROP, None, -1, 0, 2**62, 10**17, "x", "", [], {}, [1], {"x": 1}, 1.5, True, LONG, "\ud800")
MUTATIONS = examples(300)


def fill(engine: perdure.Engine, user: str = "ana") -> perdure.Memory:
    """Something of every table, by public calls, in few rows."""
    memory = engine.memory(user, agent="coach")
    memory.append("user", "I live in Oslo. My name is Ana.", id="m1", metadata={"usage": {"input_tokens": 3}})
    memory.append("assistant", "…", tool_calls=[ToolCall("c1", "weather", {"city": "Oslo"})])  # type: ignore[arg-type]
    memory.append("tool", "rain", tool_call_id="c1")
    memory.append("user", "Hello again", session="other")
    for value in ("one", {"two": 2}):
        memory.state.save("k", value)
    memory.state.save("gone", 1)
    memory.state.delete("gone")
    series = memory.series("kudos", keep_days=90)
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
    memory.after("weather", {"temp": 3}, "what is the weather?")
    memory.context("tea")
    engine.process()
    now = memory.conversation.message("m1").at
    engine._store.write(memory.scope.owner, lambda tx: tx.oversight.add_usage(Usage("chat", "ok", 1, 2, 3, 4.0, now)))
    memory.append("user", "I work at Acme.", session="other")  # of which nothing is learned yet
    return memory


@pytest.fixture(scope="module")
def data() -> bytes:
    with perdure.open("memory:") as engine:
        return exported(fill(engine))


@pytest.fixture
def target() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as opened:
        yield opened


# -- mutations


@dataclass(frozen=True)
class Mutation:
    """One field, wherever it stands, set to another value; and what the journal says of it, so that both agree."""

    row: int
    path: tuple[str | int, ...]
    value: object
    agree: bool

    def apply(self, lines: Lines) -> Lines:
        changed = [dict(line) for line in lines]
        changed[self.row] = copy.deepcopy(lines[self.row])
        before = lines[self.row].get(str(self.path[0]))
        _set(changed[self.row], self.path, self.value)
        if self.agree and isinstance(before, dict):
            after = changed[self.row].get(str(self.path[0]))
            for line in changed:
                for name in ("before", "after", "body"):
                    if line.get(name) == before and isinstance(after, dict):
                        line[name] = copy.deepcopy(after)
            if lines[self.row]["table"] == "digests":
                _seal_digest(changed, before, after)
        return changed

    def told(self, lines: Lines) -> str:
        value = "dropped" if self.value is DROP else f"{self.value!r:.40}"
        return f"{lines[self.row].get('table', 'heading')} {'.'.join(map(str, self.path))} = {value} (agree={self.agree})"


def _set(place: Any, path: tuple[str | int, ...], value: object) -> None:
    for step in path[:-1]:
        place = place[step]
    if value is DROP:
        del place[path[-1]]
    else:
        place[path[-1]] = copy.deepcopy(value)


def _seal_digest(lines: Lines, before: object, after: object) -> None:
    """The journal knows a digest by a fingerprint of its words."""
    old, new = (hashlib.sha256(compact_json(body).encode("utf-8", "surrogatepass")).hexdigest() for body in (before, after))
    for line in lines:
        for name in ("before", "after"):
            if isinstance(line.get(name), dict) and line[name].get("sha256") == old:
                line[name] = line[name] | {"sha256": new}


def mutations(lines: Lines, seed: int) -> Iterator[Mutation]:
    """Without end; each table is as likely as any other."""
    chance = random.Random(seed)
    by_table: dict[str, list[int]] = {}
    for number, line in enumerate(lines[:-1]):
        by_table.setdefault(line.get("table", ""), []).append(number)
    while True:
        row = chance.choice(by_table[chance.choice(list(by_table))])
        place: Any = lines[row]
        path: tuple[str | int, ...] = ()
        while True:
            steps = [one for one in (place if isinstance(place, dict) else range(len(place))) if one != "table"]
            if not steps or (path and chance.random() < 0.15):
                break
            path = (*path, chance.choice(steps))
            place = place[path[-1]]
            if not isinstance(place, dict | list):
                break
        yield Mutation(row, path, chance.choice(VALUES), agree=chance.random() < 0.7)


def read_all(engine: perdure.Engine) -> None:
    """A battery of calls over all that a user has; any error in it is a failure of the test."""
    for agent in ("coach", "default"):
        ana = engine.memory("ana", agent=agent)
        for session in ana.conversation.sessions():
            ana.messages(session=session.id)
            ana.conversation.tally(session.id)
            ana.conversation.digests(session=session.id)
        ana.conversation.agent_state()
        ana.context("Where does Ana live?")
        ana.context()
        ana.recall("Where does Ana live?")
        ana.prompt("Where does Ana live?")
        ana.before("what is the weather in Oslo?")
        ana.memories.foundation()
        for memory in ana.memories.list():
            ana.memories.get(memory.memory.record_key)
            ana.memories.history(memory.memory.record_key)
            ana.memories.changes(memory.memory.record_key)
        ana.memories.rejections()
        ana.instructions.list(withdrawn=True)
        ana.todos.list()
        ana.todos.tasks.list(closed=True)
        ana.lessons.list()
        ana.lessons.text("user")
        ana.conversation.list_sessions()
        ana.conversation.search("Oslo")
        ana.admin.overview()
    ana = engine.memory("ana")
    for info in ana.state.list():
        ana.state.load(info.key)
        ana.state.history(info.key)
    ana.state.search("*")
    for series in ana.series.list():
        held = ana.series(series.name)
        held.query("2025-01-01", "2025-02-01")
        held.per("day")
        for entry in held.entries():
            held.history(entry.id)
        list(held.export("csv"))
        held.cleanup(keep_days=10**5)
    ana.entities.list()
    ana.entities.links()
    ana.entities.suggestions()
    for decision in ana.journal.decisions():
        assert decision.at
    ana.admin.usage()
    ana.admin.jobs()
    ana.journal.list()
    ana.memories.audit()
    ana.memories.curate(dry_run=True)
    exported(ana)


def use_all(engine: perdure.Engine) -> None:
    """What goes on after an import: background work, new words, and taking back."""
    report = engine.process()
    assert report.failed == 0, [job.last_error for job in engine.memory("ana").admin.jobs()]
    ana = engine.memory("ana", agent="coach")
    ana.append("user", "I moved to Rome.")
    ana.series("kudos").merge([{"id": 7, "timestamp": "2025-01-08"}])
    ana.state.save("k", 3)
    for operation in ana.journal.list(100):
        try:
            ana.undo(operation.batch)
        except PerdureError:
            continue
    engine.process()


def outcome(lines: Lines, target: perdure.Engine, *, use: bool = False) -> str:
    """`refused` or `taken`; whatever else happens is raised."""
    try:
        target.memory("ana").import_(sealed(lines), "jsonl")
    except InvalidInput:
        assert target.users() == [], "nothing was imported"
        return "refused"
    assert target.verify().clean
    read_all(target)
    if use:
        use_all(target)
        read_all(target)
    return "taken"


def test_a_changed_export_is_refused_or_can_be_read_and_used(data: bytes) -> None:
    lines = parsed(data)
    wanted = mutations(lines, seed=17)
    seen = {"refused": 0, "taken": 0}
    while sum(seen.values()) < MUTATIONS:
        with perdure.open("memory:") as target:
            # What is refused leaves nothing, so the next one can have the same store.
            while (told := outcome(next(wanted).apply(lines), target)) == "refused" and sum(seen.values()) < MUTATIONS:
                seen[told] += 1
            seen[told] += 1
    assert min(seen.values()) > MUTATIONS // 50, seen


def changed(data: bytes, table: str, change: Callable[[dict[str, Any]], Any]) -> io.BytesIO:
    """The export with the first row of a table changed; of the jobs, the first that is about a session."""
    lines = parsed(data)
    row = next(line for line in lines if line.get("table") == table and (table != "jobs" or line["kind"] == "tally"))
    change(row)
    return sealed(lines)


def poisons() -> Iterator[Any]:
    for table, column, value in (
        ("agent_states", "profile", "x"),
        ("agent_states", "profile", -1),
        ("agent_states", "rolling_error", "[]"),
        ("jobs", "payload", -1),
        ("jobs", "payload", 1.5),
        ("jobs", "payload", {"agent": "coach", "channel": "default", "session_number": None}),
        ("jobs", "repeat", "whenever"),
        ("state_keys", "saved_at_us", 2**62),
        ("state_keys", "size_bytes", -1),
        ("state_revisions", "body", '"\\ud800"'),
        ("messages", "metadata", []),
        ("messages", "metadata", 1.5),
        ("messages", "metadata", '{"x": "\\ud800"}'),
        ("messages", "metadata", "[" * 100_000),
        ("messages", "at_us", 2**62),
        ("messages", "id", "long" * 1_000),
        ("tallies", "body", {}),
        ("series", "spec", {"zone": "Nowhere/At_All"}),
        ("series", "last_result", "[1]"),
        ("series_entries", "body", 0),
        ("digests", "body", []),
        ("decisions", "body", {"included": [1]}),
        ("usage", "last_at_us", 2**62),
        ("echoes", "at_us", 2**62),
    ):
        yield pytest.param(table, lambda row, c=column, v=value: row.update({c: v}), id=f"{table}.{column}={value!r:.12}")
    for table, field, value in (
        ("tallies", "by_role", None),
        ("tallies", "by_role", {"user": "x"}),
        ("tallies", "failures", -1),
        ("records", "created_at", "x"),
        ("records", "created_at", 2**62),
        ("records", "label", {"a": 1}),
        ("records", "aliases", "x"),
        ("records", "type", "king"),
        ("records", "nonsense", 1),
        ("digests", "sources", [["coach"]]),
        ("digests", "text", 1),
    ):
        yield pytest.param(
            table, lambda row, f=field, v=value: row["body"].update({f: v}), id=f"{table}.body.{field}={value!r:.12}"
        )
    yield pytest.param("records", lambda row: row["body"].pop("created_at"), id="records.body without created_at")
    yield pytest.param("tallies", lambda row: row["body"].pop("by_role"), id="tallies.body without by_role")


class TestPoison:
    @pytest.mark.parametrize(("table", "change"), list(poisons()))
    def test_a_row_that_no_service_would_write_is_refused_with_its_line(
        self, data: bytes, target: perdure.Engine, table: str, change: Callable[[dict[str, Any]], Any]
    ) -> None:
        with pytest.raises(InvalidInput, match=rf"line \d+ of the export .*`{table}`.*nothing was imported"):
            target.memory("ana").import_(changed(data, table, change))
        assert target.users() == []

    def test_what_undoing_would_bring_back_is_looked_at_too(self, data: bytes, target: perdure.Engine) -> None:
        """The journal holds what records were; an undo makes it one again."""
        lines = parsed(data)
        for line in lines:
            for name in ("before", "after"):
                if line.get("kind") == "memory" and line.get("table") == "operations" and isinstance(line.get(name), dict):
                    line[name] = {"x": 1}
        with pytest.raises(InvalidInput, match=r"line \d+ .*`operations`"):
            target.memory("ana").import_(sealed(lines))

    def test_verification_tells_of_such_rows_and_goes_on(self, sqlite: Any) -> None:
        engine = sqlite.open()
        fill(engine)
        assert engine.verify().clean
        with sqlite3.connect(sqlite.url.removeprefix("sqlite:///")) as raw:
            for change in (
                "UPDATE jobs SET payload = '-1'",
                "UPDATE agent_states SET profile = 'x'",
                "UPDATE state_keys SET saved_at_us = 4611686018427387904",
                "UPDATE messages SET metadata = '[]'",
                "UPDATE tallies SET body = '{}'",
                "UPDATE records SET body = '{}'",
                "UPDATE operations SET after = '1.5' WHERE after IS NOT NULL",
                "UPDATE digests SET body = '7'",
                "UPDATE series SET spec = '{\"zone\": 3}'",
                "UPDATE series_entries SET body = '0'",
            ):
                raw.execute(change)
        raw.close()
        found = {one.where for one in engine.verify().findings if one.law == "every row can be read"}
        tables = "jobs agent_states state_keys messages tallies records operations digests series series_entries"
        assert found == {f"table {name}" for name in tables.split()}


# -- bounds


class Endless(io.RawIOBase):
    """One line that does not end; it counts what was taken of it."""

    def __init__(self, beginning: bytes) -> None:
        self.beginning, self.taken = beginning, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self.taken = offset
        return offset

    def read(self, size: int = -1) -> bytes:
        return self.readline(size)

    def readline(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert size >= 0, "nothing is asked for without a bound"
        data = self.beginning[self.taken : self.taken + size]
        data += b" " * (size - len(data))
        self.taken += size
        return data


class TestLines:
    @pytest.mark.parametrize(
        ("beginning", "most"),
        [(b"", 17_000_000), (b'{"table":"messages",', 17_000_000), (b'{"table":"state_revisions",', 143_000_000)],
    )
    def test_of_a_line_without_end_no_more_is_held_than_a_row_may_have(
        self, target: perdure.Engine, beginning: bytes, most: int
    ) -> None:
        source = Endless(beginning)
        with pytest.raises(LimitExceeded, match="line 1 of the export goes beyond"):
            target.memory("ana").import_(source, "jsonl")  # type: ignore[arg-type]
        assert source.taken < most

    def test_a_small_body_that_unpacks_to_much_costs_little_memory(self, target: perdure.Engine) -> None:
        body = io.BytesIO(gzip.compress(b"a" * 100_000_000, 1))
        tracemalloc.start()
        try:
            with pytest.raises(LimitExceeded, match="line 1 of the export goes beyond"):
                target.memory("ana").import_(body)
            assert tracemalloc.get_traced_memory()[1] < 40_000_000
        finally:
            tracemalloc.stop()

    def test_the_longest_rows_that_limits_allow_come_back(self) -> None:
        """A value of state, a message of control characters, and an entry, each as long as it may be."""
        limits = replace(Limits(), message_bytes_max=300_000, entry_bytes_max=200_000, state_value_bytes_max=12_000_000)
        settings = perdure.Settings(url="memory:", limits=limits)
        with perdure.open(settings=settings) as engine, perdure.open(settings=settings) as other:
            memory = engine.memory("ana")
            memory.state.save("k", '"' * 5_900_000)
            memory.append("user", "\x01" * 300_000)
            memory.series("s").merge([{"id": 1, "timestamp": "2025-01-01", "x": "\\" * 99_000}])
            whole = exported(memory)
            assert max(map(len, whole.splitlines())) > 20_000_000
            other.memory("ana").import_(io.BytesIO(gzip.compress(whole, 1)))
            assert exported(other.memory("ana")) == whole


# -- merges that are repeated


class TestRepeatedMerges:
    FIRST = ({"id": 1, "timestamp": "2025-01-01", "n": 1},)

    def test_the_same_merge_again_changes_nothing_and_answers_the_same(self, backend: Any) -> None:
        series = backend.open().memory("ana").series("kudos")
        done = series.merge(self.FIRST, window=("2025-01-01", "2025-01-02"), request="r")
        again = [{"n": 1, "timestamp": "2025-01-01", "id": 1}]  # the order of fields says nothing
        assert series.merge(again, window=("2025-01-01", "2025-01-02"), request="r") == done
        assert series.about().fetched == 1

    def test_another_merge_under_its_request_is_refused_and_not_lost(self, backend: Any) -> None:
        engine = backend.open()
        series = engine.memory("ana").series("kudos")
        series.merge(self.FIRST, window=("2025-01-01", "2025-01-02"), request="r")
        other = [{"id": 2, "timestamp": "2025-01-01"}]
        for batch, window in (
            (other, ("2025-01-01", "2025-01-02")),
            (self.FIRST, ("2025-01-01", "2025-01-03")),
            (self.FIRST, None),
            ([object()], ("2025-01-01", "2025-01-02")),
        ):
            with pytest.raises(Conflict, match="request 'r' has merged other entries already"):
                series.merge(batch, window=window, request="r")
        assert series.count() == 1
        assert series.merge(other, request="r2").added == 1
        assert engine.verify().clean

    def test_what_was_kept_before_there_were_fingerprints_is_answered_as_before(self, target: perdure.Engine) -> None:
        series = target.memory("ana").series("kudos")
        done = series.merge(self.FIRST, request="r")
        held = series.about()
        older = replace(held, last_result=json.dumps(json.loads(held.last_result)[:7]))
        target._store.write(target.memory("ana").scope.owner, lambda tx: tx.series.put(older))
        assert series.merge(self.FIRST, request="r") == done
