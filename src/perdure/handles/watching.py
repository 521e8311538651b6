"""Handles whose every call is in the access log.

A watched handle is one of the same class, with each public call put around the plain one: what a call does inside is not logged
again, and what the caller's own code does meanwhile is, because that goes through handles of its own. Nothing of this exists
unless the log is on.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from perdure.domain.accesses import Action
from perdure.domain.scope import Address, Scope, shared_owner
from perdure.handles.agents import AgentHandle
from perdure.handles.oversight import Ran
from perdure.handles.series import SeriesHandle
from perdure.handles.state import Found
from perdure.services.accessing import AccessLog
from perdure.services.touching import Mention

H = TypeVar("H")
T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Call:
    """What a public call is for."""

    action: Action
    about: tuple[str, str] | None = None
    """Its first argument names a record that is there if the call succeeds, and that the answer does not name: the kind, and
    what the argument is called."""
    first: bool = False
    """It gives data to somewhere else than its answer, or may put other data in the place of all there is: by the time that it
    has ended, nothing of it can be withheld, so it is in the log before it begins. What erases is so in any case."""


READ, CHANGE, ERASE, ADMIN = Call("read"), Call("change"), Call("erase"), Call("admin")
GIVES, TAKES, CLEANS = Call("read", first=True), Call("change", first=True), Call("admin", first=True)
_KEYS = dict.fromkeys(("load", "find", "history"), READ) | dict.fromkeys(
    ("save", "delete", "restore"), Call("change", ("state", "key"))
)
CALLS: Mapping[str, Mapping[str, Call]] = {
    "Memory": {
        **dict.fromkeys(("list_series", "overview", "diff", "audit", "recall", "before", "decisions"), READ),
        **dict.fromkeys(("context", "prompt", "messages", "message", "sessions", "tally", "journal"), READ),
        "export": GIVES,
        **dict.fromkeys(("remember", "seed", "extract", "curate", "after", "accept"), CHANGE),
        **dict.fromkeys(("import_", "run"), TAKES),
        **dict.fromkeys(("append", "append_many"), CHANGE),
        "undo": Call("change", ("operation", "operation")),
        "forget": ERASE,
        **dict.fromkeys(("reindex", "usage", "jobs", "retry_jobs", "accesses"), ADMIN),
    },
    "State": {**_KEYS, **dict.fromkeys(("keys", "list", "search"), READ), "clear": CHANGE},
    "SeriesHandle": {
        **dict.fromkeys(("about", "query", "gaps", "windows", "history", "count", "first", "last", "per", "group"), READ),
        **dict.fromkeys(("distinct", "entries", "export", "rows", "to_pandas", "to_polars", "to_arrow"), READ),
        **dict.fromkeys(("configure", "merge"), CHANGE),
        "fetch": TAKES,
        **dict.fromkeys(("remove", "cleanup"), ERASE),
    },
    "Conversation": {
        **dict.fromkeys(("list_sessions", "session", "search", "digests", "digest", "agent_state"), READ),
        "expand": Call("read", ("", "digest")),
        **dict.fromkeys(("close", "resume", "compact", "fold", "clear", "replace", "undo", "configure"), CHANGE),
        "delete": Call("erase", ("session", "session")),
    },
    "Turn": dict.fromkeys(("append", "append_many"), CHANGE),
    "Memories": {
        **dict.fromkeys(("list", "get", "history", "changes", "foundation", "rejections"), READ),
        **dict.fromkeys(("pin", "unpin", "archive", "restore", "edit"), CHANGE),
    },
    "EntityHandle": {
        **dict.fromkeys(("list", "get", "links", "suggestions"), READ),
        **dict.fromkeys(("alias", "merge", "dismiss"), CHANGE),
    },
    "TodoHandle": {"list": READ, **dict.fromkeys(("add", "complete", "skip", "reopen"), CHANGE)},
    "TaskHandle": {"list": READ, **dict.fromkeys(("start", "update"), CHANGE)},
    "InstructionHandle": {"list": READ, **dict.fromkeys(("add", "withdraw"), CHANGE)},
    "LessonHandle": {
        **dict.fromkeys(("list", "text"), READ),
        **dict.fromkeys(("add", "remove", "archive", "restore", "pin", "unpin", "take_from", "edit"), CHANGE),
    },
    "TranscriptHandle": {**dict.fromkeys(("list", "read"), READ), "archive": CHANGE, "prune": ERASE},
    "AgentHandle": {
        **dict.fromkeys(("get", "list", "channels"), READ),
        **dict.fromkeys(("save", "remove", "map_channel", "unmap_channel"), CHANGE),
    },
    "ApiKeyHandle": dict.fromkeys(("create", "list", "revoke"), ADMIN),
    "Engine": {
        "users": READ,
        **dict.fromkeys(("export", "backup"), GIVES),
        "import_": TAKES,
        "purge": CLEANS,
        **dict.fromkeys(("reindex", "accesses"), ADMIN),
    },
}
"""Every call that is logged, by the class of its handle. One that is in none of these tables fails a test."""
OPENS = frozenset(
    (
        "Memory.state", "Memory.series", "Memory.conversation", "Memory.transcripts", "Memory.memories", "Memory.entities",
        "Memory.todos", "Memory.instructions", "Memory.lessons", "Memory.tasks", "Memory.turn", "AgentHandle.of",
        "Engine.memory", "Engine.agents", "Engine.api_keys",
    )
)  # fmt: skip
"""What gives another handle; that one is watched, too."""
PASSES: Mapping[str, str] = {
    "Memory.scope": "what the handle is bound to",
    "Memory.tools": "each tool calls the state or a series, which log it",
    "SeriesHandle.name": "what the handle is bound to",
    "SeriesHandle.tool": "what it gives calls `fetch`, which is logged",
    "AgentHandle.space": "what the handle is bound to",
    "ApiKeyHandle.recognise": "asked by the guard of a server for every request; that one is logged if it reaches anything",
    "ApiKeyHandle.find": "the same, for who is signed in",
    "ApiKeyHandle.any_made": "tells nothing of anybody",
    "ApiKeyHandle.in_use": "tells nothing of anybody",
    **dict.fromkeys(("Engine.limits", "Engine.space", "Engine.zone", "Engine.default_user"), "what the settings say"),
    **dict.fromkeys(
        ("Engine.health", "Engine.doctor", "Engine.verify", "Engine.files"), "counts and checks, and hands out none"
    ),
    **dict.fromkeys(("Engine.process", "Engine.worker"), "what jobs change is in the journal"),
    "Engine.close": "ends the engine",
}
"""Public names that are not logged, each with the reason."""
_PREFIX = {
    "Memory": "", "Engine": "", "State": "state.", "SeriesHandle": "series.", "Conversation": "conversation.", "Turn": "turn.",
    "Memories": "memories.", "EntityHandle": "entities.", "TodoHandle": "todos.", "TaskHandle": "tasks.",
    "InstructionHandle": "instructions.", "LessonHandle": "lessons.", "TranscriptHandle": "transcripts.",
    "AgentHandle": "agents.", "ApiKeyHandle": "api_keys.",
}  # fmt: skip


def watched(handle: H, log: AccessLog, scope: Scope) -> H:
    """The same handle, with every call of it in the log; the handle itself if the log is off."""
    if not log.on:
        return handle
    kind: Any = type(handle)
    made: H = object.__new__(_watched_kind(kind))
    for name in kind.__slots__:
        object.__setattr__(made, name, getattr(handle, name))
    vars(made)["_watched"] = _Watch(handle, log, scope)
    return made


@dataclass(frozen=True, slots=True)
class _Watch:
    plain: Any
    log: AccessLog
    scope: Scope


@cache
def _watched_kind(kind: type) -> type:
    """A class that logs the calls of `kind`; a call that no table knows cannot be made through it."""
    told: dict[str, object] = {"__doc__": kind.__doc__, "__qualname__": kind.__qualname__, "__module__": kind.__module__}
    for name in (name for name in dir(kind) if not name.startswith("_")):
        place = f"{kind.__name__}.{name}"
        if place in PASSES:
            continue
        member = getattr(kind, name)
        if place in OPENS:
            told[name] = _opened(member) if callable(member) else property(_opened(member.fget))
        else:
            call = CALLS[kind.__name__][name]
            told[name] = _logged(f"{_PREFIX[kind.__name__]}{name.rstrip('_')}", call, member)
    return type(kind.__name__, (kind,), told)


def _logged(name: str, call: Call, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Any, *args: Any, **named: Any) -> Any:
        watch: _Watch = vars(self)["_watched"]
        if name == "forget" and named.get("user"):
            return erased(watch, lambda: method(watch.plain, *args, **named))
        if name == "state.load":
            return _loaded(watch, call, method, args, named)
        if type(watch.plain) is SeriesHandle:
            return _of_series(watch, name, call, functools.partial(method, watch.plain, *args, **named))
        parts = _keys if name == "state.keys" else _parts
        work = functools.partial(method, watch.plain, *args, **named)

        def about(answer: Any) -> Sequence[object]:
            return (*_given(call, args, named, answer), *parts(answer))

        return watch.log.around(watch.scope, name, call.action, work, about, first=call.first)

    return run


def _loaded(watch: _Watch, call: Call, method: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """What `State.load` gives. The caller's own default is not taken for a value that was found."""
    missing, asked = object(), inspect.signature(method)

    def work() -> _Value:
        given = asked.bind(watch.plain, *args, **named).arguments
        value = method(**{**given, "default": missing})
        return _Value(given.get("default"), None) if value is missing else _Value(value, given["key"])

    def about(answer: _Value) -> Sequence[object]:
        return () if answer.key is None else (Mention("state", answer.key),)

    return watch.log.around(watch.scope, "state.load", call.action, work, about).given


