"""The spellings of conversations (S2-5, S2-40, S3-26, S4-18, S4-36, X-30): read and written without loss, never split blindly."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.domain.conversation.addresses import (
    NUMBER_MAX,
    SPELLINGS,
    ConversationName,
    channel_name,
    parse,
    render,
    split_channel,
)
from perdure.domain.errors import InvalidInput

ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60) | st.text(
    ":%3A25é ", min_size=1, max_size=20
)
numbers = st.integers(0, NUMBER_MAX)
names = {
    "session": st.builds(ConversationName, user=ids, agent=ids, session=ids),
    "persona": st.builds(ConversationName, user=ids, agent=ids),
    "channel": st.builds(ConversationName, source=ids, number=numbers),
}
spelled = st.sampled_from(SPELLINGS).flatmap(lambda spelling: st.tuples(st.just(spelling), names[spelling]))
texts = st.text(":%3A25x01é", max_size=30) | st.text(max_size=60)


def test_the_seeds_session_ids_mean_what_they_say() -> None:
    """S2-5, S2-40."""
    assert parse("user1:agent1:123", "session") == ConversationName(user="user1", agent="agent1", session="123")
    assert parse("user2:agent1:789", "session").user == "user2"
    assert render(ConversationName(user="user1", agent="agent2", session="456"), "session") == "user1:agent2:456"


def test_a_user_with_a_persona_is_spelled_too() -> None:
    """S3-26."""
    assert parse("ana:coach", "persona") == ConversationName(user="ana", agent="coach")


def test_a_source_and_a_number_are_a_channel() -> None:
    """S4-18, S4-36."""
    assert channel_name("discord", 42) == "discord:42"
    assert split_channel("discord:42") == ("discord", 42)
    assert channel_name("matrix:home", 7) == "matrix%3Ahome:7"
    assert split_channel("matrix%3Ahome:7") == ("matrix:home", 7)
    assert parse("discord:42", "channel").channel == "discord:42"
    assert ConversationName(user="ana").channel is None


@given(spelled)
@example(("session", ConversationName(user="a:b", agent="100%", session="%3A")))
def test_reading_what_was_written_gives_the_same_name(case: tuple) -> None:
    spelling, name = case
    assert parse(render(name, spelling), spelling) == name


@given(st.sampled_from(SPELLINGS), texts)
@example("session", "a%3Ab:c%25:d")
@example("session", "%253A:b:c")
def test_writing_what_was_read_gives_the_same_text(spelling: str, text: str) -> None:
    try:
        name = parse(text, spelling)
    except InvalidInput:
        return
    assert render(name, spelling) == text


@given(spelled, spelled)
def test_different_names_are_spelled_differently(one: tuple, other: tuple) -> None:
    if one[0] == other[0] and one[1] != other[1]:
        assert render(one[1], one[0]) != render(other[1], other[0])


@given(st.one_of(ids, texts))
def test_only_what_channel_name_makes_is_split(channel: str) -> None:
    halves = split_channel(channel)
    assert halves is None or channel_name(*halves) == channel


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("", "session"),
        ("user1", "session"),
        ("user1:agent1", "session"),
        ("user1::123", "session"),
        ("a:b:c:123", "session"),
        ("user1:agent1:", "session"),
        ("100%:agent1:123", "session"),
        ("a%3ab:c:1", "session"),
        ("a%41:c:1", "session"),
        ("a:b:c", "persona"),
        ("discord:x", "channel"),
        ("discord:042", "channel"),
        ("discord:-1", "channel"),
        ("discord:٤٢", "channel"),
        (f"discord:{NUMBER_MAX + 1}", "channel"),
        ("discord", "channel"),
        ("a\0:b:c", "session"),
    ],
)
def test_what_is_no_such_spelling_is_refused(text: str, spelling: str) -> None:
    with pytest.raises(InvalidInput):
        parse(text, spelling)  # type: ignore[arg-type]


def test_a_refusal_names_the_value_cut_short_and_the_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"'a:b:c:d' has 4 parts, not 3; spell it like `user1:agent1:123`.*`%3A`"):
        parse("a:b:c:d", "session")
    with pytest.raises(InvalidInput) as refused:
        parse("x" * 10_000, "session")
    assert len(str(refused.value)) < 300


def test_a_name_is_spelled_only_where_nothing_is_lost() -> None:
    with pytest.raises(InvalidInput, match="agent, session, user cannot be spelled like `user1:coach`"):
        render(ConversationName(user="a", agent="b", session="c"), "persona")
    with pytest.raises(InvalidInput, match="parts none"):
        render(ConversationName(), "channel")
    with pytest.raises(InvalidInput, match="`spelling` = 'json' is unknown"):
        parse("a:b", "json")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [-1, NUMBER_MAX + 1, True, "42", 4.2])
def test_a_channel_number_is_64_bits_without_a_sign(number: object) -> None:
    with pytest.raises(InvalidInput, match="`number`"):
        channel_name("discord", number)  # type: ignore[arg-type]


def test_parts_are_ids_and_bounded() -> None:
    with pytest.raises(InvalidInput, match="`user` is empty"):
        ConversationName(user="")
    with pytest.raises(InvalidInput, match="`agent` is 401 bytes"):
        parse(f"a:{'x' * 401}", "persona")
    with pytest.raises(InvalidInput, match="`channel` is 403 bytes"):
        channel_name("x" * 400, 12)
