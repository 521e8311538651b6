"""Laws of compacting a context document, and of its JSON form."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perdure
from perdure import Summary
from perdure.documents import (
    CompactionRules,
    ContextCompactor,
    ContextData,
    Environment,
    HistoryEntry,
    Task,
    TokenUsage,
    ToolStats,
    read_document,
    render_document,
)
from perdure.domain.conversation.digests import SummaryRequest
from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.engine.documents.compaction import SUMMARY_HEADING, full_history, normalised_fact
from perdure.engine.documents.json_form import DOCUMENT_FIELDS, entry_json
from perdure.engine.text.tokens import estimate_tokens
from perdure.testing import StoppedClock

HOUR_S = 3_600
NOW_S = 1_767_607_200
"""Where the stopped clock stands."""


def entries(count: int, *, tokens: int | None = 5, roles: tuple[str, ...] = ("user", "assistant")) -> list[HistoryEntry]:
    return [
        HistoryEntry(1_708_654_000 + number, roles[number % len(roles)], f"Message {number + 1}", tokens)
        for number in range(count)
    ]


def context(history: list[HistoryEntry], **fields: Any) -> ContextData:
    return ContextData("user:agent:123", recent_history=history, **fields)


def stopped(**rules: Any) -> ContextCompactor:
    return ContextCompactor(clock=StoppedClock(), **rules)


def everything(compacted: ContextData) -> list[HistoryEntry]:
    return full_history(compacted.archived, compacted.recent_history)


# Length


def test_fifty_entries_are_left_alone() -> None:
    """T-25, S2-14."""
    one = context(entries(50))
    assert ContextCompactor.compact(one) is False
    assert one == context(entries(50))
    assert one.archived == []


@pytest.mark.parametrize("roles", [("user", "assistant"), ("user",), ("assistant",), ("tool",)])
def test_fifty_one_entries_leave_thirty_and_twenty_one_lines(roles: tuple[str, ...]) -> None:
    """T-25, S2-17, S2-22, X-12: the rule counts, not the seed's example."""
    one = context(entries(51, roles=roles))
    assert ContextCompactor.compact(one) is True
    assert one.recent_history == entries(51, roles=roles)[21:]
    assert one.recent_history[0].content == "Message 22"
    lines = one.long_term_summary.split("\n")
    assert lines[0] == "Previous conversation summary:"
    assert lines[1:] == [f"- {entry.role}: {entry.content}" for entry in entries(51, roles=roles)[:21]]


def test_the_heading_stands_once_and_text_that_was_there_stays() -> None:
    one = context(entries(51), long_term_summary="User requested file creation.")
    ContextCompactor.compact(one)
    one.recent_history += entries(30)
    ContextCompactor.compact(one)
    lines = one.long_term_summary.split("\n")
    assert lines[:3] == ["User requested file creation.", SUMMARY_HEADING, "- user: Message 1"]
    assert lines.count(SUMMARY_HEADING) == 1
    assert len(lines) == 2 + 21 + 30


