"""The one form of a context document: nine fields, in order, an item a line. Reading is strict and says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import itemgetter
from typing import Any, NoReturn

from perdure.domain.conversation.documents import (
    NUMBER_MAX,
    ContextData,
    Environment,
    HistoryEntry,
    Task,
    TokenUsage,
    ToolStats,
)
from perdure.domain.conversation.messages import ROLES
from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.text.rules import Json, brief, check_json, check_no_secret
from perdure.domain.text.secrets import may_hold_secrets, without_secrets_in

DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
SESSION_ID_BYTES_MAX = 4_096

DOCUMENT_FIELDS = (
    "session_id",
    "system_state",
    "facts",
    "recent_history",
    "long_term_summary",
    "active_tasks",
    "tool_stats",
    "last_known_environment",
    "token_usage",
)
_ENTRY = tuple(one.name for one in fields(HistoryEntry))
_ENTRY_REQUIRED = frozenset(_ENTRY) - {"token_count"}
_ROLES = frozenset(ROLES)
_entry_values = itemgetter(*_ENTRY)
_TASK = tuple(one.name for one in fields(Task))
_TOOL_STATS = tuple(one.name for one in fields(ToolStats))
_ENVIRONMENT = tuple(one.name for one in fields(Environment))
_TOKEN_USAGE = tuple(one.name for one in fields(TokenUsage))

# Made once, and without `indent`: with it, Python 3.11 leaves its fast encoder.
_ESCAPED = [(b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t")]
_RARE = bytes(set(range(32)) - set(b"\n\r\t"))
_encode: Callable[[Json], str] = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def render_document(context: ContextData, *, bytes_max: int = DOCUMENT_BYTES_MAX) -> bytes:
    """The document in UTF-8. What does not fit the shape is `InvalidInput` naming the field."""
    plain = _plain(context)
    _check(plain)
    try:
        parts = [b'  "%b": %b' % (name.encode(), _block(name, value)) for name, value in plain.items()]
    except (UnicodeEncodeError, _NulError):
        _check_texts(plain)
        raise InvalidInput("a context document contains text that is not Unicode; remove it") from None
    raw = b"{\n" + b",\n".join(parts) + b"\n}\n"
    _check_size(len(raw), bytes_max)
    return raw


def read_document(raw: bytes | str, *, bytes_max: int = DOCUMENT_BYTES_MAX) -> ContextData:
    """The document in `raw`; `InvalidInput` says what is wrong and where, `LimitExceeded` if it is too large."""
    return _document(_decoded(raw, bytes_max), raw)


def read_foreign_document(raw: bytes, *, bytes_max: int = DOCUMENT_BYTES_MAX) -> tuple[ContextData, list[str]]:
    """The document that another program wrote, and the names of fields of its own, which are left out.

    The seed's program writes more of them in later versions, and `null` for what it has not looked at yet.
    """
    plain = _decoded(raw, bytes_max)
    if not isinstance(plain, dict):
        return _document(plain, raw), []
    more = [name for name in plain if name not in DOCUMENT_FIELDS]
    kept = {name: value for name, value in plain.items() if name in DOCUMENT_FIELDS}
    environment = kept.get("last_known_environment")
    if isinstance(environment, dict) and environment.get("system_snapshot", {}) is None:
        kept["last_known_environment"] = {**environment, "system_snapshot": {}}
    return _document(kept, raw), more


def _decoded(raw: bytes | str, bytes_max: int) -> Any:
    if not isinstance(raw, bytes | str):
        raise InvalidInput(f"a context document must be bytes or text, not `{type(raw).__name__}`; read the file first")
    if isinstance(raw, str):
        raw = raw.encode(errors="surrogatepass")
    _check_size(len(raw), bytes_max)
    try:
        return _decode(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"a context document is not UTF-8 at byte {error.start}; save it in UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"a context document is not JSON at {place} ({error.msg}); correct it there") from None
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else "a number in it cannot be read"
        raise InvalidInput(f"a context document is not JSON we can hold: {why}; correct it") from None


def _document(plain: Any, raw: bytes | str) -> ContextData:
    _check(plain)
    context = _built(plain)
    # NUL and lone surrogates come in by escapes only, since the text itself was UTF-8.
    if (b"\\" in raw if isinstance(raw, bytes) else "\\" in raw) and not _are_texts(context):
        _check_texts(plain)
    return context


def document_json(context: ContextData) -> dict[str, Json]:
    """The document as plain values, checked but for the characters of its texts."""
    plain = _plain(context)
    _check(plain)
    return plain


def render_without_secrets(context: ContextData, *, bytes_max: int = DOCUMENT_BYTES_MAX) -> bytes:
    """As `render_document`, with markers in the place of secrets, in `context` itself too: its owner holds what is stored."""
    raw = render_document(context, bytes_max=bytes_max)
    check_no_secret(context.session_id, "session_id")
    if not may_hold_secrets(raw.decode()):
        return raw
    plain = json.loads(raw)
    made = document_of({**without_secrets_in(plain), "session_id": context.session_id})
    for name in DOCUMENT_FIELDS:
        setattr(context, name, getattr(made, name))
    return render_document(context, bytes_max=bytes_max)


def document_of(plain: Any) -> ContextData:
    """The document that `document_json` made `plain` of."""
    _check(plain)
    return _built(plain)


def check_session_id(session_id: str) -> str:
    """`session_id` if it may name a document: any text, not empty, bounded. File names are made from it by encoding."""
    if not isinstance(session_id, str):
        raise InvalidInput(f"`session_id` must be text, not `{type(session_id).__name__}`; pass a `str`")
    if not session_id:
        raise InvalidInput("`session_id` is empty; give it at least one character")
    try:
        size = len(session_id.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"`session_id` contains a lone surrogate at {error.start}; remove it") from None
    if size > SESSION_ID_BYTES_MAX:
        raise InvalidInput(f"`session_id` is {size} bytes long, more than {SESSION_ID_BYTES_MAX}; shorten or hash it")
    return session_id


def entry_json(entry: HistoryEntry, what: str = "entry") -> dict[str, Json]:
    """`entry` as the document has it, checked."""
    plain = _attributes(entry, HistoryEntry, _ENTRY, what)
    _check_entry(plain, what)
    check_json(plain, what)
    return plain


def entry_of(plain: Mapping[str, Json], what: str = "entry") -> HistoryEntry:
    """The entry that `entry_json` made `plain` of."""
    _check_entry(plain, what)
    return HistoryEntry(plain["timestamp"], plain["role"], plain["content"], plain.get("token_count"))


def task_json(task: Task, what: str = "task") -> dict[str, Json]:
    """`task` as the document has it, checked."""
    plain = _attributes(task, Task, _TASK, what)
    _check_task(plain, what)
    check_json(plain, what)
    return plain


def check_context(context: ContextData) -> ContextData:
    """`context` if it is one, with the lists that one has."""
    if not isinstance(context, ContextData):
        raise InvalidInput(f"`context` must be a `ContextData`, not `{type(context).__name__}`; load or make one")
    for name in ("facts", "recent_history", "active_tasks", "archived"):
        _check_list(getattr(context, name), name)
    for index, fact in enumerate(context.facts):
        if type(fact) is not str:
            _check_text(fact, f"facts[{index}]")
    return context


def _plain(context: ContextData) -> dict[str, Json]:
    """The document as plain values. Lists and objects of another kind than ours are named here, the rest by `_check`."""
    check_context(context)
    for name in ("recent_history", "active_tasks"):
        _check_list(getattr(context, name), name)
    return {
        "session_id": context.session_id,
        "system_state": context.system_state,
        "facts": context.facts,
        "recent_history": [
            _attributes(entry, HistoryEntry, _ENTRY, f"recent_history[{index}]")
            for index, entry in enumerate(context.recent_history)
        ],
        "long_term_summary": context.long_term_summary,
        "active_tasks": [
            _attributes(task, Task, _TASK, f"active_tasks[{index}]") for index, task in enumerate(context.active_tasks)
        ],
        "tool_stats": _attributes(context.tool_stats, ToolStats, _TOOL_STATS, "tool_stats"),
        "last_known_environment": _attributes(
            context.last_known_environment, Environment, _ENVIRONMENT, "last_known_environment"
        ),
        "token_usage": _attributes(context.token_usage, TokenUsage, _TOKEN_USAGE, "token_usage"),
    }


def _built(plain: dict[str, Json]) -> ContextData:
    return ContextData(
        session_id=plain["session_id"],
        system_state=plain["system_state"],
        facts=plain["facts"],
        recent_history=[HistoryEntry(**one) for one in plain["recent_history"]],
        long_term_summary=plain["long_term_summary"],
        active_tasks=[Task(**one) for one in plain["active_tasks"]],
        tool_stats=ToolStats(**plain["tool_stats"]),
        last_known_environment=Environment(**plain["last_known_environment"]),
        token_usage=TokenUsage(**plain["token_usage"]),
    )


def _attributes(value: object, kind: type, names: tuple[str, ...], what: str) -> dict[str, Json]:
    if not isinstance(value, kind):
        raise InvalidInput(f"`{what}` must be a `{kind.__name__}`, not `{type(value).__name__}`; make one of its fields")
    return {name: getattr(value, name) for name in names}


def _block(name: str, value: Json) -> bytes:
    """Lists have a line for each item; everything else is one line."""
    if name == "long_term_summary":
        return _string(value)
    if not isinstance(value, list) or not value:
        # Only the id may have a NUL, which `_check_texts` lets pass.
        return _encode(value).encode()
    render = _RENDERERS.get(name, _line)
    return b"[\n" + b",\n".join([b"    " + render(item) for item in value]) + b"\n  ]"


def _line(value: Json) -> bytes:
    text = _encode(value)
    if "\\u0000" in text:
        raise _NulError
    return text.encode()


def _entry_line(entry: Mapping[str, Json]) -> bytes:
    tokens = entry["token_count"]
    return b'{"timestamp": %d, "role": "%b", "content": %b, "token_count": %b}' % (
        entry["timestamp"],
        entry["role"].encode(),
        _string(entry["content"]),
        b"null" if tokens is None else b"%d" % tokens,
    )


def _string(text: str) -> bytes:
    """JSON of a text, as `json` makes it. Most of a document is long texts, and this is twice as fast."""
    raw = text.encode()
    if len(raw.translate(None, _RARE)) != len(raw):
        return _line(text)
    for char, escaped in _ESCAPED:
        raw = raw.replace(char, escaped)
    return b'"%b"' % raw


_RENDERERS: dict[str, Callable[[Any], bytes]] = {"facts": _string, "recent_history": _entry_line}


def _check(plain: Any) -> None:
    _check_fields(plain, frozenset(DOCUMENT_FIELDS), frozenset(DOCUMENT_FIELDS), "document")
    check_session_id(plain["session_id"])
    _check_object(plain["system_state"], "system_state")
    _check_list(plain["facts"], "facts")
    for index, fact in enumerate(plain["facts"]):
        if type(fact) is not str:
            _check_text(fact, f"facts[{index}]")
    _check_list(plain["recent_history"], "recent_history")
    if not _are_entries(plain["recent_history"]):
        for index, entry in enumerate(plain["recent_history"]):
            _check_entry(entry, f"recent_history[{index}]")
    _check_text(plain["long_term_summary"], "long_term_summary")
    _check_list(plain["active_tasks"], "active_tasks")
    for index, task in enumerate(plain["active_tasks"]):
        _check_task(task, f"active_tasks[{index}]")
    _check_tool_stats(plain["tool_stats"])
    _check_environment(plain["last_known_environment"])
    _check_exactly(plain["token_usage"], _TOKEN_USAGE, "token_usage")
    for name, value in plain["token_usage"].items():
        _check_whole(value, f"token_usage.{name}")


def _are_entries(entries: list[Any]) -> bool:
    """The quick look, at all at once, for the many that are as they should be; `_check_entry` decides about the others."""
    if not entries:
        return True
    try:
        if {type(entry) for entry in entries} != {dict} or {len(entry) for entry in entries} != {len(_ENTRY)}:
            return False
        timestamps, roles, contents, stated = zip(*map(_entry_values, entries), strict=True)
        tokens = [count for count in stated if count is not None] or [0]
        return (
            set(map(type, (*timestamps, *tokens))) == {int}
            and max(*timestamps, *tokens) <= NUMBER_MAX
            and min(timestamps) >= -NUMBER_MAX
            and min(tokens) >= 0
            and set(roles) <= _ROLES
            and set(map(type, contents)) == {str}
        )
    except (KeyError, TypeError):
        return False


def _check_entry(entry: Any, what: str) -> None:
    _check_fields(entry, _ENTRY_REQUIRED, frozenset(_ENTRY), what)
    _check_instant(entry["timestamp"], f"{what}.timestamp")
    if not isinstance(entry["role"], str) or entry["role"] not in ROLES:
        raise InvalidInput(f"`{what}.role` = {brief(entry['role'])} is unknown; use one of {', '.join(ROLES)}")
    _check_text(entry["content"], f"{what}.content")
    if entry.get("token_count") is not None:
        _check_whole(entry["token_count"], f"{what}.token_count")


def _check_task(task: Any, what: str) -> None:
    _check_exactly(task, _TASK, what)
    for name in ("id", "description", "status"):
        _check_text(task[name], f"{what}.{name}")
    progress = task["progress"]
    is_number = isinstance(progress, int | float) and not isinstance(progress, bool)
    if not is_number or not 0 <= progress <= 1:  # which what is not finite is not
        raise InvalidInput(f"`{what}.progress` = {brief(progress)} must be a number from 0 to 1")
    _check_instant(task["created_at"], f"{what}.created_at")
    _check_instant(task["updated_at"], f"{what}.updated_at")


def _check_tool_stats(stats: Any) -> None:
    _check_exactly(stats, _TOOL_STATS, "tool_stats")
    _check_object(stats["by_tool"], "tool_stats.by_tool")
    _check_whole(stats["total_calls"], "tool_stats.total_calls")
    _check_whole(stats["failures"], "tool_stats.failures")
    for tool, calls in stats["by_tool"].items():
        _check_whole(calls, f"tool_stats.by_tool[{brief(tool)}]")


def _check_environment(environment: Any) -> None:
    _check_exactly(environment, _ENVIRONMENT, "last_known_environment")
    _check_text(environment["workspace"], "last_known_environment.workspace")
    _check_instant(environment["last_update"], "last_known_environment.last_update")
    _check_object(environment["system_snapshot"], "last_known_environment.system_snapshot")


def _check_exactly(value: Any, names: tuple[str, ...], what: str) -> None:
    _check_fields(value, frozenset(names), frozenset(names), what)


def _check_fields(value: Any, required: frozenset[str], allowed: frozenset[str], what: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"`{what}` must be an object, not `{type(value).__name__}`; give it {', '.join(sorted(allowed))}")
    if missing := required - value.keys():
        raise InvalidInput(f"`{what}` lacks {', '.join(f'`{name}`' for name in sorted(missing))}; add it")
    if unknown := value.keys() - allowed:
        named = ", ".join(f"`{name!s:.40}`" for name in sorted(unknown, key=str)[:3])
        raise InvalidInput(f"`{what}` has {named}, which the form does not know; remove it, or keep it in `system_state`")


def _check_object(value: Any, what: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"`{what}` must be an object, not `{type(value).__name__}`; use {{}} if there is nothing")
    check_json(value, f"`{what}`")


def _check_list(value: Any, what: str) -> None:
    if not isinstance(value, list):
        raise InvalidInput(f"`{what}` must be a list, not `{type(value).__name__}`; use [] if there is nothing")


def _check_text(value: Any, what: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"`{what}` must be text, not `{type(value).__name__}`; use a string")


def _check_whole(value: Any, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= NUMBER_MAX:
        raise InvalidInput(f"`{what}` = {brief(value)} must be a whole number from 0 to {NUMBER_MAX}")


def _check_instant(value: Any, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > NUMBER_MAX:
        raise InvalidInput(f"`{what}` = {brief(value)} must be whole seconds since 1970, such as int(time.time())")


def _are_texts(context: ContextData) -> bool:
    """The quick look: no NUL and no lone surrogate in the texts that `_check` does not look into, all read as one."""
    tasks = [text for task in context.active_tasks for text in (task.id, task.description, task.status)]
    said = [entry.content for entry in context.recent_history]
    whole = "".join([*said, *context.facts, *tasks, context.long_term_summary, context.last_known_environment.workspace])
    if "\0" in whole:
        return False
    try:
        return whole.isascii() or bool(whole.encode())
    except UnicodeEncodeError:
        return False


def _check_texts(plain: Mapping[str, Json]) -> None:
    """No NUL and no lone surrogate anywhere; the session id may have a NUL, which its file's name encodes."""
    check_json({name: value for name, value in plain.items() if name != "session_id"}, "document")


def check_bytes_max(bytes_max: int) -> int:
    """`bytes_max` if a document can have so many."""
    if isinstance(bytes_max, bool) or not isinstance(bytes_max, int) or not 1 <= bytes_max <= NUMBER_MAX:
        raise InvalidInput(f"`document_bytes_max` = {brief(bytes_max)} must be a whole number of at least 1")
    return bytes_max


def _check_size(size: int, bytes_max: int) -> None:
    check_bytes_max(bytes_max)
    if size > bytes_max:
        raise LimitExceeded(
            f"a context document has {size} bytes, more than `document_bytes_max` = {bytes_max}; compact it or raise the limit"
        )


class _NulError(Exception):
    pass


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
