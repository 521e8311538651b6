"""P9: any input gets an answer or a named refusal.

Every case fuzzes in a process of its own, on an engine of its own: what hangs, blows up or dies there is told by whoever waits.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import multiprocessing
import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import perdure
import perdure.aio
from perdure.documents import ContextManager
from perdure.domain.errors import ALL_ERRORS
from perdure.testing import StoppedClock
from proof import http_probes, long_inputs, mcp_probes, parsers, surface
from proof.fuzzing import MESSAGE_CHARS_MAX, Tally, given_to, judged, run_awaited, shown, told_of, watchdog
from proof.harness import Case, Promise, Round
from proof.hostile import Agreeing, Hostile, nested
from proof.surface import Call, Plausible, World

CASE_S = 900
"""Of processor time. A case that has used more and told nothing goes round where no watchdog reaches."""
STILL_S = 300.0
"""Of the clock. A case that has used next to no processor time for so long waits for something that never comes."""
STIRS_S = 0.5
POLL_S = 5.0
CASE_BYTES_MAX = 3 * 2**30
"""Memory that one case may take: an input that is small must not become large."""
SOUND_TRIES = 12
CASES = 190
LONG_TURNS = 120
"""A quick round reads one of so many shapes of long input."""
FACES = ("memory", "parsers", "parsers", "memory", "parsers", "sqlite", "parsers", "memory", "aio", "parsers")
"""What is fuzzed in turn: the store in memory and the parsers give the volume."""
INPUTS = {"memory": (500, 3_000), "parsers": (1_200, 8_500), "sqlite": (300, 1_500), "aio": (300, 1_500)}
"""Inputs of one case of a face, in a quick and in a full round."""
CORE: tuple[Any, ...] = (
    10**5_000,
    "\ud800",
    object(),
    nested(900),
    datetime.max.replace(tzinfo=UTC),
    Agreeing("\ud800"),
    float("nan"),
    b"",
    "x" * 5_000,
)
CORE_TEXTS = (
    "",
    "\0",
    "\ud800",
    "[" * 100_000,
    '{"a":' * 20_000,
    "9" * 5_000,
    '"\\ud800"',
    "NaN",
    "null",
    "[]",
    '{"a": 1e999}',
    "x" * 5_000,
)
FIRST = (0, FACES.index("sqlite"), FACES.index("aio"))
"""Cases that begin with every call as it wants to be called."""
NEVER_ANSWERS = frozenset({"Engine.distribute"})
"""Calls that are refused wherever they are made here: this one asks for a Citus cluster."""
NEVER_REFUSES = frozenset({"Tools.call_tool", "names.split_channel", "State.load"})
"""Calls that answer whatever they are given: a tool's refusal is an answer too."""
COPY = ("counts", "evidence", "wrongs", "facts")


def run(round: Round) -> None:
    answered: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    slowest = (0.0, "")
    full_calls = _surface_is_whole(round)
    _errors_are_short(round)
    _warm(round)
    for case in round.cases(quick=len(FACES), full=CASES, name="cases"):
        face = FACES[case.number % len(FACES)]
        told = _in_a_process(round, case, face)
        if told is None:
            continue
        part, tally = told
        _add(round, part, case)
        answered += tally.answered
        refused += tally.refused
        slowest = max(slowest, tally.slowest)
        round.met(f"fuzzed {face}")
    round.facts["slowest call"] = f"{slowest[1]} {slowest[0]:.2f} s"
    if round.begins:
        _reached(round, full_calls, answered, refused)
        http_probes.run(round)
        mcp_probes.run(round)


def _errors_are_short(round: Round) -> None:
    """Whatever a call puts into an error, what comes out can be shown: calls quote little, and this is behind them."""
    for kind in ALL_ERRORS:
        said = str(kind("a" * 50_000))
        round.check(len(said) <= MESSAGE_CHARS_MAX, "badly said", f"{kind.__name__} says {len(said)} characters")


