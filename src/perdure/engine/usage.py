"""What the counts of asking models say: which purposes fail, how, and what helps. Pure; the counts come from the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby

from perdure.domain.models import Usage

SUCCESSES = ("ok", "repaired")
FAILED_SHARE = 0.5
ASKED_MIN = 10
"""Fewer questions say little about a share."""
RECENT = timedelta(days=1)
"""A failure that is longer ago, and was followed by an answer, is over."""
_REMEDIES = {
    "timeout": "use a faster model or a nearer server",
    "refused": "check the name of the model and `model_key`",
    "unavailable": "check the setting `model`, and that its server runs",
    "unreadable": "use a model that keeps to a JSON schema",
}


def model_troubles(counts: Sequence[Usage], now: datetime) -> list[str]:
    """A line for each purpose whose last question failed, or most of whose questions do."""
    return [line for _, group in groupby(sorted(counts, key=_purpose), key=_purpose) if (line := _trouble(list(group), now))]


def _trouble(group: list[Usage], now: datetime) -> str | None:
    failed = [one for one in group if one.outcome not in SUCCESSES]
    if not failed:
        return None
    asked, lost = sum(one.calls for one in group), sum(one.calls for one in failed)
    last = max(group, key=lambda one: one.last_at)
    last_failed = max(failed, key=lambda one: one.last_at)
    often = asked >= ASKED_MIN and lost >= asked * FAILED_SHARE and now - last_failed.last_at < RECENT
    if last.outcome in SUCCESSES and not often:
        return None
    remedy = _REMEDIES.get(last_failed.outcome, "look at the model")
    words = f"{lost} of {asked} calls for `{last.purpose}` failed, last: {last_failed.outcome}"
    return f"model: {words}; {remedy}; meanwhile the rules stand in and what waits is tried again"


def _purpose(usage: Usage) -> str:
    return usage.purpose
