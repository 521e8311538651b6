"""Whose word something is. Trust follows the writer: what an agent stores is the agent's word, whatever source it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, get_args

from perdure.domain.errors import Unsupported
from perdure.domain.knowledge.proposals import Evidence
from perdure.domain.knowledge.records import RecordKind, Term
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.values import dataclass, replace

Writer = Literal["user", "agent"]
"""Who makes a call: a person or a program of theirs or the operator's; or a model, through its tools or a key of its own."""

TRUST_OF_SOURCE: Mapping[str, Trust] = {
    "user": "user",
    "operator": "user",
    "seeded_profile": "user",
    "vault": "user",
    "agent": "agent",
    "assistant": "agent",
    "model": "agent",
    "shadow_extraction": "agent",
    "own_words": "agent",
    "curated_fold": "agent",
    "tool": "tool",
    "web": "tool",
    "file": "tool",
    "email": "tool",
    "document": "tool",
    "import": "import",
}
"""How far the word of each source goes; `web:example.org` is of the source `web`. What is not named here came from elsewhere:
`import`."""


def trust_of_source(source: str, writer: Writer = "user") -> Trust:
    """How far a statement is trusted that this writer says to have from there: never further than the writer."""
    return least((_word_of(source), writer), writer)


def source_of(source: str, writer: Writer) -> str:
    """The source as it is kept: an agent does not speak as the user."""
    return "agent" if writer == "agent" and _word_of(source) == "user" else source


def _word_of(source: str) -> Trust:
    return TRUST_OF_SOURCE.get(source.partition(":")[0], "import")


def actor_of(writer: Writer, agent: str) -> str:
    """The writer as the journal names them."""
    return "user" if writer == "user" else f"agent:{agent}"


def only_people(writer: Writer, what: str, instead: str) -> None:
    """Refuse to an agent what only a person decides."""
    if writer == "agent":
        raise Unsupported(f"an agent does not {what}; {instead}")


Trust = Literal["tool", "import", "agent", "user"]
"""Who said so. What is derived is trusted no more than the least of its sources."""
TRUSTS: tuple[Trust, ...] = get_args(Trust)
"""The least first."""
ROLE_OF_TRUST: dict[Trust, str] = {"user": "user", "agent": "assistant", "tool": "tool", "import": "import"}
"""Whose words something is shown as."""
UNTRUSTED: tuple[Trust, ...] = ("tool", "import")
"""Anybody's words: what tools returned, and what came from elsewhere."""
TRUST_OF_ROLE: dict[str, Trust] = {"user": "user", "assistant": "agent", "tool": "tool", "system": "import"}
WRITER_KEY = "perdure:writer"
"""In the metadata of a message that an agent logged: whatever its role, it is the agent's word."""
Status = Literal["ACTIVE", "ARCHIVED"]
Proposed = Literal["value", "end", "correction"]
"""What a proposal asks for: that it is so, that something is so no longer, or that something was wrong."""
OWN_WORDS = "own_words"
"""The source of what is kept as the user said it: it goes when all its messages are gone."""
USER = "user"
"""The subject of statements about the user."""
EVIDENCE_MAX = 100
ENDS_MAX = 20
MENTION_DAYS_MAX = 30
IMPORTANCE_GROWN_MAX = 2
GROWS_AFTER_DAYS = 3


def least(trusts: Iterable[Trust], default: Trust) -> Trust:
    """The trust of what is derived from all of these; of nothing, the default."""
    return min(trusts, key=TRUSTS.index, default=default)


def trust_of_message(role: str, metadata: Mapping[str, Any]) -> Trust:
    """Whose word a message is: that of its role, unless an agent logged it."""
    trust = TRUST_OF_ROLE[role]
    return least((trust, "agent"), trust) if metadata.get(WRITER_KEY) == "agent" else trust


