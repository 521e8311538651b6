"""Writes `docs/reference/mcp.md` from the tools, resources and prompts themselves, with what each set of tools costs.

python tools/mcp_reference.py        writes docs/reference/mcp.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import perdure
from perdure.adapters.models.tokens import token_counter
from perdure.interfaces.mcp import resources, sets
from perdure.interfaces.mcp.offers import Offer
from perdure.interfaces.mcp.prompts import PROMPTS
from perdure.interfaces.mcp.server import tool_of

FILE = Path(__file__).parent.parent / "docs/reference/mcp.md"
TOKENS = token_counter("o200k")
SET_WORDS = {
    "state": "Any JSON under a key.",
    "series": "Time series with what is covered, so that nothing is fetched twice.",
    "knowledge": "Facts: remember, recall, look at, forget.",
    "todos": "What the user means to do.",
    "lessons": "How to behave.",
    "host": "What your program adds with `engine.add_tool`.",
    "conversation": "The log of what was said.",
    "documents": "Sessions as JSON documents: load, save, compact.",
    "overseer": "What matters before a goal; what to keep of a tool's result.",
    "upkeep": "History, pins, archive, changes and undo; the health of the store.",
}
HEAD = """# MCP: tools, resources and prompts

Every tool, resource and prompt, written from the code by `tools/mcp_reference.py`. [How to connect a client](../how-to/mcp.md).

Both eras of the protocol are served: the handshake of 2025-11-25 and before, and 2026-07-28 without one.
"""
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")
ERRORS = """## Errors

A failed call is a result with `isError`: `{"success": false, "error": …, "remedy": …, "code": …}`. Codes are those of
[Errors](errors.md), and `forbidden` where the API key does not permit it. Errors of the protocol:

| Code | When |
|---|---|
| -32700 | Not JSON: cut off, not UTF-8, NaN, nested too deep. |
| -32600 | Not a single JSON-RPC request: a batch, no method, a bad id, too long, nested deeper than 100 levels. |
| -32601 | The method is not served. |
| -32602 | A lone surrogate, wrong `params`, no such tool, prompt or resource. |
| -32603 | The store failed, or a bug; the server's log names it. |
"""


def page() -> str:
    """The whole page."""
    with perdure.open("memory:") as engine:
        every = sets.by_set(engine.memory("nobody").tools)
    parts = [HEAD, *_sets(every), *_tools(every), *_resources(), *_prompts(), ERRORS]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def cost(offers: Iterable[Offer]) -> int:
    """Tokens of the answer to `tools/list`, as o200k counts them."""
    tools = [tool_of(one).model_dump(mode="json", by_alias=True, exclude_none=True) for one in offers]
    return TOKENS.count(json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False))


def _sets(every: Any) -> Iterator[str]:
    yield "## Sets of tools\n"
    yield (
        "`perdure mcp --tools NAMES` offers some sets: names separated by commas, `default` or `all`. Each costs tokens in\n"
        "every conversation (o200k, the whole answer to `tools/list`).\n"
    )
    rows = [f"| `{name}` | {len(every[name])} | {cost(every[name]):,} | {SET_WORDS[name]} |" for name in sets.NAMES]
    for name, names in (("default", sets.DEFAULT), ("all", sets.NAMES)):
        chosen = [offer for one in names for offer in every[one]]
        words = ", ".join(f"`{one}`" for one in names) if name == "default" else "Every set."
        rows.append(f"| **{name}** | {len(chosen)} | {cost(chosen):,} | {words} |")
    yield "\n".join(["| Set | Tools | Tokens | |", "|---|---|---|---|", *rows, ""])


def _tools(every: Any) -> Iterator[str]:
    for name in sets.NAMES:
        if not every[name]:
            continue
        yield f"## Tools: {name}\n"
        yield "\n".join([*(_tool(offer) for offer in every[name]), ""])


def _tool(offer: Offer) -> str:
    """What it does in a sentence, whether it writes, and its parameters by name: the schema has the rest."""
    schema = offer.schema()
    names = [f"`{name}`{'*' if name in schema['required'] else ''}" for name in schema["properties"]]
    said = [f"- `{offer.name}` ({_marks(offer)}): {SENTENCE_END.split(' '.join(offer.description.split()), maxsplit=1)[0]}"]
    return " ".join([*said, *([f"Takes {', '.join(names)}."] if names else [])])


def _marks(offer: Offer) -> str:
    if offer.permission == "read":
        return "reads"
    marks = ["writes" if offer.permission == "write" else "needs the permission `admin`"]
    return ", ".join([*marks, *(["destructive"] if offer.destructive else []), *(["idempotent"] if offer.idempotent else [])])


def _resources() -> Iterator[str]:
    yield "## Resources\n"
    yield "JSON. Ids in an address are percent-encoded, as in `perdure://sessions/monday%20morning`.\n"
    rows = [f"| `{kind.uri}`, `{kind.template}` | {kind.description} |" for kind in resources.KINDS]
    yield "\n".join(["| Address | |", "|---|---|", *rows, ""])


def _prompts() -> Iterator[str]:
    yield "## Prompts\n"
    rows = []
    for one in PROMPTS.values():
        arguments = ", ".join(f"`{arg.name}`: {arg.description}" for arg in one.arguments)
        rows.append(f"| `{one.name}` | {arguments or 'none'} | {one.description} |")
    yield "\n".join(["| Prompt | Arguments | |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
    print(f"{FILE} is written")
