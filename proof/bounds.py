"""Every stated bound: how much is let in, what one more meets, and the words that name it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import perdure
from perdure import documents
from perdure.domain import access, scope
from perdure.domain.conversation import addresses
from perdure.domain.conversation.digests import Layers
from perdure.domain.knowledge import proposals
from perdure.domain.limits import Limits
from perdure.domain.text import rules as text
from perdure.engine import series as specs
from perdure.engine.conversation import append as appending
from perdure.engine.documents import compaction as compaction
from perdure.engine.documents import json_form
from perdure.handles import knowledge as handle_knowledge
from perdure.ports import files as paths
from perdure.services.access import keys as key_service
from perdure.services.context import recall
from perdure.services.conversation import append, history
from perdure.services.knowledge import todos
from perdure.services.lessons import agents, lessons
from perdure.services.oversight import after, request
from perdure.services.series import fetch as readthrough
from perdure.services.series import state
from perdure.testing import StoppedClock

NOW = datetime(2024, 5, 15, 12, tzinfo=UTC)
SMALL = Limits(
    message_bytes_max=300,
    metadata_bytes_max=60,
    batch_messages_max=5,
    queue_jobs_max=12,
    page_rows_max=7,
    state_value_bytes_max=90,
    state_revisions_max=3,
    entry_bytes_max=120,
    batch_entries_max=4,
    import_bytes_max=4_000,
)


@dataclass(frozen=True)
class Bound:
    """One bound. `send(size)` must pass at `most` and be refused at `most + step`, in words that have `named` in them."""

    name: str
    most: Any
    send: Callable[[Any], object]
    named: str
    step: Any = 1


class Scene:
    """A store with small limits, in memory, on a clock that stands still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = perdure.open(settings=perdure.Settings(url="memory:", limits=SMALL), clock=StoppedClock(NOW))
        self.wide = perdure.open(settings=perdure.Settings(url="memory:"), clock=StoppedClock(NOW))
        self._count = 0

    @property
    def ana(self) -> perdure.Memory:
        """A user of whom nothing is known yet."""
        self._count += 1
        return self.engine.memory(f"ana-{self._count}")

    @property
    def bea(self) -> perdure.Memory:
        """The same where the limits are as they are shipped."""
        self._count += 1
        return self.wide.memory(f"bea-{self._count}")

    def close(self) -> None:
        self.engine.close()
        self.wide.close()


def limit_bounds(scene: Scene) -> Iterator[Bound]:
    """Every field of `Limits`, as a call meets it."""
    yield Bound("message_bytes_max", 300, lambda n: scene.ana.append("user", "x" * n), "message_bytes_max")
    yield Bound("message_bytes_max in UTF-8", 150, lambda n: scene.ana.append("user", "é" * n), "message_bytes_max")
    yield Bound("message_bytes_max of calls", 300, lambda n: _with_call(scene.ana, n), "message_bytes_max")
    yield Bound(
        "metadata_bytes_max", 60, lambda n: scene.ana.append("user", "x", metadata={"a": "x" * (n - 8)}), "metadata_bytes_max"
    )
    yield Bound(
        "batch_messages_max", 5, lambda n: scene.ana.append_many([perdure.NewMessage("user", "x")] * n), "batch_messages_max"
    )
    yield Bound("queue_jobs_max", 12, _queued, "queue_jobs_max")
    yield Bound("state_value_bytes_max", 90, lambda n: scene.ana.state.save("k", "x" * (n - 2)), "state_value_bytes_max")
    yield Bound("state_revisions_max", 3, lambda n: _revisions(scene.ana, n), "state_revisions_max")
    yield Bound("entry_bytes_max", 120, lambda n: _entry(scene.ana, n), "entry_bytes_max")
    yield Bound(
        "batch_entries_max",
        4,
        lambda n: scene.ana.series("s").merge([{"id": i, "timestamp": "2024-05-01"} for i in range(n)]),
        "batch_entries_max",
    )
    yield Bound("import_bytes_max", 0, lambda extra: _imported(scene, extra), "import_bytes_max")
    yield Bound("accesses_kept", 3, _accesses, "accesses_kept")
    for name, send in _pages(scene).items():
        yield Bound(f"page_rows_max of {name}", 7, send, "page_rows_max")


