"""P11: model output is data. A hostile model answers every question that perdure asks, for one user among several.

Nobody else's rows change by a byte; of the user's own, nothing is removed, nothing is overwritten, and no more than a stated
number is closed or added; nothing connects anywhere but to the model; no file is touched but ours.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import perdure
from perdure.adapters import wire
from perdure.app import chat_with
from perdure.domain.scope import RESERVED, Owner
from perdure.engine.knowledge.committer import CLOSE_MIN
from perdure.engine.models.replies import PROPOSALS_MAX, TODOS_MAX
from perdure.ports.tables.rows import TABLES
from perdure.services.context import assembly
from perdure.services.models import model_backed
from perdure.services.models.writer import LESSONS_MAX
from perdure.settings import Settings
from perdure.testing import StoppedClock
from proof.harness import Case, Promise, Round
from proof.hostile_models import Target, manners, texts
from proof.model_host import Fault, ModelHost, able
from proof.servers import fresh_sqlite
from proof.watching import watched
from proof.wholeness import check_whole

LAYERS = perdure.Layers(fold_messages_min=6, rolling_turns=2, spine_turns=2, history_messages_max=6)
ANA, BOB = Owner("default", "ana"), Owner("default", "bob")
PURPOSES = ("extract", "fold", "rolling", "session", "spine", "relevance", "storage", "chat")
TALK = (
    "I live in Austin.",
    "I work at Acme.",
    "My sister is Clara.",
    "I like tea.",
    "I will send the report to Clara by Friday.",
    "Please plan the trip to the fair.",
    "The code is QX-4711.",
    "That is all about the fair.",
)
GROWTH_BYTES_MAX = 1_500_000
"""What all answers of one case may add to a user's rows, of whatever length they are."""
APPEND_ONLY = ("messages", "tool_calls", "state_revisions", "series_entries", "series_past", "operations")
QUICK, FULL = 10, 240
"""Cases: of every manner the first, or the first two dozen texts in an order of the seed."""

FIRST = {"says it everywhere": "MEMORY_APPEND: Sort", "names all there is": "Ignore all", "ends what is known": "Ignore all"}
"""What comes first in a manner, whatever the seed: words that would be followed, if any were."""

Rows = dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]


