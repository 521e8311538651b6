"""The one registry of what a model may be given: `ana.tools`, HTTP and MCP read it, and a host adds tools of its own.

@tool(description="The weather of a city.", parameters=[…], returns="Degrees", permissions="read")
def getWeather(city: str) -> dict: ...

engine.add_tool(getWeather)

The seeds' state tools see plain values and series under one roof, each by its name. A series is told in the seed's own
structure, its newest entries first. Where a value and a series share a name, the name means the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any, get_origin

from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.oversight import WindowRule
from perdure.domain.series import Series
from perdure.domain.text.rules import Json, brief, check_choice, check_flag, check_text
from perdure.domain.times.instants import read_instant
from perdure.domain.values import dataclass, field
from perdure.engine.oversight.tool_windows import check_rule
from perdure.handles.operation import OperationSpec, Parameter, describe
from perdure.handles.series import UserSeries, answer_dict, series_dict
from perdure.handles.state import SEARCHED, State
from perdure.services.series.state import PREVIEW_CHARS

JSON_TYPES: Mapping[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", datetime: "string"}
MOMENT = "ISO 8601 with a zone."
KINDS = ("string", "boolean", "integer", "number", "array", "object")
HOST = "host"
"""The set of a host's own tools."""
NAME_CHARS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationTool:
    """A declared operation as a model sees it: which of its parameters, and in which words."""

    set: str
    name: str
    title: str
    operation: str
    """By its namespaces, as in `todos.add`."""
    description: str
    takes: tuple[str, ...]
    """What a model is shown, in order: each costs tokens in every conversation."""
    words: Mapping[str, str] = field(default_factory=dict)
    """In place of the declared ones, where a model needs others."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Parameters that a model is shown in place of others."""
    adapt: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """From what a model gives to what the operation takes."""

    def declared(self, memory: Any) -> OperationSpec:
        """The operation, as the handle of a memory declares it."""
        space, _, method = self.operation.rpartition(".")
        kind: Any = type(reached(memory, space))
        return describe(kind, method)

    def call(self, memory: Any, given: Mapping[str, Any]) -> object:
        """Make the call, on the word of whom the memory is opened for."""
        space, _, method = self.operation.rpartition(".")
        handle = reached(memory, space)
        moments = {one.name for one in self.declared(memory).parameters if one.type is datetime}
        read = self.adapt({name: read_instant(value, name) if name in moments else value for name, value in given.items()})
        return getattr(handle, method)(**read)


def reached(memory: Any, namespace: str) -> Any:
    """The handle of a namespace such as `memories`; the memory itself for none."""
    return reduce(getattr, filter(None, namespace.split(".")), memory)


def shown_parameters(declared: OperationSpec, takes: Sequence[str], name: str) -> list[Parameter]:
    """Those that a tool takes, in its order."""
    found = [one for wanted in takes for one in declared.parameters if one.name == wanted]
    if len(found) != len(takes):
        raise TypeError(f"tool {name} takes {', '.join(takes)}, which `{declared.name}` does not")
    return found


def parameter_schema(one: Parameter, words: str | None = None) -> dict[str, Any]:
    """A declared parameter in JSON Schema, as short as it can be."""
    told = f"{words or one.arg.text}{_extras(one)}"
    if one.item is not None:
        return {"type": "array", "items": _type(one.item, one.choices), "description": told}
    return {**_type(one.type, one.choices), "description": told}


def _type(kind: Any, choices: Sequence[str]) -> dict[str, Any]:
    if choices:
        return {"type": "string", "enum": list(choices)}
    if kind in JSON_TYPES:
        return {"type": JSON_TYPES[kind]}
    return {"type": "object"} if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping) else {}


def _extras(one: Parameter) -> str:
    told = f" {MOMENT}" if one.type is datetime else ""
    plain = isinstance(one.default, str | int | float) and not isinstance(one.default, bool) and one.default != ""
    return told + (f" Default {one.default}." if plain else "")


def _run_of_messages(given: dict[str, Any]) -> dict[str, Any]:
    ends = ("first_message", "last_message")
    run = [given.pop(name) for name in ends if name in given]
    if len(run) == 1:
        raise InvalidInput("one end of the run of messages is missing; give `first_message` and `last_message`")
    return {**given, "messages": (run[0], run[1])} if run else given


