"""How long and how much of a head is waited for, before there is a request that the guard could see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from perdure.interfaces.serving import runner
from perdure.interfaces.serving.runner import Patient

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Timer:
    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds = seconds
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """Notes what is to be done later, and starts nothing."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, call))
        return self.timers[-1]

    def create_task(self, work: Any, **_: Any) -> Any:
        work.close()
        return type("Task", (), {"add_done_callback": lambda *_: None})()


class Wire:
    def __init__(self) -> None:
        self.closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def write(self, _: bytes) -> None:
        if self.closed:
            raise RuntimeError("unable to perform operation on a transport that is closed")

    def resume_reading(self) -> None: ...

    def pause_reading(self) -> None: ...


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def protocol(loop: Loop, wire: Wire) -> Patient:
    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    config = Config(app, http=Patient, ws="none", log_config=None)
    config.load()
    made = Patient(config, ServerState(), {}, loop)  # type: ignore[arg-type]
    made.connection_made(wire)  # type: ignore[arg-type]
    return made


def test_a_connection_that_says_nothing_is_closed_after_a_while(protocol: Patient, loop: Loop, wire: Wire) -> None:
    [timer] = loop.timers
    assert timer.seconds == runner.HEAD_S
    timer.call()
    assert wire.closed


def test_dripping_a_head_gains_no_time(protocol: Patient, loop: Loop, wire: Wire) -> None:
    for byte in HEAD:
        protocol.data_received(bytes([byte]))
    assert len(loop.timers) == 1
    loop.timers[0].call()
    assert wire.closed


def test_a_head_that_is_complete_is_not_waited_for(protocol: Patient, loop: Loop, wire: Wire) -> None:
    protocol.data_received(HEAD + b"\r\n")
    assert loop.timers[0].cancelled
    assert not wire.closed


def test_a_head_without_end_is_closed(protocol: Patient, wire: Wire) -> None:
    protocol.data_received(HEAD)
    for _ in range(70):
        if not wire.closed:
            protocol.data_received(b"X: " + b"y" * 1_000 + b"\r\n")
    assert wire.closed


def test_a_body_that_comes_with_its_head_is_no_part_of_it(protocol: Patient, wire: Wire) -> None:
    protocol.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + b"x" * 100_000)
    assert not wire.closed


def test_the_rest_of_a_body_that_was_refused_is_thrown_away_but_not_for_ever(
    protocol: Patient, loop: Loop, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "REST_BYTES_MAX", 100_000)
    protocol.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n")
    protocol.cycle.response_complete = True
    protocol.data_received(b"x" * 90_000)
    assert not wire.closed
    assert not loop.timers[-1].cancelled
    protocol.data_received(b"x" * 20_000)
    assert wire.closed


def test_what_is_written_after_the_end_of_a_connection_is_no_error(protocol: Patient, wire: Wire) -> None:
    protocol.transport.write(b"HTTP/1.1 200 OK\r\n")
    wire.close()
    protocol.transport.write(b"too late")
