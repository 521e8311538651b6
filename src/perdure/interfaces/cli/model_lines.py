"""What models were asked and what it cost, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.models import Usage
from perdure.interfaces.cli.output import safe


def usage_lines(counts: Sequence[Usage]) -> list[str]:
    """A line for each purpose: how often a model was asked, with which outcomes, and what it cost."""
    lines = []
    for purpose in sorted({one.purpose for one in counts}):
        group = sorted((one for one in counts if one.purpose == purpose), key=lambda one: (-one.calls, one.outcome))
        outcomes = ", ".join(f"{one.calls} {safe(one.outcome)}" for one in group)
        cost = f"{sum(one.tokens_in for one in group):,} tokens in, {sum(one.tokens_out for one in group):,} out"
        lines.append(f"{safe(purpose)}: {outcomes}; {cost}, {sum(one.took_ms for one in group) / 1000:.1f} s")
    return lines
