"""Places: who holds many leaves some for the others, among requests and among connections."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

import perdure
from perdure.interfaces.serving import guard
from perdure.interfaces.serving.options import Options
from perdure.interfaces.serving.places import Places, WaitingRoom
from tests.serving.server_world import World, call


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as engine:
        yield engine


@dataclass
class Held:
    """Requests that are going on: each waits in the application until it is let go."""

    world: World
    going: list[str] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.going.append(scope["state"]["access"].name)
        await self.done.wait()
        await Response("ok")(scope, receive, send)

    async def ask(self, path: str = "/v1/x", secret: str = "", client: str = "127.0.0.1") -> int:
        headers = [(b"host", b"localhost"), *([(b"authorization", f"Bearer {secret}".encode())] if secret else [])]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers, "client": (client, 1)}
        return (await call(self.world.guard.wrapping(self.app), {**scope, "scheme": "http"}, [])).status


async def first_answers(asked: list[asyncio.Task[int]], count: int) -> list[int]:
    """What so many of them answer, whichever come first: keys are looked up beside each other."""
    answers: list[int] = []
    for one in asyncio.as_completed(asked):
        answers.append(await one)
        if len(answers) == count:
            break
    return answers


def test_a_caller_with_many_requests_leaves_places_for_others_and_for_health_checks(
    engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "CONCURRENT_MAX", 16)
    weak, other, third = (engine.api_keys.create(name, permission="read") for name in ("weak", "other", "third"))

    async def crowd() -> None:
        held = Held(World(engine, Options()))
        many = [asyncio.create_task(held.ask(secret=weak.secret)) for _ in range(40)]
        assert await first_answers(many, 32) == [503] * 32
        assert held.going == [weak.key.id] * 8, "half of the places"
        others = [asyncio.create_task(held.ask(secret=other.secret)) for _ in range(3)]
        others.append(asyncio.create_task(held.ask(secret=third.secret)))
        others += [asyncio.create_task(held.ask(path)) for path in ("/healthz", "/readyz")]
        while len(held.going) < 14:
            await asyncio.sleep(0)
        held.done.set()
        assert [await one for one in others] == [200] * 6
        assert sorted([await one for one in many]) == [200] * 8 + [503] * 32
        assert await held.ask(secret=weak.secret) == 200, "and its own places are free again"

    asyncio.run(crowd())


def test_strangers_have_places_by_their_address(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "STRANGERS_MAX", 8)
    known = engine.api_keys.create("known")

    async def crowd() -> None:
        held = Held(World(engine, Options()))
        many = [asyncio.create_task(held.ask("/login", client="10.0.0.1")) for _ in range(20)]
        assert await first_answers(many, 16) == [503] * 16
        others = [
            asyncio.create_task(held.ask("/login", client="10.0.0.2")),
            asyncio.create_task(held.ask(secret=known.secret)),
        ]
        while len(held.going) < 6:
            await asyncio.sleep(0)
        held.done.set()
        assert [await one for one in others] == [200] * 2
        assert sorted([await one for one in many]) == [200] * 4 + [503] * 16

    asyncio.run(crowd())


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=200), st.integers(2, 20))
def test_whoever_holds_none_finds_a_place_unless_all_are_taken(steps: list[tuple[bool, str]], count: int) -> None:
    places, held = Places(count), Counter[str]()
    for takes, who in steps:
        free = count - held.total()
        if takes:
            found = places.take(who)
            assert found == (held[who] < free)
            held[who] += found
        elif held[who]:
            places.leave(who)
            held[who] -= 1
    assert held.total() <= count


class Line:
    """A connection that says nothing."""

    def __init__(self) -> None:
        self.closed = False

    def give_up(self) -> None:
        self.closed = True


def test_of_silent_connections_the_one_that_waited_longest_makes_room() -> None:
    room = WaitingRoom(per_address=3, in_all=5)
    mine = [Line() for _ in range(5)]
    for one in mine:
        room.enter(one, "10.0.0.1")
        room.enter(one, "10.0.0.1")
    assert [one.closed for one in mine] == [True, True, False, False, False]
    others = [Line() for _ in range(3)]
    for number, one in enumerate(others):
        room.enter(one, f"10.0.0.{number + 2}")
    assert [one.closed for one in mine[2:]] == [True, False, False], "there are too many in all"
    assert not any(one.closed for one in others)


def test_a_connection_with_a_request_waits_no_longer_and_is_not_closed() -> None:
    room = WaitingRoom(per_address=2, in_all=10)
    asking, silent = Line(), [Line() for _ in range(3)]
    room.enter(asking, "10.0.0.1")
    room.leave(asking)
    room.leave(asking)
    for one in silent:
        room.enter(one, "10.0.0.1")
    assert [one.closed for one in (asking, *silent)] == [False, True, False, False]
