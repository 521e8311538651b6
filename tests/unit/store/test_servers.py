"""The servers of a URL: which is asked first, and when connections are given up together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from perdure.adapters.postgres.connections import AnswerLost, DeadlineExceeded, Servers

ONE = "postgresql://ana:secret@db1/agents"
THREE = "postgresql://ana:secret@db1:6001,db2:6002,db3:6003/agents"
PRIMARY = f"{THREE}?target_session_attrs=read-write"
LOST = psycopg.OperationalError("server closed the connection unexpectedly")
SILENT = DeadlineExceeded(5.0)
READ_ONLY = errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction")
REFUSED = errors.UniqueViolation("duplicate key")


def _connection(host: str, port: str, *, closed: bool = True, made_at: float = 1.0) -> Any:
    return SimpleNamespace(place=(host, port), closed=closed, made_at=made_at)


def _hosts(servers: Servers) -> tuple[object, object]:
    parts = conninfo_to_dict(servers.address())
    return parts["host"], parts["port"]


def test_the_url_of_one_server_is_used_as_it_is() -> None:
    servers = Servers(ONE, deadline_s=30.0)
    assert servers.left(_connection("db1", "5432"), LOST)
    assert servers.address() == ONE
    assert servers.options()["connect_timeout"] == 30


def test_one_of_several_servers_has_a_part_of_the_time_and_never_less_than_the_driver_allows() -> None:
    assert Servers(THREE, deadline_s=30.0).options()["connect_timeout"] == 3
    assert Servers(THREE, deadline_s=0.5).options()["connect_timeout"] == 2


def test_the_server_that_failed_is_asked_last_from_then_on() -> None:
    servers = Servers(PRIMARY, deadline_s=30.0)
    assert servers.left(_connection("db1", "6001"), LOST)
    assert _hosts(servers) == ("db2,db3,db1", "6002,6003,6001")
    assert conninfo_to_dict(servers.address())["password"] == "secret"
    assert conninfo_to_dict(servers.address())["target_session_attrs"] == "read-write"


def test_servers_that_share_a_port_keep_it() -> None:
    servers = Servers("postgresql:///agents?host=db1,db2", deadline_s=30.0)
    assert servers.left(_connection("db1", "5432"), LOST)
    assert _hosts(servers)[0] == "db2,db1"
    servers = Servers("postgresql:///agents?host=db1,db2&port=7000", deadline_s=30.0)
    assert servers.left(_connection("db1", "7000"), LOST)
    assert _hosts(servers) == ("db2,db1", "7000,7000")


@pytest.mark.parametrize(
    ("url", "error", "closed", "given_up"),
    [
        (ONE, LOST, True, True),
        (ONE, AnswerLost(None, None), True, True),
        (ONE, AnswerLost(None, None), False, False),
        (ONE, SILENT, True, False),
        (ONE, READ_ONLY, False, False),
        (THREE, SILENT, True, False),
        (THREE, READ_ONLY, False, False),
        (PRIMARY, SILENT, True, True),
        (PRIMARY, READ_ONLY, False, True),
        (PRIMARY, REFUSED, False, False),
    ],
)
def test_other_connections_are_given_up_with_one_that_shows_that_the_server_is_gone(
    url: str, error: Exception, closed: bool, given_up: bool
) -> None:
    """A server that is slow is not gone, unless the URL asks for whichever server is the primary."""
    assert Servers(url, deadline_s=30.0).left(_connection("db1", "6001", closed=closed), error) is given_up


def test_connections_are_given_up_once_however_many_calls_find_out() -> None:
    servers = Servers(PRIMARY, deadline_s=30.0)
    first, second = _connection("db1", "6001"), _connection("db1", "6001")
    assert servers.left(first, LOST)
    assert not servers.left(second, LOST)