@dataclass(frozen=True, slots=True)
class _Value:
    given: Any
    key: str | None
    """Under which it was found, if it was."""


def _of_series(watch: _Watch, name: str, call: Call, work: Callable[[], Any]) -> Any:
    """A handle of a series is made by any name; only a series that there is, or was until then, is named."""
    handle: SeriesHandle = watch.plain
    held: list[bool] = []

    def there() -> bool:
        return handle._do.series.find(handle._owner, handle.name) is not None

    def run() -> Any:
        if call.action == "erase":
            held.append(there())
        return work()

    def about(_answer: Any) -> Sequence[object]:
        return (Mention("series", handle.name),) if any(held) or there() else ()

    return watch.log.around(watch.scope, name, call.action, run, about, first=call.first)


def erased(watch: _Watch, work: Callable[[], Any]) -> Any:
    """Nothing is left of a user who is forgotten, so what did that is in the log of the space, and does not say of whom."""
    return watch.log.around(space_scope(watch.scope.owner.space, watch.scope.address), "forget", "erase", work)


def space_scope(space: str, address: Address | None = None) -> Scope:
    """Where a call is logged that concerns no single user."""
    return Scope(shared_owner(space), Address() if address is None else address)


class _Logging(Protocol):
    @property
    def space(self) -> str: ...
    @property
    def _access_log(self) -> AccessLog: ...


