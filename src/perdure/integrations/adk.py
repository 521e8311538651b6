"""Google's Agent Development Kit: a session service and a memory service on one engine.

```python
runner = Runner(
    app_name="helper", agent=agent, session_service=PerdureSessionService(engine), memory_service=PerdureMemoryService(engine)
)
```

A user of ADK is a user here, an app is an agent. The events of a session are a list of that user's state, verbatim; what user
and agent said is in the log as well, under the id of the session, and is learned from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai.types import Content, Part
from pydantic_core import to_jsonable_python

from perdure.domain.context.recall import EntryKind, Hit
from perdure.domain.conversation.messages import NewMessage
from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.text.fences import fenced
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.integrations.messages import GOAL_CHARS_MAX, Users, key_part, log, part_text, spoken_message
from perdure.integrations.thread import in_thread

PREFIX = "adk"
APP_OWNER = "adk-app:"
"""The state that all users of an app share belongs to a user of this name and the app's."""
TRIES_MAX = 20
HITS_MAX = 10
KINDS: tuple[EntryKind, ...] = ("message", "memory", "instruction", "todo", "digest")
_FENCE = re.compile(r"<(?=\s*/?\s*PAST_CONVERSATIONS)", re.IGNORECASE)
"""What ADK puts around memories before a model sees them: no memory may end it."""


@dataclass(frozen=True, slots=True)
class _Deltas:
    """What a change of the state does to each of its parts; keys of the first two without their prefix."""

    app: dict[str, Any]
    user: dict[str, Any]
    session: dict[str, Any]

    @classmethod
    def of(cls, state: Mapping[str, Any] | None) -> _Deltas:
        plain: dict[str, Any] = to_jsonable_python(dict(state or {}), fallback=str)
        app, user = (
            {key.removeprefix(prefix): value for key, value in plain.items() if key.startswith(prefix)}
            for prefix in (State.APP_PREFIX, State.USER_PREFIX)
        )
        others = (State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX)
        return cls(app, user, {key: value for key, value in plain.items() if not key.startswith(others)})


class PerdureSessionService(BaseSessionService):
    """Keeps sessions with their events and the state of session, user and app. It can be shared by runners and processes."""

    def __init__(self, engine: Users) -> None:
        self._engine = engine

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """A new session; `AlreadyExistsError` if there is one of this id."""
        name = (session_id or "").strip() or str(uuid4())
        return await in_thread(self._create, app_name, user_id, name, _Deltas.of(state))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """The session with its events, all or as the config wants; None if there is none."""
        return await in_thread(self._get, app_name, user_id, session_id, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of a user, or of all who have said something, the last active last; without events and state."""
        return ListSessionsResponse(sessions=await in_thread(self._list, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Take a session away, and what was said in it from the log. What was learned from it stays."""
        await in_thread(self._delete, app_name, user_id, session_id)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state that all sessions of the user share, without its prefix."""
        return await in_thread(self._shared, self._memory(app_name, user_id), _user_key(app_name))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Add an event behind those that are there; `SessionNotFoundError` if the session was deleted."""
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await in_thread(self._append, session, event)
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)

    # -- how

    def _memory(self, app: str, user: str) -> Memory:
        if user.startswith(APP_OWNER):
            raise InvalidInput(f"`user_id` = {user!r:.60} starts with `{APP_OWNER}`, which is reserved; choose another name")
        return self._engine.memory(user, agent=app)

    def _create(self, app: str, user: str, name: str, deltas: _Deltas) -> Session:
        memory, key = self._memory(app, user), _session_key(app, name)
        held = memory.state.find(key)
        if held.found:
            raise AlreadyExistsError(f"Session with id {name} already exists.")
        try:
            memory.state.append(key, [{"state": json.dumps(deltas.session)}], expected=held.revision)
        except Conflict:
            raise AlreadyExistsError(f"Session with id {name} already exists.") from None
        self._share(memory, app, deltas)
        made = self._get(app, user, name, None)
        assert made is not None, "it was made above"  # noqa: S101 - for the types
        return made

    def _get(self, app: str, user: str, name: str, config: GetSessionConfig | None) -> Session | None:
        memory = self._memory(app, user)
        held = memory.state.find(_session_key(app, name))
        if not held.found:
            return None
        items = [item for item in held.value if isinstance(item, dict)]  # others told of what was forgotten
        state = {f"{State.APP_PREFIX}{key}": value for key, value in self._shared(self._of_app(app), _app_key(app)).items()}
        state |= {f"{State.USER_PREFIX}{key}": value for key, value in self._shared(memory, _user_key(app)).items()}
        for item in items:
            state |= json.loads(item["state"])
        events = [Event.model_validate_json(item["event"]) for item in items if "event" in item]
        updated = events[-1].timestamp if events else held.updated_at.timestamp() if held.updated_at else 0.0
        if config is not None and config.after_timestamp:
            events = [event for event in events if event.timestamp >= config.after_timestamp]
        if config is not None and config.num_recent_events is not None:
            events = events[len(events) - min(config.num_recent_events, len(events)) :]
        return Session(id=name, app_name=app, user_id=user, state=state, events=events, last_update_time=updated)

    def _list(self, app: str, user: str | None) -> list[Session]:
        found = [
            (info.updated_at, owner, part_text(info.key.rpartition("/")[2]))
            for owner in (self._users() if user is None else [user])
            for info in self._memory(app, owner).state.list(_session_key(app, None))
        ]
        return [
            Session(id=name, app_name=app, user_id=owner, last_update_time=at.timestamp()) for at, owner, name in sorted(found)
        ]

    def _users(self) -> Sequence[str]:
        most = self._engine.limits.page_rows_max
        users = list(self._engine.users(limit=most))
        if len(users) == most:
            raise LimitExceeded(f"the space has `page_rows_max` = {most} users or more; list the sessions of one user")
        return [user for user in users if not user.startswith(APP_OWNER)]

    def _delete(self, app: str, user: str, name: str) -> None:
        memory = self._memory(app, user)
        memory.state.delete(_session_key(app, name))
        with suppress(NotFound):
            memory.conversation.delete(name)

    def _append(self, session: Session, event: Event) -> None:
        memory, key = self._memory(session.app_name, session.user_id), _session_key(session.app_name, session.id)
        deltas = _Deltas.of(event.actions.state_delta if event.actions else None)
        item = {"event": event.model_dump_json(exclude_none=True), "state": json.dumps(deltas.session)}
        for _ in range(TRIES_MAX):
            held = memory.state.list(key)
            if not held:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            with suppress(Conflict):  # somebody else was faster: look again
                memory.state.append(key, [item], expected=held[0].revision)
                break
        else:
            raise Conflict(f"session {session.id!r:.80} changed {TRIES_MAX} times under us; try again")
        self._share(memory, session.app_name, deltas)
        log(memory, [_message(event, session.id)])

    # -- state that sessions share

    def _of_app(self, app: str) -> Memory:
        return self._engine.memory(f"{APP_OWNER}{app}")

    def _shared(self, memory: Memory, key: str) -> dict[str, Any]:
        held = memory.state.load(key)
        return held if isinstance(held, dict) else {}

    def _share(self, memory: Memory, app: str, deltas: _Deltas) -> None:
        if deltas.user:
            _update(memory, _user_key(app), deltas.user)
        if deltas.app:
            _update(self._of_app(app), _app_key(app), deltas.app)


