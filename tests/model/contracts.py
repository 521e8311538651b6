"""What must hold whatever a model said."""

from __future__ import annotations

import perdure
from perdure.domain.models import OUTCOMES, PURPOSES


def check_usage(ana: perdure.Memory, *purposes: str) -> None:
    """Each question has an outcome that we know, and none is uncounted."""
    usage = ana.admin.usage()
    assert {one.purpose for one in usage} >= set(purposes)
    for one in usage:
        assert one.purpose in PURPOSES
        assert one.outcome in OUTCOMES
        assert one.calls > 0
        assert one.tokens_out > 0 or one.outcome not in ("ok", "repaired")


def check_log(engine: perdure.Engine, ana: perdure.Memory, said: list[tuple[str, str]]) -> None:
    """Every message is there as it was said, and every invariant of the store holds."""
    assert [(message.role, message.content) for message in ana.messages()] == said
    assert engine.verify().findings == ()


def check_memories(ana: perdure.Memory) -> None:
    """Whatever was learned stands word for word in a message of the user."""
    for memory in ana.memories.list():
        assert memory.statements
        for statement in memory.statements:
            assert statement.evidence
            for evidence in statement.evidence:
                message = ana.conversation.message(evidence.message)
                assert message.role == "user"
                assert message.content[evidence.start : evidence.end].strip()


def check_digests(ana: perdure.Memory) -> None:
    """Each digest leads back to what it was made of."""
    log = {message.id: message for message in ana.messages(limit=1_000)}
    for digest in digests(ana):
        shown = list(ana.conversation.expand(digest))
        assert shown
        assert all(log[message.id] == message for message in shown)
        assert digest.text.strip()


def digests(ana: perdure.Memory) -> list[perdure.Digest]:
    """Every version of every layer."""
    return [*ana.conversation.digests(limit=100), *ana.conversation.digests("spine")]
