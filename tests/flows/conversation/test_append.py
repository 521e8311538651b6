"""A message comes in, through the public calls, on every store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

import perdure
from perdure import Conflict, InvalidInput, LimitExceeded, NewMessage, NotFound, ToolCall
from perdure.domain.conversation.messages import Message
from perdure.testing import FailingStore, StoppedClock

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(NINE)


@pytest.fixture
def ana(backend, clock):  # type: ignore[no-untyped-def]
    return backend.open(clock=clock).memory(user="ana", agent="coach", channel="discord:42")


def test_a_message_gets_an_id_a_session_a_number_a_time_and_a_size(ana: perdure.Memory) -> None:
    message = ana.append("user", "I moved to Seattle")
    assert (message.role, message.content, message.seq, message.session_number) == ("user", "I moved to Seattle", 1, 1)
    assert message.at == NINE
    assert message.tokens == 4
    assert message.id
    assert message.session
    assert not message.repeated
    assert ana.messages() == [message]
    assert ana.conversation.message(message.id) == message


def test_times_are_kept_as_instants_in_utc(ana: perdure.Memory) -> None:
    given = datetime(2026, 1, 5, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert ana.append("user", "late", at=given).at == datetime(2026, 1, 6, 4, 30, tzinfo=UTC)
    assert ana.messages()[0].at.utcoffset() == timedelta(0)


def test_a_stated_token_count_is_respected(ana: perdure.Memory) -> None:
    assert ana.append("user", "four words are here", tokens=12).tokens == 12


def test_the_same_message_again_is_a_no_op_that_says_so(ana: perdure.Memory) -> None:
    first = ana.append("user", "hello", id="m1", metadata={"a": 1})
    again = ana.append("user", "hello", id="m1", metadata={"a": 1})
    assert again.repeated
    assert again == first
    assert len(ana.messages()) == 1


def test_a_tuple_is_kept_as_a_list_and_repeating_it_is_no_conflict(ana: perdure.Memory) -> None:
    call = ToolCall("c", "f", ("x", 1))  # type: ignore[arg-type]
    for repeated in (False, True):
        message = ana.append("assistant", "", id="m1", metadata={"a": (1, 2)}, tool_calls=[call])
        assert (message.repeated, message.metadata, message.tool_calls[0].arguments) == (repeated, {"a": [1, 2]}, ["x", 1])


@pytest.mark.parametrize(
    "other",
    [
        {"content": "other"},
        {"role": "assistant"},
        {"metadata": {"a": 2}},
        {"at": NINE + timedelta(seconds=1)},
        {"tokens": 9},
        {"session": "another"},
    ],
)
def test_the_same_id_with_another_body_is_a_conflict(ana: perdure.Memory, other: dict[str, object]) -> None:
    ana.append("user", "hello", id="m1", metadata={"a": 1})
    changed = {"role": "user", "content": "hello", "id": "m1", "metadata": {"a": 1}, **other}
    with pytest.raises(Conflict, match="m1"):
        ana.append(**changed)
    assert [message.content for message in ana.messages()] == ["hello"]


def test_the_same_id_at_another_address_is_a_conflict(backend) -> None:  # type: ignore[no-untyped-def]
    engine = backend.open()
    engine.memory("ana", channel="a").append("user", "hello", id="m1")
    with pytest.raises(Conflict):
        engine.memory("ana", channel="b").append("user", "hello", id="m1")
    engine.memory("bob", channel="b").append("user", "hello", id="m1")


def test_a_batch_is_stored_whole_and_in_order_or_not_at_all(ana: perdure.Memory) -> None:
    ana.append("user", "zero", id="m0")
    done = ana.append_many([NewMessage("user", "zero", id="m0"), NewMessage("user", "one"), NewMessage("assistant", "two")])
    assert [(message.seq, message.repeated) for message in done] == [(1, True), (2, False), (3, False)]
    with pytest.raises(Conflict):
        ana.append_many([NewMessage("user", "three"), NewMessage("user", "another zero", id="m0")])
    assert [message.content for message in ana.messages()] == ["zero", "one", "two"]
    assert ana.append_many([]) == []


def test_a_repeat_inside_one_batch_is_stored_once(ana: perdure.Memory) -> None:
    done = ana.append_many([NewMessage("user", "one", id="a"), NewMessage("user", "one", id="a")])
    assert [message.repeated for message in done] == [False, True]
    assert len(ana.messages()) == 1


def test_an_answer_that_was_lost_can_be_asked_for_again(clock: StoppedClock) -> None:
    """P6 in small: the write happened, the caller was told otherwise, and repeats it with the same id."""
    engine = perdure.open("memory:", clock=clock)
    failing = FailingStore(engine._store)
    engine = perdure.Engine(failing, clock, perdure.Settings(url="memory:"))  # type: ignore[arg-type]
    ana = engine.memory("ana")
    failing.lose_next_answer()
    with pytest.raises(perdure.Unavailable) as caught:
        ana.append("user", "hello", id="m1")
    assert caught.value.retriable
    assert ana.append("user", "hello", id="m1").repeated
    assert len(ana.messages()) == 1


class TestSessions:
    def test_thirty_minutes_of_silence_keep_the_session_and_one_second_more_ends_it(
        self, ana: perdure.Memory, clock: StoppedClock
    ) -> None:
        """X-19, T-45: the comparison is "more than 30 minutes"."""
        ana.append("user", "one")
        clock.move(minutes=30)
        assert ana.append("user", "two").session_number == 1
        clock.move(minutes=30, seconds=1)
        third = ana.append("user", "three")
        assert (third.session_number, third.seq) == (2, 1)
        new, old = ana.conversation.sessions()
        assert old.ended_at == old.last_at == NINE + timedelta(minutes=30)
        assert new.ended_at is None
        assert (old.messages, new.messages) == (2, 1)

    def test_a_clock_that_goes_back_does_not_split_the_session(self, ana: perdure.Memory, clock: StoppedClock) -> None:
        ana.append("user", "one")
        clock.move(days=-400)
        second = ana.append("user", "two")
        assert (second.session_number, second.seq) == (1, 2)
        assert [message.content for message in ana.messages()] == ["one", "two"]

    def test_a_named_session_is_opened_and_continued(self, ana: perdure.Memory) -> None:
        ana.append("user", "unnamed")
        ana.append("user", "one", session="standup")
        ana.append("user", "two", session="standup")
        assert [message.content for message in ana.messages(session="standup")] == ["one", "two"]
        with pytest.raises(NotFound, match="retro"):
            ana.messages(session="retro")

    def test_channels_and_agents_have_sessions_of_their_own(self, backend) -> None:  # type: ignore[no-untyped-def]
        engine = backend.open()
        places = [("coach", "a"), ("coach", "b"), ("friend", "a")]
        for agent, channel in places:
            engine.memory("ana", agent=agent, channel=channel).append("user", f"{agent} {channel}")
        for agent, channel in places:
            [message] = engine.memory("ana", agent=agent, channel=channel).messages()
            assert (message.content, message.seq) == (f"{agent} {channel}", 1)


class TestToolCalls:
    call = ToolCall("c1", "search", {"q": "rain"})  # type: ignore[arg-type]

    def test_a_result_is_paired_with_its_call(self, ana: perdure.Memory) -> None:
        ana.append("assistant", "let me see", tool_calls=[self.call])
        result = ana.append("tool", "rain", tool_call_id="c1", failed=True)
        asked, answered = ana.messages()
        assert asked.tool_calls == (self.call,)
        assert (answered.tool_call_id, answered.failed) == ("c1", True)
        assert answered == result

    def test_a_result_joins_the_session_of_its_call_however_late(self, ana: perdure.Memory, clock: StoppedClock) -> None:
        """X-42: a call is never parted from its result."""
        ana.append("assistant", "this may take a while", tool_calls=[self.call])
        clock.move(hours=2)
        ana.append("user", "still there?")
        late = ana.append("tool", "done", tool_call_id="c1")
        assert (late.session_number, late.seq) == (1, 2)
        assert ana.append("user", "thanks").session_number == 2
        assert ana.conversation.sessions()[1].ended_at == late.at

    def test_a_result_without_its_call_is_refused(self, ana: perdure.Memory) -> None:
        with pytest.raises(InvalidInput, match="answers no call"):
            ana.append("tool", "42", tool_call_id="c9")
        assert ana.append("tool", "a result that names no call").tool_call_id is None

    def test_a_call_is_answered_once(self, ana: perdure.Memory) -> None:
        ana.append("assistant", "", tool_calls=[self.call])
        ana.append("tool", "rain", tool_call_id="c1", id="r1")
        assert ana.append("tool", "rain", tool_call_id="c1", id="r1").repeated
        with pytest.raises(Conflict, match="answered once"):
            ana.append("tool", "sun", tool_call_id="c1")

    def test_a_call_id_is_used_once_in_a_session(self, ana: perdure.Memory) -> None:
        ana.append("assistant", "", tool_calls=[self.call])
        with pytest.raises(Conflict, match="already made"):
            ana.append("assistant", "", tool_calls=[self.call])
        ana.append("assistant", "", tool_calls=[self.call], session="another")

    def test_a_call_id_may_be_used_anew_in_another_session_and_each_call_has_its_own_result(self, ana: perdure.Memory) -> None:
        ana.append("assistant", "", tool_calls=[self.call], session="a")
        ana.append("assistant", "", tool_calls=[self.call], session="b")
        with pytest.raises(Conflict, match="already made"):
            ana.append("assistant", "", tool_calls=[self.call], session="a")
        assert ana.append("tool", "for a", tool_call_id="c1", session="a").session == "a"
        assert ana.append("tool", "for the newest", tool_call_id="c1").session == "b"

    def test_call_and_result_may_come_in_one_batch(self, ana: perdure.Memory) -> None:
        ana.append_many([NewMessage("assistant", "", tool_calls=[self.call]), NewMessage("tool", "rain", tool_call_id="c1")])
        assert [message.role for message in ana.messages()] == ["assistant", "tool"]

    @pytest.mark.parametrize(
        ("role", "fields"),
        [
            ("user", {"tool_calls": [ToolCall("c", "f")]}),
            ("assistant", {"tool_call_id": "c"}),
            ("user", {"failed": True}),  # type: ignore[arg-type]
            ("assistant", {"tool_calls": [ToolCall("c", "f"), ToolCall("c", "g")]}),
            ("assistant", {"tool_calls": [{"id": "c"}]}),  # type: ignore[arg-type]
            ("assistant", {"tool_calls": [ToolCall("c", "")]}),  # type: ignore[arg-type]
        ],
    )
    def test_calls_that_make_no_sense_are_refused(self, ana: perdure.Memory, role: str, fields: dict[str, object]) -> None:
        with pytest.raises(InvalidInput):
            ana.append(role, "x", **fields)
        assert ana.messages() == []


class TestReading:
    def test_messages_page_in_both_directions(self, ana: perdure.Memory) -> None:
        held = ana.append_many(NewMessage("user", str(number)) for number in range(10))
        assert [m.content for m in ana.messages(3)] == ["7", "8", "9"]
        assert [m.content for m in ana.messages(3, before=held[7].id)] == ["4", "5", "6"]
        assert [m.content for m in ana.messages(3, after=held[7].id)] == ["8", "9"]
        with pytest.raises(InvalidInput, match="one direction"):
            ana.messages(3, before="a", after="b")
        with pytest.raises(NotFound):
            ana.messages(3, before="nothing")

    def test_limits_of_listings_have_names(self, ana: perdure.Memory) -> None:
        for wrong in (0, -1, 2.5, "7", True, None):
            with pytest.raises(InvalidInput, match="limit"):
                ana.messages(wrong)  # type: ignore[arg-type]
        with pytest.raises(LimitExceeded, match="page_rows_max"):
            ana.messages(10_001)

    def test_a_message_of_another_address_is_not_found(self, backend) -> None:  # type: ignore[no-untyped-def]
        engine = backend.open()
        message = engine.memory("ana", channel="a").append("user", "x")
        with pytest.raises(NotFound):
            engine.memory("ana", channel="b").conversation.message(message.id)


BAD_IDS = ["", "a\0b", "\ud800", "x" * 401, "é" * 201, 7, None, b"bytes"]


class TestBadInput:
    """Every refusal names the thing and leaves the store as it was."""

    @pytest.fixture
    def engine(self) -> perdure.Engine:
        return perdure.open("memory:")

    @pytest.mark.parametrize("bad", BAD_IDS)
    @pytest.mark.parametrize("place", ["user", "agent", "channel", "space"])
    def test_scopes_are_checked(self, engine: perdure.Engine, place: str, bad: object) -> None:
        if place == "space" and bad is None:
            return  # None means the space of the settings
        with pytest.raises(InvalidInput, match=place):
            engine.memory(**{"user": "ana", place: bad})  # type: ignore[arg-type]

    def test_reserved_spaces_are_refused(self, engine: perdure.Engine) -> None:
        with pytest.raises(InvalidInput, match="reserved"):
            engine.memory("ana", space="perdure:system")

    @pytest.mark.parametrize("bad", [bad for bad in BAD_IDS if bad is not None])
    @pytest.mark.parametrize("field", ["id", "session", "tool_call_id"])
    def test_ids_are_checked(self, engine: perdure.Engine, field: str, bad: object) -> None:
        with pytest.raises(InvalidInput):
            engine.memory("ana").append("tool", "x", **{field: bad})  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("role", "content", "fields"),
        [
            ("bishop", "x", {}),
            (None, "x", {}),
            ("user", None, {}),
            ("user", b"x", {}),
            ("user", "a\0", {}),
            ("user", "\udfff", {}),
            ("user", "x", {"tokens": -1}),
            ("user", "x", {"tokens": 1.5}),
            ("user", "x", {"tokens": True}),
            ("user", "x", {"tokens": 2**40}),
            ("user", "x", {"at": "now"}),
            ("user", "x", {"at": datetime(2026, 1, 1)}),
            ("user", "x", {"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}),
            ("user", "x", {"metadata": [1]}),
            ("user", "x", {"metadata": {1: 2}}),
            ("user", "x", {"metadata": {"a": float("nan")}}),
            ("user", "x", {"metadata": {"a": {1, 2}}}),
            ("user", "x", {"metadata": {"a": "\0"}}),
            ("user", "x", {"metadata": {"\ud800": 1}}),
            ("user", "x", {"metadata": {"a": 10**5000}}),
            ("user", "x", {"metadata": {"a": NINE}}),
        ],
    )
    def test_bad_messages_are_refused(self, engine: perdure.Engine, role: str, content: str, fields: dict[str, object]) -> None:
        ana = engine.memory("ana")
        with pytest.raises(InvalidInput):
            ana.append(role, content, **fields)
        assert ana.messages() == []

    def test_an_option_that_there_is_not_is_an_error_of_python(self, engine: perdure.Engine) -> None:
        with pytest.raises(TypeError, match="colour"):
            engine.memory("ana").append("user", "x", colour="blue")

    def test_deep_metadata_is_refused_with_its_path(self, engine: perdure.Engine) -> None:
        deep: dict[str, object] = {}
        for _ in range(100):
            deep = {"a": deep}
        with pytest.raises(InvalidInput, match="nested deeper"):
            engine.memory("ana").append("user", "x", metadata=deep)
        with pytest.raises(InvalidInput, match=r"metadata`\.a\[1\]\.b"):
            engine.memory("ana").append("user", "x", metadata={"a": [0, {"b": object()}]})

    @pytest.mark.parametrize(
        ("limit", "attempt"),
        [
            ("message_bytes_max", lambda ana, size: ana.append("user", "é" * (size // 2))),
            (
                "message_bytes_max",
                lambda ana, size: ana.append("assistant", "x", tool_calls=[ToolCall("c", "f", "y" * (size - 5))]),
            ),
            ("metadata_bytes_max", lambda ana, size: ana.append("user", "x", metadata={"a": "y" * (size - 8)})),
            ("batch_messages_max", lambda ana, size: ana.append_many([NewMessage("user", "x")] * size)),
            (
                "queue_jobs_max",
                lambda ana, size: [ana.append("user", "x", session=str(number)) for number in range(size - 1)],
            ),  # and one for the index
        ],
    )
    def test_each_limit_is_exact_and_named(self, limit: str, attempt: Callable[[perdure.Memory, int], Message]) -> None:
        def ana_with(most: int) -> perdure.Memory:
            settings = perdure.Settings(url="memory:", limits=perdure.Limits(**{limit: most}))
            return perdure.open(settings=settings).memory("ana")

        attempt(ana_with(20), 20)
        over = ana_with(20)
        with pytest.raises(LimitExceeded, match=limit):
            attempt(over, 22)
        if limit != "queue_jobs_max":
            assert over.messages() == []
