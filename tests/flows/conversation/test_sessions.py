"""Sessions as the user deals with them: when they end, go on and are deleted; the floor of a channel; what stays apart."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import perdure
import perdure.aio
from perdure import Conflict, InvalidInput, Layers, LimitExceeded, Memory, NewMessage, NotFound, ToolCall, Unavailable
from perdure.domain.conversation.digests import SPINE_ADDRESS, DigestSource
from perdure.ports.tables.rows import TABLES
from perdure.services.conversation import folds, sessions
from perdure.testing import StoppedClock
from scripted import WAIT_S, ScriptedSummariser, WaitingSummariser

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


def exchange(memory: Memory, count: int, first: int = 1, **fields: Any) -> None:
    for number in range(first, first + count):
        memory.append("user" if number % 2 else "assistant", f"message {number}", **fields)


def contents(context: perdure.Context) -> list[str]:
    return [message.content for message in context.messages]


def kinds(context: perdure.Context) -> list[str]:
    return [block.kind for block in context.blocks]


def everything(engine: perdure.Engine) -> str:
    """Every stored row, as text."""
    with engine._store.snapshot() as snapshot:
        return "\n".join(repr(row) for table in TABLES for row in snapshot.rows(table))


# -- the end ----------------------------------------------------------------------------------------------------------


class TestSilence:
    @pytest.mark.parametrize("how", ["sweeper", "message", "context"])
    @pytest.mark.parametrize(("gap_s", "ends"), [(1800.0, False), (1800.001, True), (1801.0, True)])
    def test_more_than_half_an_hour_ends_a_session_whoever_notices_it_x_19(
        self, backend: Any, clock: StoppedClock, how: str, gap_s: float, ends: bool
    ) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        exchange(ana, 2)
        engine.process()
        clock.move(seconds=gap_s)
        if how == "sweeper":
            engine.process()
        elif how == "message":
            ana.append("user", "back")
        else:
            assert contents(ana.context()) == ([] if ends else ["message 1", "message 2"])
        first = ana.conversation.sessions()[-1]
        assert first.ended_at == (START if ends else None)
        engine.process()
        assert len(ana.conversation.digests("session")) == int(ends)
        assert engine.verify().clean

    def test_every_silent_session_of_an_address_ends_not_only_the_newest(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        for name in ("one", "two", "one"):
            ana.append("user", f"in {name}", session=name)
        clock.move(hours=2)
        assert contents(ana.context()) == []
        engine.process()
        assert [session.ended_at for session in ana.conversation.sessions()] == [START, START]

    def test_the_sweeper_is_not_confused_by_a_clock_that_was_set_back(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        ana.append("user", "from the future")
        engine.process()
        clock.move(days=-3)
        ana.append("user", "from the past")
        engine.process()
        assert len(ana.conversation.sessions()) == 1
        for _ in range(3 * 48 + 2):
            clock.move(minutes=30)
            engine.process()
        assert ana.conversation.sessions()[0].ended_at == START
        assert engine.verify().clean

    def test_imported_messages_with_old_times_do_not_end_a_session(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        ana.append("user", "now")
        ana.append("user", "imported", at=START - timedelta(days=9))
        engine.process()
        assert (
            len(ana.conversation.sessions()),
            ana.conversation.sessions()[0].ended_at,
            ana.conversation.sessions()[0].last_at,
        ) == (1, None, START)


class TestClose:
    def test_a_closed_session_ends_at_its_last_activity_and_has_its_digest(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        exchange(ana, 4)
        clock.move(minutes=5)
        closed = ana.conversation.close()
        assert (closed.ended_at, closed.messages) == (START, 4)
        assert ana.conversation.close() == closed, "closing again changes nothing"
        engine.process()
        [digest] = ana.conversation.digests("session")
        assert [message.seq for message in ana.conversation.expand(digest)] == [1, 2, 3, 4]
        assert ana.append("user", "a new start").session_number == 2
        assert "session_digest" in kinds(ana.context())
        assert engine.verify().clean

    def test_there_must_be_something_to_close(self, backend: Any, clock: StoppedClock) -> None:
        ana = backend.open(clock=clock).memory("ana")
        with pytest.raises(NotFound, match="append a message first"):
            ana.conversation.close()
        ana.append("user", "hi", session="mine")
        with pytest.raises(NotFound, match=r"'yours'.*`sessions\(\)`"):
            ana.conversation.close("yours")

    def test_a_late_result_joins_the_ended_session_of_its_call_and_does_not_reopen_it(
        self, backend: Any, clock: StoppedClock
    ) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        ana.append("user", "order it")
        ana.append("assistant", "", tool_calls=[ToolCall("c1", "order", {})])  # type: ignore[arg-type]
        ana.conversation.close()
        engine.process()
        [first] = ana.conversation.digests("session")
        clock.move(hours=3)
        assert ana.append("tool", "ordered: 17 boxes", tool_call_id="c1").session_number == 1
        engine.process()
        session = ana.conversation.sessions()[0]
        assert (session.ended_at, session.messages) == (clock.now(), 3)
        second = ana.conversation.digests("session")[0]
        assert (second.version, second.based_on) == (2, 1)
        assert sorted(message.seq for message in ana.conversation.expand(second, whole=True)) == [1, 2, 3]
        assert sorted(message.seq for message in ana.conversation.expand(first)) == [1, 2, 3], "a result comes with its call"
        assert engine.verify().clean


class TestResume:
    def test_a_resumed_session_goes_on_with_everything_in_it(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        exchange(ana, 4)
        ana.conversation.close()
        engine.process()
        clock.move(hours=5)
        resumed = ana.conversation.resume()
        assert (resumed.ended_at, resumed.number) == (None, 1)
        assert contents(ana.context()) == [f"message {number}" for number in range(1, 5)]
        exchange(ana, 2, first=5)
        engine.process()
        assert ana.conversation.sessions()[0].ended_at is None, "resuming is activity"
        clock.move(minutes=31)
        engine.process()
        assert ana.conversation.sessions()[0].ended_at == START + timedelta(hours=5)
        newest, first = ana.conversation.digests("session")
        assert (newest.version, newest.based_on, first.version) == (2, 1, 1)
        assert [message.seq for message in ana.conversation.expand(newest)] == [5, 6]
        assert [message.seq for message in ana.conversation.expand(newest, whole=True)] == [1, 2, 3, 4, 5, 6]
        assert engine.verify().clean

    @pytest.mark.parametrize(("late_s", "goes"), [(7200, True), (7201, False)])
    def test_there_is_a_grace_and_then_it_is_too_late(self, backend: Any, clock: StoppedClock, late_s: int, goes: bool) -> None:
        engine = backend.open(clock=clock, session_resume_s=7200.0)
        ana = engine.memory("ana")
        ana.append("user", "hi")
        ana.conversation.close()
        clock.move(seconds=late_s)
        if goes:
            ana.conversation.resume()
        else:
            with pytest.raises(Conflict, match=r"`session_resume_s` = 7200.*new session"):
                ana.conversation.resume()
        assert (ana.conversation.sessions()[0].ended_at is None) == goes
        assert engine.verify().clean

    def test_resuming_an_older_session_ends_the_one_that_goes_on(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        ana.append("user", "in one", session="one")
        ana.append("user", "in two", session="two")
        clock.move(minutes=1)
        ana.conversation.resume("one")
        assert [(session.id, session.ended_at) for session in ana.conversation.sessions()] == [("two", START), ("one", None)]
        assert contents(ana.context()) == ["in one"]
        assert ana.append("user", "more of one").session == "one"
        assert ana.conversation.compact(force=True)[0].session_number == 1, "calls without a session mean the one that goes on"
        assert ana.conversation.close().id == "one"
        engine.process()
        assert {digest.session_number for digest in ana.conversation.digests("session")} == {1, 2}
        assert engine.verify().clean

    def test_an_open_session_is_resumed_by_doing_nothing(self, backend: Any, clock: StoppedClock) -> None:
        ana = backend.open(clock=clock).memory("ana")
        ana.append("user", "hi")
        before = ana.conversation.sessions()[0]
        clock.move(minutes=3)
        assert ana.conversation.resume() == before

    def test_a_session_resumed_before_its_digest_was_written_has_none_until_it_ends_again(
        self, backend: Any, clock: StoppedClock
    ) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        exchange(ana, 2)
        ana.conversation.close()
        tally = engine.worker()
        tally.handlers = {"tally": tally.handlers["tally"]}
        tally.process(10)
        assert "session_digest" in {job.kind for job in ana.admin.jobs("ready")}
        ana.conversation.resume()
        engine.process()
        assert ana.conversation.digests("session") == []
        exchange(ana, 2, first=3)
        ana.conversation.close()
        engine.process()
        [digest] = ana.conversation.digests("session")
        assert [message.seq for message in ana.conversation.expand(digest)] == [1, 2, 3, 4]

    def test_a_resumed_session_that_stays_silent_ends_again_without_a_second_digest(
        self, backend: Any, clock: StoppedClock
    ) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        exchange(ana, 2)
        ana.conversation.close()
        engine.process()
        ana.conversation.resume()
        engine.process()
        clock.move(minutes=31)
        engine.process()
        assert ana.conversation.sessions()[0].ended_at is not None
        assert len(ana.conversation.digests("session")) == 1
        assert engine.verify().clean


class TestNames:
    def test_a_session_may_be_named_and_named_again(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        name = "user:agent:1700000000 / Oslo trip?\n"
        assert ana.append("user", "a", session=name).session == name
        ana.append("user", "b", session="other")
        assert ana.conversation.sessions()[-1].ended_at == START, "another name ends the one before"
        clock.move(hours=9)
        again = ana.append("user", "c", session=name)
        assert (again.session_number, again.seq) == (1, 2)
        assert ana.conversation.sessions()[-1].ended_at is None, "naming it reopens it"
        assert [message.content for message in ana.messages(session=name)] == ["a", "c"]
        engine.process()
        assert engine.verify().clean

    def test_a_deleted_name_can_be_used_again(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        ana.append("user", "a", session="mine", id="m1")
        engine.process()
        ana.conversation.delete("mine")
        ana.append("user", "between")
        clock.move(minutes=1)
        again = ana.append("user", "b", session="mine", id="m1")
        assert (again.session_number, again.seq) == (1, 1), "under its number, from the start"
        assert [message.content for message in ana.messages(session="mine")] == ["b"]
        assert ana.append("user", "c").session == "mine", "it is the one that goes on"
        assert [one.id for one in ana.conversation.sessions() if one.ended_at is None] == ["mine"]
        ana.conversation.delete("mine")
        ana.append("user", "d", session="mine")
        assert [message.content for message in ana.messages(session="mine")] == ["d"]
        engine.process()
        assert engine.verify().clean


# -- deleting ---------------------------------------------------------------------------------------------------------

SECRET = "XK-4471-Q"


class TestDelete:
    @pytest.mark.parametrize("model", [False, True])
    def test_nothing_of_a_deleted_session_is_left_in_the_store_or_its_transcripts(
        self, backend: Any, clock: StoppedClock, tmp_path: Path, model: bool
    ) -> None:
        files = tmp_path / "files"
        layers = Layers(rolling_turns=2, spine_turns=4, history_messages_max=6)
        summariser = ScriptedSummariser() if model else None
        engine = backend.open(clock=clock, profile="complete", layers=layers, files_dir=str(files), summariser=summariser)
        ana = engine.memory("ana", channel="discord:1")
        exchange(ana, 4, session="kept")
        for number in range(6):
            ana.append("user", f"The account {SECRET} must always be paid by 2026-02-0{number + 1}.", session="gone")
            ana.append("assistant", f"I looked up {SECRET}", tool_calls=[ToolCall(f"c{number}", "lookup", {"q": SECRET})])  # type: ignore[arg-type]
            ana.append("tool", f"{SECRET} found", tool_call_id=f"c{number}", metadata={"k": SECRET})
            engine.process()
            ana.context()
        ana.conversation.undo("gone")
        ana.conversation.replace(f"in short: {SECRET}", "gone")
        clock.move(minutes=31)
        engine.process()
        assert {digest.kind for digest in ana.conversation.digests(session="gone")} == {"fold", "rolling", "session"}
        assert any(SECRET in path.read_text(encoding="utf-8") for path in files.rglob("*.md"))
        assert SECRET in everything(engine)

        assert ana.conversation.delete("gone") == 18
        assert engine.verify().clean
        engine.process()
        assert engine.verify().clean
        assert SECRET not in everything(engine)
        assert not any(SECRET in path.read_text(encoding="utf-8") for path in files.rglob("*.md"))
        assert ana.conversation.search(SECRET) == []
        assert SECRET not in ana.context().text
        assert [session.id for session in ana.conversation.sessions()] == ["kept"]
        assert [line.session.id for line in ana.conversation.list_sessions()] == ["kept"]
        assert ana.conversation.agent_state().turns == 8, "what was counted stays counted"
        engine.purge()
        for file in engine.files():
            assert SECRET.encode() not in file.path.read_bytes()
        with pytest.raises(NotFound):
            ana.conversation.delete("gone")
        assert engine.verify().clean

    def test_the_spine_is_made_anew_without_the_deleted_session(self, backend: Any, clock: StoppedClock) -> None:
        model = ScriptedSummariser()
        engine = backend.open(clock=clock, layers=Layers(spine_turns=4), summariser=model)
        ana = engine.memory("ana")
        for turn in range(1, 16):
            ana.append("user", f"turn {turn}", session=f"s{(turn + 2) // 3}")
            engine.process()
        before = [spine.version for spine in ana.conversation.digests("spine")]
        assert before == [3, 2, 1]
        ana.conversation.delete("s3")
        assert engine.verify().clean
        assert [spine.version for spine in ana.conversation.digests("spine")] == [1], "what continued its words is void"
        engine.process()
        newest, first = ana.conversation.digests("spine")
        assert (newest.based_on, first.version) == (1, 1)
        told = [message.content for message in ana.conversation.expand(newest, whole=True)]
        assert told == [f"turn {turn}" for turn in range(1, 16) if turn not in (7, 8, 9)]
        assert engine.verify().clean

    def test_a_session_deleted_while_it_is_summarised_leaves_no_digest(self, backend: Any, clock: StoppedClock) -> None:
        for call in ("process", "context"):
            model = WaitingSummariser()
            engine = backend.open(clock=clock, summariser=model, profile="complete")
            ana = engine.memory("ana", channel=call)
            exchange(ana, 8, session="gone")
            run: Callable[[], object] = engine.process if call == "process" else ana.context
            model.while_it_works(run, lambda ana=ana: ana.conversation.delete("gone"))  # type: ignore[misc]
            for _ in range(3):
                engine.process()
                clock.move(hours=1)
            assert ana.conversation.digests() == []
            assert ana.context().messages == ()
            assert engine.verify().clean

    def test_a_spine_that_is_written_while_a_session_of_it_is_deleted_does_not_tell_of_it(
        self, backend: Any, clock: StoppedClock
    ) -> None:
        model = WaitingSummariser()
        engine = backend.open(clock=clock, summariser=model, layers=Layers(spine_turns=3, rolling_turns=100))
        ana = engine.memory("ana")
        ana.append_many([NewMessage("user", f"kept {number}", session="kept") for number in range(3)])
        ana.append("user", f"my PIN is {SECRET}", session="gone")
        model.while_it_works(engine.process, lambda: ana.conversation.delete("gone"))
        assert SECRET not in everything(engine)
        assert engine.verify().clean
        clock.move(minutes=1)
        engine.process()
        [spine] = ana.conversation.digests("spine")
        assert [message.content for message in ana.conversation.expand(spine)] == ["kept 0", "kept 1", "kept 2"]
        assert SECRET not in everything(engine)
        assert engine.verify().clean

    def test_an_open_session_may_be_deleted_and_the_talk_goes_on(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        one = ana.append("user", "oops", id="m1")
        ana.conversation.delete(one.session)
        assert ana.context().messages == ()
        assert ana.append("user", "again", id="m1").session_number == 2, "its ids are free again"
        assert contents(ana.context()) == ["again"]
        engine.process()
        assert engine.verify().clean

    def test_a_result_for_a_deleted_call_is_refused(self, backend: Any, clock: StoppedClock) -> None:
        ana = backend.open(clock=clock).memory("ana")
        ana.append("user", "go", session="s")
        ana.append("assistant", "", tool_calls=[ToolCall("c1", "go", {})])  # type: ignore[arg-type]
        ana.conversation.delete("s")
        with pytest.raises(InvalidInput, match="'c1' answers no call"):
            ana.append("tool", "done", tool_call_id="c1")


# -- finding ----------------------------------------------------------------------------------------------------------


class TestListAndSearch:
    def test_sessions_are_listed_with_source_number_count_and_activity_s_4_2_s_4_36(
        self, backend: Any, clock: StoppedClock
    ) -> None:
        engine = backend.open(clock=clock)
        for minutes, channel in enumerate(("discord:42", "scheduler:7", "discord:18446744073709551615", "web", "discord:x")):
            clock.set(START + timedelta(minutes=minutes))
            exchange(engine.memory("ana", agent="bot", channel=channel), minutes + 1)
        engine.memory("ana", agent="coach", channel="discord:42").append("user", "another agent")
        engine.memory("bob", channel="discord:42").append("user", "another user")
        ana = engine.memory("ana")
        lines = ana.conversation.list_sessions()
        assert [(line.source, line.source_id, line.message_count) for line in lines] == [
            (None, None, 5),
            ("discord", 42, 1),
            (None, None, 4),
            ("discord", 2**64 - 1, 3),
            ("scheduler", 7, 2),
            ("discord", 42, 1),
        ]
        assert lines[0].last_activity == START + timedelta(minutes=4)
        found = ana.conversation.list_sessions("discord")
        assert [line.source_id for line in found if line.source_id is not None] == [42, 2**64 - 1, 42]
        assert [line.source for line in ana.conversation.list_sessions("scheduler")] == ["scheduler"]
        assert ana.conversation.list_sessions("disc") == []
        assert len(ana.conversation.list_sessions(limit=2)) == 2

    def test_message_count_is_that_of_the_working_set(self, backend: Any, clock: StoppedClock) -> None:
        ana = backend.open(clock=clock).memory("ana", channel="discord:1")
        exchange(ana, 6)
        ana.conversation.clear()
        ana.append("user", "new")
        [line] = ana.conversation.list_sessions("discord")
        assert (line.message_count, line.session.messages) == (1, 7)

    def test_search_finds_all_words_in_any_case_newest_first_folded_or_not(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        ana.append("user", "The STRASSE in Köln", session="one")
        ana.append("assistant", "straße, köln, yes", tool_calls=[ToolCall("c", "x", {})])  # type: ignore[arg-type]
        ana.append("tool", "Köln: 3 km", tool_call_id="c")
        ana.append("user", "ﬁnd me %_ and \\", session="two")
        ana.conversation.clear("one")
        assert [hit.seq for hit in ana.conversation.search("köln straße")] == [2, 1]
        assert [hit.role for hit in ana.conversation.search("KÖLN")] == ["tool", "assistant", "user"]
        assert [hit.seq for hit in ana.conversation.search("köln", limit=1)] == [3]
        assert ana.conversation.search("köln", session="two") == []
        assert len(ana.conversation.search("find %_ \\")) == 1
        assert ana.conversation.search("nowhere") == []

    def test_search_reaches_far_back(self, sqlite: Any, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sessions, "SEARCH_PAGE", 100)
        ana = sqlite.open(clock=clock).memory("ana")
        ana.append("user", "the needle")
        ana.append_many(NewMessage("user", f"hay {number}") for number in range(350))
        assert [hit.seq for hit in ana.conversation.search("NEEDLE")] == [1]


# -- the working set by hand ------------------------------------------------------------------------------------------


class TestByHand:
    def test_cleared_is_out_of_sight_and_not_lost_x_33(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        exchange(ana, 5)
        before = ana.conversation.sessions()[0]
        clock.move(minutes=3)
        cleared = ana.conversation.clear()
        assert cleared is not None
        assert (cleared.policy, cleared.text) == ("clear", "")
        assert ana.conversation.clear() is None, "there is nothing left to clear"
        context = ana.context()
        assert (context.messages, context.blocks) == ((), ())
        session = ana.conversation.sessions()[0]
        assert (session.messages, session.last_at, session.ended_at) == (5, before.last_at, None)
        assert [message.seq for message in ana.conversation.expand(cleared)] == [1, 2, 3, 4, 5]
        assert len(ana.messages(10)) == 5
        assert engine.verify().clean

    def test_replaced_shows_the_callers_words_s_4_35(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        exchange(ana, 5)
        ana.conversation.replace("We agreed on Tuesday.")
        assert [message["role"] for message in ana.context().as_messages()] == ["system"]
        assert "We agreed on Tuesday." in ana.context().system
        again = ana.conversation.replace("No, on Wednesday.")
        assert "Tuesday" not in ana.context().system
        assert [message.seq for message in ana.conversation.expand(again, whole=True)] == [1, 2, 3, 4, 5]
        assert list(ana.conversation.expand(again)) == []
        assert engine.verify().clean

    def test_undo_restores_the_boundary_before_step_by_step_and_a_fold_may_be_made_again(
        self, backend: Any, clock: StoppedClock
    ) -> None:
        engine = backend.open(clock=clock, profile="task_agent")
        ana = engine.memory("ana")
        boundaries = [0]
        for round_ in range(3):
            exchange(ana, 4, first=round_ * 4 + 1)
            ana.conversation.compact(force=True)
            boundaries.append(ana.conversation.sessions()[0].boundary_seq)
        ana.conversation.replace("in short")
        assert boundaries == [0, 2, 6, 10]
        shown = ana.context().system
        for expected in reversed(boundaries):
            undone = ana.conversation.undo()
            assert undone.undone
            assert ana.conversation.sessions()[0].boundary_seq == expected
            assert ana.context().system != shown
            assert engine.verify().clean
        with pytest.raises(NotFound, match="no fold to undo"):
            ana.conversation.undo()
        assert len(ana.context().messages) == 12
        [again] = ana.conversation.compact(force=True)
        assert (again.version, again.based_on) == (5, 0)
        assert [message.seq for message in ana.conversation.expand(again, whole=True)] == list(range(1, 11))
        assert [digest.undone for digest in ana.conversation.digests("fold")] == [False, True, True, True, True]
        assert engine.verify().clean

    def test_a_long_run_expands_page_by_page(self, sqlite: Any, clock: StoppedClock) -> None:
        ana = sqlite.open(clock=clock).memory("ana")
        ana.append_many(NewMessage("user", str(number)) for number in range(1_300))
        cleared = ana.conversation.clear()
        assert cleared is not None
        found = ana.conversation.expand(cleared)
        assert next(found).content == "0"
        assert [message.seq for message in found] == list(range(2, 1_301))

    def test_a_request_folds_one_step_of_a_large_working_set_and_a_job_the_rest(
        self, sqlite: Any, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folds, "WORKING_READ_MAX", 200)
        engine = sqlite.open(clock=clock, profile="task_agent")
        ana = engine.memory("ana")
        ana.append_many(NewMessage(("user", "assistant")[number % 2], f"report {number}") for number in range(1_000))
        made = ana.context()
        [session] = ana.conversation.sessions()
        assert 150 < session.boundary_seq <= 200
        shown = len(made.messages)
        assert f"{session.working - shown} messages of this session that wait to be folded" in made.dropped
        assert made.messages[-1].content == "report 999"
        engine.process()
        [session] = ana.conversation.sessions()
        assert session.working <= 50
        assert not any("wait to be folded" in line for line in ana.context().dropped)

    @pytest.mark.parametrize("shape", ["uaa", "uata", "ua", "uaaaa"])
    def test_a_working_set_that_takes_several_reads_is_folded_whatever_its_turns_look_like(
        self, sqlite: Any, clock: StoppedClock, shape: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folds, "WORKING_READ_MAX", 200)
        engine = sqlite.open(clock=clock)
        ana = engine.memory("ana")
        batch = []
        for turn in range(460 // len(shape)):
            for place, letter in enumerate(shape):
                if letter == "u":
                    batch.append(NewMessage("user", f"question {turn}"))
                elif letter == "t":
                    batch.append(NewMessage("tool", "found", tool_call_id=f"c{turn}"))
                else:
                    calls = [ToolCall(f"c{turn}", "look", {})] if shape[place + 1 : place + 2] == "t" else []  # type: ignore[arg-type]
                    batch.append(NewMessage("assistant", "answer", tool_calls=calls))
        ana.append_many(batch)
        made = ana.conversation.compact()
        assert len(made) > 1
        session = ana.conversation.sessions()[0]
        assert session.working <= 50
        assert [message.seq for message in ana.conversation.expand(made[-1], whole=True)] == list(
            range(1, session.boundary_seq + 1)
        )
        assert ana.context().messages[0].role == "user"
        assert engine.verify().clean

    def test_what_does_not_fit_is_counted_rightly(self, backend: Any, clock: StoppedClock) -> None:
        ana = backend.open(clock=clock).memory("ana")
        for _ in range(10):
            ana.append("user", "word " * 20)
            ana.append("assistant", "word " * 20)
        context = ana.context(budget_tokens=130)
        assert 0 < len(context.messages) < 20
        assert context.tokens <= 130
        assert [int(part) for part in context.dropped[0].split() if part.isdigit()] == [20 - len(context.messages)]


# -- the floor --------------------------------------------------------------------------------------------------------


class TestTurn:
    def test_turns_of_one_channel_do_not_interleave(self, backend: Any, clock: StoppedClock) -> None:
        engines = [backend.open(clock=clock) for _ in range(2)]

        def speak(number: int) -> None:
            ana = engines[number % 2].memory("ana")
            with ana.turn() as turn:
                turn.append("user", f"{number}")
                turn.append_many([NewMessage("assistant", f"{number}"), NewMessage("assistant", f"{number}")])

        threads = [threading.Thread(target=speak, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        said = [message.content for message in engines[0].memory("ana").messages(100)]
        assert len(said) == 18
        assert [said[index : index + 3] for index in range(0, 18, 3)] == [[said[index]] * 3 for index in range(0, 18, 3)]
        assert engines[0].verify().clean

    def test_another_turn_waits_and_then_gives_up(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        with ana.turn():
            with pytest.raises(Unavailable, match=r"`wait_s`"), ana.turn(wait_s=0):
                pytest.fail("two turns at once")
            with engine.memory("ana", channel="other").turn(wait_s=0), engine.memory("bob").turn(wait_s=0):
                pass
        with ana.turn(wait_s=0):
            pass

    def test_the_floor_is_given_back_after_an_error(self, backend: Any, clock: StoppedClock) -> None:
        ana = backend.open(clock=clock).memory("ana")

        def fail() -> None:
            with ana.turn() as turn:
                turn.append("user", "before")
                raise RuntimeError("the agent failed")

        with pytest.raises(RuntimeError):
            fail()
        with ana.turn(wait_s=0) as turn:
            turn.append("user", "after")
        assert [message.content for message in ana.messages()] == ["before", "after"]

    def test_a_holder_that_died_loses_the_floor_and_may_not_speak_any_more(self, backend: Any, clock: StoppedClock) -> None:
        engine = backend.open(clock=clock)
        ana = engine.memory("ana")
        with ana.turn(lease_s=60) as lost:
            lost.append("user", "one")
            clock.move(seconds=59)
            lost.append("assistant", "two")
            clock.move(seconds=1)
            with pytest.raises(Conflict, match="lost the channel"):
                lost.append("assistant", "nobody prolonged it")
            with backend.open(clock=clock).memory("ana").turn(wait_s=0) as turn:
                turn.append("user", "my turn")
                with pytest.raises(Conflict, match="start a new turn"):
                    lost.append_many([NewMessage("assistant", "too late")])
        assert [message.content for message in ana.messages()] == ["one", "two", "my turn"]
        with ana.turn(wait_s=0):
            pass
        assert engine.verify().clean

    def test_ending_a_lost_turn_does_not_take_the_floor_from_its_new_holder(self, backend: Any, clock: StoppedClock) -> None:
        ana = backend.open(clock=clock).memory("ana")
        first = ana.turn(lease_s=60)
        first.__enter__()
        clock.move(seconds=61)
        with ana.turn(wait_s=0) as turn:
            first.__exit__(None, None, None)
            turn.append("user", "still mine")
            with pytest.raises(Unavailable), ana.turn(wait_s=0):
                pass

    def test_a_lease_taken_before_the_clock_was_set_back_does_not_block_for_years(
        self, backend: Any, clock: StoppedClock
    ) -> None:
        ana = backend.open(clock=clock).memory("ana")
        with ana.turn():
            clock.move(days=-400)
            with ana.turn(wait_s=0) as turn:
                turn.append("user", "back then")

    def test_a_long_turn_is_prolonged_while_it_lives(self, backend: Any, clock: StoppedClock, eventually: Any) -> None:
        ana = backend.open(clock=clock).memory("ana")
        with ana.turn(lease_s=1) as turn:
            for _ in range(3):
                clock.move(seconds=0.9)

                def spoken() -> bool:
                    try:
                        clock.move(seconds=0)
                        turn.append("user", "still here")
                    except Conflict:
                        return False
                    return True

                eventually(spoken)
        assert len(ana.messages()) == 3

    def test_turns_can_be_awaited(self, backend: Any) -> None:
        async def work() -> list[str]:
            async with await perdure.aio.open(settings=backend.settings) as engine:
                ana = engine.memory("ana")

                async def speak(name: str) -> None:
                    async with ana.turn() as turn:
                        await turn.append("user", name)
                        await asyncio.sleep(0)
                        await turn.append_many([NewMessage("assistant", name)])

                await asyncio.gather(*(speak(name) for name in "abcd"))
                async with ana.turn():
                    with pytest.raises(Unavailable):
                        await ana.turn(wait_s=0).__aenter__()
                return [message.content for message in await ana.messages()]

        said = asyncio.run(asyncio.wait_for(work(), 60))
        assert sorted(said) == list("aabbccdd")
        assert said[0::2] == said[1::2]

    def test_a_task_that_is_cancelled_while_it_waits_leaves_the_floor_free(self, backend: Any) -> None:
        async def work() -> None:
            async with await perdure.aio.open(settings=backend.settings) as engine:
                ana = engine.memory("ana")

                async def wait_in_vain() -> None:
                    async with ana.turn(wait_s=30):
                        pytest.fail("it was cancelled")

                async with ana.turn():
                    task = asyncio.create_task(wait_in_vain())
                    await asyncio.sleep(0.2)
                    task.cancel()
                    await asyncio.sleep(0.05)
                with pytest.raises(asyncio.CancelledError):
                    await task
                async with ana.turn(wait_s=1) as turn:
                    await turn.append("user", "free")

        asyncio.run(asyncio.wait_for(work(), 60))


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until something holds, up to a deadline."""

    def wait(holds: Callable[[], bool]) -> None:
        pause = threading.Event()
        for _ in range(int(WAIT_S / 0.02)):
            if holds():
                return
            pause.wait(0.02)
        pytest.fail(f"it did not happen within {WAIT_S} s")

    return wait


