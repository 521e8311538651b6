"""A tool as MCP offers it: what a model reads, what is called, and how the answer is told as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from perdure.domain.access import Permission
from perdure.domain.context.context import Block
from perdure.domain.text.fences import one_item
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.values import dataclass
from perdure.handles.registry.shapes import plain
from perdure.handles.tools import Result, Tool, call_checked
from perdure.interfaces.mcp.callers import ToolCaller

Spec = dict[str, Any]
"""A part of a JSON schema."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered: the JSON that every skin gives, and the same for a model to read."""

    told: Result
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One tool. `call` gets the caller, then the parameters by name."""

    name: str
    title: str
    permission: Permission
    description: str
    parameters: Mapping[str, Json]
    required: tuple[str, ...]
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

    def run(self, caller: ToolCaller, params: Any) -> ToolAnswer:
        """Call it. What is wrong with the parameters, and every `PerdureError`, comes back as an answer."""
        kept: list[object] = []

        def call(**given: Any) -> Result:
            value = self.call(caller, **given)
            kept.append(value)
            told = plain(value)
            return told if isinstance(told, dict) else {"items": told}

        told = call_checked(self._tool(call), params)
        if told.get("success") is False and "code" in told:
            words = dict.fromkeys((told["error"], told["remedy"]))  # a message without a remedy stands in both
            return ToolAnswer(told, f"{told['code']}: {'; '.join(words)}", failed=True)
        if self.text is not None:
            return ToolAnswer(told, self.text(kept[0]))
        return ToolAnswer(told, self.fence([compact_json(told)]))

    def fence(self, lines: Iterable[str]) -> str:
        return fence(self.name, self.title, lines)

    def _tool(self, call: Callable[..., Any]) -> Tool:
        return Tool(
            name=self.name,
            description=self.description,
            permission="read" if self.permission == "read" else "write",
            parameters=self.parameters,
            call=call,
            required=self.required,
        )


def _portable(spec: Spec) -> Spec:
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


def text(description: str) -> Spec:
    return {"type": "string", "description": description}


def flag(description: str) -> Spec:
    return {"type": "boolean", "description": description}


def shape(**fields: str) -> Spec:
    """An output schema that names the fields which are always there."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }


ITEMS = shape(items="array")
