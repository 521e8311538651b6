"""The keyword gate of seed 0 before a goal, for comparison: a word of time gives it series alone, else it gets plain keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perdure.ports.store import View
from perdure.services.oversight.before import Overseer

WORDS = ("last", "recent", "past", "days", "hours", "week")


class GatedOverseer(Overseer):
    """An overseer that looks at half of what is saved."""

    __slots__ = ()

    def _saved_things(self, view: View, work: Any) -> Any:
        held = super()._saved_things(view, work)
        timed = any(word in work.asked.goal.lower() for word in WORDS)
        return replace(held, keys=()) if timed else replace(held, series=())
