"""Whether a value is what its class declares: asked of values that were read from rows which somebody may have changed.

Python checks no annotations, and the services check what callers give them. A row that comes from elsewhere met neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from perdure.domain.errors import InvalidInput
from perdure.domain.text import brief, check_json, utf8_size
from perdure.domain.times import from_us

Check = Callable[[Any], bool]
COUNT_MAX = 2**53
"""Nothing is counted further; sums of such counts still fit into any store."""
RANGES: Mapping[str, tuple[float, float]] = {
    "confidence": (0, 1),
    "progress": (0, 1),
    "importance": (0, 3),
    "floor_us": (-(2**62), 2**62),
}
"""Of numbers that are neither counts nor instants."""


def misfit(value: Any) -> str | None:
    """The first field of a dataclass that holds what it may not, at whatever depth; None if there is none."""
    for name, fits in _checks(value.__class__):
        held = getattr(value, name)
        if not fits(held):
            return f"`{name}` is {brief(held)}"
    return None


@cache
def _checks(kind: type) -> tuple[tuple[str, Check], ...]:
    """For each field of a class, whether a value fits it: worked out once, since it is asked of every row."""
    hints = get_type_hints(kind)
    return tuple((one.name, _check(one.name, hints[one.name])) for one in fields(kind))


def _check(name: str, hint: Any) -> Check:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        parts = [_check(name, one) for one in inner]
        return lambda value: any(fits(value) for fits in parts)
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in inner
    if origin is tuple:
        each = _check(name, inner[0])
        return lambda value: isinstance(value, tuple) and all(map(each, value))
    if origin is not None:  # a mapping, of whatever is JSON or of counts
        keys, values = _check("", inner[0]), _check(name, inner[1])
        return lambda value: isinstance(value, Mapping) and all(map(keys, value)) and all(map(values, value.values()))
    if isinstance(hint, NewType):
        return _check(name, hint.__supertype__)
    if is_dataclass(hint):
        return lambda value: isinstance(value, hint) and misfit(value) is None  # type: ignore[arg-type]
    return _plain(name, hint)


def _plain(name: str, hint: Any) -> Check:
    if hint is Any:
        return lambda value: _passes(check_json, value)
    if hint is str:
        return lambda value: isinstance(value, str) and _passes(utf8_size, value)
    if hint in (bool, datetime, NoneType):
        return lambda value: isinstance(value, hint)
    kinds = int if hint is int else (int, float)
    within = _is_instant if name.endswith("_us") and name not in RANGES else _between(*RANGES.get(name, (0, COUNT_MAX)))
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool) and within(value)


def _between(least: float, most: float) -> Callable[[float], bool]:
    return lambda number: least <= number <= most  # which nothing that is no number is


def _is_instant(number: float) -> bool:
    try:
        from_us(int(number))
    except OverflowError:
        return False
    return True


def _passes(check: Callable[[Any, str], object], value: object) -> bool:
    try:
        check(value, "it")
    except InvalidInput:
        return False
    return True
