"""How much and how often: bodies, requests of one caller, wrong keys, requests at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perdure
from perdure.interfaces.serving import guard, limits
from perdure.interfaces.serving.keyring import VISITS_MAX, Visits
from perdure.interfaces.serving.limits import BoundedBody, Buckets, Stopped
from perdure.interfaces.serving.options import Options
from perdure.interfaces.serving.request import IncomingRequest
from tests.serving.server_world import Hands, World

JSON = {"content-type": "application/json"}


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as engine:
        yield engine


# -- bodies


def small(engine: perdure.Engine) -> World:
    """100 bytes are taken."""
    return World(engine, Options(body_max_mb=100 / (1024 * 1024), no_auth=True))


@pytest.mark.parametrize(("size", "status"), [(99, 200), (100, 200), (101, 413)])
@pytest.mark.parametrize("stated", [True, False])
def test_a_body_of_exactly_so_many_bytes_is_taken(engine: perdure.Engine, size: int, status: int, stated: bool) -> None:
    headers = {**JSON, **({"content-length": str(size)} if stated else {"transfer-encoding": "chunked"})}
    answer = small(engine).ask("POST", "/v1/x", headers, [b"x" * (size - 60), b"x" * 60])
    assert answer.status == status
    if status == 413:
        assert answer.json["code"] == "limit_exceeded"
        assert "100 bytes" in answer.json["detail"]


def test_a_length_that_is_a_lie_does_not_help(engine: perdure.Engine) -> None:
    assert small(engine).ask("POST", "/v1/x", {**JSON, "content-length": "5"}, [b"x" * 101]).status == 413


@pytest.mark.parametrize("length", ["-1", "abc", "1e9", "9" * 30, "1,1"])
def test_a_length_that_is_no_number_is_refused(engine: perdure.Engine, length: str) -> None:
    assert small(engine).ask("POST", "/v1/x", {**JSON, "content-length": length}).status == 400


def test_an_import_may_bring_more(engine: perdure.Engine) -> None:
    headers = {"content-type": "application/x-ndjson"}
    assert small(engine).ask("POST", "/v1/users/ana/import", headers, [b"x" * 101]).status == 200
    for method, path in (
        ("PUT", "/v1/users/ana/state/import"),
        ("POST", "/v1/users/ana/series/import"),
        ("PUT", "/v1/users/ana/import"),
    ):
        assert small(engine).ask(method, path, JSON, [b"x" * 101]).status == 413, "not by its name alone"


def test_a_form_that_is_too_large_is_refused_before_its_token_is_looked_for(engine: perdure.Engine) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert small(engine).ask("POST", "/todos", headers, [b"x" * 101]).status == 413


def test_an_application_cannot_answer_for_a_body_that_broke_off(engine: perdure.Engine) -> None:
    """Frameworks make an answer of their own of whatever reading a body raises; the guard's is the one that is sent."""
    world = small(engine)

    async def careless(scope: Any, receive: Any, send: Any) -> None:
        try:
            while (await receive()).get("more_body"):
                pass
        except Exception:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"cannot parse"})

    world.app = world.guard.wrapping(careless)
    assert world.ask("POST", "/v1/x", JSON, [b"x" * 101]).status == 413


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_S", 0.0)
    asked = IncomingRequest({}, "POST", "/v1/x")

    async def never() -> Any:
        await asyncio.Event().wait()

    async def read() -> None:
        body = BoundedBody(asked, never, 100, 100)
        with pytest.raises(Stopped):
            await body.receive()
        assert body.refusal is not None
        assert (body.refusal.status, body.refusal.reason) == (408, "slow")

    asyncio.run(read())


@pytest.mark.parametrize(("each", "cut"), [(1, True), (4 * limits.BYTES_PER_S_MIN, False)])
def test_a_body_that_drips_is_cut_early_and_one_that_flows_is_not(each: int, cut: bool) -> None:
    """On a clock of its own: every 4 seconds a piece. Pauses are within the bound, but the whole is too slow."""
    loop = ManualLoop()
    body = BoundedBody(IncomingRequest({}, "POST", "/v1/x"), drip(loop, each, pieces=6), 10**6, 10**6)

    async def read() -> float:
        began = loop.time()
        try:
            await body.read()
        except Stopped:
            assert body.refusal is not None
            assert (body.refusal.status, body.refusal.reason) == (408, "slow")
        return loop.time() - began

    try:
        took = loop.run_until_complete(read())
    finally:
        loop.close()
    assert (body.refusal is not None) is cut
    assert took == pytest.approx(limits.STALL_S + 1 / limits.BYTES_PER_S_MIN if cut else 24)


