"""Learning from what was said, with a real model: what it proposes is taken only as far as it was said."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

import perdure
from perdure.ports.models import ChatModel
from tests.model.contracts import check_log, check_memories, check_usage

pytestmark = pytest.mark.model

SAID = [
    ("user", "I live in Lisbon and work as a nurse at Santa Maria Hospital."),
    ("assistant", "Good to know. Maybe you would like Porto, too."),
    ("user", "My brother Tomas is a pilot. I will call him on Friday."),
]


def talk(engine: perdure.Engine) -> perdure.Memory:
    ana = engine.memory("ana")
    for role, content in SAID:
        ana.append(role, content)
    return ana


@pytest.mark.parametrize("right", ["openai"], indirect=True)
def test_easy_things_are_learned(right: str, opened: Callable[..., perdure.Engine]) -> None:
    engine = opened(right)
    ana = talk(engine)
    learned = ana.memories.extract()
    assert learned.messages == len(SAID)
    contents = " ".join(memory.content for memory in ana.memories.list())
    assert "Lisbon" in contents
    check_memories(ana)
    check_log(engine, ana, SAID)
    check_usage(ana, "extract")


def test_whatever_is_proposed_only_what_was_said_is_learned(wrong: ChatModel, opened: Callable[..., perdure.Engine]) -> None:
    engine = opened(wrong)
    ana = talk(engine)
    with suppress(perdure.Unavailable):
        ana.memories.extract()
    check_memories(ana)
    check_log(engine, ana, SAID)
    check_usage(ana, "extract")
