"""What text may enter the store: rules shared by ids, contents and JSON, so that every backend accepts the same."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.text.secrets import SECRET_CHARS_MIN, may_hold_secrets, secret_in, without_secrets, without_secrets_in

JSON_DEPTH_MAX = 64
JSON_PARTS_MAX = 2**26
INTEGER_BITS_MAX = 3_000
SECRET_CHARS_READ = 400
"""So far beyond what is shown of a value it is searched for secrets."""

# The shape of a JSON value is its caller's affair, so it is `Any` to the type checker; `check_json` holds it to JSON.
Json: TypeAlias = Any


# Made once: `json.dumps` with options of its own builds an encoder for every call.
compact_json: Callable[[Json], str] = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def brief(value: object, chars_max: int = 40) -> str:
    """How an error names a value, whatever that is: its beginning, and in no more time than that takes.

    Neither a number of 5,000 digits nor 10,000 lists in one another have a `repr`; that of a large list is larger still.
    """
    try:
        # Before it is cut: the beginning of a secret has its form no longer.
        if isinstance(value, str):
            return repr(without_secrets(value[: chars_max + SECRET_CHARS_READ])[: chars_max + 1])[:chars_max]
        return (repr(value) if isinstance(value, int | float) else without_secrets(_REPR.repr(value)))[:chars_max]
    except (ValueError, RecursionError):
        return f"a `{type(value).__name__}`"


_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxother, _REPR.maxstring = 3, 200, 200


def utf8_size(text: str, what: str) -> int:
    """Bytes of `text` in UTF-8. NUL and lone surrogates are refused: PostgreSQL cannot hold the one, no store the other."""
    if type(text) is not str and (not isinstance(text, str) or type(text).__eq__ is not str.__eq__):
        # Text that is equal to what it pleases would be found under other names than its own.
        raise InvalidInput(f"{what} must be text, not `{type(text).__name__}`; pass a `str`")
    if text.isascii():
        if "\0" in text:
            raise InvalidInput(f"{what} contains a NUL character at {text.index(chr(0))}; remove it")
        return len(text)
    if "\0" in text:
        raise InvalidInput(f"{what} contains a NUL character at {text.index(chr(0))}; remove it")
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} contains a lone surrogate at {error.start}, which is not Unicode text; "
            "decode the source with errors='replace' first"
        ) from None


def check_flag(value: bool, what: str) -> bool:
    """`value` if it is a yes or a no. The text "false" would mean the opposite of what it says."""
    if not isinstance(value, bool):
        raise InvalidInput(f"`{what}` = {brief(value)} must be True or False")
    return value


def check_choice(value: object, what: str, choices: Collection[str]) -> None:
    """`value` must be one of these words, not something that says to be equal to one."""
    if type(value).__eq__ is not str.__eq__ or value not in choices:
        raise InvalidInput(f"`{what}` = {brief(value)} is unknown; use one of {', '.join(choices)}")


def check_text(value: object, what: str) -> str:
    """`value` if it is Unicode text."""
    if not isinstance(value, str):
        raise InvalidInput(f"`{what}` = {brief(value)} must be a text")
    utf8_size(value, f"`{what}`")
    return value


def are_several(value: object) -> bool:
    """Whether it can be gone through, and is not one thing: a text, a mapping, or a class, which only looks as if it could."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def check_texts(value: object, what: str) -> tuple[str, ...]:
    """`value` as a tuple if it is a list of texts."""
    if (
        isinstance(value, str | bytes | bytearray | memoryview)
        or not isinstance(value, Sequence)
        or not all(isinstance(one, str) for one in value)
    ):
        raise InvalidInput(f"`{what}` = {brief(value, 80)} must be a list of texts")
    return tuple(value)


def check_id(value: str, what: str, *, bytes_max: int) -> str:
    """`value` if a caller may use it as an id: any Unicode, not empty, bounded, and no secret.

    A text can lose a secret and be kept. An id that lost one would be another id, and two could become one.
    """
    return check_no_secret(check_held_id(value, what, bytes_max=bytes_max), what)


def check_held_id(value: str, what: str, *, bytes_max: int) -> str:
    """`value` if a store may hold it as an id: one that looks like a secret may have come in before these were refused."""
    size = utf8_size(value, f"`{what}`")
    if size == 0:
        raise InvalidInput(f"`{what}` is empty; give it at least one character")
    if size > bytes_max:
        raise InvalidInput(f"`{what}` is {size} bytes long, more than the {bytes_max} an id may have; shorten or hash it")
    return value


