"""Exports that somebody changed with care: each is refused as a whole, or what comes of it can be read and used."""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import perdure
from perdure import Conflict, InvalidInput, LimitExceeded, Limits, PerdureError, ToolCall
from perdure.domain.models import Usage
from perdure.domain.text import compact_json

Lines = list[dict[str, Any]]
DROP = object()
LONG = "long " * 2_000
VALUES: tuple[object, ...] = (DROP, None, -1, 0, 2**62, 10**17, "x", "", [], {}, [1], {"x": 1}, 1.5, True, LONG, "\ud800")
MUTATIONS = 300


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
    memory.tasks.start("look it up")
    memory.conversation.configure(profile="complete")
    memory.conversation.clear(memory.message("m1").session)
    memory.before("what is the weather in Oslo?")
    memory.after("weather", {"temp": 3}, "what is the weather?")
    memory.context("tea")
    engine.process()
    now = memory.message("m1").at
    engine._store.write(
        memory.scope.owner, lambda tx: tx.oversight.add_usage(Usage("chat", "ok", 1, 2, 3, 4.0, now))
    )
    memory.append("user", "I work at Acme.", session="other")  # of which nothing is learned yet
    return memory


def exported(memory: perdure.Memory) -> bytes:
    file = io.BytesIO()
    memory.export(file)
    return file.getvalue()


def parsed(data: bytes) -> Lines:
    return [json.loads(line) for line in data.splitlines()]


def sealed(lines: Lines) -> io.BytesIO:
    """Lines of one part with an end that fits them, as somebody could make it who knows how."""
    rows = [line for line in lines if "table" in line]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in [lines[0], *rows])
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["table"]] = counts.get(row["table"], 0) + 1
    return io.BytesIO(body + json.dumps({"rows": counts, "sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n")


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
        changed = copy.deepcopy(lines)
        before = copy.deepcopy(changed[self.row].get(str(self.path[0])))
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
                line[name]["sha256"] = new


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
        for session in ana.sessions():
            ana.messages(session=session.id)
            ana.tally(session.id)
            ana.conversation.digests(session=session.id)
        ana.conversation.agent_state()
        ana.context("Where does Ana live?")
        ana.context()
        ana.recall("Where does Ana live?")
        ana.prompt("Where does Ana live?")
        ana.before("what is the weather in Oslo?")
        ana.memories.foundation()
        for memory in ana.memories.list():
            ana.memories.get(memory.key)
            ana.memories.history(memory.key)
            ana.memories.changes(memory.key)
        ana.memories.rejections()
        ana.instructions.list(withdrawn=True)
        ana.todos.list()
        ana.tasks.list(closed=True)
        ana.lessons.list()
        ana.lessons.text("user")
        ana.conversation.list_sessions()
        ana.conversation.search("Oslo")
        ana.overview()
    ana = engine.memory("ana")
    for info in ana.state.list():
        ana.state.load(info.key)
        ana.state.history(info.key)
    ana.state.search("*")
    for series in ana.list_series():
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
    for decision in ana.decisions():
        assert decision.at
    ana.usage()
    ana.jobs()
    ana.journal()
    ana.transcripts.list()
    ana.audit()
    ana.curate(dry_run=True)
    exported(ana)


def use_all(engine: perdure.Engine) -> None:
    """What goes on after an import: background work, new words, and taking back."""
    report = engine.process()
    assert report.failed == 0, [job.last_error for job in engine.memory("ana").jobs()]
    ana = engine.memory("ana", agent="coach")
    ana.append("user", "I moved to Rome.")
    ana.series("kudos").merge([{"id": 7, "timestamp": "2025-01-08"}])
    ana.state.save("k", 3)
    for operation in ana.journal(100):
        try:
            ana.undo(operation.batch)
        except PerdureError:
            continue
    engine.process()


def outcome(lines: Lines, target: perdure.Engine, *, use: bool = False) -> str:
    """`refused` or `taken`; whatever else happens is raised."""
    try:
        target.memory("ana").import_(sealed(lines), "jsonl")
    except PerdureError as error:
        assert isinstance(error, InvalidInput), f"{error.code}: {error}"
        assert target.users() == [], "nothing was imported"
        return "refused"
    assert target.verify().clean
    read_all(target)
    if use:
        use_all(target)
        read_all(target)
    return "taken"
