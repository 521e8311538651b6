"""Random conversations against their plain log: nothing is lost, nothing is told twice, nothing leaks, budgets hold.

Messages of every role on several channels, tool results that come late, folds, flushes, clearing, undoing, closing,
resuming, deleting, a clock that goes forward and back, restarts, and a summariser that is down now and then. After every
step, for every session: what its newest fold stands for and what is left of its working set are the log, each message
once, and a tool call is on the same side as its result.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

import perdure
from perdure import Digest, Layers, Memory, Message, NewMessage, Session, ToolCall
from perdure.adapters.memory.store import MemoryStore
from perdure.app import Engine
from perdure.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from perdure.engine.context.assemble import MESSAGE_OVERHEAD_TOKENS, fold_text
from perdure.engine.text.sentences import count_words
from perdure.engine.text.tokens import estimate_tokens
from perdure.services.conversation.digests import SESSION_CHARS_MAX
from perdure.testing import StoppedClock
from scripted import ScriptedSummariser

PLACES = (("ana", "a"), ("ana", "b"), ("bob", "a"))
LAYERS = Layers(
    history_messages_max=7,
    history_tokens_max=150,
    fold_messages_min=5,
    fold_words_max=20,
    flush_messages_min=3,
    rolling_turns=2,
    rolling_chars_max=150,
    spine_turns=4,
    spine_chars_max=300,
    summary_tokens_max=120,
    window_messages=3,
)
BASE = perdure.Settings(url="memory:", profile="complete", layers=LAYERS, durability="normal", session_resume_s=7200.0)
WORDS = (
    "always use kg",
    "the file is /etc/hosts",
    "what is left?",
    "ok",
    "INV-2041 is due on 2026-02-01",
    "ha ha",
    "漢字を書く",
)

VERIFY_EVERY = 5
"""Looking through the whole store takes longer than a step. What is unsound stays so, and the end is always looked at."""

places = st.sampled_from(PLACES)
words = st.sampled_from(WORDS)
roles = st.sampled_from(["user", "user", "assistant", "system"])
which = st.integers(0, 9)


class Conversations(RuleBasedStateMachine):
    """Each rule does something to the conversations; the log is kept beside them."""

    open_subject: Callable[[StoppedClock, ScriptedSummariser | None, bool], Engine]

    @initialize(model=st.booleans())
    def start(self, model: bool) -> None:
        self.clock = StoppedClock()
        self.model = ScriptedSummariser() if model else None
        self.engine = type(self).open_subject(self.clock, self.model, True)
        self.log: dict[tuple[str, str], dict[str, list[Message]]] = {place: {} for place in PLACES}
        self.said = dict.fromkeys(PLACES, 0)
        self.pending: list[tuple[tuple[str, str], str]] = []
        self.at_end: dict[tuple[object, ...], bool] = {}
        self.count = 0
        self.steps = 0

    def memory(self, place: tuple[str, str]) -> Memory:
        return self.engine.memory(place[0], agent="coach", channel=place[1])

    def marked(self, place: tuple[str, str], text: str) -> str:
        """Every text says where it was said, so that it can be recognised anywhere else."""
        self.count += 1
        return f"{text} {mark(place)} {self.count}"

    def keep(self, place: tuple[str, str], messages: Sequence[Message]) -> None:
        for message in messages:
            self.log[place].setdefault(message.session, []).append(message)
            self.said[place] += message.role == "user"

    # -- what is said

    @rule(place=places, role=roles, text=words, session=st.sampled_from([None, None, None, "one", "two"]))
    def somebody_speaks(self, place: tuple[str, str], role: str, text: str, session: str | None) -> None:
        self.keep(place, [self.memory(place).append(role, self.marked(place, text), session=session)])

    @rule(place=places, text=words, turns=st.integers(1, 3), tools=st.booleans(), answered=st.booleans())
    def a_few_turns(self, place: tuple[str, str], text: str, turns: int, tools: bool, answered: bool) -> None:
        batch = []
        for _ in range(turns):
            batch.append(NewMessage("user", self.marked(place, text)))
            if tools:
                call = f"c{self.count}"
                batch.append(
                    NewMessage("assistant", self.marked(place, "let me look"), tool_calls=[ToolCall(call, "look", {})])
                )  # type: ignore[arg-type]
                if answered:
                    batch.append(NewMessage("tool", self.marked(place, "found"), tool_call_id=call))
                else:
                    self.pending.append((place, call))
            batch.append(NewMessage("assistant", self.marked(place, "done")))
        self.keep(place, self.memory(place).append_many(batch))

    @precondition(lambda self: bool(self.pending))
    @rule(index=which, failed=st.booleans())
    def a_result_comes_late(self, index: int, failed: bool) -> None:
        place, call = self.pending.pop(index % len(self.pending))
        try:
            message = self.memory(place).append("tool", self.marked(place, "found late"), tool_call_id=call, failed=failed)
        except InvalidInput:
            made = {one.id for log in self.log[place].values() for message in log for one in message.tool_calls}
            assert call not in made, "only the call of a deleted session has no place for its result"
            return
        self.keep(place, [message])

    # -- what is done about it

    def do(self, call: Callable[[], object]) -> None:
        """Nothing to do is no failure; a summary that cannot be had is one, and only of a model that is down."""
        expected = (Conflict, NotFound, Unavailable) if self.model is not None and self.model.down else (Conflict, NotFound)
        with suppress(*expected):
            call()

    @rule(place=places, how=st.sampled_from(["fold", "compact", "force", "clear", "replace", "undo"]), index=which)
    def the_working_set_moves(self, place: tuple[str, str], how: str, index: int) -> None:
        talk = self.memory(place).conversation
        named = list(self.log[place])
        session = named[index % len(named)] if named and index % 3 == 0 else None
        calls: dict[str, Callable[[], object]] = {
            "fold": lambda: talk.fold(session),
            "compact": lambda: talk.compact(session),
            "force": lambda: talk.compact(session, force=True),
            "clear": lambda: talk.clear(session),
            "replace": lambda: talk.replace(self.marked(place, "in short"), session),
            "undo": lambda: talk.undo(session),
        }
        self.do(calls[how])

    @rule(place=places, how=st.sampled_from(["close", "resume", "resume", "delete"]), index=which)
    def a_session_ends_or_goes_on(self, place: tuple[str, str], how: str, index: int) -> None:
        named = list(self.log[place])
        if not named:
            return
        session, talk = named[index % len(named)], self.memory(place).conversation
        if how == "delete":
            assert talk.delete(session) == len(self.log[place].pop(session))
        else:
            self.do(lambda: getattr(talk, how)(session))

    @rule(minutes=st.sampled_from([0.1, 5, 20, 30, 31, 31, 90, 200, -45, -300]))
    def time_passes_or_is_corrected(self, minutes: float) -> None:
        self.clock.move(minutes=minutes)

    @rule()
    def jobs_run(self) -> None:
        assert self.engine.process().parked == 0 or (self.model is not None and self.model.down)

    @precondition(lambda self: self.model is not None)
    @rule(down=st.booleans())
    def the_model_comes_and_goes(self, down: bool) -> None:
        self.model.down = down

    @rule()
    def a_restart(self) -> None:
        self.engine.close()
        self.engine = type(self).open_subject(self.clock, self.model, False)

    @rule(place=places, budget=st.sampled_from([100, 150, 300, 1_000, None]))
    def a_request(self, place: tuple[str, str], budget: int | None) -> None:
        """What an agent is given fits, is of this conversation only, and has no result without its call."""
        context = self.memory(place).context(budget_tokens=budget)
        limit = LAYERS.history_tokens_max if budget is None else budget
        assert context.tokens <= limit
        texts = [estimate_tokens(message.content) + MESSAGE_OVERHEAD_TOKENS for message in context.messages]
        assert sum(texts) + sum(estimate_tokens(block.render()) for block in context.blocks) <= limit
        calls: set[str] = set()
        for message in context.messages:
            assert message.tool_call_id is None or message.tool_call_id in calls
            calls |= {call.id for call in message.tool_calls}
        assert len({message.session for message in context.messages}) <= 1
        seqs = [message.seq for message in context.messages]
        assert seqs == sorted(set(seqs))
        for block in context.blocks:
            self.only_of(place, block.text, also_channels=block.kind in ("spine", "lessons", "instructions"))
        for message in context.messages:
            self.only_of(place, message.content)

    # -- what must hold

    @invariant()
    def everything_is_told_once_and_whole(self) -> None:
        if not hasattr(self, "engine"):
            return
        for place in PLACES:
            memory = self.memory(place)
            sessions = {session.id: session for session in memory.conversation.sessions(1_000)}
            assert set(sessions) == set(self.log[place])
            folds = memory.conversation.digests("fold", limit=10_000)
            for name, log in self.log[place].items():
                self.check_session(
                    memory, sessions[name], log, [fold for fold in folds if fold.session_number == log[0].session_number]
                )
            assert memory.conversation.agent_state().turns == self.said[place]
            self.check_layers(place, memory)

    def check_session(self, memory: Memory, session: Session, log: list[Message], folds: list[Digest]) -> None:
        assert (session.messages, session.turns) == (len(log), sum(message.role == "user" for message in log))
        assert memory.messages(1_000, session=session.id) == log
        newest = next((fold for fold in folds if not fold.undone), None)
        told = [] if newest is None else [message.seq for message in memory.conversation.expand(newest, whole=True)]
        made = {call.id: message.seq for message in log for call in message.tool_calls}
        late = [
            message.seq
            for message in log[session.boundary_seq :]
            if made.get(message.tool_call_id or "", 10**9) <= session.boundary_seq
        ]
        working = [message.seq for message in log[session.boundary_seq :] if message.seq not in late]
        assert sorted(told + working) == list(range(1, len(log) + 1)), (
            "every message once: told by a fold, or in the working set"
        )
        for message in log:
            if message.tool_call_id is not None:
                assert (message.seq in told) == (made[message.tool_call_id] in told), "a call and its result are on one side"
        if newest is not None:
            place = (memory.scope.owner.user, memory.scope.address.channel, session.number)
            if (*place, newest.version) not in self.at_end and newest.policy not in ("clear", "replace"):
                self.check_cut(newest, log, made)
            ended_there = self.at_end.setdefault((*place, newest.version), newest.last_seq == session.messages)
            if session.boundary_seq < session.messages and not ended_there:
                assert log[session.boundary_seq].role == "user", f"{newest.policy} cut within a turn"

    def check_cut(self, fold: Digest, log: list[Message], made: dict[str, int]) -> None:
        """A fold that was made just now has not parted what was together until then."""
        for message in log:
            if message.tool_call_id is not None and made[message.tool_call_id] >= fold.sources[0].first_seq:
                assert (message.seq <= fold.last_seq) == (made[message.tool_call_id] <= fold.last_seq)

    def check_layers(self, place: tuple[str, str], memory: Memory) -> None:
        digests = [*memory.conversation.digests(limit=10_000), *memory.conversation.digests("spine", limit=10_000)]
        chars = {"rolling": LAYERS.rolling_chars_max, "session": SESSION_CHARS_MAX, "spine": LAYERS.spine_chars_max}
        held = {
            (message.session_number, message.seq, message.address.channel)
            for log in self.log[place].values()
            for message in log
        }
        for digest in digests:
            self.only_of(place, "\n".join((digest.text, *digest.pinned, *digest.lessons)), also_channels=digest.kind == "spine")
            assert len(digest.text) <= chars.get(digest.kind, 10**9)
            if digest.kind == "fold" and digest.policy != "replace":
                assert estimate_tokens(fold_text(digest)) <= LAYERS.summary_tokens_max
            if digest.policy == "request_fold":
                assert count_words(digest.text) <= LAYERS.fold_words_max
            if digest.kind != "fold":
                told = [
                    (one.session_number, one.seq, one.address.channel) for one in memory.conversation.expand(digest, whole=True)
                ]
                assert len(told) == len(set(told)), "no message twice"
                assert digest.kind == "spine" or set(told) <= held

    def only_of(self, place: tuple[str, str], text: str, *, also_channels: bool = False) -> None:
        for other in PLACES:
            if other != place and not (also_channels and other[0] == place[0]):
                assert mark(other) not in text

    @invariant()
    def the_store_is_sound(self) -> None:
        if hasattr(self, "engine"):
            self.steps += 1
            if self.steps % VERIFY_EVERY == 0:
                assert self.engine.verify().findings == ()

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            assert self.engine.verify().findings == ()
            self.engine.close()


def mark(place: tuple[str, str]) -> str:
    return f"<{place[0]} on {place[1]}>"


def run(open_subject: Callable[[StoppedClock, ScriptedSummariser | None, bool], Engine], examples: int) -> None:
    machine: Any = type("Conversations", (Conversations,), {"open_subject": staticmethod(open_subject)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


class LastingStore(MemoryStore):
    """A store in memory that outlives the engine on it."""

    def close(self) -> None:
        """The next engine finds what this one left."""


def test_in_memory_nothing_is_lost_or_told_twice() -> None:
    kept: list[LastingStore] = []

    def open_subject(clock: StoppedClock, model: ScriptedSummariser | None, fresh: bool) -> Engine:
        if fresh:
            kept[:] = [LastingStore()]
        return Engine(kept[0], clock, BASE, models={"summariser": model})

    run(open_subject, examples=120)


def test_on_sqlite_nothing_is_lost_or_told_twice(tmp_path: Path) -> None:
    folder = tmp_path / "store"

    def open_subject(clock: StoppedClock, model: ScriptedSummariser | None, fresh: bool) -> Engine:
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        chosen = replace(BASE, url=f"sqlite:///{folder}/perdure.db")
        return perdure.open(settings=chosen, clock=clock, summariser=model)

    run(open_subject, examples=50)
