"""What the overseer tells the log, in the seeds' words: what it saved, and how far a series covers the time of a goal."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from perdure.domain.oversight import KeptResult
from perdure.domain.text.rules import Json

LOG = logging.getLogger("perdure.oversight")
COVERAGES = {"full": "Full coverage from state", "partial": "Partial coverage", "none": "No coverage"}


def tell_saved(kept: KeptResult) -> None:
    """Of a tool's result, if it was saved."""
    if kept.saved:
        LOG.info("Auto-saved to memory: %s - %s", kept.key, kept.reason)


def tell_coverage(shown: Mapping[tuple[str, str], Json]) -> None:
    """Of what is shown before a goal, the series of which it names a time."""
    for (kind, name), form in shown.items():
        if kind == "series" and "coverage" in form:
            needs = ", needs API for gaps" if form.get("gaps") else ""
            LOG.info("%s: %s (%s entries%s)", COVERAGES[form["coverage"]], name, form["count"], needs)
