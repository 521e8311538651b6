"""The rules of a series: what may be said of them, and whether two statements agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from perdure.domain.errors import InvalidInput
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.secrets import without_secrets
from perdure.domain.series import SeriesSpec
from perdure.domain.text import brief, check_id, check_no_secret, utf8_size
from perdure.engine.instants import zone_named
from perdure.engine.merging import template_fields

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
