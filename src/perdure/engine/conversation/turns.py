"""Where a working set may be cut: only where a turn starts, never between a tool call and its result."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.conversation.digests import Layers
from perdure.domain.conversation.messages import Message


def turn_starts(working: Sequence[Message]) -> list[int]:
    """Indexes at which the rest of `working` begins with a turn: what stands before may be folded.

    A user who speaks while a tool is at work starts no turn there: its call and its result would come apart.
    """
    made: dict[str, int] = {}
    torn: set[int] = set()
    for index, message in enumerate(working):
        made |= {call.id: index for call in message.tool_calls}
        if message.tool_call_id in made:
            torn.update(range(made[message.tool_call_id] + 1, index + 1))
    return [index for index, message in enumerate(working) if index and message.role == "user" and index not in torn]


def is_complete(turn: Sequence[Message]) -> bool:
    """Whether the last turn was answered: the agent spoke last, and no tool call of it waits for a result."""
    if not turn or turn[-1].role not in ("assistant", "system"):
        return False
    made = {call.id for message in turn for call in message.tool_calls}
    return made <= {message.tool_call_id for message in turn}


def bounded(working: Sequence[Message], layers: Layers, *, force: bool = False) -> int:
    """How many of the oldest messages to fold so that the rest is within the bounds; 0 if it is, or cannot be cut.

    With `force`, the rest is at most what would be kept after an overflow, or the last turn.
    """
    starts = turn_starts(working)
    cut = 0
    if force or len(working) > layers.history_messages_max:
        over = len(working) - layers.keep
        cut = _nearest(starts, over) if over > 0 else max(starts, default=0)
    tokens = [message.tokens for message in working]
    while sum(tokens[cut:]) > layers.history_tokens_max:
        further = [start for start in starts if start > cut]
        if not further:
            break
        cut = _nearest(further, cut + (len(working) - cut) // 2)
    return cut


def _nearest(starts: Sequence[int], wanted: int) -> int:
    """The latest start up to `wanted`, so that not less is kept than promised; else the first one after it."""
    before = [start for start in starts if start <= wanted]
    return before[-1] if before else starts[0] if starts else 0


def whole_turns(working: Sequence[Message]) -> int:
    """How many of the oldest messages form turns that are over. A question that waits for its answer stays."""
    starts = turn_starts(working)
    last = starts[-1] if starts else 0
    return len(working) if is_complete(working[last:]) else last


def without_late_results(working: Sequence[Message]) -> list[Message]:
    """The working set without results whose call was folded: they belong to what was folded, and so to its fold."""
    made = {call.id for message in working for call in message.tool_calls}
    return [message for message in working if message.tool_call_id is None or message.tool_call_id in made]