@pytest.mark.parametrize(
    ("given", "kept"), [({"max_history": 30}, 18), ({"max_history": 100}, 60), ({"max_history": 3, "keep": 1}, 1)]
)
def test_keep_goes_with_the_maximum(given: dict[str, int], kept: int) -> None:
    """X-14, S2-41, S2-42."""
    one = context(entries(given["max_history"] + 1))
    assert stopped(**given).compact(one)
    assert len(one.recent_history) == kept


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ({"keep": 50}, "`keep` = 50"),
        ({"max_history": 30, "keep": 30}, "`max_history` = 30"),
        ({"max_history": 1}, "`max_history` = 1"),
        ({"keep": 0}, "`keep` = 0"),
        ({"max_tokens": 10}, "`max_tokens` = 10"),
        ({"summary_chars_max": 3.5}, "`summary_chars_max` = 3.5"),
        ({"nonsense": 1}, "`nonsense`"),
    ],
)
def test_rules_that_cannot_work_are_refused_by_name(rules: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        ContextCompactor(**rules)


# Tokens


def test_a_history_of_too_many_tokens_loses_its_older_half() -> None:
    """T-26, S2-15, S2-18."""
    one = context(entries(40, tokens=3_000))
    assert ContextCompactor.compact(one)
    assert one.recent_history == entries(40, tokens=3_000)[20:]
    assert one.last_compaction is not None
    assert (one.last_compaction.tokens_before, one.last_compaction.tokens_after) == (120_000, 60_000)
    assert one.last_compaction.summarised == 20


def test_exactly_as_many_tokens_as_allowed_are_left_alone() -> None:
    assert not ContextCompactor.compact(context(entries(40, tokens=2_500)))


def test_halving_is_repeated_until_the_tokens_fit() -> None:
    """B-33."""
    one = context(entries(40, tokens=20_000))
    assert ContextCompactor.compact(one)
    assert [entry.content for entry in one.recent_history] == [f"Message {number}" for number in range(36, 41)]


def test_of_one_huge_entry_an_excerpt_stays_and_the_whole_is_handed_over() -> None:
    """T-26, B-33."""
    huge = HistoryEntry(1, "tool", "données " * 80_000, 150_000)
    one = context([huge])
    assert ContextCompactor.compact(one)
    [short] = one.recent_history
    assert short.content.startswith("données données")
    assert len(short.content) < 2_200
    assert short.token_count == estimate_tokens(short.content)
    assert one.long_term_summary == "", "it has not left the history"
    assert everything(one) == [huge]
    assert one.last_compaction is not None
    assert one.last_compaction.shortened == 1


def test_a_huge_newest_entry_does_not_cost_us_the_others() -> None:
    one = context([*entries(39), HistoryEntry(1, "user", "x " * 400_000)])
    assert ContextCompactor.compact(one)
    assert len(one.recent_history) == 40


def test_a_huge_entry_in_the_older_half_leaves_with_it() -> None:
    """S2-18."""
    one = context([HistoryEntry(1, "user", "x " * 400_000), *entries(39)])
    assert ContextCompactor.compact(one)
    assert one.recent_history == entries(39)[19:]


def test_an_excerpt_that_is_cut_again_still_leads_to_the_whole() -> None:
    huge = HistoryEntry(1, "user", "word " * 120_000)
    one = context([huge])
    ContextCompactor.compact(one)
    stopped(max_tokens=100).compact(one)
    assert estimate_tokens(one.recent_history[0].content) <= 100
    stopped(max_history=2).compact(one, force=True)
    one.recent_history += entries(51)
    ContextCompactor.compact(one)
    assert everything(one) == [huge, *entries(51)]


def test_counts_that_are_missing_are_estimated() -> None:
    """T-26, X-39, S2-33."""
    one = context([HistoryEntry(number, "user", "word " * 6_000) for number in range(20)])
    assert ContextCompactor.compact(one)
    assert len(one.recent_history) == 10


def test_the_tokenizer_may_be_another_one() -> None:
    one = context(entries(20, tokens=None))
    assert not stopped(max_tokens=200, count_tokens=lambda text: 10).compact(one)
    assert stopped(max_tokens=200, count_tokens=lambda text: 11).compact(one)
    assert len(one.recent_history) == 10


# Force


def test_force_compacts_what_no_limit_would() -> None:
    """T-28, X-13, S2-16."""
    one = context(entries(20))
    assert ContextCompactor.compact(one) is False
    assert ContextCompactor.compact(one, force=True) is True
    assert one.recent_history == entries(20)[10:], "without more than `keep`, the newer half stays"
    forty = context(entries(40))
    assert ContextCompactor.compact(forty, force=True)
    assert len(forty.recent_history) == 30


@pytest.mark.parametrize("count", [0, 1])
def test_force_does_nothing_where_nothing_can_go(count: int) -> None:
    assert ContextCompactor.compact(context(entries(count)), force=True) is False


# Tool pairs


@pytest.mark.parametrize("results", [1, 2, 5])
def test_a_cut_moves_back_before_the_call_of_a_result(results: int) -> None:
    """T-33, X-42: the boundary would fall before entry 22, which is a result."""
    history = entries(51, roles=("user",))
    history[21 - results] = HistoryEntry(1, "assistant", "call")
    for place in range(22 - results, 22):
        history[place] = HistoryEntry(1, "tool", "result")
    one = context(history[:])
    assert ContextCompactor.compact(one)
    assert one.recent_history == history[21 - results :]


def test_a_call_with_too_many_results_leaves_with_all_of_them() -> None:
    """The budget holds, and so does the pair."""
    history = [HistoryEntry(1, "assistant", "call"), *entries(60, roles=("tool",)), *entries(5)]
    one = context(history[:])
    assert ContextCompactor.compact(one)
    assert one.recent_history == entries(5)
    alone = context([HistoryEntry(1, "assistant", "call"), *entries(60, roles=("tool",))])
    assert ContextCompactor.compact(alone)
    assert alone.recent_history == []
    assert len(everything(alone)) == 61


def test_results_too_long_for_the_budget_are_shortened_where_they_stand() -> None:
    history = [HistoryEntry(1, "assistant", "call"), *(HistoryEntry(2, "tool", "text " * 15_000) for _ in range(10))]
    one = context(history[:])
    assert ContextCompactor.compact(one)
    assert [entry.role for entry in one.recent_history] == ["assistant", *["tool"] * 10]
    assert everything(one) == history


# Summary


def test_lines_are_flat_capped_by_characters_and_free_of_secrets() -> None:
    """B-34, B-40."""
    history = entries(51)
    history[0].content = "one\ntwo\r\n\u2028three\tfour"
    history[1].content = "é" * 1_000
    history[2].content = "my key is sk-12345"
    one = context(history)
    stopped(redact=lambda text: text.replace("sk-12345", "[secret]")).compact(one)
    lines = one.long_term_summary.split("\n")
    assert lines[1] == "- user: one two three four"
    assert lines[2] == "- assistant: " + "é" * 226 + "…"
    assert len(lines[2]) == 240
    assert lines[3] == "- user: my key is [secret]"
    assert "sk-12345" in everything(one)[2].content, "the archive keeps what was said"


def test_a_redaction_that_fails_leaves_the_document_as_it_was() -> None:
    one = context(entries(51), facts=["b", "a"])
    for wrong in (lambda text: 1 / 0, lambda text: None):
        with pytest.raises((ZeroDivisionError, InvalidInput)):
            stopped(redact=wrong).compact(one)
        assert one == context(entries(51), facts=["b", "a"])
        assert one.archived == []


def test_a_summary_over_its_budget_says_how_many_entries_are_in_the_history_only() -> None:
    """X-15, T-32."""
    compactor = stopped(summary_chars_max=400)
    one = context([], long_term_summary="They met in May.")
    for number in range(1_000):
        one.recent_history.append(HistoryEntry(number, "user", f"Message {number}"))
        compactor.compact(one)
        assert len(one.long_term_summary) <= 400
        assert len(one.recent_history) <= 50
    lines = one.long_term_summary.split("\n")
    assert lines[:2] == ["They met in May.", SUMMARY_HEADING]
    told = int(lines[2].split()[1].strip("("))
    assert lines[2] == f"- ({told} earlier entries are in the history only)"
    assert told + len(lines[3:]) + len(one.recent_history) == 1_000
    assert [entry.timestamp for entry in everything(one)] == list(range(1_000))


@given(st.text(max_size=3_000), st.integers(200, 1_000))
def test_any_summary_comes_within_its_budget_and_what_left_it_is_handed_over(text: str, budget: int) -> None:
    text = text.replace("\0", "").encode(errors="ignore").decode()
    one = context(entries(60), long_term_summary=text)
    stopped(summary_chars_max=budget).compact(one)
    assert len(one.long_term_summary) <= budget
    left = "".join(item.body for item in one.archived if item.kind == "summary")
    assert text.strip()[:100] in one.long_term_summary or text.strip("\n")[:100] in left


# Facts and tasks


def test_facts_are_sorted_and_repeats_go_whatever_their_spelling() -> None:
    """T-27, S2-19, B-39."""
    one = context(
        [], facts=["User speaks English", "Project uses Rust", "user  speaks\nenglish.", "Ａ fact", "Project uses Rust"]
    )
    assert ContextCompactor.compact(one) is False, "tidying facts is no compaction"
    assert one.facts == ["Project uses Rust", "User speaks English", "Ａ fact"]
    assert one.last_compaction is not None
    assert one.last_compaction.facts_removed == 2
    assert [item.body for item in one.archived] == ["user  speaks\nenglish."]


def test_facts_that_do_not_matter_any_more_leave() -> None:
    """S2-39."""
    one = context([], facts=["old: a", "b", " "])
    stopped(is_relevant=lambda fact: not fact.startswith("old")).compact(one)
    assert one.facts == ["b"]
    assert [item.body for item in one.archived] == ["old: a", " "]


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)))
def test_tidying_facts_twice_is_tidying_them_once(facts: list[str]) -> None:
    one = context([], facts=facts)
    ContextCompactor.compact(one)
    once = one.facts[:]
    ContextCompactor.compact(one)
    assert one.facts == once == sorted(once)
    assert {normalised_fact(fact) for fact in facts if fact.strip()} == {normalised_fact(fact) for fact in once}


