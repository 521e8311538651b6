"""`append_many` takes lists as the clients of OpenAI and Anthropic have them, on every face."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace as Obj
from typing import Any

import pytest

import perdure
from perdure import Conflict, InvalidInput, Memory, NewMessage
from perdure.testing import StoppedClock, chat_problems

PNG = base64.b64encode(b"\x89PNG" + b"\0" * 60).decode()


@pytest.fixture
def ana() -> Iterator[Memory]:
    with perdure.open("memory:", clock=StoppedClock(datetime(2026, 1, 5, tzinfo=UTC))) as engine:
        yield engine.memory("ana")


def told(ana: Memory) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in ana.messages(100)]


def test_a_list_for_openai_is_logged_as_it_is(ana: Memory) -> None:
    called = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Lisbon"}'}}
    held = ana.append_many(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Weather?", "name": "Ana"},
            {"role": "assistant", "content": None, "tool_calls": [called], "refusal": None},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "Rain"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "It rains."}]},
        ]
    )
    assert told(ana) == [
        ("system", "Be brief."),
        ("user", "Weather?"),
        ("assistant", ""),
        ("tool", "Rain"),
        ("assistant", "It rains."),
    ]
    assert held[0].metadata == {"role": "developer"}
    assert held[1].metadata == {"name": "Ana"}
    assert held[2].tool_calls[0] == perdure.ToolCall(held[3].tool_call_id or "", "get_weather", {"city": "Lisbon"})  # type: ignore[arg-type]
    assert chat_problems(ana.context("And tomorrow?").as_messages()) == []


def test_a_list_for_anthropic_is_logged_with_its_results_as_messages_of_their_own(ana: Memory) -> None:
    held = ana.append_many(
        [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Lisbon"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "down", "is_error": True},
                    {"type": "text", "text": "Try again."},
                ],
                "id": "m7",
            },
        ]
    )
    assert told(ana) == [("user", "Weather?"), ("assistant", "Let me look."), ("tool", "down"), ("user", "Try again.")]
    assert (held[2].tool_call_id, held[2].failed) == ("t1", True)
    assert [held[2].id, held[3].id] == ["m7", "m7-2"]
    assert held[1].tool_calls[0].arguments == {"city": "Lisbon"}


def test_objects_of_the_clients_are_read_by_their_fields(ana: Memory) -> None:
    @dataclass
    class Function:
        name: str
        arguments: str

    call = Obj(id="c1", type="function", function=Function("look", "not json"))
    answer = Obj(
        role="assistant", content=[Obj(type="text", text="Hi."), Obj(type="tool_use", id="t1", name="f", input={})], id="msg_1"
    )
    result = Obj(
        role="user", content=[Obj(type="tool_result", tool_use_id="t1", content=[Obj(type="text", text="done")], is_error=None)]
    )
    held = ana.append_many([Obj(role="assistant", content=None, tool_calls=[call]), answer, result])
    assert held[0].tool_calls[0].arguments == "not json"
    assert (held[1].id, held[1].content, held[1].tool_calls[0].name) == ("msg_1", "Hi.", "f")
    assert (held[2].role, held[2].content, held[2].tool_call_id) == ("tool", "done", "t1")


def test_items_of_the_responses_api_are_calls_and_results(ana: Memory) -> None:
    held = ana.append_many(
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
        ]
    )
    assert [message.role for message in held] == ["user", "assistant", "tool"]
    assert held[2].tool_call_id == "c1"


def test_pictures_and_files_are_kept_as_references_with_type_and_size(ana: Memory) -> None:
    [held] = ana.append_many(
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                    {"type": "file", "file": {"filename": "report.pdf", "file_id": "file-1"}},
                    {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
                    {"type": "hologram"},
                ],
            }
        ]
    )
    kept: Any = held.metadata["attachments"]
    assert kept[0] == {"kind": "image", "type": "image/png", "bytes": 64, "sha256": kept[1]["sha256"]}
    assert kept[2:4] == [
        {"kind": "image", "url": "https://example.org/a.png"},
        {"kind": "file", "name": "report.pdf", "file_id": "file-1"},
    ]
    assert (kept[4]["kind"], kept[4]["type"], kept[5]) == ("audio", "wav", {"kind": "hologram"})
    assert held.content.startswith("What is this?\n\n[image: image/png, 64 bytes]")
    assert "[file: report.pdf, file-1]" in held.content
    assert PNG not in json.dumps(held.metadata) + held.content


def test_a_result_without_its_call_is_kept_and_pairs_with_nothing(ana: Memory) -> None:
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "42", "id": "r1"}
    [held] = ana.append_many([orphan])
    assert (held.tool_call_id, held.metadata) == (None, {"answers": "gone"})
    assert ana.append_many([orphan])[0].repeated
    with pytest.raises(Conflict):
        ana.append_many([{**orphan, "content": "43"}])
    assert "tool: 42" in ana.context("Well?").as_messages()[-1]["content"]
    with pytest.raises(InvalidInput, match="answers no call"):
        ana.append_many([NewMessage("tool", "42", tool_call_id="gone")])


def test_dicts_may_have_all_that_a_message_of_perdure_has(ana: Memory) -> None:
    call = {"id": "c1", "name": "f", "arguments": "as it is"}
    held = ana.append_many(
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [call],
                "id": "m1",
                "at": "2026-01-04T09:00:00Z",
                "session": "s",
                "tokens": 9,
            },
            {"role": "tool", "content": "x", "tool_call_id": "c1", "failed": True, "session": "s", "metadata": {"a": 1}},
            NewMessage("user", "Hello", session="s"),
        ]
    )
    assert (held[0].id, held[0].at.day, held[0].session, held[0].tokens) == ("m1", 4, "s", 9)
    assert held[0].tool_calls[0].arguments == "as it is"
    assert (held[1].failed, held[1].metadata) == (True, {"a": 1})


def test_calls_without_ids_get_one(ana: Memory) -> None:
    [held] = ana.append_many(
        [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]
    )
    assert held.tool_calls[0].id


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (7, "message 2 is a `int`; pass dicts"),
        ("hello", "message 2 is a `str`"),
        ({"content": "x"}, "message 2 has no `role`"),
        ({"role": "user"}, "message 2 has no `content`"),
        ({"role": "user", "content": 7}, "`content` of message 2 is a `int`"),
        ({"role": "user", "content": [7]}, "part of `content` of message 2 has no `type`"),
        ({"role": "king", "content": "x"}, "`role` = 'king' is unknown"),
        ({"role": "assistant", "content": "", "tool_calls": "f"}, "`tool_calls` of message 2"),
        ({"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]}, "a call of message 2 has no `name`"),
        ({"role": "user", "content": "x", "at": "noon"}, "`at` of message 2"),
        ({"role": "user", "content": "x", "metadata": 3}, "`metadata` of message 2"),
        ({"role": "tool", "content": "x", "tool_call_id": 3}, "pass its id as a text"),
        ({"role": "user", "content": "x", "failed": True}, "only `tool` messages can fail"),
    ],
)
def test_what_is_no_message_is_named_and_nothing_is_logged(ana: Memory, wrong: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ana.append_many([{"role": "user", "content": "Hello"}, wrong])
    assert words in str(caught.value)
    assert ana.messages() == []


def test_a_turn_takes_the_same_lists(ana: Memory) -> None:
    with ana.turn() as turn:
        assert turn.append_many([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])[0].content == "Hi"
