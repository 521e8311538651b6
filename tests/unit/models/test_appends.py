"""`MEMORY_APPEND` in replies (S4-15): what is meant for the memory, and what the user sees."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.models.replies import MARK, LessonRequest, split_reply

RETRY = "Retry the calendar tool once"


@pytest.mark.parametrize(
    ("line", "append"),
    [
        (f"MEMORY_APPEND: {RETRY}", LessonRequest(RETRY)),
        (f"MEMORY_APPEND {RETRY}", LessonRequest(RETRY)),
        (f"  MEMORY_APPEND：{RETRY}  ", LessonRequest(RETRY)),
        (f"**MEMORY_APPEND:** {RETRY}", LessonRequest(RETRY)),
        (f"**MEMORY_APPEND**: {RETRY}", LessonRequest(RETRY)),
        (f"- MEMORY_APPEND: {RETRY}", LessonRequest(RETRY)),
        (f"* **MEMORY_APPEND** {RETRY}", LessonRequest(RETRY)),
        (f"1. MEMORY_APPEND: {RETRY}", LessonRequest(RETRY)),
        (f"> MEMORY_APPEND: {RETRY}", LessonRequest(RETRY)),
        (f"## MEMORY_APPEND: {RETRY}", LessonRequest(RETRY)),
        (f"`MEMORY_APPEND: {RETRY}`", LessonRequest(RETRY)),
        (f"[MEMORY_APPEND] {RETRY}", LessonRequest(RETRY)),
        (f"[MEMORY_APPEND: {RETRY}]", LessonRequest(RETRY)),
        (f"MEMORY_APPEND agent:007 {RETRY}", LessonRequest(RETRY, "007")),
        (f"MEMORY_APPEND: agent:007 {RETRY}", LessonRequest(RETRY, "007")),
        (f"MEMORY_APPEND agent:007: {RETRY}", LessonRequest(RETRY, "007")),
        (f"**MEMORY_APPEND agent:coach-2** {RETRY}", LessonRequest(RETRY, "coach-2")),
        (f"MEMORY_APPEND (agent: 007) {RETRY}", LessonRequest(RETRY, "007")),
        ("MEMORY_APPEND: Use `ls -l` for lists", LessonRequest("Use `ls -l` for lists")),
        ("MEMORY_APPEND: Ask first (always)", LessonRequest("Ask first (always)")),
    ],
)
def test_a_line_for_the_memory_is_taken_out_whatever_its_dress(line: str, append: LessonRequest) -> None:
    assert split_reply(f"Done.\n\n{line}\n\nAnything else?") == ("Done.\n\nAnything else?", (append,))
    assert split_reply(line) == ("", (append,))
    assert split_reply(f"Done.\r\n{line}\r\n")[1] == (append,)


@pytest.mark.parametrize(
    "reply",
    [
        "I will use MEMORY_APPEND: for this",
        "MEMORY_APPENDIX: see below",
        "MEMORY_APPEND2: x",
        "memory_append: lower case is somebody's word",
        "```\nMEMORY_APPEND: in code\n```",
        "~~~text\nMEMORY_APPEND: in code\n~~~\n",
        "Write it so:\n\n````\n```\nMEMORY_APPEND: x\n```\n````",
        "```\nMEMORY_APPEND: in code that nobody closes\n\n\n",
        "no mark at all\n\n\n",
        "",
    ],
)
def test_what_only_looks_like_it_stays_as_it_is(reply: str) -> None:
    assert split_reply(reply) == (reply, ())


def test_a_mark_alone_means_the_list_below_it() -> None:
    reply = "Ok.\nMEMORY_APPEND agent:007:\n- Ask first\n2. Then book\nThat is all.\n- not meant\n"
    expected = (LessonRequest("Ask first", "007"), LessonRequest("Then book", "007"))
    assert split_reply(reply) == ("Ok.\nThat is all.\n- not meant\n", expected)
    assert split_reply("MEMORY_APPEND:\n\nHello") == ("Hello", ())


def test_several_lines_are_several_lessons_and_the_rest_keeps_its_form() -> None:
    reply = "One\n\n\n\nTwo\n```\na\n\n\nb\n```\nMEMORY_APPEND: First thing\nMEMORY_APPEND agent:x Second thing"
    text, appends = split_reply(reply)
    assert text == "One\n\n\n\nTwo\n```\na\n\n\nb\n```"
    assert appends == (LessonRequest("First thing"), LessonRequest("Second thing", "x"))


def test_a_hostile_reply_takes_no_long_time() -> None:
    started = time.monotonic()
    for piece in (" ", "- ", "`", "*", "MEMORY_APPEND ", "agent:", "[", "\n"):
        split_reply(f"{piece * 50_000}{MARK} {piece * 50_000}")
    assert time.monotonic() - started < 5


@given(
    st.lists(
        st.sampled_from(["text", "", "```", "~~~", f"{MARK}: keep this", "- item", f"{MARK} agent:a x", "> quote"]), max_size=12
    )
)
def test_nothing_for_the_memory_is_shown_outside_code_and_the_rest_is(lines: list[str]) -> None:
    text, appends = split_reply("\n".join(lines))
    again, none = split_reply(text)
    assert (again, none) == (text, ())
    assert text.split("\n").count("text") == lines.count("text")
    assert len(appends) + text.count(MARK) <= sum(MARK in line or line == "- item" for line in lines)