@pytest.mark.parametrize(
    ("status", "age_h", "stays"),
    [
        ("Running", 1_000, True),
        ("Completed", 23, True),
        ("Completed", 24, False),
        ("Completed", 25, False),
        ("completed", 25, False),
        ("Failed", 25, False),
        ("CANCELLED", 25, False),
        ("Timed out", 25, False),
        ("timed-out", 25, False),
        ("Failed", 23, True),
        ("Paused", 25, True),
    ],
)
def test_tasks_leave_a_day_after_their_end(status: str, age_h: int, stays: bool) -> None:
    """T-27, S2-20, B-35."""
    task = Task("t", "look", status, 1.0, 0, NOW_S - age_h * HOUR_S)
    one = context([], active_tasks=[task])
    stopped().compact(one)
    assert one.active_tasks == ([task] if stays else [])
    assert [item.body for item in one.archived] == ([] if stays else [asdict(task)])


def test_a_task_that_ended_in_the_future_ages_from_now_on() -> None:
    """B-36."""
    clock = StoppedClock()
    compactor = ContextCompactor(clock=clock)
    one = context(
        [],
        active_tasks=[
            Task("t", "look", "Completed", 1.0, 0, NOW_S * 1_000),
            Task("r", "run", "Running", 0.5, 0, NOW_S * 1_000),
        ],
    )
    compactor.compact(one)
    assert [task.updated_at for task in one.active_tasks] == [NOW_S, NOW_S * 1_000]
    clock.move(hours=-48)
    compactor.compact(one)
    assert len(one.active_tasks) == 2, "a clock that goes back drops nothing"
    clock.move(hours=24)
    compactor.compact(one)
    assert [task.id for task in one.active_tasks] == ["r"]


