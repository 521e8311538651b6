"""Claude Agent SDK: a `SessionStore` that keeps every entry as it is, and hooks that tell the agent what is remembered.

```python
ana = engine.memory("ana")
options = ClaudeAgentOptions(session_store=PerdureSessionStore(ana), hooks=remembering(ana))
```

Transcripts are lists of the state, verbatim, under keys that start with `claude/`. What user and assistant said in the main
transcript is in the log as well, in the session of that id, and is learned from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

from claude_agent_sdk import HookMatcher, SessionStore, fold_session_summary

from perdure.domain.errors import Conflict, NotFound
from perdure.handles.memory import Memory
from perdure.integrations.claude_code import PROMPT, known_for, log, prompt_context, spoken
from perdure.integrations.thread import in_thread

Key = Mapping[str, str]
Entry = dict[str, Any]
MAIN, SUB, SUMMARY = "claude/main", "claude/sub", "claude/summary"
TRIES_MAX = 20
PROJECT_CHARS_MAX = 100


class PerdureSessionStore(SessionStore):
    """The transcripts of one user's sessions. Several processes may append at once."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._state = memory.state

    async def append(self, key: Key, entries: Sequence[Entry]) -> None:
        """Add entries behind those that are there; one whose `uuid` is there already is not read twice."""
        if entries:
            await in_thread(self._append, key, list(entries))

    async def load(self, key: Key) -> list[Entry] | None:
        """All entries in order; None if there are none."""
        return await in_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """The sessions of a project, with the time of their newest entry."""
        return await in_thread(self._sessions, project_key)

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """What the SDK has made of each session of a project for its lists."""
        return await in_thread(self._summaries, project_key)

    async def delete(self, key: Key) -> None:
        """Delete a session with its subagents and what it added to the log, or one subagent. What was learned stays."""
        await in_thread(self._delete, key)

    async def list_subkeys(self, key: Key) -> list[str]:
        """The subagents of a session."""
        return await in_thread(self._subkeys, key)

    # -- how

    def _append(self, key: Key, entries: list[Entry]) -> None:
        # A batch that is sent again after a lost answer is the same batch. Marks without a uuid may well repeat.
        known = any(isinstance(one.get("uuid"), str) for one in entries)
        request = _digest(json.dumps(entries, sort_keys=True)) if known else None
        self._state.append(_at(key), [_kept(one) for one in entries], request=request)
        if "subpath" in key:
            return
        self._fold(key, entries)
        said = [message for one in entries if (message := spoken(one, key["session_id"])) is not None]
        if said:
            log(self._memory, said)

    def _fold(self, key: Key, entries: list[Entry]) -> None:
        place = _place(SUMMARY, key["project_key"], key["session_id"])
        for _ in range(TRIES_MAX):
            held = self._state.find(place)
            # Without a summary, all that is held counts: an earlier append may have ended halfway.
            before = {**held.value, "mtime": 0} if isinstance(held.value, dict) else None
            new = entries if before is not None else self._load(key) or entries
            summary = fold_session_summary(before, key, new)
            value = {"session_id": key["session_id"], "data": summary["data"]}
            try:
                self._state.save(place, value, expected=held.revision, verbatim=True)
                return
            except Conflict:
                continue  # somebody else was faster: fold onto theirs
        raise Conflict(f"session {key['session_id']!r:.80} changed {TRIES_MAX} times under us; try again")

    def _load(self, key: Key) -> list[Entry] | None:
        seen: set[str] = set()
        entries: list[Entry] = []
        for one in self._state.load(_at(key)) or ():
            entry = json.loads(one.decode("utf-8", "surrogatepass")) if isinstance(one, bytes) else one
            if not isinstance(entry, dict):
                continue  # it told of what was forgotten
            name = entry.get("uuid")
            if isinstance(name, str):
                if name in seen:
                    continue
                seen.add(name)
            entries.append(entry)
        return entries or None

    def _sessions(self, project: str) -> list[dict[str, Any]]:
        found = self._state.list(_place(MAIN, project, "*"))
        return [{"session_id": _last(one.key), "mtime": _ms(one.updated_at)} for one in found]

    def _summaries(self, project: str) -> list[dict[str, Any]]:
        found = [self._state.find(one.key) for one in self._state.list(_place(SUMMARY, project, "*"))]
        return [
            {**one.value, "mtime": _ms(one.updated_at)}
            for one in found
            if isinstance(one.value, dict) and one.updated_at is not None
        ]

    def _delete(self, key: Key) -> None:
        self._state.delete(_at(key))
        if "subpath" in key:
            return
        project, session = key["project_key"], key["session_id"]
        self._state.delete(_place(SUMMARY, project, session))
        for one in self._state.list(_place(SUB, project, session, "*")):
            self._state.delete(one.key)
        with suppress(NotFound):
            self._memory.conversation.delete(session)

    def _subkeys(self, key: Key) -> list[str]:
        return [_last(one.key) for one in self._state.list(_place(SUB, key["project_key"], key["session_id"], "*"))]


def remembering(memory: Memory) -> dict[str, list[HookMatcher]]:
    """Hooks for `ClaudeAgentOptions(hooks=…)`: each prompt comes with what is remembered that matters to it."""

    async def before_prompt(given: Mapping[str, Any], _tool: str | None, _context: Any) -> dict[str, Any]:
        known = await in_thread(known_for, memory, given)
        return prompt_context(known) if known else {}

    return {PROMPT: [HookMatcher(hooks=[before_prompt])]}


def _kept(entry: Entry) -> Entry | bytes:
    """An entry as the state takes it. What a tool cut within a character is no text: such an entry is kept as bytes."""
    text = json.dumps(entry, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return dict(entry)


def _at(key: Key) -> str:
    kind, parts = (SUB, [key["subpath"]]) if "subpath" in key else (MAIN, [])
    return _place(kind, key["project_key"], key["session_id"], *parts)


def _place(kind: str, project: str, *parts: str) -> str:
    """A key of the state; a part that is `*` stands for any."""
    name = quote(project, safe="") or "-"
    if len(name) > PROJECT_CHARS_MAX:
        name = f"{name[: PROJECT_CHARS_MAX // 2]}~{_digest(project)[:32]}"
    return "/".join([kind, name, *(one if one == "*" else quote(one, safe="") for one in parts)])


def _last(key: str) -> str:
    return unquote(key.rpartition("/")[2])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)
