"""Transcripts as text (S4-20, X-38, B-53, T-51): readable, and every message comes back as it was."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lanes import examples
from perdure.domain.conversation.messages import Message, Session, ToolCall
from perdure.domain.errors import Conflict, Corrupt, Unsupported
from perdure.domain.scope import Address, MessageId, SessionId, ToolCallId
from perdure.engine.conversation.transcript import (
    HEAD_BYTES_MAX,
    NO_TOPIC,
    TOPIC_BYTES_MAX,
    TranscriptGrowth,
    block,
    grown,
    opening,
    read_head,
    read_messages,
    survey,
    topic,
)
from perdure.ports.files import BEGIN_BYTES_MAX

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
HERE = Address("coach", "discord:42")
SESSION = Session(HERE, 3, SessionId("s-1"), NOW, NOW, None, 4, 4)

NASTY = (
    "## User",
    "## 1 · User · 2026-01-05 10:00:00 UTC",
    "```python",
    "~~~",
    "<!--",
    "-->",
    "<!-- perdure:message {} -->",
    "<!-- perdure:transcript {} -->",
    "> quoted",
    ">",
    "a \t ",
    "",
    " ",
    "\r",
    "a\rb",
    "&#13;",
    "&amp;#13;",
    "&amp;amp;#13;\r",
    "x&#13;",
    "- calls",
    "---",
    "\u2028",
    "\u0085",
    "\x0b",
    "\ufeff",
    "é",
    "𝕏",
    "\x01",
)
legal = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
ids = st.text(legal, min_size=1, max_size=20) | st.sampled_from(["--", "-->", "a\nb", "`", "``x", "%", ":"])
contents = (
    st.text(legal, max_size=60)
    | st.lists(st.sampled_from(NASTY), max_size=6).map("\n".join)
    | st.lists(st.sampled_from(NASTY), max_size=6).map("\r\n".join)
    | st.text("\r\n&#13;amp> ", max_size=25)
)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | contents,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(legal, max_size=5), inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(ToolCall, ids, ids, jsons)
instants = st.datetimes(timezones=st.just(UTC))


@st.composite
def messages(draw: st.DrawFn, seq: int = 1) -> Message:
    role = draw(st.sampled_from(["user", "assistant", "tool", "system"]))
    answers = draw(st.none() | ids) if role == "tool" else None
    return Message(
        id=MessageId(draw(ids)),
        session=SESSION.id,
        session_number=SESSION.number,
        seq=seq,
        role=role,
        content=draw(contents),
        at=draw(instants),
        tokens=draw(st.integers(0, 10**6)),
        metadata=draw(st.dictionaries(st.text(legal, max_size=5), jsons, max_size=2)),
        tool_calls=tuple(draw(st.lists(calls, max_size=2))) if role == "assistant" else (),
        tool_call_id=None if answers is None else ToolCallId(answers),
        failed=role == "tool" and draw(st.booleans()),
        address=HERE,
    )


@st.composite
def logs(draw: st.DrawFn, min_size: int = 1) -> list[Message]:
    """Messages in order. Their numbers may have holes: retention deletes some."""
    seqs = draw(st.lists(st.integers(1, 50), min_size=min_size, max_size=5, unique=True).map(sorted))
    return [draw(messages(seq=seq)) for seq in seqs]


def said(content: str, seq: int = 1, role: str = "user") -> Message:
    at = NOW + timedelta(seconds=seq)
    return Message(MessageId(f"m{seq}"), SESSION.id, 3, seq, role, content, at, 1, {}, address=HERE)  # type: ignore[arg-type]


def extended(held: bytes, new: list[Message]) -> bytes:
    growth = grown(held, SESSION, new, after=0)
    return held if growth is None else held[: growth.keep] + growth.more


def written(*new: Message) -> bytes:
    return extended(b"", list(new))


def test_a_transcript_is_pleasant_to_read() -> None:
    talk = [
        said("Find a table\nfor *two* in Rome", 1),
        replace(said("", 2, "assistant"), tool_calls=(ToolCall(ToolCallId("c1"), "search", {"q": "rome"}),)),
        replace(said("timeout", 3, "tool"), tool_call_id=ToolCallId("c1"), failed=True),
    ]
    assert re.sub(r"\{.*\}", "{}", written(*talk).decode()) == (
        "# Session of 2026-01-05 10:00:00 UTC\n"
        "\n"
        "Session `s-1` with agent `coach` on channel `discord:42`.\n"
        "\n"
        "<!-- perdure:transcript {} -->\n"
        "\n"
        "## 1 · User · 2026-01-05 10:00:01 UTC\n"
        "\n"
        "> Find a table\n"
        "> for *two* in Rome\n"
        "\n"
        "<!-- perdure:message {} -->\n"
        "\n"
        "## 2 · Assistant · 2026-01-05 10:00:02 UTC\n"
        "\n"
        "- calls `search` with `{}`, as call `c1`\n"
        "\n"
        "<!-- perdure:message {} -->\n"
        "\n"
        "## 3 · Tool result, failed · 2026-01-05 10:00:03 UTC\n"
        "\n"
        "> timeout\n"
        "\n"
        "- answers call `c1`\n"
        "\n"
        "<!-- perdure:message {} -->\n"
    )


@pytest.mark.parametrize("content", NASTY)
def test_text_that_looks_like_our_own_survives(content: str) -> None:
    """B-53, T-51: a heading, a fence or a comment inside a message is just text."""
    talk = [said(content, 1), said(f"{content}\n{content}", 2, "assistant"), said("after it", 3)]
    assert read_messages(written(*talk)) == talk


@given(logs())
@settings(max_examples=examples(300))
def test_every_message_comes_back_as_it_was(log: list[Message]) -> None:
    held = written(*log)
    assert read_messages(held) == log
    assert survey(held).size == len(held)
    assert survey(held).last_seq == log[-1].seq


@given(messages())
@example(said("a\rb\r\nc\r"))
def test_only_our_own_lines_stand_outside_the_quotation(message: Message) -> None:
    """So an open fence or comment in a message ends with it, in any viewer. A lone carriage return ends a line there, too."""
    lines = re.split(r"\r\n|\r|\n", block(message).removesuffix("\n"))
    outside = [line for line in lines if line and not line.startswith((">", "- "))]
    assert len(outside) == 2
    assert outside[0].startswith(f"## {message.seq} · ")
    assert outside[1].startswith("<!-- perdure:message {")
    assert outside[1].endswith("} -->")
    assert outside[1].count("--") == 2


@given(logs(), st.data())
@settings(max_examples=examples(300))
def test_any_split_and_any_crash_give_the_same_file_in_the_end(log: list[Message], data: st.DataObject) -> None:
    """X-38: appended again and again, with the write cut off at any byte, and the job run again from anywhere."""
    whole, held = written(*log), b""
    for upto in data.draw(st.lists(st.integers(0, len(log)), max_size=4)):
        known = sum(message.seq <= survey(held).last_seq for message in log)
        began = survey(held).size
        held = extended(held, log[data.draw(st.integers(0, known)) : upto])
        # The first write is of a whole file; of a later one, any beginning may remain.
        held = held[: data.draw(st.integers(began, len(held)))] if began else held
        assert whole.startswith(held)
        assert read_messages(held) == [message for message in log if message.seq <= survey(held).last_seq]
    assert extended(held, log) == whole


@given(logs(min_size=2), st.data())
def test_a_tail_cut_at_any_byte_is_written_again(log: list[Message], data: st.DataObject) -> None:
    whole = written(*log)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    assert extended(cut, log) == whole
    assert log[: len(read_messages(cut))] == read_messages(cut)


@given(logs(min_size=2), st.integers(1, 400))
def test_a_hole_of_zero_bytes_counts_as_cut_off(log: list[Message], length: int) -> None:
    """A file system may keep the length of a write and lose its content."""
    whole = written(*log)
    start = len(written(log[0]))
    holed = whole[:start] + b"\0" * min(length, len(whole) - start) + whole[start + length :]
    assert extended(holed, log) == whole


def test_what_is_held_is_not_written_twice() -> None:
    talk = [said("one", 1), said("two", 2), said("three", 3)]
    held = written(*talk)
    assert grown(held, SESSION, talk, after=0) is None
    growth = grown(held, SESSION, [*talk, said("four", 4)], after=0)
    assert growth == TranscriptGrowth(len(held), block(said("four", 4)).encode(), 1)


def test_a_file_that_lost_its_beginning_is_not_carried_on() -> None:
    with pytest.raises(Conflict, match="was removed meanwhile"):
        grown(b"", SESSION, [said("five", 5)], after=4)


def test_a_note_at_the_end_stays_and_is_nobodys_message() -> None:
    held = written(said("one")) + b"\n> my own thought\nno line end"
    after = extended(held, [said("two", 2)])
    assert after.startswith(held + b"\n")
    assert read_messages(after) == [said("one"), said("two", 2)]


def test_a_message_edited_by_hand_reads_as_edited() -> None:
    held = written(said("helo", 1), said("there", 2)).replace(b"> helo", b"> hello\n>again")
    assert [message.content for message in read_messages(held)] == ["hello\nagain", "there"]
    no_heading = re.sub(rb"## 1.*\n", b"", held)
    assert [message.content for message in read_messages(no_heading)] == ["hello\nagain", "there"]


def test_a_file_saved_with_other_line_ends_is_still_one() -> None:
    held = written(said("one"), said("two", 2)).replace(b"\n", b"\r\n")
    assert survey(held).last_seq == 2
    assert [message.seq for message in read_messages(held)] == [1, 2]
    assert read_head(held) is not None


def test_something_else_under_the_name_is_not_overwritten() -> None:
    with pytest.raises(Corrupt, match="is not a transcript; move it away"):
        extended(b"my shopping list\n", [said("one")])
    assert read_messages(b"my shopping list\n") == []
    assert read_head(b"my shopping list\n") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seq":1', b'"seq":"1"'),
        (b'"seq":1', b'"seq":1,,'),
        (b'"role":"user"', b'"role":"boss"'),
        (b'"at":"2026', b'"at":"then'),
        (b'"tokens":1', b'"cost":1'),
        (b"> one", b"> on\xff"),
        (b'"number":3', b'"number":null'),
        (b'"agent":"coach"', b'"agent":""'),
    ],
)
def test_a_damaged_transcript_is_corrupt_and_says_what_to_do(old: bytes, new: bytes) -> None:
    held = written(said("one"))
    assert old in held
    with pytest.raises(Corrupt, match="move the file away"):
        read_messages(held.replace(old, new))


def test_a_transcript_of_a_newer_perdure_is_refused() -> None:
    held = written(said("one")).replace(b'"version":1', b'"version":2')
    with pytest.raises(Unsupported, match="newer perdure"):
        read_messages(held)


@given(ids, ids, ids)
@example("\x01" * 400, "--" * 200, "`" * 400)
def test_the_head_says_whose_session_it_is(session: str, agent: str, channel: str) -> None:
    of = replace(SESSION, id=SessionId(session), address=Address(agent, channel))
    text = opening(of).encode()
    assert len(text) < HEAD_BYTES_MAX == BEGIN_BYTES_MAX
    head = read_head(text)
    assert head is not None
    assert (head.session, head.address, head.session_number, head.opened_at) == (session, of.address, 3, NOW)
    assert text.count(b"\n") == 5


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        ("Find a table for two, in Rome!", "find-a-table-for-two-in-rome"),
        ("one two three four five six seven eight nine", "one-two-three-four-five-six-seven"),
        ("Überraschung für Zoë", "überraschung-für-zoë"),
        ("東京で寿司を食べたい", "東京で寿司を食べたい"),
        ("मुझे चाय चाहिए", "मुझे-चाय-चाहिए"),
        ("../../etc/passwd", "etc-passwd"),
        ("𝐓𝐎𝐏 Z", "top-z"),
        ("x" * 500, "x" * TOPIC_BYTES_MAX),
        ("👋 🎉", NO_TOPIC),
        ("\u0301\u0301", NO_TOPIC),
        ("", NO_TOPIC),
    ],
)
def test_a_topic_is_a_few_words_in_any_script(content: str, slug: str) -> None:
    """S4-20: `session-memory-<session_id>-<timestamp>-<topic>.md`."""
    assert topic([said("Hello, how can I help?", 1, "assistant"), said(content, 2), said("later", 3)]) == slug


@given(st.text(legal, max_size=200))
def test_a_topic_is_safe_in_a_file_name(content: str) -> None:
    slug = topic([said(content)])
    assert 0 < len(slug.encode()) <= TOPIC_BYTES_MAX
    assert not re.search(r"[\s/\\:*?\"<>|.%A-Z\x00-\x1f~]", slug)
    assert slug.isprintable()
