"""What a series may claim to know: the ledger of fetched windows against what is wanted. Pure arithmetic.

An instant is held if some fetch asked for it and its answer can be trusted: it was fetched late enough to be settled, or
recently enough to be fresh. Nothing else makes it held: not an entry, not a neighbour, not the lapse of time.

Fetched entries are merged by id: which are new, which are newer, which cannot be stored. The rules of a series say how.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.series import (
    Coverage,
    CoverageRule,
    CoveredWindow,
    Entry,
    FetchRecord,
    MergePlan,
    RejectedEntry,
    SeriesSpec,
)
from perdure.domain.text.rules import Json, brief, check_id, check_no_secret, encode_json, same_json, utf8_size
from perdure.domain.text.secrets import without_secrets
from perdure.domain.times.instants import from_us, instant_us, zone_named
from perdure.domain.times.spans import Span, clipped, gaps, span_or_none, union
from perdure.domain.values import dataclass, fields, replace

SECOND_US = 1_000_000

SET_BACK_US = 3_600_000_000
"""Clocks are put right by seconds all the time; beyond an hour, one was wrong."""


def seconds_us(seconds: float) -> int:
    """Seconds in microseconds; endless stays far beyond any calendar."""
    return min(2**61, round(min(seconds, 2e12) * SECOND_US))


def proven(fetch: FetchRecord, instants: Sequence[int], now_us: int) -> Span | None:
    """The part of time that a fetch proves: what it asked for, as far as the answer reaches, and never the future."""
    if fetch.window is None:
        if fetch.infer == "none" or not instants:
            return None
        # The newest entry's own instant may have more entries; only what lies between is proven.
        return span_or_none(min(instants), min(max(instants), now_us))
    start, end = fetch.window.start_us, min(fetch.window.end_us, fetch.fetched_us)
    if not fetch.complete:
        inside = [instant for instant in instants if start <= instant < end]
        if not inside:
            return None
        # Where the answer was cut off, other entries of that very instant may be missing.
        if fetch.newest_first:
            start = min(inside) + 1
        else:
            end = min(end, max(inside))
    return span_or_none(start, end)


def recorded(held: Iterable[CoveredWindow], span: Span, fetched_us: int) -> tuple[CoveredWindow, ...]:
    """The windows that replace `held` (all those that overlap or touch `span`) once `span` was fetched.

    Of two fetches of the same instant the later one counts; a replay of an old fetch takes nothing back.
    """
    pieces: list[CoveredWindow] = []
    newer = [window.span for window in held if window.fetched_us > fetched_us]
    for window in held:
        if window.fetched_us > fetched_us:
            pieces.append(window)
        else:
            pieces.extend(CoveredWindow(part, window.fetched_us) for part in gaps(window.span, [span]))
    pieces.extend(CoveredWindow(part, fetched_us) for part in gaps(span, newer))
    joined: list[CoveredWindow] = []
    for piece in sorted(pieces, key=lambda window: window.span):
        last = joined[-1] if joined else None
        if last is not None and last.span.end_us == piece.span.start_us and last.fetched_us == piece.fetched_us:
            joined[-1] = CoveredWindow(Span(last.span.start_us, piece.span.end_us), piece.fetched_us)
        else:
            joined.append(piece)
    return tuple(joined)


INFERRED_MAX = 200
"""Inferred stretches that are told apart; beyond, the newest."""


def with_inferred(marks: Sequence[Span], fresh: Sequence[Span]) -> tuple[Span, ...]:
    """The inferred stretches, with those that were credited now and not covered before."""
    return union([*marks, *fresh])[-INFERRED_MAX:]


def without(marks: Sequence[Span], declared: Span) -> tuple[Span, ...]:
    """The inferred stretches that a declared window leaves as they are."""
    return tuple(piece for span in marks for piece in gaps(span, [declared]))


def assumed(inferred: Iterable[Span], held: Sequence[Span]) -> tuple[Span, ...]:
    """The inferred parts of what is held."""
    marks = tuple(inferred)
    return union(part for span in held for part in clipped(marks, span))


def marked(windows: Iterable[CoveredWindow], inferred: Sequence[Span]) -> list[CoveredWindow]:
    """The windows, with those parts apart that are inferred."""
    told: list[CoveredWindow] = []
    for window in windows:
        told += [CoveredWindow(part, window.fetched_us) for part in gaps(window.span, inferred)]
        told += [CoveredWindow(part, window.fetched_us, inferred=True) for part in clipped(inferred, window.span)]
    return sorted(told, key=lambda one: one.span)


def settled_and_provisional(windows: Iterable[CoveredWindow], spec: SeriesSpec) -> tuple[list[Span], list[CoveredWindow]]:
    """Windows parted into what cannot grow any more and what still may."""
    lateness = seconds_us(spec.settles_after_s)
    settled: list[Span] = []
    provisional: list[CoveredWindow] = []
    for window in windows:
        edge = min(max(window.fetched_us - lateness, window.span.start_us), window.span.end_us)
        if sure := span_or_none(window.span.start_us, edge):
            settled.append(sure)
        if unsure := span_or_none(edge, window.span.end_us):
            provisional.append(CoveredWindow(unsure, window.fetched_us))
    return settled, provisional


@dataclass(frozen=True, slots=True)
class SpanCoverage:
    """What is known of a wanted span. Held, gaps and future partition it, but for a tolerated tip (`stale_us`)."""

    coverage: Coverage
    gaps: tuple[Span, ...]
    held: tuple[Span, ...]
    provisional: tuple[Span, ...]
    future: Span | None
    stale_us: int


def judge(
    wanted: Span,
    windows: Sequence[CoveredWindow],
    spec: SeriesSpec,
    now_us: int,
    last: CoveredWindow | None = None,
    fresh_for_s: float | None = None,
) -> SpanCoverage:
    """Subtract what is held from what is wanted.

    `windows` are all that touch `wanted`, and the newest one before it, which tells how stale the tip is; `last` is the
    newest of the whole series: a gap with covered time behind it is no tip. `fresh_for_s` stands for the series' own, but
    where the tip is all that is wanted, it makes nothing fresh: nothing of it was fetched, so it is not known to be empty.
    """
    own_us = seconds_us(spec.fresh_for_s)
    fresh_us = own_us if fresh_for_s is None else seconds_us(fresh_for_s)
    sure, unsure = settled_and_provisional(windows, spec)
    # What was fetched far ahead was fetched by a clock that was set back since: how old it is nobody knows.
    fresh = [window.span for window in unsure if -SET_BACK_US <= now_us - window.fetched_us <= fresh_us]
    past = span_or_none(wanted.start_us, min(wanted.end_us, now_us))
    future = span_or_none(max(wanted.start_us, now_us), wanted.end_us)
    if past is None:
        return SpanCoverage(coverage="none", gaps=(), held=(), provisional=(), future=future, stale_us=0)
    provisional = union(clipped((window.span for window in unsure), past))
    held = union((*sure, *fresh))
    missing = gaps(past, held)
    newest = max((window.span.end_us for window in (*windows, *([last] if last else []))), default=past.start_us)
    inside = tuple(clipped(held, past))
    tip_us = fresh_us if inside else min(own_us, fresh_us)
    stale_us = 0
    if missing and newest <= missing[-1].start_us and now_us - newest < tip_us:
        stale_us = _lag(past, missing, held)
    if stale_us:
        missing = missing[:-1]
    if not missing and future is None:
        coverage: Coverage = "full"
    else:
        coverage = "partial" if inside or stale_us else "none"
    return SpanCoverage(coverage=coverage, gaps=missing, held=inside, provisional=provisional, future=future, stale_us=stale_us)


def _lag(past: Span, missing: Sequence[Span], held: Sequence[Span]) -> int:
    """How far the newest held window lags behind the end of what is wanted; 0 if that end is covered, or nothing is."""
    if missing[-1].end_us != past.end_us:
        return 0
    before = [span.end_us for span in held if span.end_us <= missing[-1].start_us]
    return past.end_us - max(before) if before else 0


def judge_by_entries(
    wanted: Span, oldest_us: int | None, newest_us: int | None, inside: int, rule: CoverageRule, now_us: int
) -> SpanCoverage:
    """The seed's own rule: the oldest entry decides, whatever was fetched. Kept for comparison; it claims too much, but of the
    future nothing."""
    past = span_or_none(wanted.start_us, min(wanted.end_us, now_us))
    future = span_or_none(max(wanted.start_us, now_us), wanted.end_us)
    if past is None or oldest_us is None or newest_us is None or inside == 0 or oldest_us >= past.end_us:
        missing = () if past is None else (past,)
        return SpanCoverage(coverage="none", gaps=missing, held=(), provisional=(), future=future, stale_us=0)
    reaches_back = oldest_us <= past.start_us
    reaches_on = rule == "seed_span" or newest_us >= past.end_us
    if reaches_back and reaches_on:
        coverage: Coverage = "partial" if future else "full"
        return SpanCoverage(coverage=coverage, gaps=(), held=(past,), provisional=(), future=future, stale_us=0)
    tips = []
    if not reaches_back:
        tips.append(Span(past.start_us, min(oldest_us, past.end_us)))
    if not reaches_on and (tip := span_or_none(max(newest_us, past.start_us), past.end_us)):
        tips.append(tip)
    return SpanCoverage(coverage="partial", gaps=tuple(tips), held=(), provisional=(), future=future, stale_us=0)


def in_words(verdict: SpanCoverage, *, count: int, anything: bool, wanted: Span) -> str:
    """Why the answer is what it is, in the seed's sentences where they fit."""
    if verdict.coverage == "full":
        stale = f", the newest {_duration(verdict.stale_us)} tolerated as fresh" if verdict.stale_us else ""
        return f"Complete coverage from state{stale}"
    if verdict.coverage == "none":
        if verdict.future == wanted:
            known = f"; {count} {'entry is' if count == 1 else 'entries are'} stored, perhaps not all" if count else ""
            return f"The range is in the future, which is never covered{known}"
        if not anything:
            return "No data in state"
        if verdict.provisional:
            return "Fetched before its entries had settled, need API to fetch it again"
        return "No entries in requested range" if count == 0 else "Entries are stored, but no fetch covers the requested range"
    if not verdict.gaps:
        return "Covered up to now; the rest of the range is in the future"
    [first, *more] = verdict.gaps
    if not more and first.start_us == wanted.start_us:
        return f"State only goes back to {from_us(first.end_us).isoformat()}, need API for older data"
    listed = ", ".join(f"{gap.start.isoformat()} to {gap.end.isoformat()}" for gap in verdict.gaps[:3])
    rest = f" and {len(verdict.gaps) - 3} more" if len(verdict.gaps) > 3 else ""
    return f"State has gaps, need API for {listed}{rest}"


def _duration(us: int) -> str:
    seconds = us / SECOND_US
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {word}"
    return f"{seconds:.3g} s"


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