class PerdureMemoryService(BaseMemoryService):
    """Searches all that is remembered of a user. With `PerdureSessionService`, every session is in there by itself."""

    def __init__(self, engine: Users) -> None:
        self._engine = engine

    async def add_session_to_memory(self, session: Session) -> None:
        """Log what was said in a session of another service. What is there already changes nothing."""
        said = [_message(event, session.id) for event in session.events]
        await in_thread(log, self._engine.memory(session.user_id, agent=session.app_name), said)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Log what was said in these events."""
        said = [_message(event, session_id) for event in events]
        await in_thread(log, self._engine.memory(user_id, agent=app_name), said)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember statements as they are."""
        memory = self._engine.memory(user_id, agent=app_name)
        for text in filter(None, (_text(one.content).strip() for one in memories)):
            await in_thread(memory.remember, text)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What is remembered that answers the query, best first; not the query itself."""
        asked = query.replace("\0", "")[:GOAL_CHARS_MAX].strip()
        if not asked:
            return SearchMemoryResponse()
        memory = self._engine.memory(user_id, agent=app_name)
        found = await in_thread(lambda: memory.recall(asked, kinds=KINDS, limit=HITS_MAX + 1))
        hits = [hit for hit in found.hits if hit.text.strip() != asked][:HITS_MAX]
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget for good what a search has found under this id."""
        kind, _, name = (memory_id or "").partition(":")
        memory = self._engine.memory(user_id, agent=app_name)
        if kind == "memory":
            await in_thread(lambda: memory.forget(memory=name))
        elif kind == "message":
            await in_thread(lambda: memory.forget(messages=(name, name)))
        else:
            raise InvalidInput(
                f"`memory_id` = {memory_id!r:.80} is none of a memory or a message; take it from `search_memory`"
            )


def _entry(hit: Hit) -> MemoryEntry:
    text = _FENCE.sub("&lt;", fenced(hit.text))
    return MemoryEntry(
        content=Content(role="model" if hit.speaker == "assistant" else "user", parts=[Part(text=text)]),
        id=f"{hit.kind}:{hit.memory or hit.id}",
        author=hit.speaker if hit.kind == "message" else hit.kind,
        timestamp=hit.at.isoformat(),
    )


def _message(event: Event, session: str | None) -> NewMessage | None:
    role = "user" if event.author == "user" else "assistant"
    return spoken_message(role, "" if event.partial else _text(event.content), session=session, id=event.id)


def _text(content: Content | None) -> str:
    parts: Iterable[Part] = (content.parts if content is not None else None) or ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _update(memory: Memory, key: str, delta: Mapping[str, Any]) -> None:
    for _ in range(TRIES_MAX):
        held = memory.state.find(key)
        value = {**(held.value if isinstance(held.value, dict) else {}), **delta}
        with suppress(Conflict):
            memory.state.save(key, value, expected=held.revision, verbatim=True)
            return
    raise Conflict(f"state {key!r:.80} changed {TRIES_MAX} times under us; try again")


def _session_key(app: str, name: str | None) -> str:
    return f"{PREFIX}/{key_part(app)}/sessions/{'*' if name is None else key_part(name)}"


def _user_key(app: str) -> str:
    return f"{PREFIX}/{key_part(app)}/user"


def _app_key(app: str) -> str:
    return f"{PREFIX}/{key_part(app)}/app"
