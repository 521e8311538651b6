"""Microsoft's Agent Framework: a context provider that remembers, and a history provider that keeps conversations.

```python
ana = engine.memory("ana")
agent = Agent(client=client, context_providers=[PerdureContextProvider(ana), PerdureHistoryProvider(ana)])
```

The context provider gives the agent what is remembered that matters to what the user asks, and logs what user and agent said,
which is learned from. The history provider keeps the messages of each session as they are, verbatim, and learns nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent_framework import AgentSession, ContextProvider, HistoryProvider, Message, SessionContext, SupportsAgentRun

from perdure.handles.memory import Memory
from perdure.integrations.messages import key_part, log, relevant_text, spoken_message
from perdure.integrations.thread import in_thread

PREFIX = "agent-framework/"
NO_SESSION = "-"


class PerdureContextProvider(ContextProvider):
    """What is remembered goes into the instructions of a run, and what was said in the run into the log."""

    def __init__(self, memory: Memory, source_id: str = "perdure") -> None:
        super().__init__(source_id)
        self._memory = memory

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Log what the user said, and add what matters to it."""
        await self._log(context, context.input_messages)
        goal = next((one.text for one in reversed(context.input_messages) if one.role == "user" and one.text.strip()), "")
        text = await in_thread(relevant_text, self._memory, goal, context.session_id)
        if text:
            context.extend_instructions(self.source_id, text)

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Log what the agent said."""
        if context.response is not None:
            await self._log(context, context.response.messages)

    async def _log(self, context: SessionContext, said: Iterable[Message]) -> None:
        new = [spoken_message(str(one.role), one.text, session=context.session_id) for one in said]
        await in_thread(log, self._memory, new)


class PerdureHistoryProvider(HistoryProvider):
    """Keeps every message of a session as it is, tool calls and pictures too: a list of the user's state."""

    def __init__(self, memory: Memory, source_id: str = "perdure_history", **options: Any) -> None:
        super().__init__(source_id, **options)
        self._memory = memory

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """All messages of the session, oldest first."""
        held = await in_thread(self._memory.state.load, _key(session_id), [])
        return [Message.from_dict(one) for one in held if isinstance(one, dict)]  # others told of what was forgotten

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add messages behind those that are there."""
        if messages:
            await in_thread(self._memory.state.append, _key(session_id), [one.to_dict() for one in messages])


def _key(session_id: str | None) -> str:
    return f"{PREFIX}{key_part(session_id or NO_SESSION)}"
