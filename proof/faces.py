"""The four faces of perdure as a crowd uses them: each lists its operations, found by looking, and carries out a call.

An answer is text: the value as JSON with everything that came along, or the refusal with its code.
"""

from __future__ import annotations

import functools
import inspect
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import pytest

import perdure
from perdure.domain.errors import PerdureError
from perdure.handles.conversation import Turn
from perdure.handles.memory import Memory, confined
from perdure.handles.operation import Handle, Parameter, parameters
from perdure.handles.registry.shapes import plain
from perdure.handles.series import SeriesHandle
from perdure.interfaces.cli import commands
from perdure.interfaces.mcp.resources import KINDS
from perdure.interfaces.mcp.sets import offers
from perdure.interfaces.server import Options, build
from perdure.interfaces.web import pages
from perdure.types import NewStatement
from proof.asgi import Answered, Asgi
from proof.calls import Call, Operation, Param
from proof.crowd import Person
from tests.in_process import InProcess

UNSAID = "nothing to do it with"


class Face(Protocol):
    operations: tuple[Operation, ...]

    def ask(self, call: Call) -> str:
        """Carry it out; the answer or the refusal."""


_FOUND: dict[str, tuple[Operation, ...]] = {}


def _once(face: str, find: Callable[[], Iterable[Operation]]) -> tuple[Operation, ...]:
    """The surface is the same for every store, and describing it takes longer than most calls."""
    if face not in _FOUND:
        _FOUND[face] = tuple(find())
    return _FOUND[face]


def told(value: object) -> str:
    return json.dumps(plain(value), sort_keys=True, default=lambda one: f"<{type(one).__name__}>")


# -- Python


class PythonFace:
    """Handles, confined to their user as those of a caller with a key of one user are."""

    def __init__(self, engine: perdure.Engine) -> None:
        self._engine = engine
        self.operations = _once("Python", lambda: _python_operations(engine.memory("nobody")))

    def ask(self, call: Call) -> str:
        person = call.person
        try:
            memory = confined(self._engine.memory(person.user, agent=call.agent, channel=call.channel, space=person.space))
            return told(_called(memory, call))
        except PerdureError as error:
            return f"!{error.code}: {error}"
        except (TypeError, ValueError) as error:
            return f"!{type(error).__name__}: {error}"


def _python_operations(memory: Memory) -> Iterator[Operation]:
    yield from _handle_operations((), memory)
    yield from _of_class(("series",), SeriesHandle, Param("series", {"type": "string"}, True))
    yield from _of_class(("turn",), Turn)


def _handle_operations(way: tuple[str, ...], handle: Handle) -> Iterator[Operation]:
    """What a handle offers, and those that are its properties."""
    yield from _of_class(way, type(handle))
    for name, member in inspect.getmembers(type(handle)):
        if isinstance(member, property) and isinstance(inner := getattr(handle, name), Handle):
            yield from _handle_operations((*way, name), inner)


def _of_class(way: tuple[str, ...], kind: type, *first: Param) -> Iterator[Operation]:
    for name, member in inspect.getmembers(kind, callable):
        if not name.startswith("_") and name != "turn":
            where = ".".join((*way, name))
            params = (Param(one.name, _schema_of(one), one.required, str(one.type)) for one in parameters(member))
            yield Operation("Python", where, (*first, *params), (way, name))


def _schema_of(one: Parameter) -> dict[str, Any]:
    if one.item is not None:
        return {"type": "array", "items": {"enum": list(one.choices)} if one.choices else {}}
    if one.choices:
        return {"enum": list(one.choices)}
    return {
        datetime: {"format": "date-time"},
        str: {"type": "string"},
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        float: {"type": "number"},
    }.get(one.type, {})


