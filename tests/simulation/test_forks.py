"""Processes that fork while the engine is open and in use."""

import pytest


@pytest.mark.parametrize("manner", ["fork", "background", "family", "threads", "multiprocessing"])
def test_parent_and_children_go_on_writing_after_a_fork(backend, tmp_path, start_host, manner):
    """The issue: an open engine survives `os.fork`, in parent and child; a child that ends does not disturb its parent."""
    ledger = tmp_path / "ledger"
    host = start_host("fork_while_writing", backend.url, backend.schema, ledger, manner)
    host.finish(seconds=240)

    acknowledged = ledger.read_text().split()
    assert len(set(acknowledged)) == len(acknowledged)
    with backend.open() as engine:
        held = engine.memory("ana").messages(10_000)
        assert [message.seq for message in held] == list(range(1, len(held) + 1))
        assert {message.id for message in held} == set(acknowledged)
        assert engine.verify().findings == ()
