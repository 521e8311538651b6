"""The access log: every call is in it, durably, before its answer is given; a call that cannot be logged is not answered.

What a call may not be told by is its content, so an entry is made of what the call is named, who made it, and the ids of what
it touched. It is written after the call and before its answer, because only then is known what that was. A call that gives data
elsewhere than in its answer, or destroys some, cannot be withheld then: it is in the log before it begins, and its end later.

If the host program uses OpenTelemetry, which shows in the modules that are loaded, a call has a span, too: which kind of
operation, in which space, on how many records; never a user's name or words, nor the text of an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from perdure.domain.access import OPERATIONS_MAX, PROGRAM, Access, AccessMode, Action, Asker, without_names
from perdure.domain.context.context import Context
from perdure.domain.context.recall import Recall
from perdure.domain.conversation.messages import Message
from perdure.domain.errors import Conflict, PerdureError, Unavailable
from perdure.domain.limits import Limits
from perdure.domain.oversight import Injection
from perdure.domain.scope import ID_BYTES_MAX, Owner, Scope
from perdure.domain.series import MergeResult
from perdure.domain.text.rules import check_id
from perdure.domain.values import dataclass, replace
from perdure.engine.knowledge.outcomes import Outcome
from perdure.ports.clock import Clock
from perdure.ports.store import Row, Store, Tx
from perdure.ports.tables.access import ACCESSES, OwnerVersion, access_row
from perdure.services.access.mentions import touched

T = TypeVar("T")
About = Callable[[Any], Sequence[object]]
Through = Callable[[str, Iterator[Row]], Iterator[Row]]
"""Rows of a table on their way into a store."""
REFUSED_S = 1.0
"""A call that the store did not answer is noted if that takes no longer; its caller has waited already."""
_MADE: ContextVar[list[int] | None] = ContextVar("perdure_operations_made", default=None)


class NotingStore:
    """Passes everything on, and notes for the call that is under way which operations its writes have recorded."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        answer, made = self._inner.write(owner, lambda tx: (work(tx), tuple(tx.journalled)), deadline_s=deadline_s)
        held = _MADE.get()
        if held is not None:
            held.extend(made)
        return answer

    def __getattr__(self, name: str) -> Any:
        # Whatever else the port has is passed on unchanged; the port's own type says what that is.
        return getattr(self._inner, name)


def noting(store: Store, mode: AccessMode) -> Store:
    """The store as the services should use it: the same, if nothing is logged."""
    return store if mode == "off" or isinstance(store, NotingStore) else cast(Store, NotingStore(store))


def nothing_more(_answer: object) -> Sequence[object]:
    """The answer says it all."""
    return ()