class ManualLoop(asyncio.SelectorEventLoop):
    """Time goes on to the next thing to be done, without waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def time(self) -> float:
        return self._ahead

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._ahead = max(self._ahead, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def drip(loop: asyncio.AbstractEventLoop, each: int, pieces: int) -> Any:
    left = [pieces]

    async def receive() -> Any:
        await asyncio.sleep(4)
        left[0] -= 1
        return {"type": "http.request", "body": b"x" * each, "more_body": left[0] > 0}

    return receive


# -- rates


def test_one_caller_may_ask_so_often_and_then_has_to_wait(engine: perdure.Engine) -> None:
    world = World(engine, Options(rate=3, no_auth=True))
    assert [world.ask().status for _ in range(4)] == [200, 200, 200, 429]
    refused = world.ask()
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.json["code"] == "limit_exceeded"
    world.clock.now += 0.34
    assert [world.ask().status for _ in range(2)] == [200, 429]
    world.clock.now += 3_600
    assert [world.ask().status for _ in range(4)] == [200, 200, 200, 429]


def test_callers_do_not_wait_for_one_another(engine: perdure.Engine) -> None:
    secrets = [engine.api_keys.create(name).secret for name in ("a", "b")]
    world = World(engine, Options(rate=1))
    for secret in secrets:
        headers = {"authorization": f"Bearer {secret}"}
        assert [world.ask(headers=headers).status for _ in range(2)] == [200, 429]
    assert [world.ask(path="/readyz", client=client).status for client in ("10.0.0.1", "10.0.0.1", "10.0.0.2")] == [
        200,
        429,
        200,
    ]


def test_whether_the_process_lives_may_always_be_asked(engine: perdure.Engine) -> None:
    world = World(engine, Options(rate=1, no_auth=True))
    assert {world.ask(path="/healthz").status for _ in range(20)} == {200}


@pytest.mark.parametrize(("host", "rate"), [("127.0.0.1", 5_000), ("::1", 5_000), ("0.0.0.0", 100)])
def test_the_rate_is_generous_on_this_machine(host: str, rate: float) -> None:
    assert Options(host=host).rate_per_s == rate
    assert Options(host=host, rate=7).rate_per_s == 7


def test_who_guesses_keys_has_to_wait_but_nobody_else(engine: perdure.Engine) -> None:
    secret = engine.api_keys.create("right").secret
    world = World(engine)
    right, wrong = {"authorization": f"Bearer {secret}"}, {"authorization": "Bearer pdr_000000000000_guess"}
    assert world.ask(headers=right).status == 200
    found = [world.ask(headers=wrong).status for _ in range(11)]
    assert found == [401] * 10 + [429]
    assert world.ask(headers=wrong).headers["retry-after"] == "5"
    assert world.ask(headers=right).status == 200, "who was known stays known"
    assert world.ask(headers=wrong, client="10.0.0.9").status == 401
    world.clock.now += 5
    assert [world.ask(headers=wrong).status for _ in range(2)] == [401, 429]


@given(st.lists(st.floats(0, 3), max_size=60), st.integers(1, 5))
def test_in_no_stretch_of_time_more_is_given_than_the_burst_and_what_flowed_in(waits: list[float], rate: int) -> None:
    clock = Hands()
    buckets = Buckets(rate, rate, clock)
    began, taken = clock.now, 0
    for wait in waits:
        clock.now += wait
        expected = buckets.wait_s("a")
        got = buckets.take("a")
        assert got == expected
        taken += not got
        assert taken <= rate + (clock.now - began) * rate + 1e-6
        if got:
            clock.now += got + 1e-6
            assert not buckets.take("a"), "what it says is when it gives"
            taken += 1


def test_only_so_many_callers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.interfaces.serving.limits.CALLERS_MAX", 2)
    buckets = Buckets(1, 1, Hands())
    assert [buckets.take(name) for name in "abc"] == [0, 0, 0]
    assert [buckets.wait_s(name) > 0 for name in "abc"] == [False, True, True]


def test_too_many_requests_at_a_time_are_told_to_come_again(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "CONCURRENT_MAX", 0)
    world = World(engine)
    answer = world.ask()
    assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (503, "unavailable", "1")
    assert world.ask(path="/healthz").status == 200


def test_only_so_many_are_signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = Visits(Hands())
    first = visits.begin("k")
    for _ in range(VISITS_MAX):
        last = visits.begin("k")
    assert visits.find(first) is None
    assert visits.find(last) is not None


def test_a_visit_ends_after_twelve_hours() -> None:
    clock = Hands()
    visits = Visits(clock)
    name = visits.begin("k")
    clock.now += 12 * 3600 - 1
    assert visits.find(name) is not None
    clock.now += 1
    assert visits.find(name) is None


@pytest.mark.parametrize(
    "given",
    [{"rate": 0}, {"rate": -1}, {"rate": float("nan")}, {"body_max_mb": 0}, {"body_max_mb": 5_000}, {"allow_hosts": ("a b",)}],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(perdure.InvalidInput):
        Options(**given)


def test_refusals_are_counted_by_reason(engine: perdure.Engine) -> None:
    world = World(engine, Options(rate=1, no_auth=True))
    world.ask()
    world.ask()
    world.ask(headers={"host": "evil.example"})
    text = world.metrics.text().decode()
    assert 'perdure_guard_refusals_total{reason="rate"} 1.0' in text
    assert 'perdure_guard_refusals_total{reason="host"} 1.0' in text
    assert "evil" not in text


def test_a_right_key_is_let_in_while_wrong_ones_pour_in_from_its_address(engine: perdure.Engine) -> None:
    secret = engine.api_keys.create("right").secret
    world = World(engine)
    wrong = {"authorization": "Bearer pdr_000000000000_guess"}
    for _ in range(30):
        world.ask(headers=wrong)
    assert world.ask(headers={"authorization": f"Bearer {secret}"}).status == 200


def test_headers_that_are_too_large_are_refused(engine: perdure.Engine) -> None:
    world = World(engine)
    assert world.ask(headers={"x-much": "a" * 60_000}).status == 200
    assert world.ask(headers={"x-much": "a" * 70_000}).status == 431


def test_a_stranger_may_bring_no_more_than_a_key(engine: perdure.Engine) -> None:
    world = World(engine, Options())
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert world.ask("POST", "/login", form, [b"a" * 20_000]).status == 413
    assert world.ask("POST", "/login", form, [b"a" * 10_000]).status == 403, "it has no token"


def test_a_head_is_the_answer_to_a_get_without_its_body(engine: perdure.Engine) -> None:
    world = World(engine)
    found = world.ask("HEAD", "/v1/anything")
    assert (found.status, found.body) == (200, b"")
