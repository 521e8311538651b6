"""Writes `docs/reference/http.md` from the API's own description. Run it after a change to a route."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perdure
from perdure.interfaces.server import build

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "http.md"
METHODS = ("get", "put", "post", "patch", "delete")
INTRODUCTION = """# HTTP API

This page is made from the API's own description, which a running server has at `/openapi.json` (OpenAPI 3.1).

- Ids in paths may hold any character; encode them, a slash as `%2F`.
- `agent` and `channel` say which conversation is meant; both are `default` if left out.
- A list answers `items` and `next`; give `next` as `cursor` for more. `null`: there is no more.
- A body is `application/json`. Unknown fields and parameters are refused.
- An [error](errors.md) is `application/problem+json` (RFC 9457): `status`, `code`, `detail`, and `errors` for each wrong field.
- In the tables, `*` marks what must be given.
- With `Idempotency-Key`, a write that is repeated is carried out once.
"""


def page(description: dict[str, Any]) -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *_parts(description)]).rstrip() + "\n"


def _parts(description: dict[str, Any]) -> Iterator[str]:
    every = [
        (path, method, item[method]) for path, item in description["paths"].items() for method in METHODS if method in item
    ]
    schemas = description["components"]["schemas"]
    for tag in description["tags"]:
        yield f"## {tag['name'].capitalize()}\n\n{tag['description']}\n"
        for path, method, operation in every:
            if operation["tags"][0] == tag["name"]:
                yield from _operation(path, method, operation, schemas)


def _operation(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    yield f"### {operation['summary']}\n\n`{method.upper()} {path}` (`{operation['operationId']}`)\n"
    if operation.get("description"):
        yield f"{operation['description']}\n"
    rows = [_parameter(one) for one in operation.get("parameters", ()) if one["name"] not in ("user", "agent", "channel")]
    rows += list(_fields(operation, schemas))
    if rows:
        yield "\n".join(["| name | in | type | |", "|---|---|---|---|", *rows]) + "\n"
    yield f"Answers {_answers(operation)}.\n"


def _parameter(one: dict[str, Any]) -> str:
    name = f"`{one['name']}`" + (" *" if one.get("required") else "")
    return f"| {name} | {one['in']} | {_kind(one['schema'])} | {_cell(one.get('description', ''))} |"


def _fields(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is None:
        return
    found = schemas[body["$ref"].rpartition("/")[2]] if "$ref" in body else body
    for name, schema in found.get("properties", {}).items():
        star = " *" if name in found.get("required", ()) else ""
        yield f"| `{name}`{star} | body | {_kind(schema)} | {_cell(schema.get('description', ''))} |"


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        kinds = [_kind(one) for one in schema["anyOf"]]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if schema.get("format") == "date-time":
        return "time"
    return str(schema.get("type", "any JSON"))


def _answers(operation: dict[str, Any]) -> str:
    told = []
    for status, response in sorted(operation["responses"].items()):
        if status.startswith("2"):
            content = response.get("content", {})
            told.append(f"{status} with {_shape(content)}" if content else status)
    errors = sorted(status for status in operation["responses"] if status.startswith(("4", "5")))
    return f"{' or '.join(told)}; errors {', '.join(errors)}"


def _shape(content: dict[str, Any]) -> str:
    media, told = next(iter(content.items()))
    schema = told.get("schema", {})
    if media != "application/json":
        return ", ".join(f"`{one}`" for one in content)
    items = schema.get("properties", {}).get("items")
    if items is not None:
        return f"a list of {_kind(items.get('items', {}))}"
    if "properties" in schema:
        return ", ".join(f"`{name}`" for name in schema["properties"])
    return _kind(schema)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def described() -> dict[str, Any]:
    """The description of an API over an empty store."""
    with perdure.open("memory:") as engine:
        found: dict[str, Any] = build(engine).openapi()
        return found


if __name__ == "__main__":
    PAGE.write_text(page(described()), encoding="utf-8")
