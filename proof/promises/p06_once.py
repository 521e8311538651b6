"""P6: the same request twice is once. The answer to a commit is lost, and whoever asked asks again."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import perdure
from proof.accounts import Told, check_accounts
from proof.cancelling import cancel_calls
from proof.harness import Case, Promise, Round
from proof.ledgers import LedgerReader
from proof.network import Proxy, Weather
from proof.processes import Crew, crew, ended, kill, until
from proof.requests import KINDS, Request, made
from proof.servers import fresh_sqlite, fresh_store
from proof.wholeness import check_heals
from proof.workers.answering import Trap, When, ask_and_die, serve

PATIENCE_S = 60.0
WAYS = ("network", "process", "network", "process", "server")
LOSSES = (1, 1, 1, 2, 9)
"""How often in a row the answer is lost; the store itself asks eight times."""
NAMELESS = ("append", "save", "merge", "remember", "todo")
"""Also made without an id of the caller's: then nobody but the store can know that it asks again."""
SERVED = ("remember", "append", "append_many", "save", "todo", "merge_own", "save_own", "merge")
HANDED_ON = ("append", "save", "save_own", "merge", "merge_own")
"""Routes that hand the `Idempotency-Key` on to the call. The others note that a request was begun, carry it out, note that."""


def run(round: Round) -> None:
    with crew() as team:
        sqlite = perdure.Settings(url=fresh_sqlite(round.folder))
        with _network(round) as network:
            for case in round.cases(quick=30, full=300, name="requests"):
                way, turn = WAYS[case.number % len(WAYS)], case.number // len(WAYS)
                with round.guarded("refused"):
                    if way == "network":
                        network.lose(case)
                    elif way == "process":
                        _lose_a_process(round, case, sqlite, team)
                    else:
                        _lose_a_server(round, case, Server(sqlite, round.folder / f"server-{case.number}", team), turn)
                network.proxy.calm()
        with perdure.open(settings=sqlite) as engine:
            check_heals(round, engine, when="all requests on SQLite")
    cancel_calls(round)


