"""`ana.state`: key-value state of one user, shared by that user's agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from perdure.domain.scope import Scope
from perdure.domain.state import TEXTS_MAX, KeyInfo, Revision, StateMatches, StateValue, check_texts
from perdure.domain.text.rules import Json, check_flag
from perdure.handles import arguments as arg
from perdure.handles.operation import Arg, Handle, fresh, names, operation
from perdure.services.access.log import DELETE, UPSERT, AccessLog
from perdure.services.access.mentions import Mention
from perdure.services.context.state_search import StateSearch
from perdure.services.series.state import StateService

SEARCHED = 100
Key = Annotated[str, arg.an_id("The key.", "units")]
IndexText = Annotated[str, Arg("A text.", max_length=arg.TEXT_CHARS_MAX)]
Pattern = Annotated[
    str,
    Arg("A glob; case matters.", min_length=1, max_length=400, pattern=arg.PLAIN, example="kudos*"),
]
Expected = Annotated[
    int | None, Arg("Only if this is the current revision; 0: only if there is none.", ge=0, le=arg.NUMBER_MAX)
]
Request = Annotated[str | None, arg.an_id("Your own id: repeating it makes no second revision.")]
OfRevision = Annotated[int | None, Arg("An earlier revision.", ge=1, le=arg.NUMBER_MAX)]


class State(Handle, namespace="state"):
    """Any JSON under a key. Every save and deletion is a revision that can be looked at and restored."""

    __slots__ = ("_search", "_service")

    def __init__(self, scope: Scope, service: StateService, search: StateSearch, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._service = service
        self._search = search

    @operation("change", about=names("state", "key"), span=UPSERT)
    def save(
        self,
        key: Key,
        value: Annotated[Json, Arg("Any JSON; if verbatim, bytes, too.", example="metric")],
        *,
        expected: Expected = None,
        expires_in_s: Annotated[float | None, Arg("Seconds until it is deleted.", gt=0, le=arg.SECONDS_MAX)] = None,
        request: Request = None,
        verbatim: Annotated[bool, Arg("Return it unchanged: not searched, not shown to agents, secrets left in it.")] = False,
        index: Annotated[
            Sequence[IndexText], Arg("Texts to find it by in meaning; it is then verbatim.", max_length=TEXTS_MAX)
        ] = (),
    ) -> int:
        """Keep a value. The number is that of the new revision. `Conflict` if `expected` is another one than held (0: none
        yet).

        Give a `request` id to be able to repeat the call after a lost answer: it then makes one revision. A `verbatim` value
        may hold bytes and NUL, and comes back equal: it is never searched, learned from or offered to an agent, and a secret
        in it stays. Forgetting replaces it as a whole by `[forgotten]` if it tells of what is forgotten.

        With texts in `index`, `search(query=…)` and `recall` find it by the meaning of each, while it lasts. Such a value is
        verbatim; its texts are what agents may see of it, without secrets.
        """
        texts = check_texts(index)
        saved = self._service.save(
            self.scope.owner,
            key,
            value,
            expected=expected,
            expires_in_s=expires_in_s,
            request=request,
            texts=texts if check_flag(verbatim, "verbatim") or texts else None,
        )
        return saved.number

    @operation("change", about=names("state", "key"), span=UPSERT)
    def append(
        self,
        key: Key,
        items: Annotated[Sequence[Json], Arg("What to add, each kept verbatim.", example=["first", "second"])],
        *,
        expected: Expected = None,
        request: Request = None,
    ) -> int:
        """Add items to the list under a key. The number is that of the new revision.

        It costs what is added, however long the list is. `load` gives the whole list; its items are kept as verbatim values
        are. A key without a value begins one; a value that is no list is a `Conflict`.
        """
        return self._service.append(self.scope.owner, key, items, expected=expected, request=request).number

    @operation("read")
    def load(
        self, key: Key, default: Annotated[Json, Arg("What to return if there is none.")] = None, *, revision: OfRevision = None
    ) -> Json:
        """The value, or `default` if there is none. Use `find` to tell a stored null from a missing key."""
        loaded = self._service.find(self.scope.owner, key, revision=revision)
        self._note(loaded)
        return loaded.value if loaded.found else default

    @operation("read")
    def find(self, key: Key, *, revision: OfRevision = None) -> StateValue:
        """Show a value with its revision and time, if there is one."""
        return self._service.find(self.scope.owner, key, revision=revision)

    @operation("change", about=names("state", "key"), span=DELETE)
    def delete(self, key: Key, *, expected: Expected = None) -> bool:
        """Take a value away; its history stays. False if there was none."""
        return self._service.delete(self.scope.owner, key, expected=expected)

    @operation("read", about=lambda _handle, _given, keys: (Mention("state", key) for key in keys))
    def keys(self) -> Sequence[str]:
        """All keys, in order."""
        return [info.key for info in self.list()]

    @operation("read")
    def list(
        self, pattern: Pattern = "*", *, limit: Annotated[int | None, Arg("How many at most; all, if left out.", ge=1)] = None
    ) -> Sequence[KeyInfo]:
        """List keys with time and size; no value is loaded. Each has a preview of 100 characters. Without a limit, all."""
        return self._service.list_keys(self.scope.owner, pattern, limit=limit)[0]

    @operation("read")
    @fresh(indexed=True)
    def search(
        self,
        pattern: Pattern = "*",
        *,
        query: Annotated[
            str | None, Arg("What to find, in plain words; nearest in meaning first.", max_length=10_000, pattern=arg.WORDS)
        ] = None,
        limit: Annotated[int | None, Arg("How many at most; 100, if left out.", ge=1)] = None,
    ) -> StateMatches:
        """Find keys and values that match. The pattern is a case-exact glob such as `kudos*` or `*_givers`; at most 100 unless
        told otherwise. Verbatim values and lists are left out.

        With a `query`, those under matching keys whose texts are nearest to it in meaning, with a score each: a value that was
        saved with `index` by those texts, a plain one by its key and beginning. What waits for its vector is found by words.
        """
        owner, service = self.scope.owner, self._service
        most = min(SEARCHED, service.limits.page_rows_max) if limit is None else limit
        if query is not None:
            return self._search.search(self.scope, query, pattern, limit=most)
        infos, truncated = service.list_keys(owner, pattern, limit=most)
        found = [service.find(owner, info.key) for info in infos if info.preview is not None]
        values = {one.key: one.value for one in found if one.found}
        return StateMatches(pattern, tuple(values), values, truncated)

    @operation("read")
    def history(self, key: Key, *, limit: arg.Limit = 100, before: arg.BeforeNumber = None) -> Sequence[Revision]:
        """Show the revisions of a key, newest first. A deletion has no body."""
        return self._service.history(self.scope.owner, key, limit=limit, before=before)

    @operation("change", about=names("state", "key"), span=UPSERT)
    def restore(
        self, key: Key, revision: Annotated[int, Arg("The revision to restore.", ge=1, le=arg.NUMBER_MAX, example=1)]
    ) -> int:
        """Make a past value the current one. It becomes the next revision. The number is that of the new one."""
        return self._service.restore(self.scope.owner, key, revision).number

    @operation("change", span=DELETE)
    def clear(self) -> int:
        """Delete every key; returns how many. Each can be restored."""
        return self._service.clear(self.scope.owner)