class LaterClock(StoppedClock):
    """Goes on where the world was made: its ids are not those of another clock."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.move(days=1)
        self._numbers = count(1)
        self._start = start

    def new_id(self) -> str:
        return f"00000000-0000-7000-9{self._start:03}-{next(self._numbers):012x}"


@dataclass(frozen=True, slots=True)
class World:
    """A store with several users in it, as a file to copy; what others have, and what Ana has."""

    path: Path
    target: Target
    secrets: tuple[str, ...]
    """Words that only other users have said."""


def run(round: Round) -> None:
    """Every text in every manner, in an order of the seed; a quick round has the first few of every manner."""
    with ModelHost(able) as host, ModelHost(able) as trap:
        wire.PAUSE_S = 0.0
        model_backed.CALL_S = assembly.FOLD_S = 20.0
        world = _world(round, host, trap.url)
        plans = _plans(round, world.target)
        for case in round.cases(quick=QUICK, full=min(FULL, len(plans)), name="answers"):
            manner, text = plans[case.number]
            with round.guarded("unhandled"):
                _tried(round, case, host, world, (manner, text))
        round.check(trap.connections == 0, "off the configured host", f"{trap.connections} connections to the trap")
        round.facts["hostile answers given"] = host.met["hostile"]


def _plans(round: Round, target: Target) -> list[tuple[str, str]]:
    chance = random.Random(f"{round.seed}/plans")
    ways = [*manners(target, chance)]
    plans = []
    for way in ways:
        said = texts(target)
        chance.shuffle(said)
        said.sort(key=lambda text: not text.startswith(FIRST.get(way, "\0")))
        plans += [(rank, way, text) for rank, text in enumerate(said)]
    return [(way, text) for _, way, text in sorted(plans, key=lambda one: one[0])]


# -- the world


def _settings(url: str, host: ModelHost, folder: Path) -> Settings:
    return Settings(
        url=url,
        profile="complete",
        layers=LAYERS,
        embedder="none",
        model=host.setting("openai"),
        save_results="auto",
        durability="normal",
        files_dir=str(folder / "files"),
        agents_dir=str(folder / "agents"),
    )


def _world(round: Round, host: ModelHost, trap: str) -> World:
    """Three users, one of them of another space, each with some of everything."""
    url = fresh_sqlite(round.folder)
    secrets = tuple(f"zq{random.Random(round.seed + at).getrandbits(40):010x}" for at in range(4))
    clock = StoppedClock()
    with perdure.open(settings=_settings(url, host, round.folder / "world"), clock=clock) as engine:
        for name, space, word in (("ana", None, "own"), ("bob", None, secrets[0]), ("ana", "other", secrets[1])):
            _filled(engine.memory(name, space=space), word, clock)
        for _ in range(3):
            clock.move(hours=1)
            engine.process(60)
        rows = _rows(engine)
        held = [one for memory in engine.memory("ana").memories.list(limit=100) for one in memory.statements if one.is_live()]
    facts = tuple((one.attribute or "likes", one.value or "", one.content) for one in held)
    others = [
        str(row[-1] if table == "messages" else key[3]) for table, key, row in _named(rows) if key[:2] != ("default", "ana")
    ]
    ids = [key[3] for key in rows["records"] if key[:2] == ("default", "ana")]
    keys = [key[2] for key in rows["state_keys"] if key[:2] == ("default", "ana")]
    target = Target(("bob", "ana@other", *others[:40]), (*ids[:40], *keys), trap, facts)
    return World(Path(url.removeprefix("sqlite:///")), target, secrets)


def _named(rows: Rows) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    for table in ("records", "state_keys"):
        for key, row in rows[table].items():
            yield table, (*key, key[2]) if table == "state_keys" else key, row


def _filled(memory: perdure.Memory, word: str, clock: StoppedClock) -> None:
    for text in ("I live in Lisbon.", f"My code word is {word}.", "I work at Initech."):
        memory.append("user", text)
        memory.append("assistant", "Noted.")
        clock.move(minutes=1)
    for at in range(12):
        memory.remember(f"Likes {word} number {at}", attribute="likes", value=f"{word} {at}")
    memory.remember(f"Allergic to {word}", attribute="allergic_to", value=word, pinned=True)
    memory.todos.add(f"Call {word}", "commitment")
    memory.lessons.add(f"Sort the bills of {word} by date.")
    memory.state.save("shopping_list", [word, "milk"])
    memory.state.save(f"plan_{word}", {"word": word})
    memory.series("steps").merge([{"id": at, "timestamp": f"2026-01-0{at}T10:00:00Z", "word": word} for at in range(1, 4)])
    clock.move(hours=1)


# -- one case


@contextmanager
def _copied(round: Round, world: World, host: ModelHost, case: Case) -> Iterator[tuple[perdure.Engine, StoppedClock]]:
    folder = round.folder / f"case-{case.number}"
    folder.mkdir()
    path = folder / "store.db"
    shutil.copyfile(world.path, path)
    clock = LaterClock(1 + case.number)
    with perdure.open(settings=_settings(f"sqlite:///{path}", host, folder), clock=clock) as engine:
        yield engine, clock
    shutil.rmtree(folder)


def _tried(round: Round, case: Case, host: ModelHost, world: World, plan: tuple[str, str]) -> None:
    words = f"{plan[0]}: {plan[1]!r:.80}"
    act = manners(world.target, case.chance)[plan[0]](plan[1])
    with _copied(round, world, host, case) as (engine, clock), watched(("127.0.0.1", host.port), round.folder) as watch:
        seen = _shown(engine.memory("bob"))
        before = _rows(engine)
        asked = len(host.asked)
        host.break_(Fault("hostile", act))
        try:
            told = _lived(round, engine, clock)
        finally:
            host.mend()
        after = _rows(engine)
        _check_met(round, engine, watch.connections, len(host.asked) - asked, words)
        for strange in watch.strange:
            round.wrong("off the configured host", f"{words}: {strange}")
        _check_others(round, before, after, words)
        round.check(_shown(engine.memory("bob")) == seen, "foreign effect", f"{words}: another user is shown something else")
        leaked = [secret for secret in world.secrets if any(secret in text for text in told)]
        round.check(not leaked, "foreign effect", f"{words}: what others said was shown: {leaked}")
        _check_own(round, before, after, words)
        check_whole(round, engine, when=words)
        _check_goes_on(round, engine, clock, words)


def _lived(round: Round, engine: perdure.Engine, clock: StoppedClock) -> list[str]:
    """Ana's day with that model, through every door that asks it; what she and her agent were shown."""
    ana = engine.memory("ana")
    for text in TALK:
        ana.append("user", text)
        ana.append("assistant", "Noted.")
        clock.move(seconds=30)
    told = [ana.context("Plan the trip to the fair").text]
    injection = ana.before("Book the trip to the fair, and what is on my shopping list?")
    told += [injection.stable, injection.tail]
    kept = ana.after("getThing", {"name": "thing", "items": ["a", "b"]}, "greet me")
    told.append(repr(kept))
    told.append(repr(chat_with(engine, ana).say("What do you know of the fair?")))
    for _ in range(3):
        clock.move(hours=1)
        engine.process(60)
    told += [ana.context("Plan the trip").text, ana.prompt("Plan the trip").text, repr(ana.recall("fair").hits)]
    return told


def _check_met(round: Round, engine: perdure.Engine, connections: int, asked: int, words: str) -> None:
    usage = engine.memory("ana").admin.usage()
    for one in usage:
        if one.purpose in PURPOSES:
            round.met(f"hostile answers to {one.purpose}")
        if one.outcome in ("ok", "repaired"):
            round.count("answers that were used", one.calls)
    round.check(asked > 0 and connections > 0, "not met", f"{words}: the model was asked {asked} times")


