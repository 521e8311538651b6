"""The seeds' own result shapes: plain dicts with the same keys always."""

from __future__ import annotations

from perdure.domain.series import MergeResult, Series, SeriesAnswer
from perdure.domain.spans import Span
from perdure.domain.text import Json
from perdure.engine.instants import iso
from perdure.services.series import Cleanup


def merge_dict(done: MergeResult) -> dict[str, Json]:
    return {
        "success": done.success,
        "added": done.added,
        "duplicates": done.duplicates,
        "updated": done.updated,
        "rejected": [{"index": one.index, "reason": one.reason} for one in done.rejected],
        "evicted": done.evicted,
        "total_count": done.total_count,
    }


def answer_dict(answer: SeriesAnswer) -> dict[str, Json]:
    return {
        "success": True,
        "entries": [{"id": entry.id, **entry.body, "first_seen": iso(entry.first_seen_us)} for entry in answer.entries],
        "count": answer.count,
        "coverage": answer.coverage,
        "gaps": [span_dict(gap) for gap in answer.gaps],
        "provisional": [span_dict(span) for span in answer.provisional],
        "stale_by": answer.stale_by_s,
        "needs_api_call": answer.needs_api_call,
        "reason": answer.reason,
        "requested_range": span_dict(answer.wanted),
        "state_range": {
            "oldest": None if answer.oldest_us is None else iso(answer.oldest_us),
            "newest": None if answer.newest_us is None else iso(answer.newest_us),
        },
        "next_page": answer.next_page,
        "truncated": answer.next_page is not None,
        "fetches": answer.fetches,
        "failures": list(answer.failures),
    }


def cleanup_dict(done: Cleanup) -> dict[str, Json]:
    return {"success": done.success, "removed": done.removed, "kept": done.kept, "cutoff_date": done.cutoff_date.isoformat()}


def series_dict(series: Series) -> dict[str, Json]:
    """The seed's stored structure (S0-10 to S0-19) without its entries."""
    return {
        "entity": series.entity,
        "accumulated_since": series.accumulated_since.isoformat(),
        "last_updated": series.last_updated.isoformat(),
        "count": series.count,
        "metadata": {
            "total_api_calls": series.api_calls,
            "total_fetched": series.fetched,
            "duplicates_avoided": series.duplicates,
            "removed": series.removed,
        },
    }


def span_dict(span: Span) -> dict[str, Json]:
    return {"start": iso(span.start_us), "end": iso(span.end_us)}
