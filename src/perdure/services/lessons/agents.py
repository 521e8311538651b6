"""Agents of a space: the texts that make one, and the channels it answers on. A folder says it before rows do."""

from __future__ import annotations

from perdure.domain.conversation.agent_state import Agent, ChannelAgent, to_agent, to_channel_agent
from perdure.domain.errors import LimitExceeded, NotFound
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, shared_owner
from perdure.domain.text.rules import check_id, utf8_size
from perdure.domain.text.secrets import without_secrets
from perdure.domain.values import dataclass, replace
from perdure.ports.clock import Clock
from perdure.ports.files import AgentFiles
from perdure.ports.store import Store, Tx
from perdure.services.knowledge.ledger import Ledger

TEXT_BYTES_MAX = 200_000


@dataclass(frozen=True, slots=True)
class Agents:
    store: Store
    clock: Clock
    limits: Limits
    files: AgentFiles | None
    space: str
    """The space whose agents the folders are."""

    def find(self, space: str, agent: str) -> Agent | None:
        """The agent, as its folder says, and for texts that this has not, as its row says."""
        check_id(agent, "agent", bytes_max=ID_BYTES_MAX)
        held = self.store.read(shared_owner(space), lambda view: view.records.find("agent", agent))
        row = None if held is None else to_agent(held.body)
        texts = None if self.files is None or space != self.space else self.files.find(agent)
        if texts is None:
            return row
        return replace(row or Agent(agent), **texts)  # type: ignore[arg-type] # a folder has no other texts

    def get(self, space: str, agent: str) -> Agent:
        found = self.find(space, agent)
        if found is None:
            raise NotFound(f"there is no agent {agent!r:.80}; list them with `agents.list()`")
        return found

    def list_(self, space: str, *, limit: int) -> list[Agent]:
        rows = self.limits.page(limit)
        held = self.store.read(shared_owner(space), lambda view: view.records.list_(RecordQuery("agent", rows)))
        folders = [] if self.files is None or space != self.space else self.files.list_()
        names = sorted({*(record.key for record in held), *folders})[:rows]
        return [agent for name in names if (agent := self.find(space, name)) is not None]

    def save(self, space: str, agent: str, texts: dict[str, str | None]) -> Agent:
        """Set those texts that are given; into its folder if there is a place for folders, else into its row."""
        check_id(agent, "agent", bytes_max=ID_BYTES_MAX)
        given = {
            name: without_secrets(text) if isinstance(text, str) else text for name, text in texts.items() if text is not None
        }
        for name, text in given.items():
            if utf8_size(text, f"`{name}`") > TEXT_BYTES_MAX:
                raise LimitExceeded(f"`{name}` has more than {TEXT_BYTES_MAX} bytes; shorten it")
        if self.files is not None and space == self.space:
            self.files.put(agent, given)
            return self.get(space, agent)
        by = Attribution("user", self.clock.now(), "agent")

        def work(tx: Tx) -> Agent:
            ledger = Ledger(tx, by)
            held = tx.records.find("agent", agent)
            before = Agent(agent) if held is None else to_agent(held.body)
            after = replace(before, **given)  # type: ignore[arg-type] # the handle names no other texts
            if held is None or after != before:
                after = replace(after, updated_at=by.at)
                ledger.put(after, "add" if held is None else "update")
            return after

        return self.store.write(shared_owner(space), work)

    def remove(self, space: str, agent: str) -> bool:
        """Remove its texts, from its folder and its row; its lessons stay. False if there is no such agent."""
        check_id(agent, "agent", bytes_max=ID_BYTES_MAX)
        gone = self.files is not None and space == self.space and self.files.remove(agent)
        by = Attribution("user", self.clock.now(), "agent removed")

        def work(tx: Tx) -> bool:
            ledger = Ledger(tx, by)
            if tx.records.find("agent", agent) is None:
                return False
            ledger.remove("agent", agent, "remove")
            return True

        return self.store.write(shared_owner(space), work) or gone

    # -- channels

    def map_channel(self, space: str, channel: str, agent: str) -> ChannelAgent:
        """Let an agent answer on a channel where the caller names none, and have its lessons."""
        check_id(agent, "agent", bytes_max=ID_BYTES_MAX)
        check_id(channel, "channel", bytes_max=ID_BYTES_MAX)
        made = ChannelAgent(channel, agent, self.clock.now())

        def work(tx: Tx) -> ChannelAgent:
            ledger = Ledger(tx, Attribution("user", made.mapped_at, "channel"))
            held = tx.records.find("channel", channel)
            before = None if held is None else to_channel_agent(held.body)
            if before is not None and before.agent == agent:
                return before
            ledger.put(made, "add" if before is None else "update")
            return made

        return self.store.write(shared_owner(space), work)

    def unmap_channel(self, space: str, channel: str) -> bool:
        """False if it was not mapped."""
        check_id(channel, "channel", bytes_max=ID_BYTES_MAX)
        by = Attribution("user", self.clock.now(), "channel")

        def work(tx: Tx) -> bool:
            ledger = Ledger(tx, by)
            if tx.records.find("channel", channel) is None:
                return False
            ledger.remove("channel", channel, "remove")
            return True

        return self.store.write(shared_owner(space), work)

    def channels(self, space: str, *, limit: int) -> list[ChannelAgent]:
        rows = self.limits.page(limit)
        held = self.store.read(shared_owner(space), lambda view: view.records.list_(RecordQuery("channel", rows)))
        return sorted((to_channel_agent(record.body) for record in held), key=lambda one: one.channel)
