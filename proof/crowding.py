"""Callers who take places and give nothing: bodies that drip, connections that say nothing. And what the others hear meanwhile."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
WAIT_S = 20.0
SLOW_LENGTH = 1_000
"""The slow ones announce so many bytes, and send one."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What somebody else was answered while others held places."""

    who: str
    status: int
    """0: the connection was refused, or nothing came in time."""
    seconds: float


def ask(port: int, path: str, secret: str | None = None) -> Heard:
    """One request, on a connection of its own."""
    key = "" if secret is None else f"Authorization: Bearer {secret}\r\n"
    began = time.monotonic()
    status = 0
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=WAIT_S) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{key}\r\n".encode())
        told = line.recv(4_096)
        status = int(told.split(b" ")[1]) if told.startswith(b"HTTP/1.1 ") else 0
    return Heard(path if secret is None else f"{path} with a key", status, time.monotonic() - began)


@contextmanager
def slow_bodies(port: int, secret: str, count: int) -> Iterator[list[socket.socket]]:
    """So many requests whose bodies do not arrive, by one caller."""
    head = (
        "PUT /v1/users/ana/state/k HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {secret}\r\nContent-Length: {SLOW_LENGTH}\r\n\r\n{{"
    )
    with _held(port, count, head.encode()) as lines:
        yield lines


@contextmanager
def silent(port: int, count: int) -> Iterator[list[socket.socket]]:
    """So many connections on which nothing is said."""
    with _held(port, count, b"") as lines:
        yield lines


@contextmanager
def _held(port: int, count: int, said: bytes) -> Iterator[list[socket.socket]]:
    lines: list[socket.socket] = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):  # one that is refused or cut at once holds no place
                line = socket.create_connection((LOOPBACK, port), timeout=WAIT_S)
                lines.append(line)
                line.sendall(said)
        yield lines
    finally:
        for line in lines:
            with contextlib.suppress(OSError):
                line.close()


def answers(lines: list[socket.socket], seconds: float) -> list[int]:
    """What those who hold places are told within that time: a status, or 0 for a connection that is closed without a word."""
    until = time.monotonic() + seconds
    told = []
    for line in lines:
        line.settimeout(max(0.01, until - time.monotonic()))
        try:
            said = line.recv(4_096)
        except TimeoutError:
            continue  # still held
        except OSError:
            said = b""
        told.append(int(said.split(b" ")[1]) if said.startswith(b"HTTP/1.1 ") else 0)
    return told