def yields_to(trust: Trust, other: Trust) -> bool:
    """Whether the word of `trust` does not stand against the other's."""
    return TRUSTS.index(trust) < TRUSTS.index(other)


@dataclass(frozen=True, slots=True)
class Statement:
    """One atomic fact. It is closed, never overwritten."""

    id: str
    memory: str
    """The record key of the memory it belongs to."""
    content: str
    subject: str
    """Whose it is: `user`, or an entity such as `person:john_doe`."""
    entities: tuple[str, ...]
    valid_from: datetime
    recorded_at: datetime
    last_mentioned: datetime
    attribute: str | None = None
    value: str | None = None
    time_words: str | None = None
    start_stated: bool = False
    """Whether `valid_from` was said; else it is when the statement was made."""
    confidence: float = 0.8
    importance: int = 1
    source: str = "shadow_extraction"
    trust: Trust = "user"
    evidence: tuple[Evidence, ...] = ()
    """The newest places where it was said."""
    mentions: int = 1
    mention_days: tuple[str, ...] = ()
    valid_to: datetime | None = None
    """Since when it is so no longer; None: it is current."""
    closed_at: datetime | None = None
    """When that became known."""
    closed_by: str | None = None
    """The statement that took its place."""
    reason: str | None = None
    visible_to: str | None = None
    earlier_ends: tuple[tuple[datetime, datetime], ...] = ()
    """Ends that were known before the one it has now: when each became known, and the end."""
    proposes: Proposed | None = None
    """It is no word of its own: a less trusted source proposes it against what stands, and a person decides."""
    against: tuple[str, ...] = ()
    """Of a proposal, the statements it speaks against."""

    def __str__(self) -> str:
        return self.content

    @property
    def kind(self) -> RecordKind:
        return "statement"

    @property
    def record_key(self) -> str:
        return self.id

    @property
    def is_pending(self) -> bool:
        """Whether it is an undecided proposal."""
        return self.proposes is not None and self.closed_at is None

    def is_live(self) -> bool:
        """Whether it may still be true: no end was stated, or one in the future."""
        if self.proposes is not None:
            return False
        return self.valid_to is None or (self.closed_at is not None and self.valid_to > self.closed_at)

    def holds_at(self, moment: datetime, known_at: datetime | None = None) -> bool:
        """Whether it was true at `moment`, as known at `known_at` (None: now)."""
        if self.proposes is not None or (known_at is not None and self.recorded_at > known_at):
            return False
        end = self.valid_to if known_at is None else self._end_known_at(known_at)
        return self.valid_from <= moment and (end is None or moment < end)

    def is_current(self, now: datetime) -> bool:
        """Whether it is true now. Without a stated start it began when it was said, and what was over when its end was said is
        over: whatever the clock of the writer was.
        """
        begun = not self.start_stated or self.valid_from <= now
        return begun and self.is_live() and (self.valid_to is None or now < self.valid_to)

    def is_ahead(self, now: datetime) -> bool:
        """Whether it began, without a stated start, by a clock that was ahead of this one."""
        return not self.start_stated and self.valid_from > now

    def settled(self, now: datetime) -> Statement:
        """The statement with what a clock that ran ahead wrote brought back to `now`; what was stated stays."""
        start = min(self.valid_from, now) if self.is_ahead(now) else self.valid_from
        end, closed_at = self.valid_to, self.closed_at
        if closed_at is not None and closed_at > now:
            if end is not None and not self.is_live():
                end = max(start, min(end, now))
            closed_at = now
        recorded, mentioned = min(self.recorded_at, now), min(self.last_mentioned, now)
        return replace(
            self, valid_from=start, recorded_at=recorded, last_mentioned=mentioned, valid_to=end, closed_at=closed_at
        )

    def _end_known_at(self, known_at: datetime) -> datetime | None:
        """The end that it had as far as was known then."""
        if self.closed_at is None or self.closed_at <= known_at:
            return self.valid_to
        known = [end for closed_at, end in self.earlier_ends if closed_at <= known_at]
        return known[-1] if known else None

    def mentioned(self, evidence: tuple[Evidence, ...], at: datetime, *, grows: bool = True) -> Statement:
        """The statement, said once more."""
        days = tuple(dict.fromkeys((*self.mention_days, at.date().isoformat())))[-MENTION_DAYS_MAX:]
        often = grows and len(days) > GROWS_AFTER_DAYS
        grown = max(self.importance, min(IMPORTANCE_GROWN_MAX, self.importance + 1)) if often else 0
        return replace(
            self,
            evidence=tuple(dict.fromkeys((*self.evidence, *evidence)))[-EVIDENCE_MAX:],
            mentions=self.mentions + 1,
            mention_days=days,
            importance=max(self.importance, grown),
            last_mentioned=max(self.last_mentioned, at),
        )

    def cited(self, evidence: tuple[Evidence, ...]) -> Statement:
        """The statement with more evidence, which is no mention of it."""
        return replace(self, evidence=tuple(dict.fromkeys((*self.evidence, *evidence)))[-EVIDENCE_MAX:])

    def closed(self, *, valid_to: datetime, at: datetime, by: str | None, reason: str) -> Statement:
        """The statement, no longer current. An end that it had before stays known as what was believed until then."""
        ends = self.earlier_ends
        if self.closed_at is not None and self.valid_to is not None:
            ends = (*ends, (self.closed_at, self.valid_to))[-ENDS_MAX:]
        return replace(
            self, valid_to=max(valid_to, self.valid_from), closed_at=at, closed_by=by, reason=reason, earlier_ends=ends
        )

    def decided(self, *, at: datetime, by: str | None, reason: str) -> Statement:
        """The proposal, decided: it stands no longer, and never was a word of its own."""
        return replace(self, valid_to=self.valid_from, closed_at=at, closed_by=by, reason=reason)

    def terms(self) -> tuple[Term, ...]:
        """What it is found by."""
        current = self.is_live()
        state = "current" if current else "proposed" if self.is_pending else "past"
        found: list[Term] = [("memory", self.memory), ("state", state)]
        if current:
            found.append(("current", self.memory))
        if self.earlier_ends or self.proposes is not None:
            # Its entry in the index does not tell when it held as far as was known; the row itself does.
            found.append(("look_back", "by_row"))
        found += [("against", one) for one in self.against]
        found += [("entity", ref) for ref in dict.fromkeys(self.entities)]
        found += [("message", one.message) for one in self.evidence]
        if self.attribute is not None and self.proposes is None:
            name = slot(self.subject, self.attribute)
            whole = name if self.visible_to is None else f"{name}@{self.visible_to}"
            found.append(("slot" if current else "past_slot", whole))
        return tuple(dict.fromkeys(found))

    def body(self) -> dict[str, Json]:
        """As it is stored and journalled."""
        return _body(self, ("valid_from", "recorded_at", "last_mentioned", "valid_to", "closed_at"))


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One row per key, holding statements. Its content is theirs, joined."""

    key: str
    """The seed's `memoryKey`."""
    type: str
    entity_type: str | None
    fact_type: str
    entities: tuple[str, ...]
    label: str | None
    """The name of the primary entity as people write it."""
    created_at: datetime
    updated_at: datetime
    importance: int = 1
    pinned: bool = False
    status: Status = "ACTIVE"
    source: str = "shadow_extraction"
    confidence: float = 0.8
    visible_to: str | None = None
    """The one agent that may see it; None: all agents of the user."""
    folds: tuple[str, ...] = ()
    """The memories that it folds into one."""
    folded_into: str | None = None
    kept_by: Trust | None = None
    """Who pinned, archived or edited it by hand last: what a person did so, no agent undoes; None: nobody."""
    told: tuple[str, ...] = ()
    """Of one that was folded, the ids of the statements it had: the fold holds them now."""

    @property
    def kind(self) -> RecordKind:
        return "memory"

    @property
    def is_kept(self) -> bool:
        """Whether a person has pinned, archived or edited it."""
        by_hand = self.pinned or (self.status == "ARCHIVED" and self.folded_into is None)
        return self.kept_by == "user" or (self.kept_by is None and by_hand)

    @property
    def record_key(self) -> str:
        return record_key(self.key, self.visible_to)

    def terms(self) -> tuple[Term, ...]:
        found: list[Term] = [] if self.status == "ACTIVE" else [("status", self.status)]
        found += [("entity", ref) for ref in dict.fromkeys(self.entities)]
        if self.pinned:
            found.append(("pinned", "yes"))
        return tuple(found)

    def body(self) -> dict[str, Json]:
        return _body(self, ("created_at", "updated_at"))


