"""Merging fetched entries into a series: which are new, which are newer, which cannot be stored. Touches nothing.

And the rules of a series: what may be said of them, and whether two statements agree.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, tzinfo
from typing import Any

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.series import Entry, MergePlan, RejectedEntry, SeriesSpec
from perdure.domain.text.rules import Json, brief, check_id, check_no_secret, encode_json, same_json, utf8_size
from perdure.domain.text.secrets import without_secrets
from perdure.domain.times.instants import instant_us, zone_named


@dataclass(frozen=True, slots=True)
class Sighting:
    """A valid entry of the batch."""

    index: int
    id: str
    at_us: int
    body: Mapping[str, Json]


def template_fields(template: str) -> tuple[str, ...]:
    """The fields an id template names; `InvalidInput` if it is none."""
    if not isinstance(template, str):
        raise InvalidInput(f"`id_template` is a `{type(template).__name__}`; write e.g. kudos_{{activity_id}}")
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InvalidInput(
            f"`id_template` = {brief(template, 80)} cannot be read ({error}); write e.g. kudos_{{activity_id}}"
        ) from None
    names = tuple(name for _, name, _, _ in parts if name is not None)
    plain = all(name.isidentifier() for name in names) and not any(spec or conversion for _, _, spec, conversion in parts)
    if not names or not plain:
        raise InvalidInput(
            f"`id_template` = {brief(template, 80)} must name fields plainly, e.g. kudos_{{activity_id}}_{{athlete_id}}"
        )
    return names


def sightings(
    entries: Sequence[object], spec: SeriesSpec, zone: tzinfo, *, bytes_max: int
) -> tuple[list[Sighting], list[RejectedEntry]]:
    """Read each entry on its own; a bad one is rejected with its place and reason and spoils no other."""
    good: list[Sighting] = []
    bad: list[RejectedEntry] = []
    for index, entry in enumerate(entries):
        try:
            good.append(_read(index, entry, spec, zone, bytes_max))
        except (InvalidInput, LimitExceeded) as error:
            bad.append(RejectedEntry(index, str(error)))
    return good, bad


def _read(index: int, entry: object, spec: SeriesSpec, zone: tzinfo, bytes_max: int) -> Sighting:
    if not isinstance(entry, Mapping):
        raise InvalidInput(
            f"the entry is a `{type(entry).__name__}`; pass an object with `{spec.id_field}` and `{spec.timestamp_field}`"
        )
    given = dict(entry)
    if isinstance(given.get(spec.timestamp_field), datetime):
        given[spec.timestamp_field] = given[spec.timestamp_field].isoformat()
    # As it will be read back, so that a tuple is the list it is stored as.
    body = json.loads(encode_json(given, "the entry", bytes_max=bytes_max, limit="entry_bytes_max"))
    if body.get(spec.timestamp_field) is None:
        raise InvalidInput(f"field `{spec.timestamp_field}` is missing; every entry needs its time")
    at_us = instant_us(body[spec.timestamp_field], zone, f"field `{spec.timestamp_field}`")
    return Sighting(index, _id_of(body, given, spec), at_us, body)


def _id_of(body: Mapping[str, Json], stated: Mapping[str, Json], spec: SeriesSpec) -> str:
    given = body.get(spec.id_field)
    # What stands in `body` has lost its secrets: entries whose ids differ in nothing else would be taken for one.
    for name in (spec.id_field,) if given is not None or spec.id_template is None else template_fields(spec.id_template):
        if isinstance(told := stated.get(name), str):
            check_no_secret(told, name)
    if given is None and spec.id_template is not None:
        missing = [name for name in template_fields(spec.id_template) if body.get(name) is None]
        if missing:
            raise InvalidInput(f"field `{missing[0]}` is missing, which the id template needs")
        given = spec.id_template.format(**{name: body[name] for name in template_fields(spec.id_template)})
    if given is None:
        raise InvalidInput(f"field `{spec.id_field}` is missing; every entry needs its id, or the series an id template")
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise InvalidInput(f"field `{spec.id_field}` is a `{type(given).__name__}`; an id is text or a number")
    # 1 and "1" are the same id.
    return check_id(str(given), spec.id_field, bytes_max=ID_BYTES_MAX)


def plan_merge(seen: Iterable[Sighting], held: Mapping[str, Entry], now_us: int) -> MergePlan:
    """The newest instant of an id wins; at the same instant the incoming body does. Losing bodies are kept as past."""
    entries: dict[str, Entry] = {}
    past: list[tuple[str, int, Mapping[str, Json]]] = []
    added = duplicates = updated = 0
    for one in seen:
        known = entries.get(one.id) or held.get(one.id)
        if known is None:
            added += 1
            entries[one.id] = Entry(one.id, one.at_us, one.body, now_us, now_us)
            continue
        duplicates += 1
        last_seen = max(known.last_seen_us, now_us)
        differs = not same_json(one.body, known.body)
        if one.at_us > known.at_us or (one.at_us == known.at_us and differs):
            updated += 1
            past.append((one.id, known.at_us, known.body))
            entries[one.id] = Entry(one.id, one.at_us, one.body, known.first_seen_us, last_seen)
        else:
            if one.at_us < known.at_us and differs:
                past.append((one.id, one.at_us, one.body))
            entries[one.id] = replace(known, last_seen_us=last_seen)
    return MergePlan(tuple(entries.values()), tuple(past), added, duplicates, updated)


# Longer than the calendar: what "for ever" is stored as.
ENDLESS_S = 1e12
DESCRIPTION_BYTES_MAX = 2_000
FIELDS = tuple(field.name for field in fields(SeriesSpec))


def new_spec(stated: Mapping[str, Any], max_entries: int | None) -> SeriesSpec:
    """The rules of a new series: what was stated, and the defaults."""
    check_names(stated)
    return checked(replace(SeriesSpec(max_entries=max_entries), **stated))


def check_names(stated: Mapping[str, Any]) -> None:
    """`InvalidInput` for a rule that there is not."""
    unknown = [name for name in stated if name not in FIELDS]
    if unknown:
        raise InvalidInput(f"a series has no rule `{unknown[0]:.60}`; it has {', '.join(FIELDS)}")


def changed(spec: SeriesSpec, stated: Mapping[str, Any]) -> list[tuple[str, object, object]]:
    """Which of the stated rules differ from the held ones: name, held, stated."""
    check_names(stated)
    given = new_spec(stated, spec.max_entries)
    return [(name, getattr(spec, name), getattr(given, name)) for name in stated if getattr(spec, name) != getattr(given, name)]


def checked(spec: SeriesSpec) -> SeriesSpec:
    """`spec` if it makes sense."""
    for name in ("id_field", "timestamp_field"):
        check_id(getattr(spec, name), name, bytes_max=ID_BYTES_MAX)
    if spec.id_template is not None:
        template_fields(spec.id_template)
        check_no_secret(spec.id_template, "id_template")
    zone_named(spec.zone)
    for name in ("settles_after_s", "fresh_for_s"):
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise InvalidInput(f"`{name}` = {brief(value)} must be a number of seconds from 0 on")
    if spec.fresh_for_s > ENDLESS_S:
        spec = replace(spec, fresh_for_s=ENDLESS_S)
    if spec.settles_after_s > ENDLESS_S:
        raise InvalidInput("`settles_after_s` = inf would never let a window settle; use a number of seconds")
    _check_bound("max_entries", spec.max_entries, least=1, whole=True)
    _check_bound("keep_days", spec.keep_days, least=0, whole=False)
    if utf8_size(spec.description, "`description`") > DESCRIPTION_BYTES_MAX:
        raise InvalidInput(f"`description` is longer than {DESCRIPTION_BYTES_MAX} bytes; say it in fewer words")
    # Before it is compared: stating the same rules again agrees with what is held.
    told = without_secrets(spec.description)
    return spec if told == spec.description else replace(spec, description=told)


def _check_bound(name: str, value: object, *, least: int, whole: bool) -> None:
    if value is None:
        return
    kinds = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= 10**15:
        raise InvalidInput(f"`{name}` = {brief(value)} must be a {'whole ' if whole else ''}number from {least} on, or None")