E = TypeVar("E", bound=_Logging)


def told(method: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """Have a call of an engine in the log of its space."""
    name = method.__name__
    call = CALLS["Engine"][name]

    @functools.wraps(method)
    def run(self: E, /, *args: P.args, **named: P.kwargs) -> T:
        log = self._access_log
        if not log.on:
            return method(self, *args, **named)
        work = functools.partial(method, self, *args, **named)
        return log.around(space_scope(self.space), name.rstrip("_"), call.action, work, first=call.first)

    return run


def _parts(answer: object) -> Iterator[object]:
    """What the answers of handles are made of, where these have a form of their own."""
    if isinstance(answer, Ran):
        yield from (answer.injection, *answer.kept)
    elif isinstance(answer, Found):
        yield from (Mention("state", key) for key in answer.matches)


def _keys(answer: Iterable[str]) -> Iterator[object]:
    return (Mention("state", key) for key in answer)


def _given(call: Call, args: tuple[Any, ...], named: Mapping[str, Any], answer: object) -> Iterator[object]:
    if call.about is not None and answer is not False:  # there was none
        kind, argument = call.about
        value = args[0] if args else named.get(argument)
        if isinstance(value, str | int):
            yield Mention(kind, str(value))
        else:
            yield value


def _opened(give: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(give)
    def run(self: Any, *args: Any, **named: Any) -> Any:
        watch: _Watch = vars(self)["_watched"]
        handle = give(watch.plain, *args, **named)
        if isinstance(handle, AbstractContextManager):
            return _held(handle, watch)
        scope = space_scope(handle.space) if isinstance(handle, AgentHandle) else watch.scope
        return watched(handle, watch.log, scope)

    return run


@contextmanager
def _held(opening: AbstractContextManager[Any], watch: _Watch) -> Iterator[Any]:
    with opening as handle:
        yield watched(handle, watch.log, watch.scope)
