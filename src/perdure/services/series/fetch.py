"""Reading through a series: ask the ledger, fetch only the gaps, merge, answer from the store.

A gap is fetched once however many ask for it: the first to note a lease on it fetches, everybody else waits for the result,
across threads and processes. A lease runs out, so a fetcher that died blocks nobody.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from perdure.domain.errors import InvalidInput, LimitExceeded, PerdureError
from perdure.domain.scope import Owner
from perdure.domain.series import FetchRecord, SeriesAnswer
from perdure.domain.text.rules import brief
from perdure.domain.times.instants import to_us, zone_named
from perdure.domain.times.spans import Span, bridged, gaps, split
from perdure.domain.values import dataclass, replace
from perdure.engine.series import checked, judge, seconds_us
from perdure.ports.store import Store, Tx
from perdure.ports.tables.series import FetchLease
from perdure.services.series.series import QueryOptions, SeriesService, wanted_span

LEASE_S = 60.0
POLL_S = 0.02
PAGES_MAX = 10_000
PIECES_MAX = 10_000
REJECTED_TOLD = 5


@dataclass(frozen=True, slots=True)
class Window:
    """The time a fetcher is asked for: from `start` to `end`, excluded."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a fetcher's answer, with the cursor of the next page.

    `complete=False` on the last part says that the source cut the answer off; then only what it proves is credited.
    """

    entries: Iterable[object]
    next_cursor: object | None = None
    complete: bool = True
    newest_first: bool = True


Answer = Iterable[object] | Page
Fetcher = Callable[..., Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How a source likes to be asked, and how stale an answer may be."""

    fresh_for_s: float | None = None
    join_gaps_s: float = 0.0
    """Gaps closer than this are fetched with one request."""
    longest_s: float | None = None
    """The longest window the source answers; longer gaps are split."""
    lease_s: float = LEASE_S
    wait_s: float = 120.0
    """How long to wait for somebody else's fetch."""
    limit: int | None = None
    """How many entries the answer holds at most; without one, as many as the settings allow."""

    def __post_init__(self) -> None:
        for name in ("join_gaps_s", "longest_s", "lease_s", "wait_s"):
            value = getattr(self, name)
            missing = value is None and name == "longest_s"
            if not missing and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
                raise InvalidInput(f"`{name}` = {brief(value)} must be a number of seconds from 0 on")
        if self.longest_s is not None and self.longest_s < 0.001:
            raise InvalidInput(f"`longest_s` = {brief(self.longest_s)} must be at least a millisecond")
        if self.lease_s < 0.001:
            raise InvalidInput(f"`lease_s` = {brief(self.lease_s)} must be at least a millisecond")


