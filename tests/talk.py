"""Messages for tests of what reads conversations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st

from perdure.domain.conversation.messages import Message, Role, ToolCall
from perdure.domain.scope import MessageId, SessionId

START = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)

# Any text that a store accepts: no lone surrogates, no NUL.
any_text = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=400)
_telling = st.sampled_from(
    [
        "Never deploy on Fridays.",
        "Ticket OPS-4412 is late",
        "https://a.example/x?y=1",
        "/etc/app.conf",
        "1,200 EUR",
        "15.11.2026",
        "Is it open?",
        "I'm not sure, let me check.",
        "We decided to wait.",
        "👩‍👩‍👧",
        "e\u0301",
        "我们不能迟到。",
        "שלום, מה שלומך?",
        " ",
        "\n",
        "```\nx = 1\n```",
        '{"id": "a-1", "n": 12}',
        "…",
        "Also named: x",
        "[2026-01-01 user] hm",
        "ok",
        "- ",
        "1. ",
        "\u202e",
        "\r\n",
    ]
)
telling_text = st.lists(_telling | any_text, max_size=12).map("".join) | st.lists(_telling, max_size=12).map(" ".join)


def message(role: Role, content: str, *, seq: int = 1, days: int = 0, calls: tuple[ToolCall, ...] = ()) -> Message:
    at = START + timedelta(days=days, minutes=seq)
    return Message(MessageId(f"m{seq}"), SessionId("s"), 1, seq, role, content, at, 0, {}, calls)


def talk(*turns: tuple[Role, str]) -> tuple[Message, ...]:
    return tuple(message(role, content, seq=number) for number, (role, content) in enumerate(turns, 1))


roles: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "tool", "system"])
talks = st.lists(st.tuples(roles, telling_text), max_size=8).map(lambda turns: talk(*turns))
