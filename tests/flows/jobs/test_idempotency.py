"""The same request twice is once (P6): answers get lost, and callers and stores repeat what they asked for."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import perdure
from perdure.adapters.postgres.store import PostgresStore
from perdure.testing import FailingStore, StoppedClock

WINDOW = ("2025-01-01", "2025-01-02")


def losing(engine: perdure.Engine) -> tuple[FailingStore, perdure.Engine]:
    store = FailingStore(engine._store)
    return store, perdure.Engine(store, StoppedClock(), perdure.Settings(url="memory:"))  # type: ignore[arg-type]


def test_a_save_repeated_with_its_request_makes_one_revision(backend: Any) -> None:
    store, engine = losing(backend.open())
    state = engine.memory("ana").state
    store.lose_next_answer()
    with pytest.raises(perdure.Unavailable):
        state.save("k", [1], request="r1")
    assert state.save("k", [1], request="r1") == 1
    assert state.save("k", [2], request="r2") == 2
    assert state.save("k", [1], request="r1") == 1
    assert state.load("k") == [2]
    with pytest.raises(perdure.Conflict, match="another value"):
        state.save("k", [3], request="r1")


def test_a_merge_repeated_with_its_request_is_booked_once_and_answers_the_same(backend: Any) -> None:
    store, engine = losing(backend.open())
    series = engine.memory("ana").series("s")
    entries = [{"id": 1, "timestamp": 1}, {"id": 1, "timestamp": 2}, {"id": 3}]
    store.lose_next_answer()
    with pytest.raises(perdure.Unavailable):
        series.merge(entries, window=WINDOW, request="r1")
    again = series.merge(entries, window=WINDOW, request="r1")
    assert (again.added, again.duplicates, again.updated, len(again.rejected), again.total_count) == (1, 1, 1, 1, 1)
    about = series.about()
    assert (about.api_calls, about.fetched, about.duplicates, about.count) == (1, 2, 1, 1)
    assert len(series.history("1")) == 1


def test_postgres_repeats_what_it_was_asked_when_the_commit_is_not_answered(
    postgres_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit happens, the connection breaks before the answer: the store runs the work again, once is stored."""
    settings = perdure.Settings(url=postgres_url, postgres_schema=postgres_schema)
    with perdure.open(settings=settings) as engine:
        ana = engine.memory("ana")
        ana.append("user", "first")
        real, broken = PostgresStore._transact_once, []

        def breaking(self: PostgresStore, begin: str, owner: Any, work: Any, seconds: float) -> Any:
            result = real(self, begin, owner, work, seconds)
            if begin == "BEGIN" and len(broken) % 2 == 0:
                broken.append(owner)
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            broken.append(owner)
            return result

        monkeypatch.setattr(PostgresStore, "_transact_once", breaking)
        ana.append("user", "second")
        ana.append_many([perdure.NewMessage("user", "third"), perdure.NewMessage("user", "fourth")])
        assert ana.state.save("k", 1) == 1
        assert ana.state.delete("k") is True
        assert ana.state.restore("k", 1) == 3
        assert ana.series("s").merge([{"id": 1, "timestamp": 1}]).added == 1
        monkeypatch.undo()
        assert len(broken) >= 12
        assert [message.content for message in ana.messages()] == ["first", "second", "third", "fourth"]
        assert len(ana.state.history("k")) == 3
        assert ana.series("s").about().api_calls == 1
        assert engine.process().failed == 0
        assert engine.verify().clean
