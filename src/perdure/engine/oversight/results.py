"""What of a tool's result is worth keeping, by rules; and what it looks like: plain JSON, a preview, a series, a secret."""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache

from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import NEVER_SAVED, SeriesOffer
from perdure.domain.series import SUFFIX
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import INTEGER_BITS_MAX, Json, compact_json
from perdure.domain.times.instants import instant_us
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass
from perdure.engine.search.lexicon import lexemes, name_words
from perdure.engine.text.cues import either
from perdure.engine.text.hygiene import holds_secret
from perdure.engine.words import sections, word_set

PREVIEW_CHARS = 500
DEPTH_MAX = 40
PARTS_MAX = 2_000_000
"""Values in one result, at whatever depth."""
KEY_WORDS_MAX = 8
SECRET_TEXT_MAX = 20_000_000
"""So much text of a result is searched for secrets; one that has more is not kept unseen."""
ENTRIES_MIN = 2
_WENT_WELL = ("success", "ok")
_WENT_WRONG = ("error", "errors", "failed", "failure")
HTTP_ERRORS_FROM = 400
TIMES_FROM_US, TIMES_TO_US = 946_684_800_000_000, 4_102_444_800_000_000
"""From 2000 to 2100: numbers outside are no times of things that happened, but sizes, amounts and durations."""

# An order stands at the beginning, or after a word that joins orders. `How do I save money` is none.
_SAVE = pattern(
    lambda: (
        rf"(?:^|[.,;:!?]\s*|\b(?:{either('before an order')})\s+|\b(?:{either('asks you')}) you (?:please )?)"
        rf"(?:{either('save')})\b(?!\s*(?:{either('not saved')})\b|-)"
        rf"(?P<what>(?:\s+(?!(?:{either('where to')})\b)[\w'-]+){{0,6}})"
        r"(?:\s+(?:as|under)\s+[\"'`]?(?P<key>\w[\w.-]{1,60}))?"
    ),
    re.IGNORECASE,
)
_KEEP_NOT = pattern(
    lambda: (
        rf"\b(?:{either('not')})\b(?:(?!{either('not any more')})[^.!?;,]){{0,30}}?\b(?:{either('keep')})\b"
        rf"|\b(?:{either('keep nothing')})\b"
    ),
    re.IGNORECASE,
)
_NAMED_ID = pattern(r"(?:.*[_-])?(?:id|uuid|guid|key|number|no|hash|slug)", re.IGNORECASE)
_CAMEL_ID = pattern(r".*[a-z0-9](?:Id|ID|Uuid|Key)")
_NAMED_TIME = pattern(
    r"(?:.*[_-])?(?:timestamp|time|date|datetime|at|ts|when|day|created|started|posted|sent|received|on)", re.IGNORECASE
)
_CAMEL_TIME = pattern(r".*[a-z0-9](?:At|Date|Time|Timestamp|On)")
_BEST_TIMES = ("timestamp", "created_at", "start_time", "start_date", "started_at", "time", "datetime", "date", "at", "ts")
_WORST_TIMES = pattern(r"birth|updated|modified|expir|deleted|due|until", re.IGNORECASE)
_SECRET_NAMES = pattern(
    r"(?:^|[_.\s-])(?:pass|password|passwd|passwort|passphrase|pwd|secret|secrets|api[_-]?key|apikey|access[_-]?token"
    r"|refresh[_-]?token|auth[_-]?token|bearer|private[_-]?key|client[_-]?secret|authorization|credentials?|session[_-]?token"
    r"|session[_-]?key|cookie)(?:$|[_.\s-])",
    re.IGNORECASE,
)
_TOKEN_NAME = pattern(r"(?:^|[_.-])token$", re.IGNORECASE)
_OPAQUE = pattern(r"[A-Za-z0-9+/_=.-]{16,}")
_CODE_NAME = pattern(r"(?:^|[_.-])(?:pin|cvv|cvc)$", re.IGNORECASE)
# Bounded and anchored: on a long run of letters it must not begin anew at each of them.
_LOGIN_IN_URL = pattern(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^/\s:@]{1,200}:[^@\s/]{1,200}@")


@dataclass(frozen=True, slots=True)
class KeepVerdict:
    """Whether a result is worth keeping, under which key, and why."""

    save: bool
    key: str
    reason: str
    final: bool = False
    """Nobody else is to be asked."""


def plain(value: object) -> Json:
    """Whatever a tool returned as JSON: dates as ISO 8601, bytes as base64, objects by their fields (B-24)."""
    return _shaped(value, 0, [PARTS_MAX])