@dataclass(frozen=True, slots=True)
class MemoryWithStatements:
    """A memory with the statements that were asked for, oldest first."""

    memory: MemoryRecord
    statements: tuple[Statement, ...]

    def __str__(self) -> str:
        return self.content

    @property
    def key(self) -> str:
        """What calls name it by: `memories.get(key)`, `forget(memory=key)`."""
        return self.memory.record_key

    @property
    def content(self) -> str:
        """What it says, as one line."""
        return "; ".join(statement.content for statement in self.statements)


def record_key(key: str, visible_to: str | None) -> str:
    """The key of a memory among all records: visible to one agent is another memory than visible to all."""
    return key if visible_to is None else f"{key}@{visible_to}"


def slot(subject: str, attribute: str) -> str:
    """What at most one current statement of a single-valued attribute may fill."""
    return f"{subject}|{attribute}"


def to_statement(body: Mapping[str, Any]) -> Statement:
    values = dict(body)
    values["evidence"] = tuple(
        Evidence(one["message"], one["start"], one["end"], from_us(one["at"])) for one in values["evidence"]
    )
    values["earlier_ends"] = tuple((from_us(at), from_us(end)) for at, end in values.get("earlier_ends", ()))
    values["against"] = tuple(values.get("against", ()))
    return Statement(
        **_read(values, ("valid_from", "recorded_at", "last_mentioned", "valid_to", "closed_at"), ("entities", "mention_days"))
    )


