"""Jobs that run in a thread of the host."""

import threading
import time

import pytest

import perdure

WORKER = "perdure-worker"
USERS = [f"user-{number}" for number in range(20)]


def threads() -> list[str]:
    """The names of all threads of ours."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("perdure")]


def test_jobs_run_in_a_thread_until_the_engine_is_closed(backend, eventually):
    with backend.open(background=True) as engine:
        assert WORKER in threads()
        memory = engine.memory("ana")
        memory.append_many([perdure.NewMessage("user", str(number)) for number in range(5)])
        eventually(lambda: memory.conversation.tally().up_to_seq == 5)
        memory.append("user", "one more")
        eventually(lambda: memory.conversation.tally().up_to_seq == 6)
    assert threads() == []

    with backend.open() as engine:
        memory = engine.memory("ana")
        memory.append("user", "nobody is there to count this")
        assert [job.state for job in memory.admin.jobs() if job.kind == "tally"] == ["ready"]
        assert memory.conversation.tally().up_to_seq == 6
        assert engine.verify().findings == ()


def test_closing_does_not_wait_for_the_next_turn_of_an_idle_thread(backend):
    engine = backend.open(background=True)
    began = time.monotonic()
    engine.close()
    assert time.monotonic() - began < 5, "it is told to stop; it does not run into the bound on waiting for it"
    assert threads() == []


def test_an_engine_that_runs_no_jobs_has_no_thread_for_it(backend):
    with backend.open():
        assert WORKER not in threads()


@pytest.mark.parametrize("manner", ["end", "sys.exit", "error", "busy"])
def test_a_host_that_ends_without_closing_leaves_a_sound_store(backend, start_host, manner):
    host = start_host("exit_without_close", backend.url, backend.schema, manner)
    said, _ = host.process.communicate(timeout=60)
    assert (host.process.returncode, host.errors()) == ((1, "the host gives up\n") if manner == "error" else (0, ""))

    with backend.open() as engine:
        held = {message.id for user in map(engine.memory, USERS) for message in user.messages()}
        assert held == set(said.decode().split())
        assert engine.verify().findings == ()
        engine.process(30)
        behind = [user for user in map(engine.memory, USERS) if user.conversation.tally().up_to_seq < 10]
        counting = [job for user in behind for job in user.admin.jobs() if job.kind == "tally"]
        assert [job.state for job in counting] in ([], ["running"]), "but for the job in hand, all are done"