def _surface_is_whole(round: Round) -> dict[str, Call]:
    """Every class of handles is reached from an engine; else something new would go untried."""
    with perdure.open(settings=perdure.Settings(url="memory:", files_dir=str(round.folder / "files"))) as engine:
        world = World(round.folder)
        world.engine, world.memory = engine, engine.memory("ana")
        world.chat = surface.chat_of(engine, world.memory)
        calls = [*surface.handle_calls(world), *surface.function_calls()]
    missed = surface.handle_classes() - {call.of for call in calls}
    round.check(not missed, "not tried", f"no call of {', '.join(sorted(missed))} is reached")
    round.facts["public calls"] = len(calls)
    return {call.full: call for call in calls}


def _warm(round: Round) -> None:
    """Load what the cases need before they part ways: word lists, the embedder, the readers of notes and tokens."""
    folder = round.folder / "warm"
    folder.mkdir()
    os.chdir(folder)
    with _world("memory", folder, rich=True) as (world, _, _):
        for parser in parsers.parsers(folder, world.memory):
            with suppress(perdure.PerdureError):
                parser.read(parser.samples[0])
    os.chdir("/")


def _reached(round: Round, calls: dict[str, Call], answered: Counter[str], refused: Counter[str]) -> None:
    """A fuzz that is refused at the door every time, or lets everything pass, tries nothing."""
    for name, call in calls.items():
        if not answered[name] and name not in NEVER_ANSWERS:
            round.wrong("not tried", f"{name} never answered: no input was sound enough to get past its checks")
        if call.fields and not refused[name] and name not in NEVER_REFUSES:
            round.wrong("not tried", f"{name} never refused anything")
    for name in PARSERS:
        if not answered[name]:
            round.wrong("not tried", f"the parser {name} never read anything")
    round.counts["calls and parsers"] = len(calls) + len(PARSERS)


PARSERS: list[str] = []


# -- one case, in a process of its own


def _in_a_process(round: Round, case: Case, face: str) -> tuple[Round, Tally] | None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_case, args=(there, round, case, face))
    process.start()
    there.close()
    try:
        if said := _hangs(here, process):
            round.wrong("hangs", f"a case of {face} {said}, told nothing, and no signal reached it")
            return None
        try:
            part, tally, names = here.recv()
        except EOFError:
            process.join(10)
            round.wrong("dies", f"the process of a case of {face} ended with {process.exitcode} and told nothing")
            return None
    finally:
        if process.is_alive():
            process.join(20)
        if process.is_alive():
            process.kill()
            process.join()
    PARSERS[:] = sorted({*PARSERS, *names})
    return part, tally


def _hangs(here: Connection, process: BaseProcess) -> str:
    """Wait until the case tells something; what is wrong if it never will."""
    seen, since = 0.0, time.monotonic()
    while not here.poll(POLL_S):
        used = _processor_s(process)
        if used > CASE_S:
            return f"used {used:.0f} s of processor time"
        if used > seen + STIRS_S:
            seen, since = used, time.monotonic()
        elif time.monotonic() > since + STILL_S:
            return f"stood still for {STILL_S:.0f} s"
    return ""


