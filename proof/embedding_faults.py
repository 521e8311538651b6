"""What servers of embedders do wrong, by name: all that any server does, and what only vectors can have."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from perdure.testing.model_server import Act, ModelExchange
from proof.chat_faults import body_faults, status, status_faults, wire_faults
from proof.model_host import Fault

Rows = list[Any]
PLAUSIBLE = ("rows too short", "rows too long", "rows of one number")
CODES = (204, 302, 307, 400, 401, 403, 404, 408, 413, 422, 429, 500, 503)


def _texts(exchange: ModelExchange) -> list[str]:
    given = exchange.asked.body["input"]
    return [given] if isinstance(given, str) else given


def _right(exchange: ModelExchange) -> Rows:
    answer = json.loads(exchange.vectors())
    return answer["embeddings"] if "embeddings" in answer else [one["embedding"] for one in answer["data"]]


def _rows(change: Callable[[Rows], Rows]) -> Act:
    """The right rows, changed, in the form of the protocol."""

    def act(exchange: ModelExchange) -> None:
        rows = change(_right(exchange))
        if exchange.asked.path.startswith("/api"):
            exchange.send(json.dumps({"embeddings": rows}).encode())
        else:
            exchange.send(json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}).encode())

    return act


def _each(change: Callable[[Rows], Any]) -> Act:
    return _rows(lambda rows: [change(row) for row in rows])


def _entries(change: Callable[[list[dict[str, Any]]], Any], ollama: Callable[[Rows], Any]) -> Act:
    """The entries of OpenAI's form, changed; of Ollama's form, which has no places, something else that is wrong."""

    def act(exchange: ModelExchange) -> None:
        rows = _right(exchange)
        if exchange.asked.path.startswith("/api"):
            exchange.send(json.dumps({"embeddings": ollama(rows)}).encode())
        else:
            exchange.send(
                json.dumps({"data": change([{"index": at, "embedding": row} for at, row in enumerate(rows)])}).encode()
            )

    return act


def _base64(row: Rows) -> str:
    return base64.b64encode(struct.pack(f"{len(row)}f", *row)).decode()


def vector_faults() -> Iterator[Fault]:
    acts: Mapping[str, Act] = {
        "rows too short": _each(lambda row: row[:3]),
        "rows too long": _each(lambda row: row * 2),
        "rows of one number": _each(lambda row: row[:1]),
        "rows of no number": _each(lambda row: []),
        "rows of many lengths": _rows(lambda rows: [row[: 1 + at % 7] for at, row in enumerate([*rows, *rows])]),
        "a row too few": _rows(lambda rows: rows[:-1]),
        "no rows": _rows(lambda rows: []),
        "a row too many": _rows(lambda rows: [*rows, rows[0]]),
        "twice the rows": _rows(lambda rows: [*rows, *rows]),
        "NaN": _each(lambda row: [float("nan"), *row[1:]]),
        "all NaN": _each(lambda row: [float("nan")] * len(row)),
        "infinity": _each(lambda row: [float("inf"), *row[1:]]),
        "minus infinity": _each(lambda row: [*row[:-1], float("-inf")]),
        "a number that overflows": _each(lambda row: [10**400, *row[1:]]),
        "numbers without measure": _each(lambda row: [1e300] * len(row)),
        "zeros": _each(lambda row: [0.0] * len(row)),
        "nearly zeros": _each(lambda row: [1e-320] * len(row)),
        "a null": _each(lambda row: [None, *row[1:]]),
        "all null": _each(lambda row: None),
        "texts for numbers": _each(lambda row: [str(one) for one in row]),
        "one text for a number": _each(lambda row: ["x", *row[1:]]),
        "true for numbers": _each(lambda row: [True] * len(row)),
        "objects for numbers": _each(lambda row: [{"v": one} for one in row]),
        "rows in rows": _each(lambda row: [row]),
        "rows as objects": _each(lambda row: {str(at): one for at, one in enumerate(row)}),
        "rows as base64": _each(_base64),
        "rows as text": _each(lambda row: json.dumps(row)),
        "rows of a hundred thousand": _each(lambda row: row * 12_500),
        "places from one on": _entries(lambda found: [{**one, "index": one["index"] + 1} for one in found], lambda rows: None),
        "places all the same": _entries(
            lambda found: [{**one, "index": 0} for one in [*found, *found]], lambda rows: rows + rows
        ),
        "no places": _entries(lambda found: [{"embedding": one["embedding"]} for one in found], lambda rows: {}),
        "places as texts": _entries(lambda found: [{**one, "index": str(one["index"])} for one in found], lambda rows: "rows"),
        "negative places": _entries(lambda found: [{**one, "index": -1 - one["index"]} for one in found], lambda rows: 5),
        "places of null": _entries(lambda found: [{**one, "index": None} for one in found], lambda rows: [None]),
        "entries of null": _entries(lambda found: [None for _ in found], lambda rows: [[None]]),
        "entries by name": _entries(lambda found: {str(one["index"]): one for one in found}, lambda rows: {"0": rows}),
        "entries without rows": _entries(lambda found: [{"index": one["index"]} for one in found], lambda rows: [[]]),
        "an error beside": lambda exchange: exchange.send(b'{"error": "input length exceeds the context length"}'),
    }
    yield from (Fault(name, act, plausible=name in PLAUSIBLE) for name, act in acts.items())


def embedding_faults(elsewhere: str) -> list[Fault]:
    """All of them, each under a name of its own."""
    codes = {f"HTTP {code}" for code in CODES}
    found = [*vector_faults(), *wire_faults(), *body_faults()]
    found += [one for one in status_faults(elsewhere) if one.name in codes]
    found += [Fault("HTTP 429, again after 3600", status(429, retry_after="3600"))]
    assert len({one.name for one in found}) == len(found)
    return found


def swapped(exchange: ModelExchange) -> None:
    """No fault: OpenAI's protocol lets the entries come in any order, and each says its place."""
    if exchange.asked.path.startswith("/api") or not exchange.asked.wants_vectors:
        exchange.send(exchange.vectors())
        return
    answer = json.loads(exchange.vectors())
    exchange.send(json.dumps({**answer, "data": answer["data"][::-1]}).encode())
