"""The ledger of a series in a transaction: what a fetch proves goes in, what a wrong clock claimed comes out."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.series import CoveredWindow, FetchRecord, Series
from perdure.domain.times.spans import Span, gaps, span_or_none
from perdure.engine.series import proven, recorded
from perdure.ports.store import Tx


def credit(
    tx: Tx, series: Series, fetch: FetchRecord, instants: Sequence[int], now_us: int
) -> tuple[Span | None, tuple[Span, ...]]:
    """Enter into the ledger what a fetch proves; that time, if there is one, and what of it was not covered before."""
    name = series.name
    span = proven(fetch, instants, now_us)
    if span is not None and fetch.began not in (None, (series.incarnation, series.trims)):
        # Entries of earlier pages may have been removed since they came, or the whole series was.
        same = fetch.began is not None and fetch.began[0] == series.incarnation
        span = span_or_none(max(span.start_us, series.floor_us), span.end_us) if same else None
    if span is not None:
        touching = [
            window
            for window in tx.series.windows(name, span)
            if window.span.start_us <= span.end_us and window.span.end_us >= span.start_us
        ]
        tx.series.replace_windows(name, span, recorded(touching, span, fetch.fetched_us))
        return span, gaps(span, [window.span for window in touching])
    return None, ()


def distrust_the_future(tx: Tx, name: str, now_us: int) -> None:
    """Cut windows that end after now: they were recorded while the clock was wrong."""
    last = tx.series.last_window(name)
    if last is None or last.span.end_us <= now_us:
        return
    ahead = Span(now_us, last.span.end_us)
    kept = []
    for window in tx.series.windows(name, ahead):
        if window.span.end_us == now_us:
            kept.append(window)
        elif window.span.end_us > now_us and (past := span_or_none(window.span.start_us, now_us)):
            kept.append(CoveredWindow(past, min(window.fetched_us, now_us)))
    tx.series.replace_windows(name, ahead, kept)
