"""A tool as MCP offers it: what a model reads, what is called, and how the answer is told as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from perdure.domain.api_keys import Permission
from perdure.domain.context import Block, one_item
from perdure.domain.errors import InvalidInput
from perdure.domain.text import Json, compact_json
from perdure.handles.tools import Result, Tool, call_checked
from perdure.interfaces.mcp.callers import Caller
from perdure.interfaces.shapes import plain

Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered: the JSON that every skin gives, and the same for a model to read."""

    told: Result
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool. `call` gets the caller, then the parameters by name."""

    name: str
    title: str
    permission: Permission
    description: str
    parameters: Mapping[str, Json]
    output: Mapping[str, Json]
    call: Callable[..., object]
    text: Callable[[Any], str] | None = None
    """The answer for a model, with remembered text fenced; None: the JSON behind a fence."""
    destructive: bool = False
    idempotent: bool = False

    def schema(self) -> Result:
        """Its parameters as JSON Schema, in words that hosts of every make understand."""
        schema = self._tool(self.call).schema()
        return {**schema, "properties": {name: _portable(spec) for name, spec in schema["properties"].items()}}

    def run(self, caller: Caller, params: Any) -> Answer:
        """Call it. What is wrong with the parameters, and every `PerdureError`, comes back as an answer."""
        kept: list[object] = []

        def call(**given: Any) -> Result:
            value = self.call(caller, **given)
            kept.append(value)
            told = plain(value)
            return told if isinstance(told, dict) else {"items": told}

        told = call_checked(self._tool(call), params)
        if told.get("success") is False and "code" in told:
            return Answer(told, f"{told['code']}: {told['error']}; {told['remedy']}", failed=True)
        if self.text is not None:
            return Answer(told, self.text(kept[0]))
        return Answer(told, self.fence([compact_json(told)]))

    def fence(self, lines: Iterable[str]) -> str:
        return fence(self.name, self.title, lines)

    def _tool(self, call: Callable[..., Any]) -> Tool:
        return Tool(self.name, self.description, "read" if self.permission == "read" else "write", self.parameters, call)


def _portable(spec: Told) -> Told:
    """Several types as alternatives: some hosts know only one type at a time."""
    if not isinstance(spec.get("type"), list):
        return spec
    rest = {name: value for name, value in spec.items() if name != "type"}
    return {"anyOf": [{"type": kind} for kind in spec["type"]], **rest}


def fence(kind: str, title: str, lines: Iterable[str]) -> str:
    """Remembered text as data: behind a fence that it cannot close itself. Only the first line of each piece is not set in."""
    return Block(kind, title, "perdure", "\n".join(one_item(line) for line in lines), 0).render()


def fenced(kind: str, title: str, lines: Callable[[Any], Iterable[str]]) -> Callable[[Any], str]:
    """Tells a value as fenced lines."""
    return lambda value: fence(kind, title, lines(value))


# -- what schemas are made of. They are read by models in every conversation, so they are as short as they can be.


def text(description: str) -> Told:
    return {"type": "string", "description": description}


def one_of(words: Iterable[str], description: str) -> Told:
    return {"type": "string", "enum": list(words), "description": description}


def flag(description: str) -> Told:
    return {"type": "boolean", "description": description}


def number(description: str) -> Told:
    return {"type": "integer", "description": description}


def texts(description: str) -> Told:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def shape(**fields: str) -> Told:
    """An output schema that names the fields which are always there."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }


ITEMS = shape(items="array")


def moment(given: str, name: str) -> datetime:
    """An instant in ISO 8601. That it has a zone is checked where it is used."""
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput(f"`{name}` = {given!r:.60} is no ISO 8601 time; write e.g. 2026-01-31T09:30:00+00:00") from None


def moments(given: Told, *names: str) -> Told:
    """The parameters, with these read as instants."""
    return {name: moment(value, name) if name in names else value for name, value in given.items()}


def span(given: Told, start: str, end: str, into: str) -> Told:
    """The parameters, with two of them made the one pair that the handle takes."""
    rest = {name: value for name, value in given.items() if name not in (start, end)}
    if start not in given and end not in given:
        return rest
    if start not in given or end not in given:
        lone, other = (start, end) if start in given else (end, start)
        raise InvalidInput(f"`{lone}` stands without `{other}`; give both, or neither")
    return {**rest, into: (moment(given[start], start), moment(given[end], end))}