def _called(memory: Memory, call: Call) -> object:
    way, name = call.operation.handle
    given = dict(call.arguments)
    words = {param.name: param.place for param in call.operation.params}
    for key, value in given.items():
        if "datetime" in words[key] or key == "window":
            given[key] = tuple(map(datetime.fromisoformat, value)) if isinstance(value, list) else datetime.fromisoformat(value)
        elif "NewMessage" in words[key]:
            given[key] = [perdure.NewMessage(**one) for one in value]
        elif "NewStatement" in words[key]:
            given[key] = [NewStatement(**one) for one in value]
        elif "tuple" in words[key] and isinstance(value, list):
            given[key] = tuple(value)
    if way == ("turn",):
        with memory.turn(wait_s=5) as turn:
            return getattr(turn, name)(**given)
    if not _with_objects(memory, given):
        return UNSAID
    target: Any = memory.series(given.pop("series")) if "series" in given else functools.reduce(getattr, way, memory)
    held = given.get("to")
    found = getattr(target, name)(**given)
    if isinstance(found, Iterator):
        return list(found)
    return [found, held.getvalue().decode()] if isinstance(held, io.BytesIO) else found


def _with_objects(memory: Memory, given: dict[str, Any]) -> bool:
    """Put in what JSON does not have: files, programs, and things that an earlier call answered. False: there is none."""
    for name in given:
        match name:
            case "to":
                given[name] = io.BytesIO()
            case "source" if isinstance(given[name], dict):
                given[name] = io.BytesIO(_forged(memory, given[name]["as"]))
            case "suggested":
                given[name] = memory.after("getRuns", given["result"], "keep my runs", mode="suggest", deadline_s=60)
            case "digest":
                digests = memory.conversation.digests()
                if not digests:
                    return False
                given[name] = digests[0]
            case "fetcher":
                given[name] = lambda start, end: [{"id": "f1", "timestamp": start.isoformat(), "sport": "swim"}]
            case "agent" if given[name] is None:
                given[name] = lambda text, tools: text
            case "tools":
                given[name] = {}
    return True


def _forged(memory: Memory, user: str) -> bytes:
    """An export of one's own that says it is somebody else's."""
    own = io.BytesIO()
    memory.export(own)
    return _renamed(own.getvalue(), memory.scope.owner.user, user)


def _renamed(export: bytes, one: str, other: str) -> bytes:
    for escaped in (True, False):
        export = export.replace(
            json.dumps(one, ensure_ascii=escaped).encode(), json.dumps(other, ensure_ascii=escaped).encode()
        )
    return export


# -- the command line

COMMANDS_OF_THE_STORE = re.compile(
    r"serve|demo|chat|doctor|mcp|worker|series when|agent (list|show|save|remove|map|unmap|channels)"
    r"|admin (users|health|verify|backup|restore|purge|repair-clock|files|config .*|key .*)"
)
"""Commands that are about the whole store, or about no store at all."""
FROM_A_FILE = " --file"
"""`append` has two forms: one message, or those of a file."""


