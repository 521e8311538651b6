"""Running statistics of one session, derived from its messages: what was said by whom, with how many tokens and tools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from perdure.domain.messages import Message
from perdure.domain.scope import Address
from perdure.domain.text import Json


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over messages 1 to `up_to_seq` of one session."""

    address: Address
    session_number: int
    up_to_seq: int = 0
    by_role: dict[str, int] = field(default_factory=dict)
    tokens_by_role: dict[str, int] = field(default_factory=dict)
    by_tool: dict[str, int] = field(default_factory=dict)
    failures: int = 0

    @property
    def messages(self) -> int:
        return sum(self.by_role.values())

    @property
    def tool_calls(self) -> int:
        return sum(self.by_tool.values())

    def body(self) -> Json:
        """The counts as JSON, the form in which they are stored and journalled."""
        return {
            "up_to_seq": self.up_to_seq,
            "by_role": dict(self.by_role),
            "tokens_by_role": dict(self.tokens_by_role),
            "by_tool": dict(self.by_tool),
            "failures": self.failures,
        }


def extended(tally: Tally, messages: Iterable[Message]) -> Tally:
    """`tally` with `messages` counted in. Messages it has counted already are passed over, so repeats change nothing."""
    by_role, tokens, by_tool = dict(tally.by_role), dict(tally.tokens_by_role), dict(tally.by_tool)
    failures, up_to = tally.failures, tally.up_to_seq
    for message in messages:
        if message.seq <= up_to:
            continue
        by_role[message.role] = by_role.get(message.role, 0) + 1
        tokens[message.role] = tokens.get(message.role, 0) + message.tokens
        for call in message.tool_calls:
            by_tool[call.name] = by_tool.get(call.name, 0) + 1
        failures += message.failed
        up_to = message.seq
    return replace(tally, up_to_seq=up_to, by_role=by_role, tokens_by_role=tokens, by_tool=by_tool, failures=failures)