@dataclass(frozen=True, slots=True)
class _Ask:
    """One call's question, and what it has tried so far."""

    ends: tuple[object, object]
    options: FetchOptions
    now_us: int
    tried: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class _Turn:
    """What this caller fetches next, and whether others fetch the rest."""

    mine: Span | None
    others: bool
    began: tuple[str, int] = ("", 0)
    """The series' incarnation and `trims` at that moment."""


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One window being fetched: under whose lease, how long that lasts, and what the series was when it began."""

    span: Span
    holder: str
    lease_us: int
    began: tuple[str, int]


@dataclass(frozen=True, slots=True)
class ReadThrough:
    store: Store
    series: SeriesService

    def fetch(
        self,
        owner: Owner,
        name: str,
        ends: tuple[object, object],
        fetcher: Fetcher,
        *,
        options: FetchOptions,
        stated: Mapping[str, Any],
    ) -> SeriesAnswer:
        """Answer from the store after fetching what it lacks. Windows that fail are named in `failures`, the rest is kept."""
        most = self.series.limits.page_rows_max if options.limit is None else options.limit
        asked = QueryOptions(limit=most, fresh_for_s=options.fresh_for_s)
        if self.series.agreed(owner, name, stated) is not None:
            # Most answers are held: then nothing is written at all.
            answer = self.series.query(owner, name, *ends, asked)
            if not answer.needs_api_call:
                return answer
        else:
            self.series.configure(owner, name, stated)
        failures: dict[Span, str] = {}
        rejected: list[str] = []
        tried: list[Span] = []
        pause = threading.Event()
        waits = 0
        # The moment of the question: what happens while it is answered was not asked for.
        now_us = self._now_us()
        while True:
            holder = self.series.clock.new_id()
            turn = self._claim(owner, name, _Ask(ends, options, now_us, tuple(tried)), holder)
            if turn.mine is not None:
                tried.append(turn.mine)
                try:
                    one = _Fetch(turn.mine, holder, seconds_us(options.lease_s), turn.began)
                    rejected += self._fetch_one(owner, name, one, fetcher)
                except (_FetcherFailed, InvalidInput, LimitExceeded) as error:
                    failures[turn.mine] = str(error)
                finally:
                    self._release(owner, name, holder)
            elif turn.others and waits * POLL_S < options.wait_s:
                waits += 1
                pause.wait(POLL_S)
            else:
                break
        answer = self.series.query(owner, name, *ends, asked, now_us=now_us)
        told = [f"{span.start.isoformat()} to {span.end.isoformat()}: {why}" for span, why in failures.items()]
        return replace(answer, fetches=len(tried), failures=(*told, *rejected))

    def _claim(self, owner: Owner, name: str, ask: _Ask, holder: str) -> _Turn:
        """Take a lease on the first gap that nobody fetches and that this call has not tried yet.

        One at a time: a lease then lasts for the fetch it is about, and others who wait can take the next gap.
        """
        options = ask.options

        def work(tx: Tx) -> _Turn:
            held = tx.series.find(name)
            if held is None:
                return _Turn(None, others=False)
            spec = held.spec if options.fresh_for_s is None else checked(replace(held.spec, fresh_for_s=options.fresh_for_s))
            *_, wanted = wanted_span(*ask.ends, zone_named(spec.zone), ask.now_us)
            verdict = judge(wanted, tx.series.windows(name, wanted), spec, ask.now_us, tx.series.last_window(name))
            left = [part for gap in verdict.gaps for part in gaps(gap, ask.tried)]
            longest = None if options.longest_s is None else seconds_us(options.longest_s)
            wholes = bridged(left, seconds_us(options.join_gaps_s))
            pieces = sum(-(-gap.length_us // longest) for gap in wholes) if longest else len(wholes)
            if pieces > PIECES_MAX:
                raise InvalidInput(
                    f"the range would take {pieces} requests, more than {PIECES_MAX}; ask for less, or raise `longest_s`"
                )
            now_us = self._now_us()
            for span in (piece for gap in wholes for piece in split(gap, longest)):
                if not tx.series.leases(name, span, now_us):
                    tx.series.put_lease(name, FetchLease(span, holder, now_us + seconds_us(options.lease_s)))
                    return _Turn(span, others=False, began=(held.incarnation, held.trims))
            return _Turn(None, others=pieces > 0)

        return self.store.write(owner, work)

    def _release(self, owner: Owner, name: str, holder: str) -> None:
        now_us = self._now_us()
        self.store.write(owner, lambda tx: tx.series.drop_leases(name, holder, now_us))

    def _fetch_one(self, owner: Owner, name: str, one: _Fetch, fetcher: Fetcher) -> list[str]:
        """Fetch one window, page by page. Entries are kept as they come; the window is credited once it is whole.

        Tells which entries cannot be stored; asking again would bring the same ones. If none can, nothing is credited.
        """
        rejected: list[str] = []
        span = one.span
        window = Window(span.start, span.end)
        asked_us = self._now_us()
        cursor: object | None = None
        whole, stored, lost = True, False, False
        for number in range(PAGES_MAX):
            page = _call_fetcher(fetcher, (window,) if number == 0 else (window, cursor))
            last = page.next_cursor is None
            record = FetchRecord(
                # A page in the middle that was cut off leaves a hole whose place nobody knows.
                window=span if last and whole and (page.entries or not lost) else None,
                complete=page.complete,
                newest_first=page.newest_first,
                fetched_us=asked_us,
                began=one.began,
            )
            done = self.series.merge(owner, name, page.entries, fetch=record, stated={})
            rejected += [
                f"entry {bad.index} since {span.start.isoformat()}: {bad.reason}" for bad in done.rejected[:REJECTED_TOLD]
            ]
            if last:
                return rejected
            cursor = page.next_cursor
            whole = whole and page.complete
            stored = stored or done.added + done.duplicates > 0
            lost = not stored and (lost or bool(done.rejected))
            self._prolong(owner, name, one)
        raise LimitExceeded(
            f"the source gave more than {PAGES_MAX} pages for one window; ask for shorter windows with `longest_s`"
        )

    def _prolong(self, owner: Owner, name: str, one: _Fetch) -> None:
        lease = FetchLease(one.span, one.holder, self._now_us() + one.lease_us)
        self.store.write(owner, lambda tx: tx.series.put_lease(name, lease))

    def _now_us(self) -> int:
        return to_us(self.series.clock.now())


class _FetcherFailed(Exception):
    """The caller's fetcher raised; the words say what."""


def _call_fetcher(fetcher: Fetcher, args: tuple[object, ...]) -> Page:
    try:
        answer = fetcher(*args)
        if inspect.isawaitable(answer):
            answer = _awaited(answer)
        page = answer if isinstance(answer, Page) else Page(answer)
        if isinstance(page.entries, str | bytes | Mapping):
            raise InvalidInput(
                f"the fetcher answered with a `{type(page.entries).__name__}`; return a list of objects, or a `Page`"
            )
        # A generator does its work here, where its failure is the fetcher's.
        return replace(page, entries=list(page.entries))
    except Exception as error:  # the plugin edge: a fetcher is the caller's code
        raise _FetcherFailed(_why(error)) from error


def _awaited(answer: Awaitable[Answer]) -> Answer:
    """The answer of an async fetcher. Where a loop runs already, it gets another one in a thread of its own."""
    import asyncio  # only those who write async fetchers need it
    from concurrent.futures import ThreadPoolExecutor

    async def whole() -> Answer:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(whole())
    with ThreadPoolExecutor(1, thread_name_prefix="perdure-fetch") as pool:
        return pool.submit(lambda: asyncio.run(whole())).result()


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"[:300]