def _processor_s(process: BaseProcess) -> float:
    """Processor time that it has used; none of one that has ended."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    in_user_mode, in_kernel = stat.rpartition(")")[2].split()[11:13]
    return (int(in_user_mode) + int(in_kernel)) / os.sysconf("SC_CLK_TCK")


def _add(round: Round, part: Round, case: Case) -> None:
    round.counts.update(part.counts)
    round.evidence.update(part.evidence)
    # Counted already, as all counts are.
    room = max(0, 50 - len(round.wrongs))
    round.wrongs += [dataclasses.replace(one, case=case.number) for one in part.wrongs[:room]]


def _case(there: Any, round: Round, case: Case, face: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (CASE_BYTES_MAX, CASE_BYTES_MAX))
    part = Round(round.promise, round.seed, round.size, round.folder)
    tally = Tally()
    # Deep, so that a hostile `../..` stays inside.
    folder = round.folder / f"case-{case.number}" / "a" / "b" / "c" / "d"
    folder.mkdir(parents=True)
    os.chdir(folder)
    names: list[str] = []
    try:
        with watchdog():
            if face == "parsers":
                names = _fuzz_parsers(part, tally, case, folder)
            else:
                _fuzz_calls(part, tally, case, face, folder)
    except BaseException as error:
        part.wrong("dies", f"a case of {face} ended with {type(error).__name__}: {ascii(str(error))[:300]}")
    there.send((dataclasses.replace(part, tell=None, postgres=None), tally, names))  # type: ignore[arg-type]
    there.close()
    os.chdir("/")
    if not part.wrongs:
        shutil.rmtree(round.folder / f"case-{case.number}", ignore_errors=True)


def _fuzz_calls(round: Round, tally: Tally, case: Case, face: str, folder: Path) -> None:
    hostile = Hostile(case.chance)
    with _world(face, folder, rich=case.number < len(FACES)) as (world, engine, loop):
        plausible = Plausible(world, hostile)
        calls = surface.handle_calls(world) + ([] if world.is_async else surface.function_calls())
        if case.number:
            # These load libraries of half a second each; once is enough.
            calls = [call for call in calls if not call.name.startswith("to_")]
        if case.number in FIRST:
            _sound_pass(round, tally, calls, plausible, loop)
        if not case.number:
            _core_pass(round, tally, calls, plausible, loop)
        weights = [call.weight for call in calls]
        for _ in range(_inputs(round, face)):
            call = case.chance.choices(calls, weights)[0]
            _try(round, tally, call, plausible, loop, sound=False)
        done = engine.process(60)
        round.check(done.failed == 0 and done.parked == 0, "jobs fail", f"{face}: {done} on what was stored by the fuzz")
        dead = [job for user in engine.users() for job in engine.memory(user).admin.jobs("dead")]
        round.check(not dead, "jobs fail", f"{face}: {[(job.kind, job.last_error) for job in dead[:3]]}")
        findings = engine.verify().findings
        round.count("stores verified")
        for finding in findings[:5]:
            round.wrong("not whole", f"{face}: {finding}")


def _sound_pass(round: Round, tally: Tally, calls: list[Call], plausible: Plausible, loop: Any) -> None:
    """Each call as it wants to be called, until it answers, then until it refuses; what ends things comes last."""
    for call in sorted(calls, key=lambda one: (one.ends, one.full)):
        for _ in range(SOUND_TRIES):
            if _try(round, tally, call, plausible, loop, sound=True) == "answered":
                break
        for _ in range(SOUND_TRIES * 2):
            if not call.fields or tally.refused[call.full]:
                break
            _try(round, tally, call, plausible, loop, sound=False)


def _core_pass(round: Round, tally: Tally, calls: list[Call], plausible: Plausible, loop: Any) -> None:
    """Each argument of each call hostile in the plainest ways, while the others are as they should be."""
    for call in calls:
        for one in call.fields if call.weight == 10 and not call.ends else ():
            for value in CORE:
                args, named = given_to(call, plausible, plausible.hostile, sound=True)
                named.update(zip((field.name for field in call.fields), args, strict=False))
                named[one.name] = value
                _attempt(round, tally, call, plausible, loop, [], named)


def _try(round: Round, tally: Tally, call: Call, plausible: Plausible, loop: Any, *, sound: bool) -> str:
    args, named = given_to(call, plausible, plausible.hostile, sound=sound)
    return _attempt(round, tally, call, plausible, loop, args, named)


def _attempt(
    round: Round, tally: Tally, call: Call, plausible: Plausible, loop: Any, args: list[Any], named: dict[str, Any]
) -> str:
    world = plausible.world

    def attempt() -> Any:
        answer = call.reach(world)(*args, **named)
        return run_awaited(loop, answer) if loop is not None else answer

    return judged(round, tally, call.full, attempt, told=lambda: told_of(args, named), binds=call.binds(args, named))


def _inputs(round: Round, face: str) -> int:
    return round.sized(quick=INPUTS[face][0], full=INPUTS[face][1])


def _fuzz_parsers(round: Round, tally: Tally, case: Case, folder: Path) -> list[str]:
    chance = case.chance
    hostile = Hostile(chance)

    def read(parser: parsers.Parser, value: Any) -> None:
        judged(round, tally, parser.name, lambda: parser.read(value), told=lambda: shown(value), own=parser.own)

    with _world("memory", folder, rich=True) as (world, engine, _):
        found = parsers.parsers(folder, world.memory)
        for parser in found:
            for text in () if parser.trusted else CORE_TEXTS:
                value = text if isinstance(parser.samples[0], str) else text.encode(errors="surrogatepass")
                read(parser, value)
        weights = [one.weight for one in found]
        for number in range(_inputs(round, "parsers")):
            parser = found[number] if number < len(found) else chance.choices(found, weights)[0]
            value = parser.samples[0] if number < len(found) else parsers.given_to_parser(parser, hostile)
            read(parser, value)
        if round.size == "full" or case.number == FACES.index("parsers"):
            turns = LONG_TURNS if round.size == "quick" else CASES * FACES.count("parsers") // len(FACES)
            turn = chance.randrange(turns) if round.size == "quick" else _turn_of_parsers(case.number)
            long_inputs.read_long(round, found, chance, turn=turn, turns=turns)
        findings = engine.verify().findings
        round.check(not findings, "not whole", f"parsers: {findings[:3]}")
    return [one.name for one in found]


def _turn_of_parsers(number: int) -> int:
    """The how many-th case of parsers it is."""
    whole, rest = divmod(number, len(FACES))
    return whole * FACES.count("parsers") + FACES[:rest].count("parsers")


# -- worlds


@contextmanager
def _world(face: str, folder: Path, *, rich: bool) -> Iterator[tuple[World, perdure.Engine, Any]]:
    (folder / "document.json").write_bytes(surface.DOCUMENT)
    url = f"sqlite:///{folder / 'store.db'}" if face == "sqlite" else "memory:"
    settings = perdure.Settings(url=url, files_dir=str(folder / "files"), durability="normal")
    clock = StoppedClock(surface.NOW)
    world = World(folder)
    loop = asyncio.new_event_loop() if face == "aio" else None
    if loop is not None:
        opened = loop.run_until_complete(perdure.aio.open(settings=settings, clock=clock))
        engine = opened._sync
    else:
        engine = opened = perdure.open(settings=settings, clock=clock)
    try:
        surface.filled(engine, world, rich=rich)
        world.engine, world.memory = opened, opened.memory("ana", agent="coach", channel="discord:42")
        world.chat = surface.chat_of(engine, engine.memory("ana", agent="coach", channel="discord:42"))
        if loop is not None:
            _made_async(world, loop)
        exported = io.BytesIO()
        engine.memory("ana").export(exported)
        surface.EXPORTED[:] = [exported.getvalue()]
        engine.backup("backup.pdr")
        world.folder_contexts = ContextManager("contexts")
        world.stored_contexts = ContextManager(storage="store", engine=engine)
        world.folder_contexts.save(surface.document())
        yield world, engine, loop
    finally:
        if loop is not None:
            loop.run_until_complete(opened.close())
            loop.close()
        else:
            engine.close()


def _made_async(world: World, loop: Any) -> None:
    from perdure.aio import AsyncTurn

    world.is_async = True
    world.turn_class = AsyncTurn

    def in_a_turn(name: str) -> Callable[..., Any]:
        async def call(*args: Any, **named: Any) -> Any:
            async with world.memory.turn() as turn:
                return await getattr(turn, name)(*args, **named)

        return call

    world.in_a_turn = in_a_turn  # type: ignore[method-assign]


PROMISE = Promise(
    id="P9",
    says="any input gets an answer or a named refusal",
    tried_by="every public call and parser fuzzed in memory, on SQLite and awaited; 100 KB of each of many shapes to "
    "every parser, beside 50 KB of the same; raw HTTP on a socket; MCP on a pipe and over HTTP",
    run=run,
    evidence=(
        "fuzzed memory",
        "fuzzed sqlite",
        "fuzzed aio",
        "fuzzed parsers",
        "read 100 KB",
        "http refused",
        "http answered",
        "mcp answered",
        "mcp survived garbage",
    ),
    figure="{wrong} unhandled over {inputs} inputs to {calls and parsers} calls and parsers, and {long inputs} of 100 KB; 0 of {http requests} HTTP answers were 5xx; every one of {mcp ids} JSON-RPC ids was answered",
)
