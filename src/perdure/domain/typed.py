"""Whether a value is what its class declares: asked of values that were read from rows which somebody may have changed.

Python checks no annotations, and the services check what callers give them. A row that comes from elsewhere met neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from perdure.domain.errors import InvalidInput
from perdure.domain.text import check_json, utf8_size
from perdure.domain.times import from_us

COUNT_MAX = 2**53
"""Nothing is counted further; sums of such counts still fit into any store."""
RANGES: Mapping[str, tuple[float, float]] = {
    "confidence": (0, 1),
    "progress": (0, 1),
    "importance": (0, 3),
    "floor_us": (-(2**62), 2**62),
}
"""Of numbers that are neither counts nor instants."""


def misfit(value: object) -> str | None:
    """The first field of a dataclass, at any depth, that holds what it may not; None if there is none."""
    return next(_misfits(value, ""), None)


@cache
def _hints(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((one.name, hints[one.name]) for one in fields(kind))


def _misfits(value: Any, path: str) -> Iterator[str]:
    for name, hint in _hints(value.__class__):
        held = getattr(value, name)
        if not _fits(name, held, hint):
            yield f"`{path}{name}` is {held!r:.40}"


def _fits(name: str, value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(name, value, one) for one in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin is tuple:
        inner = get_args(hint)
        return isinstance(value, tuple) and all(_fits(name, one, inner[0]) for one in value)
    if origin is not None:  # a mapping of whatever is JSON, or of counts
        key, held = get_args(hint)
        return isinstance(value, Mapping) and all(_fits("", k, key) and _fits(name, v, held) for k, v in value.items())
    if isinstance(hint, NewType):
        return _fits(name, value, hint.__supertype__)
    if is_dataclass(hint):
        return isinstance(value, hint) and misfit(value) is None  # type: ignore[arg-type]
    return _is_plain(name, value, hint)


def _is_plain(name: str, value: object, hint: Any) -> bool:
    if hint is Any:
        return _passes(check_json, value)
    if hint is str:
        return isinstance(value, str) and _passes(utf8_size, value)
    if hint in (bool, datetime, NoneType):
        return isinstance(value, hint)
    if isinstance(value, bool) or not isinstance(value, int if hint is int else int | float):
        return False
    return _in_range(name, value)


def _in_range(name: str, number: float) -> bool:
    if name in RANGES:
        least, most = RANGES[name]
        return least <= number <= most
    if name.endswith("_us"):
        try:
            from_us(int(number))
        except OverflowError:
            return False
        return True
    return math.isfinite(number) and 0 <= number <= COUNT_MAX


def _passes(check: Any, value: object) -> bool:
    try:
        check(value, "it")
    except InvalidInput:
        return False
    return True
