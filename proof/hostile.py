"""Values that nobody expects: what a fuzz hands to a call instead of what the call asks for, and how it spoils what is sound."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import io
import random
from collections import UserDict, UserString, deque
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

LONG_CHARS = 20_000
HUGE_CHARS = 1_200_000
DEEP = 100_000


class CallersOwn(Exception):
    """What an object of the caller raises by itself. It may come back to the caller as it is: nothing of ours went wrong."""


class Agreeing(str):
    """Text that says to be equal to anything."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


class Disagreeing(str):
    """Text that is not even equal to itself, and prints as something else."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return False

    def __str__(self) -> str:
        return "\ud800 something else"

    def __repr__(self) -> str:
        return "y" * 5_000

    def __format__(self, spec: str) -> str:
        return "x" * 5_000


class Number(int):
    """A number that says to be equal to anything and prints as another one."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        return "x" * 5_000

    __repr__ = __str__


class Failing:
    """Can neither be compared nor printed nor counted."""

    def _fail(self, *_: object) -> Any:
        raise CallersOwn("this object does not want to be looked at")

    __eq__ = __lt__ = __bool__ = __len__ = __iter__ = __str__ = __repr__ = __hash__ = __getitem__ = _fail  # type: ignore[assignment]


class Unzoned(dt.tzinfo):
    """A zone that does not know its offset."""

    def utcoffset(self, _: object) -> None:
        return None

    def dst(self, _: object) -> None:
        return None

    def tzname(self, _: object) -> None:
        return None


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    USER = "user"


def _failing_iterator() -> Iterator[object]:
    yield "first"
    raise CallersOwn("this iterator ends badly")


def failing_function(*_: object, **__: object) -> Any:
    raise CallersOwn("this function does not work")


def _self_holding_list() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def _self_holding_dict() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = made
    return made


def nested(depth: int, *, mapping: bool = False) -> Any:
    """Lists or objects in one another."""
    made: Any = "x"
    for _ in range(depth):
        made = {"a": made} if mapping else [made]
    return made


def laughing(width: int = 4, depth: int = 25) -> Any:
    """Small in memory, and endless for whoever walks through it: each list holds the one before several times."""
    made: Any = ["x"]
    for _ in range(depth):
        made = [made] * width
    return made


TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\t\n",
    "\0",
    "a\0b",
    "\ud800",
    "x\udfff",
    "\udcff\udc80",
    "\ufeff",
    "\u200b",
    "\u2060\u200d",
    "\u202eabc\u202c",
    "\u2066\u202d\u2069",
    "\u2028\u2029\x85",
    "\x1b[2J\x1b]0;t\x07",
    "\r\nSet-Cookie: a=b",
    "z" + "\u0335" * 300,
    "é",
    "e\u0301",
    "👨‍👩‍👧‍👦" * 20,
    "🏴\U000e0067\U000e007f",
    "\U000e0041\U000e0042",
    "ﷺ",
    "ſt ẞ ß İ ı",
    "１２３",
    "٣٤",
    "Ⅷ",
    "²³",
    "½",
    "\ufdd0\uffff",
    "\U0010ffff",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "-0",
    "0x10",
    "1_000",
    "9" * 5_000,
    "1" * 400,
    "-9223372036854775809",
    "18446744073709551616",
    "true",
    "null",
    "None",
    "[]",
    "{}",
    '{"a":',
    '"\\ud800"',
    "[" * DEEP,
    '{"a":' * 20_000,
    "(" * 5_000,
    "a" * LONG_CHARS,
    "a b " * 5_000,
    "../../etc/passwd",
    "..",
    ".",
    "~",
    "~nobody/x",
    "con",
    "a/b\\c",
    "a:b:c",
    "%",
    "%00",
    "%3",
    "%%3A",
    "%C0%80",
    "'; drop table message; --",
    '" or 1=1',
    "*",
    "?",
    "[a-",
    "[!]",
    "\\",
    "\\E",
    "(a+)+$",
    "a" * 60 + "!",
    "{0.__class__}",
    "%s%n%d",
    "${x}",
    "$(x)",
    "`x`",
    "<script>",
    "perdure:system",
    "perdure:",
    "default",
    "person:",
    ":x",
    "person:\0",
    "person:" + "x" * 600,
    "PROFILE",
    "user",
    "assistant",
    "0000-00-00",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999-23:59",
    "2024-02-30",
    "2024-02-29T24:00:00Z",
    "2024-W99",
    "1e10",
    "-1",
    "253402300800",
    "-62135596801",
    "99999999999999999999",
    "2024-06-30T23:59:60Z",
    "now",
    "last tuesday",
    "in 99999999999 years",
    "every 0 minutes",
    "* * * * *",
    "*/0 * * * *",
    "60 24 32 13 8",
    "0 0 31 2 *",
    "1-0 * * * *",
    "@daily",
    "* * * * * * *",
    "0 0 29 2 1",
    "Europe/Berlin",
    "../UTC",
    "UTC\0",
    "Etc/GMT+99",
    "posixrules",
    "Factory",
    "sqlite:///",
    "memory:x",
    "http://[",
    "http://[::1]:99999/",
    "I moved to Seattle. " * 300,
    "- [ ] x\n" * 500,
    "# \n---\n" * 200,
    "```\n" * 300,
    "<think>" * 300,
    "> " * 500,
    "MEMORY_APPEND: x\n" * 50,
)
"""Texts that broke something somewhere."""

NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    2,
    7,
    100,
    -(2**31) - 1,
    2**31,
    2**53 + 1,
    2**62,
    2**62 + 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    -(10**400),
    10**5_000,
    0.0,
    -0.0,
    0.5,
    -0.5,
    1e-320,
    1e16,
    1e18,
    1e22,
    1e300,
    1.7e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    True,
    False,
    1j,
    decimal.Decimal("NaN"),
    decimal.Decimal("1e1000"),
    decimal.Decimal(3),
    fractions.Fraction(1, 3),
    Number(1),
    Number(2**70),
)

UTC = dt.UTC
INSTANTS: tuple[Any, ...] = (
    dt.datetime.min,
    dt.datetime.max,
    dt.datetime.min.replace(tzinfo=UTC),
    dt.datetime.max.replace(tzinfo=UTC),
    dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=23, minutes=59))),
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=23, minutes=59))),
    dt.datetime(1, 1, 2, tzinfo=UTC),
    dt.datetime(9999, 12, 30, tzinfo=UTC),
    dt.datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
    dt.datetime(1970, 1, 1, tzinfo=UTC),
    dt.datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
    dt.datetime(2024, 2, 29, tzinfo=UTC),
    dt.datetime(2024, 10, 27, 2, 30, fold=1),
    dt.datetime(2024, 5, 1),
    dt.datetime(2024, 5, 1, tzinfo=Unzoned()),
    dt.datetime(2024, 5, 1, tzinfo=dt.timezone(dt.timedelta(microseconds=1))),
    dt.date(2024, 5, 1),
    dt.date.max,
    dt.date.min,
    dt.time(1, 2),
    dt.timedelta.max,
    dt.timedelta.min,
    "2024-05-01",
    1_714_521_600,
    1_714_521_600.5,
    1_714_521_600_000,
)

_THINGS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: b"bytes",
    lambda: b"\xff\xfe\0",
    lambda: bytearray(b"x"),
    lambda: memoryview(b"x"),
    object,
    lambda: object,
    lambda: int,
    lambda: str,
    lambda: len,
    lambda: lambda *a, **k: None,
    lambda: (x for x in "abc"),
    _failing_iterator,
    lambda: iter(()),
    set,
    lambda: {1, "a"},
    frozenset,
    list,
    tuple,
    dict,
    lambda: [None],
    lambda: [[]],
    lambda: [b""],
    lambda: (1, 2, 3),
    lambda: ("a", "b"),
    lambda: {1: 2},
    lambda: {"a": object()},
    lambda: {"a": float("nan")},
    lambda: {"\ud800": 1},
    lambda: {"a": {"b": "\0"}},
    lambda: {None: None},
    lambda: {(): 1},
    lambda: UserDict(a=1),
    lambda: UserString("user"),
    lambda: deque(["a"]),
    lambda: range(3),
    lambda: range(10**12),
    lambda: SimpleNamespace(a=1),
    lambda: Colour.RED,
    lambda: Word.USER,
    lambda: ValueError("x"),
    lambda: NotImplemented,
    lambda: ...,
    lambda: random,
    Failing,
    Unzoned,
    lambda: dt.UTC,
    lambda: [Failing()],
    lambda: {"a": Failing()},
    lambda: Agreeing("user"),
    lambda: Agreeing("\ud800"),
    lambda: Disagreeing("user"),
    lambda: Disagreeing("x" * 500),
    lambda: PurePosixPath("x"),
    io.BytesIO,
    lambda: io.BytesIO(b"\0\xff"),
    lambda: io.StringIO("text"),
    _self_holding_list,
    _self_holding_dict,
    lambda: nested(70),
    lambda: nested(70, mapping=True),
    lambda: nested(900, mapping=True),
    lambda: ["x"] * 3_000,
    lambda: {str(n): n for n in range(2_000)},
    lambda: [{"id": 1, "timestamp": "2024-05-01"}] * 2,
)


