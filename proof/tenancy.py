"""A crowd on one store: everybody writes, then some attack, and nobody may see, change or infer what is another's.

Three ways to notice: a mark of another in any answer; rows of those who kept still that are not what they were; and an answer
that is another one than the same person gets, for the same calls at the same times, on a store that nobody else uses. In
that store the ids and names of others do not exist, so whatever tells that they do elsewhere shows up as a difference.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import perdure
from perdure.domain.scope import Owner
from perdure.ports.tables import rows
from perdure.testing import StoppedClock
from proof.calls import Call, Draw, Operation
from proof.crowd import AGENTS, CHANNELS, PRIVATE_TO, SPACES, Person, marks_in
from proof.faces import CliFace, Face, HttpFace, McpFace, PythonFace, Web
from proof.harness import Round

SHARES = {"Python": 0.83, "HTTP": 0.08, "MCP": 0.07, "CLI": 0.02}
STRANGER_SHARE = 0.25
"""How often a request names another user than its key is for."""
STEP = timedelta(milliseconds=200)
NEW_SHARE = 0.25
"""How often the operation that was used least is next."""
SELDOM = re.compile(
    r"(?:\w+\.|admin |memory )?(reindex|export|import_?|curate|extract|audit|overview|doctor|forget|clear|remove|prune|delete|purge|verify|process"
    r"|to_(arrow|pandas|polars)|run|DELETE .*)(\W.*)?"
    r"|.*\.(clear|remove|export|delete)"
)
"""Slow, or the end of what there is to attack."""
HEALTH = ("GET /readyz", "GET /metrics", "GET /healthz")
"""About the whole server: scanned, but no answer to compare."""
PAGE = "GET /u/"
"""Pages hold tokens that were drawn: scanned, but no answer to compare."""

_MEASURED = re.compile(r'\\?"(took_ms|round_trip_ms|request_id|incarnation)\\?": ?[^,}\]]*')


class CrowdClock(StoppedClock):
    """Gives whoever calls ids of their own: the same for the same calls, whoever else there is."""

    def __init__(self) -> None:
        super().__init__()
        self.caller = ""
        self._given: Counter[str] = Counter()

    def new_id(self) -> str:
        self._given[self.caller] += 1
        noise = hashlib.sha256(self.caller.encode()).hexdigest()
        return f"{self._given[self.caller]:08x}-{noise[:4]}-7{noise[4:7]}-8{noise[7:10]}-{noise[10:22]}"


@dataclass(frozen=True, slots=True)
class Said:
    """A call and what became of it, for the repetition."""

    call: Call
    at: datetime
    answer: str


@dataclass(slots=True)
class Tried:
    """How often each operation was called, and answered, over all worlds."""

    called: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    offered: set[tuple[str, str]] = field(default_factory=set)


class World:
    """One store with its faces."""

    def __init__(
        self, settings: perdure.Settings, people: list[Person], stack: ExitStack, folder: Path, *, web: bool = True
    ) -> None:
        self.clock = CrowdClock()
        self.people = people
        folder.mkdir(parents=True, exist_ok=True)
        settings = replace(settings, space=SPACES[0], files_dir=str(folder / "files"))
        self.engine = stack.enter_context(perdure.open(settings=settings, clock=self.clock))
        self.patch = stack.enter_context(pytest.MonkeyPatch.context())
        self.faces: dict[str, Face] = {
            "Python": PythonFace(self.engine),
            "CLI": CliFace(self.engine, self.patch, folder),
        }
        if web:
            served = Web(self.engine, people, stack)
            self.faces |= {"HTTP": HttpFace(served), "MCP": McpFace(served)}

    def ask(self, call: Call) -> str:
        self.clock.caller = call.person.name_mark
        return self.faces[call.operation.face].ask(call)

    def digests(self, people: Iterable[Person]) -> dict[Person, Counter[str]]:
        """What is stored of each: every row, in a few bytes."""
        whose = {(one.space, one.user): one for one in people}
        found: dict[Person, Counter[str]] = {one: Counter() for one in whose.values()}
        with self.engine._store.snapshot() as snapshot:
            for table in rows.TABLES:
                for row in snapshot.rows(table):
                    one = whose.get((str(row[0]), str(row[1])))
                    if one is not None:
                        found[one][f"{table} {hashlib.sha256(repr(row).encode()).hexdigest()[:16]}"] += 1
        return found


def settle_in(world: World, person: Person) -> None:
    """Everybody says the same things under the same names, each with marks of their own; and the jobs of that are run."""
    world.clock.caller = person.name_mark
    for agent, own in zip(AGENTS, ("m", "c"), strict=False):
        memory = world.engine.memory(person.user, agent=agent, space=person.space)
        text, name = person.text_mark, person.name_mark
        for number in range(3):
            memory.append("user", f"I live in Austin near {text} street {number}", id=f"{own}{number}", session="monday")
            memory.append("assistant", f"Noted: {text}", id=f"{own}-{name}-{number}", session=f"d-{name}")
        memory.state.save("units", {"note": text})
        memory.state.save(f"k-{name}", text)
        entry = {"id": f"e-{name}", "timestamp": "2026-01-04T08:00:00+00:00", "sport": text, "n": 1}
        for series in ("steps", f"s-{name}"):
            memory.series(series).merge([entry], window=("2026-01-01T00:00:00+00:00", "2026-01-05T00:00:00+00:00"))
        memory.remember(f"Lives in Austin at {text}", entities=["place:Austin"], attribute="lives_in", value=f"Austin {text}")
        memory.remember(f"{name} is a friend from {text}", "PEOPLE", entities=[f"person:{name}"], fact_type="relationship")
        memory.remember(
            f"Maria is my sister, says {person.secret_mark}",
            "PEOPLE",
            entities=["person:Maria"],
            fact_type="relationship",
            visible_to=PRIVATE_TO,
        )
        memory.todos.add(f"Call Maria about {text}")
        memory.todos.tasks.start(f"Work for {text}")
        memory.instructions.add(f"Always answer with {text} units")
        memory.lessons.add(f"Prefer {text} charts", "user")
        memory.before(f"Plan my week with {name}", deadline_s=60)
    world.engine.process(60)


class Attack:
    """Random calls by some of the people; whatever comes back is looked through."""

    def __init__(self, round: Round, world: World, chance: random.Random, tried: Tried, *, left_out: frozenset[str]) -> None:
        self.round, self.world, self.chance, self.tried = round, world, chance, tried
        self.said: dict[Person, list[Said]] = {}
        self.without_web: tuple[Person, ...] = ()
        """Who does not ask over HTTP, because their calls will be repeated where that is not served."""
        self._operations = [[one for one in world.faces[name].operations if one.name not in left_out] for name in SHARES]
        self._shares = list(SHARES.values())
        self._weights = [[0.04 if SELDOM.fullmatch(one.name) else 1.0 for one in each] for each in self._operations]
        tried.offered |= {(one.face, one.name) for each in self._operations for one in each}

    def look_around(self, person: Person) -> None:
        """Everybody lists what they have: so the ids are known that they, and those who attack them, use."""
        operations = {one.name: one for one in self.world.faces["Python"].operations}
        for name in LISTS:
            for agent in AGENTS[:2]:
                self._ask(Call(person, agent, CHANNELS[0], operations[name], {}))

    def take_away(self, person: Person) -> None:
        """All that there is of one person, as a file: the call that answers with the most."""
        [export] = [one for one in self.world.faces["Python"].operations if one.name == "export"]
        self._ask(Call(person, AGENTS[0], CHANNELS[0], export, {"to": None}))

    def one(self, actors: list[Person]) -> None:
        chance = self.chance
        self.world.clock.move(seconds=STEP.total_seconds())
        [number] = chance.choices(range(len(self._shares)), self._shares)
        operation = self._next(number)
        able = actors
        if operation.face in ("HTTP", "MCP"):
            able = [one for one in actors if one.space == SPACES[0] and one not in self.without_web]
        person = chance.choice(able)
        draw = Draw(chance, person, self.world.clock.now(), confined=operation.face != "CLI")
        stranger = None
        others = [one for one in person.victims if one.user != person.user]
        if _names_a_user(operation) and others and chance.random() < STRANGER_SHARE:
            stranger = chance.choice((others[0], chance.choice(others)))  # the one that looks most alike is the first
        [agent], [channel] = chance.choices(AGENTS, (5, 3, 2)), chance.choices(CHANNELS, (4, 1))
        call = Call(person, agent, channel, operation, draw.arguments(operation), stranger)
        self._ask(call)

    def _next(self, face: int) -> Operation:
        operations = self._operations[face]
        if self.chance.random() < NEW_SHARE:
            return min(operations, key=lambda one: self.tried.called[one.face, one.name])
        return self.chance.choices(operations, self._weights[face])[0]

    def _ask(self, call: Call) -> None:
        operation, person = call.operation, call.person
        name = (operation.face, operation.name)
        person.told |= marks_in([repr(call.arguments)])
        try:
            answer = self.world.ask(call)
        except Exception as error:
            self.round.wrong("unhandled", f"{call!r}: {error!r}")
            answer = f"!! {type(error).__name__}"
        self.tried.called[name] += 1
        self.round.count(f"calls through {operation.face}")
        if _succeeded(answer):
            self.tried.answered[name] += 1
        self._look_through(call, answer)
        _harvest(call, answer)
        if person in self.said:
            self.said[person].append(Said(call, self.world.clock.now(), answer))

    def _look_through(self, call: Call, answer: str) -> None:
        found = marks_in([answer])
        if foreign := found - call.person.may_see():
            self.round.wrong("leak", f"{call!r} was answered with marks {sorted(foreign)} of others: {answer:.600}")
        if call.stranger is not None:
            if _succeeded(answer):
                self.round.wrong("leak", f"{call!r} was let in: {answer:.300}")
            self.round.met("a key of one user named another")
        if call.person.text_mark in found:
            self.round.met("somebody was shown what is theirs")
        own_agent = call.agent == PRIVATE_TO or not BY_AGENT.fullmatch(call.operation.name)
        if call.person.secret_mark in found and not own_agent:
            self.round.wrong("told another agent", f"{call!r} was told what is for `{PRIVATE_TO}` alone: {answer:.600}")


LISTS = (
    "todos.list",
    "todos.tasks.list",
    "instructions.list",
    "lessons.list",
    "conversation.sessions",
    "memories.list",
    "journal.decisions",
    "messages",
)
BY_AGENT = re.compile(
    r"(recall|context|(agent )?(before|prompt)|memories\.(list|get|foundation|history)|entities\.(get|list|links))"
)
"""Calls of Python that answer as one agent; others are about all that the user has."""


def _names_a_user(operation: Operation) -> bool:
    return "{user}" in operation.name or (operation.face == "MCP" and operation.name != "resources/list")


def _succeeded(answer: str) -> bool:
    return (
        not answer.startswith(("!", "4", "5", "1 ", "2 ", "3 "))
        and '"isError":true' not in answer
        and '"error":{' not in answer[:60]
    )


_KINDS = ("task", "todo", "lesson", "instruction", "decision", "session", "conversation", "suggestion", "memor", "remember")


def _harvest(call: Call, answer: str) -> None:
    """Keep the ids that were handed out: their owner will use them, and others will try them."""
    if not _succeeded(answer) or call.stranger is not None:
        return
    name = call.operation.name.lower()
    kind = next((one for one in _KINDS if one in name), "other")
    kind = {"conversation": "session", "memor": "memory", "remember": "memory"}.get(kind, kind)
    if kind == "memory":
        for key in re.findall(r'"(?:key|record_key|memory)": ?"([^"]*\|[^"]*)"', answer)[:6]:
            call.person.keep("memory", key)
    else:
        for id_ in re.findall(r'"id": ?"([^"]+)"', answer)[:6]:
            if kind != "lesson" or '"global"' not in answer:
                call.person.keep(kind, id_)
    for cursor in re.findall(r'"(?:next|previous)": ?"([^"]+)"', answer)[:2]:
        call.person.keep("cursor", cursor)


_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
_BEGAN = datetime.now(UTC)


def _comparable(answer: str) -> str:
    """Without what was measured, and without the time by the clock on the wall: the command line asks that one, and no world's
    clock is as late."""
    return _INSTANT.sub(lambda at: "now" if datetime.fromisoformat(at[0]) >= _BEGAN else at[0], _MEASURED.sub("", answer))


def repeat(round: Round, world: World, said: Iterable[Said]) -> None:
    """The same calls at the same times, where nobody else ever was: the answers are the same."""
    for one in said:
        world.clock.set(one.at)
        answer = world.ask(one.call)
        if one.call.operation.name in HEALTH or one.call.operation.name.startswith(PAGE):
            continue
        there, here = _comparable(one.answer), _comparable(answer)
        round.count("answers compared")
        if there != here:
            at = next(
                (n for n, pair in enumerate(zip(there, here, strict=False)) if pair[0] != pair[1]), min(len(there), len(here))
            )
            told = [f"…{text[max(0, at - 80) : at + 160]}…" for text in (there, here)]
            round.wrong("inferred", f"{one.call!r} at {one.at} answers among others {told[0]} and alone {told[1]}")
            return  # the stores have parted; what follows would only repeat it


def changed(before: Mapping[Person, Counter[str]], after: Mapping[Person, Counter[str]]) -> Iterable[str]:
    for person, held in before.items():
        if held != after[person]:
            gone, new = held - after[person], after[person] - held
            yield f"rows of {person}: {json.dumps(sorted(gone))[:300]} became {json.dumps(sorted(new))[:300]}"


def owner_of(person: Person) -> Owner:
    return Owner(person.space, person.user)
