"""Many processes write one session at the same time."""

import pytest

WRITERS = 8
EACH = 1_000


@pytest.mark.slow
def test_eight_processes_append_a_thousand_messages_each_to_one_session(backend, start_host):
    """The issue: 8 processes x 1,000 appends into one session give 8,000 messages, contiguous, and no error to anybody."""
    writers = [start_host("append_together", backend.url, backend.schema, name, EACH) for name in range(WRITERS)]
    for writer in writers:
        writer.expect("ready")
    for writer in writers:
        writer.tell("go")
    for writer in writers:
        writer.finish(seconds=300)

    with backend.open() as engine:
        memory = engine.memory("ana")
        messages = memory.messages(WRITERS * EACH + 1)
        assert [message.seq for message in messages] == list(range(1, WRITERS * EACH + 1))
        assert len(memory.sessions()) == 1
        for name in map(str, range(WRITERS)):
            own = [message.content for message in messages if message.content.split()[0] == name]
            assert own == [f"{name} {number}" for number in range(EACH)], "a writer's own messages keep their order"
        assert engine.verify().findings == ()
    assert {writer.errors() for writer in writers} == {""}, "what goes on inside is not the host's standard error"
