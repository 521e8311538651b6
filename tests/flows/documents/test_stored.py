"""Context documents as a view over a store: the log is their history, a fold their summary, and neither loses anything."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perdure
import perdure.aio
from perdure.documents import (
    AsyncContextManager,
    ContextCompactor,
    ContextData,
    ContextManager,
    HistoryEntry,
    Task,
    ToolStats,
    copy_contexts,
    render_document,
)
from perdure.testing import StoppedClock

ID = "user1:agent1:123"
AT = 1_708_654_321


@pytest.fixture
def engine(backend: Any) -> Any:
    with backend.open(clock=StoppedClock(datetime.fromtimestamp(AT + 60, UTC))) as engine:
        yield engine
        report = engine.verify()
        assert report.clean, report.findings


@pytest.fixture
def manager(engine: perdure.Engine) -> ContextManager:
    return ContextManager(storage="store", engine=engine)


def agent(engine: perdure.Engine) -> perdure.Memory:
    """What the id says, as a handle."""
    return engine.memory("user1", agent="agent1")


def say(context: ContextData, *contents: str) -> None:
    context.recent_history += [HistoryEntry(AT, "user", content) for content in contents]


def saved(manager: ContextManager, *contents: str, session_id: str = ID) -> ContextData:
    context = manager.load(session_id)
    say(context, *contents)
    manager.save(context)
    return context


def contents(entries: Any) -> list[str]:
    return [entry.content for entry in entries]


def said(manager: ContextManager, session_id: str = ID) -> list[str]:
    return contents(manager.history(session_id))


def logged(engine: perdure.Engine) -> list[str]:
    return contents(agent(engine).messages(1_000))


# The view


def test_what_an_agent_logs_is_the_history_of_the_document(engine: perdure.Engine, manager: ContextManager) -> None:
    ana = agent(engine)
    ana.append("user", "weather?", session="123", tokens=7, at=datetime(2024, 2, 23, 2, 12, 1, 500_000, tzinfo=UTC))
    ana.append("assistant", "", session="123", tool_calls=[perdure.ToolCall("c1", "get_weather", {"city": "Lisbon"})])
    context = manager.load(ID)
    assert context.revision == 0
    assert context.recent_history[0] == HistoryEntry(1_708_654_321, "user", "weather?", 7)
    assert context.recent_history[1].content == 'get_weather({"city":"Lisbon"})'
    assert manager.list_sessions() == [], "it has a document once it is saved"
    assert manager.save(context) == 1
    assert manager.load(ID) == context
    assert manager.list_sessions() == [ID]
    assert len(logged(engine)) == 2, "nothing was said anew"


def test_a_document_has_the_facts_that_were_just_said(engine: perdure.Engine, manager: ContextManager) -> None:
    ana = agent(engine)
    ana.append("user", "I live in Austin. My sister is Rosa.", session="1")
    assert ana.conversation.documents.load("1").facts == ["Lives in Austin", "Rosa is my sister"]
    ana.append("user", "I am allergic to peanuts.", session="1")
    assert "Is allergic to peanuts" in manager.load("user1:agent1:1").facts


def test_what_a_document_says_is_in_the_log_and_reaches_the_agent(engine: perdure.Engine, manager: ContextManager) -> None:
    context = manager.load(ID)
    context.recent_history += [
        HistoryEntry(AT, "user", "hello", 3),
        HistoryEntry(AT + 1, "assistant", "hi"),
        HistoryEntry(AT + 2, "tool", "42"),
    ]
    manager.save(context)
    first, second, third = agent(engine).messages()
    assert (first.session, first.tokens, first.at) == ("123", 3, datetime.fromtimestamp(AT, UTC))
    assert (second.tokens > 0, third.role, third.tool_call_id) == (True, "tool", None)
    assert contents(agent(engine).context().messages) == ["hello", "hi", "42"]
    assert manager.load(ID) == context, "also that the second states no count"


@pytest.mark.parametrize("timestamp", [AT, 0, -1, AT * 1_000, 2**53 - 1, -(2**53) + 1])
@pytest.mark.parametrize("tokens", [None, 0, 5, 2**53 - 1])
def test_any_time_and_count_come_back(timestamp: int, tokens: int | None) -> None:
    with perdure.open("memory:") as engine:
        manager = ContextManager(storage="store", engine=engine)
        context = manager.load(ID)
        context.recent_history.append(HistoryEntry(timestamp, "system", "x", tokens))
        manager.save(context)
        assert manager.load(ID) == context
        engine.process()
        assert engine.verify().clean


def test_everything_else_of_a_document_comes_back(manager: ContextManager) -> None:
    context = manager.load(ID)
    context.system_state = {"preferences": {"deep": [1, 2.5, None, "é"]}}
    context.facts += ["b", "a", "b"]
    context.long_term_summary = "told before anything was said"
    context.active_tasks.append(Task("t1", "look", "Running", 0.5, AT, AT))
    context.tool_stats.count("echo", failed=True)
    context.last_known_environment.workspace = "/w"
    context.token_usage.count(input_tokens=12, output_tokens=30)
    manager.save(context)
    assert manager.load(ID) == context
    say(context, "one")
    assert manager.save(context) == 2
    assert manager.load(ID) == context


def test_a_log_that_grows_shows_in_the_next_load(engine: perdure.Engine, manager: ContextManager) -> None:
    context = saved(manager, "one")
    agent(engine).append("user", "two", session="123")
    assert contents(manager.load(ID).recent_history) == ["one", "two"]
    assert manager.load(ID).revision == context.revision


# Compaction and folds


def test_what_compaction_takes_out_becomes_a_fold_that_can_be_expanded(engine: perdure.Engine, manager: ContextManager) -> None:
    context = saved(manager, *map(str, range(60)))
    ContextCompactor.compact(context)
    manager.save(context)
    talk = agent(engine).conversation
    [fold] = talk.digests("fold")
    assert (fold.text, fold.policy) == (context.long_term_summary, "context_document")
    assert contents(talk.expand(fold)) == [*map(str, range(30))]
    assert agent(engine).conversation.sessions()[0].boundary_seq == 30
    assert manager.load(ID) == context
    assert said(manager) == [*map(str, range(60))]
    ContextCompactor.compact(context, force=True)
    say(context, "more")
    manager.save(context)
    newest = talk.digests("fold")[0]
    assert contents(talk.expand(newest, whole=True)) == [*map(str, range(45))]
    assert manager.load(ID) == context
    assert "\n- user: 44" in agent(engine).context().blocks[0].text


def test_what_was_said_and_compacted_between_two_saves_is_logged_before_it_is_folded(manager: ContextManager) -> None:
    context = manager.load(ID)
    for number in range(300):
        say(context, str(number))
        ContextCompactor.compact(context)
    assert manager.save(context) == 1
    assert manager.load(ID) == context
    assert said(manager) == [*map(str, range(300))]


def test_an_undone_fold_is_in_the_history_again(engine: perdure.Engine, manager: ContextManager) -> None:
    context = saved(manager, *map(str, range(60)))
    ContextCompactor.compact(context)
    manager.save(context)
    agent(engine).conversation.undo()
    found = manager.load(ID)
    assert (contents(found.recent_history), found.long_term_summary) == ([*map(str, range(60))], "")
    with pytest.raises(perdure.Conflict, match="undone"):
        manager.save(context)
    say(found, "60")
    manager.save(found)
    assert said(manager) == [*map(str, range(61))]


def test_a_fold_of_the_store_is_the_summary_and_an_older_context_does_not_undo_it(
    engine: perdure.Engine, manager: ContextManager
) -> None:
    context = saved(manager, *(f"My order number is {number}." for number in range(60)))
    agent(engine).conversation.compact()
    say(context, "more")
    with pytest.raises(perdure.Conflict, match="folded"):
        manager.save(context)
    found = manager.load(ID)
    assert len(found.recent_history) == 30
    assert "My order number is" in found.long_term_summary
    say(found, "more")
    manager.save(found)
    assert manager.load(ID) == found
    assert len(said(manager)) == 61


def test_an_entry_of_which_an_excerpt_stays_is_whole_in_the_log(engine: perdure.Engine, manager: ContextManager) -> None:
    context = manager.load(ID)
    whole = HistoryEntry(AT, "user", "word " * 100_000, 150_000)
    context.recent_history.append(whole)
    for most in (100_000, 400, 100):
        assert ContextCompactor(max_tokens=most).compact(context)
        manager.save(context)
        assert manager.load(ID) == context
    assert manager.history(ID) == [whole]
    assert logged(engine) == [whole.content]
    context = manager.load(ID)
    ContextCompactor(max_tokens=64, excerpt_chars_max=0).compact(context)
    manager.save(context)
    assert manager.history(ID) == [whole]


def test_a_summary_that_the_caller_writes_is_what_the_agent_reads(engine: perdure.Engine, manager: ContextManager) -> None:
    context = saved(manager, "one", "two")
    del context.recent_history[0]
    context.long_term_summary = "They counted."
    manager.save(context)
    context.long_term_summary = "They counted to two."
    manager.save(context)
    assert manager.load(ID) == context
    assert "They counted to two." in agent(engine).context().blocks[0].text
    context.long_term_summary = ""
    manager.save(context)
    assert manager.load(ID) == context


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: entries.clear(),
        lambda entries: entries.pop(1),
        lambda entries: entries.pop(),
        lambda entries: entries.reverse(),
        lambda entries: entries.insert(1, HistoryEntry(AT, "system", "between")),
        lambda entries: setattr(entries[1], "content", "edited"),
        lambda entries: entries.extend(entries),
    ],
    ids=["clear", "middle", "end", "reverse", "insert", "edit", "twice"],
)
def test_whatever_a_caller_does_to_the_history_is_kept_and_the_log_loses_nothing(
    engine: perdure.Engine, manager: ContextManager, change: Callable[[list[HistoryEntry]], object]
) -> None:
    context = saved(manager, "one", "two", "three", "two")
    change(context.recent_history)
    manager.save(context)
    found = manager.load(ID)
    assert found == context
    say(found, "more")
    manager.save(found)
    assert manager.load(ID) == found
    assert logged(engine)[:4] == ["one", "two", "three", "two"]
    assert logged(engine)[-1] == "more"
    assert sorted(said(manager)) == sorted(logged(engine))


# Several writers


def test_what_arrives_while_a_context_is_worked_on_is_kept(engine: perdure.Engine, manager: ContextManager) -> None:
    context = saved(manager, *map(str, range(60)))
    agent(engine).append("user", "meanwhile", session="123")
    ContextCompactor.compact(context)
    say(context, "60")
    manager.save(context)
    wanted = [*map(str, range(30, 60)), "meanwhile", "60"]
    assert contents(manager.load(ID).recent_history) == wanted
    agent(engine).append("user", "again", session="123")
    say(context, "61")
    manager.save(context)
    assert contents(manager.load(ID).recent_history) == [*wanted, "again", "61"]
    ContextCompactor(max_history=10).compact(context)
    manager.save(context)
    found = manager.load(ID)
    assert contents(found.recent_history) == ["56", "57", "58", "59", "meanwhile", "60", "again", "61"]
    assert said(manager) == [*map(str, range(60)), "meanwhile", "60", "again", "61"]


def test_a_save_repeated_after_its_answer_was_lost_stores_nothing_twice(
    engine: perdure.Engine, manager: ContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = saved(manager, *map(str, range(60)))
    context.facts += ["x", "X"]
    ContextCompactor.compact(context)
    say(context, "60")
    store = engine._store
    write = type(store).write

    def lost(self: Any, *args: Any, **options: Any) -> Any:
        write(self, *args, **options)
        raise perdure.Unavailable("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "write", lost)
        for _ in range(2):
            with pytest.raises(perdure.Unavailable):
                manager.save(context)
    assert manager.save(context) == 2
    assert manager.load(ID) == context
    assert said(manager) == [*map(str, range(61))]
    assert [one.kind for one in manager.archive(ID)] == ["entry"] * 30 + ["fact"]
    say(context, "61")
    assert manager.save(context) == 3


def test_threads_lose_no_update(backend: Any) -> None:
    with backend.open() as engine:
        manager = ContextManager(storage="store", engine=engine)
        threads = [threading.Thread(target=add_until_done, args=(manager, f"t{number}", 8)) for number in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
        wanted = [f"t{who} {number}" for who in range(4) for number in range(8)]
        assert sorted(said(manager)) == sorted(wanted)
        assert engine.verify().clean


def add_until_done(manager: ContextManager, who: str, count: int) -> None:
    for number in range(count):
        while True:
            context = manager.load(ID)
            say(context, f"{who} {number}")
            ContextCompactor(max_history=10).compact(context)
            try:
                manager.save(context)
                break
            except perdure.Conflict:
                pass


def test_a_context_of_another_storage_is_not_mistaken(manager: ContextManager, tmp_path: Path) -> None:
    folder = ContextManager(tmp_path / "context")
    context = saved(folder, "one")
    with pytest.raises(perdure.Conflict, match="copy_contexts"):
        manager.save(context)
    with pytest.raises(perdure.Conflict):
        folder.save(saved(manager, "one"))
    assert manager.save(replace(manager.load(ID), lineage="")) == 2, "made by hand, but for the right revision"


# Counters


def test_tool_calls_of_the_log_are_counted_once(engine: perdure.Engine, manager: ContextManager) -> None:
    ana = agent(engine)

    def call(number: int, *, failed: bool = False) -> None:
        usage = {"usage": {"input_tokens": 10, "output_tokens": 1}}
        ana.append("assistant", "", session="123", tool_calls=[perdure.ToolCall(f"c{number}", "echo")], metadata=usage)
        ana.append("tool", "x", tool_call_id=f"c{number}", session="123", failed=failed)

    call(1)
    context = manager.load(ID)
    assert (context.tool_stats, context.token_usage.by_session) == (ToolStats(1, {"echo": 1}), 11)
    context.tool_stats.count("other")
    manager.save(context)
    call(2, failed=True)
    engine.process()
    assert manager.load(ID).tool_stats == ToolStats(3, {"echo": 2, "other": 1}, 1)
    context.tool_stats.count("echo")
    manager.save(context)
    assert manager.load(ID).tool_stats == ToolStats(4, {"echo": 3, "other": 1}, 1), "call 2 came between load and save"
    manager.save(context)
    call(3)
    found = manager.load(ID)
    assert found.tool_stats == ToolStats(5, {"echo": 4, "other": 1}, 1)
    assert found.token_usage.total_input == 30
    manager.save(found)
    assert manager.load(ID) == found


def test_facts_are_stored_as_they_arrived_whatever_order_they_are_shown_in(
    engine: perdure.Engine, manager: ContextManager
) -> None:
    """X-43."""
    context = manager.load(ID)
    for fact in ("zebra", "monkey"):
        context.facts.append(fact)
        manager.save(context)
    context.facts.append("ant")
    ContextCompactor.compact(context)
    manager.save(context)
    assert manager.load(ID).facts == ["ant", "monkey", "zebra"]
    value = agent(engine).state.load(f"perdure:context:{ID}")
    assert value["fields"]["facts"] == ["zebra", "monkey", "ant"]


# Whose


def test_a_bound_manager_reaches_one_user_only(engine: perdure.Engine) -> None:
    everyone = ContextManager(storage="store", engine=engine)
    ids = ["user1:agent1:123", "user1:agent2:456", "user2:agent1:123"]
    for session_id in ids:
        saved(everyone, session_id, session_id=session_id)
    assert everyone.list_sessions() == ids
    bound = ContextManager(storage="store", engine=engine, user="user1")
    assert bound.list_sessions() == ids[:2]
    for call in (bound.load, bound.delete, bound.history, bound.archive):
        with pytest.raises(perdure.InvalidInput, match="not of user"):
            call("user2:agent1:123")
    with pytest.raises(perdure.InvalidInput, match="not of user"):
        bound.save(ContextData("user2:agent1:9"))
    elsewhere = ContextManager(storage="store", engine=engine, space="another")
    assert (elsewhere.list_sessions(), said(elsewhere)) == ([], [])
    assert everyone.delete("user1:agent1:123")
    assert (said(everyone, "user2:agent1:123"), bound.list_sessions()) == (["user2:agent1:123"], ids[1:2])


@pytest.mark.parametrize("session_id", ["plain", "a:b", "a:b:c:d", "a::c", "a:b:100%", "a:b:", "a\0:b:c", "x" * 401 + ":b:c"])
def test_an_id_that_does_not_say_user_agent_and_session_is_refused(session_id: str) -> None:
    with perdure.open("memory:") as engine, pytest.raises(perdure.InvalidInput):
        ContextManager(storage="store", engine=engine).load(session_id)


def test_parts_may_have_colons_and_be_long(engine: perdure.Engine, manager: ContextManager) -> None:
    ids = ["a%3Ab:agent:1", "a:b%3Aagent:1", f"{'u' * 300}:{'é' * 200}:{'s' * 400}", "~:~:~", "100%25:a:1"]
    for session_id in ids:
        saved(manager, session_id, session_id=session_id)
    assert manager.list_sessions() == sorted(ids)
    for session_id in ids:
        assert said(manager, session_id) == [session_id]
    assert contents(engine.memory("a:b", agent="agent").messages()) == ["a%3Ab:agent:1"]
    for session_id in ids:
        for _ in range(2):
            assert manager.delete(session_id)
            saved(manager, "again", session_id=session_id)
            assert said(manager, session_id) == ["again"]


def test_documents_are_not_in_the_way_of_the_users_state(engine: perdure.Engine, manager: ContextManager) -> None:
    saved(manager, "one")
    state = agent(engine).state
    state.save("city", "Lisbon")
    key = f"perdure:context:{ID}"
    assert (state.keys(), state.search("*").matches) == (["city"], ("city",))
    assert [info.key for info in state.list("perdure:*")] == [key]
    for call in (lambda: state.save(key, 1), lambda: state.delete(key), lambda: state.restore(key, 1)):
        with pytest.raises(perdure.InvalidInput, match="reserved"):
            call()
    assert state.clear() == 1
    assert said(manager) == ["one"]


# The end of things


def test_a_session_deleted_in_the_log_leaves_the_rest_of_the_document(engine: perdure.Engine, manager: ContextManager) -> None:
    context = saved(manager, *map(str, range(60)))
    context.facts.append("stays")
    manager.save(context)
    agent(engine).conversation.delete("123")
    with pytest.raises(perdure.Conflict):
        manager.save(context)
    for word in ("one", "two"):
        found = manager.load(ID)
        assert (found.recent_history, found.facts) == ([], ["stays"])
        say(found, word)
        manager.save(found)
        assert said(manager) == [word]
        agent(engine).conversation.delete(agent(engine).conversation.sessions()[0].id)


def test_a_record_that_cannot_be_read_is_corrupt(sqlite: Any) -> None:
    with sqlite.open() as engine:
        manager = ContextManager(storage="store", engine=engine)
        saved(manager, "one")
        key = f"perdure:context:{ID}"
        for number, wrong in enumerate(('{"form":2}', "[]", '{"form":1}'), 2):

            def damage(tx: Any, wrong: str = wrong, number: int = number) -> None:
                latest = tx.state.find(key)
                tx.state.put(replace(latest, number=number, body=wrong, request=str(number)), keep=9)

            engine._store.write(agent(engine).scope.owner, damage)
            with pytest.raises(perdure.Corrupt, match="perdure:context"):
                manager.load(ID)


def test_arguments_that_do_not_belong_together_are_refused(engine: perdure.Engine, tmp_path: Path) -> None:
    wrong: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((), {}, "base_path"),
        ((), {"storage": "store"}, "engine"),
        ((), {"storage": "store", "engine": "sqlite:///x.db"}, "engine"),
        ((tmp_path,), {"storage": "store", "engine": engine}, "base_path"),
        ((), {"storage": "store", "engine": engine, "clock": StoppedClock()}, "clock"),
        ((), {"storage": "store", "engine": engine, "user": ""}, "user"),
        ((tmp_path,), {"engine": engine}, "engine"),
        ((tmp_path,), {"user": "user1"}, "user"),
        ((tmp_path,), {"storage": "cloud"}, "storage"),
    ]
    for args, options, named in wrong:
        with pytest.raises(perdure.InvalidInput, match=named):
            ContextManager(*args, **options)


def test_a_folder_needs_no_engine() -> None:
    code = "import sys, perdure.documents; perdure.documents.ContextManager('x'); print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert {"perdure.app", "asyncio", "apsw", "psycopg"} & set(done.stdout.split()) == set()


def test_the_async_face_works_on_a_store_too(backend: Any) -> None:
    async def work() -> None:
        async with await perdure.aio.open(settings=backend.settings) as engine:
            manager = AsyncContextManager(storage="store", engine=engine, user="user1")
            context = await manager.load(ID)
            say(context, *map(str, range(60)))
            ContextCompactor.compact(context)
            assert await manager.save(context) == 1
            assert await manager.list_sessions() == [ID]
            assert (await manager.load(ID), len(await manager.history(ID))) == (context, 60)
            assert await manager.delete(ID)
            await manager.close()

    asyncio.run(asyncio.wait_for(work(), 60))


# From one storage to the other


def rich(manager: ContextManager, session_id: str = ID) -> ContextData:
    """A document with some of everything, compacted several times."""
    context = manager.load(session_id)
    context.system_state = {"a": [1, {"b": None}]}
    for number in range(130):
        say(context, f"m{number}")
        context.facts += [f"fact {number % 7}", f"Fact {number % 5}."]
        context.active_tasks.append(Task(str(number), "look", "failed" if number % 2 else "Running", 1.0, 0, 0))
        context.tool_stats.count("echo")
        if number % 40 == 3:
            context.recent_history.append(HistoryEntry(AT, "tool", f"{number} words " * 3_000, 15_000))
            ContextCompactor(summary_chars_max=400, max_tokens=5_000).compact(context)
            manager.save(context)
    manager.save(context)
    return context


def whole(manager: ContextManager, session_id: str = ID) -> Any:
    others = [one for one in manager.archive(session_id) if one.kind not in ("entry", "whole")]
    return manager.load(session_id), manager.history(session_id), others


def test_a_document_goes_to_a_store_and_back_without_loss(manager: ContextManager, tmp_path: Path) -> None:
    one, two = ContextManager(tmp_path / "one"), ContextManager(tmp_path / "two")
    rich(one)
    assert len(one.history(ID)) == 134
    assert {one.kind for one in one.archive(ID)} == {"entry", "whole", "summary", "fact", "task"}
    assert copy_contexts(one, manager) == [ID]
    assert whole(manager) == whole(one)
    assert copy_contexts(manager, two, [ID]) == [ID]
    assert whole(two) == whole(one)
    for source, target in ((one, manager), (manager, two), (two, one)):
        assert copy_contexts(source, target) == [], "it is there already"


def test_a_copy_is_brought_up_to_date(manager: ContextManager, tmp_path: Path) -> None:
    folder = ContextManager(tmp_path / "context")
    for source, target, session_id in ((folder, manager, ID), (manager, folder, "user1:agent1:456")):
        context = rich(source, session_id)
        for step in range(4):
            assert copy_contexts(source, target, [session_id]) == [session_id]
            assert whole(target, session_id) == whole(source, session_id)
            say(context, f"later {step}")
            context.facts += ["new", "New"]
            ContextCompactor.compact(context, force=step > 1)
            source.save(context)
        assert len(said(target, session_id)) == 137


def test_a_copy_that_went_another_way_is_replaced_only_on_request(manager: ContextManager, tmp_path: Path) -> None:
    folder = ContextManager(tmp_path / "context")
    for source, target in ((folder, manager), (manager, folder)):
        saved(source, "one", session_id="user1:agent1:9")
        saved(target, "another", session_id="user1:agent1:9")
        with pytest.raises(perdure.Conflict, match="replace"):
            copy_contexts(source, target)
        assert copy_contexts(source, target, replace=True) == ["user1:agent1:9"]
        assert whole(target, "user1:agent1:9") == whole(source, "user1:agent1:9")
        source.delete("user1:agent1:9")
        target.delete("user1:agent1:9")
    with pytest.raises(perdure.NotFound, match="no document"):
        copy_contexts(folder, manager, ["user1:agent1:none"])


@pytest.mark.parametrize("storage", ["json_files", "store"])
def test_files_of_another_program_are_imported_under_whatever_name(
    manager: ContextManager, tmp_path: Path, storage: str
) -> None:
    """S2-40."""
    target = manager if storage == "store" else ContextManager(tmp_path / "context")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    ids = ["user1:agent1:123", "user1:agent2:456", "user2:agent1:789"]
    for session_id in ids:
        context = ContextData(session_id, facts=["User speaks English"], long_term_summary="They met.")
        say(context, "hello")
        plain = json.loads(render_document(context))
        del plain["recent_history"][0]["token_count"]
        (theirs / f"{session_id}.json").write_text(json.dumps(plain, indent=2))
    for _ in range(2):
        assert sorted(target.import_file(path) for path in theirs.glob("*.json")) == ids
    assert target.list_sessions() == ids
    found = target.load(ids[0])
    assert (found.facts, found.long_term_summary, found.revision) == (["User speaks English"], "They met.", 1)
    assert contents(found.recent_history) == ["hello"]
    saved(target, "more", session_id=ids[0])
    with pytest.raises(perdure.Conflict, match="replace"):
        target.import_file(theirs / f"{ids[0]}.json")
    target.import_file(theirs / f"{ids[0]}.json", replace=True)
    assert said(target, ids[0]) == ["hello"]
    with pytest.raises(perdure.NotFound, match="nothing"):
        target.import_file(theirs / "nothing.json")
    (theirs / "wrong.json").write_text("{")
    with pytest.raises(perdure.InvalidInput, match=r"wrong\.json.*not JSON"):
        target.import_file(theirs / "wrong.json")


STEPS = ["say", "tool", "compact", "force", "shorten", "save", "cut", "edit", "fact", "task"]


def step_on(context: ContextData, step: str, count: int) -> None:
    match step:
        case "say":
            say(context, f"m{count}", "ok")
        case "tool":
            context.recent_history += [HistoryEntry(count, role, f"t{count}") for role in ("assistant", "tool", "tool")]
        case "compact" | "force":
            ContextCompactor(max_history=6, clock=StoppedClock()).compact(context, force=step == "force")
        case "shorten":
            say(context, "long words " * 300)
            ContextCompactor(max_tokens=200, excerpt_chars_max=90, clock=StoppedClock()).compact(context)
        case "cut":
            del context.recent_history[:1]
        case "edit" if context.recent_history:
            context.recent_history[-1].content = f"edited {count}"
        case "fact":
            context.facts += [f"fact {count % 3}", "zebra"]
        case "task":
            context.active_tasks.append(Task(str(count), "x", "done", 1, 0, 0))


@given(st.lists(st.sampled_from([*STEPS, "reload"]), max_size=40))
def test_a_folder_and_a_store_tell_the_same_of_the_same_steps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Whatever is done to a document; and the log of the store has everything that was ever saved."""
    with perdure.open("memory:", clock=StoppedClock()) as engine:
        managers = [ContextManager(tmp_path_factory.mktemp("c")), ContextManager(storage="store", engine=engine)]
        contexts = [manager.load(ID) for manager in managers]
        ever: set[str] = set()
        for count, step in enumerate(steps):
            for place, manager in enumerate(managers):
                if step == "save":
                    manager.save(contexts[place])
                elif step == "reload":
                    contexts[place] = manager.load(ID)
                else:
                    step_on(contexts[place], step, count)
            ever |= set(said(managers[0]))
            assert contexts[0] == contexts[1]
            assert contexts[0].revision == contexts[1].revision
            assert managers[0].load(ID) == managers[1].load(ID)
            if not {"cut", "edit"} & set(steps):
                assert whole(managers[0]) == whole(managers[1])
        assert ever <= set(said(managers[1]))
        assert engine.verify().clean