OPERATION_TOOLS = (
    OperationTool(
        set="knowledge",
        name="remember",
        title="Remember a fact",
        operation="remember",
        description="Keep one lasting fact about the user, people, places or projects when it comes up: one short sentence per "
        "call. A new value replaces an old one of yours; against the user's own word it is a proposal that they decide on. "
        "Not for data by key (saveState), tasks (addTodo) or how to behave (addLesson).",
        takes=("content", "type", "entities", "attribute", "value", "valid_from", "ended", "corrects", "pinned"),
        words={
            "content": "The fact, e.g. Lives in Austin.",
            "entities": "Who or what, main one first: person:, place:, org: or project: and the name.",
            "attribute": "For what can change, e.g. lives_in: a new value then replaces the old.",
        },
    ),
    OperationTool(
        set="knowledge",
        name="recall",
        title="Search memory",
        operation="recall",
        description="Search all that is remembered (facts, messages, todos, lessons, state, series), best first. Use before "
        "answering about the user or the past, and before asking what they may have said already. Put the question in words.",
        takes=("query", "kinds", "entities", "since", "until", "as_of", "limit", "budget_tokens"),
    ),
    OperationTool(
        set="knowledge",
        name="forget",
        title="Forget for good",
        operation="forget",
        description="Delete one thing and all derived from it, for good; it cannot be undone. Only when the user asks for it. "
        "Name exactly one: a memory, an entity, or a run of messages. For what is merely outdated, use remember.",
        takes=("memory", "entity"),
        extra={
            "first_message": {"type": "string", "description": "Id of the first message; with last_message."},
            "last_message": {"type": "string", "description": "Id of the last one."},
        },
        adapt=_run_of_messages,
    ),
    OperationTool(
        set="todos",
        name="addTodo",
        title="Add a todo",
        operation="todos.add",
        description="Keep something the user means to do. The same words again change nothing.",
        takes=("content", "kind", "due_at", "recurrence"),
    ),
    OperationTool(
        set="todos",
        name="listTodos",
        title="List todos",
        operation="todos.list",
        description="List the user's open todos with their ids, what is due first.",
        takes=("kind", "closed", "due_before", "limit"),
    ),
    OperationTool(
        set="todos",
        name="completeTodo",
        title="Complete a todo",
        operation="todos.complete",
        description="Note that a todo is done; a habit waits for its next time.",
        takes=("todo",),
    ),
    OperationTool(
        set="lessons",
        name="addLesson",
        title="Add a lesson",
        operation="lessons.add",
        description="Keep one rule on how to behave, learned from a correction or a mistake. Not for facts (remember).",
        takes=("text", "scope"),
        words={"text": "One sentence, as an order to yourself."},
    ),
    OperationTool(
        set="lessons",
        name="listLessons",
        title="List lessons",
        operation="lessons.list",
        description="List the rules on how to behave that hold here. Read them before work that went wrong before.",
        takes=("scope", "limit"),
    ),
)
BY_NAME: Mapping[str, OperationTool] = {one.name: one for one in OPERATION_TOOLS}
OTHER_NAMES = (
    *("saveState", "loadState", "listStateKeys", "searchState", "deleteState"),
    *("mergeTimeseriesState", "queryTimeseriesState", "cleanupTimeseriesState"),
    *("getContext", "listMemories", "getMemory", "appendMessage", "listSessions", "readSession", "beforeGoal", "afterTool"),
    *("listDocuments", "loadDocument", "saveDocument", "compactDocument", "listDocumentVersions"),
    *("getMemoryHistory", "pinMemory", "archiveMemory", "listChanges", "undo", "doctor"),
)
"""Names that a tool of a host cannot have: the seeds' tools, and what MCP offers besides."""


# -- tools of a host


@dataclass(frozen=True, slots=True)
class HostTool:
    """A function of a host, declared by `@tool`. It can be called as before."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    required: tuple[str, ...]
    returns: str
    permission: str
    function: Callable[..., Any]
    window: WindowRule | None = None
    """Which time it fetches, all of it: see `tool`."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)


def tool(
    description: str,
    parameters: Sequence[Mapping[str, Any]] = (),
    returns: str = "",
    permissions: str = "write",
    window: WindowRule | None = None,
) -> Callable[[Callable[..., Any]], HostTool]:
    """Declare a function as a tool for a model; each parameter has `name`, `type`, `description` and `required`.

    `permissions` is `read` if it changes nothing. `engine.add_tool` then offers it in `ana.tools`, over HTTP and over MCP.
    `window` says which time it fetches, whole: `True` for the one that the goal names, words such as `last 24 hours`, or the
    names of the two parameters that it takes it by. In `ana.run` that time then counts as covered once its result is merged.
    """
    rule = check_rule(window)
    check_text(description, "description")
    check_text(returns, "returns")
    check_choice(permissions, "permissions", ("read", "write"))
    listed: object = parameters
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
        raise InvalidInput(
            f"`parameters` = {brief(parameters, 80)} must be a list, of each parameter `name`, `type`, `description`"
        )
    specs: dict[str, Json] = {}
    required: list[str] = []
    for one in parameters:
        name = one.get("name") if isinstance(one, Mapping) else None
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidInput(f"a parameter is {brief(one, 80)}; give each a `name` that Python takes")
        check_choice(one.get("type", "string"), f"type of {name}", KINDS)
        specs[name] = {"type": one.get("type", "string"), "description": check_text(one.get("description", ""), "description")}
        if check_flag(one.get("required", True), f"required of {name}"):
            required.append(name)
    missing = [one for one in rule if isinstance(one, str) and one not in specs] if isinstance(rule, tuple) else []
    if missing:
        raise InvalidInput(f"`window` names the parameter {brief(missing[0])}, which the tool does not take; declare it")

    def declare(function: Callable[..., Any]) -> HostTool:
        name = getattr(function, "__name__", "")
        if not name.isidentifier() or len(name) > NAME_CHARS_MAX:
            raise InvalidInput(f"the function is called {brief(name)}; a tool has a name of up to {NAME_CHARS_MAX} letters")
        told = f"{description} Returns: {returns}" if returns else description
        return HostTool(
            name=name,
            description=told,
            parameters=specs,
            required=tuple(required),
            returns=returns,
            permission=permissions,
            function=function,
            window=rule,
        )

    return declare


