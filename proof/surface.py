"""Every public call, found by looking at the classes: what it takes, and plausible values for that.

A call that is added to a handle is found here without anybody naming it. Only what tells things of one kind apart (which id is
meant by `key`) is said by name.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import io
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import perdure
import perdure.documents
import perdure.types
from perdure.handles.chat import Chat
from perdure.handles.conversation import Turn
from perdure.handles.operation import Handle, PendingList, Unset
from perdure.handles.registry.toolset import HostTool
from proof.hostile import Hostile

VALUE_NAMES = frozenset({"perdure", "perdure.types", "perdure.documents"})
HANDLES = ("perdure.handles.", "perdure.aio")
VALUES = (perdure, perdure.types, perdure.documents)
"""Modules whose public classes are values that callers make."""
UNTRIED = frozenset({"Engine.close", "Engine.worker", "AsyncEngine.close", "AsyncEngine.worker", "ContextManager.close"})
"""Calls that would end the trial or run until they are stopped; they take no arguments."""
COSTLY = {
    **dict.fromkeys(
        ("backup", "restore", "export", "import_", "verify", "reindex", "doctor", "purge", "repair_clock", "process", "health"),
        1,
    ),
    **dict.fromkeys(("forget", "curate", "audit", "extract", "copy_contexts", "open", "compact", "turn"), 2),
    **dict.fromkeys(("recall", "before", "after", "context", "run", "say", "prompt", "overview", "seed", "accept"), 3),
}
"""How often a call is tried against others' 10: those that look at a whole store cost a thousand times as much."""
ENDING = (
    "forget",
    "remove",
    "delete",
    "clear",
    "revoke",
    "restore",
    "import_",
    "purge",
    "unmap_channel",
    "close",
    "withdraw",
    "skip",
)
NOW = datetime(2024, 5, 15, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Field:
    """One argument of a call."""

    name: str
    hint: Any
    required: bool
    positional: bool
    default: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Call:
    """One public call of one class, or a function."""

    of: str
    """The class in the words of the sync face; `perdure` and the like for functions."""
    name: str
    fields: tuple[Field, ...]
    reach: Callable[[Any], Callable[..., Any]] = field(compare=False)
    """From a world to what can be called."""
    signature: inspect.Signature | None = field(default=None, compare=False)
    open_ended: bool = False
    """It takes keywords that only its own code knows."""

    @property
    def full(self) -> str:
        return f"{self.of}.{self.name}"

    @property
    def weight(self) -> int:
        return COSTLY.get(self.name, 10)

    @property
    def ends(self) -> bool:
        return self.name in ENDING

    def binds(self, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Whether Python itself would let the call through."""
        if self.signature is not None:
            try:
                self.signature.bind(*args, **named)
            except TypeError:
                return False
        return self.open_ended or all(name in {one.name for one in self.fields} for name in named)


def _hints(call: Callable[..., Any]) -> dict[str, Any]:
    """Annotations as types; what only type checkers can resolve is anything."""
    space = {**vars(typing), **getattr(inspect.unwrap(call), "__globals__", {}), "Unpack": typing.Unpack}
    found = {}
    for name, hint in getattr(inspect.unwrap(call), "__annotations__", {}).items():
        try:
            found[name] = eval(hint, space) if isinstance(hint, str) else hint
        except (NameError, TypeError, AttributeError):
            found[name] = Any
    return found


def _fields(call: Callable[..., Any], *, bound: bool) -> tuple[tuple[Field, ...], bool]:
    hints, open_ended = _hints(call), False
    found: list[Field] = []
    for name, one in [*inspect.signature(call).parameters.items()][0 if bound else 1 :]:
        if one.kind is one.VAR_KEYWORD:
            inner = typing.get_args(hints.get(name))
            if inner and typing.is_typeddict(inner[0]):
                keys = typing.get_type_hints(inner[0])
                found += [Field(key, hint, False, False) for key, hint in keys.items()]
            else:
                open_ended = True
        elif one.kind is not one.VAR_POSITIONAL:
            found.append(Field(name, hints.get(name, Any), one.default is one.empty, one.kind is one.POSITIONAL_OR_KEYWORD))
    return tuple(found), open_ended


def _methods(kind: type, of: str, reach: Callable[[Any], Any]) -> Iterator[Call]:
    for name, member in inspect.getmembers(kind):
        if (name.startswith("_") and not _opens(kind, name)) or not callable(member) or f"{of}.{name}" in UNTRIED:
            continue
        fields, open_ended = _fields(member, bound=False)
        signature = inspect.signature(member)
        signature = signature.replace(parameters=[*signature.parameters.values()][1:])
        yield Call(of, name, fields, lambda world, name=name: getattr(reach(world), name), signature, open_ended)


def _opens(kind: type, name: str) -> bool:
    """Whether it is the call of a namespace, such as `ana.series("runs")`."""
    return name == "__call__" and kind.__module__.startswith(HANDLES)


def _is_handle(value: object) -> bool:
    return type(value).__module__.startswith(HANDLES) and not dataclasses.is_dataclass(value)


def handle_calls(world: World) -> list[Call]:
    """All calls of the handles that are reached from an engine."""
    roots: dict[str, tuple[type, Callable[[Any], Any]]] = {
        "Engine": (type(world.engine), lambda world: world.engine),
        "Memory": (type(world.memory), lambda world: world.memory),
        "SeriesHandle": (type(world.memory.series("kudos")), lambda world: world.memory.series("kudos")),
    }
    for holder in ("engine", "memory"):
        for path, value in _reached(getattr(world, holder), (holder,)):
            of = type(value).__name__.removeprefix("Async")
            roots[of] = (type(value), lambda world, path=path: functools.reduce(getattr, path, world))
    if not world.is_async:
        roots["Chat"] = (Chat, lambda world: world.chat)
    found = [call for of, (kind, reach) in roots.items() for call in _methods(kind, of, reach)]
    # A turn is held for one call at a time.
    found += [
        dataclasses.replace(call, reach=lambda world, name=call.name: world.in_a_turn(name))
        for call in _methods(world.turn_class, "Turn", lambda world: None)
    ]
    return sorted(found, key=lambda call: call.full)


def _reached(handle: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The handles that are properties of a handle, and theirs in turn, each with the way there."""
    for name, member in inspect.getmembers(type(handle)):
        if not name.startswith("_") and isinstance(member, property) and _is_handle(value := getattr(handle, name)):
            yield (*path, name), value
            yield from _reached(value, (*path, name))


def function_calls() -> list[Call]:
    """Public functions, the values that callers make, and context documents."""
    found = []
    for module in VALUES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                fields, open_ended = _fields(thing, bound=True)
                call = Call(
                    module.__name__, name, fields, lambda world, thing=thing: thing, inspect.signature(thing), open_ended
                )
                found.append(call)
            elif inspect.isclass(thing) and dataclasses.is_dataclass(thing) and hasattr(thing, "__post_init__"):
                # Those without are records: no code of ours looks at what is put into them.
                hints, stated = typing.get_type_hints(thing), inspect.signature(thing).parameters
                fields = tuple(
                    Field(one.name, hints[one.name], _is_required(one), True, _default(thing, stated[one.name]))
                    for one in dataclasses.fields(thing)
                    if one.init
                )
                found.append(Call(module.__name__, name, fields, lambda world, thing=thing: thing, inspect.signature(thing)))
    for name, kind in (("folder_contexts", "ContextManager"), ("stored_contexts", "StoredContextManager")):
        found += _methods(perdure.documents.ContextManager, kind, lambda world, name=name: getattr(world, name))
    compact = perdure.documents.ContextCompactor
    made, open_ended = _fields(compact.__init__, bound=False)
    found.append(Call("perdure.documents", "ContextCompactor", made, lambda world: compact, inspect.signature(compact), True))
    for name in ("compact", "plan"):
        call = getattr(compact(), name)
        fields, open_ended = _fields(call, bound=True)
        reach = lambda world, name=name: getattr(compact(), name)  # noqa: E731
        found.append(Call("ContextCompactor", name, fields, reach, inspect.signature(call), open_ended))
    unique = {call.full: call for call in found if call.full not in UNTRIED}
    return sorted(unique.values(), key=lambda call: call.full)


def _default(kind: type, one: inspect.Parameter) -> Any:
    """The default of a field, also if it is made anew each time."""
    if one.default is one.empty:
        return one.empty
    return getattr(kind(), one.name) if kind in (perdure.Settings, perdure.Limits, perdure.Layers) else one.default


def _is_required(one: dataclasses.Field[Any]) -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


class World:
    """An engine with a little of everything in it, and the ids of what is there. Subclassed by the faces."""

    is_async = False
    engine: Any
    memory: Any
    chat: Any = None
    turn_class: type = Turn

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.living: dict[str, list[Any]] = {}
        self.folder_contexts: Any = None
        self.stored_contexts: Any = None

    def in_a_turn(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            with self.memory.turn() as turn:
                return getattr(turn, name)(*args, **named)

        return call

    def note(self, name: str, *values: Any) -> None:
        """That things of that name are there."""
        self.living.setdefault(name, []).extend(values)


def filled(engine: perdure.Engine, world: World, *, rich: bool) -> None:
    """Put a little of everything into an engine, and note what is there."""
    ana = engine.memory("ana", agent="coach", channel="discord:42")
    call = perdure.ToolCall("call-1", "weather", {"place": "Seattle"})
    said = [
        ana.append("user", "I moved to Seattle last week. My sister Ann Smith works at Acme. Please always answer briefly."),
        ana.append("assistant", "Noted. I will look up the weather.", tool_calls=[call]),
        ana.append("tool", '{"rain": true}', tool_call_id="call-1"),
        ana.append("user", "Remind me to call John Doe tomorrow."),
        ana.append("assistant", "I will."),
    ]
    world.note("message", *(one.id for one in said))
    world.note("session", said[0].session)
    known = ana.remember("I live in Seattle", entities=["place:Seattle"], attribute="home", value="Seattle")
    other = ana.remember("John Doe works at Acme", "PEOPLE", entities=["person:John Doe", "org:Acme"])
    for name in ("Mukesh", "Makesh", "Ada Blum", "Zoe Quint"):
        ana.remember(f"{name} likes tea", "PEOPLE", entities=[f"person:{name}"], subject=f"person:{name}")
    world.note("memory", *(one.statement.memory for one in (known, other) if one.statement is not None))
    world.note("entity", "person:John Doe", "place:Seattle", "org:Acme", "person:Mukesh")
    for taste in ("opera", "jazz", "cilantro", "chess", "winter"):
        ana.remember(f"Likes {taste}")
        ana.as_agent().remember(f"Does not like {taste}")
    world.note("proposal", *(one.statement.id for one in ana.memories.proposals()))
    world.note("suggestion", *(one.id for one in ana.entities.suggestions()))
    world.note("operation", *(one.seq for one in ana.journal.list(5)))
    world.note("todo", ana.todos.add("call John", due_at=NOW).id, ana.todos.add("run", "habit", recurrence="0 7 * * 1").id)
    world.note("task", ana.todos.tasks.start("write a report").id)
    world.note("instruction", ana.instructions.add("Always answer in French").id)
    world.note("lesson", ana.lessons.add("Ask before deleting anything of the user").id)
    held = ana.conversation.documents.load("held")
    held.recent_history += [perdure.documents.HistoryEntry(1_700_000_000 + n, "user", f"hello {n}") for n in range(4)]
    ana.conversation.documents.save(held)
    world.note("document", held.session_id)
    world.note("state", "profile", "kudos_state")
    ana.state.save("profile", {"name": "Ana", "runs": [1, 2.5, None]})
    ana.state.save("kudos_state", 1)
    world.note("revision", 1)
    entries = [{"id": f"k{n}", "timestamp": (NOW - timedelta(hours=n)).isoformat(), "who": f"p{n % 3}"} for n in range(12)]
    ana.series("kudos").merge(entries, window=(NOW - timedelta(days=2), NOW))
    world.note("series", "kudos")
    world.note("entry", "k1", "k2")
    engine.agents.save("coach", soul="You are kind.", mood="calm", skill="running")
    engine.agents.map_channel("discord:42", "coach")
    world.note("agent", "coach")
    world.note("channel", "discord:42", "default")
    made = engine.api_keys.create("laptop", users=["ana"])
    world.note("api_key", made.key.id)
    world.note("secret", made.secret)
    tool_result = {"results": [{"id": n, "timestamp": (NOW - timedelta(days=n)).isoformat(), "km": n} for n in range(3)]}
    world.note("kept", ana.after("strava", tool_result, "how far did I run", mode="suggest"))
    world.note("result", tool_result)
    if rich:
        world.note("digest", *ana.conversation.compact(force=True))
        ana.conversation.close()
        ana.append("user", "Good morning, how far did I run?")
        engine.process(20)
    else:
        world.note("digest", *ana.conversation.compact(force=True))


IDS: Mapping[str, str] = {
    "session": "session",
    "todo": "todo",
    "task": "task",
    "suggestion": "suggestion",
    "operation": "operation",
    "ref": "entity",
    "into": "entity",
    "entity": "entity",
    "memory": "memory",
    "proposal": "proposal",
    "message": "message",
    "digest": "digest",
    "suggested": "kept",
    "result": "result",
    "agent": "agent",
    "channel": "channel",
    "key_id": "api_key",
    "secret": "secret",
    "state_key": "series",
    "revision": "revision",
    "expected": "revision",
    "Memories.key": "memory",
    "State.key": "state",
    "Conversation.message.id": "message",
    "InstructionHandle.id": "instruction",
    "LessonHandle.id": "lesson",
    "DocumentHandle.document": "document",
    "AgentHandle.id": "agent",
    "SeriesHandle.history.id": "entry",
    "Memory.messages.before": "message",
    "Memory.messages.after": "message",
    "UserSeries.__call__.name": "series",
    "version": "revision",
}
"""Which living thing an argument names: by call and argument, by class and argument, or by argument alone."""


class Plausible:
    """Draws what a call asks for."""

    def __init__(self, world: World, hostile: Hostile) -> None:
        self.world = world
        self.hostile = hostile
        self.chance = hostile.chance

    def of(self, call: Call, one: Field) -> Any:
        by_name = self._by_name(call, one)
        return by_name() if by_name is not None else self.value(one.hint, one.name)

    def _by_name(self, call: Call, one: Field) -> Callable[[], Any] | None:
        if one.default is not inspect.Parameter.empty and call.of in VALUE_NAMES:
            return lambda: one.default
        for name in (f"{call.full}.{one.name}", f"{call.of}.{one.name}", one.name):
            if (special := SPECIAL.get(name)) is not None:
                return lambda special=special: special(self)
            if self.world.living.get(IDS.get(name, "")):
                return lambda name=name: self.chance.choice(self.world.living[IDS[name]])
        return None

    def value(self, hint: Any, name: str = "") -> Any:
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self.value(self.chance.choice(inner), name)
        if origin is typing.Literal:
            return self.chance.choice(inner)
        if origin is tuple:
            ends = [*inner] if inner[-1:] != (...,) else [inner[0]] * self.chance.randrange(3)
            made = [self.value(one, name) for one in ends]
            return tuple(sorted(made)) if all(isinstance(one, datetime) for one in made) else tuple(made)
        if origin in (typing.Annotated, typing.Required, typing.NotRequired):
            return self.value(inner[0], name)
        if origin is not None and issubclass(origin, Mapping):
            return {self.value(inner[0], name): self.value(inner[1], name)}
        if origin in (Callable, typing.Callable) or (inspect.isclass(origin) and issubclass(origin, Callable)):
            return lambda *args, **named: []
        if origin is not None and inspect.isclass(origin) and issubclass(origin, Iterable):
            return [self.value(inner[0], name) for _ in range(self.chance.randrange(3))]
        return self._plain(hint, name)

    def _plain(self, hint: Any, name: str) -> Any:
        if isinstance(hint, typing.NewType):
            return self.value(hint.__supertype__, name)
        if hint is None or hint is types.NoneType:
            return None
        if hint is bool:
            return self.chance.random() < 0.5
        if hint is int:
            return self.chance.choice((1, 2, 5, 20, 100, 500))
        if hint is float:
            return self.chance.choice((0.5, 1.0, 0.25, 1))
        if hint is str:
            return self.chance.choice(WORDS)
        if hint is Unset:
            return Unset.UNSET
        if hint is bytes:
            return b"some bytes"
        if hint is datetime:
            return NOW - timedelta(hours=self.chance.randrange(1, 200))
        if typing.is_typeddict(hint):
            return {key: self.value(one, key) for key, one in typing.get_type_hints(hint).items() if self.chance.random() < 0.5}
        if inspect.isclass(hint) and dataclasses.is_dataclass(hint):
            return self._made(hint)
        if hint is object and name in ("start", "end", "start_time", "end_time", "window_start", "window_end"):
            days = self.chance.randrange(1, 5) + (5 if "start" in name else 0)
            return self.chance.choice((NOW - timedelta(days=days), (NOW - timedelta(days=days)).isoformat()))
        return self.chance.choice((None, 1, "text", {"a": [1, 2]}, True))

    def _made(self, kind: type) -> Any:
        hints = typing.get_type_hints(kind)
        given = {
            one.name: self.value(hints[one.name], one.name)
            for one in dataclasses.fields(kind)
            if one.init and (_is_required(one) or self.chance.random() < 0.3)
        }
        try:
            return kind(**given)
        except (perdure.PerdureError, ValueError):
            return None


WORDS = (
    "I moved to Seattle last week",
    "How far did I run in May?",
    "call John tomorrow at 5",
    "kudos",
    "x",
    "Ann works at Acme",
    "profile",
    "UTC",
    "Europe/Berlin",
    "Always answer briefly and in French",
    "a longer text with several words in it, and a comma",
)
EXPORTED: list[bytes] = []
"""A sound export, made once."""


def _times(plausible: Plausible) -> Any:
    start = NOW - timedelta(days=plausible.chance.randrange(1, 9))
    return (start, start + timedelta(hours=plausible.chance.randrange(1, 99)))


def _path(plausible: Plausible) -> str:
    return f"made-{plausible.chance.randrange(10**9)}"


def _source(plausible: Plausible) -> Any:
    return io.BytesIO(EXPORTED[0]) if EXPORTED else "missing"


def _tool(plausible: Plausible) -> HostTool:
    def weather(place: str) -> str:
        return f"Rain in {place}"

    weather.__name__ = f"weather{plausible.chance.randrange(10**9)}"
    return perdure.tool("The weather of a place.", [{"name": "place", "required": True}])(weather)


def document() -> perdure.documents.ContextData:
    """A sound context document."""
    made = perdure.documents.ContextData("ana:coach:s1", facts=["Ana runs"], long_term_summary="They talked.")
    made.recent_history.append(perdure.documents.HistoryEntry(1_700_000_000, "user", "hello"))
    made.active_tasks.append(perdure.documents.Task("t1", "write", "Running", 0.5, 1_700_000_000, 1_700_000_001))
    return made


def spoilt_document(hostile: Hostile) -> perdure.documents.ContextData:
    """One in which somebody has put something else somewhere."""
    made = document()
    part = hostile.chance.choice((made, made.recent_history[0], made.active_tasks[0], made.tool_stats, made.token_usage))
    name = hostile.chance.choice([one.name for one in dataclasses.fields(part)])
    setattr(part, name, hostile.spoilt_value(getattr(part, name)) if hostile.chance.random() < 0.5 else hostile.any())
    return made


def _context(plausible: Plausible) -> Any:
    return document() if plausible.chance.random() < 0.3 else spoilt_document(plausible.hostile)


DOCUMENT = perdure.documents.render_document(document())
SPECIAL: Mapping[str, Callable[[Plausible], Any]] = {
    "window": _times,
    "time_range": _times,
    "to": _path,
    "path": lambda p: p.chance.choice(("document.json", _path(p))),
    "source": _source,
    "Memory.remember.source": lambda p: "user",
    "Memory.import_.format": lambda p: p.chance.choice(("auto", "jsonl")),
    "progress": lambda p: None,
    "fetcher": lambda p: lambda *a: [{"id": "f1", "timestamp": NOW.isoformat()}],
    "Engine.add_tool.tool": _tool,
    "tools": lambda p: {"strava": lambda: 1},
    "Memory.run.agent": lambda p: lambda text, tools: "done",
    "role": lambda p: p.chance.choice(("user", "system")),
    "id": lambda p: f"id-{p.chance.randrange(10**9)}",
    "request": lambda p: f"r-{p.chance.randrange(10**9)}",
    "pattern": lambda p: "*",
    "messages": lambda p: (p.world.living["message"][0], p.world.living["message"][1]),
    "append_many.messages": lambda p: [perdure.NewMessage("user", "hello")],
    "Memory.append_many.messages": lambda p: [perdure.NewMessage("user", "hi")],
    "Turn.append_many.messages": lambda p: [perdure.NewMessage("user", "hello")],
    "kinds": lambda p: ["message", "memory"],
    "tool_calls": lambda p: [],
    "tool_call_id": lambda p: None,
    "failed": lambda p: False,
    "metadata": lambda p: {"a": 1},
    "at": lambda p: None,
    "space": lambda p: "default",
    "permission": lambda p: "write",
    "days": lambda p: 3,
    "style": lambda p: "mcp",
    "SeriesHandle.export.format": lambda p: "csv",
    "recurrence": lambda p: "0 7 * * 1",
    "zone": lambda p: "Europe/Berlin",
    "entities": lambda p: ["person:John Doe"],
    "subject": lambda p: "person:John Doe",
    "sessions": lambda p: p.world.living["session"],
    "Tools.call_tool.name": lambda p: p.chance.choice(p.world.memory.tools.names()),
    "Tools.call_tool.params": lambda p: {"key": "kudos", "value": 1},
    "entries": lambda p: [{"id": "e1", "timestamp": NOW.isoformat()}],
    "State.append.key": lambda p: p.chance.choice(["walks", "runs"]),
    "State.append.items": lambda p: ["Monday", {"km": 5}],
    "State.append.expected": lambda p: None,
    "State.append.request": lambda p: None,
    "new_entries": lambda p: [{"id": "e2", "timestamp": NOW.isoformat()}],
    "id_field": lambda p: "id",
    "timestamp_field": lambda p: "timestamp",
    "id_template": lambda p: None,
    "options": lambda p: None,
    "page": lambda p: None,
    "behind": lambda p: None,
    "context": _context,
    "raw": lambda p: DOCUMENT,
    "url": lambda p: None,
    "settings": lambda p: perdure.Settings(url="memory:"),
    "clock": lambda p: None,
    "background": lambda p: False,
    "summariser": lambda p: None,
    "extractor": lambda p: None,
    "embedder": lambda p: None,
    "reranker": lambda p: None,
    "model": lambda p: None,
    "rules": lambda p: {},
    "perdure.extract_time_range.now": lambda p: NOW,
    "session_ids": lambda p: None,
    "perdure.documents.copy_contexts.source": lambda p: p.world.folder_contexts,
    "perdure.documents.copy_contexts.target": lambda p: p.world.stored_contexts,
    "ContextManager.import_file.path": lambda p: "document.json",
    "StoredContextManager.import_file.path": lambda p: "document.json",
    "session_id": lambda p: "ana:coach:s1",
    "ContextManager.save.context": lambda p: p.world.folder_contexts.load("ana:coach:s1"),
    "StoredContextManager.save.context": lambda p: p.world.stored_contexts.load("ana:coach:s1"),
    "DocumentHandle.save.document": lambda p: perdure.documents.ContextData(
        f"made{p.chance.randrange(10**6)}", facts=["Ana runs"]
    ),
    "DocumentHandle.compact.max_history": lambda p: p.chance.choice((2, 50)),
    "DocumentHandle.compact.max_tokens": lambda p: p.chance.choice((64, 100_000)),
    "DocumentHandle.compact.summary_chars_max": lambda p: p.chance.choice((200, 8_000)),
    "EntityHandle.merge.ref": lambda p: "person:Ada Blum",
    "EntityHandle.merge.into": lambda p: "person:Zoe Quint",
    "budget_tokens": lambda p: 1_000,
    "perdure.restore.path": lambda p: "backup.pdr",
    "profile": lambda p: "companion",
    "fact_type": lambda p: "fact",
    "importance": lambda p: 2,
    "confidence": lambda p: 0.5,
    "seconds": lambda p: 0.2,
    "document_bytes_max": lambda p: 10**6,
    "kind": lambda p: None,
    "Conversation.digest.kind": lambda p: "fold",
    "SeriesHandle.tool.options": lambda p: {},
    "neighbours": lambda p: 1,
    "limit": lambda p: 20,
    "wait_s": lambda p: 0.2,
    "lease_s": lambda p: 20,
    "deadline_s": lambda p: 2,
    "longest_s": lambda p: None,
    "TodoHandle.add.kind": lambda p: "habit",
    "type": lambda p: None,
    "Memory.remember.type": lambda p: "PEOPLE",
}
"""What an argument of that name is, where its type alone does not tell."""


def chat_of(engine: perdure.Engine, memory: perdure.Memory) -> Chat:
    from perdure.app import chat_with

    return chat_with(engine, memory)


def handle_classes() -> set[str]:
    """The names of all classes in `perdure.handles` with public calls of their own: each must be reached."""
    import importlib
    import pkgutil

    import perdure.handles as package

    found = set()
    for module in pkgutil.iter_modules(package.__path__):
        members = vars(importlib.import_module(f"perdure.handles.{module.name}"))
        found |= {
            name
            for name, kind in members.items()
            if inspect.isclass(kind)
            and kind.__module__ == f"perdure.handles.{module.name}"
            and not name.startswith("_")
            and not dataclasses.is_dataclass(kind)
            and kind not in (Handle, PendingList, Unset)
        }
    return found