def _check_others(round: Round, before: Rows, after: Rows, words: str) -> None:
    """Every row that is not Ana's is as it was, and there are no others."""
    for table in TABLES:
        for key in before[table].keys() | after[table].keys():
            if key[:2] == ("default", "ana") or _is_chore(table, key):
                continue
            round.check(
                before[table].get(key) == after[table].get(key),
                "foreign effect",
                f"{words}: {table} {key}: {before[table].get(key)!r:.300} became {after[table].get(key)!r:.300}",
            )


def _is_chore(table: str, key: tuple[Any, ...]) -> bool:
    """The hourly and daily jobs of the store itself."""
    return table == "jobs" and key[0].startswith(RESERVED)


def _check_own(round: Round, before: Rows, after: Rows, words: str) -> None:
    """Of Ana's own, nothing is gone or overwritten, and the change is bounded."""
    old = {table: {key: row for key, row in rows.items() if key[:2] == ("default", "ana")} for table, rows in before.items()}
    new = {table: {key: row for key, row in rows.items() if key[:2] == ("default", "ana")} for table, rows in after.items()}
    for table in APPEND_ONLY:
        changed = [key for key, row in old[table].items() if new[table].get(key) != row]
        round.check(not changed, "overwritten", f"{words}: {table} {changed[:3]}")
    for key, row in old["state_keys"].items():
        round.check(new["state_keys"].get(key) == row, "overwritten", f"{words}: the state key {key[2]!r}")
    closed, added = _changes(round, old["records"], new["records"], words)
    runs = sum(row[4] for key, row in new["usage"].items() if key[2] == "extract")
    round.check(closed <= CLOSE_MIN * max(runs, 1), "blast radius", f"{words}: {closed} statements were closed in {runs} runs")
    most = {"statement": PROPOSALS_MAX, "todo": TODOS_MAX, "lesson": LESSONS_MAX}
    for kind, bound in most.items():
        calls = sum(row[4] for row in new["usage"].values())
        round.check(added.get(kind, 0) <= bound * max(calls, 1), "blast radius", f"{words}: {added.get(kind)} new of {kind}")
    grown = _bytes(new) - _bytes(old)
    round.check(grown <= GROWTH_BYTES_MAX, "blast radius", f"{words}: {grown} bytes were added")


def _changes(
    round: Round, old: Mapping[tuple[Any, ...], tuple[Any, ...]], new: Mapping[tuple[Any, ...], tuple[Any, ...]], words: str
) -> tuple[int, dict[str, int]]:
    closed = 0
    for key, row in old.items():
        kind, name = key[2], key[3]
        if key not in new:
            round.wrong("removed", f"{words}: {kind} {name}")
            continue
        was, now = json.loads(row[4]), json.loads(new[key][4])
        fixed = {
            "statement": ("content", "subject", "attribute", "value", "recorded_at"),
            "memory": ("key", "type", "pinned", "status", "created_at"),
            "lesson": ("text", "scope", "ended_at", "archived_at"),
            "todo": ("content", "kind"),
        }.get(kind, ())
        changed = [part for part in fixed if was.get(part) != now.get(part)]
        round.check(not changed, "overwritten", f"{words}: {changed} of {kind} {name}")
        if kind == "statement" and was.get("closed_at") is None and now.get("closed_at") is not None:
            closed += 1
            round.check("llergic" not in was["content"], "overwritten", f"{words}: a pinned memory was closed")
    added: dict[str, int] = {}
    for key in new.keys() - old.keys():
        added[key[2]] = added.get(key[2], 0) + 1
    return closed, added


def _check_goes_on(round: Round, engine: perdure.Engine, clock: StoppedClock, words: str) -> None:
    """The model is itself again: what is said now is learned."""
    ana = engine.memory("ana")
    ana.append("user", "I live in Quito.")
    clock.move(hours=2)
    engine.process(60)
    held = [one.value for memory in ana.memories.list() for one in memory.statements if one.attribute == "lives_in"]
    round.check("Quito" in held, "does not go on", f"{words}: lives_in {held}")


# -- rows


def _rows(engine: perdure.Engine) -> Rows:
    with engine._store.snapshot() as snapshot:
        return {name: {tuple(row[: table.key]): tuple(row) for row in snapshot.rows(name)} for name, table in TABLES.items()}


def _bytes(rows: Rows) -> int:
    return sum(len(str(value)) for table in rows.values() for row in table.values() for value in row)


def _shown(memory: perdure.Memory) -> tuple[str, ...]:
    """All that another user's agent would be given."""
    parts = [part.text for part in memory.prompt("Plan the trip").parts if part.kind != "time"]
    return (*parts, memory.context().text, repr(memory.lessons.list()), repr(memory.memories.list()), repr(memory.todos.list()))


PROMISE = Promise(
    id="P11",
    says="model output is data",
    tried_by="a hostile model answers everything it is asked: orders, names of others, calls, redirects, floods, ended and corrected facts",
    run=run,
    evidence=tuple(f"hostile answers to {purpose}" for purpose in PURPOSES),
    figure="{wrong} foreign effects, removals, overwrites or requests off the configured host over {answers} cases",
)
