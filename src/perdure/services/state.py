"""Key-value state: any JSON under a key, every revision kept, a deletion included."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import takewhile

from perdure.domain.errors import Conflict, InvalidInput, NotFound
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, RESERVED, Owner
from perdure.domain.state import KeyInfo, Loaded, Revision
from perdure.domain.text import Json, brief, check_id, encode_json, utf8_size
from perdure.engine.entries import state_entry
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.entering import ZONE

PREVIEW_CHARS = 100
KEYS_PER_PAGE = 500
KEYS_PER_READING = 5_000
KEYS_MAX = 10_000_000
REVISION_MAX = 2**62
PATTERN_BYTES_MAX = 1_000
WILDCARDS = "*?["


@dataclass(frozen=True, slots=True)
class StateService:
    store: Store
    clock: Clock
    limits: Limits

    def save(
        self,
        owner: Owner,
        key: str,
        value: Json,
        *,
        expected: int | None = None,
        expires_in_s: float | None = None,
        request: str | None = None,
    ) -> Revision:
        """Store a value as the next revision. With `expected`, only if the key still stands at that revision (0: none).

        A `request` that was carried out before answers with the revision it made.
        """
        _check_own_key(key)
        limits = self.limits
        body = encode_json(value, "`value`", bytes_max=limits.state_value_bytes_max, limit="state_value_bytes_max")
        now = self.clock.now()
        expires = None if expires_in_s is None else _later(now, expires_in_s)
        return self._put(owner, Revision(key, 0, body, now, expires, self._request(request)), expected)

    def delete(self, owner: Owner, key: str, *, expected: int | None = None) -> bool:
        """Take the value away; it stays in the history. False if there was none."""
        _check_own_key(key)
        return self._delete(owner, key, expected)

    def _delete(self, owner: Owner, key: str, expected: int | None = None) -> bool:
        now = self.clock.now()
        request = self._request(None)

        def work(tx: Tx) -> bool:
            latest = tx.state.find(key)
            if latest is not None and latest.request == request:
                return True  # done before; only the answer was lost
            _check_expected(key, latest, expected)
            if latest is None or latest.body is None:
                return False
            alive = latest.alive(now)
            deletion = Revision(key, latest.number + 1, None, now, request=request)
            tx.state.put(deletion, keep=self.limits.state_revisions_max)
            tx.index.remove("state", [key], now=now)
            return alive

        return self.store.write(owner, work)

    def find(self, owner: Owner, key: str, *, revision: int | None = None) -> Loaded:
        """The value if there is one; of a past revision if asked for, expired or not."""
        _check_key(key)
        now = self.clock.now()

        def work(view: View) -> Revision | None:
            return view.state.find(key) if revision is None else view.state.find_revision(key, revision)

        if revision is not None and not _is_revision(revision):
            return Loaded(key, found=False)
        held = self.store.read(owner, work)
        if held is None or held.body is None or (revision is None and not held.alive(now)):
            # The number is told all the same: it is what `expected` has to name.
            return Loaded(key, found=False, revision=0 if held is None else held.number)
        return Loaded(key, found=True, value=json.loads(held.body), revision=held.number, updated_at=held.saved_at)

    def list_keys(self, owner: Owner, pattern: str, *, limit: int | None) -> tuple[list[KeyInfo], bool]:
        """Keys that match a case-exact glob, in order, and whether there are more; without a limit, all of them."""
        if not pattern or not utf8_size(pattern, "`pattern`"):
            raise InvalidInput(f"`pattern` = {brief(pattern, 60)} must be text such as kudos* or *_givers")
        if utf8_size(pattern, "`pattern`") > PATTERN_BYTES_MAX:
            # No key is as long, and a longer pattern takes minutes to be made ready.
            raise InvalidInput(f"`pattern` is longer than {PATTERN_BYTES_MAX} bytes; use a shorter one")
        most = KEYS_MAX if limit is None else self.limits.page(limit)
        now = self.clock.now()
        prefix = "".join(takewhile(lambda letter: letter not in WILDCARDS, pattern))
        asked_for = _is_reserved(prefix)

        def work(view: View) -> list[KeyInfo]:
            found: list[KeyInfo] = []
            after: str | None = None
            while len(found) <= most:
                page = view.state.list_keys(now=now, prefix=prefix, after=after, limit=KEYS_PER_PAGE)
                found += [info for info in page if fnmatchcase(info.key, pattern) and (asked_for or not _is_reserved(info.key))]
                if len(page) < KEYS_PER_PAGE:
                    break
                after = page[-1].key
            return found

        found = self.store.read(owner, work)
        return [replace(info, preview=_preview(info.preview)) for info in found[:most]], len(found) > most

    def keys_in(self, view: View, now: datetime, *, limit: int) -> list[KeyInfo]:
        """As part of a reading: the first keys that hold a value, without those that perdure itself keeps.

        Their previews are as the store has them: a character longer than what is shown if there is more.
        """
        found: list[KeyInfo] = []
        after: str | None = None
        while len(found) < limit:
            page = view.state.list_keys(now=now, prefix="", after=after, limit=min(limit, KEYS_PER_READING))
            found += [info for info in page if not _is_reserved(info.key)]
            if len(page) < min(limit, KEYS_PER_READING):
                break
            after = page[-1].key
        return found[:limit]

    def history(self, owner: Owner, key: str, *, limit: int, before: int | None = None) -> list[Revision]:
        _check_key(key)
        rows = self.limits.page(limit)
        top = self.limits.before(before)
        return self.store.read(owner, lambda view: view.state.list_revisions(key, limit=rows, before=top))

    def restore(self, owner: Owner, key: str, revision: int) -> Revision:
        """Save the value of a past revision as the next one."""
        _check_own_key(key)
        past = None
        if _is_revision(revision):
            past = self.store.read(owner, lambda view: view.state.find_revision(key, revision))
        if past is None or past.body is None:
            raise NotFound(f"key {brief(key, 80)} has no value at revision {revision}; `history` lists what there is")
        return self._put(owner, Revision(key, 0, past.body, self.clock.now(), request=self._request(None)), None)

    def clear(self, owner: Owner) -> int:
        """Delete every key; each can be restored from its history. How many there were."""
        infos, _ = self.list_keys(owner, "*", limit=None)
        return sum(self._delete(owner, info.key) for info in infos)

    def _request(self, given: str | None) -> str:
        return self.clock.new_id() if given is None else check_id(given, "request", bytes_max=ID_BYTES_MAX)

    def _put(self, owner: Owner, draft: Revision, expected: int | None) -> Revision:
        def work(tx: Tx) -> Revision:
            latest = tx.state.find(draft.key)
            if made := tx.state.find_request(draft.key, draft.request):
                if made.body != draft.body:
                    raise Conflict(
                        f"request {brief(draft.request, 80)} has saved another value already; give each save its own"
                    )
                return made
            _check_expected(draft.key, latest, expected)
            numbered = replace(draft, number=1 if latest is None else latest.number + 1)
            tx.state.put(numbered, keep=self.limits.state_revisions_max)
            tx.index.put([state_entry(numbered, ZONE)], now=draft.saved_at)
            return numbered

        return self.store.write(owner, work)


def _is_revision(number: int) -> bool:
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidInput(f"`revision` = {brief(number)} must be a whole number")
    return 1 <= number <= REVISION_MAX


def _check_key(key: str) -> None:
    check_id(key, "key", bytes_max=ID_BYTES_MAX)


def _check_own_key(key: str) -> None:
    _check_key(key)
    if _is_reserved(key):
        raise InvalidInput(f"`key` = {brief(key, 80)} starts with `{RESERVED}`, which is reserved; choose another name")


def _is_reserved(key: str) -> bool:
    """Whether perdure itself keeps something under it, such as a context document. Such keys are listed if asked for."""
    return key.startswith(RESERVED)


def _check_expected(key: str, latest: Revision | None, expected: int | None) -> None:
    held = 0 if latest is None else latest.number
    if expected is not None and (isinstance(expected, bool) or not isinstance(expected, int)):
        raise InvalidInput(f"`expected` = {brief(expected)} must be the number of a revision, or 0 for none yet")
    if expected is not None and expected != held:
        raise Conflict(f"key {brief(key, 80)} stands at revision {held}, not {brief(expected)}; load it again, then decide")


def _later(now: datetime, seconds: float) -> datetime:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 10**10:
        raise InvalidInput(f"`expires_in_s` = {brief(seconds)} must be a number of seconds above 0")
    try:
        return now + timedelta(seconds=seconds)
    except OverflowError:
        raise InvalidInput(f"`expires_in_s` = {brief(seconds)} ends after the year 9999; leave it out") from None


def _preview(text: str | None) -> str | None:
    if text is None or len(text) <= PREVIEW_CHARS:
        return text
    return text[:PREVIEW_CHARS] + "..."
