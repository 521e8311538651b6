"""OpenAI Agents SDK: a `Session` that keeps every item as it is, and instructions that know what is remembered.

```python
session = PerdureSession("support-42", engine.memory("ana"))
agent = Agent(name="Helper", instructions=remembering(engine.memory("ana"), "You are a helper."))
result = await Runner.run(agent, "Hello!", session=session)
```

The items are a list of the state, verbatim. What user and assistant said is in the log as well, under the id of the session,
and is learned from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from perdure.domain.conversation.messages import NewMessage
from perdure.domain.errors import Conflict, NotFound
from perdure.domain.state import FORGOTTEN_VALUE
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.integrations.thread import in_thread

if TYPE_CHECKING:
    from agents import SessionSettings

Item: TypeAlias = Any
"""`agents.TResponseInputItem`: a mapping that can be JSON."""
Instructions: TypeAlias = Callable[[Any, Any], Awaitable[str]]
PREFIX = "openai-agents/"
TRIES_MAX = 20
ROLES: Mapping[str, str] = {"user": "user", "assistant": "assistant"}
GOAL_CHARS_MAX = 4_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """The items of a session as they stand, each with the message of the log that it is, and the revision that says so."""

    items: tuple[tuple[Item, str | None], ...]
    revision: int


class PerdureSession:
    """A session of the SDK on a user's memory; several of one user know what was said in the others."""

    def __init__(
        self, session_id: str, memory: Memory, *, session_settings: SessionSettings | Mapping[str, Any] | None = None
    ) -> None:
        from agents.memory.session_settings import SessionSettings, coerce_session_settings

        self.session_id = session_id
        self.session_settings: SessionSettings | None = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        self._memory = memory
        self._key = f"{PREFIX}{session_id}"

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The newest `limit` items, oldest first; by default as the settings say, or all."""
        from agents.memory.session_settings import resolve_session_limit

        most = resolve_session_limit(limit, self.session_settings)
        items = [item for item, _ in (await in_thread(self._kept)).items]
        if most is None or most < 0:
            return items
        return items[-most:] if most else []

    async def add_items(self, items: Sequence[Item]) -> None:
        """Add items behind those that are there."""
        if items:
            await in_thread(self._add, list(items))

    async def pop_item(self) -> Item | None:
        """Take the newest item back, and what was learned from it; None if there is none."""
        return await in_thread(self._pop)

    async def clear_session(self) -> None:
        """Take all items away, and what was said from the log. What was learned stays; the session can go on."""
        await in_thread(self._clear)

    # -- how

    def _kept(self) -> _Kept:
        found = self._memory.state.find(self._key)
        items: list[tuple[Item, str | None]] = []
        for entry in found.value if found.found else ():
            if entry == FORGOTTEN_VALUE:
                continue  # it told of what was forgotten
            if "item" in entry:
                items.append((entry["item"], entry["message"]))
            elif items:
                items.pop()
        return _Kept(tuple(items), found.revision)

    def _add(self, items: list[Item]) -> None:
        names = [str(uuid4()) if _spoken_text(item) is not None else None for item in items]
        entries = [{"item": _plain(item), "message": name} for item, name in zip(items, names, strict=True)]
        self._memory.state.append(self._key, entries)
        said = [
            NewMessage(*spoken, id=name, session=self.session_id)
            for item, name in zip(items, names, strict=True)
            if (spoken := _spoken_text(item)) is not None
        ]
        if said:
            self._memory.append_many(said)

    def _pop(self) -> Item | None:
        for _ in range(TRIES_MAX):
            kept = self._kept()
            if not kept.items:
                return None
            try:
                self._memory.state.append(self._key, [{"popped": True}], expected=kept.revision)
            except Conflict:
                continue  # somebody else was faster: look again
            item, message = kept.items[-1]
            if message is not None:
                self._unsay(message)
            return item
        raise Conflict(f"session {self.session_id!r:.80} changed {TRIES_MAX} times under us; try again")

    def _unsay(self, message: str) -> None:
        with suppress(NotFound, Conflict):  # it was forgotten, or the session has ended long ago
            newest = self._memory.messages(1, session=self.session_id)
            if newest and newest[-1].id == message:
                self._memory.conversation.resume(self.session_id)
                self._memory.conversation.pop(self.session_id, messages=1)

    def _clear(self) -> None:
        self._memory.state.delete(self._key)
        with suppress(NotFound):
            self._memory.conversation.delete(self.session_id)


def remembering(memory: Memory, instructions: str = "") -> Instructions:
    """Instructions for `Agent(instructions=…)`: yours, and what is remembered that matters to what the user asks."""

    async def with_memory(context: Any, _agent: Any) -> str:
        goal = next(filter(None, map(_user_text, reversed(getattr(context, "turn_input", None) or ()))), "")
        if not goal:
            return instructions
        known = await in_thread(memory.before, goal[:GOAL_CHARS_MAX])
        return "\n\n".join(filter(None, (instructions, known.text)))

    return with_memory


def _user_text(item: Item) -> str:
    said = _spoken_text(item)
    return said[1] if said is not None and said[0] == "user" else ""


def _spoken_text(item: Item) -> tuple[str, str] | None:
    """Who said what, if an item is something that was said."""
    role = ROLES.get(item.get("role", "")) if isinstance(item, Mapping) else None
    text = "" if role is None else _text(item.get("content"))
    return None if role is None or not text.strip() else (role, text.replace("\0", ""))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Iterable):
        return "\n".join(
            str(part["text"]) for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        )
    return ""


def _plain(item: Item) -> Item:
    return dict(item) if isinstance(item, Mapping) else item