def stated_bounds(scene: Scene) -> Iterator[Bound]:
    """Bounds that are constants, as a call meets them."""
    ids = scope.ID_BYTES_MAX
    wide = scene.wide
    for name in ("agent", "channel", "space"):
        yield Bound(f"id: {name}", ids, lambda n, name=name: wide.memory("u", **{name: "x" * n}), f"`{name}`")
    yield Bound("id: user", ids, lambda n: wide.memory("é" * (n // 2) + "x" * (n % 2)), "`user`")
    yield Bound("id: message", ids, lambda n: scene.bea.append("user", "x", id="x" * n), "`id`")
    yield Bound("id: session", ids, lambda n: scene.bea.append("user", "x", session="x" * n), "`session`")
    yield Bound("id: state key", ids, lambda n: scene.bea.state.save("x" * n, 1), "`key`")
    yield Bound("id: series", ids, lambda n: scene.bea.series("x" * n).merge([]), "`series`")
    yield Bound("id: request", ids, lambda n: scene.bea.state.save("k", 1, request="x" * n), "`request`")
    yield Bound("pattern", state.PATTERN_BYTES_MAX, lambda n: scene.bea.state.search("x" * n), "`pattern`")
    yield Bound("JSON depth", text.JSON_DEPTH_MAX + 1, lambda n: scene.bea.state.save("k", _nested(n)), "nested deeper")
    yield Bound("integer bits", text.INTEGER_BITS_MAX, lambda n: scene.bea.state.save("k", 2 ** (n - 1)), "bits")
    yield Bound("tokens of a message", appending.TOKENS_MAX, lambda n: scene.bea.append("user", "x", tokens=n), "`tokens`")
    yield Bound(
        "task description", todos.DESCRIPTION_BYTES_MAX, lambda n: scene.bea.todos.tasks.start("x" * n), "`description`"
    )
    yield Bound(
        "series description",
        specs.DESCRIPTION_BYTES_MAX,
        lambda n: scene.bea.series("s").configure(description="x" * n),
        "`description`",
    )
    yield Bound("agent text", agents.TEXT_BYTES_MAX, lambda n: wide.agents.save("a", soul="x" * n), "`soul`")
    yield Bound("question", recall.QUERY_BYTES_MAX, lambda n: scene.bea.recall("x" * n), "question")
    yield Bound("neighbours", recall.NEIGHBOURS_MAX, lambda n: scene.bea.recall("x", neighbours=n), "`neighbours`")
    yield Bound("goal", request.GOAL_BYTES_MAX, lambda n: scene.bea.before("x" * n), "`goal`")
    yield Bound("tool name", after.TOOL_BYTES_MAX, lambda n: scene.bea.after("x" * n, {"a": 1}), "`tool`")
    yield Bound("reply", lessons.REPLY_BYTES_MAX, lambda n: scene.bea.lessons.take_from("x" * n), "`reply`")
    yield Bound("overview days", history.DAYS_MAX, lambda n: scene.bea.admin.overview(days=n), "`days`")
    yield Bound(
        "importance", proposals.IMPORTANCE_MAX, lambda n: scene.bea.remember("Ana likes tea", importance=n), "`importance`"
    )
    yield Bound("label", handle_knowledge.LABEL_CHARS_MAX, lambda n: _labelled(scene.bea, n), "label")
    yield Bound("turn lease", append.SECONDS_MAX, lambda n: scene.bea.turn(lease_s=n).__enter__(), "`lease_s`")
    yield Bound("turn wait", append.SECONDS_MAX, lambda n: scene.bea.turn(wait_s=n).__enter__(), "`wait_s`")
    yield Bound("requests of a fetch", readthrough.PIECES_MAX, lambda n: _fetched(scene.bea, n), "requests")
    yield Bound("API key days", key_service.DAYS_MAX, lambda n: wide.api_keys.create("k", days=n), "`days`")
    yield Bound("API key name", access.KEY_NAME_CHARS_MAX, lambda n: wide.api_keys.create("x" * n), "`name`")
    yield Bound(
        "API key users",
        access.KEY_USERS_MAX,
        lambda n: wide.api_keys.create("k", users=[f"u{i}" for i in range(n)]),
        "`users`",
    )
    yield Bound("channel number", addresses.NUMBER_MAX, lambda n: addresses.channel_name("discord", n), "`number`")
    yield Bound(
        "session id of a document",
        json_form.SESSION_ID_BYTES_MAX,
        lambda n: json_form.check_session_id("x" * n),
        "`session_id`",
    )
    yield Bound(
        "document",
        len(_document()),
        lambda n: documents.read_document(_document(n), bytes_max=len(_document())),
        "document_bytes_max",
    )
    yield Bound("path", paths.PATH_BYTES_MAX, lambda n: paths.check_path("a/" * (n // 2) + "a" * (n % 2), "path"), "`path`")
    yield Bound("file name", paths.NAME_BYTES_MAX, lambda n: paths.check_path("x" * n, "path"), "`path`")
    yield Bound("seconds of a setting", 10**9, lambda n: perdure.Settings(deadline_s=n), "`deadline_s`")
    yield Bound("schema name", 57, lambda n: perdure.Settings(postgres_schema="x" * n), "`postgres_schema`")


def floors() -> Iterator[Bound]:
    """Every field of `Limits`, `Layers` and the rules of compaction: the least and the most it may be set to."""
    for one in fields(Limits):
        yield Bound(f"least of {one.name}", 1, lambda n, name=one.name: Limits(**{name: n}), f"`{one.name}`", step=-1)
    for one in fields(Layers):
        least = 0 if one.name == "history_messages_keep" else 1
        more = {"history_messages_max": 1} if one.name == "history_messages_keep" else {}
        most = 10**9 if one.name != "history_messages_keep" else 49
        yield Bound(
            f"least of {one.name}",
            least,
            lambda n, name=one.name, more=more: Layers(**{name: n, **more}),
            f"`{one.name}`",
            step=-1,
        )
        yield Bound(f"most of {one.name}", most, lambda n, name=one.name: Layers(**{name: n}), f"`{one.name}`")
    for name, least in (
        ("max_tokens", compaction.TOKENS_MIN),
        ("summary_chars_max", compaction.SUMMARY_CHARS_MIN),
        ("max_history", 2),
    ):
        yield Bound(
            f"least of {name}", least, lambda n, name=name: documents.CompactionRules(**{name: n}), f"`{name}`", step=-1
        )


def _with_call(memory: perdure.Memory, n: int) -> object:
    arguments = {"a": "x" * (n - 10)}  # the id and the name of the call count, too
    return memory.append("assistant", "", tool_calls=[perdure.ToolCall("c", "t", arguments)])


def _queued(n: int) -> object:
    """Append until so many jobs wait: each new address is one, and the first append of a user another."""
    limits = Limits(queue_jobs_max=SMALL.queue_jobs_max)
    with perdure.open(settings=perdure.Settings(url="memory:", limits=limits), clock=StoppedClock(NOW)) as engine:
        waiting = number = 0
        while waiting < n:
            number += 1
            memory = engine.memory("ana", agent=f"agent-{number}")
            memory.append("user", f"hello {number}")
            waiting = len(memory.admin.jobs("ready")) + len(memory.admin.jobs("running"))
            if waiting > SMALL.queue_jobs_max:
                raise AssertionError(f"{waiting} jobs wait, more than `queue_jobs_max` = {SMALL.queue_jobs_max}")
        return waiting


def _revisions(memory: perdure.Memory, n: int) -> object:
    """Save so many; what is kept is as many as the limit says, and asking for the one behind it says so."""
    for number in range(n):
        memory.state.save("k", number)
    held = memory.state.history("k", limit=SMALL.page_rows_max)
    if len(held) < n:
        if len(held) != SMALL.state_revisions_max:
            raise AssertionError(f"{len(held)} revisions are kept, not {SMALL.state_revisions_max}")
        raise perdure.LimitExceeded("only `state_revisions_max` revisions are kept: the oldest made room")
    return held


def _accesses(n: int) -> object:
    """Read so often; the access log keeps as many entries as the limit says."""
    settings = perdure.Settings(url="memory:", access_log="all", limits=Limits(accesses_kept=3))
    with perdure.open(settings=settings, clock=StoppedClock(NOW)) as engine:
        ana = engine.memory("ana")
        for number in range(n):
            ana.state.save(f"k{number}", number)
        held = len(ana.journal.accesses(20))
    if held < n:
        if held != 3:
            raise AssertionError(f"{held} accesses are kept, not 3")
        raise perdure.LimitExceeded("only `accesses_kept` entries of the access log are kept: the oldest made room")
    return held


def _entry(memory: perdure.Memory, n: int) -> object:
    empty = len(json.dumps({"id": "a", "timestamp": "2024-05-01", "x": ""}, separators=(",", ":")))
    done = memory.series("s").merge([{"id": "a", "timestamp": "2024-05-01", "x": "x" * (n - empty)}])
    if done.rejected:
        raise perdure.LimitExceeded(done.rejected[0].reason)
    return done


def _imported(scene: Scene, extra: int) -> object:
    """An export of exactly as many bytes as may come in, or of one more."""
    source = scene.bea
    source.append("user", "hello there")
    made = io.BytesIO()
    source.export(made)
    size = len(made.getvalue())
    limits = Limits(import_bytes_max=size - extra)
    with perdure.open(settings=perdure.Settings(url="memory:", limits=limits)) as engine:
        return engine.memory("new").import_(io.BytesIO(made.getvalue()))


def _pages(scene: Scene) -> dict[str, Callable[[int], object]]:
    ana = scene.ana
    return {
        "messages": lambda n: ana.messages(n),
        "sessions": lambda n: ana.conversation.sessions(n),
        "journal": lambda n: ana.journal.list(n),
        "jobs": lambda n: ana.admin.jobs(limit=n),
        "memories": lambda n: ana.memories.list(limit=n),
        "todos": lambda n: ana.todos.list(limit=n),
        "tasks": lambda n: ana.todos.tasks.list(limit=n),
        "instructions": lambda n: ana.instructions.list(limit=n),
        "lessons": lambda n: ana.lessons.list(limit=n),
        "entities": lambda n: ana.entities.list(limit=n),
        "series": lambda n: ana.series.list(n),
        "state": lambda n: ana.state.list(limit=n),
        "decisions": lambda n: ana.journal.decisions(limit=n),
        "users": lambda n: scene.engine.users(limit=n),
        "agents": lambda n: scene.engine.agents.list(limit=n),
        "search": lambda n: ana.conversation.search("x", limit=n),
        "digests": lambda n: ana.conversation.digests(limit=n),
        "rejections": lambda n: ana.memories.rejections(n),
        "links": lambda n: ana.entities.links(n),
    }


def _labelled(memory: perdure.Memory, n: int) -> object:
    done = memory.remember("Ana lives in Rome")
    assert done.statement is not None
    return memory.memories.edit(done.statement.memory, label=("Home of Ana " * 30)[:n])


def _fetched(memory: perdure.Memory, n: int) -> object:
    end = NOW - timedelta(days=1)
    return (
        memory.series("s").fetch(end - timedelta(seconds=n), end, lambda window: [], longest_s=1, limit=1)
        if n > readthrough.PIECES_MAX
        else n
    )


def _document(size: int | None = None) -> bytes:
    raw = documents.render_document(documents.ContextData("s"))
    return raw if size is None else raw + b" " * (size - len(raw))


def _nested(depth: int) -> Any:
    made: Any = "x"
    for _ in range(depth):
        made = [made]
    return made