def _kind(case: Case) -> str:
    """Every kind has its turn, in each of the two ways that have two cases of five."""
    turn, place = divmod(case.number, len(WAYS))
    return KINDS[(2 * turn + place // 2) % len(KINDS)]


def _lost(round: Round, how: str) -> None:
    """The fault was really met; a case in which nothing was cut is not counted."""
    round.met(how)
    round.count("answers lost")


# -- the network loses the answer of PostgreSQL


@dataclass(slots=True)
class Network:
    """PostgreSQL behind a proxy that can strike at a commit."""

    round: Round
    proxy: Proxy
    engine: perdure.Engine

    def lose(self, case: Case) -> None:
        chance = case.chance
        kind, after = _kind(case), chance.random() < 0.8
        nameless = kind in NAMELESS and chance.random() < 0.4
        losses = chance.choice(LOSSES)
        before = self.proxy.met["committed, and the answer withheld"]
        name = "cut after" if after else "cut before"
        self.proxy.set(Weather(name, at_commit=name, times=losses))
        when = f"PostgreSQL, {kind}{' without an id' if nameless else ''}, {name} {losses} times"
        memory = self.engine.memory(f"user-{case.number}")
        request = Request(0, case.number, kind)
        if nameless:
            self._ask_without_id(memory, request, when)
        else:
            told = Told()
            _ask_until_answered(memory, request, told)
            self.proxy.calm()
            # Further up, too, an answer may have been lost.
            for _ in range(chance.choice([0, 1, 2])):
                _ask_until_answered(memory, request, told)
            check_accounts(self.round, memory, told, when=when)
        if self.proxy.met["committed, and the answer withheld"] > before:
            _lost(self.round, "the answer of PostgreSQL's commit was lost")

    def _ask_without_id(self, memory: perdure.Memory, request: Request, when: str) -> None:
        """Asked once only. Whether or not it was answered: what is there is there once."""
        answered = True
        try:
            _made_without_id(memory, request)
        except perdure.Unavailable:
            answered = False
        self.proxy.calm()
        found = _times_found(memory, request)
        if not answered:
            self.round.count("left open: no id, no answer")
        self.round.check(found <= 1, "doubled", f"{when}: {found} times")
        self.round.check(found == 1 or not answered, "lost", f"{when}: answered, and not there")


@contextmanager
def _network(round: Round) -> Iterator[Network]:
    assert round.postgres is not None
    url = round.postgres()
    folder = parse_qs(urlsplit(url).query)["host"][0]
    proxy = Proxy(f"{folder}/.s.PGSQL.5432", random.Random(round.seed))
    try:
        with fresh_store(url) as direct:
            far = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
            settings = perdure.Settings(url=far, postgres_schema=direct.postgres_schema, postgres_pool_max=2)
            with perdure.open(settings=settings) as engine:
                yield Network(round, proxy, engine)
                proxy.calm()
                check_heals(round, engine, when="all requests on PostgreSQL")
    finally:
        proxy.close()


def _made_without_id(memory: perdure.Memory, request: Request) -> None:
    match request.kind:
        case "append":
            memory.append("user", request.text())
        case "save":
            memory.state.save(request.key, {"by": request.id})
        case "merge":
            memory.series(request.key).merge(request.entries(), window=request.window)
        case _:
            made(memory, request)


def _times_found(memory: perdure.Memory, request: Request) -> int:
    match request.kind:
        case "append":
            return sum(message.content == request.text() for message in memory.messages(100))
        case "save":
            return len(memory.state.history(request.key))
        case "merge":
            return sum(series.api_calls for series in memory.series.list())
        case "remember":
            return sum(one.mentions for held in memory.memories.list() for one in held.statements)
    return len(memory.todos.list(closed=True))


def _ask_until_answered(memory: perdure.Memory, request: Request, told: Told) -> None:
    """As a careful caller does: the same again, with the same id, until there is an answer."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        told.begin(request)
        try:
            told.done(request, made(memory, request))
        except perdure.Unavailable:
            if time.monotonic() > deadline:
                raise
            continue
        return


# -- the process dies


def _lose_a_process(round: Round, case: Case, settings: perdure.Settings, team: Crew) -> None:
    """It commits on SQLite and is killed before it can tell anybody; another one asks again."""
    chance = case.chance
    kind = _kind(case)
    when: When = "after" if chance.random() < 0.8 else "before"
    user, request, told = f"user-{case.number}", Request(0, case.number, kind), Told()
    told.begin(request)
    died = ended(team.start(ask_and_die, settings, user, request, when)) == -9
    if not round.check(died, "refused", f"SQLite, {kind}: the process ended by itself, without its commit"):
        return
    with perdure.open(settings=settings) as engine:
        memory = engine.memory(user)
        committed = _there(memory, request)
        words = f"SQLite, {kind}, killed {when} its commit"
        round.check(committed == (when == "after"), "torn", f"{words}: it is {'' if committed else 'not '}there")
        if committed:
            _lost(round, "a process was killed between its commit and its answer")
        for _ in range(chance.choice([1, 2, 3])):
            _ask_until_answered(memory, request, told)
        check_accounts(round, memory, told, when=words)


def _there(memory: perdure.Memory, request: Request) -> bool:
    """Whether anything of it is in the store."""
    return bool(
        memory.messages(1) or memory.state.keys() or memory.series.list() or memory.memories.list() or memory.todos.list()
    )


# -- the server dies


@dataclass(slots=True)
class Server:
    """The HTTP API in a process that may be killed."""

    settings: perdure.Settings
    folder: Path
    team: Crew
    trap: Trap | None = None
    port: int = 0
    process: Any = None
    statuses: list[int] = field(default_factory=list)

    def start(self) -> Server:
        self.folder.mkdir(exist_ok=True)
        path = self.folder / ("trapped" if self.trap else "sound")
        self.process = self.team.start(serve, self.settings, path, self.trap)
        reader = LedgerReader(path)

        def listening() -> bool:
            for _, port in reader.new():
                self.port = port
            return bool(self.port) or not self.process.is_alive()

        until(listening, "the server listens")
        return self

    def ask(self, user: str, request: Request) -> tuple[int, Any]:
        """The status and the answer; 0 if there was none."""
        method, path, body = _as_http(user, request)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            # It becomes the id of a message that has none.
            key = request.part_id(0) if request.kind == "append" else request.id
            headers = {"Content-Type": "application/json", "Idempotency-Key": key}
            connection.request(method, path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (http.client.HTTPException, OSError):
            return 0, None
        finally:
            connection.close()


def _as_http(user: str, request: Request) -> tuple[str, str, Any]:
    base = f"/v1/users/{user}"
    match request.kind:
        case "append":
            return "POST", f"{base}/messages", {"role": "user", "content": request.text()}
        case "append_many":
            many = [{"role": "user", "content": request.text(one), "id": request.part_id(one)} for one in range(request.parts)]
            return "POST", f"{base}/messages/batch", {"messages": many}
        case "remember":
            return (
                "POST",
                f"{base}/memories",
                {"content": request.text(), "attribute": f"fact_{request.id}", "value": request.id},
            )
        case "todo":
            return "POST", f"{base}/todos", {"content": request.text()}
        case "save" | "save_own":
            return "PUT", f"{base}/state/{request.key}", {"value": {"by": request.id, "text": request.text()}}
    start, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one)) for one in request.window)
    return (
        "POST",
        f"{base}/series/{request.key}/entries",
        {"entries": request.entries(), "window": {"start": start, "end": end}},
    )


def _lose_a_server(round: Round, case: Case, second: Server, turn: int) -> None:
    """It is killed at one of the commits of a request, which is then repeated to the next server, under the same key."""
    chance, settings = case.chance, second.settings
    kind = SERVED[turn % len(SERVED)]
    handed_on = kind in HANDED_ON
    at = 1 if handed_on else (2, 3, 1)[turn % 3]
    when: When = "before" if chance.random() < 0.25 else "after"
    user, request, told = f"user-{case.number}", Request(0, case.number, kind), Told()
    words = f"HTTP, {kind}, the server killed {when} commit {at}"
    told.begin(request)
    first = Server(settings, second.folder, second.team, Trap(when, at)).start()
    status, _ = first.ask(user, request)
    died = ended(first.process) == -9
    if not round.check(died and status == 0, "refused", f"{words}: it answered {status} instead"):
        return
    _lost(round, "the server was killed with a request in hand")
    second.start()
    try:
        for _ in range(2):
            status, answer = second.ask(user, request)
            if handed_on:
                told.begin(request)
                round.check(status in (200, 201), "refused", f"{words}: the repeat is answered with {status} {answer!r:.300}")
            else:
                # What was begun and may have been done is never done again behind the caller's back.
                round.check(status in (201, 409), "refused", f"{words}: the repeat is answered with {status} {answer!r:.300}")
                round.count("told to look before repeating", status == 409)
    finally:
        kill(second.process)
    with perdure.open(settings=settings) as engine:
        memory = engine.memory(user)
        check_accounts(round, memory, told, when=words)
        # The first commit notes that it is begun, the second carries it out, the third notes that it is done.
        if handed_on or at == 3 or (at, when) == (2, "after"):
            round.check(_there(memory, request), "lost", f"{words}: it is not there")


PROMISE = Promise(
    id="P6",
    says="the same request twice is once",
    tried_by="the answer of a commit lost (PostgreSQL's by the network, SQLite's with its process, HTTP's with the server), "
    "and the request repeated under the same id; async calls, turns and openings cancelled while a commit of theirs is held",
    run=run,
    evidence=(
        "the answer of PostgreSQL's commit was lost",
        "a process was killed between its commit and its answer",
        "the server was killed with a request in hand",
        "cancelled in the middle of a commit",
        "a turn was given back",
    ),
    figure="{wrong} doubled, lost, torn or left open over {answers lost} requests whose answer was lost, of {requests}, and "
    "{cancelled calls} cancelled calls",
)