# -- no island: facts are known, tasks are the agent's


@pytest.fixture
def known(tmp_path: Path) -> Iterator[tuple[perdure.Engine, perdure.Memory, ContextManager]]:
    with perdure.open(f"sqlite:///{tmp_path / 'known.db'}", clock=StoppedClock()) as engine:
        yield engine, engine.memory("user", agent="agent"), ContextManager(storage="store", engine=engine)
        assert engine.verify().findings == ()


Known = tuple[perdure.Engine, perdure.Memory, ContextManager]


def test_the_facts_of_a_document_are_what_is_known_in_its_scope(known: Known) -> None:
    """X-28: what is remembered for all agents or for this one, and nothing that another agent keeps."""
    engine, ana, manager = known
    ana.remember("Lives in Austin", attribute="lives_in", value="Austin")
    ana.remember("Wants short answers", visible_to="agent")
    engine.memory("user", agent="other").remember("Is planning a surprise", visible_to="other")
    engine.memory("bo", agent="agent").remember("Lives in Oslo")
    context = manager.load("user:agent:1")
    assert context.facts == ["Lives in Austin", "Wants short answers"]
    manager.save(context)
    assert manager._store.with_archive("user:agent:1")[0].facts == [], "what is known is no copy in the document"
    ana.remember("Lives in Seattle", attribute="lives_in", value="Seattle")
    assert manager.load("user:agent:1").facts == ["Lives in Seattle", "Wants short answers"]


