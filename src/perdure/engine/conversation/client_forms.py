"""Messages as the clients of OpenAI and Anthropic have them: dicts or their objects, told by their fields alone.

Words, calls and results are taken over; pictures and files become a reference with type and size. What a model thought to
itself is left out.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from perdure.domain.conversation.messages import NewMessage, ToolCall
from perdure.domain.errors import InvalidInput
from perdure.domain.scope import ToolCallId
from perdure.domain.text.rules import Json, brief
from perdure.domain.values import dataclass, field

ROLES = {"developer": "system", "function": "tool", "model": "assistant"}
"""Roles that are called otherwise here."""
WORDS = ("text", "input_text", "output_text", "refusal", "summary_text")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
PLAIN = (str, bytes, int, float, bool, list, tuple, set, frozenset, type, type(None))
KINDS = {"image_url": "image", "input_image": "image", "input_audio": "audio", "document": "file", "input_file": "file"}
REFERENCE_CHARS_MAX = 500
"""An address or a name that is longer is left out of a reference."""


@dataclass(slots=True)
class ClientBody:
    """What a message says, makes and answers."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[NewMessage] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)


def client_messages(given: object, where: str, new_id: Callable[[], str]) -> list[NewMessage]:
    """A message of a client as messages of the log: results of tools are messages of their own. `where` names it in errors."""
    if isinstance(given, PLAIN):
        raise InvalidInput(
            f"{where} is a `{type(given).__name__}`; pass dicts with `role` and `content`, `perdure.NewMessage` values, or the "
            "messages of a client"
        )
    kind = _get(given, "type")
    if kind in THOUGHTS:
        return []
    if kind == "function_call":
        made = _call(given, where, new_id, read=True)
        return [NewMessage("assistant", "", tool_calls=[made], **_own(given, where))]
    if kind == "function_call_output":
        body = _body(_get(given, "output"), where, new_id)
        return [_result(_get(given, "call_id"), body, failed=False, where=where, own=_own(given, where))]
    return _by_role(given, where, new_id)


def _by_role(given: object, where: str, new_id: Callable[[], str]) -> list[NewMessage]:
    role = _get(given, "role")
    if role is None:
        raise InvalidInput(f"{where} has no `role`; each message needs a role and a content")
    made = [*_calls(_get(given, "tool_calls"), where), *_calls(_one(_get(given, "function_call")), where)]
    calls = [_call(one, where, new_id, read=not _is_own(one)) for one in made]
    content = _get(given, "content")
    if content is None and not calls and not _get(given, "refusal") and not _has(given, "content"):
        raise InvalidInput(f"{where} has no `content`; each message needs a role and a content")
    body = _body(content, where, new_id)
    calls += body.calls
    if isinstance(refused := _get(given, "refusal"), str) and refused:
        body.texts.append(refused)
    own = _own(given, where)
    named = ROLES.get(role, role) if type(role) is str else role
    if named != role and role != "model":
        own["metadata"] = {"role": role, **(own["metadata"] or {})}
    if named == "tool":
        failed = _get(given, "is_error") is True or _get(given, "status") == "error" or _get(given, "failed") or False
        told = [_result(_get(given, "tool_call_id"), body, failed=failed, where=where, own=own)]
    else:
        own["metadata"] = _with_attachments(own["metadata"], body)
        said = NewMessage(
            named,
            "\n\n".join(body.texts),
            tool_calls=calls,
            tool_call_id=_get(given, "tool_call_id"),
            failed=_get(given, "failed") or False,
            **own,
        )
        if named == "assistant":
            told = [said, *body.results]
        else:
            told = [*body.results, *([said] if said.content or said.tool_calls or not body.results else [])]
    return _numbered(told, own)


