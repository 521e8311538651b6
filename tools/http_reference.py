"""Writes `docs/reference/http.md` from the API's own description. Run it after a change to a route."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import perdure
from perdure.interfaces.server import build

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "http.md"
METHODS = ("get", "put", "post", "patch", "delete")
INTRODUCTION = """# HTTP API

Every operation, written from the API's own description by `tools/http_reference.py`. On a running server, `/docs` shows each
field with type, bounds and an example, to try; `/openapi.json` is the same for programs. Fields mean the same as the parameters
of [Python](python-calls.md#parameters).

```sh
curl -H "Authorization: Bearer $(perdure admin token)" http://127.0.0.1:8765/v1/users/ana/messages
```

- `*`: required. Operations on a conversation also take `agent` and `channel` in the query (`default`).
- Ids in paths may have any character; encode them, a slash as `%2F`.
- `X[]` is a list: `items` and `next`. For more, give `next` as `cursor`; `null` is the end. Lists take `limit` and `cursor`.
- A body is `application/json`. Unknown fields and parameters are refused.
- With the header `Idempotency-Key`, a repeated write is carried out once.
- An [error](errors.md) is `application/problem+json` (RFC 9457): `status`, `code`, `detail`, and `errors` for each wrong field.
"""
AT_THE_ADDRESS = ("user", "agent", "channel")
PAGING = ("limit", "cursor")
ANYTHING = "any JSON"
FIRST = re.compile(r".+?[.!?](?=\s|$)", re.DOTALL)


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
        yield ""


def _operation(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    answers = _answers(operation)
    paging = PAGING if answers.endswith("[]") else ()
    asked = [_name(one["name"], one.get("required", False)) for one in operation.get("parameters", ()) if _is_own(one, paging)]
    fields = list(_fields(operation, schemas))
    said = [_first(operation.get("description") or f"{operation['summary']}.")]
    said += [f"Query: {', '.join(asked)}."] if asked else []
    said += [f"Body: {', '.join(fields)}."] if fields else []
    said += [f"Answers {answers}."] if answers != ANYTHING else []
    yield f"- `{method.upper()} {path}`: {' '.join(said)}"


def _is_own(parameter: dict[str, Any], paging: tuple[str, ...]) -> bool:
    return parameter["in"] == "query" and parameter["name"] not in (*AT_THE_ADDRESS, *paging)


def _name(name: str, required: bool) -> str:
    return f"`{name}`{'*' if required else ''}"


def _first(text: str) -> str:
    """The first sentence; the call in Python has them all. A list of choices stays whole."""
    if text.startswith("- "):
        return " ".join(line.removeprefix("- ") for line in text.splitlines())
    found = FIRST.match(text)
    return " ".join((found[0] if found else text).split())


def _fields(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is None:
        return
    found = schemas[body["$ref"].rpartition("/")[2]] if "$ref" in body else body
    for name in found.get("properties", {}):
        yield _name(name, name in found.get("required", ()))


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
    return str(schema.get("type", ANYTHING))


def _answers(operation: dict[str, Any]) -> str:
    told = []
    for status, response in sorted(operation["responses"].items()):
        if status.startswith("2"):
            content = response.get("content", {})
            told.append(_shape(content) if content else status)
    return " or ".join(dict.fromkeys(told))


def _shape(content: dict[str, Any]) -> str:
    media, told = next(iter(content.items()))
    schema = told.get("schema", {})
    if media != "application/json":
        return ", ".join(f"`{one}`" for one in content)
    items = schema.get("properties", {}).get("items")
    if items is not None:
        return f"{_kind(items.get('items', {}))}[]"
    if "properties" in schema:
        return ", ".join(f"`{name}`" for name in schema["properties"])
    return _kind(schema)


def described() -> dict[str, Any]:
    """The description of an API over an empty store."""
    with perdure.open("memory:") as engine:
        found: dict[str, Any] = build(engine).openapi()
        return found


if __name__ == "__main__":
    PAGE.write_text(page(described()), encoding="utf-8")