# The compactor itself


def test_compactions_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """S2-32."""
    before = ContextCompactor.compactions
    with caplog.at_level(logging.INFO, logger="perdure"):
        ContextCompactor.compact(context(entries(50)))
        ContextCompactor.compact(context(entries(51)))
        stopped().compact(context(entries(51)))
    assert ContextCompactor.compactions == before + 2
    assert [record.message for record in caplog.records] == ["Context compacted"] * 2


def test_planning_touches_nothing() -> None:
    one = context(entries(51), facts=["b", "a"])
    report = ContextCompactor.plan(one)
    assert (report.summarised, report.compacted) == (21, True)
    assert one == context(entries(51), facts=["b", "a"])
    assert one.last_compaction is None
    assert stopped().plan(one) == report


def test_the_lists_that_a_caller_holds_stay_the_same_ones() -> None:
    one = context(entries(51), facts=["b", "a"])
    history, facts = one.recent_history, one.facts
    ContextCompactor.compact(one)
    assert (len(history), facts) == (30, ["a", "b"])


roles = st.sampled_from(["user", "assistant", "tool", "system"])
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
histories = st.lists(
    st.builds(
        HistoryEntry,
        st.integers(-(10**10), 10**10),
        roles,
        texts | st.integers(1, 900).map(lambda count: "long " * count),
        st.none() | st.integers(0, 300),
    ),
    max_size=25,
)


@given(
    st.lists(st.tuples(histories, st.booleans()), max_size=6),
    st.integers(2, 20),
    st.integers(64, 600),
    st.integers(200, 600),
    st.integers(0, 100),
)
def test_no_sequence_of_compactions_loses_an_entry_or_breaks_a_budget(
    rounds: list[tuple[list[HistoryEntry], bool]], most: int, tokens: int, chars: int, excerpt: int
) -> None:
    """T-32, T-33, X-15: the history is everything that was ever pushed."""
    compactor = stopped(max_history=most, max_tokens=tokens, summary_chars_max=chars, excerpt_chars_max=excerpt)
    one = context([])
    pushed: list[HistoryEntry] = []
    for more, force in rounds:
        one.recent_history += more
        pushed += more
        before = one.recent_history[:]
        compactor.compact(one, force=force)
        assert everything(one) == pushed
        assert len(one.recent_history) <= most
        assert (
            sum(
                entry.token_count if entry.token_count is not None else estimate_tokens(entry.content)
                for entry in one.recent_history
            )
            <= tokens
        )
        assert len(one.long_term_summary) <= chars
        if one.recent_history and one.recent_history[0].role == "tool" and len(one.recent_history) < len(before):
            assert not belongs_to_a_call(before, len(before) - len(one.recent_history))
        assert not compactor.compact(one), "once is enough"