def test_the_facts_of_a_document_are_sorted_with_what_is_known(known: Known) -> None:
    """X-28, X-43: own ones that a host keeps in an order of its own stay in it."""
    _, ana, manager = known
    ana.remember("Lives in Austin")
    context = manager.load("user:agent:1")
    context.facts += ["Uses Rust", "Builds a boat"]
    manager.save(context)
    assert manager.load("user:agent:1").facts == ["Uses Rust", "Builds a boat", "Lives in Austin"]
    assert manager.load("user:agent:2").facts == ["Builds a boat", "Lives in Austin", "Uses Rust"]
    context = manager.load("user:agent:1")
    ContextCompactor.compact(context)
    manager.save(context)
    assert manager.load("user:agent:1").facts == ["Builds a boat", "Lives in Austin", "Uses Rust"]


def test_a_fact_that_a_document_brings_is_recalled_and_shown_in_other_sessions(known: Known) -> None:
    engine, ana, manager = known
    context = manager.load("user:agent:1")
    context.facts.append("User speaks English")
    manager.save(context)
    assert [hit.text for hit in ana.recall("Which language does the user speak?").hits] == ["User speaks English"]
    [held] = ana.memories.list()
    assert [one.trust for one in held.statements] == ["agent"], "it is the agent's word"
    assert manager.load("user:agent:1").facts == manager.load("user:agent:2").facts == ["User speaks English"]
    manager.save(context)
    assert [one.mentions for one in ana.memories.list()[0].statements] == [1], "saving it again tells nothing new"
    ana.forget(memory=held.memory.record_key)
    assert manager.load("user:agent:1").facts == []
    assert engine.verify().findings == ()