def _shaped(value: object, depth: int, room: list[int]) -> Json:
    room[0] -= 1
    if room[0] < 0:
        raise InvalidInput(f"`result` has more than {PARTS_MAX} parts; keep a part of it")
    if depth > DEPTH_MAX:
        raise InvalidInput(f"`result` is nested more than {DEPTH_MAX} deep; keep a part of it")
    if value is None or isinstance(value, bool | str):
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    if isinstance(value, int):
        if value.bit_length() > INTEGER_BITS_MAX:
            raise InvalidInput(f"`result` has a number of more than {INTEGER_BITS_MAX} bits; return it as text")
        return int(value) if abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        shaped = {str(_shaped(name, depth + 1, room)): _shaped(one, depth + 1, room) for name, one in value.items()}
        if len(shaped) < len(value):
            raise InvalidInput("`result` has two fields whose names are the same as text; name them apart")
        return shaped
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray | memoryview):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_shaped(one, depth + 1, room) for one in items]
    return _special(value, depth, room)


def _special(value: object, depth: int, room: list[int]) -> Json:
    from uuid import UUID  # loaded here: importing it looks at the machine, and few results get here

    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Enum):
        return _shaped(value.value, depth + 1, room)
    if isinstance(value, Decimal | UUID) or hasattr(value, "__fspath__"):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _shaped(getattr(value, one.name), depth + 1, room) for one in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None) or getattr(value, "_asdict", None)
    if callable(dump):
        return _shaped(dump(), depth + 1, room)
    raise InvalidInput(f"`result` holds a `{type(value).__name__}`, which is no data; return lists, dicts, texts and numbers")


def preview_of(value: Json) -> str:
    """The first characters of the JSON; dots only if there is more."""
    text = compact_json(value)
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


def refused_tool(tool: str, allow: Sequence[str] | None, deny: Sequence[str]) -> str | None:
    """Why nothing of this tool is kept; None if something may be."""
    if tool in NEVER_SAVED or tool in deny:
        return f"`{tool}` is on the list of tools whose results are never kept"
    if allow is not None and tool not in allow:
        return f"`{tool}` is not on the list of tools whose results may be kept"
    return None


def secret_in(value: Json) -> str | None:
    """Why a result must not be kept: where a secret stands in it; None if none is seen."""
    waiting: deque[tuple[str, Json]] = deque([("the result", value)])
    searched = 0
    while waiting:
        where, one = waiting.popleft()
        if isinstance(one, dict):
            for name, inner in one.items():
                field = f"the field `{name[:40]}`"
                if _is_secret_field(name, inner):
                    return f"{field if not holds_secret(name) else 'the name of a field'} looks like a secret"
                waiting.append((field, inner))
        elif isinstance(one, list):
            waiting.extend((where, inner) for inner in one)
        elif isinstance(one, str):
            searched += len(one)
            if searched > SECRET_TEXT_MAX:
                return f"the result has more than {SECRET_TEXT_MAX:,} characters of text, too many to search for secrets"
            if holds_secret(one) or _LOGIN_IN_URL.search(one):
                return f"{where} looks like a secret"
    return None


def _is_secret_field(name: str, inner: Json) -> bool:
    spelt = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    if holds_secret(name):
        return True
    if _SECRET_NAMES.search(spelt):
        return inner is not None and inner is not False and inner != "" and inner != [] and inner != {}
    if _CODE_NAME.search(spelt):
        return str(inner).strip().isdigit()
    return bool(_TOKEN_NAME.search(spelt)) and isinstance(inner, str) and _OPAQUE.fullmatch(inner) is not None


def key_of(tool: str) -> str:
    """The name under which a tool's result is kept: `getUserProfile` gives `user_profile`."""
    verbs = _words("verbs")
    words = [word for word in name_words(tool) if word not in verbs] or list(name_words(tool))
    return "_".join(words[:KEY_WORDS_MAX]) or "result"


def verdict(tool: str, value: Json, goal: str) -> KeepVerdict:
    """What the rules make of a result: kept is what the goal asks to keep, and what holds for longer than one question."""
    key = key_of(tool)
    if (why := _says_nothing(value)) is not None:
        return KeepVerdict(False, key, why)
    if _KEEP_NOT.search(goal):
        return KeepVerdict(False, key, "the goal says not to keep it", final=True)
    asked = _SAVE.search(goal)
    if asked:
        named = asked["key"] or "_".join(word for word in name_words(asked["what"] or "") if word not in _words("filler"))
        return KeepVerdict(True, clean_key(named) or key, "the goal asks to keep it")
    lasting = next((word for word in name_words(tool) if word in _words("lasting")), None)
    if lasting:
        return KeepVerdict(True, key, f"`{lasting}` in the tool's name: it holds for longer than one question")
    return KeepVerdict(False, key, "nothing says that it will be needed again")