def belongs_to_a_call(history: list[HistoryEntry], place: int) -> bool:
    while place and history[place].role == "tool":
        place -= 1
    return history[place].role == "assistant"


# The document


SEED_DOCUMENT = """{
  "session_id": "user:agent:timestamp",
  "system_state": {"last_workspace": "/home/user/project", "preferences": {}},
  "facts": ["User prefers verbose output", "Project uses Rust 1.75"],
  "recent_history": [
    {"timestamp": 1708654321, "role": "user", "content": "Create a new file", "token_count": 5},
    {"timestamp": 1708654322, "role": "assistant", "content": "I'll create the file for you", "token_count": 8},
    {"timestamp": 1708654323, "role": "tool", "content": "{\\"success\\": true}", "token_count": 12}
  ],
  "long_term_summary": "User requested file creation. Successfully created test.txt.",
  "active_tasks": [
    {"id": "task_001", "description": "Monitor system resources", "status": "Running", "progress": 0.5,
     "created_at": 1708654000, "updated_at": 1708654321}
  ],
  "tool_stats": {"total_calls": 42, "by_tool": {"file_write": 15, "file_read": 20, "echo": 7}, "failures": 2},
  "last_known_environment": {
    "workspace": "/home/user/project", "last_update": 1708654321,
    "system_snapshot": {"memory_usage_mb": 8192, "disk_usage_percent": 45.2}
  },
  "token_usage": {"total_input": 15420, "total_output": 8930, "by_session": 24350}
}"""


def test_the_seeds_document_is_read_and_written_field_for_field() -> None:
    """S2-5 to S2-13."""
    one = read_document(SEED_DOCUMENT)
    assert one.recent_history[2] == HistoryEntry(1708654323, "tool", '{"success": true}', 12)
    assert one.active_tasks == [Task("task_001", "Monitor system resources", "Running", 0.5, 1708654000, 1708654321)]
    written = render_document(one).decode()
    assert json.loads(written) == json.loads(SEED_DOCUMENT)
    assert list(json.loads(written)) == list(json.loads(SEED_DOCUMENT)) == list(DOCUMENT_FIELDS)
    assert list(json.loads(written)["recent_history"][0]) == ["timestamp", "role", "content", "token_count"]
    assert list(json.loads(written)["active_tasks"][0]) == [
        "id",
        "description",
        "status",
        "progress",
        "created_at",
        "updated_at",
    ]


def test_the_document_is_for_people_to_read() -> None:
    """S2-4."""
    written = render_document(read_document(SEED_DOCUMENT)).decode()
    assert '    {"timestamp": 1708654321, "role": "user", "content": "Create a new file", "token_count": 5},\n' in written
    assert '  "facts": [\n    "User prefers verbose output",\n    "Project uses Rust 1.75"\n  ],\n' in written
    assert "Zoë 🎉" in render_document(ContextData("s", facts=["Zoë 🎉"])).decode()


def test_counting_calls_and_tokens_gives_the_seeds_numbers() -> None:
    """S2-11, S2-13."""
    stats = ToolStats()
    for tool, calls in (("file_write", 15), ("file_read", 20), ("echo", 7)):
        for number in range(calls):
            stats.count(tool, failed=tool == "echo" and number < 2)
    assert stats == ToolStats(42, {"file_write": 15, "file_read": 20, "echo": 7}, 2)
    usage = TokenUsage()
    usage.count(input_tokens=15_000, output_tokens=8_930)
    usage.count(input_tokens=420)
    assert usage == TokenUsage(15_420, 8_930, 24_350)


any_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
whole = st.integers(0, 2**53 - 1)
instants = st.integers(-(2**53) + 1, 2**53 - 1)
free = st.dictionaries(
    any_text,
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**30), 10**30)
        | st.floats(allow_nan=False, allow_infinity=False)
        | any_text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
