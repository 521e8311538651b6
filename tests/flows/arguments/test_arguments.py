"""Arguments of the wrong kind, at the edge, or too large to be told: each is refused by name, and nothing else goes wrong.

Most of these were found by the fuzz of `proof/` (P9).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure import documents
from perdure.domain.errors import MESSAGE_CHARS_MAX
from perdure.domain.text.rules import brief, has_more_parts
from perdure.ports.files import check_path
from perdure.testing import StoppedClock

NOW = datetime(2024, 5, 15, 12, tzinfo=UTC)
HUGE = 10**5_000
LAST = datetime.max.replace(tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[perdure.Engine]:
    settings = perdure.Settings(url="memory:", files_dir=str(tmp_path / "files"))
    with perdure.open(settings=settings, clock=StoppedClock(NOW)) as engine:
        yield engine


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    return engine.memory("ana")


def laughing(depth: int) -> Any:
    """Small in memory, and endless for whoever walks through it."""
    made: Any = ["x"]
    for _ in range(depth):
        made = [made] * 4
    return made


class Agreeing(str):
    """Text that says to be equal to anything."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "a limit of 5,000 digits": lambda engine, ana: ana.messages(HUGE),
    "a journal before a number of 5,000 digits": lambda engine, ana: ana.journal.list(before=HUGE),
    "a budget no float can hold": lambda engine, ana: ana.context(budget_tokens=HUGE),
    "a deeply nested limit": lambda engine, ana: ana.messages(json.loads("[" * 900 + "]" * 900)),
    "an API key that is no text": lambda engine, ana: engine.api_keys.recognise(5),
    "an API key id that is no text": lambda engine, ana: engine.api_keys.find(NOW),
    "users of a key that are no list": lambda engine, ana: engine.api_keys.create("k", users=1.5),
    "a suggestion that is none": lambda engine, ana: ana.tools.accept("yes", {}),
    "a progress that cannot be called": lambda engine, ana: engine.verify("loud"),
    "a progress of an index that cannot be called": lambda engine, ana: ana.admin.reindex("loud"),
    "a backup to a number": lambda engine, ana: engine.backup(5),
    "a backup to a name no file has": lambda engine, ana: engine.backup("a\ud800"),
    "an export to a name no file can have": lambda engine, ana: ana.export("x" * 2_000),
    "an import from a name with NUL": lambda engine, ana: ana.import_("a\0b"),
    "replacing by a text": lambda engine, ana: engine.backup("x", replace="false"),
    "a dry run by a text": lambda engine, ana: ana.memories.curate(dry_run="false"),
    "undoing with a text": lambda engine, ana: ana.undo(1, cascade="no"),
    "settings that are none": lambda engine, ana: perdure.open(settings="memory:"),
    "a setting of the wrong kind": lambda engine, ana: perdure.Settings(postgres_pool_max="many"),
    "a zone that is no text": lambda engine, ana: perdure.Settings(zone=5),
    "a zone of 100 KB": lambda engine, ana: perdure.Settings(zone="</think>" * 12_500),
    "limits that are none": lambda engine, ana: perdure.Settings(limits={}),
    "transcripts before a text": lambda engine, ana: ana.conversation.transcripts.archive(before="yesterday"),
    "transcripts up to no number": lambda engine, ana: ana.conversation.transcripts.list("all"),
    "memories behind a set": lambda engine, ana: ana.memories.list(behind=set()),
    "messages that are a class": lambda engine, ana: ana.append_many(str),
    "entries that are a class": lambda engine, ana: ana.series("s").merge(str),
    "a merge that is complete by a text": lambda engine, ana: ana.series("s").merge([], complete="yes"),
    "a series without a name": lambda engine, ana: ana.series(""),
    "a week that starts with a list": lambda engine, ana: perdure.extract_time_range("today", NOW, week_start=[]),
    "an expected revision that is no number": lambda engine, ana: ana.state.save("k", 1, expected={}),
    "a value that is endless": lambda engine, ana: ana.append("user", "x", metadata={"a": laughing(25)}),
    "a result that is endless": lambda engine, ana: ana.tools.accept(ana.after("t", {"a": 1}, mode="suggest"), range(10**12)),
    "an id that is equal to anything": lambda engine, ana: engine.memory(Agreeing("ana")),
    "a role that is equal to anything": lambda engine, ana: ana.append(Agreeing("\ud800"), "x"),
    "a kind of todo that is equal to anything": lambda engine, ana: ana.todos.add("run", Agreeing("\ud800")),
    "a type of memory that is equal to anything": lambda engine, ana: ana.remember("Ana likes tea", Agreeing("\ud800")),
    "an importance that is no whole number": lambda engine, ana: ana.remember("Ana likes tea", importance=1.0),
    "an importance that is equal to anything": lambda engine, ana: ana.remember("Ana likes tea", importance=Agreeing("x")),
    "a pattern that takes minutes to make ready": lambda engine, ana: ana.state.search("é " * 600_000),
    "a kind of decision that is equal to anything": lambda engine, ana: ana.journal.decisions(Agreeing("x")),
    "a state of jobs that is equal to anything": lambda engine, ana: ana.admin.jobs(Agreeing("x")),
    "a form of export that is equal to anything": lambda engine, ana: ana.export("x.jsonl", format=Agreeing("x")),
    "a zone that is a pair": lambda engine, ana: ana.series("s").per("day", zone=("a", "b")),
    "a progress of a task that no float can hold": lambda engine, ana: documents.render_document(
        documents.ContextData("s", active_tasks=[documents.Task("t", "d", "active", HUGE, 0, 0)])
    ),
    "a clock that is none": lambda engine, ana: perdure.open("memory:", clock={}),
    "a time to settle that no float can hold": lambda engine, ana: ana.series("s").configure(settles_after_s=HUGE),
    "a history that keeps a number of 5,000 digits": lambda engine, ana: documents.CompactionRules(keep=HUGE),
    "a document that is a number": lambda engine, ana: documents.read_document(5),
    "a document of which nothing may be read": lambda engine, ana: documents.read_document("{}", bytes_max=()),
    "a context that is none": lambda engine, ana: documents.ContextCompactor.compact(5),
    "a context without a list of facts": lambda engine, ana: documents.ContextCompactor.plan(
        documents.ContextData("s", facts=None)
    ),
    "a context to render that is none": lambda engine, ana: documents.render_document(False),
    "ends of tasks that are a number": lambda engine, ana: documents.CompactionRules(terminal=5),
    "documents copied from a list": lambda engine, ana: documents.copy_contexts([], []),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_odd_argument_is_refused_by_name(what: str, engine: perdure.Engine, ana: perdure.Memory) -> None:
    with pytest.raises(perdure.PerdureError) as refused:
        REFUSED[what](engine, ana)
    assert 0 < len(str(refused.value)) <= MESSAGE_CHARS_MAX
    assert engine.verify().findings == ()


