"""Resources: memories, series and conversations by address, as JSON. An id in an address is percent-encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, unquote

from perdure.domain.errors import NotFound
from perdure.domain.text.fences import fenced
from perdure.domain.text.rules import compact_json
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.handles.registry.shapes import plain

SCHEME = "perdure://"
LISTED = 100
READ = 200
"""Messages of a conversation that are shown at once, the latest."""
MIME_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource: its list, and each of its things."""

    name: str
    title: str
    description: str
    variable: str
    list_: Callable[[Memory], Any]
    ids: Callable[[Any], str]
    get: Callable[[Memory, str], Any]

    @property
    def uri(self) -> str:
        return SCHEME + self.name

    @property
    def template(self) -> str:
        return f"{self.uri}/{{{self.variable}}}"

    def uri_of(self, id: str) -> str:  # noqa: A002 - it is one
        return f"{self.uri}/{quote(id, safe='')}"


KINDS = (
    Kind(
        name="memories",
        title="Memories",
        description="Memories, the newest change first.",
        variable="key",
        list_=lambda memory: memory.memories.list(limit=LISTED),
        ids=lambda one: one.memory.record_key,
        get=lambda memory, key: memory.memories.get(key),
    ),
    Kind(
        name="series",
        title="Series",
        description="Time series that tool results were added to, with what they cover.",
        variable="name",
        list_=lambda memory: memory.series.list(LISTED),
        ids=lambda one: one.name,
        get=lambda memory, name: memory.series(name).about(),
    ),
    Kind(
        name="sessions",
        title="Conversations",
        description="Logged conversations at this address, the newest first.",
        variable="id",
        list_=lambda memory: memory.conversation.sessions(LISTED),
        ids=lambda one: one.id,
        get=lambda memory, session: {"items": memory.messages(READ, session=session)},
    ),
)


@dataclass(frozen=True, slots=True)
class ListedResource:
    """One resource of a listing."""

    uri: str
    name: str
    title: str
    description: str | None = None


def indexes() -> Iterable[ListedResource]:
    """The lists, which are there for everybody."""
    return [ListedResource(kind.uri, kind.name, kind.title, kind.description) for kind in KINDS]


def things(memory: Memory) -> Iterable[ListedResource]:
    """What there is of each kind."""
    for kind in KINDS:
        for one in kind.list_(memory):
            name = kind.ids(one)
            # Hosts show names to models, too.
            shown = " ".join(fenced(name).split())
            yield ListedResource(kind.uri_of(name), shown, f"{kind.title}: {shown}"[:200])


def read(memory: Memory, uri: str) -> str:
    """The JSON that an address stands for; `NotFound` if there is nothing."""
    for kind in KINDS:
        if uri in (kind.uri, f"{kind.uri}/"):
            items = kind.list_(memory)
            return compact_json({"items": [{"uri": kind.uri_of(kind.ids(one)), **plain(one)} for one in items]})
        if uri.startswith(f"{kind.uri}/"):
            return compact_json(plain(kind.get(memory, unquote(uri.removeprefix(f"{kind.uri}/")))))
    raise NotFound(f"there is no resource {uri!r:.120}; use one of {', '.join(kind.template for kind in KINDS)}")
