"""The store: items are values of a user's state, under keys that start with `langgraph-store/`.

An item is verbatim. It is found by the meaning of its fields, unless `index=False`, and goes when its time is up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import ge, gt, le, lt
from typing import Any
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    validate_op_namespace,
)

from perdure.domain.state import TEXTS_MAX
from perdure.handles.memory import Memory
from perdure.integrations.thread import in_thread

PREFIX = "langgraph-store"
SEARCHED_MAX = 1_000
"""So many of the nearest are looked through for those that fit a filter."""
EMPTY = "%"
"""Stands for an empty part of a key: no part that is quoted looks like it."""
REFRESHED_AFTER = 0.01
"""An item is read without being written again until such a share of its time has passed."""
WHOLE = ("$",)


class PerdureStore(BaseStore):
    """Keeps the items of a user's graphs. It can be called from threads and from an event loop."""

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        fields: Sequence[str] = WHOLE,
        ttl: TTLConfig | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`fields` are the paths whose texts an item is found by, as in the `index` of LangGraph's own stores; by default the
        whole of it. Meaning is compared by the embedder of the engine. `now` is the clock of the engine, if it has its own.
        """
        self._state = memory.state
        self._fields = tuple(fields)
        self._now = now
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer what is asked, in order, as it was before; then put what is to be put, each key once."""
        wanted = list(ops)
        for op in wanted:
            validate_op_namespace(op)
        results = [self._answered(op) for op in wanted]
        for op in {(op.namespace, op.key): op for op in wanted if isinstance(op, PutOp)}.values():
            self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same from an event loop."""
        return await in_thread(self.batch, list(ops))

    def _answered(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._read(_key(op.namespace, op.key), refresh=op.refresh_ttl)
        if isinstance(op, SearchOp):
            return self._searched(op)
        if isinstance(op, ListNamespacesOp):
            return self._listed(op)
        if not isinstance(op, PutOp):
            raise TypeError(f"an operation of type {type(op).__name__} is unknown; use those of langgraph.store.base")
        return None

    # -- items

    def _put(self, op: PutOp) -> None:
        key = _key(op.namespace, op.key)
        if op.value is None:
            self._state.delete(key)
            return
        now = self._now().isoformat()
        before = self._stored(key)
        created = now if before is None else before["created"]
        held = {"value": dict(op.value), "created": created, "updated": now, "ttl": op.ttl}
        self._save(key, held, self._texts(op))

    def _save(self, key: str, held: Mapping[str, Any], texts: Sequence[str]) -> None:
        seconds = None if held["ttl"] is None else held["ttl"] * 60
        whole = {**held, "texts": list(texts), "since": self._now().isoformat()}
        self._state.save(key, whole, verbatim=True, index=texts, expires_in_s=seconds)

    def _texts(self, op: PutOp) -> Sequence[str]:
        if op.index is False:
            return ()
        paths = self._fields if op.index is None else op.index
        return [text for path in paths for text in get_text_at_path(op.value, path)][:TEXTS_MAX]

    def _stored(self, key: str) -> dict[str, Any] | None:
        return _whole(self._state.load(key))

    def _read(self, key: str, *, refresh: bool) -> Item | None:
        held = self._stored(key)
        if held is None:
            return None
        if refresh:
            self._refresh(key, held)
        return Item(**_about(key, held))

    def _refresh(self, key: str, held: Mapping[str, Any]) -> None:
        """Begin the time of an item anew, if it has one and the store is set to do so."""
        if held["ttl"] is None or not (self.ttl_config or {}).get("refresh_on_read", False):
            return
        if self._now() - datetime.fromisoformat(held["since"]) > timedelta(minutes=held["ttl"] * REFRESHED_AFTER):
            self._save(key, {name: held[name] for name in ("value", "created", "updated", "ttl")}, held["texts"])

    # -- finding

    def _searched(self, op: SearchOp) -> list[SearchItem]:
        found: list[SearchItem] = []
        skipped = 0
        for key, held, score in self._candidates(op):
            if not all(_fits(held["value"], path, wanted) for path, wanted in (op.filter or {}).items()):
                continue
            if skipped < op.offset:
                skipped += 1
                continue
            if len(found) >= op.limit:
                break
            if op.refresh_ttl:
                self._refresh(key, held)
            found.append(SearchItem(**_about(key, held), score=score))
        return found

    def _candidates(self, op: SearchOp) -> Iterator[tuple[str, dict[str, Any], float | None]]:
        """The nearest to the question first, if there is one; behind them, without a score, what is not found by meaning."""
        pattern = "/".join((PREFIX, *map(_part, op.namespace_prefix), "*"))
        told: set[str] = set()
        if op.query and op.query.strip():
            most = SEARCHED_MAX if op.filter else min(SEARCHED_MAX, max(1, op.offset + op.limit))
            near = self._state.search(pattern, query=op.query, limit=most)
            told.update(near.results)
            for key, value in near.results.items():
                if (held := _whole(value)) is not None:
                    yield key, held, near.scores[key]
            if near.truncated:
                return
        for info in sorted(self._state.list(pattern), key=lambda one: one.updated_at, reverse=True):
            if info.key not in told and (held := self._stored(info.key)) is not None:
                yield info.key, held, None

    def _listed(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        spaces = {_place(info.key)[0] for info in self._state.list(f"{PREFIX}/*")}
        fitting = {one[: op.max_depth] for one in spaces if all(_matches(one, condition) for condition in conditions)}
        return sorted(fitting)[op.offset : op.offset + op.limit]


def _whole(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None  # there is none, or it told of what was forgotten


def _about(key: str, held: Mapping[str, Any]) -> dict[str, Any]:
    namespace, name = _place(key)
    moments = {f"{one}_at": datetime.fromisoformat(held[one]) for one in ("created", "updated")}
    return {"namespace": namespace, "key": name, "value": held["value"], **moments}


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


# -- filters


def _fits(value: Mapping[str, Any], path: str, wanted: Any) -> bool:
    """Whether the field of that name, or at that path of names between dots, is as wanted."""
    held: Any = value
    for name in (path,) if path in value else path.split("."):
        held = held.get(name) if isinstance(held, Mapping) else None
    return _is_as(held, wanted)


def _is_as(held: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_holds(held, name, other) for name, other in wanted.items())
        return isinstance(held, Mapping) and all(_is_as(held.get(name), other) for name, other in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(held, list | tuple) and len(held) == len(wanted) and all(map(_is_as, held, wanted))
    return bool(held == wanted)


_ORDERED = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


def _holds(held: Any, name: str, other: Any) -> bool:
    if name in ("$eq", "$ne"):
        return _is_as(held, other) == (name == "$eq")
    if name not in _ORDERED:
        raise ValueError(f"the operator {name!r:.40} is unknown in a filter; use $eq, $ne, {', '.join(_ORDERED)}")
    numbers = isinstance(held, int | float) and isinstance(other, int | float)
    if not numbers and not (isinstance(held, str) and isinstance(other, str)):
        return False  # there is nothing to compare
    return bool(_ORDERED[name](held, other))


# -- keys


def _key(namespace: tuple[str, ...], name: str) -> str:
    return "/".join((PREFIX, *map(_part, namespace), _part(name)))


def _place(key: str) -> tuple[tuple[str, ...], str]:
    _, *namespace, name = ("" if part == EMPTY else unquote(part) for part in key.split("/"))
    return tuple(namespace), name


def _part(text: str) -> str:
    """A part of a key: without what divides keys or is a wildcard, and never empty."""
    return quote(text, safe="") or EMPTY