def clean_key(name: str) -> str:
    """A key made of what a goal or a model calls it; empty if nothing is left of it."""
    words = re.findall(r"[^\W_]+", name.lower())
    return "_".join(words[:KEY_WORDS_MAX])[:100]


def _says_nothing(value: Json) -> str | None:
    if value is None or value == "" or value == [] or value == {}:
        return "the result is empty"
    if isinstance(value, bool | int | float):
        return "a single number says nothing without its question"
    if isinstance(value, dict) and (any(value.get(name) is False for name in _WENT_WELL) or value.get("error")):
        return "the tool says that it failed"
    return None


def may_have_failed(value: Json) -> bool:
    """Whether anything in a result suggests that its tool failed: then what is missing in it may be there at the source."""
    if not isinstance(value, dict):
        return False
    if any(value.get(name) is False for name in _WENT_WELL) or any(value.get(name) for name in _WENT_WRONG):
        return True
    status = value.get("status", value.get("status_code"))
    if isinstance(status, str):
        return status.casefold() in _WENT_WRONG
    return isinstance(status, int) and not isinstance(status, bool) and status >= HTTP_ERRORS_FROM


def entries_in(value: Json, *, least: int = ENTRIES_MIN) -> list[dict[str, Json]] | None:
    """The list of at least so many objects that a result is, or has as its only list; None if there is none."""
    if isinstance(value, dict):
        lists = [one for one in value.values() if isinstance(one, list)]
        value = lists[0] if len(lists) == 1 else None
    if not isinstance(value, list) or len(value) < least:
        return None
    rows = [one for one in value if isinstance(one, dict)]
    return rows if len(rows) == len(value) else None


def as_series(tool: str, value: Json, *, least: int = ENTRIES_MIN) -> SeriesOffer | None:
    """How a result of at least so many entries would be merged as a series, if they have ids and times; else None."""
    rows = entries_in(value, least=least)
    if rows is None:
        return None
    fields = [name for name in rows[0] if all(name in row for row in rows)]
    named = [name for name in fields if _NAMED_TIME.fullmatch(name) or _CAMEL_TIME.fullmatch(name)]
    timed = {name: times for name in sorted(named, key=_time_rank) if (times := _times(rows, name)) is not None}
    if not timed:
        return None
    time_field = next(iter(timed))
    name = key_of(tool).removesuffix(SUFFIX)
    key, template = _ids(rows, [field for field in fields if field not in timed], name)
    if key is None and template is None:
        return None
    window = Span(min(timed[time_field]), max(timed[time_field]) + 1)
    return SeriesOffer(
        name=name,
        id_field=key or "id",
        time_field=time_field,
        entries=len(rows),
        window=window,
        id_template=template,
    )


def _time_rank(name: str) -> tuple[bool, int]:
    """When something happened comes before when it was changed, ends or was born."""
    spelt = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    place = _BEST_TIMES.index(spelt) if spelt in _BEST_TIMES else len(_BEST_TIMES)
    return bool(_WORST_TIMES.search(spelt)), place


def _times(rows: Sequence[Mapping[str, Json]], name: str) -> list[int] | None:
    try:
        found = [instant_us(row[name], UTC, name) for row in rows]
    except InvalidInput:
        return None
    return found if all(TIMES_FROM_US <= one <= TIMES_TO_US for one in found) else None


def _ids(rows: Sequence[Mapping[str, Json]], fields: Sequence[str], kind: str) -> tuple[str | None, str | None]:
    """The field that tells entries of a kind apart, or a template of several that do together.

    Whose `athlete_id` it is says not which of their kudos: what a few rows tell apart, later ones need not.
    """
    named = [name for name in fields if _NAMED_ID.fullmatch(name) or _CAMEL_ID.fullmatch(name)]
    simple = [name for name in named if all(_is_id(row[name]) for row in rows)]
    own = [name for name in simple if name.lower() in ("id", "uuid")] or [name for name in simple if _is_of(name, kind)]
    for name in own or (simple if len(simple) == 1 else ()):
        if len({str(row[name]) for row in rows}) == len(rows):
            return name, None
    if len(simple) >= 2 and len({tuple(str(row[name]) for name in simple) for row in rows}) == len(rows):
        return None, "_".join(f"{{{name}}}" for name in simple)
    return None, None


def _is_of(field: str, kind: str) -> bool:
    """Whether a field is the id of what a tool lists: `kudos_id` and `commentId`, of `activity_kudos` and `comments`."""
    words = name_words(field)
    return len(words) == 2 and lexemes(words[0]) == lexemes(name_words(kind)[-1])


def _is_id(value: Json) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


@cache
def _words(heading: str) -> frozenset[str]:
    return word_set(sections(__package__, "words.txt")[heading])
