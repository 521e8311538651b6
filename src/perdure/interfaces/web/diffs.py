"""What differs between two values: line by line for JSON that people wrote, field by field for records of the journal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import SequenceMatcher

from perdure.domain.text.rules import Json
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass
from perdure.interfaces.visible import CONTROL

UNSEEN = {code: f"\\u{code:04x}" for code in CONTROL if code > 31}
LINES_MAX = 4_000
NEAR = 3
"""So many lines around a change are shown."""
INSTANTS_US = range(10**14, 10**17)
"""Numbers that are moments in microseconds, if their field says so: from 1973 on."""
MOMENTS = ("_at", "_from", "_to", "mentioned", "at")


@dataclass(frozen=True, slots=True)
class Field:
    """A field that was set, changed or taken away; None: it is not there."""

    name: str
    before: str | None
    after: str | None


def pretty(value: Json) -> str:
    """A value as JSON for people, its keys in their order. What no eye sees is written as JSON itself writes it, so that it
    can be edited and means the same."""
    return json.dumps(value, indent=2, ensure_ascii=False).translate(UNSEEN)


def line_diff(before: str, after: str) -> list[tuple[str, str]]:
    """Lines as (sign, text); of what is the same, only what stands near a change."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > LINES_MAX:
        return [(" ", f"{len(old)} and {len(new)} lines: too long to compare here")]
    found: list[tuple[str, str]] = []
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(NEAR)
    for number, group in enumerate(groups):
        if number:
            found.append((" ", "⋯"))
        for tag, a, b, c, d in group:
            if tag == "equal":
                found += [(" ", line) for line in old[a:b]]
            else:
                found += [("-", line) for line in old[a:b]]
                found += [("+", line) for line in new[c:d]]
    return found


def fields(before: Json, after: Json) -> list[Field]:
    """The fields that differ; of something new or gone, those that say something."""
    if not isinstance(before, Mapping) and not isinstance(after, Mapping):
        return [] if before == after else [Field("value", _field_text("", before), _field_text("", after))]
    old: Mapping[str, Json] = before if isinstance(before, Mapping) else {}
    new: Mapping[str, Json] = after if isinstance(after, Mapping) else {}
    return list(_differing(old, new))


def _differing(old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[Field]:
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) == new.get(name):
            continue
        was, now = _field_text(name, old.get(name)), _field_text(name, new.get(name))
        if was is not None or now is not None:
            yield Field(name, was, now)


def _field_text(name: str, value: Json) -> str | None:
    if value in (None, "", [], {}):
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith(MOMENTS) and value in INSTANTS_US:
        return _moment(from_us(value))
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _moment(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")