def _numbered(told: list[NewMessage], own: Mapping[str, Any]) -> list[NewMessage]:
    """Several messages that come of one share its time and session; their ids are made of its own."""
    if len(told) == 1 or own["id"] is None:
        return [_with(one, own, one.id if len(told) == 1 else None) for one in told]
    return [_with(one, own, own["id"] if not place else f"{own['id']}-{place + 1}") for place, one in enumerate(told)]


def _with(message: NewMessage, own: Mapping[str, Any], id_: str | None) -> NewMessage:
    return NewMessage(
        message.role,
        message.content,
        id=id_,
        at=own["at"],
        session=own["session"],
        tokens=message.tokens,
        metadata=message.metadata,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        failed=message.failed,
    )


def _own(given: object, where: str) -> dict[str, Any]:
    """What perdure's own messages have besides: taken if it is there."""
    at = _get(given, "at")
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            raise InvalidInput(f"`at` of {where} = {brief(at)} is no ISO 8601 time; write e.g. 2026-01-31T09:30:00Z") from None
    metadata = _get(given, "metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput(f"`metadata` of {where} is a `{type(metadata).__name__}`; pass a dict")
    more: dict[str, Json] = {}
    if isinstance(name := _get(given, "name"), str) and name:
        more["name"] = name
    if isinstance(usage := _get(given, "usage"), Mapping):
        more["usage"] = dict(usage)
    return {
        "id": _get(given, "id"),
        "at": at,
        "session": _get(given, "session"),
        "tokens": _get(given, "tokens"),
        "metadata": {**more, **metadata} if metadata else more or None,
    }


# -- what a message is made of


def _body(content: object, where: str, new_id: Callable[[], str]) -> ClientBody:
    """Its words, calls, results and attachments."""
    body = ClientBody()
    if content is None:
        return body
    if isinstance(content, str):
        body.texts.append(content)
        return body
    if not isinstance(content, list | tuple):
        raise InvalidInput(f"`content` of {where} is a `{type(content).__name__}`; pass a text, or a list of parts")
    for part in content:
        _take(part, body, where, new_id)
    return body


def _take(part: object, body: ClientBody, where: str, new_id: Callable[[], str]) -> None:
    kind = "text" if isinstance(part, str) else _get(part, "type")
    if not isinstance(kind, str):
        raise InvalidInput(f"a part of `content` of {where} has no `type`; pass texts, or parts such as a client has them")
    if isinstance(part, str):
        body.texts.append(part)
    elif kind in WORDS:
        text = _get(part, "text") if kind != "refusal" else _get(part, "refusal")
        if not isinstance(text, str):
            raise InvalidInput(f"a part of {where} has no `text`; give it one, or leave the part out")
        body.texts += [text] if text else []
    elif kind in CALLS:
        body.calls.append(_call(part, where, new_id, read=False))
    elif kind.endswith("tool_result"):
        inner = _body(_get(part, "content") if not _is_object(_get(part, "content")) else None, where, new_id)
        failed = _get(part, "is_error") is True
        body.results.append(_result(_get(part, "tool_use_id"), inner, failed=failed, where=where, own=None))
    elif kind not in THOUGHTS:
        reference = _reference(part, kind)
        body.attachments.append(reference)
        body.texts.append(_in_words(reference))


def _result(call: object, body: ClientBody, *, failed: bool, where: str, own: Mapping[str, Any] | None) -> NewMessage:
    if call is not None and not isinstance(call, str):
        raise InvalidInput(f"{where} answers a call by a `{type(call).__name__}`; pass its id as a text")
    rest = {} if own is None else dict(own)
    rest["metadata"] = _with_attachments(rest.get("metadata"), body)
    return NewMessage("tool", "\n\n".join(body.texts), tool_call_id=call or None, failed=failed, **rest)


def _with_attachments(metadata: Mapping[str, Json] | None, body: ClientBody) -> Mapping[str, Json] | None:
    return {**(metadata or {}), "attachments": body.attachments} if body.attachments else metadata


def _calls(given: object, where: str) -> list[object]:
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"`tool_calls` of {where} is a `{type(given).__name__}`; pass a list")
    return list(given)


