"""The edge of the wire: raw bytes become one JSON-RPC message, or a refusal that names every id that waits for an answer.

The SDK drops what it cannot read, and the client would wait for ever. So nothing reaches it that it cannot read.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from perdure.domain.values import dataclass

DEPTH_MAX = 100
"""Below what the SDK's own parser takes, and above what any value in the store may have."""
ID_CHARS_MAX = 1_000

_TOKENS = re.compile(r'"(?:[^"\\]|\\[\s\S])*+(?:"|\Z)|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_ID_AT_THE_END = re.compile(r'"id"\s*:\s*(-?\d{1,15}|"[^"\\]{0,200}")\s*\}\s*$')

Id = int | str | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message goes no further, and the ids to answer; `(None,)` if it has none that can be made out."""

    code: int
    message: str
    ids: tuple[Id, ...] = (None,)

    def answers(self) -> list[JSONRPCError]:
        error = ErrorData(code=self.code, message=self.message)
        return [JSONRPCError(jsonrpc="2.0", id=one, error=error) for one in self.ids]


def examine(raw: bytes) -> JSONRPCMessage | Refusal:
    """The message that `raw` is, or why it is none."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        words = f"the message is not UTF-8 (byte {error.start}); encode it as UTF-8"
        return Refusal(PARSE_ERROR, words, (find_id(raw.decode(errors="replace")),))
    try:
        decoded = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return Refusal(PARSE_ERROR, _unreadable(error), (find_id(text),))
    if isinstance(decoded, list):
        ids = tuple(one["id"] for one in decoded if isinstance(one, dict) and _is_id(one.get("id")))
        return Refusal(INVALID_REQUEST, "several messages came in one; send them one by one", ids or (None,))
    if not isinstance(decoded, dict):
        return Refusal(INVALID_REQUEST, "a message must be a JSON object; send one request or notification")
    return _examined(decoded, text)


def too_long(head: bytes, tail: bytes, bytes_max: int) -> Refusal:
    """The refusal of a message that was read only in part."""
    words = f"the message is longer than {bytes_max} bytes; send less at once"
    found = find_id(head.decode(errors="replace"))
    if found is None and (match := _ID_AT_THE_END.search(tail.decode(errors="replace"))) is not None:
        found = json.loads(match[1])
    return Refusal(INVALID_REQUEST, words, (found,))


def _examined(decoded: dict[str, Any], text: str) -> JSONRPCMessage | Refusal:
    named = decoded.get("id")
    ids: tuple[Id, ...] = (named if _is_id(named) else None,)
    if "id" in decoded and ids == (None,):
        return Refusal(INVALID_REQUEST, f"an id must be a text or a whole number of at most {ID_CHARS_MAX} characters")
    if _depth(text) > DEPTH_MAX:
        return Refusal(INVALID_REQUEST, f"the message is nested deeper than {DEPTH_MAX} levels; flatten it", ids)
    if "\\u" in text and not _is_text(decoded):
        words = "the message contains a lone surrogate, which is not Unicode text; send the whole character"
        return Refusal(INVALID_PARAMS, words, ids if _is_text(ids[0]) else (None,))
    if not isinstance(decoded.get("params", {}), dict | None):
        return Refusal(INVALID_PARAMS, "`params` must be a JSON object", ids)
    try:
        return jsonrpc_message_adapter.validate_python(decoded, by_name=False)
    except ValidationError:
        words = 'this is no JSON-RPC 2.0 message; it needs `"jsonrpc": "2.0"` and a `method` that is a text'
        return Refusal(INVALID_REQUEST, words, ids)


def find_id(text: str) -> Id:
    """The id of a message that cannot be read as a whole: the value of `id` in the outermost object, if it comes to that."""
    depth, before = 0, ("", "")
    for match in _TOKENS.finditer(text):
        piece = match[0]
        if depth == 1 and before == ('"id"', ":"):
            return _as_id(piece)
        depth += (piece in "{[") - (piece in "}]")
        before = (before[1], piece)
    return None


def _as_id(piece: str) -> Id:
    try:
        value = json.loads(piece)
    except ValueError:
        return None
    return value if _is_id(value) and _is_text(value) else None


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= ID_CHARS_MAX
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 63


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _depth(text: str) -> int:
    """How deep brackets are nested, those inside of strings left out."""
    if text.count("{") + text.count("[") <= DEPTH_MAX:
        return 0  # not worth a look
    depth = deepest = 0
    for match in _TOKENS.finditer(text):
        piece = match[0]
        if piece in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif piece in "}]":
            depth -= 1
    return deepest


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _unreadable(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "the message is nested too deep to be read; flatten it"
    if isinstance(error, json.JSONDecodeError):
        return f"the message is no JSON at character {error.pos} ({error.msg}); send one JSON object"
    return f"the message is no JSON ({str(error)[:80]}); send one JSON object"
