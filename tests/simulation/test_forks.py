"""Processes that fork while the engine is open and in use."""

import pytest


@pytest.mark.parametrize("manner", ["fork", "background", "family", "threads", "multiprocessing"])
def test_parent_and_children_go_on_writing_after_a_fork(backend, tmp_path, start_host, manner):
    """The issue: an open engine survives `os.fork`, in parent and child; a child that ends does not disturb its parent."""
    ledger = tmp_path / "ledger"
    host = start_host("fork_during_writes", backend.url, backend.schema, ledger, manner)
    host.finish(seconds=240)

    acknowledged = ledger.read_text().split()
    assert len(set(acknowledged)) == len(acknowledged)
    assert_nothing_lost(backend, acknowledged)


def assert_nothing_lost(backend, acknowledged: list[str]) -> None:
    with backend.open() as engine:
        held = engine.memory("ana").messages(10_000)
        assert [message.seq for message in held] == list(range(1, len(held) + 1))
        assert {message.id for message in held} == set(acknowledged)
        assert engine.verify().findings == ()


def test_two_threads_that_fork_at_the_same_time_lose_nothing(sqlite, tmp_path, start_host):
    """What one fork holds back must stay held back until the other one has happened, too."""
    ledger = tmp_path / "ledger"
    start_host("fork_at_a_bad_moment", sqlite.url, ledger, "fork").finish(seconds=90)
    acknowledged = ledger.read_text().split()
    assert set(acknowledged) == {"between", "before", *(f"after-{number}" for number in range(5))}, "nobody was refused"
    assert_nothing_lost(sqlite, ["first", *acknowledged])


@pytest.mark.slow
def test_a_fork_while_another_thread_purges_loses_nothing(sqlite, tmp_path, start_host):
    """The connection that purges is one of those the child must not inherit unawares."""
    ledger = tmp_path / "ledger"
    host = start_host("fork_at_a_bad_moment", sqlite.url, ledger, "purge")
    host.expect("open")
    holder = start_host("hold_the_write_lock", tmp_path / "perdure.db")
    holder.expect("held")
    host.tell("go on")
    host.expect("forked")
    holder.tell("let go")
    holder.finish(seconds=30)
    host.finish(seconds=120)
    assert_nothing_lost(sqlite, ["first", *ledger.read_text().split()])
