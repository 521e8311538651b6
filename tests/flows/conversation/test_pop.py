"""Taking back the end of a session: the log, what was learned, the journal and its undo, on every store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import perdure
from perdure import Conflict, InvalidInput, NotFound, ToolCall, Unsupported
from perdure.domain.errors import PerdureError
from perdure.handles.memory import Memory
from perdure.testing import StoppedClock

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@pytest.fixture
def engine(backend: Any) -> Iterator[perdure.Engine]:
    """Whatever a test does to it, the store is sound at its end."""
    opened = backend.open(clock=StoppedClock(NINE))
    yield opened
    opened.process()
    assert opened.verify().findings == ()


def said(memory: Memory) -> list[str]:
    return [one.content for one in memory.messages()]


def known(memory: Memory) -> list[str]:
    return [one.content for one in memory.memories.list()]


def withdrawal(memory: Memory) -> int:
    return next(one.seq for one in memory.journal.list(500) if one.kind == "withdrawal")


def a_talk(engine: perdure.Engine) -> Memory:
    ana = engine.memory("ana")
    ana.append("user", "I live in Paris.", session="s")
    ana.append("assistant", "Nice.")
    engine.process()
    ana.append("user", "I moved to Berlin. Remind me to call Bob tomorrow.", id="moved")
    ana.append("assistant", "Looking.", tool_calls=[ToolCall("c", "look", {})])  # type: ignore[arg-type]
    ana.append("tool", "Done.", tool_call_id="c")
    engine.process()
    assert known(ana) == ["Lives in Berlin"]
    return ana


def test_the_last_exchange_goes_with_what_was_learned_from_it(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    gone = ana.conversation.pop()
    assert [one.role for one in gone] == ["user", "assistant", "tool"]
    assert said(ana) == ["I live in Paris.", "Nice."]
    assert known(ana) == ["Lives in Paris"], "what it had replaced holds again"
    assert ana.todos.list() == []
    assert all("Berlin" not in hit.text for hit in ana.recall("Where do I live?").hits)
    assert ana.conversation.search("Berlin") == []
    engine.process()
    assert ana.conversation.tally().by_role == {"user": 1, "assistant": 1}
    held = ana.conversation.session()
    assert (held.messages, held.turns) == (2, 1)


def test_undoing_it_brings_all_of_it_back(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    before = ana.messages()
    ana.conversation.pop()
    number = withdrawal(ana)
    ana.undo(number)
    assert ana.messages() == before
    assert known(ana) == ["Lives in Berlin"]
    assert [one.content for one in ana.todos.list()] == ["Call Bob"]
    assert any("Berlin" in hit.text for hit in ana.recall("Where do I live?").hits)
    engine.process()
    assert known(ana) == ["Lives in Berlin"], "it is not learned a second time"
    assert all("Remind me" not in str(one.before) + str(one.after) for one in ana.journal.list(500) if one.kind == "withdrawal")
    with pytest.raises(PerdureError):
        ana.undo(number)


def test_it_can_be_undone_until_the_talk_goes_on(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    ana.conversation.pop()
    ana.append("user", "I moved to Rome.", id="moved")
    with pytest.raises(Conflict, match="gone on"):
        ana.undo(withdrawal(ana), cascade=True)
    assert said(ana)[-1] == "I moved to Rome.", "the id was free again"


def test_so_many_messages_are_taken_back_and_a_result_leaves_its_call_open(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    assert [one.content for one in ana.conversation.pop(messages=1)] == ["Done."]
    ana.append("tool", "Done again.", tool_call_id="c")
    assert [one.content for one in ana.conversation.pop(messages=2)] == ["Looking.", "Done again."]
    assert said(ana)[-1].startswith("I moved")
    ana.conversation.pop()
    ana.conversation.pop()
    assert ana.conversation.pop() == []
    assert said(ana) == []
    ana.append("user", "Hello.")
    assert said(ana) == ["Hello."]


def test_a_fold_that_tells_of_it_goes_and_an_earlier_one_stays(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    ana.conversation.clear()
    ana.append("user", "Bob is my boss.")
    ana.conversation.replace("They spoke of Bob.")
    ana.conversation.pop()
    assert [one.version for one in ana.conversation.digests("fold")] == [1]
    assert ana.conversation.session().boundary_seq == 5
    ana.conversation.pop()
    assert ana.conversation.digests("fold") == []
    assert ana.conversation.session().boundary_seq == 0


def test_what_others_said_since_stays(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    ana.remember("Lives in Rome", entities=["place:Rome"], attribute="lives_in", value="Rome")
    ana.conversation.pop()
    assert known(ana) == ["Lives in Rome"]


def test_only_an_open_session_and_only_the_user_take_back(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    with pytest.raises(Unsupported, match="take back what was said"):
        ana.as_agent().conversation.pop()
    for count in (0, 1001, True, "1"):
        with pytest.raises(InvalidInput, match="`messages`"):
            ana.conversation.pop(messages=count)  # type: ignore[arg-type]
    ana.conversation.close()
    with pytest.raises(Conflict, match="has ended; resume it"):
        ana.conversation.pop()
    with pytest.raises(NotFound):
        ana.conversation.pop("other")


def test_deleting_the_session_and_forgetting_reach_what_was_taken_back(engine: perdure.Engine) -> None:
    ana = a_talk(engine)
    ana.remember("Bob is my boss", "PEOPLE", entities=["person:Bob"])
    ana.conversation.pop()
    ana.forget(entity="person:bob")
    assert "Bob" not in str(ana.journal.list(500))
    ana.append("user", "The code is 4471.")
    ana.conversation.pop()
    ana.conversation.delete("s")
    assert "4471" not in str(ana.journal.list(500))
