"""A disk that fills up, and later has room again."""

import json

import pytest

KIB = 1024
MIB = 1024 * KIB
CHECKPOINT_BYTES = 1_000 * 4_096
"""SQLite moves the write-ahead log into the file when it has about that size."""


def filled(start_host, sqlite, manner: str, bytes_max: int) -> dict:
    host = start_host("fill_the_disk", sqlite.url, bytes_max, manner)
    report = json.loads(host.finish(seconds=120))
    print({name: value for name, value in report.items() if name not in ("acknowledged", "held_when_full")})
    return report


def assert_nothing_lost(report: dict, sqlite) -> None:
    assert set(report["errors"]) <= {"Unavailable", "LimitExceeded"}
    assert report["errors"], "the disk did fill up"
    acknowledged = report["acknowledged"]
    assert set(acknowledged[: report["acknowledged_when_full"]]) <= set(report["held_when_full"]), "reading goes on"
    assert report["findings"] == []
    with sqlite.open() as engine:
        memory = engine.memory("ana")
        held = [memory.conversation.message(acknowledged[0])]
        while page := memory.messages(10_000, after=held[-1].id):
            held.extend(page)
        assert set(acknowledged) <= {message.id for message in held}
        assert [message.seq for message in held] == list(range(1, len(held) + 1))
        assert engine.verify().findings == ()


@pytest.mark.parametrize("manner", ["append", "append_many", "threads"])
@pytest.mark.parametrize("bytes_max", [160 * KIB, 1 * MIB])
def test_a_full_disk_is_an_error_to_the_caller_and_writing_resumes_when_there_is_room(sqlite, start_host, manner, bytes_max):
    """The issue: disk full ends in `Unavailable` or `LimitExceeded`, loses nothing acknowledged, and needs no reopening."""
    report = filled(start_host, sqlite, manner, bytes_max)
    assert report["acknowledged_when_full"] > 0
    assert_nothing_lost(report, sqlite)


@pytest.mark.slow
def test_a_disk_too_full_for_a_checkpoint_loses_nothing(sqlite, start_host):
    """The log can still grow when the file itself cannot take it over any more; then it cannot either."""
    report = filled(start_host, sqlite, "append", 2 * CHECKPOINT_BYTES)
    assert report["sizes"]["perdure.db"] > CHECKPOINT_BYTES, "checkpoints went well at first"
    assert report["sizes"]["perdure.db-wal"] > 1.5 * CHECKPOINT_BYTES, "and failed in the end"
    assert_nothing_lost(report, sqlite)


@pytest.mark.parametrize("bytes_max", [0, 1 * KIB, 20 * KIB])
def test_a_store_that_finds_no_room_to_be_made_can_be_made_later(sqlite, start_host, bytes_max):
    host = start_host("open_on_a_full_disk", sqlite.url, bytes_max)
    assert host.finish(seconds=60).split() == ["Unavailable", "opened"]
    with sqlite.open() as engine:
        assert len(engine.memory("ana").messages()) == 1
        assert engine.verify().findings == ()
