"""No network: whatever would leave this process through a socket fails, and says what it tried.

The driver of PostgreSQL speaks through a library of its own and not through Python's sockets, so a store there goes on working.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest

REACHING = ("connect", "connect_ex", "sendto")
LOOKING_UP = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "create_connection")


def cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every socket refuse to reach anything until the end of the test."""

    def refuse(*args: Any, **_: Any) -> Any:
        raise AssertionError(f"something tried to reach the network: {args[-1]!r}")

    for name in REACHING:
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in LOOKING_UP:
        monkeypatch.setattr(socket, name, refuse)
    with socket.socket() as one, pytest.raises(AssertionError, match="network"):
        one.connect(("127.0.0.1", 9))
    with pytest.raises(AssertionError, match="network"):
        socket.create_connection(("127.0.0.1", 9))
