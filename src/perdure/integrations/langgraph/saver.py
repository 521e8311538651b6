"""The checkpointer.

Checkpoints, the values of channels and pending writes are verbatim values of the state, under keys that start with
`langgraph/`. They are never searched or learned from.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from perdure.handles.memory import Memory
from perdure.integrations.thread import in_thread

PREFIX = "langgraph"
NO_VALUE = ("empty", b"")
Stored = tuple[str, bytes]
"""A value as the serialiser of LangGraph leaves it: a type and bytes."""


class PerdureSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of a user's threads. It can be called from threads and from an event loop."""

    def __init__(self, memory: Memory, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._state = memory.state

    # -- reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its thread and namespace."""
        thread, namespace = _place(config)
        wanted = get_checkpoint_id(config) or max(self._ids(thread, namespace), default=None)
        return None if wanted is None else self._tuple(thread, namespace, wanted)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest of each namespace first."""
        asked = {} if config is None else config["configurable"]
        only, end = asked.get("checkpoint_id"), None if before is None else get_checkpoint_id(before)
        left = limit
        for thread, namespace in self._places(asked.get("thread_id"), asked.get("checkpoint_ns")):
            for name in sorted(self._ids(thread, namespace), reverse=True):
                if (only and name != only) or (end and name >= end):
                    continue
                if left is not None and left <= 0:
                    return
                found = self._tuple(thread, namespace, name)
                if found is None or any(found.metadata.get(key) != value for key, value in (filter or {}).items()):
                    continue
                left = None if left is None else left - 1
                yield found

    def _tuple(self, thread: str, namespace: str, name: str) -> CheckpointTuple | None:
        held = self._state.load(_key(thread, namespace, "c", name))
        if not isinstance(held, dict):
            return None  # there is none, or it told of what was forgotten
        checkpoint = self.serde.loads_typed(held["checkpoint"])
        parent = held["parent"]
        return CheckpointTuple(
            config=_config(thread, namespace, name),
            checkpoint={**checkpoint, "channel_values": self._values(thread, namespace, checkpoint["channel_versions"])},
            metadata=self.serde.loads_typed(held["metadata"]),
            parent_config=None if parent is None else _config(thread, namespace, parent),
            pending_writes=[
                (task, channel, self.serde.loads_typed(value)) for task, channel, value in self._writes(thread, namespace, name)
            ],
        )

    def _values(self, thread: str, namespace: str, versions: Mapping[str, Any]) -> dict[str, Any]:
        held = {channel: self._state.load(_blob(thread, namespace, channel, version)) for channel, version in versions.items()}
        return {
            channel: self.serde.loads_typed(value)
            for channel, value in held.items()
            if isinstance(value, tuple) and value != NO_VALUE
        }

    def _writes(self, thread: str, namespace: str, name: str) -> Sequence[tuple[str, str, Stored]]:
        """Each write once: the first of a task and place, but the last of those that LangGraph gives a place below 0."""
        found: dict[tuple[str, str, int], tuple[str, str, Stored]] = {}
        for one in self._state.load(_key(thread, namespace, "w", name), []):
            if isinstance(one, tuple):
                path, task, place, channel, value = one
                if place < 0 or (path, task, place) not in found:
                    found[(path, task, place)] = (task, channel, value)
        return [found[place] for place in sorted(found)]

    # -- writing

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """Keep a checkpoint: first the values that are new, then what refers to them."""
        thread, namespace = _place(config)
        values = checkpoint["channel_values"]
        for channel, version in new_versions.items():
            stored = self.serde.dumps_typed(values[channel]) if channel in values else NO_VALUE
            self._state.save(_blob(thread, namespace, channel, version), tuple(stored), verbatim=True)
        bare = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        about = get_checkpoint_metadata(config, metadata)
        held = {
            "checkpoint": tuple(self.serde.dumps_typed(bare)),
            "metadata": tuple(self.serde.dumps_typed(about)),
            "parent": config["configurable"].get("checkpoint_id"),
        }
        self._state.save(_key(thread, namespace, "c", checkpoint["id"]), held, verbatim=True)
        return _config(thread, namespace, checkpoint["id"])

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Keep what a task has written since a checkpoint."""
        thread, namespace = _place(config)
        entries = [
            (task_path, task_id, WRITES_IDX_MAP.get(channel, place), channel, tuple(self.serde.dumps_typed(value)))
            for place, (channel, value) in enumerate(writes)
        ]
        if entries:
            self._state.append(_key(thread, namespace, "w", config["configurable"]["checkpoint_id"]), entries)

    def delete_thread(self, thread_id: str) -> None:
        """Delete all that is kept of a thread."""
        for key in self._keys(f"{PREFIX}/{_part(thread_id)}/*"):
            self._state.delete(key)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs have made, with their writes."""
        gone = set(run_ids)
        for found in tuple(self.list(None)):
            if found.metadata.get("run_id") in gone:
                self._drop(found)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Keep all that is kept of a thread under another id, too."""
        source, target = (f"{PREFIX}/{_part(name)}/" for name in (source_thread_id, target_thread_id))
        for key in self._keys(f"{source}*"):
            copied, value = target + key.removeprefix(source), self._state.load(key)
            if isinstance(value, list):
                self._state.append(copied, value)
            else:
                self._state.save(copied, value, verbatim=True)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of these threads, or all but the newest of each namespace.

        Not for graphs with delta channels, whose values are made of earlier checkpoints.
        """
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            for place in self._places(thread, None):
                held = sorted(self._ids(*place))
                for name in held[:-1]:
                    for kind in "cw":
                        self._state.delete(_key(*place, kind, name))

    def _drop(self, found: CheckpointTuple) -> None:
        thread, namespace = _place(found.config)
        for kind in "cw":
            self._state.delete(_key(thread, namespace, kind, found.config["configurable"]["checkpoint_id"]))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions are texts that sort as they follow one another; those of two branches differ."""
        return f"{(0 if current is None else int(str(current).split('.')[0])) + 1:032}.{uuid4().hex}"

    # -- the same from an event loop

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for found in await in_thread(lambda: tuple(self.list(config, filter=filter, before=before, limit=limit))):
            yield found

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        return await in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await in_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await in_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await in_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # -- keys

    def _keys(self, pattern: str) -> Sequence[str]:
        return [info.key for info in self._state.list(pattern)]

    def _ids(self, thread: str, namespace: str) -> Sequence[str]:
        return [_whole(key.rpartition("/")[2]) for key in self._keys(_key(thread, namespace, "c", "*"))]

    def _places(self, thread: str | None, namespace: str | None) -> Sequence[tuple[str, str]]:
        """Threads and namespaces that hold checkpoints: those asked for, or all."""
        wanted = "*" if thread is None else _part(thread)
        parts = [key.split("/") for key in self._keys(f"{PREFIX}/{wanted}/*/c/*")]
        found = dict.fromkeys((_whole(one[1]), _whole(one[2])) for one in parts)
        return [place for place in found if namespace is None or place[1] == namespace]


def _place(config: RunnableConfig) -> tuple[str, str]:
    asked = config["configurable"]
    return str(asked["thread_id"]), asked.get("checkpoint_ns", "")


def _config(thread: str, namespace: str, name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": name}}


def _key(thread: str, namespace: str, kind: str, name: str) -> str:
    return "/".join((PREFIX, _part(thread), _part(namespace), kind, name if name == "*" else _part(name)))


def _blob(thread: str, namespace: str, channel: str, version: object) -> str:
    return "/".join((_key(thread, namespace, "b", channel), _part(str(version))))


def _part(text: str) -> str:
    """A part of a key: without what divides keys or is a wildcard, and never empty."""
    return quote(text, safe="") or "-"


def _whole(part: str) -> str:
    return "" if part == "-" else unquote(part)