def test_a_fact_of_a_document_that_was_superseded_is_no_longer_shown(known: Known) -> None:
    _, ana, manager = known
    context = manager.load("user:agent:1")
    context.facts.append("I live in Austin")
    manager.save(context)
    ana.remember("I live in Seattle")
    assert [one for one in manager.load("user:agent:1").facts if "Austin" in one] == []


def test_what_is_learned_from_the_history_is_among_the_facts(known: Known) -> None:
    """S2-48."""
    engine, _, manager = known
    context = manager.load("user:agent:1")
    context.recent_history.append(HistoryEntry(int(StoppedClock().now().timestamp()), "user", "My name is Ana Lopez.", 5))
    manager.save(context)
    engine.process()
    assert any("Ana Lopez" in fact for fact in manager.load("user:agent:1").facts)


def test_a_revision_has_the_facts_that_were_known_when_it_was_saved(known: Known) -> None:
    """S2-47, X-28: not the document's own alone, and not what was learned later."""
    engine, ana, manager = known
    clock: Any = engine._clock
    ana.remember("Lives in Austin", attribute="lives_in", value="Austin")
    context = manager.load("user:agent:1")
    context.facts.append("Project uses Rust 1.75")
    manager.save(context)
    clock.move(hours=1)
    ana.remember("Lives in Seattle", attribute="lives_in", value="Seattle")
    context = manager.load("user:agent:1")
    context.facts.append("Prefers verbose output")
    manager.save(context)
    assert manager.load("user:agent:1", revision=1).facts == ["Lives in Austin", "Project uses Rust 1.75"]
    now = ["Lives in Seattle", "Prefers verbose output", "Project uses Rust 1.75"]
    assert sorted(manager.load("user:agent:1", revision=2).facts) == sorted(manager.load("user:agent:1").facts) == now
    [rust] = [one for one in ana.memories.list() if "Rust" in one.content]
    ana.forget(memory=rust.memory.record_key)
    assert manager.load("user:agent:1", revision=1).facts == ["Lives in Austin"]


def test_the_tasks_of_the_agent_are_those_of_its_documents(known: Known) -> None:
    """S2-10, X-32."""
    _, ana, manager = known
    task = ana.todos.tasks.start("Plan the trip")
    context = manager.load("user:agent:1")
    assert [(one.id, one.description, one.status) for one in context.active_tasks] == [(task.id, "Plan the trip", "Running")]
    context.active_tasks[0].progress = 0.5
    manager.save(context)
    assert [one.progress for one in ana.todos.tasks.list()] == [0.5]
    context.active_tasks[0].status = "Completed"
    manager.save(context)
    assert [one.state for one in ana.todos.tasks.list(closed=True)] == ["completed"]
    assert manager.load("user:agent:1").active_tasks == []
    assert ana.todos.tasks.list() == []
