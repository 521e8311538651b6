"""The indexes that are kept in memory: how much they may take, who is dropped, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import perdure
from perdure import NewMessage
from perdure.services.index.cache import usual_bytes
from perdure.testing import StoppedClock

SMALL, LARGE = 20, 3_000


def opened(folder: Path, room: int) -> perdure.Engine:
    settings = perdure.Settings(url=f"sqlite:///{folder / 'a.db'}", index_cache_bytes=room)
    return perdure.open(settings=settings, clock=StoppedClock())


def talked(engine: perdure.Engine, user: str, messages: int) -> None:
    texts = [f"The ferry of {user} leaves pier {number} at nine." for number in range(messages)]
    for start in range(0, messages, 500):
        engine.memory(user).append_many([NewMessage("user", text) for text in texts[start : start + 500]])


def held(engine: perdure.Engine) -> perdure.types.IndexCacheReport:
    found = engine.doctor().indexes
    assert found is not None
    return found


def test_what_is_held_in_memory_stays_within_its_setting_and_is_told(tmp_path: Path) -> None:
    with opened(tmp_path, 1) as engine:
        for user in ("ana", "ben"):
            talked(engine, user, SMALL)
            engine.process(60)
            engine.memory(user).recall("Which pier?")
        report = held(engine)
        assert (report.bytes_max, report.users) == (1, 1)
        assert report.evicted >= 1
        assert report.misses >= 2


def test_asked_again_an_index_is_there(tmp_path: Path) -> None:
    with opened(tmp_path, 0) as engine:
        talked(engine, "ana", SMALL)
        engine.process(60)
        engine.memory("ana").recall("Which pier?")
        before = held(engine)
        engine.memory("ana").recall("Which ferry?")
        after = held(engine)
        assert after.hits > before.hits
        assert after.misses == before.misses
        assert after.hit_rate > before.hit_rate
        assert after.bytes_max == usual_bytes()
        assert 0 < after.bytes < after.bytes_max


def test_a_user_with_very_much_evicts_nobody_else_beyond_half_of_the_room(tmp_path: Path) -> None:
    with opened(tmp_path, 0) as engine:
        for user, messages in (("ana", SMALL), ("ben", SMALL), ("giant", LARGE), ("titan", LARGE)):
            talked(engine, user, messages)
            while engine.process(60).ran:
                pass
            engine.memory(user).recall("Which pier?")
        sizes = held(engine).bytes
    with opened(tmp_path, sizes // 4) as engine:
        for user in ("ana", "ben", "giant", "titan"):
            engine.memory(user).recall("Which pier?")
        report = held(engine)
        assert (report.users, report.evicted) == (3, 1)
        for user in ("ana", "ben", "titan"):
            engine.memory(user).recall("Which pier?")
        assert held(engine).misses == report.misses


def test_room_below_nothing_is_refused() -> None:
    with pytest.raises(perdure.InvalidInput, match="`index_cache_bytes` = -1 must be 0"):
        perdure.Settings(index_cache_bytes=-1)