@dataclass(frozen=True, slots=True)
class AccessLog:
    store: Store
    clock: Clock
    limits: Limits
    mode: AccessMode
    asker: Asker = PROGRAM

    @property
    def on(self) -> bool:
        return self.mode != "off"

    def seen_by(self, asker: Asker) -> AccessLog:
        """The same log, with another one asking."""
        return replace(self, asker=asker)

    def list_(self, owner: Owner, *, limit: int, before: str | None = None) -> Sequence[Access]:
        """What is logged of this owner, the newest first."""
        rows = self.limits.page(limit)
        if before is not None:
            check_id(before, "before", bytes_max=ID_BYTES_MAX)
        return self.store.read(owner, lambda view: list(view.accesses.list_accesses(limit=rows, before=before)))

    def around(
        self,
        scope: Scope,
        call: str,
        action: Action,
        work: Callable[[], T],
        about: About = nothing_more,
        *,
        first: bool = False,
    ) -> T:
        """What `work` gives or raises, once that is logged; `about` says of its answer what it touches besides.

        With `first`, and whatever erases, it is in the log before it begins: if that cannot be, nothing is done.
        """
        if self.mode == "changes" and action == "read":
            return work()
        before = self.store.read(scope.owner, lambda view: view.accesses.standing())
        entry = self._entry(scope, call, action)
        if first or action == "erase":
            self._put(scope.owner, replace(entry, outcome="begun"), so="nothing is done")
        mine: list[int] = []
        token = _MADE.set(mine)
        try:
            answer = work()
        except BaseException as error:
            self._refused(scope, entry, error)
            raise
        finally:
            _MADE.reset(token)
        things, made = touched(*about(answer), answer), tuple(mine[:OPERATIONS_MAX])
        self._put(scope.owner, replace(entry, at=self.clock.now(), touched=things, operations=made), before)
        return answer

    def restoring(self, scope: Scope, work: Callable[[Through], Mapping[str, int]]) -> Mapping[str, int]:
        """Have a whole store filled, and its log say so: the entry comes in with the rows, so there are both or neither."""
        entry = self._entry(scope, "restore", "change")
        told: list[Row] = []

        def through(table: str, rows: Iterator[Row]) -> Iterator[Row]:
            last = 0
            for row in rows:
                if table == "accesses" and row[:2] == (scope.owner.space, scope.owner.user):
                    last = max(last, ACCESSES.named(row).number)
                yield row
            if table == "accesses":
                told.append(access_row(scope.owner, entry, last + 1))
                yield told[-1]

        try:
            counts = dict(work(through))
        except Conflict as error:
            # It holds data. One that is empty must stay so, or it could not be filled any more.
            self._refused(scope, entry, error)
            raise
        if told:
            counts["accesses"] -= 1
        else:
            self._put(scope.owner, entry)  # a backup from before there was a log
        return counts

    def _entry(self, scope: Scope, call: str, action: Action) -> Access:
        actor = self.asker.named(scope)
        return Access(
            id=self.clock.new_id(),
            at=self.clock.now(),
            actor=actor,
            face=self.asker.face,
            address=scope.address,
            call=call,
            action=action,
        )

    def _refused(self, scope: Scope, entry: Access, error: BaseException) -> None:
        """Its arguments may be anything, so they are not told, not even as names."""
        told = replace(entry, at=self.clock.now(), outcome="refused", error=type(error).__name__)
        if isinstance(error, Unavailable):
            with suppress(PerdureError):
                self._put(scope.owner, told, deadline_s=REFUSED_S)
        else:
            self._put(scope.owner, told)

    def _put(
        self,
        owner: Owner,
        entry: Access,
        before: OwnerVersion | None = None,
        *,
        deadline_s: float | None = None,
        so: str = "the call is not answered",
    ) -> None:
        def work(tx: Tx) -> bool:
            # What was forgotten while the call was under way must not be named after all.
            named = before is not None and tx.accesses.standing().holds_since(before)
            told = entry.touched if named else without_names(entry.touched, lambda _: True)
            return tx.accesses.put_access(replace(entry, touched=told), keep=self.limits.accesses_kept)

        try:
            self.store.write(owner, work, deadline_s=deadline_s)
        except Unavailable:
            raise
        except PerdureError as error:
            raise Unavailable(f"the access log cannot be written, so {so}; try again") from error


SEARCH, CREATE, UPDATE = "search_memory", "create_memory", "update_memory"
UPSERT, DELETE = "upsert_memory", "delete_memory"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
SYSTEM = "gen_ai.system"
"""What the provider was called before; some readers still look for it."""
STORE_ID = "gen_ai.memory.store.id"
RECORD_ID = "gen_ai.memory.record.id"
RECORD_COUNT = "gen_ai.memory.record.count"
ERROR_TYPE = "error.type"
NAME = "perdure"
TRACE = "opentelemetry.trace"
"""The module that is loaded where there is anybody to see a span."""


def in_span(operation: str, scope: Scope, call: Callable[[], T]) -> T:
    """Make a call of a handle in a span of this kind."""
    trace: Any = sys.modules[TRACE]
    tracer = trace.get_tracer(NAME)
    told = {OPERATION: operation, PROVIDER: NAME, SYSTEM: NAME, STORE_ID: str(scope.owner.space)}
    # Not recorded by the library: it would keep the message of an error, which names values.
    with tracer.start_as_current_span(
        operation, attributes=told, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            answer = call()
        except BaseException as error:
            code = error.code if isinstance(error, PerdureError) else type(error).__name__
            span.set_attribute(ERROR_TYPE, code)
            span.set_status(trace.Status(trace.StatusCode.ERROR, code))
            raise
        if span.is_recording():
            span.set_attributes(_about(answer))
        return answer


def _about(answer: object) -> dict[str, str | int]:
    """How many records an answer is about, and which, if it is one whose id says nothing."""
    if isinstance(answer, Message):
        return {RECORD_ID: answer.id, RECORD_COUNT: 1}
    if isinstance(answer, Outcome):
        held = answer.statement
        return {RECORD_COUNT: 0} if held is None else {RECORD_ID: held.id, RECORD_COUNT: 1}
    if isinstance(answer, Recall):
        return {RECORD_COUNT: len(answer.hits)}
    if isinstance(answer, Context):
        return {RECORD_COUNT: len(answer.blocks) + len(answer.messages)}
    if isinstance(answer, Injection):
        return {RECORD_COUNT: len(answer.blocks)}
    if isinstance(answer, MergeResult):
        return {RECORD_COUNT: answer.added + answer.updated}
    removed = getattr(answer, "removed", None)
    if isinstance(removed, dict):
        return {RECORD_COUNT: sum(removed.values())}
    if isinstance(answer, bool):
        return {RECORD_COUNT: int(answer)}
    return {RECORD_COUNT: len(answer)} if isinstance(answer, Sized) and not isinstance(answer, str) else {RECORD_COUNT: 1}
