"""`ana.state`: key-value state of one user, shared by that user's agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from perdure.domain.scope import Owner
from perdure.domain.state import KeyInfo, Loaded, Revision
from perdure.domain.text import Json
from perdure.services.spans import DELETE, UPSERT, traced
from perdure.services.state import StateService

SEARCHED = 100


@dataclass(frozen=True, slots=True)
class Found:
    """Keys that match, their values, and whether the limit cut the list."""

    pattern: str
    matches: tuple[str, ...]
    results: dict[str, Json] = field(default_factory=dict)
    truncated: bool = False


class State:
    """Any JSON under a key. Every save and deletion is a revision that can be looked at and restored."""

    __slots__ = ("_owner", "_service")

    def __init__(self, owner: Owner, service: StateService) -> None:
        self._owner = owner
        self._service = service

    @traced(UPSERT)
    def save(
        self,
        key: str,
        value: Json,
        *,
        expected: int | None = None,
        expires_in_s: float | None = None,
        request: str | None = None,
    ) -> int:
        """Store a value; the number of the new revision. `Conflict` if `expected` is another one than held (0: none yet).

        Give a `request` id to be able to repeat the call after a lost answer: it then makes one revision.
        """
        service = self._service
        return service.save(self._owner, key, value, expected=expected, expires_in_s=expires_in_s, request=request).number

    def load(self, key: str, default: Json = None, *, revision: int | None = None) -> Json:
        """The value, or `default` if there is none. Use `find` to tell a stored null from a missing key."""
        loaded = self._service.find(self._owner, key, revision=revision)
        return loaded.value if loaded.found else default

    def find(self, key: str, *, revision: int | None = None) -> Loaded:
        """The value with its revision and time, and whether there is one."""
        return self._service.find(self._owner, key, revision=revision)

    @traced(DELETE)
    def delete(self, key: str, *, expected: int | None = None) -> bool:
        """Take the value away; its history stays. False if there was none."""
        return self._service.delete(self._owner, key, expected=expected)

    def keys(self) -> Sequence[str]:
        """All keys, in order."""
        return [info.key for info in self.list()]

    def list(self, pattern: str = "*", *, limit: int | None = None) -> Sequence[KeyInfo]:
        """Keys that match, with time, size and a preview of 100 characters; no value is loaded. Without a limit, all."""
        return self._service.list_keys(self._owner, pattern, limit=limit)[0]

    def search(self, pattern: str, *, limit: int | None = None) -> Found:
        """Keys and values that match a case-exact glob such as `kudos*` or `*_givers`; at most 100 unless told otherwise."""
        most = min(SEARCHED, self._service.limits.page_rows_max) if limit is None else limit
        infos, truncated = self._service.list_keys(self._owner, pattern, limit=most)
        found = [self._service.find(self._owner, info.key) for info in infos]
        values = {one.key: one.value for one in found if one.found}
        return Found(pattern, tuple(values), values, truncated)

    def history(self, key: str, *, limit: int = 100, before: int | None = None) -> Sequence[Revision]:
        """Revisions, newest first; a deletion has no body."""
        return self._service.history(self._owner, key, limit=limit, before=before)

    @traced(UPSERT)
    def restore(self, key: str, revision: int) -> int:
        """Save the value of a past revision as the next one; its number."""
        return self._service.restore(self._owner, key, revision).number

    @traced(DELETE)
    def clear(self) -> int:
        """Delete every key; how many there were. Each can be restored."""
        return self._service.clear(self._owner)
