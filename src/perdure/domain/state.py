"""Key-value state: any JSON under a key, with every revision kept.

A value that is kept verbatim, and a list that is appended to, have a form of their own: an object whose first key is a mark.
A verbatim value may have texts that it is found by; they stand beside it.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import JSON_DEPTH_MAX, Json, brief, check_json, compact_json
from perdure.domain.text.secrets import without_secrets
from perdure.domain.values import dataclass, field

MARK = "perdure:"
VERBATIM, LIST, FOUND_BY = f"{MARK}verbatim", f"{MARK}list", f"{MARK}found by"
_BYTES, _TEXT, _TUPLE, _PAIRS = f"{MARK}bytes", f"{MARK}text", f"{MARK}tuple", f"{MARK}pairs"
BEGINNINGS = (f'{{"{VERBATIM}":', f'{{"{LIST}":')
FORGOTTEN_VALUE = "[forgotten]"
"""What stands for a verbatim value that told of what was forgotten: such a value is whole, or gone."""
TEXTS_MAX = 64
"""So many texts a value may be found by: each is compared on its own."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a key's value. A deletion is a revision too, so that it can be taken back."""

    key: str
    number: int
    body: str | None
    """The value as JSON text; None for a deletion."""
    saved_at: datetime
    expires_at: datetime | None = None
    request: str = ""
    """The caller's id of the save, or one of ours: the same save twice is one revision."""

    def alive(self, now: datetime) -> bool:
        return self.body is not None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class StateValue:
    """A value as it was found; `found` tells a stored null from a missing key."""

    key: str
    found: bool
    value: Json = None
    revision: int = 0
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key without its value."""

    key: str
    updated_at: datetime
    size_bytes: int
    revision: int
    preview: str | None = None


@dataclass(frozen=True, slots=True)
class StateMatches:
    """Keys that match, their values, and whether the limit cut the list."""

    pattern: str
    matches: tuple[str, ...]
    results: dict[str, Json] = field(default_factory=dict)
    truncated: bool = False
    scores: dict[str, float] = field(default_factory=dict)
    """With a question, how near each is in meaning: 1 is the same. The nearest comes first."""


@dataclass(frozen=True, slots=True)
class ListPart:
    """What one revision of a list adds to it: the list is that of the revision `after`, and then these items."""

    items: tuple[Json, ...]
    """Each in its stored form."""
    after: int = 0
    """0: it begins here."""
    first: int = 0
    """The revision that it begins with."""
    count: int = 0
    """How many items the list has with these."""

    def body(self) -> str:
        told = {"after": self.after, "first": self.first, "count": self.count, "items": list(self.items)}
        check_json(told, "`items`")
        return compact_json({LIST: told})


def beginning_of(body: str) -> str | None:
    """The mark that a stored value begins with, if it has a form of its own."""
    return next((one for one in BEGINNINGS if body.startswith(one)), None)


def is_plain(body: str | None) -> bool:
    """Whether it is a value that may be shown in part, and offered to an agent."""
    return body is None or beginning_of(body) is None


def is_found(body: str | None) -> bool:
    """Whether a value is in the search index: a plain one by its key and beginning, a verbatim one by the texts it has."""
    return body is not None and (is_plain(body) or bool(found_by(body)))


def found_by(body: str | None) -> tuple[str, ...]:
    """The texts that a verbatim value is found by."""
    if body is None or not body.startswith(BEGINNINGS[0]) or FOUND_BY not in body:
        return ()
    return tuple(json.loads(body).get(FOUND_BY, ()))


def check_texts(texts: object) -> tuple[str, ...]:
    """The texts that a value is to be found by, each in one line, without secrets: unlike the value, they are shown."""
    if not isinstance(texts, list | tuple):
        raise InvalidInput(f"`index` = {brief(texts)} must be a list of texts; to give one, put it into one")
    if len(texts) > TEXTS_MAX:
        raise InvalidInput(f"`index` has {len(texts)} texts, more than {TEXTS_MAX}; give those that matter")
    for place, one in enumerate(texts):
        if not isinstance(one, str):
            raise InvalidInput(f"`index[{place}]` = {brief(one)} must be a text")
    return tuple(without_secrets(line) for place, one in enumerate(texts) if (line := _line(one, f"`index[{place}]`")))


def _line(text: str, what: str) -> str:
    return " ".join(_text(text, what).replace("\0", " ").split())


def check_unmarked(value: Json) -> None:
    """Refuse a value that would be mistaken for one of ours."""
    if isinstance(value, dict) and value and next(iter(value)) in (VERBATIM, LIST):
        raise InvalidInput(
            f"`value` begins with the key {next(iter(value))!r}, which is reserved; save it with `verbatim=True`"
        )


def list_part(body: str | None) -> ListPart | None:
    """What a revision adds to a list, if it is one of a list."""
    if body is None or not body.startswith(BEGINNINGS[1]):
        return None
    try:
        told = json.loads(body)[LIST]
        return ListPart(tuple(told["items"]), told["after"], told["first"], told["count"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"a part of a list in an unknown form: {type(error).__name__}") from None


def verbatim_body(value: object, texts: Sequence[str] = ()) -> str:
    """The stored form of a value that comes back as it is, and is found by these texts."""
    stored = {VERBATIM: encoded(value, "`value`"), **({FOUND_BY: list(texts)} if texts else {})}
    check_json(stored, "`value`")  # it may be deeper than what it stands for
    return compact_json(stored)


def decoded_body(body: str) -> Json:
    """A value as it was saved; lists are put together by their parts."""
    held = json.loads(body)
    return decoded(held[VERBATIM]) if body.startswith(BEGINNINGS[0]) else held


def check_stored(body: str) -> None:
    """`ValueError` or `InvalidInput` unless a stored value of a form of its own can be read back."""
    part = list_part(body)
    if any(not isinstance(one, str) for one in found_by(body)):
        raise ValueError("a verbatim value that is found by something else than texts")
    try:
        for one in (json.loads(body)[VERBATIM],) if part is None else part.items:
            encoded(decoded(one), "it")
    except (KeyError, TypeError) as error:
        raise ValueError(f"a verbatim value in an unknown form: {type(error).__name__}") from None
    if part is not None and (type(part.after), type(part.first), type(part.count)) != (int, int, int):
        raise ValueError("a part of a list without its numbers")


def encoded(value: object, what: str, depth: int = 0) -> Json:
    """`value` in JSON's terms, so that `decoded` gives it back: equal, and of the same types."""
    kind = type(value)
    if value is None or kind is bool or kind is int or (kind is float and math.isfinite(value)):  # type: ignore[arg-type]
        return value
    if kind is str:
        text = _text(value, what)  # type: ignore[arg-type]
        # No store takes a NUL in a text.
        return {_TEXT: b64encode(text.encode()).decode()} if "\0" in text else text
    if depth > JSON_DEPTH_MAX:
        raise InvalidInput(f"{what:.60} is nested deeper than {JSON_DEPTH_MAX} levels; flatten it, or give it as bytes")
    if kind is bytes:
        return {_BYTES: b64encode(value).decode()}  # type: ignore[arg-type]
    if kind is list or kind is tuple:
        items = [encoded(one, f"{what}[{place}]", depth + 1) for place, one in enumerate(value)]  # type: ignore[arg-type, var-annotated]
        return items if kind is list else {_TUPLE: items}
    if kind is dict:
        held: dict[object, object] = value  # type: ignore[assignment]
        if all(type(key) is str and not key.startswith(MARK) and "\0" not in key for key in held):
            return {_text(str(key), what): encoded(one, f"{what}[{key!r:.40}]", depth + 1) for key, one in held.items()}
        return {_PAIRS: [[encoded(key, what, depth + 1), encoded(one, what, depth + 1)] for key, one in held.items()]}
    raise InvalidInput(
        f"{what} = {brief(value)} cannot be kept verbatim; give null, numbers, text, bytes, lists and objects of them"
    )