class Hostile:
    """Draws such values by chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def any(self) -> Any:
        """Anything at all."""
        kind = self.chance.random()
        if kind < 0.4:
            return self.text()
        if kind < 0.6:
            return self.number()
        if kind < 0.72:
            return self.instant()
        return self.thing()

    def text(self) -> str:
        kind = self.chance.random()
        if kind < 0.75:
            return self.chance.choice(TEXTS)
        if kind < 0.752:
            return self.chance.choice(("x", "é ", "a,b\n", "\u202e", "[", "7", '"')) * (HUGE_CHARS // 2)
        if kind < 0.8:
            return "".join(chr(self._point()) for _ in range(self.chance.randrange(1, 40)))
        return self.spoilt("".join(self.chance.choice(TEXTS)[:200] for _ in range(self.chance.randrange(1, 4))))

    def number(self) -> Any:
        return self.chance.choice(NUMBERS) if self.chance.random() < 0.9 else self.chance.randrange(-(2**70), 2**70)

    def instant(self) -> Any:
        return self.chance.choice(INSTANTS)

    def thing(self) -> Any:
        if self.chance.random() < 0.01:
            return self.chance.choice((nested(DEEP), nested(DEEP, mapping=True), laughing(), {"entries": laughing()}))
        return self.chance.choice(_THINGS)()

    def spoilt(self, text: str) -> str:
        """Sound text with a few things done to it: a piece lost, doubled, swapped, or something hostile put in."""
        for _ in range(self.chance.choice((1, 1, 1, 2, 4, 12))):
            at = self.chance.randrange(len(text) + 1)
            size = self.chance.choice((1, 1, 2, 5, 20, 100))
            what = self.chance.randrange(7)
            if what == 0:
                text = text[:at] + text[at + size :]
            elif what == 1:
                text = text[: at + size] + text[at:]
            elif what == 2:
                text = text[:at] + self.chance.choice(TEXTS)[:200] + text[at:]
            elif what == 3:
                text = text[:at] + self.chance.choice(TEXTS)[:200] + text[at + size :]
            elif what == 4:
                text = text[:at]
            elif what == 5:
                text = text[:at] + chr(self._point()) + text[at + 1 :]
            else:
                to = self.chance.randrange(len(text) + 1)
                text = text[:at] + text[to : to + size] + text[at:]
        return text

    def spoilt_bytes(self, raw: bytes) -> bytes:
        """The same, of bytes."""
        for _ in range(self.chance.choice((1, 1, 2, 4, 12))):
            at = self.chance.randrange(len(raw) + 1)
            size = self.chance.choice((1, 1, 2, 5, 20, 200))
            what = self.chance.randrange(6)
            if what == 0:
                raw = raw[:at] + raw[at + size :]
            elif what == 1:
                raw = raw[: at + size] + raw[at:]
            elif what == 2:
                raw = raw[:at] + bytes([self.chance.randrange(256)]) + raw[at + 1 :]
            elif what == 3:
                raw = raw[:at] + self.chance.choice(TEXTS)[:200].encode(errors="surrogatepass") + raw[at:]
            elif what == 4:
                raw = raw[:at]
            else:
                raw = raw[:at] + self.chance.randbytes(size) + raw[at:]
        return raw

    def spoilt_value(self, value: Any, depth: int = 0) -> Any:
        """Sound plain data with one part replaced, lost or added, at whatever depth."""
        if isinstance(value, dict) and value and depth < 40 and self.chance.random() < 0.8:
            key = self.chance.choice([*value])
            what = self.chance.random()
            if what < 0.15:
                return {name: one for name, one in value.items() if name != key}
            if what < 0.25:
                return {**value, self.text()[:200]: self.any()}
            return {**value, key: self.spoilt_value(value[key], depth + 1)}
        if isinstance(value, list) and value and depth < 40 and self.chance.random() < 0.8:
            at = self.chance.randrange(len(value))
            what = self.chance.random()
            if what < 0.15:
                return value[:at] + value[at + 1 :]
            if what < 0.3:
                return [*value, value[at]]
            return [*value[:at], self.spoilt_value(value[at], depth + 1), *value[at + 1 :]]
        if isinstance(value, str) and self.chance.random() < 0.5:
            return self.spoilt(value)
        return self.any()

    def _point(self) -> int:
        """A code point, from anywhere."""
        block = self.chance.choice(
            (0x20, 0x80, 0x300, 0x590, 0x2000, 0x3040, 0xD7F0, 0xE000, 0xFE00, 0x1F300, 0xE0000, 0x10FF00)
        )
        return min(0x10FFFF, max(0, block + self.chance.randrange(-32, 200)))
