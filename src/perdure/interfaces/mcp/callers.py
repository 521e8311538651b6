"""Who calls a tool, and whose memory it is about: one person on stdio, the holder of a key over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import unquote

from perdure.app import Engine
from perdure.domain.access import Permission
from perdure.domain.errors import InvalidInput
from perdure.domain.scope import DEFAULT
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.interfaces.access import Door

HEADERS = {"user": "perdure-user", "agent": "perdure-agent", "channel": "perdure-channel"}


class ToolCaller(Protocol):
    """What a tool may reach."""

    def may(self, need: Permission) -> bool:
        """Whether to offer what needs this permission."""

    def memory(self, need: Permission) -> Memory:
        """The handle to work with; `AccessDenied` or `InvalidInput` if there is none for this caller."""

    def whole(self) -> Engine:
        """The engine itself, for what concerns the whole store."""


@dataclass(frozen=True, slots=True)
class LocalCaller:
    """The model that a person at this machine runs, with one scope for the whole life of the process."""

    engine: Engine
    bound: Memory

    def may(self, need: Permission) -> bool:  # noqa: ARG002 - anyone who starts the process may open the file, too
        return True

    def memory(self, need: Permission) -> Memory:  # noqa: ARG002
        return self.bound.as_agent()

    def whole(self) -> Engine:
        return self.engine


@dataclass(frozen=True, slots=True)
class Visitor:
    """A caller over HTTP. Scope comes with each request, and the key says whether it may be had."""

    door: Door
    headers: Mapping[str, str]
    query: Mapping[str, str]
    user: str | None = None
    """Whose memory, if neither the request nor the key tells."""

    def may(self, need: Permission) -> bool:
        return need in self.door.access.permissions

    def memory(self, need: Permission) -> Memory:
        self.door.access.allow(need)
        user = self._named("user") or self.door.access.alone() or self.user
        if user is None:
            raise InvalidInput(
                "the request names no user; send the header `Perdure-User`, or add `?user=NAME` to the address of the server"
            )
        agent, channel = self._named("agent") or DEFAULT, self._named("channel") or DEFAULT
        return self.door.memory(user, need, agent=agent, channel=channel)

    def whole(self) -> Engine:
        return self.door.whole()

    def _named(self, what: str) -> str | None:
        # A header carries Latin-1 at best, so names come percent-encoded; plain ASCII means itself.
        header = self.headers.get(HEADERS[what])
        # What is no UTF-8 becomes characters that no id may hold, and so an error that names the id.
        return unquote(header, errors="surrogateescape") if header else self.query.get(what) or None