documents = st.builds(
    ContextData,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    free,
    st.lists(any_text, max_size=4),
    st.lists(st.builds(HistoryEntry, instants, roles, any_text, st.none() | whole), max_size=5),
    any_text,
    st.lists(st.builds(Task, any_text, any_text, any_text, st.floats(0, 1), instants, instants), max_size=3),
    st.builds(ToolStats, whole, st.dictionaries(any_text, whole, max_size=3), whole),
    st.builds(Environment, any_text, instants, free),
    st.builds(TokenUsage, whole, whole, whole),
)


@given(documents)
def test_any_legal_document_survives_its_way_into_the_file_and_back(document: ContextData) -> None:
    raw = render_document(document)
    assert read_document(raw) == document
    assert render_document(read_document(raw)) == raw
    assert json.loads(raw) == {name: asdict(document)[name] for name in DOCUMENT_FIELDS}


@given(any_text)
def test_text_is_escaped_as_the_json_module_does_it(text: str) -> None:
    raw = render_document(ContextData("s", long_term_summary=text))
    assert f'"long_term_summary": {json.dumps(text, ensure_ascii=False)},'.encode() in raw


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"session_id": ""}, "`session_id` is empty"),
        ({"session_id": 3}, "`session_id` must be text"),
        ({"facts": "one"}, "`facts` must be a list"),
        ({"facts": [1]}, r"`facts\[0\]` must be text"),
        ({"long_term_summary": None}, "`long_term_summary` must be text"),
        ({"system_state": []}, "`system_state` must be an object"),
        ({"recent_history": [{"role": "user", "content": ""}]}, r"`recent_history\[0\]` lacks `timestamp`"),
        ({"recent_history": [{"timestamp": 1, "role": "robot", "content": ""}]}, r"`recent_history\[0\].role` = 'robot'"),
        ({"recent_history": [{"timestamp": 1.5, "role": "user", "content": ""}]}, "whole seconds"),
        (
            {"recent_history": [{"timestamp": 1, "role": "user", "content": "", "token_count": -1}]},
            "`recent_history.0..token_count` = -1",
        ),
        ({"recent_history": [{"timestamp": 1, "role": "user", "content": "", "token_count": True}]}, "token_count"),
        ({"recent_history": [{"timestamp": 1, "role": "user", "content": "", "mood": 1}]}, "`mood`"),
        ({"recent_history": [3]}, r"`recent_history\[0\]` must be an object"),
        ({"active_tasks": [{}]}, r"`active_tasks\[0\]` lacks"),
        ({"tool_stats": {"total_calls": 1, "by_tool": {"echo": -1}, "failures": 0}}, "by_tool"),
        ({"token_usage": {"total_input": 1, "total_output": 1}}, "lacks `by_session`"),
        ({"last_known_environment": {"workspace": 1, "last_update": 0, "system_snapshot": {}}}, "workspace"),
        ({"plan": []}, "`plan`"),
    ],
)
def test_what_does_not_fit_the_shape_is_named_with_its_field(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        read_document(json.dumps(json.loads(SEED_DOCUMENT) | change))


@pytest.mark.parametrize("field", DOCUMENT_FIELDS)
def test_no_field_may_be_missing(field: str) -> None:
    document = json.loads(SEED_DOCUMENT)
    del document[field]
    with pytest.raises(InvalidInput, match=f"lacks `{field}`"):
        read_document(json.dumps(document))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"session_id": NaN}',
        b"[" * 100_000,
        SEED_DOCUMENT.replace("45.2", "9" * 5_000).encode(),
        SEED_DOCUMENT.replace("Create a new", "\\ud800").encode(),
        SEED_DOCUMENT.replace("Create a new", "\\u0000").encode(),
        SEED_DOCUMENT.replace("Create a new", "\ud800").encode(errors="surrogatepass"),
        SEED_DOCUMENT.replace('"preferences": {}', '"preferences": ' + "[" * 90 + "]" * 90).encode(),
    ],
)
def test_what_is_no_document_is_refused_as_such(raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_document(raw)


@pytest.mark.parametrize(
    "wrong",
    [
        ContextData("s", facts=["\ud800"]),
        ContextData("s", facts=["\0"]),
        ContextData("\ud800"),
        ContextData("s" * 5_000),
        ContextData("s", system_state={"a": float("nan")}),
        ContextData("s", system_state={"a": {1}}),
        ContextData("s", recent_history=[{"role": "user"}]),  # type: ignore[list-item]
        ContextData("s", recent_history=()),  # type: ignore[arg-type]
        ContextData("s", recent_history=[HistoryEntry(1, "user", "\ud800")]),
        ContextData("s", recent_history=[HistoryEntry(1, "user", "a\0b")]),
        ContextData("s", active_tasks=[Task("a", "b\0", "c", 0.5, 1, 1)]),
        ContextData("s", active_tasks=[Task("a", "b", "c", 1.5, 1, 1)]),
        ContextData("s", tool_stats=None),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_stored(wrong: ContextData) -> None:
    with pytest.raises(InvalidInput):
        render_document(wrong)


def test_compaction_refuses_an_entry_that_could_not_be_stored() -> None:
    for wrong in ("\ud800", "\0", None):
        one = context([HistoryEntry(1, "user", wrong), *entries(60)])  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=r"recent_history\[0\]"):
            ContextCompactor.compact(one)
        assert len(one.recent_history) == 61


def test_documents_have_a_largest_size() -> None:
    with pytest.raises(LimitExceeded, match="`document_bytes_max` = 1000"):
        render_document(ContextData("s", long_term_summary="x" * 1_000), bytes_max=1_000)
    with pytest.raises(LimitExceeded, match="`document_bytes_max` = 10"):
        read_document(SEED_DOCUMENT, bytes_max=10)


def test_the_defaults_are_the_seeds() -> None:
    rules = CompactionRules()
    assert (rules.max_history, rules.kept, rules.max_tokens, rules.task_keep_s) == (50, 30, 100_000, 86_400)
    assert entry_json(HistoryEntry(1, "user", "x"))["token_count"] is None


# -- a summariser of the host


class Scripted:
    """Says what it is told to, and notes what it was asked."""

    name = "scripted-1"

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[SummaryRequest] = []

    def summarise(self, request: SummaryRequest) -> Summary:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


def fifty_one() -> ContextData:
    said = [HistoryEntry(1_708_654_321 + n, "user" if n % 2 else "assistant", f"Message {n}") for n in range(1, 52)]
    return ContextData("user1:agent1:123", recent_history=said, long_term_summary="They met in May.")


def test_the_summariser_that_is_set_writes_the_summary() -> None:
    """S2-44, X-15: it carries the summary on over what leaves; what it replaces is archived, and its length is bounded."""
    wordy = Scripted(Summary("They talk about messages. " * 1_000))
    context = fifty_one()
    assert ContextCompactor(summariser=wordy, summary_chars_max=400).compact(context)
    [asked] = wordy.asked
    assert (asked.previous, len(asked.messages), asked.messages[0].content) == ("They met in May.", 21, "Message 1")
    assert context.long_term_summary.startswith("They talk about messages.")
    assert len(context.long_term_summary) <= 400
    assert [one.body for one in context.archived if one.kind == "summary"] == ["They met in May."]
    assert len([one for one in context.archived if one.kind == "entry"]) == 21


@pytest.mark.parametrize("answer", [RuntimeError("down"), "no summary", Summary("  ")], ids=["raises", "no summary", "empty"])
def test_a_summariser_that_fails_leaves_the_lines_of_the_rules(answer: object) -> None:
    """S2-22, X-27: nothing is lost, and nothing is raised."""
    by_rules, context = fifty_one(), fifty_one()
    ContextCompactor().compact(by_rules)
    assert ContextCompactor(summariser=Scripted(answer)).compact(context)
    assert context.long_term_summary == by_rules.long_term_summary
    assert context.recent_history == by_rules.recent_history


def test_an_engine_lends_its_summariser_and_nothing_else_passes_for_one() -> None:
    set_there = Scripted(Summary("By the one that is set."))
    with perdure.open("memory:", summariser=set_there) as engine:
        context = fifty_one()
        assert ContextCompactor(summariser=engine).compact(context)
        assert context.long_term_summary == "By the one that is set."
    with pytest.raises(InvalidInput, match="`summariser` is a `str`"):
        ContextCompactor(summariser="gpt")  # type: ignore[arg-type]
    quiet = Scripted(Summary("never"))
    short = ContextData("user1:agent1:123", recent_history=[HistoryEntry(1, "user", "Hi")])
    assert not ContextCompactor(summariser=quiet).compact(short)
    assert quiet.asked == []