# -- wrong calls ------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[Memory], Any], type[perdure.PerdureError], str]] = {
    "profile": (
        lambda ana: ana.conversation.configure(profile="robot"),
        InvalidInput,
        r"profile 'robot'.*task_agent.*complete",
    ),
    "casual": (lambda ana: ana.conversation.configure(casual="yes"), InvalidInput, r"`casual` = 'yes'.*True or False"),  # type: ignore[arg-type]
    "shared": (lambda ana: ana.conversation.configure(shared=1), InvalidInput, r"`shared` = 1.*True or False"),  # type: ignore[arg-type]
    "kind": (lambda ana: ana.conversation.digests("folds"), InvalidInput, r"`kind` = 'folds'.*fold, rolling"),  # type: ignore[arg-type]
    "limit": (lambda ana: ana.conversation.digests(limit=0), InvalidInput, r"`limit` = 0"),
    "page": (lambda ana: ana.conversation.list_sessions(limit=10_001), LimitExceeded, r"`page_rows_max` = 10000"),
    "query": (lambda ana: ana.conversation.search("  "), InvalidInput, r"`query`.*at least one"),
    "no query": (lambda ana: ana.conversation.search(None), InvalidInput, r"`query`"),  # type: ignore[arg-type]
    "hits": (lambda ana: ana.conversation.search("x", limit=-1), InvalidInput, r"`limit` = -1"),
    "session": (lambda ana: ana.conversation.search("x", session="nope"), NotFound, r"'nope'.*`sessions\(\)`"),
    "compact": (lambda ana: ana.conversation.compact("nope"), NotFound, r"'nope'"),
    "fold": (lambda ana: ana.conversation.fold("nope"), NotFound, r"'nope'"),
    "clear": (lambda ana: ana.conversation.clear("nope"), NotFound, r"'nope'"),
    "replace": (lambda ana: ana.conversation.replace("text", "nope"), NotFound, r"'nope'"),
    "replace empty": (lambda ana: ana.conversation.replace(" "), InvalidInput, r"`text` is empty.*`clear\(\)`"),
    "undo": (lambda ana: ana.conversation.undo(), NotFound, r"`digests\(\)`"),
    "resume": (lambda ana: ana.conversation.resume("nope"), NotFound, r"'nope'"),
    "delete": (lambda ana: ana.conversation.delete("nope"), NotFound, r"'nope'"),
    "delete nothing": (lambda ana: ana.conversation.delete(""), InvalidInput, r"session"),
    "session id": (lambda ana: ana.conversation.close(5), InvalidInput, r"session"),  # type: ignore[arg-type]
    "long id": (lambda ana: ana.conversation.close("x" * 10_000), InvalidInput, r"session"),
    "expand": (lambda ana: list(ana.conversation.expand("fold 1")), InvalidInput, r"`Digest`.*`digests\(\)`"),  # type: ignore[arg-type]
    "budget": (lambda ana: ana.context(budget_tokens=99), InvalidInput, r"`budget_tokens` = 99.*at least 100"),
    "budget text": (lambda ana: ana.context(budget_tokens="1000"), InvalidInput, r"`budget_tokens` = '1000'"),  # type: ignore[arg-type]
    "wait": (lambda ana: ana.turn(wait_s=-1).__enter__(), InvalidInput, r"`wait_s` = -1.*from 0"),
    "lease": (lambda ana: ana.turn(lease_s=0.5).__enter__(), InvalidInput, r"`lease_s` = 0.5.*from 1"),
    "lease nan": (lambda ana: ana.turn(lease_s=float("nan")).__enter__(), InvalidInput, r"`lease_s` = nan"),
    "source": (lambda ana: ana.conversation.list_sessions(5), InvalidInput, r"source"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_names_the_thing_the_value_and_the_remedy_and_changes_nothing(
    sqlite: Any, clock: StoppedClock, what: str
) -> None:
    engine = sqlite.open(clock=clock)
    ana = engine.memory("ana")
    ana.append("user", "hi")
    before = everything(engine)
    call, error, words = WRONG[what]
    with pytest.raises(error, match=words):
        call(ana)
    assert everything(engine) == before


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"profile": "robot"}, r"profile 'robot'.*complete"),
        ({"session_idle_s": 0}, r"`session_idle_s` = 0"),
        ({"session_resume_s": -1}, r"`session_resume_s` = -1"),
        ({"transcript_messages_min": -1}, r"`transcript_messages_min` = -1"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_opened(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        perdure.Settings(**fields)


@pytest.mark.parametrize("name", [one for one in Layers.__dataclass_fields__ if one != "history_messages_keep"])
def test_a_wrong_threshold_is_refused_by_its_name(name: str) -> None:
    for value in (0, -1, 1.5, True, "8", 10**10):
        with pytest.raises(InvalidInput, match=rf"`{name}` = "):
            Layers(**{name: value})  # type: ignore[arg-type]


# -- apart ------------------------------------------------------------------------------------------------------------

OTHERS = {
    "user": {"user": "bob"},
    "agent": {"agent": "chef"},
    "channel": {"channel": "discord:43"},
    "space": {"space": "elsewhere"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_no_call_reaches_another_address_or_user(backend: Any, clock: StoppedClock, what: str) -> None:
    layers = Layers(rolling_turns=2, spine_turns=4)
    engine = backend.open(clock=clock, profile="companion", layers=layers)
    mine = {"user": "ana", "agent": "coach", "channel": "discord:42", "space": "default"}
    ana, other = engine.memory(**mine), engine.memory(**{**mine, **OTHERS[what]})  # type: ignore[arg-type]
    same_user = what in ("agent", "channel")
    for number in range(6):
        ana.append("user", f"I live in Oslo with walrus number {number}.", session="mine")
    ana.conversation.compact(force=True)
    ana.conversation.clear()
    engine.process()
    ana.conversation.configure(casual=True, profile="complete")
    before = (
        ana.conversation.sessions(),
        ana.conversation.digests(),
        ana.conversation.digests("spine"),
        ana.conversation.agent_state(),
    )
    assert len(before[2]) == 1

    assert other.conversation.agent_state().turns == 0
    assert (other.conversation.agent_state().casual, other.conversation.agent_state().profile) == (False, None)
    assert other.conversation.agent_state().last_text is None
    assert other.conversation.digests() == []
    assert (other.conversation.digests("spine") != []) == same_user, "the spine is the user's"
    assert (other.conversation.list_sessions() != []) == same_user, "the list is the user's"
    assert other.conversation.search("walrus") == []
    assert other.conversation.sessions() == []
    assert [block.kind for block in other.context().blocks] == (["spine"] if same_user else [])
    assert other.context().messages == ()
    for call in ("close", "resume", "compact", "fold", "clear", "undo", "delete"):
        with pytest.raises(NotFound):
            getattr(other.conversation, call)("mine")
    with pytest.raises(NotFound):
        other.conversation.replace("x", "mine")
    for digest in before[1]:
        with pytest.raises(NotFound):
            list(other.conversation.expand(digest))
    with ana.turn(), other.turn(wait_s=0) as turn:
        turn.append("user", "hello", session="mine")
    assert other.conversation.delete("mine") == 1
    engine.process()
    after = (
        ana.conversation.sessions(),
        ana.conversation.digests(),
        ana.conversation.digests("spine"),
        ana.conversation.agent_state(),
    )
    assert after == before
    assert engine.verify().clean


def test_a_forged_digest_opens_no_other_conversation(backend: Any, clock: StoppedClock) -> None:
    """What a digest stands for is what the store says, not what the caller's copy of it says."""
    engine = backend.open(clock=clock)
    ana, private = engine.memory("ana", channel="shared"), engine.memory("ana", channel="private")
    ana.append("user", "public")
    private.append("user", "private")
    held = ana.conversation.clear()
    hidden = private.conversation.clear()
    assert held is not None
    assert hidden is not None
    forged = replace(held, sources=hidden.sources)
    assert not any(message.content == "private" for message in ana.conversation.expand(forged))
    as_spine = replace(hidden, kind="spine", address=SPINE_ADDRESS, session_number=0)
    with pytest.raises(NotFound):
        list(ana.conversation.expand(as_spine))
    beyond = replace(held, sources=(DigestSource(held.address, 1, 1, 99),))
    assert [message.content for message in ana.conversation.expand(beyond)] == ["public"]


# -- profiles ---------------------------------------------------------------------------------------------------------

LAYERS_OF = {
    "task_agent": {"fold"},
    "channel_bot": {"fold"},
    "companion": {"fold", "rolling", "session"},
    "complete": {"fold", "rolling", "session"},
}


@pytest.mark.parametrize("given", ["settings", "configure"])
@pytest.mark.parametrize("profile", LAYERS_OF)
def test_a_profile_says_which_layers_an_address_keeps_x_11(backend: Any, clock: StoppedClock, profile: str, given: str) -> None:
    other = "companion" if profile == "task_agent" else "task_agent"
    layers = Layers(history_messages_max=12, spine_turns=8)
    engine = backend.open(clock=clock, profile=profile if given == "settings" else other, layers=layers)
    ana = engine.memory("ana")
    if given == "configure":
        assert ana.conversation.configure(profile=profile).profile == profile
    for number in range(15):
        ana.append("user", f"I bought {number} apples in Oslo.")
        engine.process()
    ana.conversation.close()
    engine.process()
    digests = ana.conversation.digests(limit=1_000)
    assert {digest.kind for digest in digests} == LAYERS_OF[profile]
    assert {digest.policy for digest in digests if digest.kind == "fold"} == {
        "task_agent": {"bounded_history"},
        "companion": {"bounded_history"},
        "channel_bot": {"bounded_history", "periodic_flush"},
        "complete": {"bounded_history", "periodic_flush"},
    }[profile]
    assert bool(ana.conversation.digests("spine")) == (profile in ("companion", "complete"))
    assert engine.verify().clean


def test_configure_keeps_what_it_is_not_told_and_survives_a_restart(backend: Any, clock: StoppedClock) -> None:
    engine = backend.open(clock=clock)
    ana = engine.memory("ana")
    ana.conversation.configure(profile="channel_bot")
    ana.append("user", "hi")
    ana.conversation.configure(casual=True)
    assert ana.conversation.configure(shared=True).casual
    engine.close()
    again = backend.open(clock=clock).memory("ana")
    state = again.conversation.agent_state()
    assert (state.profile, state.casual, state.private, state.shared, state.turns) == ("channel_bot", True, False, True, 1)
    assert not again.conversation.configure(shared=False).shared


# -- in the background, and through restarts --------------------------------------------------------------------------


def test_the_background_worker_does_all_of_it(backend: Any, clock: StoppedClock, tmp_path: Path, eventually: Any) -> None:
    files = tmp_path / "files"
    layers = Layers(spine_turns=9)
    engine = backend.open(clock=clock, background=True, profile="complete", layers=layers, files_dir=str(files))
    ana = engine.memory("ana")
    for number in range(10):
        ana.append("user", f"Remember for next time: always use plan {number} in Oslo.")
        ana.append("assistant", "ok")
    eventually(lambda: len(ana.conversation.digests("rolling")) >= 1 and len(ana.conversation.digests("spine")) == 1)
    clock.move(minutes=31)
    eventually(lambda: ana.conversation.sessions()[0].ended_at is not None and ana.conversation.sessions()[0].working == 0)
    eventually(lambda: len(ana.conversation.digests("session")) == 1)
    eventually(lambda: len(list(files.rglob("*.md"))) >= 1)
    engine.close()
    assert backend.open(clock=clock).verify().clean


def test_a_restart_at_any_moment_loses_no_work(backend: Any, clock: StoppedClock) -> None:
    """Every step is made by an engine of its own; some die with a job in hand."""
    from perdure.domain.jobs import Claim

    layers = Layers(rolling_turns=2, spine_turns=4)
    for turn in range(6):
        engine = backend.open(clock=clock, profile="companion", layers=layers)
        ana = engine.memory("ana")
        ana.append("user", f"turn {turn}")
        ana.append("assistant", f"answer {turn}")
        engine.close()
        doomed = backend.open(clock=clock, profile="companion", layers=layers)
        doomed._store.claim(Claim("doomed", ("tally", "rolling_digest", "spine"), clock.now(), 60.0))
        doomed.close()
        clock.move(minutes=2)
        engine = backend.open(clock=clock, profile="companion", layers=layers)
        engine.process()
        engine.close()
    clock.move(minutes=31)
    engine = backend.open(clock=clock, profile="companion", layers=layers)
    engine.process()
    clock.move(minutes=2)
    engine.process()
    ana = engine.memory("ana")
    assert (ana.conversation.sessions()[0].turns, ana.conversation.agent_state().turns) == (6, 6)
    assert ana.conversation.sessions()[0].ended_at is not None
    assert len(ana.conversation.digests("rolling")) == 3
    assert len(ana.conversation.digests("spine")) == 1
    assert len(ana.conversation.digests("session")) == 1
    assert engine.verify().clean