def test_an_option_that_there_is_not_is_an_error_of_python(ana: perdure.Memory) -> None:
    with pytest.raises(TypeError, match="nonsense"):
        ana.tools.query_timeseries_state("s", NOW, NOW, nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nonsense"):
        ana.series("s").tool(nonsense=1)  # type: ignore[call-arg]


def test_a_todo_may_be_due_in_the_last_second_of_the_calendar(engine: perdure.Engine, ana: perdure.Memory) -> None:
    assert ana.todos.add("rest", due_at=LAST).due_at == LAST
    assert engine.process(10).failed == 0


def test_an_error_can_be_printed_and_is_not_long_whatever_it_quotes() -> None:
    said = str(perdure.InvalidInput(f"a \ud800 and \0 and {'x' * 5_000}; do something else"))
    assert len(said) <= MESSAGE_CHARS_MAX
    assert "\0" not in said
    said.encode()
    assert said.startswith("a \\ud800 and \\0 and xx")
    assert said.endswith("; do something else")


def test_a_value_is_named_briefly_however_large_or_deep_it_is() -> None:
    assert brief("abc") == "'abc'"
    assert brief(["a", 1]) == "['a', 1]"
    assert brief(HUGE) == "a `int`"
    for value in ("x" * 10**6, laughing(25), [0] * 10**6, json.loads("[" * 900 + "]" * 900)):
        assert len(brief(value)) <= 40


def test_parts_are_counted_no_further_than_asked() -> None:
    assert has_more_parts(laughing(40), 1_000)
    assert not has_more_parts({"a": [1, 2], "b": "text"}, 20)


def test_a_path_that_the_system_can_have_is_let_through(tmp_path: Path) -> None:
    assert check_path(tmp_path, "path") == tmp_path
    assert check_path("a/b.gz", "path") == Path("a/b.gz")


@pytest.mark.parametrize(
    "call",
    [
        lambda ana: ana.append("tool", "x", failed=None),
        lambda ana: ana.append_many(5),
        lambda ana: ana.append_many([{"role": "user"}]),
        lambda ana: ana.append_many("text"),
        lambda ana: ana.append([], "x"),
        lambda ana: ana.state.load("k", revision="1"),
        lambda ana: ana.state.restore("k", None),
        lambda ana: ana.series("s").merge([], window=5),
        lambda ana: ana.series("s").query(1, 2, coverage=5),
        lambda ana: ana.series("s").query(1, 2, limit="5"),
        lambda ana: ana.series("s").history([]),
        lambda ana: ana.series("s").group([]),
        lambda ana: list(ana.series("s").export([])),
        lambda ana: ana.tools.schemas([]),
        lambda ana: ana.series("s").configure(id_template=5),
        lambda ana: ana.series("s").configure(fresh_for_s=-1),
        lambda ana: ana.series("s").query("9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"),
    ],
)
def test_odd_arguments_are_refused_in_our_words(call: Any) -> None:
    with pytest.raises(perdure.InvalidInput):
        call(perdure.open("memory:").memory("ana"))