def to_memory(body: Mapping[str, Any]) -> MemoryRecord:
    values = {**body, "told": body.get("told", ())}
    return MemoryRecord(**_read(values, ("created_at", "updated_at"), ("entities", "folds", "told")))


def _body(value: Statement | MemoryRecord, instants: tuple[str, ...]) -> dict[str, Json]:
    names = tuple(value.__dataclass_fields__)
    body: dict[str, Any] = dict(zip(names, attrgetter(*names)(value), strict=True))
    for name in _LATER:
        if not body.get(name, True):
            del body[name]
    for name in instants:
        if body[name] is not None:
            body[name] = to_us(body[name])
    for name in _LISTS:
        if name in body:
            body[name] = list(body[name])
    if body.get("evidence"):
        body["evidence"] = [
            {"message": one.message, "start": one.start, "end": one.end, "at": to_us(one.at)} for one in body["evidence"]
        ]
    if "earlier_ends" in body:
        body["earlier_ends"] = [[to_us(at), to_us(end)] for at, end in body["earlier_ends"]]
    return body


_LISTS = ("entities", "evidence", "mention_days", "against", "folds", "told")
"""Fields that are tuples."""
_LATER = ("earlier_ends", "proposes", "against", "kept_by", "told")
"""Fields that earlier versions did not have: left out of the body while they say nothing."""


def _read(values: dict[str, Any], instants: tuple[str, ...], lists: tuple[str, ...]) -> dict[str, Any]:
    for name in instants:
        values[name] = None if values[name] is None else from_us(values[name])
    for name in lists:
        values[name] = tuple(values[name])
    return values