def decoded(stored: Json) -> Json:
    """What `encoded` was given."""
    if isinstance(stored, list):
        return [decoded(one) for one in stored]
    if not isinstance(stored, dict):
        return stored
    if len(stored) == 1:
        [(mark, held)] = stored.items()
        if mark == _BYTES:
            return b64decode(held)
        if mark == _TEXT:
            return b64decode(held).decode()
        if mark == _TUPLE:
            return tuple(decoded(one) for one in held)
        if mark == _PAIRS:
            return {decoded(key): decoded(one) for key, one in held}
    return {key: decoded(one) for key, one in stored.items()}


def _text(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} contains a lone surrogate at {error.start}, which is not Unicode text; give it as bytes"
        ) from None
    return text


def without_telling(held: Json, change: Callable[[str], str]) -> Json:
    """A stored value of a form of its own without what `change` would strike out: each value of it stays whole, or goes."""
    if VERBATIM in held:
        tells = _tells(held[VERBATIM], change) or _tells(held.get(FOUND_BY, []), change)
        return {VERBATIM: FORGOTTEN_VALUE} if tells else held
    told = held[LIST]
    return {LIST: {**told, "items": [FORGOTTEN_VALUE if _tells(one, change) else one for one in told["items"]]}}


def _tells(stored: Json, change: Callable[[str], str]) -> bool:
    return any(change(text) != text for text in _texts(decoded(stored)))


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        for run in re.split(_UNPRINTABLE, value.decode("utf-8", "replace")):
            # What stands before a text in packed bytes may look like a letter of it.
            yield from (run, run[1:])
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (*_texts(key), *_texts(one))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


_UNPRINTABLE = "[\x00-\x1f\x7f-\x9f\ufffd]+"
