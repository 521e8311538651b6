"""Times, numbers and names as people read them. Each is a filter of the templates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from markupsafe import Markup, escape

from perdure.handles.registry.shapes import plain
from perdure.interfaces.visible import visible

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
SHORT_CHARS = 160
LISTS = re.compile(r"; list them with `[^`]*\(\)`$")
REF = re.compile(r", (?:person|place|org|project):\S+?(?=[,;.]|$)")


def moment(at: datetime | None, zone: tzinfo = UTC, now: datetime | None = None) -> Markup:
    """A moment as people say it, with the exact one behind it: `3 h ago`, `12 Mar`, `12 Mar 2024`."""
    if at is None:
        return Markup("")
    local = at.astimezone(zone)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), full_time(at, zone), _ago(at, local, datetime.now(UTC) if now is None else now)
    )


def _ago(at: datetime, local: datetime, now: datetime) -> str:
    passed = (now - at).total_seconds()
    if abs(passed) < MINUTE_S:
        return "just now" if passed >= 0 else "in a moment"
    if 0 <= passed < HOUR_S:
        return f"{passed / MINUTE_S:.0f} min ago"
    if 0 <= passed < DAY_S:
        return f"{passed / HOUR_S:.0f} h ago"
    if 0 <= passed < 7 * DAY_S:
        return f"{passed / DAY_S:.0f} d ago"
    if -DAY_S < passed < 0:
        return f"in {max(1, round(-passed / HOUR_S))} h"
    same_year = local.year == now.astimezone(local.tzinfo).year
    return day(local, year=not same_year)


def day(at: date | datetime | None, *, year: bool = True) -> str:
    """`12 Mar 2026`."""
    return "" if at is None else f"{at.day} {at:%b}{f' {at.year}' if year else ''}"


def full_time(at: datetime | None, zone: tzinfo = UTC) -> str:
    """`12 Mar 2026, 07:00:05 UTC`."""
    if at is None:
        return ""
    local = at.astimezone(zone)
    return f"{day(local)}, {local:%H:%M:%S} {local.tzname() or ''}".strip()


def clock(at: datetime | None, zone: tzinfo = UTC) -> Markup:
    """A moment in full, for where the exact one matters: `12 Mar 2026, 07:00`."""
    if at is None:
        return Markup("")
    local = at.astimezone(zone)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), full_time(at, zone), f"{day(local)}, {local:%H:%M}"
    )


def number(value: float | None, digits: int = 0) -> str:
    """`12,345`, with a thin space's width between thousands."""
    return "" if value is None else f"{value:,.{digits}f}"


def size(value: int) -> str:
    """Bytes as people say them."""
    amount = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1_000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1_000
    return ""


def lasting(seconds: float | timedelta) -> str:
    """A stretch of time: `45 s`, `12 min`, `3 h`, `2 d`."""
    passed = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    for length, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if passed >= length:
            return f"{passed / length:.0f} {unit}"
    return f"{passed:.0f} s" if passed >= 1 else f"{passed * 1000:.0f} ms"


def short(text: object, chars: int = SHORT_CHARS) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= chars else f"{line[: chars - 1].rstrip()}…"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 memory`, `12 memories`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def counted(count: int, kind: str) -> str:
    """A count of rows of a kind: `1 entity`, `2 memories`, `3 rows`."""
    one = kind.removesuffix("s") if kind == "rows" else kind
    return plural(count, one, f"{one[:-1]}ies" if one.endswith("y") else None)


def as_json(value: object) -> str:
    """Any value as JSON for people."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def quoted(text: str) -> str:
    """As a string of JSON and of Python, in ASCII."""
    return json.dumps(text)


def editable(text: str) -> Markup:
    """Stored text for a field in which it is edited: as it is, but escaped."""
    return escape(text)


def with_code(text: object) -> Markup:
    """A message of ours, in which names of the code stand in backticks."""
    pieces = visible(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(visible(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    )


SOURCES = {"shadow_extraction": "learned", "curated_fold": "merged"}
KINDS = {"digest": "summary", "tally": "counts"}
WRITERS = {
    "curator": "curator",
    "fold": "summariser",
    "digest": "session summariser",
    "tally": "counter",
    "lessons": "lesson finder",
    "instructions": "rules for instructions",
}
REASONS = {"extracted from messages": "from messages", "curated": "similar memories"}
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CRON_DAYS = {"*": "day", "1-5": "weekday", **{str(number): name for number, name in enumerate(WEEKDAYS)}}


def words(name: str) -> str:
    """A name of the code as words: `start_stated` is `start stated`."""
    return SOURCES.get(name) or name.replace("_", " ").lower()


def kind_words(kind: str) -> str:
    """What people call a kind of row: `digest` is a summary."""
    return KINDS.get(kind) or words(kind)


def writer(actor: str) -> str:
    """Who changed something: `agent:clerk` is `clerk`, `rules/1` is `rules`."""
    name = actor.removeprefix("agent:").partition("/")[0]
    return WRITERS.get(name, name) if "/" in actor else name


def reason(why: str) -> str:
    """Why something changed. The name of a call or a policy says nothing that the change itself does not."""
    name, _, rest = why.partition(": ")
    if rest and " " not in name:
        return rest
    return REASONS.get(why, why if " " in why else "")


def repeats(cron: str) -> str:
    """A cron line as people say it, if it is a simple one: `every Monday at 09:00`."""
    minute, hour, day_of_month, month, weekday = (cron.split() + [""] * 5)[:5]
    days = CRON_DAYS.get(weekday)
    if days is None or (day_of_month, month) != ("*", "*") or not (minute.isdecimal() and hour.isdecimal()):
        return cron
    return f"every {days} at {int(hour):02}:{int(minute):02}"


def for_pages(message: str) -> str:
    """An error without the call that would help: on a page, nobody makes calls."""
    return LISTS.sub("", message)


def without_refs(text: str) -> str:
    """A reason without references beside the words that they stand for: `has rui, person:rui`."""
    return REF.sub("", text)


def entity_label(ref: str) -> str:
    """`person:john_doe` as `John Doe`, where only the reference is at hand."""
    return " ".join(part[:1].upper() + part[1:] for part in ref.partition(":")[2].split("_")) if ":" in ref else ref


def marked(text: str, spans: Sequence[tuple[int, int]]) -> Markup:
    """A text with some of its parts marked; everything escaped."""
    pieces: list[Markup] = []
    at = 0
    for start, end in sorted(spans):
        begin, stop = max(start, at), min(end, len(text))
        if begin < stop:
            pieces.append(escape(visible(text[at:begin])))
            pieces.append(Markup("<mark>{}</mark>").format(visible(text[begin:stop])))
            at = stop
    return Markup("").join([*pieces, escape(visible(text[at:]))])


FILTERS: Mapping[str, Callable[..., Any]] = {
    "moment": moment,
    "day": day,
    "clock": clock,
    "full_time": full_time,
    "number": number,
    "size": size,
    "lasting": lasting,
    "short": short,
    "plural": plural,
    "as_json": as_json,
    "editable": editable,
    "words": words,
    "kind_words": kind_words,
    "writer": writer,
    "reason": reason,
    "repeats": repeats,
    "without_refs": without_refs,
    "for_pages": for_pages,
    "entity_label": entity_label,
    "marked": marked,
    "told": with_code,
    "quoted": quoted,
}