def check_no_secret(value: str, what: str) -> str:
    """`value` if no secret stands in it. The refusal does not repeat it."""
    if len(value) >= SECRET_CHARS_MIN and (kind := secret_in(value)) is not None:
        article = "an" if kind[0] in "AEIOU" else "a"
        raise InvalidInput(f"`{what}` looks like {article} {kind}; use an id that is none")
    return value


def encode_json(value: object, what: str, *, bytes_max: int, limit: str) -> str:
    """Compact JSON text of `value`, without secrets; what is not JSON is `InvalidInput` naming the path inside it."""
    # Each part takes a byte at least. Lists that hold one another's parts many times over are small in memory only.
    room = [bytes_max]
    if not _is_json(value, 0, room):
        if room[0] >= 0:
            room = [bytes_max]
            _explain(value, what, 0, room)
        if room[0] < 0:
            raise LimitExceeded(f"{what} has more parts than `{limit}` = {bytes_max} bytes; send less or raise the limit")
    text = compact_json(value)
    if may_hold_secrets(text):
        text = compact_json(without_secrets_in(value))
    size = len(text) if text.isascii() else len(text.encode())
    if size > bytes_max:
        raise LimitExceeded(f"{what} is {size} bytes as JSON, more than `{limit}` = {bytes_max}; send less or raise the limit")
    return text


def check_json(value: object, what: str) -> None:
    """Raise `InvalidInput` naming the first place in `value` that JSON cannot carry."""
    # Large values are common and mostly sound: look first, and work out the path only for the one that is not.
    room = [JSON_PARTS_MAX]
    if not _is_json(value, 0, room):
        if room[0] >= 0:
            room = [JSON_PARTS_MAX]
            _explain(value, what, 0, room)
        if room[0] < 0:
            raise InvalidInput(f"{what} has more than {JSON_PARTS_MAX} parts; send less")


def same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON. To Python, 1, 1.0 and True are equal; to JSON they are not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)


def has_more_parts(value: object, most: int) -> bool:
    """Whether lists and objects, in one another at whatever depth, have more parts than that. It looks no further."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        items = one.values() if isinstance(one, dict) else one if isinstance(one, list | tuple) else ()
        most -= len(items) + 1
        if most < 0:
            return True
        waiting.extend(items)
    return False


def _is_json(value: object, depth: int, room: list[int]) -> bool:
    kind = type(value)
    if kind is str:
        return _is_text(value)  # type: ignore[arg-type]
    if value is None or kind is bool:
        return True
    if depth > JSON_DEPTH_MAX:
        return False
    if kind is int:
        return value.bit_length() <= INTEGER_BITS_MAX  # type: ignore[attr-defined, no-any-return]
    if kind is float:
        return math.isfinite(value)  # type: ignore[arg-type]
    if kind is dict:
        items = value.items()  # type: ignore[attr-defined]
        return _fits(len(items), room) and all(
            type(key) is str and _is_text(key) and _is_json(item, depth + 1, room) for key, item in items
        )
    if kind is list or kind is tuple:
        return _fits(len(value), room) and all(_is_json(item, depth + 1, room) for item in value)  # type: ignore[arg-type, attr-defined]
    return False


def _fits(parts: int, room: list[int]) -> bool:
    room[0] -= parts + 1
    return room[0] >= 0


def _is_text(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _explain(value: object, path: str, depth: int, room: list[int]) -> None:
    """The careful look: what exactly is wrong, and where. Subclasses of the plain types pass here."""
    if depth > JSON_DEPTH_MAX:
        raise InvalidInput(f"{path} is nested deeper than {JSON_DEPTH_MAX} levels; flatten it")
    if isinstance(value, str):
        utf8_size(value, path)
    elif isinstance(value, int):
        # Python refuses to read back integers of more than 4,300 digits; staying below keeps every stored value readable.
        if value.bit_length() > INTEGER_BITS_MAX:
            raise InvalidInput(f"{path} is an integer of more than {INTEGER_BITS_MAX} bits; send it as text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{path} is {value}, which JSON cannot carry; use null or text")
    elif isinstance(value, dict):
        for key, item in value.items() if _fits(len(value), room) else ():
            if not isinstance(key, str):
                raise InvalidInput(f"{path} has a key of type `{type(key).__name__}`; JSON keys are text")
            utf8_size(key, f"a key of {path}")
            _explain(item, f"{path}.{key[:40]}", depth + 1, room)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value if _fits(len(value), room) else ()):
            _explain(item, f"{path}[{index}]", depth + 1, room)
    elif value is not None:
        raise InvalidInput(f"{path} is a `{type(value).__name__}`, which JSON cannot carry; convert it to text or a number")