class CliFace:
    """The person at the machine, who names a user with each command."""

    def __init__(self, engine: perdure.Engine, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._commands = InProcess(patch, engine)
        self._folder = folder
        self._engine = engine
        self.operations = _once("CLI", lambda: _cli_operations(commands.app, ()))

    def ask(self, call: Call) -> str:
        person, given = call.person, dict(call.arguments)
        words, stdin, written = self._words(call, given)
        scope = [
            "--json",
            f"--user={person.user}",
            f"--space={person.space}",
            f"--agent={call.agent}",
            f"--channel={call.channel}",
        ]
        done = self._commands.run(*call.operation.name.removesuffix(FROM_A_FILE).split(" "), *scope, *words, stdin=stdin)
        answer = f"{done.code} {done.stdout} {done.stderr}"
        if written is not None and written.exists():
            answer += written.read_text()
            written.unlink()
        return answer.replace(str(self._folder), "")

    def _words(self, call: Call, given: dict[str, Any]) -> tuple[list[str], str, Path | None]:
        options, places = [], []
        stdin, written = "", None
        for param in call.operation.params:
            if param.name not in given or param.place == "stdin":
                continue
            value = given[param.name]
            if param.name == "file":
                value, stdin, written = self._file(call, given)
            many = value if isinstance(value, list) and param.schema.get("nargs") != 1 else [value]
            said = [one if isinstance(one, str) else json.dumps(one) for one in many]
            if param.name in ("value", "entries") and call.operation.name in ("state set", "series merge"):
                said = [json.dumps(value)]
            if param.place == "argument":
                places += said
            elif param.schema["type"] == "boolean":
                options += [param.place] if value else []
            else:
                options += [param.place, *said] if param.schema["nargs"] == 2 else [f"{param.place}={one}" for one in said]
        return [*options, "--", *places], stdin, written

    def _file(self, call: Call, given: dict[str, Any]) -> tuple[str, str, Path | None]:
        name = call.operation.name
        if name not in ("admin export", "admin import"):
            text = given.get("stdin", "")
            return "-", json.dumps({"role": "user", "content": text}) if name.endswith(FROM_A_FILE) else text, None
        path = self._folder / "file.jsonl"
        path.unlink(missing_ok=True)
        if name == "admin import":
            memory = self._engine.memory(call.person.user, space=call.person.space)
            path.write_bytes(_forged(memory, call.person.victims[0].user))
        return str(path), "", path if name == "admin export" else None


def _cli_operations(command: Any, path: tuple[str, ...]) -> Iterator[Operation]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from _cli_operations(inner, (*path, name))
        return
    name = " ".join(path)
    if COMMANDS_OF_THE_STORE.fullmatch(name):
        return
    params = []
    for one in command.params:
        argument = one.param_type_name == "argument"
        if one.name in ("help", "as_user"):
            continue
        if one.name == "yes":
            params.append(Param("yes", {"type": "boolean", "enum": [True], "nargs": 1}, True, "--yes"))
            continue
        kind = "boolean" if getattr(one, "is_flag", False) else "string"
        words = str(one.type_descriptor.annotation)
        kind = "integer" if "int" in words else "number" if "float" in words else kind
        place = "argument" if argument else max(one.opts, key=len)
        if name == "append" and one.name == "file":
            stdin = Param("stdin", {"type": "string", "nargs": 1}, True, "stdin")
            yield Operation("CLI", name + FROM_A_FILE, (Param("file", {"type": kind, "nargs": 1}, True, place), stdin))
            continue
        required = one.required or one.name == "file" or (argument and name == "append")
        params.append(Param(one.name, {"type": kind, "nargs": one.nargs}, required, place))
        if one.name == "file":
            params.append(Param("stdin", {"type": "string", "nargs": 1}, True, "stdin"))
    yield Operation("CLI", name, tuple(params))


# -- HTTP and MCP, through the guard, with a key that is bound to one user


class Web:
    """One application in a loop of its own; the keys of those who ask."""

    def __init__(self, engine: perdure.Engine, people: list[Person], stack: ExitStack) -> None:
        self.engine = engine
        # Before the server: it then knows from the first request that it asks for keys.
        self.keys = {
            one: engine.api_keys.create("k", users=[one.user], permission="admin").secret
            for one in people
            if one.space == engine.space
        }
        self.app = build(engine, Options(tools="all", rate=1_000_000, no_auth=True))
        self._asgi = Asgi(self.app, stack)

    def ask(self, method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, str], body: bytes = b"") -> Answered:
        asked = urlencode({key: value for key, value in query.items() if value is not None}, doseq=True)
        return self._asgi.ask(method, path, {"host": "127.0.0.1:8765", **headers}, query=asked, body=body)


def _segment(text: str) -> str:
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


