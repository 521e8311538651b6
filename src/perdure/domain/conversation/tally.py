"""Running statistics of one session, derived from its messages: what was said by whom, with how many tokens and tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perdure.domain.conversation.messages import Message
from perdure.domain.scope import Address
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, field, replace


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
    input_tokens: int = 0
    """What providers reported, in the `usage` of messages' metadata; not an estimate."""
    output_tokens: int = 0

    @property
    def messages(self) -> int:
        return sum(self.by_role.values())

    @property
    def tool_calls(self) -> int:
        return sum(self.by_tool.values())

    def body(self) -> Json:
        """The counts as JSON, the form in which they are stored and journalled."""
        # Left out while nothing was reported, as in counts that were stored before this was counted.
        reported = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        return {
            "up_to_seq": self.up_to_seq,
            "by_role": dict(self.by_role),
            "tokens_by_role": dict(self.tokens_by_role),
            "by_tool": dict(self.by_tool),
            "failures": self.failures,
            **{name: tokens for name, tokens in reported.items() if tokens},
        }


def extended(tally: Tally, messages: Iterable[Message]) -> Tally:
    """`tally` with `messages` counted in. Messages it has counted already are passed over, so repeats change nothing."""
    by_role, tokens, by_tool = dict(tally.by_role), dict(tally.tokens_by_role), dict(tally.by_tool)
    failures, up_to = tally.failures, tally.up_to_seq
    read, written = tally.input_tokens, tally.output_tokens
    for message in messages:
        if message.seq <= up_to:
            continue
        by_role[message.role] = by_role.get(message.role, 0) + 1
        tokens[message.role] = tokens.get(message.role, 0) + message.tokens
        for call in message.tool_calls:
            by_tool[call.name] = by_tool.get(call.name, 0) + 1
        failures += message.failed
        given, taken = reported_usage(message)
        read += given
        written += taken
        up_to = message.seq
    return replace(
        tally,
        up_to_seq=up_to,
        by_role=by_role,
        tokens_by_role=tokens,
        by_tool=by_tool,
        failures=failures,
        input_tokens=read,
        output_tokens=written,
    )


def reported_usage(message: Message) -> tuple[int, int]:
    """Tokens in and out that the provider reported with a message, in either of the usual spellings; else zeros."""
    usage = message.metadata.get("usage")
    if not isinstance(usage, Mapping):
        return 0, 0
    return _reported(usage, "input_tokens", "prompt_tokens"), _reported(usage, "output_tokens", "completion_tokens")


def _reported(usage: Mapping[str, Json], *names: str) -> int:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return 0