@dataclass(slots=True)
class HostTools:
    """The tools that a host has added to an engine, by name."""

    held: dict[str, HostTool] = field(default_factory=dict)

    def add(self, added: HostTool) -> None:
        """Add one; a name that is taken is refused."""
        if not isinstance(added, HostTool):
            raise InvalidInput(f"`tool` is a `{type(added).__name__}`; declare a function with `@perdure.tool(…)` first")
        _check_declared(added)
        if added.name in (*BY_NAME, *OTHER_NAMES) or added.name in self.held:
            raise InvalidInput(f"there is a tool {added.name} already; give yours another name")
        self.held[added.name] = added


def _check_declared(added: HostTool) -> None:
    """Whatever the annotations say: it may have been made without `@tool`."""
    check_text(added.name, "name")
    check_text(added.description, "description")
    check_choice(added.permission, "permission", ("read", "write"))
    given: object = added.parameters
    sound = isinstance(given, Mapping) and all(
        isinstance(name, str) and isinstance(spec, Mapping) and isinstance(spec.get("description", ""), str)
        for name, spec in given.items()
    )
    required: object = added.required
    if not sound or not isinstance(required, tuple) or not callable(added.function):
        raise InvalidInput(f"the tool {brief(added.name)} is not declared soundly; declare a function with `@perdure.tool(…)`")


ENTRIES_LOADED, ENTRIES_FOUND = 1_000, 100
"""How many entries of a series are told: alone, and among others that match a pattern."""
EVER = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
Told = dict[str, Json]


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The state and the series of one user, as a model asks for them by key."""

    state: State
    series: UserSeries
    rows_max: int
    """Of one listing."""

    def load(self, key: str) -> Told:
        """What is kept under a key, and whether anything is."""
        found = self.state.find(key)
        if not found.found and (held := self._named(key)):
            return {"key": key, "found": True, "revision": 0, **self._whole(held, ENTRIES_LOADED)}
        return {"key": key, "value": found.value, "found": found.found, "revision": found.revision}

    def keys(self, *, previews: bool) -> list[Told]:
        """Every key with time and size, in order. A series has its number of entries in place of a size."""
        told: list[Told] = []
        for info in self.state.list():
            one: Told = {"key": info.key, "updated_at": info.updated_at.isoformat(), "size_bytes": info.size_bytes}
            told.append({**one, "preview": info.preview} if previews else one)
        for held in self._series("*"):
            one = {"key": held.name, "updated_at": held.last_updated.isoformat(), "size_bytes": None, **_as_series(held)}
            told.append({**one, "preview": _preview(series_dict(held))} if previews else one)
        return sorted(told, key=lambda one: (str(one["key"]), "kind" in one))

    def search(self, pattern: str, limit: int | None) -> Told:
        """The keys that match a glob with what is kept under them."""
        found = self.state.search(pattern, limit=limit)
        most = SEARCHED if limit is None else limit
        results = dict(found.results)
        matching = [held for held in self._series(pattern) if held.name not in results]
        room = max(0, most - len(results))
        results |= {held.name: self._whole(held, ENTRIES_FOUND)["value"] for held in matching[:room]}
        return {
            "success": True,
            "pattern": pattern,
            "matches": sorted(results),
            "results": results,
            "truncated": found.truncated or len(matching) > room,
        }

    def _series(self, pattern: str) -> list[Series]:
        return [one for one in self.series.list(self.rows_max) if fnmatchcase(one.name, pattern)]

    def _named(self, key: str) -> Series | None:
        with suppress(NotFound):
            return self.series(key).about()
        return None

    def _whole(self, held: Series, entries: int) -> Told:
        answer = self.series(held.name).query(*EVER, limit=min(entries, self.rows_max))
        told = answer_dict(answer)
        value: Told = {**series_dict(held), "entries": told["entries"]}
        if not told["truncated"]:
            return {"value": value, **_as_series(held)}
        more = f"the newest {len(answer.entries)} of {answer.count} entries; queryTimeseriesState gives the others"
        return {"value": {**value, "note": more}, **_as_series(held)}


def _as_series(held: Series) -> Told:
    return {"kind": "series", "count": held.count}


def _preview(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."
