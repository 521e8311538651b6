"""Random lives of a user, and of another beside: everything that is held can be found, nothing else can, whoever looks.

Messages, memories that supersede each other, archives, todos, instructions, state, series, folds with lessons, names that
turn out to be one; deleting, forgetting, undoing; the index job at any time or never, reindexing, another embedder. After
every step: `verify` has no findings; each entry says what an index made anew would say; and an engine that has followed all
along answers exactly like one that has just been opened, be it from packs or from rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import perdure
from perdure import Layers, Memory
from perdure.adapters.memory.store import MemoryStore
from perdure.app import Engine
from perdure.domain.context.recall import ENTRY_KINDS, Recall
from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.engine.search import index as stacks
from perdure.ports.tables.rows import TABLES
from perdure.services.index import job as indexing
from perdure.testing import StoppedClock
from scripted import ScriptedSummariser
from scripted_embedder import ScriptedEmbedder

LAYERS = Layers(history_messages_max=6, fold_messages_min=3, spine_turns=3, rolling_turns=2)
BASE = perdure.Settings(url="memory:", profile="complete", layers=LAYERS, durability="normal", session_resume_s=7200.0)
AGENTS = ("coach", "companion")
PEOPLE = ("Mukesh", "Makesh", "Wolfgang")
CITIES = ("Austin", "Boston", "Chicago")
TRAITS = ("plays chess", "owns a boat", "bakes bread")
SAID = (
    "I met Mukesh in Austin yesterday",
    "Wolfgang bakes bread on Fridays",
    "from now on answer in French",
    "what did I say about the boat?",
    "",
    "Remind me to call Makesh tomorrow",
)
QUESTIONS = ("who bakes bread", "Mukesh in Austin", "boat", "what happened yesterday", "deploy lessons", "Wolfgang", "kudos")
LESSONS = ("Never deploy on Fridays", "Ask Wolfgang about bread", "Boats need paint")

people = st.sampled_from(PEOPLE)
cities = st.sampled_from(CITIES)
agents = st.sampled_from(AGENTS)
users = st.sampled_from(("ana", "ana", "ana", "bob"))
private = st.sampled_from((None, None, *AGENTS))
sessions = st.sampled_from(("s1", "s2", "s3"))
keys = st.sampled_from(("weekly_kudos", "boatName"))
which = st.integers(0, 999)
REFUSALS = (Conflict, InvalidInput, LimitExceeded, NotFound)


class Life(RuleBasedStateMachine):
    """Each rule does something that can be found afterwards, or no more."""

    open_subject: Callable[..., Engine]
    unseen = 0

    @initialize()
    def start(self) -> None:
        self.clock = StoppedClock()
        self.models: dict[str, Any] = {"embedder": ScriptedEmbedder(), "summariser": ScriptedSummariser(lessons=LESSONS[:1])}
        self.engine = type(self).open_subject(clock=self.clock, models=self.models)
        self.a_talk_goes_on("coach", "s1", SAID[0], None)
        self.a_trait_is_told("ana", "Mukesh", TRAITS[0], None, pinned=False)

    def memory(self, user: str = "ana", agent: str = "coach") -> Memory:
        return self.engine.memory(user, agent=agent)

    # -- what is said and known

    @rule(minutes=st.sampled_from((1, 40, 24 * 60, 20 * 24 * 60)))
    def time_passes(self, minutes: int) -> None:
        self.clock.move(minutes=minutes)

    @rule(agent=agents, session=sessions, text=st.sampled_from(SAID), who=st.sampled_from((None, *PEOPLE)))
    def a_talk_goes_on(self, agent: str, session: str, text: str, who: str | None) -> None:
        memory = self.memory(agent=agent)
        with suppress(*REFUSALS):
            for words in (text, "go on"):
                memory.append("user", words, session=session, metadata={} if who is None else {"name": who})
                memory.append("assistant", f"I see: {words}", session=session)

    @rule(user=users, who=people, trait=st.sampled_from(TRAITS), visible_to=private, pinned=st.booleans())
    def a_trait_is_told(self, user: str, who: str, trait: str, visible_to: str | None, pinned: bool) -> None:
        self.memory(user).remember(f"{who} {trait}", "PEOPLE", entities=[f"person:{who}"], visible_to=visible_to, pinned=pinned)

    @rule(city=cities, since=st.sampled_from((None, None, -40, 5)), ended=st.booleans(), corrects=st.booleans())
    def a_home_is_told(self, city: str, since: int | None, ended: bool, corrects: bool) -> None:
        when = None if since is None else self.clock.now() + timedelta(days=since)
        with suppress(*REFUSALS):
            self.memory().remember(
                f"Lives in {city}",
                entities=[f"place:{city}"],
                attribute="lives_in",
                value=city,
                valid_from=when,
                ended=ended,
                corrects=corrects and not ended,
            )

    @rule(agent=agents, index=which, how=st.sampled_from(("pin", "unpin", "archive", "archive", "restore", "forget")))
    def a_memory_is_handled(self, agent: str, index: int, how: str) -> None:
        memory = self.memory(agent=agent)
        if listed := memory.memories.list(archived=True):
            key = listed[index % len(listed)].memory.record_key
            with suppress(InvalidInput):
                memory.forget(memory=key) if how == "forget" else getattr(memory.memories, how)(key)

    @rule(one=people, other=people, how=st.sampled_from(("merge", "alias", "forget", "curate")))
    def a_person_is_handled(self, one: str, other: str, how: str) -> None:
        memory = self.memory()
        with suppress(*REFUSALS):
            if how == "merge":
                memory.entities.merge(f"person:{one}", f"person:{other}")
            elif how == "alias":
                memory.entities.alias(f"person:{one}", f"Big {other}")
            elif how == "forget":
                memory.forget(entity=f"person:{one}")
            else:
                memory.memories.curate()

    # -- what is to be done, state and series

    @rule(agent=agents, who=people, index=which, how=st.sampled_from(("add", "complete", "skip", "reopen")))
    def a_todo_is_handled(self, agent: str, who: str, index: int, how: str) -> None:
        todos = self.memory(agent=agent).todos
        listed = todos.list(closed=True)
        with suppress(*REFUSALS):
            if how == "add" or not listed:
                todos.add(f"Call {who} about the boat")
            else:
                getattr(todos, how)(listed[index % len(listed)].id)

    @rule(agent=agents, index=which, add=st.booleans())
    def an_instruction_is_given_or_withdrawn(self, agent: str, index: int, add: bool) -> None:
        orders = self.memory(agent=agent).instructions
        if add:
            orders.add(("Always answer in French", "Never mention boats")[index % 2])
        elif held := orders.list():
            orders.withdraw(held[index % len(held)].id)

    @rule(
        key=keys, value=st.sampled_from(("bread", {"boat": 1}, None)), how=st.sampled_from(("save", "expire", "drop", "back"))
    )
    def a_value_is_handled(self, key: str, value: Any, how: str) -> None:
        state = self.memory().state
        if how == "drop":
            state.delete(key)
        elif how == "back":
            with suppress(NotFound):
                state.restore(key, 1)
        else:
            state.save(key, value, expires_in_s=3600 if how == "expire" else None)

    @rule(name=st.sampled_from(("kudos", "boatTrips")), remove=st.booleans(), words=st.sampled_from(("", "bread per day")))
    def a_series_is_used(self, name: str, remove: bool, words: str) -> None:
        series = self.memory().series(name)
        if remove:
            with suppress(*REFUSALS):
                series.remove()
        else:
            series.merge([{"id": 1, "timestamp": "2025-01-01"}], window=("2025-01-01", "2025-01-02"))
            series.configure(description=words)

    # -- layers, and taking away

    @rule(
        agent=agents, index=which, what=st.sampled_from(("compact", "compact", "undo", "clear", "replace", "close", "delete"))
    )
    def a_session_is_handled(self, agent: str, index: int, what: str) -> None:
        memory = self.memory(agent=agent)
        held = [session.id for session in memory.conversation.sessions()]
        if held:
            chosen = held[index % len(held)]
            with suppress(*REFUSALS):
                if what == "replace":
                    memory.conversation.replace("in short: boats and bread", chosen)
                elif what == "compact":
                    memory.conversation.compact(chosen, force=True)
                else:
                    getattr(memory.conversation, what)(chosen)

    @rule(lessons=st.sets(st.sampled_from(LESSONS)))
    def other_lessons_are_drawn_from_here_on(self, lessons: set[str]) -> None:
        self.models["summariser"].lessons = tuple(sorted(lessons))

    @rule(
        agent=agents,
        text=st.sampled_from(LESSONS),
        scope=st.sampled_from((None, "channel")),
        index=which,
        how=st.sampled_from(("add", "add", "append", "remove", "archive", "restore", "pin", "edit")),
    )
    def a_lesson_is_handled(self, agent: str, text: str, scope: Any, index: int, how: str) -> None:
        lessons = self.memory(agent=agent).lessons
        held = lessons.list(archived=True, ended=True)
        if how == "add":
            lessons.add(text, scope)
        elif how == "append":
            lessons.take_from(f"MEMORY_APPEND: {text}")
        elif how == "edit":
            lessons.edit(f"- {text}\n", scope)
        elif held:
            getattr(lessons, how)(held[index % len(held)].id)

    @rule(agent=agents, index=which)
    def a_message_is_forgotten(self, agent: str, index: int) -> None:
        held = self.memory(agent=agent).messages(50)
        if held:
            chosen = held[index % len(held)].id
            self.memory(agent=agent).forget(messages=(chosen, chosen))

    @rule(user=users)
    def a_user_is_forgotten(self, user: str) -> None:
        self.memory(user).forget(user=True)

    @rule(index=st.integers(0, 12), cascade=st.booleans())
    def something_is_undone(self, index: int, cascade: bool) -> None:
        newest = self.memory().journal.list(1)
        if newest:
            with suppress(*REFUSALS):
                self.memory().undo(max(1, newest[0].seq - index), cascade=cascade)

    @rule(index=st.integers(0, 20), cascade=st.booleans())
    def something_is_undone_and_done_again(self, index: int, cascade: bool) -> None:
        newest = self.memory().journal.list(1)
        if newest:
            with suppress(*REFUSALS):
                undone = self.memory().undo(max(1, newest[0].seq - index), cascade=cascade)
                self.clock.move(minutes=1)
                self.memory().undo(undone)

    # -- the index

    @rule()
    def jobs_run(self) -> None:
        self.engine.process()

    @rule()
    def the_index_is_brought_up_to_date(self) -> None:
        """The index job alone, so that it comes at every moment of the others."""
        worker = self.engine.worker()
        worker.handlers = {"index": worker.handlers["index"]}
        worker.process(10)

    @rule()
    def everything_is_indexed_anew(self) -> None:
        self.memory().admin.reindex()

    @rule(name=st.sampled_from(("scripted", "other")), version=st.sampled_from(("1", "2")))
    def another_embedder_is_in_use(self, name: str, version: str) -> None:
        self.models["embedder"].name, self.models["embedder"].version = name, version

    @rule()
    def nobody_looks_for_a_while(self) -> None:
        """What is appended meanwhile waits to be taken in, through all that happens."""
        self.unseen = 4

    # -- what always holds

    @invariant()
    def the_store_is_sound(self) -> None:
        report = self.engine.verify()
        assert report.clean, report.findings[:3]

    @invariant()
    def whoever_looks_finds_everything(self) -> None:
        if self.unseen:
            self.unseen -= 1
            return
        self.memory().instructions.list()  # whoever reads has new messages taken in
        self.every_entry_says_what_one_made_anew_would_say()
        self.whoever_followed_and_whoever_just_came_find_the_same()

    def every_entry_says_what_one_made_anew_would_say(self) -> None:
        assert self.entries(self.engine) == self.entries(self.made_anew())

    def whoever_followed_and_whoever_just_came_find_the_same(self) -> None:
        newcomer = Engine(self.engine._store, self.clock, self.engine._settings, models=self.models)
        self.turn = getattr(self, "turn", 0) + 1
        for agent in AGENTS:
            one, other = self.memory(agent=agent), newcomer.memory("ana", agent=agent)
            for question in (QUESTIONS * 2)[self.turn % len(QUESTIONS) :][:3]:
                found = one.recall(question, limit=200)
                same(found, other.recall(question, limit=200))
                names = [(hit.kind, hit.id) for hit in found.hits]
                assert len(names) == len(set(names)), "one thing was found twice"

    def made_anew(self) -> Engine:
        """An engine on a copy of what is held, whose index was made from it alone."""
        copy = MemoryStore()
        with self.engine._store.snapshot() as snapshot:
            held = ((table, snapshot.rows(table)) for table, spec in TABLES.items() if not spec.rebuilt)
            copy.restore(snapshot.schema_version, held, replace=True)
        engine = Engine(copy, self.clock, self.engine._settings, models=self.models)
        for user in ("ana", "bob"):
            engine.memory(user).admin.reindex()
        return engine

    @staticmethod
    def entries(engine: Engine) -> dict[tuple[Any, ...], Any]:
        """What is indexed of everybody."""
        with engine._store.snapshot() as snapshot:
            return {(row[1], row[3], row[4]): row[6] for row in snapshot.rows("index_entries") if row[3] in ENTRY_KINDS}

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.memory().admin.reindex()
            found = [self.memory().recall(question, limit=200) for question in QUESTIONS]
            self.memory().admin.reindex()
            for question, before in zip(QUESTIONS, found, strict=True):
                same(before, self.memory().recall(question, limit=200))
            assert self.engine.verify().clean
            self.engine.close()


def same(one: Recall, other: Recall) -> None:
    """Both have found the same with the same scores, up to the rounding of sums."""
    assert replace(one.uncovered, gaps=()) == replace(other.uncovered, gaps=())
    assert set(one.uncovered.gaps) == set(other.uncovered.gaps)
    assert one.understood == other.understood
    scores, others = scored(one), scored(other)
    assert scores.keys() == others.keys(), (one.query, scores.keys() ^ others.keys())
    assert scores == pytest.approx(others, abs=1e-3), one.query
    order = [scores[hit.kind, hit.id] for hit in other.hits if (hit.kind, hit.id) in scores]
    assert all(before >= after - 2e-3 for before, after in pairwise(order))


def scored(found: Recall) -> dict[tuple[str, str], float]:
    # What hardly anything speaks for may be on either side of nothing.
    return {(hit.kind, hit.id): hit.score for hit in found.hits if hit.score > 2e-3}


@pytest.fixture(autouse=True)
def _small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short life has everything that a long one has: packs, gaps between them, joined segments."""
    monkeypatch.setattr(indexing, "PACK_ITEMS", 5)
    monkeypatch.setattr(indexing, "EMBED_BATCH", 3)
    monkeypatch.setattr(indexing, "PAGE", 4)
    monkeypatch.setattr(indexing, "GONE_MAX", 6)
    monkeypatch.setattr(stacks, "SMALL_SEGMENTS_MAX", 3)


def run(open_subject: Callable[..., Engine], examples: int, steps: int = 25) -> None:
    subject = type("Life", (Life,), {"open_subject": staticmethod(open_subject)})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        subject,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # Telling which lines matter takes longer than all the rest.
            phases=[phase for phase in Phase if phase is not Phase.explain],
        ),
    )


def opener(url: str, files: Path) -> Callable[..., Engine]:
    def open_subject(*, clock: StoppedClock, models: dict[str, Any]) -> Engine:
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir()
        # Lessons are kept where there is a place for them.
        chosen = replace(BASE, url=url, files_dir=str(files))
        return perdure.open(settings=chosen, clock=clock, **models)

    return open_subject


def test_in_memory_everything_held_is_found_and_nothing_else(tmp_path: Path) -> None:
    run(opener("memory:", tmp_path / "files"), examples=15, steps=20)


def test_on_sqlite_everything_held_is_found_and_nothing_else(tmp_path: Path) -> None:
    run(opener(f"sqlite:///{tmp_path}/files/perdure.db", tmp_path / "files"), examples=6, steps=20)
