"""A strict checker of lists of chat messages: what it accepts, the templates of Gemma, Mistral, Qwen and Llama render."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ROLES = ("system", "user", "assistant", "tool")
CALL_ID = re.compile(r"[A-Za-z0-9]{9}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOOL_RESPONSE = ("<tool_response>", "</tool_response>")
"""What some templates take a user's turn for that has nothing else."""


def chat_problems(messages: Sequence[Mapping[str, Any]], *, system: bool = True, tools: bool = True) -> list[str]:
    """What strict chat templates would refuse in a list in OpenAI's form.

    Pass `system=False` for models without a system role, such as the first Gemmas, and `tools=False` for those without tools.
    """
    return list(_problems(messages, system=system, tools=tools))


def _problems(messages: Sequence[Mapping[str, Any]], *, system: bool, tools: bool) -> Iterator[str]:
    if not messages:
        yield "the list is empty"
        return
    before = "start"
    for place, message in enumerate(messages):
        where = f"message {place}"
        kind = _kind(message)
        if kind is None:
            yield f"{where} has the role {message.get('role')!r:.40}; use one of {', '.join(ROLES)}"
            return
        yield from (f"{where} {wrong}" for wrong in _content(kind, message))
        if kind == "system" and (place or not system):
            yield f"{where} is a system message{' behind the first' if place else ', and the model knows none'}"
        elif kind in ("call", "tool") and not tools:
            yield f"{where} is about a tool, and the model knows none"
        elif before not in MAY_FOLLOW[kind]:
            yield f"{where}, {NAMED[kind]}, follows {NAMED[before]}"
        if kind == "tool" and before == "call" and message.get("tool_call_id") not in _ids(messages[place - 1]["tool_calls"]):
            yield f"{where} answers {message.get('tool_call_id')!r:.40}, not the call before it"
        before = kind
    if before not in ("user", "tool"):
        yield f"the list ends with {NAMED[before]}, so there is nothing to answer"


MAY_FOLLOW = {
    "system": ("start",),
    "user": ("start", "system", "assistant"),
    "assistant": ("user", "tool"),
    "call": ("user", "tool"),
    "tool": ("call",),
}
NAMED = {
    "start": "the start of the list",
    "system": "the system message",
    "user": "a turn of the user",
    "assistant": "an answer",
    "call": "a tool call",
    "tool": "a tool result",
}


def _kind(message: Mapping[str, Any]) -> str | None:
    role = message.get("role")
    if role not in ROLES:
        return None
    return "call" if role == "assistant" and "tool_calls" in message else str(role)


def _content(kind: str, message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if not isinstance(content, str):
        yield f"has a `{type(content).__name__}` for its content; write a text"
    elif kind in ("system", "user", "assistant") and not content.strip():
        yield "is empty"
    elif kind == "user" and content.strip().startswith(TOOL_RESPONSE[0]) and content.strip().endswith(TOOL_RESPONSE[1]):
        yield "looks like the result of a tool"
    if kind == "call":
        yield from _calls(message["tool_calls"])
    elif "tool_calls" in message:
        yield f"makes calls, and is {NAMED[kind]}"
    if kind == "tool" and not _is_call_id(message.get("tool_call_id")):
        yield f"has the call id {message.get('tool_call_id')!r:.40}; use nine letters and digits"


def _calls(calls: object) -> Iterator[str]:
    if not isinstance(calls, list) or len(calls) != 1 or not isinstance(calls[0], Mapping):
        yield "does not make exactly one call"
        return
    call = calls[0]
    function = call.get("function")
    if not _is_call_id(call.get("id")):
        yield f"makes a call with the id {call.get('id')!r:.40}; use nine letters and digits"
    if call.get("type") != "function" or not isinstance(function, Mapping):
        yield "makes a call that is not of the type `function`"
        return
    if not isinstance(name := function.get("name"), str) or not NAME.fullmatch(name):
        yield f"calls {name!r:.80}; a name has up to 64 letters, digits, - and _"
    try:
        found = json.loads(function.get("arguments"))  # type: ignore[arg-type]  # whatever it is
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, dict):
        yield "makes a call whose arguments are no JSON object"


def _ids(calls: object) -> list[object]:
    return [call.get("id") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def _is_call_id(given: object) -> bool:
    return isinstance(given, str) and CALL_ID.fullmatch(given) is not None