class HttpFace:
    def __init__(self, web: Web) -> None:
        self._web = web
        self.operations = _once("HTTP", lambda: [*_http_operations(web.app.openapi()), *_page_operations()])

    def ask(self, call: Call) -> str:
        person, operation = call.person, call.operation
        method, _, path = operation.name.partition(" ")
        given = {param: call.arguments[param.name] for param in operation.params if param.name in call.arguments}
        named = {param.name: str(value) for param, value in given.items() if param.place == "path"}
        named["user"] = (call.stranger or person).user
        path = re.sub(r"\{(\w+)\}", lambda found: _segment(named[found[1]]), path)
        query = {param.name: _queried(value) for param, value in given.items() if param.place == "query"}
        if "{user}" in operation.name:
            query |= {"agent": call.agent, "channel": call.channel}
        headers = {"authorization": f"Bearer {self._web.keys[person]}", "accept": "*/*, text/html"}
        headers |= {param.name: str(value) for param, value in given.items() if param.place == "header"}
        inside = {param.name: value for param, value in given.items() if param.place == "body"}
        body = b""
        if raw := next((value for param, value in given.items() if param.place == "raw"), None):
            memory = self._web.engine.memory(person.user)
            headers["content-type"], body = "application/x-ndjson", _forged(memory, raw["as"])
        elif any(param.place == "body" for param in operation.params):
            headers["content-type"], body = "application/json", json.dumps(inside).encode()
        told = self._web.ask(method, path, query, headers, body)
        shown = {name: told.header(name) for name in ("etag", "location", "idempotent-replay")}
        return f"{told.status} {json.dumps(shown)} {told.text}"


def _page_operations() -> Iterator[Operation]:
    """What the page shows; what it changes goes the same ways as the rest."""
    for route in pages.router.routes:
        # Included routers are lists of their own; each page is a route of one of them.
        for one in getattr(getattr(route, "original_router", None), "routes", (route,)):
            path = re.sub(r":\w+\}", "}", getattr(one, "path", ""))
            if path.startswith("/u/{user}") and "GET" in one.methods:
                named = [name for name in re.findall(r"\{(\w+)\}", path) if name != "user"]
                params = tuple(Param(name, {"type": "string"}, True, "path") for name in named)
                yield Operation("HTTP", f"GET {path}", params)


def _queried(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _http_operations(described: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            params = [
                Param(param["name"], _resolved(param["schema"], described), bool(param.get("required")), param["in"])
                for param in one.get("parameters", ())
                if param["name"] not in ("user", "agent", "channel") or "{user}" not in path
            ]
            content = one.get("requestBody", {}).get("content", {})
            if "application/x-ndjson" in content:
                params.append(Param("source", {}, True, "raw"))
            elif schema := _resolved(content.get("application/json", {}).get("schema", {}), described):
                wanted = schema.get("required", ())
                params += [
                    Param(name, _resolved(inner, described), name in wanted, "body")
                    for name, inner in schema.get("properties", {}).items()
                ]
            yield Operation("HTTP", f"{method.upper()} {path}", tuple(params))


def _resolved(schema: Any, described: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _resolved(described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], described)
    return {
        key: [_resolved(one, described) for one in value] if key in ("anyOf", "oneOf") else value
        for key, value in schema.items()
    }


class McpFace:
    def __init__(self, web: Web) -> None:
        self._web = web
        self.operations = _once("MCP", self._found)

    def _found(self) -> Iterator[Operation]:
        for one in offers(self._web.engine.memory("nobody").tools, "all"):
            schema = one.schema()
            wanted = schema.get("required", ())
            params = [Param(name, inner, name in wanted) for name, inner in schema["properties"].items()]
            yield Operation("MCP", one.name, tuple(params), "tool")
        for kind in KINDS:
            yield Operation("MCP", f"resource {kind.name}", (), kind)
            named = {"memories": "key", "series": "series", "sessions": "session"}.get(kind.name, kind.variable)
            yield Operation("MCP", f"resource of {kind.name}", (Param(named, {"type": "string"}, True),), kind)
        yield Operation("MCP", "resources/list", (), "list")

    def ask(self, call: Call) -> str:
        handle, person = call.operation.handle, call.person
        if handle == "tool":
            method, params = "tools/call", {"name": call.operation.name, "arguments": call.arguments}
        elif handle == "list":
            method, params = "resources/list", {}
        else:
            method = "resources/read"
            params = {"uri": handle.uri_of(next(iter(call.arguments.values()))) if call.arguments else handle.uri}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {
            "authorization": f"Bearer {self._web.keys[person]}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "perdure-user": quote((call.stranger or person).user, safe=""),
            "perdure-agent": quote(call.agent),
            "perdure-channel": quote(call.channel),
        }
        told = self._web.ask("POST", "/mcp", {}, headers, body)
        return f"{told.status} {told.text}"
