"""Merging fetched entries into a series: which are new, which are newer, which cannot be stored. Touches nothing."""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.series import Entry, MergePlan, Rejected, SeriesSpec
from perdure.domain.text import Json, brief, check_id, check_no_secret, encode_json, same_json
from perdure.engine.instants import instant_us


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
) -> tuple[list[Sighting], list[Rejected]]:
    """Read each entry on its own; a bad one is rejected with its place and reason and spoils no other."""
    good: list[Sighting] = []
    bad: list[Rejected] = []
    for index, entry in enumerate(entries):
        try:
            good.append(_read(index, entry, spec, zone, bytes_max))
        except (InvalidInput, LimitExceeded) as error:
            bad.append(Rejected(index, str(error)))
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
