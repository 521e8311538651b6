"""Plausible JSON by its schema, as OpenAPI and MCP describe what they take."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

DEPTH = 6
WORDS = ("ana", "kudos", "I moved to Seattle", "2024-05-01T00:00:00+00:00", "person:John Doe", "profile", "x", "default")


def plausible(schema: Mapping[str, Any], chance: random.Random, whole: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that the schema allows, or nearly."""
    if "$ref" in schema:
        found: Any = whole
        for part in str(schema["$ref"]).lstrip("#/").split("/"):
            found = found.get(part, {})
        return plausible(found, chance, whole, depth + 1) if depth < DEPTH else None
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return plausible(chance.choice(schema[name]), chance, whole, depth + 1)
    for name in ("enum", "examples"):
        if schema.get(name):
            return chance.choice([*schema[name]])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = chance.choice(kind)
    return _of_kind(kind, schema, chance, whole, depth)


def _of_kind(kind: Any, schema: Mapping[str, Any], chance: random.Random, whole: Mapping[str, Any], depth: int) -> Any:
    if kind == "object" or "properties" in schema:
        required = schema.get("required", ())
        return {
            name: plausible(one, chance, whole, depth + 1)
            for name, one in schema.get("properties", {}).items()
            if depth < DEPTH and (name in required or chance.random() < 0.4)
        }
    if kind == "array":
        count = chance.randrange(3) if depth < DEPTH else 0
        return [plausible(schema.get("items", {}), chance, whole, depth + 1) for _ in range(count)]
    if kind == "integer":
        return chance.choice((1, 2, 10, 50))
    if kind == "number":
        return chance.choice((0.5, 1, 2.5))
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "null":
        return None
    if kind == "string":
        return "2024-05-01T00:00:00+00:00" if schema.get("format") == "date-time" else chance.choice(WORDS)
    return chance.choice((1, "text", None, {"a": [1]}))
