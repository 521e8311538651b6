"""Key-value state: any JSON under a key, every revision kept, a deletion included."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from itertools import takewhile

from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, RESERVED, Owner
from perdure.domain.state import (
    BEGINNINGS,
    KeyInfo,
    ListPart,
    Revision,
    StateValue,
    check_texts,
    check_unmarked,
    decoded,
    decoded_body,
    encoded,
    is_found,
    is_plain,
    list_part,
    verbatim_body,
)
from perdure.domain.text.rules import Json, brief, check_id, encode_json, has_more_parts, utf8_size
from perdure.domain.values import dataclass, replace
from perdure.engine.search.entries import state_entry
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.index.writes import ZONE

PREVIEW_CHARS = 100
KEYS_PER_PAGE = 500
KEYS_PER_READING = 5_000
KEYS_MAX = 10_000_000
REVISION_MAX = 2**62
PARTS_PER_PAGE = 1_000
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
        texts: Sequence[str] | None = None,
    ) -> Revision:
        """Store a value as the next revision. With `expected`, only if the key still stands at that revision (0: none).

        A `request` that was carried out before answers with the revision it made. With `texts`, be there any or none, it is
        verbatim: it may hold bytes, comes back as it is, is never learned from or cleared of secrets, and is found by those.
        """
        _check_own_key(key)
        body = self._body(value, texts)
        now = self.clock.now()
        expires = None if expires_in_s is None else _later(now, expires_in_s)
        return self._put(
            owner,
            Revision(key=key, number=0, body=body, saved_at=now, expires_at=expires, request=self._request(request)),
            expected,
        )

    def append(
        self, owner: Owner, key: str, items: Sequence[Json], *, expected: int | None = None, request: str | None = None
    ) -> Revision:
        """Add items to the list under a key; the revision holds these alone, so that it costs what they do.

        A key without a value begins a list; one that holds another value is a `Conflict`.
        """
        _check_own_key(key)
        if not isinstance(items, list | tuple):
            raise InvalidInput(f"`items` = {brief(items)} must be a list; to add one item, put it into one")
        self._check_parts(items, "`items`")
        now, request = self.clock.now(), self._request(request)
        added = ListPart(tuple(encoded(one, f"`items[{place}]`") for place, one in enumerate(items)))
        self._check_size(added.body(), "`items`")

        def work(tx: Tx) -> Revision:
            latest = tx.state.find(key)
            if made := tx.state.find_request(key, request):
                part = list_part(made.body)
                if part is None or part.items != added.items:
                    raise Conflict(f"request {brief(request, 80)} has saved something else already; give each its own")
                return made
            _check_expected(key, latest, expected)
            held = latest.number if latest is not None else 0
            before = list_part(latest.body) if latest is not None and latest.alive(now) else None
            if before is None and latest is not None and latest.alive(now):
                raise Conflict(f"key {brief(key, 80)} holds a value that is no list; delete it first, or use another key")
            first, count = (held + 1, 0) if before is None else (before.first, before.count)
            part = replace(added, after=0 if before is None else held, first=first, count=count + len(items))
            number = held + 1
            revision = Revision(key, number, part.body(), now, request=request)
            tx.state.put(revision, keep=max(self.limits.state_revisions_max, number - first + 1))
            tx.index.remove("state", [key], now=now)
            return revision

        return self.store.write(owner, work)

    def _body(self, value: Json, texts: Sequence[str] | None) -> str:
        if texts is not None:
            self._check_parts(value, "`value`")
            return self._check_size(verbatim_body(value, check_texts(texts)), "`value`")
        check_unmarked(value)
        most = self.limits.state_value_bytes_max
        return encode_json(value, "`value`", bytes_max=most, limit="state_value_bytes_max")

    def _check_parts(self, value: object, what: str) -> None:
        # Each part takes a byte at least. Lists that hold one another's parts many times over are small in memory only.
        most = self.limits.state_value_bytes_max
        if has_more_parts(value, most):
            raise LimitExceeded(
                f"{what} has more parts than `state_value_bytes_max` = {most} bytes; send less or raise the limit"
            )

    def _check_size(self, body: str, what: str) -> str:
        size, most = utf8_size(body, what), self.limits.state_value_bytes_max
        if size > most:
            raise LimitExceeded(
                f"{what} is {size} bytes as JSON, more than `state_value_bytes_max` = {most}; send less or raise it"
            )
        return body

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
            tx.state.put(deletion, keep=self._kept(latest))
            tx.index.remove("state", [key], now=now)
            return alive

        return self.store.write(owner, work)

    def find(self, owner: Owner, key: str, *, revision: int | None = None) -> StateValue:
        """The value if there is one; of a past revision if asked for, expired or not."""
        _check_key(key)
        now = self.clock.now()

        def work(view: View) -> tuple[Revision | None, Json]:
            held = view.state.find(key) if revision is None else view.state.find_revision(key, revision)
            return held, None if held is None or held.body is None else _value(view, held)

        if revision is not None and not _is_revision(revision):
            return StateValue(key, found=False)
        held, value = self.store.read(owner, work)
        if held is None or held.body is None or (revision is None and not held.alive(now)):
            # The number is told all the same: it is what `expected` has to name.
            return StateValue(key, found=False, revision=0 if held is None else held.number)
        return StateValue(key, found=True, value=value, revision=held.number, updated_at=held.saved_at)

    def find_many(self, owner: Owner, keys: Sequence[str]) -> dict[str, Json]:
        """The values of those that there are, as of one moment."""
        now = self.clock.now()

        def work(view: View) -> dict[str, Json]:
            held = view.together(*(partial(view.state.find, key) for key in keys))
            return {one.key: _value(view, one) for one in held if one is not None and one.alive(now)}

        return self.store.read(owner, work) if keys else {}

    def list_keys(self, owner: Owner, pattern: str, *, limit: int | None) -> tuple[list[KeyInfo], bool]:
        """Keys that match a case-exact glob, in order, and whether there are more; without a limit, all of them."""
        check_pattern(pattern)
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
        """As part of a reading: the first keys that hold a plain value, without those that perdure itself keeps.

        Their previews are as the store has them: a character longer than what is shown if there is more.
        """
        found: list[KeyInfo] = []
        after: str | None = None
        while len(found) < limit:
            page = view.state.list_keys(now=now, prefix="", after=after, limit=min(limit, KEYS_PER_READING))
            found += [info for info in page if not _is_reserved(info.key) and not (info.preview or "").startswith(BEGINNINGS)]
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
        if past is not None and (part := list_part(past.body)) is not None:
            # It goes on from there, and takes no room for what is held already.
            past = replace(past, body=replace(part, items=(), after=past.number).body())
        if past is None or past.body is None:
            raise NotFound(f"key {brief(key, 80)} has no value at revision {brief(revision)}; `history` lists what there is")
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
            tx.state.put(numbered, keep=self._kept(numbered))
            if is_found(numbered.body):
                tx.index.put([state_entry(numbered, ZONE)], now=draft.saved_at)
            else:
                tx.index.remove("state", [draft.key], now=draft.saved_at)
            return numbered

        return self.store.write(owner, work)

    def _kept(self, latest: Revision) -> int:
        """How many revisions stay: a list needs all that it is made of, and a deleted one can be restored."""
        part = list_part(latest.body)
        held = 0 if part is None else latest.number - part.first + 2
        return max(self.limits.state_revisions_max, held)


def _value(view: View, held: Revision) -> Json:
    """The value of a revision; that of a list is put together from its parts."""
    part = list_part(held.body)
    if part is None:
        return decoded_body(held.body or "null")
    parts = [part]
    before, wanted = held.number, part.after
    while wanted:
        page = view.state.list_revisions(held.key, limit=PARTS_PER_PAGE, before=before)
        for one in page:
            if one.number == wanted and (more := list_part(one.body)) is not None:
                parts.append(more)
                wanted = more.after
        if not page:
            raise NotFound(
                f"the list {brief(held.key, 80)} at revision {held.number} is kept no longer; `history` lists what is"
            )
        before = page[-1].number
    return [decoded(one) for part in reversed(parts) for one in part.items]


def check_pattern(pattern: str) -> None:
    """`InvalidInput` unless it is a glob that keys can be held against."""
    if not pattern or not utf8_size(pattern, "`pattern`"):
        raise InvalidInput(f"`pattern` = {brief(pattern, 60)} must be text such as kudos* or *_givers")
    if utf8_size(pattern, "`pattern`") > PATTERN_BYTES_MAX:
        # No key is as long, and a longer pattern takes minutes to be made ready.
        raise InvalidInput(f"`pattern` is longer than {PATTERN_BYTES_MAX} bytes; use a shorter one")


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
        return text if is_plain(text) else None
    return text[:PREVIEW_CHARS] + "..."