def _one(given: object) -> list[object]:
    return [] if given is None else [given]


def _is_own(call: object) -> bool:
    """Whether it has perdure's form, in which arguments are what they are; clients write them as JSON in a text."""
    return _get(call, "function") is None and _get(call, "custom") is None and _get(call, "type") is None


def _call(given: object, where: str, new_id: Callable[[], str], *, read: bool) -> ToolCall:
    """A call in any of the forms. Some servers give no ids: then one is made."""
    if isinstance(given, ToolCall):
        return given
    if isinstance(given, PLAIN):
        raise InvalidInput(f"a call of {where} is a `{type(given).__name__}`; pass an object with `id`, `name` and `arguments`")
    inner = _get(given, "function") or _get(given, "custom") or given
    name = _get(inner, "name")
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"a call of {where} has no `name`; name the tool that it calls")
    arguments = next((value for key in ("arguments", "input") if (value := _get(inner, key)) is not None), None)
    if read and isinstance(arguments, str):
        with suppress(ValueError, RecursionError):  # what a model wrote that is no JSON is kept as it is
            arguments = json.loads(arguments) if arguments else {}
    made = _get(given, "call_id") or _get(given, "id") or new_id()
    return ToolCall(ToolCallId(made), name, arguments)


# -- pictures and files


def _reference(part: object, kind: str) -> dict[str, Json]:
    """What is known of something that is not text: its kind, type, size, and where it is or what it is called."""
    inner = next((found for key in (kind, "source", "file") if _is_object(found := _get(part, key))), part)
    places = [_get(inner, key) for key in ("url", "image_url", "file_url")] + [_get(part, kind)]
    url = next((one for one in places if isinstance(one, str)), None)
    data = next((one for key in ("data", "file_data") if isinstance(one := _get(inner, key), str | bytes)), None)
    media = next((one for key in ("media_type", "mime_type", "format") if isinstance(one := _get(inner, key), str)), None)
    if isinstance(from_url := data if isinstance(data, str) else url, str) and from_url.startswith("data:"):
        head, _, data = from_url.partition(",")
        media = head.removeprefix("data:").split(";")[0] or media
        url = None
    names = (_get(inner, "filename"), _get(part, "title"), _get(inner, "name"))
    told: dict[str, Json] = {
        "kind": KINDS.get(kind, kind[:40]),
        "type": media,
        "name": next((one for one in names if isinstance(one, str)), None),
        "url": url,
        "file_id": one if isinstance(one := _get(inner, "file_id"), str) else None,
    }
    if data is not None:
        told |= _measured(data)
    return {
        key: value
        for key, value in told.items()
        if value is not None and (not isinstance(value, str) or len(value) <= REFERENCE_CHARS_MAX)
    }


def _measured(data: str | bytes) -> dict[str, Json]:
    """Its size, and a sum by which the same thing is known again."""
    whole = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    if isinstance(data, str):
        with suppress(NotBase64, ValueError):  # else it is text
            whole = b64decode(data, validate=True)
    return {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}


def _in_words(reference: Mapping[str, Json]) -> str:
    told = [str(reference[key]) for key in ("name", "type") if key in reference]
    told += [f"{reference['bytes']} bytes"] if "bytes" in reference else []
    told += [str(reference[key]) for key in ("url", "file_id") if key in reference]
    return f"[{reference['kind']}{': ' if told else ''}{', '.join(told)}]"


# -- dicts and objects alike


def _is_object(value: object) -> bool:
    return value is not None and not isinstance(value, PLAIN)


def _has(given: object, name: str) -> bool:
    return name in given if isinstance(given, Mapping) else hasattr(given, name)


def _get(given: object, name: str) -> Any:
    if isinstance(given, Mapping):
        return given.get(name)
    return None if isinstance(given, PLAIN) else getattr(given, name, None)
