"""What the seeds' state tools see: plain values and series under one roof, each by its name.

A series is told in the seed's own structure, its newest entries first. Where a value and a series share a name, the name
means the value.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from perdure.domain.errors import NotFound
from perdure.domain.series import Series
from perdure.domain.text.rules import Json
from perdure.handles.series import UserSeries, answer_dict, series_dict
from perdure.handles.state import SEARCHED, State
from perdure.services.series.state import PREVIEW_CHARS

ENTRIES_LOADED, ENTRIES_FOUND = 1_000, 100
"""How many entries of a series are told: alone, and among others that match a pattern."""
EVER = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
Told = dict[str, Json]


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The state and the series of one user, as a model asks for them by key."""

    state: State
    series: UserSeries
    rows_max: int
    """Of one listing."""

    def load(self, key: str) -> Told:
        """What is kept under a key, and whether anything is."""
        found = self.state.find(key)
        if not found.found and (held := self._named(key)):
            return {"key": key, "found": True, "revision": 0, **self._whole(held, ENTRIES_LOADED)}
        return {"key": key, "value": found.value, "found": found.found, "revision": found.revision}

    def keys(self, *, previews: bool) -> list[Told]:
        """Every key with time and size, in order. A series has its number of entries in place of a size."""
        told: list[Told] = []
        for info in self.state.list():
            one: Told = {"key": info.key, "updated_at": info.updated_at.isoformat(), "size_bytes": info.size_bytes}
            told.append({**one, "preview": info.preview} if previews else one)
        for held in self._series("*"):
            one = {"key": held.name, "updated_at": held.last_updated.isoformat(), "size_bytes": None, **_as_series(held)}
            told.append({**one, "preview": _preview(series_dict(held))} if previews else one)
        return sorted(told, key=lambda one: (str(one["key"]), "kind" in one))

    def search(self, pattern: str, limit: int | None) -> Told:
        """The keys that match a glob with what is kept under them."""
        found = self.state.search(pattern, limit=limit)
        most = SEARCHED if limit is None else limit
        results = dict(found.results)
        matching = [held for held in self._series(pattern) if held.name not in results]
        room = max(0, most - len(results))
        results |= {held.name: self._whole(held, ENTRIES_FOUND)["value"] for held in matching[:room]}
        return {
            "success": True,
            "pattern": pattern,
            "matches": sorted(results),
            "results": results,
            "truncated": found.truncated or len(matching) > room,
        }

    def _series(self, pattern: str) -> list[Series]:
        return [one for one in self.series.list(self.rows_max) if fnmatchcase(one.name, pattern)]

    def _named(self, key: str) -> Series | None:
        with suppress(NotFound):
            return self.series(key).about()
        return None

    def _whole(self, held: Series, entries: int) -> Told:
        answer = self.series(held.name).query(*EVER, limit=min(entries, self.rows_max))
        told = answer_dict(answer)
        value: Told = {**series_dict(held), "entries": told["entries"]}
        if not told["truncated"]:
            return {"value": value, **_as_series(held)}
        more = f"the newest {len(answer.entries)} of {answer.count} entries; queryTimeseriesState gives the others"
        return {"value": {**value, "note": more}, **_as_series(held)}


def _as_series(held: Series) -> Told:
    return {"kind": "series", "count": held.count}


def _preview(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."
