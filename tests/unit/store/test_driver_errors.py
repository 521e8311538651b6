"""Every error of both drivers has a meaning; none reaches a caller raw."""

from __future__ import annotations

import apsw
import psycopg
import psycopg_pool
import pytest

from perdure.adapters.postgres import connections as postgres
from perdure.adapters.sqlite import connections as sqlite
from perdure.domain.errors import PerdureError, Unavailable

APSW = [one for one in vars(apsw).values() if isinstance(one, type) and issubclass(one, apsw.Error) and one is not apsw.Error]
PSYCOPG = [one for one in vars(psycopg.errors).values() if isinstance(one, type) and issubclass(one, psycopg.Error)]
POOL = [one for one in vars(psycopg_pool).values() if isinstance(one, type) and issubclass(one, psycopg.Error)]


@pytest.mark.parametrize("error", APSW)
def test_every_sqlite_error_is_mapped_by_its_own_class(error: type[apsw.Error]) -> None:
    assert error in sqlite.MEANING
    assert isinstance(sqlite.in_our_words(error("secret text")), PerdureError)


def test_every_postgres_error_is_mapped_and_quotes_no_row() -> None:
    for error in (*PSYCOPG, *POOL):
        ours = postgres.in_our_words(error("DETAIL: Key (content)=(secret text)"))
        assert isinstance(ours, PerdureError), error
        assert "secret" not in str(ours), error


def test_there_is_something_to_map() -> None:
    assert len(APSW) > 35
    assert len(PSYCOPG) > 200
    assert len(POOL) == 3


def test_a_connection_error_can_be_retried_and_keeps_its_cause() -> None:
    with pytest.raises(Unavailable) as caught, postgres.translated():
        raise psycopg.OperationalError("server closed the connection unexpectedly")
    assert caught.value.retriable
    assert isinstance(caught.value.__cause__, psycopg.OperationalError)
